#include "config.h"

#include "worker/e2b/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "e2b/entry.h"
#include "files/place/reach.h"

#define METADATA_KEY 246
#define METADATA_MAX 4096
#define METADATA_HEADER "HTTP_X_METADATA_"

int
hr_e2b_write_fail(struct hr_e2b_write *u, int status, const char *fmt, const char *text)
{
	if (u->status == 0) {
		u->status = status;
		hr_buf_addf(&u->why, fmt, text); /* NOLINT: one of this file's formats */
	}
	return -1;
}

int
hr_e2b_write_fail_errno(struct hr_e2b_write *u, const char *what, const char *call, int sys)
{
	HR_BUF(text, HR_E2B_PATH_MAX * 2);

	if (sys == ENOSPC || sys == EDQUOT)
		return hr_e2b_write_fail(u, 507, "not enough disk space available%s", "");
	hr_buf_addf(&text, "%s: ", what);
	(void)hr_e2b_sys(&text, call, hr_buf_str(&u->path), sys);
	return hr_e2b_write_fail(u, 500, "%s", hr_buf_str(&text));
}

/* ---- metadata ---- */

/* Returns a header's name as a key: FastCGI has it in upper case, with '_' for '-'. */
static char *
key_of(const char *param)
{
	char *key = strndup(param, strcspn(param, "=")), *p;

	for (p = key; p != NULL && *p != '\0'; p++)
		*p = *p == '_' ? '-' : *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
	return key;
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(((char *const *)a)[0], ((char *const *)b)[0]);
}

int
hr_e2b_write_metadata(struct hr_e2b_write *u)
{
	char *const *p = u->c->r->params;
	size_t total = 0, len;
	char text[256];
	const char *value;

	for (; p != NULL && *p != NULL; p++) {
		if (strncmp(*p, METADATA_HEADER, strlen(METADATA_HEADER)) != 0)
			continue;
		hr_strv_take(&u->metadata, key_of(*p + strlen(METADATA_HEADER)));
		if (u->metadata.failed)
			break;
		len = strlen(u->metadata.v[u->metadata.n - 1]);
		value = strchr(*p, '=') + 1;
		if (len == 0) { /* the original ignores a header without a key */
			free(u->metadata.v[--u->metadata.n]);
			u->metadata.v[u->metadata.n] = NULL;
			continue;
		}
		hr_strv_add(&u->metadata, value);
		if (u->metadata.failed)
			break;
		if (len > METADATA_KEY) {
			(void)snprintf(
			    text, sizeof(text), "%zu exceeds %d bytes", len, METADATA_KEY);
			return hr_e2b_write_fail(
			    u, 400, "invalid metadata: metadata key length %s", text);
		}
		for (; *value != '\0'; value++)
			if (*value < ' ' || *value > '~')
				return hr_e2b_write_fail(u, 400,
				    "invalid metadata: value of key \"%s\" must be printable ASCII",
				    u->metadata.v[u->metadata.n - 2]);
		total += strlen(HR_E2B_XATTR) + len + strlen(u->metadata.v[u->metadata.n - 1]);
	}
	if (u->metadata.failed)
		return hr_e2b_write_fail(u, 500, "%s", "out of memory");
	if (total > METADATA_MAX) {
		(void)snprintf(text, sizeof(text), "%zu exceeds %d", total, METADATA_MAX);
		return hr_e2b_write_fail(
		    u, 400, "invalid metadata: total metadata size %s bytes", text);
	}
	if (u->metadata.n > 0)
		qsort(u->metadata.v, u->metadata.n / 2, 2 * sizeof(*u->metadata.v), by_key);
	return 0;
}

