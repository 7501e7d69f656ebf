/* GET /handrail/v1/files (doc/live.md): lists a directory for viewers. /handrail/v1/download has
 * the contents, in parts if a file is large. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "files/dirpage.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "worker/worker.h"

#define QUERY_MAX (64u << 10)
#define LIMIT 500

/* Returns the limit, or 0 if it is invalid. */
static size_t
limit_of(const struct hr_request *r)
{
	HR_BUF(text, 64);
	unsigned long n;
	const char *p;
	char *end;

	if (!hr_request_query(r, "limit", &text))
		return LIMIT;
	p = hr_buf_str(&text);
	n = p[0] >= '0' && p[0] <= '9' ? strtoul(p, &end, 10) : 0;
	return n == 0 || *end != '\0' || n > HR_DIRPAGE_MAX ? 0 : n;
}

/* Reports why a directory could not be opened, with a status that a client can act on. */
static void
refuse(struct hr_answer *ret, int sys, const char *path)
{
	int status = sys == ENOENT || sys == ENOTDIR || sys == ELOOP || sys == ENAMETOOLONG ? 404
		     : sys == EACCES || sys == EPERM                                        ? 403
											    : 500;
	HR_BUF(why, QUERY_MAX);

	(void)hr_oserror_put(&why, sys, path);
	hr_answer_detail(ret, status, hr_buf_str(&why));
}

static void
list(const char *path, const char *after, size_t limit, struct hr_answer *ret)
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
	if (hr_dirpage_put(&ret->body, fd, after, limit, &err) < 0) {
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

	if (!hr_request_query(r, "path", &path))
		hr_buf_adds(&path, w->work_dir);
	(void)hr_request_query(r, "after", &after);
	if (path.fail != HR_OK || after.fail != HR_OK)
		hr_answer_generic(ret);
	else if (limit == 0)
		hr_answer_detail(ret, 400, "limit is a number from 1 to 1000");
	else if (hr_buf_str(&path)[0] != '/')
		hr_answer_detail(ret, 400, "path has to be absolute");
	else if (strlen(hr_buf_str(&path)) != path.len || strlen(hr_buf_str(&after)) != after.len)
		hr_answer_detail(ret, 404, "no name has a null in it");
	else
		list(hr_buf_str(&path), hr_buf_str(&after), limit, ret);
}
