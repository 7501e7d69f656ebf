/* Copies files as cp(1) does. The type of a sandbox's path follows from a read of its first byte
 * or, without a server, from its list. */
#include "config.h"

#include "host/transfer/cp.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/err.h"
#include "host/life/action.h"
#include "host/transfer/transfer.h"
#include "host/transfer/tree.h"
#include "host/transfer/zip.h"
#include "proto/json.h"

#define URL_PART_MAX 65536
#define ASK_TIMEOUT_S 10
#define FETCH_TIMEOUT_S 60
#define RANGE_PAST_END 416 /* status for an empty file */

/* ---- paths of the sandbox ---- */

/* Returns the shell's directory, or the sandbox's first one if unknown. The caller frees it. */
static char *
shell_directory(struct hr_sandbox *s)
{
	struct hr_http_request req = {.method = "GET",
	    .url = "/handrail/v1/session",
	    .timeout_s = ASK_TIMEOUT_S,
	    .watch_fd = -1};
	HR_PUT struct json_object *o = NULL;
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	const char *dir = NULL;

	if (hr_client_send(&s->client, &req, &a, NULL) == 0 &&
	    hr_json_decode_foreign(hr_buf_str(&a.body), a.body.len, &o, NULL) == 0)
		dir = hr_json_text_at(o, "working_dir");
	return strdup(dir != NULL && *dir == '/' ? dir : hr_sandbox_workspace(s));
}

char *
hr_cp_path(struct hr_sandbox *s, const char *path)
{
	HR_FREE char *dir = NULL;

	/* the back-end resolves relative paths if there is no server */
	if (*path == '/' || s->endpoint.url == NULL)
		return strdup(path);
	dir = shell_directory(s);
	return dir != NULL ? hr_path_join(dir, path) : NULL;
}

static bool
ends_in_slash(const char *path)
{
	size_t n = strlen(path);

	return n > 0 && path[n - 1] == '/';
}

/* ---- types ---- */

static char *
file_url(const char *path)
{
	HR_BUF(url, URL_PART_MAX);

	hr_buf_adds(&url, "/download_file?path=");
	hr_http_escape(&url, path);
	return hr_buf_end(&url, NULL);
}

static enum hr_cp_what
meaning(const struct hr_err *e)
{
	if (e->code != HR_E_HTTP_STATUS)
		return HR_CP_UNKNOWN;
	if (e->status == RANGE_PAST_END)
		return HR_CP_FILE;
	if (strstr(e->msg, "\nDetails: 404: File not found") != NULL)
		return HR_CP_NOTHING;
	return strstr(e->msg, "\nDetails: 400: Path is a directory") != NULL ? HR_CP_DIRECTORY
									     : HR_CP_UNKNOWN;
}

bool
hr_cp_is_direct(const struct hr_sandbox *s)
{
	return s->ops->copy_from != NULL && !s->endpoint.serves;
}

/* Returns 1 if the path exists, 0 if not. *ret is its list, which the caller owns. An empty
 * directory has an empty list like a missing one, but can be copied. */
static int
is_there(struct hr_sandbox *s, const char *path, struct json_object **ret, struct hr_err *err)
{
	HR_FREE char *text = NULL;
	HR_FREE char *zip = NULL;
	struct hr_json_error why = {0};
	struct hr_err e = {0};
	int r = hr_sandbox_list_files(s, path, &text, err);

	if (r == 0 && hr_json_decode_foreign(text, strlen(text), ret, &why) == 0 &&
	    json_object_is_type(*ret, json_type_array))
		r = hr_json_count(*ret) > 0;
	else if (r == 0)
		r = hr_json_err(err, HR_E_PROTO, &why, "the list of %s is not a JSON list", path);
	if (r == 0 && hr_sandbox_copy_from(s, path, &zip, &e) == 0)
		r = 1;
	else if (r == 0 && e.code != HR_E_NOTFOUND)
		r = hr_err_pass(err, &e);
	if (zip != NULL)
		(void)unlink(zip);
	return r;
}