/* Replaces the metadata of a file. A file system without extended attributes has none. */
static void
put_metadata(struct hr_e2b_write *u, const char *proc)
{
	char names[4096];
	ssize_t len = listxattr(proc, names, sizeof(names));
	char key[sizeof(HR_E2B_XATTR) + METADATA_KEY];
	const char *name;
	size_t i;

	for (name = names; len > 0 && name < names + len; name += strlen(name) + 1)
		if (strncmp(name, HR_E2B_XATTR, strlen(HR_E2B_XATTR)) == 0)
			(void)removexattr(proc, name);
	for (i = 0; i + 1 < u->metadata.n; i += 2) {
		(void)snprintf(key, sizeof(key), HR_E2B_XATTR "%s", u->metadata.v[i]);
		(void)setxattr(proc, key, u->metadata.v[i + 1], strlen(u->metadata.v[i + 1]), 0);
	}
}

/* ---- one file ---- */

static bool
is_written(const struct hr_e2b_write *u, const char *path)
{
	size_t i;

	for (i = 0; i < u->paths.n; i++)
		if (strcmp(u->paths.v[i], path) == 0)
			return true;
	return false;
}

static int
fail_again(struct hr_e2b_write *u)
{
	HR_BUF(text, HR_E2B_PATH_MAX * 4);
	size_t i, n = 0;

	hr_buf_addf(&text,
	    "you cannot upload multiple files to the same path '%s' in one upload request, only "
	    "the "
	    "first specified file was uploaded",
	    hr_buf_str(&u->path));
	for (i = 0; u->paths.n > 2 && i < u->paths.n; i++)
		if (strcmp(u->paths.v[i], hr_buf_str(&u->path)) != 0)
			hr_buf_addf(&text, "%s%s",
			    n++ == 0 ? ", also the following files were uploaded: " : ", ",
			    u->paths.v[i]);
	return hr_e2b_write_fail(u, 400, "%s", hr_buf_str(&text));
}

/* Opens the file in its directory `dir`. A link that the sandbox's user may have made is followed
 * with that user's rights. */
