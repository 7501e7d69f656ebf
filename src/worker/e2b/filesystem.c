/* Answers filesystem.Filesystem's calls but the watchers' (plugin envd). The original acts as root:
 * the user of a request gives the home and the owner of what is made, and no rights are checked. */
#include "config.h"

#include "worker/e2b/e2b.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/strv.h"
#include "e2b/connect.h"
#include "e2b/entry.h"
#include "e2b/gzip.h"
#include "e2b/message.h"
#include "files/place/reach.h"
#include "proto/json.h"
#include "worker/once.h"
#include "worker/request/body.h"

#define BODY_MAX (4u << 20)
#define LIST_MAX (64u << 20) /* bytes of an answer */
#define ENTRY_MIN 100        /* bytes of an entry in it, without the name */

struct call {
	struct hr_e2b_call *c;
	struct json_object *in;
	struct hr_buf path; /* the message's, cleaned */
	struct hr_buf out;
	size_t awaited; /* bytes that the names of read directories will add to out */
	struct hr_connect_error error;
};

/* Sets an error from the reason of hr_e2b_sys(). */
static int
fail_sys(struct call *k, enum hr_connect_code code, const char *what, const char *call,
    const char *path, int sys)
{
	HR_BUF(why, HR_E2B_PATH_MAX * 2);

	(void)hr_e2b_sys(&why, call, path, sys);
	return hr_connect_fail(&k->error, code, "%s: %s", what, hr_buf_str(&why));
}

/* Reads a path of the message. */
static int
take_path(struct call *k, const char *name, struct hr_buf *path)
{
	struct json_object *v = hr_json_at(k->in, name);
	HR_BUF(why, HR_E2B_PATH_MAX);
	struct hr_span text = {"", 0};

	if (v != NULL)
		text.p = hr_json_str(v, &text.len);
	if (hr_e2b_path(path, text, &k->c->who, k->c->setup->directory, &why) == 0)
		return 0;
	return hr_connect_fail(&k->error, HR_CONNECT_INVALID_ARGUMENT, "%s", hr_buf_str(&why));
}

static int
answer_entry(struct call *k, const char *path)
{
	hr_buf_adds(&k->out, "{\"entry\":");
	if (hr_e2b_put_entry(&k->out, path) < 0)
		return fail_sys(k, errno == ENOENT ? HR_CONNECT_NOT_FOUND : HR_CONNECT_INTERNAL,
		    errno == ENOENT ? "file not found" : "error getting file info", "lstat", path,
		    errno);
	hr_buf_addc(&k->out, '}');
	return 0;
}

static int
do_stat(struct call *k)
{
	return answer_entry(k, hr_buf_str(&k->path));
}

/* ---- ListDir ---- */

static int
check_length(struct call *k)
{
	if (k->out.len + k->awaited <= LIST_MAX)
		return 0;
	return hr_connect_fail(&k->error, HR_CONNECT_RESOURCE_EXHAUSTED,
	    "the list exceeds %u MiB: list directories below with a smaller depth", LIST_MAX >> 20);
}

/* Leaves out an entry that cannot be opened, since it was removed or replaced meanwhile. Returns 0,
 * or -1 if this process lacks descriptors or memory: the list would not be whole. */
static int
leave_out(struct call *k, const char *path, int sys)
{
	if (!hr_e2b_is_shortage(sys))
		return 0;
	return fail_sys(k, HR_CONNECT_INTERNAL, "error reading directory", "open", path, sys);
}

static int
put_listed(struct call *k, int dir, const char *name, const char *path, bool *ret_directory)
{
	HR_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	HR_CLOSE int target = -1;
	struct stat st;

	*ret_directory = false;
	if (fd < 0 || fstat(fd, &st) < 0)
		return leave_out(k, path, errno);
	if (S_ISLNK(st.st_mode)) {
		target = hr_reach_open_as(dir, name, O_PATH, false);
		if (target < 0 && leave_out(k, path, errno) < 0)
			return -1;
	}
	*ret_directory = S_ISDIR(st.st_mode);
	hr_json_put_comma(&k->out);
	(void)hr_e2b_entry_put(&k->out, path, fd, target);
	return check_length(k);
}