/* Returns true for the error of a dangling link, or of an inaccessible directory: both exist all
 * the same. */
static bool
is_shut(const struct hr_err *e)
{
	return e->code == HR_E_PERMISSION || (e->code == HR_E_SYS && e->sys == ELOOP);
}

/* Finds the type by a list. A file's list has its own path only; a directory's may have paths as
 * well, but they are below it. (The directories above it may be closed to its user.) */
static int
look_at_list(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, struct hr_err *err)
{
	HR_PUT struct json_object *list = NULL;
	HR_PUT struct json_object *those = NULL;
	const char *only;
	struct hr_err e = {0};
	HR_FREE char *below = NULL;
	int r = is_there(s, path, &list, err);

	*ret = r > 0 ? HR_CP_DIRECTORY : HR_CP_NOTHING;
	only = hr_json_count(list) == 1 ? hr_json_text(hr_json_entry(list, 0)) : NULL;
	if (r > 0 && only != NULL && *only == '/') {
		below = hr_path_join(path, hr_path_leaf(only));
		r = below != NULL ? is_there(s, below, &those, &e) : hr_err_nomem(&e);
		if (r == 0)
			*ret = HR_CP_FILE;
		else if (r < 0)
			r = is_shut(&e) ? 0 : hr_err_pass(err, &e);
	}
	return r < 0 ? -1 : 0;
}

/* Handles a server without the endpoint. */
static int
look_at_first(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, struct hr_err *err)
{
	static const char *const first[] = {"Range: bytes=0-0", NULL};
	struct hr_http_request req = {
	    .method = "GET", .headers = first, .timeout_s = ASK_TIMEOUT_S, .watch_fd = -1};
	HR_FREE char *url = file_url(path);
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_err e = {0};

	if (url == NULL)
		return hr_err_nomem(err);
	req.url = url;
	*ret = hr_client_send(&s->client, &req, &a, &e) == 0 ? HR_CP_FILE : meaning(&e);
	if (*ret != HR_CP_UNKNOWN || e.code == HR_E_HTTP_STATUS)
		return 0;
	return hr_err_pass(err, &e);
}

/* Finds the type of a path. *ret_ours is set if the server has /handrail/v1/pack. */
static int
look(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, bool *ret_ours,
    struct hr_err *err)
{
	int r;

	*ret_ours = false;
	if (hr_cp_is_direct(s))
		return look_at_list(s, path, ret, err);
	r = hr_treecopy_look(s, path, ret, err);
	*ret_ours = r > 0;
	if (r == 0)
		r = look_at_first(s, path, ret, err);
	return r < 0 ? -1 : 0;
}

int
hr_cp_look(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, struct hr_err *err)
{
	bool ours;

	return look(s, path, ret, &ours, err);
}

static int
no_directory(const char *path, struct hr_err *err)
{
	return hr_err_set(err, HR_E_INVAL, "%s is a file: a directory cannot take its place", path);
}

/* ---- upload ---- */

static int
put_directory(
    struct hr_sandbox *s, const char *from, const char *to, bool with_name, struct hr_err *err)
{
	HR_FREE char *zip = hr_zip_directory(from, with_name, false, err);
	HR_FREE char *name = NULL;
	int r;

	if (zip == NULL)
		return -1;
	name = hr_path_name(zip);
	r = name != NULL ? hr_transfer_upload(s, zip, name, to, true, err) : hr_err_nomem(err);
	(void)unlink(zip);
	return r;
}

/* Uploads a file. A server unpacks files called *.zip, so such a file is sent inside an archive,
 * under its own name. */
static int
put_file(
    struct hr_sandbox *s, const char *from, const char *dir, const char *name, struct hr_err *err)
{
	size_t n = strlen(name);
	HR_FREE char *own = NULL;
	int r;

