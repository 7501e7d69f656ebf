/* What cloudplay does with a provider by its table of functions alone. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cloudplay.h"
#include "base/err.h"
#include "host/modal/modal.h"
#include "proto/json.h"

static int
on_found(void *arg, const struct hr_cloud_found *f)
{
	struct json_object *const *lists = arg;

	return json_object_array_add(lists[0], json_object_new_string(f->id)) == 0
		   ? json_object_array_add(lists[1], json_object_new_string(f->state))
		   : -1;
}

static int
run(struct hr_cloud *c, struct json_object *q, struct json_object *o, struct hr_err *err)
{
	struct play_said said;
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	struct hr_cloud_command command = {.line = hr_json_text_or(q, "line", ""),
	    .cwd = hr_json_text_at(q, "cwd"),
	    .timeout_ms = (unsigned)hr_json_int_at(q, "timeout_ms"),
	    .output = play_output,
	    .arg = &said};
	struct hr_cloud_end end;
	int r;

	hr_buf_init(&said.out, 64 << 20);
	hr_buf_init(&said.err, 64 << 20);
	play_env(&env, hr_json_at(q, "env"));
	command.env = hr_strv_list(&env);
	r = c->ops->exec(c, &command, &end, err);
	play_put(o, "exit", json_object_new_int(end.code));
	play_put(o, "timed_out", json_object_new_boolean(end.timed_out));
	play_put(o, "note", json_object_new_string(end.note));
	play_bytes(o, "stdout", hr_buf_str(&said.out), said.out.len);
	play_bytes(o, "stderr", hr_buf_str(&said.err), said.err.len);
	hr_buf_done(&said.out);
	hr_buf_done(&said.err);
	return r;
}

static int
files(
    struct hr_cloud *c, bool put, struct json_object *q, struct json_object *o, struct hr_err *err)
{
	const char *path = hr_json_text_or(q, "path", "");
	HR_BUF(b, HR_CLOUD_FILE_MAX);
	size_t len;
	char *p;
	int r;

	if (put) {
		p = play_unbase64(q, "b64", &len);
		r = c->ops->put(c, path, p, len, err);
		free(p);
		return r;
	}
	r = c->ops->get(c, path, &b, err);
	play_bytes(o, "b64", hr_buf_str(&b), b.len);
	return r;
}

static int
list(struct hr_cloud *c, struct json_object *q, struct json_object *o, struct hr_err *err)
{
	struct json_object *lists[2] = {json_object_new_array(), json_object_new_array()};
	int r = c->ops->list(c, hr_json_text_at(q, "run"), on_found, lists, err);

	play_put(o, "list", lists[0]);
	play_put(o, "states", lists[1]);
	return r;
}

int
play_any(struct hr_cloud *c, const char *op, struct json_object *q, struct json_object *o,
    struct hr_err *err)
{
	size_t i;

	const struct {
		const char *name;
		int (*fn)(struct hr_cloud *c, struct hr_err *err);
	} plain[] = {{"wait", c->ops->wait}, {"look", c->ops->look}, {"pause", c->ops->pause},
	    {"resume", c->ops->resume}};
	bool unsure;
	int r;

	for (i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (strcmp(plain[i].name, op) == 0) {
			r = plain[i].fn(c, err);
			play_put(o, "state", json_object_new_string(c->state));
			return r;
		}
	if (strcmp(op, "state") == 0)
		return 0;
	if (strcmp(op, "create") == 0) {
		r = c->ops->create(c, &unsure, err);
		play_put(o, "id", json_object_new_string(c->id != NULL ? c->id : ""));
		return r;
	}
	if (strcmp(op, "end") == 0)
		return c->ops->end(c, c->id, err);
	if (strcmp(op, "keep") == 0)
		return c->ops->keep(c, 300, err);
	if (strcmp(op, "launch") == 0)
		return c->ops->launch(c, hr_json_text_or(q, "line", ""), err);
	if (strcmp(op, "run") == 0)
		return run(c, q, o, err);
	if (strcmp(op, "get") == 0 || strcmp(op, "put") == 0)
		return files(c, strcmp(op, "put") == 0, q, o, err);
	if (strcmp(op, "list") == 0)
		return list(c, q, o, err);
	if (strcmp(op, "publish") == 0) {
		r = c->ops->publish(c, (int)hr_json_int_at(q, "port"), err);
		play_put(o, "url", json_object_new_string(c->url != NULL ? c->url : ""));
		play_put(o, "header",
		    json_object_new_string(c->url_header != NULL ? c->url_header : ""));
		return r;
	}
	return hr_err_set(err, HR_E_INVAL, "cloudplay: \"%s\" is nothing it can do", op);
}

static int
perform_modal(struct hr_cloud *c, const char *op, struct json_object *q, struct json_object *o,
    struct hr_err *err)
{
	int r;

	if (strcmp(op, "app") == 0) {
		r = hr_modal_app(c, err);
		play_put(o, "id", r == 0 ? json_object_new_string(hr_modal_of(c)->app_id) : NULL);
		return r;
	}
	return play_any(c, op, q, o, err);
}

const struct play_provider play_modal = {"modal", hr_modal_entry, perform_modal};
const struct play_provider play_daytona = {"daytona", hr_daytona_entry, play_any};
const struct play_provider play_runloop = {"runloop", hr_runloop_entry, play_any};
