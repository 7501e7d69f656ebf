/* Serves the file viewer (doc/http.md, "The file viewer"): a separate server on loopback that asks
 * for no key, because a browser has none to send. Other accounts of the machine can reach its port,
 * so it serves files only below the secret base of its address. It opens files with the rights of
 * the shell's account, and only in the workspace or owned by that account: viewers see no more than
 * cat in the shell. Unlike the original it escapes the client's strings in HTML. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/account.h"
#include "base/fd.h"
#include "base/plain.h"
#include "base/process/pid.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "files/viewpage.h"
#include "worker/worker.h"

#define QUERY_MAX (64u << 10)
#define TEXT_MAX (256u << 10)

static const char html[] = "text/html; charset=utf-8";

void
hr_handle_viewer(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	(void)w;
	(void)r;
	hr_buf_adds(&ret->body, "{\"status\":\"File viewer server is running\"}");
}

/* Sends an error page; `why` is another paragraph, NULL for none. */
static void
answer_error(
    struct hr_answer *ret, int status, const char *heading, const char *path, const char *why)
{
	ret->status = status;
	ret->content_type = html;
	hr_buf_addf(&ret->body, "<h1>%s</h1><p>", heading);
	hr_viewpage_escape(&ret->body, path, false);
	hr_buf_adds(&ret->body, "</p>");
	if (why == NULL)
		return;
	hr_buf_adds(&ret->body, "<p>");
	hr_viewpage_escape(&ret->body, why, false);
	hr_buf_adds(&ret->body, "</p>");
}

struct found {
	int exists; /* -1: missing; 0: a file; 1: a directory */
	int fd;     /* -1: not opened */
	int sys;    /* errno of the open; 0: it succeeded or was not tried */
	struct stat st;
};

/* Opens the file as the shell's account and follows only links of root and of that account: another
 * account could point one at a file that only the shell may read. */
static int
open_as_shell(const struct hr_worker *w, const char *path, int flags)
{
	return hr_reach_check(hr_plain_walk_as(AT_FDCWD, path, flags, w->shell_uid));
}

