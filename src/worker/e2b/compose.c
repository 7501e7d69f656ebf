/* Answers POST /files/compose: joins files, which are removed then. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "base/path.h"
#include "files/place/reach.h"
#include "proto/json.h"
#include "worker/e2b/write.h"

#define CHUNK (128u << 10)
#define COMPOSE_BODY_MAX (4u << 20)

/* Appends one of the files. */
static int
append(struct hr_e2b_write *u, const char *path)
{
	HR_CLOSE int fd = hr_reach_keep_out(u->c->w->run_dir,
	    hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, false), false);
	struct hr_buf *buf = &u->c->w->body;
	struct stat st;
	ssize_t n = -1;
	char *p;

	if (fd < 0 && errno == ENOENT)
		return hr_e2b_write_fail(u, 404, "source file not found: %s", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return hr_e2b_write_fail_errno(u, "error opening source file", "open", errno);
	if (!S_ISREG(st.st_mode))
		return hr_e2b_write_fail(u, 400, "source is not a regular file: %s", path);
	hr_buf_reset(buf);
	p = hr_buf_reserve(buf, CHUNK);
	while (p != NULL && (n = hr_fd_read(fd, p, CHUNK)) > 0)
		if (hr_e2b_write_data(u, p, (size_t)n) < 0)
			return -1;
	return n == 0 ? 0 : hr_e2b_write_fail_errno(u, "error reading source file", "read", EIO);
}

/* Removes a file that is part of another one now. */
static void
remove_source(const char *path)
{
	struct hr_account_own own = {.changed = false};
	HR_FREE char *parent = hr_e2b_parent(path);
	HR_CLOSE int dir = -1;
	bool shells = false;

	if (parent != NULL)
		dir = hr_reach_open_whose(parent, O_PATH | O_DIRECTORY, &shells);
	if (dir < 0 || (shells && hr_reach_enter(&own) < 0))
		return;
	(void)unlinkat(dir, hr_path_leaf(path), 0);
	hr_account_leave(&own);
}

static int
compose(struct hr_e2b_write *u, struct json_object *in)
{
	struct json_object *list = hr_json_typed_at(in, "source_paths", HR_PY_LIST);
	HR_CLEAN(hr_strv_done) struct hr_strv sources = {0};
	HR_BUF(path, HR_E2B_PATH_MAX);
	HR_BUF(why, HR_E2B_PATH_MAX);
	const char *text;
	size_t i, n = hr_json_count(list);

	for (i = 0; i < n; i++) {
		text = hr_json_text(hr_json_entry(list, i));
		hr_buf_reset(&path);
		if (text == NULL || hr_e2b_path(&path, hr_span_of(text), &u->c->who,
					u->c->setup->directory, &why) < 0)
			return hr_e2b_write_fail(
			    u, 400, "error resolving source path: %s", hr_buf_str(&why));
		hr_strv_add(&sources, hr_buf_str(&path));
	}
	text = hr_json_text_at(in, "destination");
	if (n == 0 || text == NULL || text[0] == '\0')
		return hr_e2b_write_fail(u, 400, "%s", "source_paths and destination are required");
	if (sources.failed)
		return hr_e2b_write_fail(u, 500, "%s", "out of memory");
	if (hr_e2b_write_begin(u, hr_span_of(text)) < 0)
		return -1;
	for (i = 0; i < n; i++)
		if (append(u, sources.v[i]) < 0)
			return -1;
	if (hr_e2b_write_end(u) < 0)
		return -1;
	for (i = 0; i < n; i++)
		if (strcmp(sources.v[i], u->paths.v[0]) != 0)
			remove_source(sources.v[i]);
	return 0;
}

void
hr_e2b_compose(struct hr_e2b_call *c)
{
	HR_PUT struct json_object *in = NULL;
	struct hr_e2b_write u;
	const char *user;

	if (!hr_worker_body(c->w, c->r, COMPOSE_BODY_MAX, c->ret))
		return;
	if (hr_json_decode(hr_buf_str(&c->w->body), c->w->body.len, &in, NULL) < 0) {
		hr_e2b_refuse(c, 400, "invalid request body");
		return;
	}
	user = hr_json_text_at(in, "username");
	if (!hr_e2b_who_find(&c->who, user, c->setup, c->w->user_id)) {
		hr_e2b_refuse(c, 401, "error looking up user '%s': user: unknown user %s",
		    user != NULL ? user : "", user != NULL ? user : "");
		return;
	}
	hr_e2b_write_init(&u, c);
	if (compose(&u, in) == 0) {
		hr_buf_adds(&u.out, "{\"name\":");
		hr_e2b_write_put_text(&u.out, hr_path_leaf(u.paths.v[0]));
		hr_buf_adds(&u.out, ",\"path\":");
		hr_e2b_write_put_text(&u.out, u.paths.v[0]);
		hr_buf_adds(&u.out, ",\"type\":\"file\"}");
	}
	hr_e2b_write_answer(&u);
	hr_e2b_write_done(&u);
}