	if (n < 4 || strcasecmp(name + n - 4, ".zip") != 0)
		return hr_transfer_upload(s, from, name, dir, false, err);
	own = hr_path_name(from);
	if (own == NULL)
		r = hr_err_nomem(err);
	else if (strcmp(own, name) != 0)
		r = hr_err_set(err, HR_E_INVAL,
		    "%s cannot be renamed to %s while it is copied: copy it to a directory, and "
		    "rename it there",
		    from, name);
	else
		r = put_directory(s, from, dir, false, err);
	return r;
}

/* Splits a path of the sandbox; the caller frees both parts. */
static int
split(const char *path, char **ret_dir, char **ret_name, struct hr_err *err)
{
	char *slash;

	*ret_name = hr_path_name(path);
	*ret_dir = strdup(path);
	if (*ret_name == NULL || *ret_dir == NULL)
		return hr_err_nomem(err);
	slash = strrchr(*ret_dir, '/');
	slash[slash == *ret_dir ? 1 : 0] = '\0';
	return 0;
}

/* Copies a file; `to`, which is absolute, is or becomes the file itself. */
static int
put_as(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err)
{
	HR_FREE char *name = NULL;
	HR_FREE char *dir = NULL;

	return split(to, &dir, &name, err) == 0 ? put_file(s, from, dir, name, err) : -1;
}

static int
put_into(struct hr_sandbox *s, const char *from, const char *dir, struct hr_err *err)
{
	HR_FREE char *name = hr_path_name(from);

	return name != NULL ? put_file(s, from, dir, name, err) : hr_err_nomem(err);
}