/* Opens the file unless its type cannot be shown. */
static void
look(const struct hr_worker *w, const char *path, bool wanted, struct found *ret)
{
	struct hr_account_own own;
	struct hr_account shell;
	HR_CLOSE int there = -1;

	*ret = (struct found){.exists = -1, .fd = -1};
	hr_account_find(&shell, w->shell_uid);
	if (hr_account_enter(&shell, &own) < 0) {
		ret->exists = 0;
		ret->sys = errno;
		return;
	}
	there = hr_plain_walk_as(AT_FDCWD, path, O_PATH, w->shell_uid);
	if (there >= 0 && fstat(there, &ret->st) == 0)
		ret->exists = S_ISDIR(ret->st.st_mode) ? 1 : 0;
	if (ret->exists == 0 && wanted) {
		ret->fd = open_as_shell(w, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
		if (ret->fd < 0 || fstat(ret->fd, &ret->st) < 0)
			ret->sys = errno;
	}
	hr_account_leave(&own);
}

/* Compares the kernel's name of the open file with that of the workspace. */
static bool
is_in_workspace(const struct hr_worker *w, int fd)
{
	HR_FREE char *top = realpath(w->work_dir, NULL);
	char name[PATH_MAX];
	size_t len;

	if (top == NULL || hr_pid_link(name, sizeof(name), "/proc/self/fd/%d", fd) <= 0)
		return false;
	len = strlen(top);
	return strncmp(name, top, len) == 0 && (name[len] == '/' || top[len - 1] == '/');
}

/* Decides by the first bytes, because anyone can choose the suffix. */
static const char *
content_type(int fd)
{
	char head[HR_VIEWPAGE_HEAD];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	return n > 0 ? hr_viewpage_content(head, (size_t)n) : NULL;
}

/* Sends the page; takes ownership of f->fd. */
static void
show(struct found *f, const char *path, const char *type, struct hr_answer *ret)
{
	struct hr_stream s = {.send = hr_viewpage_send, .done = hr_viewpage_free};

	s.arg = hr_viewpage_new(f->fd, f->st.st_size, path, type, &s.length);
	f->fd = -1;
	if (s.arg == NULL) {
		hr_answer_generic(ret);
		return;
	}
	ret->content_type = html;
	hr_answer_header(ret, "X-Content-Type-Options", "nosniff");
	hr_answer_stream(ret, &s);
}

static void
view(const struct hr_worker *w, const char *path, struct hr_answer *ret)
{
	static const char failed[] = "Error viewing file";
	HR_BUF(ext, TEXT_MAX);
	HR_BUF(why, TEXT_MAX);
	struct found f;
	const char *type;

	type = hr_viewpage_type(path, &ext);
	look(w, path, type != NULL, &f);
	if (f.exists < 0) {
		answer_error(ret, 404, "Error: File not found", path, NULL);
	} else if (f.exists > 0) {
		answer_error(ret, 400, "Error: Path is a directory", path, NULL);
	} else if (type == NULL) {
		hr_buf_addf(&why, "Unsupported file extension: %s. Supported extensions are: %s",
		    hr_buf_str(&ext), HR_VIEWPAGE_TYPES);
		answer_error(ret, 500, failed, path, hr_buf_str(&why));
	} else if (f.sys == ENOENT) { /* the file was removed meanwhile */
		hr_buf_addf(&why,
		    "File not found locally: %s. Please download the file to the local machine and "
		    "try again.",
		    path);
		answer_error(ret, 500, failed, path, hr_buf_str(&why));
	} else if (f.sys != 0) {
		(void)hr_oserror_put(&why, f.sys, path);
		answer_error(ret, 500, failed, path, hr_buf_str(&why));
	} else if (!S_ISREG(f.st.st_mode)) {
		answer_error(ret, 500, failed, path, "Not a regular file");
	} else if (f.st.st_uid != w->shell_uid && !is_in_workspace(w, f.fd)) {
		answer_error(ret, 500, failed, path,
		    "The viewer shows files below the workspace and of the shell's own account");
	} else if ((type = content_type(f.fd)) == NULL) {
		answer_error(
		    ret, 500, failed, path, "The content is none of these: PDF, PNG, JPEG, GIF");
	} else {
		show(&f, path, type, ret);
	}
	if (ext.fail != HR_OK || why.fail != HR_OK)
		hr_answer_generic(ret);
	hr_fd_close(&f.fd);
}

static bool
is_local(const char *remote)
{
	return strcmp(remote, "127.0.0.1") == 0 || strcmp(remote, "::1") == 0 ||
	       strcmp(remote, "localhost") == 0;
}

void
hr_handle_view(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_BUF(path, QUERY_MAX);

	if (!r->admitted) {
		ret->status = 403;
		ret->content_type = html;
		hr_buf_adds(&ret->body, "<h1>Access Denied</h1><p>The address of the file viewer "
					"has a secret path, which was not given</p>");
		return;
	}
	/* the address is secret and must not leak through a link on the page */
	hr_answer_header(ret, "Referrer-Policy", "no-referrer");
	if (!hr_request_query(r, "path", &path) && path.fail == HR_OK) {
		ret->status = 422;
		hr_buf_adds(&ret->body,
		    "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"query\",\"path\"],"
		    "\"msg\":\"Field required\",\"input\":null}]}");
	} else if (path.fail != HR_OK) {
		hr_answer_generic(ret);
	} else if (!is_local(r->remote)) {
		ret->status = 403;
		ret->content_type = html;
		hr_buf_adds(&ret->body, "<h1>Access Denied</h1><p>This endpoint is only accessible "
					"from localhost</p>");
	} else if (hr_buf_str(&path)[0] != '/') {
		answer_error(ret, 400, "Error: Path must be absolute", hr_buf_str(&path), NULL);
	} else if (strlen(hr_buf_str(&path)) != path.len) {
		answer_error(ret, 404, "Error: File not found", hr_buf_str(&path), NULL);
	} else {
		view(w, hr_buf_str(&path), ret);
	}
}
