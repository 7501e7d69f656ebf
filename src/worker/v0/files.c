/* Answers GET /handrail/v1/files, POST rename and remove (doc/live.md): directories for the page.
 * /handrail/v1/download has the contents of files, in parts if a file is large. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <json-c/json.h>

#include "base/account.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "files/dirpage.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "proto/json.h"
#include "worker/live.h"
#include "worker/worker.h"

#define QUERY_MAX (64u << 10)
#define LIMIT 500

/* Returns the limit, or 0 if it is invalid. */
static size_t
limit_of(const struct hr_request *r)
{
	HR_BUF(text, 64);
	uint64_t n;

	if (!hr_request_query(r, "limit", &text))
		return LIMIT;
	return hr_live_number(hr_buf_str(&text), &n) && n <= HR_DIRPAGE_MAX ? (size_t)n : 0;
}

/* Reports why a path cannot be used, with a status that a client can act on. */
static void
refuse(struct hr_answer *ret, int sys, const char *path)
{
	static const struct {
		int sys, status;
	} of[] = {{ENOENT, 404}, {ENOTDIR, 404}, {ELOOP, 404}, {ENAMETOOLONG, 404}, {EACCES, 403},
	    {EPERM, 403}, {EROFS, 403}, {EEXIST, 409}, {ENOTEMPTY, 409}, {EBUSY, 409}, {EXDEV, 409},
	    {EINVAL, 409}};
	int status = 500;
	size_t i;
	HR_BUF(why, QUERY_MAX);

	for (i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (of[i].sys == sys)
			status = of[i].status;

	(void)hr_oserror_put(&why, sys, path);
	hr_answer_detail(ret, status, hr_buf_str(&why));
}

static void
list(const char *path, const char *after, size_t limit, bool encoded, struct hr_answer *ret)
{
	struct hr_err err = {0};
	int fd = hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, false);

	if (fd < 0) {
		refuse(ret, errno, path);
		return;
	}
	hr_buf_adds(&ret->body, "{\"path\":");
	hr_quote_json(&ret->body, path, strlen(path));
	hr_buf_addc(&ret->body, ',');
	if (hr_dirpage_put(&ret->body, fd, after, limit, encoded, &err) < 0) {
		hr_answer_reset(ret);
		hr_answer_detail(ret, err.code == HR_E_TOOLARGE ? 413 : 500, err.msg);
		return;
	}
	hr_buf_addc(&ret->body, '}');
	hr_answer_header(ret, "Cache-Control", "no-store");
}

void
hr_handle_files(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	size_t limit = limit_of(r);
	HR_BUF(path, QUERY_MAX);
	HR_BUF(after, QUERY_MAX);
	HR_BUF(encoded, 64);

	if (!hr_request_query_bytes(r, "path", &path))
		hr_buf_adds(&path, w->work_dir);
	(void)hr_request_query_bytes(r, "after", &after);
	(void)hr_request_query(r, "encoded", &encoded);
	if (path.fail != HR_OK || after.fail != HR_OK)
		hr_answer_generic(ret);
	else if (limit == 0)
		hr_answer_detail(ret, 400, "limit must be a number from 1 to 10000");
	else if (hr_buf_str(&path)[0] != '/')
		hr_answer_detail(ret, 400, "path must be absolute");
	else if (strlen(hr_buf_str(&path)) != path.len || strlen(hr_buf_str(&after)) != after.len)
		hr_answer_detail(ret, 404, "no name has a null in it");
	else
		list(hr_buf_str(&path), hr_buf_str(&after), limit,
		    strcmp(hr_buf_str(&encoded), "true") == 0, ret);
}

/* ---- changes ---- */

struct entry {
	const char *path, *leaf; /* borrowed from the body; leaf is the last name of path */
	int dir;                 /* O_PATH; -1: not open */
	bool shells;             /* a link that the shell's account may have made leads to dir */
};

/* Opens the directory of the path in the body's member `name`. Returns false after it has sent the
 * error response. */
static bool
entry_open(const struct hr_worker *w, struct entry *e, struct json_object *body, const char *name,
    struct hr_answer *ret)
{
	struct json_object *v = hr_json_typed_at(body, name, HR_PY_STR);
	HR_FREE char *parent = NULL;
	size_t len = 0;