/* Returns true for "dir/." and "..", which mean the contents of the directory, as in cp(1). */
static bool
is_content(const char *name)
{
	return *name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Returns the path without "/" and "/." at its end; the caller frees it. Returns NULL without
 * memory. */
static char *
tidy(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')))
		n--;
	return strndup(path, n);
}

/* Copies to a server with /handrail/v1/pack. With `into` the directory keeps the source's name. */
static int
put_tree(struct hr_sandbox *s, const char *from, const char *to, bool into, struct hr_err *err)
{
	HR_FREE char *name = hr_path_name(from);
	HR_FREE char *whole = NULL;
	HR_FREE char *end = NULL;

	if (name == NULL)
		return hr_err_nomem(err);
	whole = into && !is_content(name) ? hr_path_join(to, name) : strdup(to);
	end = whole != NULL ? tidy(whole) : NULL;
	return end != NULL ? hr_treecopy_in(s, from, end, err) : hr_err_nomem(err);
}

/* Copies to a server like the original's, which takes contents only. */
static int
put_old(struct hr_sandbox *s, const char *from, const char *to, bool is_dir, bool into,
    struct hr_err *err)
{
	if (is_dir)
		return put_directory(s, from, to, into, err);
	return into ? put_into(s, from, to, err) : put_as(s, from, to, err);
}

int
hr_cp_in(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err)
{
	enum hr_cp_what there = HR_CP_NOTHING;
	bool ours, into, is_dir;
	struct stat st;
	HR_FREE char *whole = NULL;

	if (lstat(from, &st) != 0 || (S_ISLNK(st.st_mode) && stat(from, &st) != 0 &&
					 (errno != ENOENT || hr_cp_is_direct(s))))
		return hr_err_set(err, HR_E_NOTFOUND, "%s: %s", from, strerror(errno));
	is_dir = S_ISDIR(st.st_mode);
	if (hr_cp_is_direct(s))
		return hr_sandbox_copy_to(s, from, to, is_dir, err);
	whole = hr_cp_path(s, to);
	if (whole == NULL)
		return hr_err_nomem(err);
	if (look(s, whole, &there, &ours, err) != 0)
		return -1;
	if (is_dir && there == HR_CP_FILE)
		return no_directory(to, err);
	into = there == HR_CP_DIRECTORY || there == HR_CP_UNKNOWN || ends_in_slash(to);
	return ours ? put_tree(s, from, whole, into, err)
		    : put_old(s, from, whole, is_dir, into, err);
}

int
hr_cp_write(struct hr_sandbox *s, const char *path, int fd, struct hr_err *err)
{
	HR_FREE char *whole = hr_cp_path(s, path);
	enum hr_cp_what there = HR_CP_NOTHING;
	HR_FREE char *dir = NULL;
	HR_FREE char *name = NULL;
	char file[64];
	bool ours;

	if (whole == NULL)
		return hr_err_nomem(err);
	if (look(s, whole, &there, &ours, err) != 0 || split(whole, &dir, &name, err) != 0)
		return -1;
	if (there == HR_CP_DIRECTORY || ends_in_slash(path))
		return hr_err_set(err, HR_E_INVAL, "%s is a directory", path);
	(void)snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	return hr_transfer_upload_as(s, file, name, dir, ours, err);
}

/* ---- download ---- */

struct output {
	int fd;
	struct hr_err failed; /* the error of a write */
};

static int
to_descriptor(void *arg, const char *p, size_t len)
{
	struct output *o = arg;

	return hr_fd_write_full(o->fd, p, len, &o->failed);
}

static int
fetch(struct hr_sandbox *s, const char *path, hr_http_sink_fn *sink, void *arg, struct hr_err *err)
{
	struct hr_http_request req = {.method = "GET",
	    .timeout_s = FETCH_TIMEOUT_S,
	    .sink = sink,
	    .sink_least = HR_TRANSFER_LEAST(FETCH_TIMEOUT_S),
	    .sink_arg = arg,
	    .progress = s->progress != NULL ? hr_transfer_down : NULL,
	    .progress_arg = s,
	    .watch_fd = -1};
	HR_FREE char *url = file_url(path);
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_err e = {0};

	if (url == NULL)
		return hr_err_nomem(err);
	req.url = url;
	if (hr_client_send(&s->client, &req, &a, &e) == 0)
		return 0;
	hr_transfer_slow(&e, path, FETCH_TIMEOUT_S);
	return hr_err_pass(err, &e);
}

static int
get_directory(struct hr_sandbox *s, const char *path, const char *to, struct hr_err *err)
{
	HR_FREE char *zip = NULL;
	int r = hr_sandbox_copy_some(s, path, 0, true, &zip, err);

	if (r == 0)
		r = hr_zip_extract(zip, to, 0, err);
	if (zip != NULL)
		(void)unlink(zip);
	return r;
}

/* Moves the only file of a directory. */
static int
take_out(const char *dir, const char *to, struct hr_err *err)
{
	HR_CLOSEDIR DIR *d = opendir(dir);
	const struct dirent *e = d != NULL ? hr_dir_next(d) : NULL;
	HR_FREE char *from = e != NULL ? hr_path_join(dir, e->d_name) : NULL;
	struct stat st;
	int r = 0;

	if (d == NULL)
		r = hr_err_sys(err, errno, "%s", dir);
	else if (e != NULL && from == NULL)
		r = hr_err_nomem(err);
	else if (e == NULL || hr_dir_next(d) != NULL || lstat(from, &st) != 0 ||
		 !S_ISREG(st.st_mode))
		r = hr_err_set(
		    err, HR_E_PROTO, "the sandbox must send the requested file and nothing else");
	else if (rename(from, to) != 0)
		r = hr_err_sys(err, errno, "rename to %s", to);
	return r;
}

/* Handles a file that arrives in an archive, alone: a link's target, under the target's name. */
static int
get_packed(struct hr_sandbox *s, const char *path, const char *to, struct hr_err *err)
{
	HR_FREE char *dir = NULL;
	int r;

	if (asprintf(&dir, "%s.XXXXXX", to) < 0)
		return hr_err_nomem(err);
	if (mkdtemp(dir) == NULL)
		r = hr_err_sys(err, errno, "create %s", to);
	else {
		r = get_directory(s, path, dir, err);
		if (r == 0)
			r = take_out(dir, to, err);
		(void)hr_path_remove(dir, NULL);
	}
	return r;
}

/* Copies the whole file, or leaves nothing. */
static int
get_file(struct hr_sandbox *s, const char *path, const char *to, struct hr_err *err)
{
	HR_FREE char *tmp = NULL;
	struct hr_transfer_file file = {.fd = hr_path_new(to, 0666, &tmp, err)};
	int r;

	if (file.fd < 0)
		return -1;
	r = fetch(s, path, hr_transfer_keep, &file, err);
	r = r < 0 ? r : hr_transfer_kept(&file, to, err);
	return hr_path_put(file.fd, tmp, to, true, r, err);
}

int
hr_cp_read(struct hr_sandbox *s, const char *path, int fd, struct hr_err *err)
{
	HR_FREE char *whole = hr_cp_path(s, path);
	enum hr_cp_what there = HR_CP_NOTHING;
	struct output out = {.fd = fd};
	bool ours;

	if (whole == NULL)
		return hr_err_nomem(err);
	if (look(s, whole, &there, &ours, err) != 0)
		return -1;
	if (there == HR_CP_NOTHING)
		return hr_err_set(
		    err, HR_E_NOTFOUND, "there is no file or directory %s in the sandbox", whole);
	if (there == HR_CP_DIRECTORY)
		return hr_err_set(err, HR_E_INVAL, "%s is a directory", whole);
	if (fetch(s, whole, to_descriptor, &out, err) == 0)
		return 0;
	return out.failed.code != HR_OK ? hr_err_pass(err, &out.failed) : -1;
}

/* Returns the target's name on this machine, which the caller frees; NULL without memory. */
static char *
target(const char *from, const char *to)
{
	struct stat st;
	HR_FREE char *name = NULL;

	if (!ends_in_slash(to) && (stat(to, &st) != 0 || !S_ISDIR(st.st_mode)))
		return strdup(to);
	name = hr_path_name(from);
	if (name == NULL)
		return NULL;
	return is_content(name) ? realpath(to, NULL) : hr_path_join(to, name);
}

/* Returns 0 if a copy can have the name: it replaces a file or a symbolic link, never a device or
 * FIFO, and a directory stays. */
static int
check_target(const char *path, struct hr_err *err)
{
	struct stat st;

	if (lstat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ||
	    S_ISDIR(st.st_mode))
		return 0;
	return hr_err_set(
	    err, HR_E_INVAL, "%s is not a regular file; \"-\" writes to standard output", path);
}

int
hr_cp_out(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err)
{
	enum hr_cp_what there;
	struct stat st;
	bool ours;
	int r;
	HR_FREE char *whole = hr_cp_path(s, from);
	HR_FREE char *place = target(from, to);
	HR_FREE char *end = place != NULL ? tidy(place) : NULL;

	if (whole == NULL || end == NULL)
		r = hr_err_nomem(err);
	else if ((r = check_target(end, err)) != 0 || (r = look(s, whole, &there, &ours, err)) != 0)
		;
	else if (there == HR_CP_NOTHING)
		r = hr_err_set(
		    err, HR_E_NOTFOUND, "there is no file or directory %s in the sandbox", whole);
	else if (there == HR_CP_DIRECTORY && stat(end, &st) == 0 && !S_ISDIR(st.st_mode))
		r = no_directory(end, err);
	else if (ours)
		r = hr_treecopy_out(s, whole, end, err);
	else if (there == HR_CP_FILE)
		r = hr_cp_is_direct(s) ? get_packed(s, whole, place, err)
				       : get_file(s, whole, place, err);
	else
		r = get_directory(s, whole, there == HR_CP_UNKNOWN ? to : place, err);
	return r;
}