/* Appends the entries of a directory, each before those below it. Takes fd. */
static int
list(struct call *k, int fd, const char *path, int64_t depth)
{
	HR_CLOSEDIR DIR *d = hr_dir_take(fd);
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	struct dirent *e;
	bool directory;
	size_t i;
	int r = 0, below;

	if (d == NULL)
		return leave_out(k, path, errno);
	while (r == 0 && (e = hr_dir_next(d)) != NULL) {
		hr_strv_add(&names, e->d_name);
		k->awaited += strlen(e->d_name) + ENTRY_MIN;
		r = check_length(k);
	}
	if (r == 0 && errno != 0)
		return fail_sys(
		    k, HR_CONNECT_INTERNAL, "error reading directory", "readdirent", path, errno);
	if (names.failed)
		return hr_connect_fail(&k->error, HR_CONNECT_INTERNAL, "out of memory");
	if (names.n > 0)
		qsort(names.v, names.n, sizeof(*names.v), hr_strv_compare);
	for (i = 0; i < names.n && r == 0; i++) {
		HR_FREE char *at = hr_path_join(path, names.v[i]);

		if (at == NULL)
			return hr_connect_fail(&k->error, HR_CONNECT_INTERNAL, "out of memory");
		k->awaited -= strlen(names.v[i]) + ENTRY_MIN;
		r = put_listed(k, dirfd(d), names.v[i], at, &directory);
		if (r == 0 && directory && depth > 1 && depth < INT64_MAX) {
			below = openat(
			    dirfd(d), names.v[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			r = list(k, below, at, depth - 1);
		}
	}
	return r;
}

static int
do_list(struct call *k)
{
	const char *path = hr_buf_str(&k->path);
	int64_t depth = hr_json_int_at(k->in, "depth");
	char real[PATH_MAX] = "";
	HR_CLOSE int fd = -1;
	int top, sys = realpath(path, real) == NULL ? errno : 0; /* real: the part that fails */

	if (sys == ELOOP)
		return hr_connect_fail(&k->error, HR_CONNECT_FAILED_PRECONDITION,
		    "cyclic symlink or chain >255 links at \"%s\"", path);
	if (sys != 0)
		return fail_sys(k, sys == ENOENT ? HR_CONNECT_NOT_FOUND : HR_CONNECT_INTERNAL,
		    sys == ENOENT ? "path not found" : "error resolving symlink", "lstat",
		    real[0] != '\0' ? real : path, sys);
	fd = hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, false);
	if (fd < 0 && errno == ENOTDIR)
		return hr_connect_fail(
		    &k->error, HR_CONNECT_INVALID_ARGUMENT, "path is not a directory: %s", real);
	if (fd < 0)
		return fail_sys(
		    k, HR_CONNECT_INTERNAL, "error reading directory", "open", real, errno);
	hr_buf_adds(&k->out, "{\"entries\":[");
	if (k->out.fail != HR_OK)
		return hr_connect_fail(&k->error, HR_CONNECT_INTERNAL, "out of memory");
	top = fd;
	fd = -1;
	if (list(k, top, path, depth < 1 ? 1 : depth > HR_PATH_DEPTH ? HR_PATH_DEPTH : depth) < 0)
		return -1;
	if (k->out.p[k->out.len - 1] == '[') {
		hr_buf_reset(&k->out); /* an empty list is left out */
		hr_buf_adds(&k->out, "{}");
	} else {
		hr_buf_adds(&k->out, "]}");
	}
	return 0;
}

/* ---- changes; nginx may send one again whose worker died ---- */

static int
do_mkdir(struct call *k)
{
	const char *path = hr_buf_str(&k->path);
	struct hr_worker *w = k->c->w;
	HR_BUF(why, HR_E2B_PATH_MAX * 2);
	HR_CLOSE int fd = hr_reach_open_as(AT_FDCWD, path, O_PATH, false);
	struct stat st;
	bool shells;

	if (fd < 0 && errno != ENOENT)
		return fail_sys(
		    k, HR_CONNECT_INTERNAL, "error getting file info", "stat", path, errno);
	if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
		return hr_connect_fail(&k->error, HR_CONNECT_INVALID_ARGUMENT,
		    "path already exists but it is not a directory: %s", path);
	if (fd >= 0 && !w->once_again)
		return hr_connect_fail(
		    &k->error, HR_CONNECT_ALREADY_EXISTS, "directory already exists: %s", path);
	hr_fd_close(&fd);
	hr_journal_mark(&w->journal, &w->once);
	fd = hr_e2b_mkdirs(k->c, path, &shells, &why);
	if (fd < 0)
		return hr_connect_fail(&k->error, HR_CONNECT_INTERNAL, "%s", hr_buf_str(&why));
	return answer_entry(k, path);
}

/* An entry in its directory. */
struct entry {
	const char *path, *leaf;
	int dir;     /* O_PATH; -1: not open */
	bool shells; /* a link that the shell's account may have made leads to dir */
};

static int
entry_open(struct entry *e, const char *path)
{
	HR_FREE char *parent = hr_e2b_parent(path);

	e->path = path;
	e->leaf = hr_path_leaf(path);
	errno = ENOMEM;
	if (parent != NULL)
		e->dir = hr_reach_open_whose(parent, O_PATH | O_DIRECTORY, &e->shells);
	return parent != NULL && e->dir >= 0 ? 0 : -1;
}

/* Opens the entry itself. Returns -1 with errno, EACCES for one that must not be changed. */
static int
entry_check(const struct call *k, const struct entry *e)
{
	HR_CLOSE int fd = -1;

	if (e->leaf[0] == '\0') {
		errno = EBUSY; /* the root directory */
		return -1;
	}
	fd = hr_reach_check(openat(e->dir, e->leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC));
	fd = hr_reach_keep_out(k->c->w->run_dir, fd, true);
	if (fd < 0)
		return -1;
	if (hr_reach_leads_to_hidden(fd)) {
		errno = EACCES;
		return -1;
	}
	return 0;
}

/* Renames within the rules of Go, which replaces no directory. Returns 0, or -1 with errno. */
static int
rename_entry(const struct entry *from, const struct entry *to)
{
	struct hr_account_own own = {.changed = false};
	struct stat a, b;
	int r;

	if (fstatat(to->dir, to->leaf, &b, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(b.st_mode) &&
	    (fstatat(from->dir, from->leaf, &a, AT_SYMLINK_NOFOLLOW) < 0 || a.st_ino != b.st_ino ||
		a.st_dev != b.st_dev)) {
		errno = EEXIST;
		return -1;
	}
	if ((from->shells || to->shells) && hr_reach_enter(&own) < 0)
		return -1;
	r = renameat(from->dir, from->leaf, to->dir, to->leaf);
	hr_account_leave(&own);
	return r;
}

static int
do_move(struct call *k)
{
	HR_BUF(destination, HR_E2B_PATH_MAX);
	HR_BUF(why, HR_E2B_PATH_MAX * 2);
	HR_BUF(both, HR_E2B_PATH_MAX * 2);
	struct entry from = {.dir = -1}, to = {.dir = -1};
	struct hr_worker *w = k->c->w;
	HR_FREE char *parent = NULL;
	int r = 0, sys = 0;

	if (take_path(k, "destination", &destination) < 0)
		return -1;
	parent = hr_e2b_parent(hr_buf_str(&destination));
	hr_journal_mark(&w->journal, &w->once);
	to.path = hr_buf_str(&destination);
	to.leaf = hr_path_leaf(to.path);
	to.dir = parent != NULL ? hr_e2b_mkdirs(k->c, parent, &to.shells, &why) : -1;
	if (to.dir < 0)
		return hr_connect_fail(&k->error, HR_CONNECT_INTERNAL, "%s", hr_buf_str(&why));
	if (entry_open(&from, hr_buf_str(&k->path)) < 0 || entry_check(k, &from) < 0)
		sys = errno;
	else if (to.leaf[0] == '\0')
		sys = EEXIST;
	else if (rename_entry(&from, &to) < 0)
		sys = errno;
	hr_buf_addf(&both, "%s %s", hr_buf_str(&k->path), to.path);
	if (sys == ENOENT && !w->once_again)
		r = fail_sys(k, HR_CONNECT_NOT_FOUND, "source file not found", "rename",
		    hr_buf_str(&both), sys);
	else if (sys != 0 && sys != ENOENT)
		r = fail_sys(
		    k, HR_CONNECT_INTERNAL, "error renaming", "rename", hr_buf_str(&both), sys);
	hr_fd_close(&from.dir);
	hr_fd_close(&to.dir);
	return r < 0 ? r : answer_entry(k, to.path);
}

static int
do_remove(struct call *k)
{
	static const char what[] = "error removing file or directory";
	const char *path = hr_buf_str(&k->path);
	struct hr_account_own own = {.changed = false};
	struct entry e = {.dir = -1};
	struct hr_err err = {0};
	HR_BUF(way, HR_E2B_PATH_MAX);
	int sys = 0;

	if (entry_open(&e, path) < 0 || entry_check(k, &e) < 0 ||
	    (e.shells && hr_reach_enter(&own) < 0)) {
		sys = errno;
	} else {
		/* the descriptor stays where it is, whatever becomes of the path */
		hr_buf_addf(&way, "/proc/self/fd/%d/%s", e.dir, e.leaf);
		if (hr_path_remove(hr_buf_str(&way), &err) < 0)
			sys = err.sys != 0 ? err.sys : EIO;
		hr_account_leave(&own);
	}
	hr_fd_close(&e.dir);
	if (sys != 0 && sys != ENOENT)
		return fail_sys(k, HR_CONNECT_INTERNAL, what, "unlinkat", path, sys);
	hr_buf_adds(&k->out, "{}");
	return 0;
}

/* ---- the protocol ---- */

#define MESSAGE(id, text, ...)                                                                     \
	static const struct hr_message_field id##_fields[] = {__VA_ARGS__, {.name = NULL}};        \
	static const struct hr_message id##_message = {"filesystem." text "Request", id##_fields}
#define STRING(id)                                                                                 \
	{                                                                                          \
		.name = id, .type = HR_MESSAGE_STRING                                              \
	}

MESSAGE(stat, "Stat", STRING("path"));
MESSAGE(list, "ListDir", STRING("path"), {.name = "depth", .type = HR_MESSAGE_UINT32});
MESSAGE(mkdir, "MakeDir", STRING("path"));
MESSAGE(move, "Move", STRING("source"), STRING("destination"));
MESSAGE(remove, "Remove", STRING("path"));

static const struct method {
	const char *name;
	const struct hr_message *message;
	int (*handle)(struct call *k); /* returns 0 with k->out, or -1 with k->error */
	bool changes;
} methods[] = {
    {"Stat", &stat_message, do_stat, false},
    {"ListDir", &list_message, do_list, false},
    {"MakeDir", &mkdir_message, do_mkdir, true},
    {"Move", &move_message, do_move, true},
    {"Remove", &remove_message, do_remove, false},
};

/* Reads the message: the body, which may be compressed, as JSON. */
static int
take_message(struct call *k, const struct method *m)
{
	const char *encoding = hr_e2b_header(k->c, "CONTENT_ENCODING");
	const char *version = hr_e2b_header(k->c, "CONNECT_PROTOCOL_VERSION");
	struct hr_buf *body = &k->c->w->body;
	HR_BUF(plain, BODY_MAX);

	if (version[0] != '\0' && strcmp(version, "1") != 0)
		return hr_connect_fail(&k->error, HR_CONNECT_INVALID_ARGUMENT,
		    "connect-protocol-version must be \"1\": got \"%s\"", version);
	if (strcmp(encoding, "gzip") == 0) {
		if (hr_gunzip(&plain, hr_span_of_buf(body)) < 0)
			return hr_connect_fail(&k->error, HR_CONNECT_INVALID_ARGUMENT,
			    "decompress: gzip: invalid header");
		body = &plain;
	} else if (encoding[0] != '\0' && strcmp(encoding, "identity") != 0) {
		return hr_connect_fail(&k->error, HR_CONNECT_UNIMPLEMENTED,
		    "unknown compression \"%s\": supported encodings are gzip", encoding);
	}
	return hr_message_read(m->message, hr_span_of_buf(body), &k->in, &k->error);
}

/* Returns true if a list of encodings has gzip, which Connect compares without weights. */
static bool
takes_gzip(const char *accept)
{
	size_t len;

	for (; *accept != '\0'; accept += len + (accept[len] == ',')) {
		accept += strspn(accept, " ");
		len = strcspn(accept, ",");
		if (len >= 4 && strncmp(accept, "gzip", 4) == 0 &&
		    strspn(accept + 4, " ") == len - 4)
			return true;
	}
	return false;
}

static void
run(struct call *k, const struct method *m)
{
	struct hr_e2b_call *c = k->c;
	struct hr_answer *ret = c->ret;

	if (m->changes && !hr_once_try(c->w, c->r, true, ret))
		return;
	k->path.cap = HR_E2B_PATH_MAX;
	k->out.cap = HR_ANSWER_MAX;
	if (take_message(k, m) < 0 ||
	    take_path(k, m->handle == do_move ? "source" : "path", &k->path) < 0 ||
	    m->handle(k) < 0) {
		ret->status = hr_connect_status(k->error.code);
		hr_connect_put_error(&ret->body, &k->error);
	} else if (takes_gzip(hr_e2b_header(c, "ACCEPT_ENCODING")) &&
		   hr_gzip(&ret->body, hr_span_of_buf(&k->out)) == 0) {
		hr_answer_header(ret, "Content-Encoding", "gzip");
	} else {
		hr_buf_reset(&ret->body);
		hr_buf_add(&ret->body, hr_buf_str(&k->out), k->out.len);
	}
	if (k->out.fail != HR_OK)
		hr_answer_generic(ret);
	if (m->changes)
		hr_once_leave(c->w, ret);
}

void
hr_e2b_filesystem(struct hr_e2b_call *c, const char *method)
{
	const struct method *m = methods, *end = methods + sizeof(methods) / sizeof(*methods);
	struct call k = {.c = c};
	HR_BUF(name, 4096);
	bool named;

	while (m < end && strcmp(m->name, method) != 0)
		m++;
	if (m == end) {
		hr_e2b_plain(c, 404, "404 page not found");
		return;
	}
	if (strcmp(c->r->method, "POST") != 0) {
		hr_e2b_not_allowed(c, "POST");
		return;
	}
	if (!hr_body_is_type(c->r->content_type, "application/json")) {
		c->ret->status = 415;
		c->ret->content_type = NULL;
		hr_answer_header(
		    c->ret, "Accept-Post", "application/json, application/json; charset=utf-8");
		return;
	}
	if (strcasestr(c->r->content_type, "charset") != NULL)
		c->ret->content_type = "application/json; charset=utf-8";
	if (!hr_worker_body(c->w, c->r, BODY_MAX, c->ret))
		return;
	named = hr_e2b_who_named(c->r->authorization, &name);
	if (!hr_e2b_who_find(&c->who, named ? hr_buf_str(&name) : NULL, c->setup, c->w->user_id)) {
		(void)hr_connect_fail(&k.error, HR_CONNECT_UNAUTHENTICATED,
		    "invalid username: '%s'", named ? hr_buf_str(&name) : c->setup->user);
		c->ret->status = 401;
		hr_connect_put_error(&c->ret->body, &k.error);
		return;
	}
	run(&k, m);
	json_object_put(k.in);
	hr_buf_done(&k.path);
	hr_buf_done(&k.out);
}