static int
open_place(struct hr_e2b_write *u, int dir, bool shells)
{
	const char *path = hr_buf_str(&u->path);
	struct hr_account_own own = {.changed = false};
	struct hr_err err = {0};
	struct stat st, there, here;
	bool link =
	    fstatat(dir, hr_path_leaf(path), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
	int r;

	shells = shells || (link && st.st_uid != 0 && hr_reach_get_rules() != NULL);
	if (shells && hr_reach_enter(&own) < 0)
		return hr_e2b_write_fail_errno(u, "error opening file", "open", errno);
	r = hr_atomic_open(&u->file, path, 0644, &err);
	hr_account_leave(&own);
	if (r < 0)
		return hr_e2b_write_fail_errno(
		    u, "error opening file", "open", err.sys != 0 ? err.sys : EINVAL);
	u->file.dir = hr_reach_keep_out(u->c->w->run_dir, u->file.dir, false);
	if (u->file.dir >= 0 &&
	    (shells || link ||
		(fstat(dir, &there) == 0 && fstat(u->file.dir, &here) == 0 &&
		    there.st_ino == here.st_ino && there.st_dev == here.st_dev))) {
		u->open = true;
		return 0;
	}
	hr_atomic_abort(&u->file); /* a link came in between */
	return hr_e2b_write_fail_errno(u, "error opening file", "open", EACCES);
}

int
hr_e2b_write_begin(struct hr_e2b_write *u, struct hr_span name)
{
	HR_BUF(why, HR_E2B_PATH_MAX * 2);
	HR_FREE char *parent = NULL;
	HR_CLOSE int dir = -1;
	struct stat st;
	bool shells;

	hr_buf_reset(&u->path);
	if (hr_e2b_path(&u->path, name, &u->c->who, u->c->setup->directory, &why) < 0)
		return hr_e2b_write_fail(u, 400, "error resolving path: %s", hr_buf_str(&why));
	if (is_written(u, hr_buf_str(&u->path)))
		return fail_again(u);
	parent = hr_e2b_parent(hr_buf_str(&u->path));
	dir = parent != NULL ? hr_e2b_mkdirs(u->c, parent, &shells, &why) : -1;
	if (dir < 0)
		return hr_e2b_write_fail(
		    u, 500, "error ensuring directories: %s", hr_buf_str(&why));
	if (stat(hr_buf_str(&u->path), &st) == 0 && S_ISDIR(st.st_mode))
		return hr_e2b_write_fail(u, 400, "path is a directory: %s", hr_buf_str(&u->path));
	return open_place(u, dir, shells);
}

int
hr_e2b_write_data(struct hr_e2b_write *u, const char *p, size_t len)
{
	if (hr_spool_write(&u->file.spool, p, len) < 0)
		return hr_e2b_write_fail_errno(u, "error writing file", "write", errno);
	return 0;
}

int
hr_e2b_write_end(struct hr_e2b_write *u)
{
	HR_CLOSE int dir = fcntl(u->file.dir, F_DUPFD_CLOEXEC, 3);
	HR_FREE char *name = strdup(u->file.name);
	HR_CLOSE int fd = -1;
	bool is_new = u->file.old < 0;
	/* the bytes came before the name, so watchers have seen no write of the file */
	const struct timespec now[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
	struct hr_err err = {0};
	char proc[64];

	u->open = false;
	if (is_new && (fchmod(u->file.spool.fd, 0644) < 0 ||
			  fchown(u->file.spool.fd, u->c->who.uid, u->c->who.gid) < 0)) {
		(void)hr_e2b_write_fail_errno(u, "error changing ownership", "chown", errno);
		hr_atomic_abort(&u->file);
		return -1;
	}
	if (hr_atomic_commit(&u->file, &err) < 0)
		return hr_e2b_write_fail_errno(
		    u, "error writing file", "write", err.sys != 0 ? err.sys : EIO);
	if (name == NULL || dir < 0)
		return hr_e2b_write_fail(u, 500, "%s", "out of memory");
	fd = hr_reach_check(openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
	/* another file may have taken a new one's name */
	if (fd < 0 ||
	    fchownat(fd, "", is_new ? (uid_t)-1 : u->c->who.uid, u->c->who.gid, AT_EMPTY_PATH) < 0)
		return hr_e2b_write_fail_errno(u, "error changing ownership", "chown", errno);
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	put_metadata(u, proc);
	(void)utimensat(AT_FDCWD, proc, now, 0);
	hr_strv_add(&u->paths, hr_buf_str(&u->path));
	return u->paths.failed ? -1 : 0;
}

/* ---- the answer ---- */

void
hr_e2b_write_put_text(struct hr_buf *b, const char *text)
{
	HR_BUF(plain, HR_E2B_PATH_MAX * 6);
	const char *p;

	hr_quote_json(&plain, text, strlen(text));
	if (plain.fail != HR_OK)
		b->fail = plain.fail;
	for (p = hr_buf_str(&plain); *p != '\0'; p++)
		if (*p == '&' || *p == '<' || *p == '>')
			hr_buf_addf(b, "\\u%04x", (unsigned)*p);
		else
			hr_buf_addc(b, *p);
}

void
hr_e2b_write_init(struct hr_e2b_write *u, struct hr_e2b_call *c)
{
	memset(u, 0, sizeof(*u));
	u->c = c;
	u->file.dir = u->file.old = -1;
	hr_spool_init(&u->file.spool);
	hr_buf_init(&u->given, HR_E2B_PATH_MAX);
	hr_buf_init(&u->path, HR_E2B_PATH_MAX);
	hr_buf_init(&u->why, HR_E2B_PATH_MAX * 4);
	hr_buf_init(&u->out, HR_ANSWER_MAX);
}

void
hr_e2b_write_done(struct hr_e2b_write *u)
{
	hr_atomic_abort(&u->file);
	hr_buf_done(&u->given);
	hr_buf_done(&u->path);
	hr_buf_done(&u->why);
	hr_buf_done(&u->out);
	hr_strv_done(&u->paths);
	hr_strv_done(&u->metadata);
}

void
hr_e2b_write_answer(struct hr_e2b_write *u)
{
	if (u->paths.failed || u->out.fail != HR_OK || u->why.fail != HR_OK)
		hr_answer_generic(u->c->ret);
	else if (u->status != 0)
		hr_e2b_refuse(u->c, u->status, "%s", hr_buf_str(&u->why));
	else
		hr_buf_add(&u->c->ret->body, u->out.p, u->out.len);
}