	e->path = v != NULL ? hr_json_str(v, &len) : "";
	e->leaf = strrchr(e->path, '/');
	if (e->path[0] != '/' || strlen(e->path) != len || strcmp(e->leaf, "/") == 0 ||
	    strcmp(e->leaf, "/.") == 0 || strcmp(e->leaf, "/..") == 0)
		return hr_answer_detail(ret, 400,
		    strcmp(name, "to") == 0
			? "to must be absolute and end with the name of an entry"
			: "path must be absolute and end with the name of an entry");
	e->leaf++;
	parent = strndup(e->path, (size_t)(e->leaf - e->path));
	if (parent == NULL)
		return hr_answer_generic(ret);
	e->dir = hr_reach_keep_out(
	    w->run_dir, hr_reach_open_whose(parent, O_PATH | O_DIRECTORY, &e->shells), false);
	if (e->dir < 0)
		refuse(ret, errno, parent);
	return e->dir >= 0;
}

/* Checks that the entry itself, not the target of a link, is there and may be reached. Returns
 * false after the answer is complete. */
static bool
entry_is_there(const struct hr_worker *w, const struct entry *e, struct hr_answer *ret)
{
	HR_CLOSE int fd = hr_reach_keep_out(w->run_dir,
	    hr_reach_check(openat(e->dir, e->leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC)), true);

	if (fd >= 0 && !hr_reach_leads_to_hidden(fd))
		return true;
	if (fd < 0 && errno == ENOENT && w->once_again) {
		hr_buf_adds(&ret->body, "{}"); /* the first try has moved or removed it */
		return false;
	}
	refuse(ret, fd < 0 ? errno : EACCES, e->path);
	return false;
}

/* Takes the rights of the shell's account, which keep its links from changing what it could not
 * change itself: entries of others in sticky directories, and trees of others. Returns false after
 * it has sent the error response. */
static bool
enter(bool shells, struct hr_account_own *own, const char *path, struct hr_answer *ret)
{
	if (!shells || hr_reach_enter(own) == 0)
		return true;
	refuse(ret, errno, path);
	return false;
}

void
hr_handle_rename(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_PUT struct json_object *body = hr_live_object(w, r, ret);
	struct entry from = {.dir = -1}, to = {.dir = -1};
	struct hr_account_own own = {.changed = false};
	int sys;

	if (body != NULL && entry_open(w, &from, body, "path", ret) &&
	    entry_is_there(w, &from, ret) && entry_open(w, &to, body, "to", ret) &&
	    enter(from.shells || to.shells, &own, to.path, ret)) {
		hr_journal_mark(&w->journal, &w->once);
		sys = hr_path_rename_free(from.dir, from.leaf, to.dir, to.leaf) == 0 ? 0 : errno;
		hr_account_leave(&own);
		if (sys == 0)
			hr_buf_adds(&ret->body, "{}");
		else
			refuse(ret, sys, to.path);
	}
	hr_fd_close(&from.dir);
	hr_fd_close(&to.dir);
}

void
hr_handle_remove(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_PUT struct json_object *body = hr_live_object(w, r, ret);
	struct entry e = {.dir = -1};
	struct hr_account_own own = {.changed = false};
	struct hr_err err = {0};
	HR_BUF(way, QUERY_MAX);
	int done;

	if (body != NULL && entry_open(w, &e, body, "path", ret) && entry_is_there(w, &e, ret) &&
	    enter(e.shells, &own, e.path, ret)) {
		/* the descriptor stays where it is, whatever becomes of the path */
		hr_journal_mark(&w->journal, &w->once);
		hr_buf_addf(&way, "/proc/self/fd/%d/%s", e.dir, e.leaf);
		done = way.fail == HR_OK ? hr_path_remove(hr_buf_str(&way), &err) : 0;
		hr_account_leave(&own);
		if (way.fail != HR_OK)
			hr_answer_generic(ret);
		else if (done == 0)
			hr_buf_adds(&ret->body, "{}");
		else
			refuse(ret, err.sys, e.path);
	}
	hr_fd_close(&e.dir);
}
