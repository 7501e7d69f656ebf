/* What cloudplay does with E2B. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cloudplay.h"
#include "base/err.h"
#include "host/e2b/e2b.h"
#include "proto/json.h"

static int
create(struct hr_cloud *c, struct json_object *q, struct json_object *o, struct hr_err *err)
{
	const struct hr_e2b_new n = {.template = hr_json_text_or(q, "template", "base"),
	    .timeout_s = (unsigned)hr_json_int_at(q, "timeout"),
	    .metadata = hr_json_at(q, "metadata"),
	    .env = hr_json_at(q, "env"),
	    .no_internet = hr_json_true_at(q, "no_internet"),
	    .insecure = hr_json_true_at(q, "insecure")};
	bool unsure = false;

	if (hr_e2b_create(c, &n, &unsure, err) != 0)
		return -1;
	play_put(o, "id", json_object_new_string(c->id));
	return 0;
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
	struct hr_e2b_process p = {.q = &command,
	    .user = hr_json_text_at(q, "user"),
	    .stdin_open = hr_json_true_at(q, "stdin")};
	struct hr_cloud_end end;
	int r;

	hr_buf_init(&said.out, 64 << 20);
	hr_buf_init(&said.err, 64 << 20);
	play_env(&env, hr_json_at(q, "env"));
	command.env = hr_strv_list(&env);
	r = hr_e2b_run(c, &p, &end, err);
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
files(struct hr_cloud *c, struct json_object *q, struct json_object *o, struct hr_err *err)
{
	struct json_object *list = hr_json_at(q, "files"), *ret = NULL;
	struct hr_api_part parts[16];
	size_t n = hr_json_count(list), i;
	int r;

	hr_assert(n <= 16);
	for (i = 0; i < n; i++) {
		struct json_object *f = hr_json_entry(list, i);

		parts[i] = (struct hr_api_part){.name = "file",
		    .filename = hr_json_text_or(f, "path", ""),
		    .type = "application/octet-stream"};
		parts[i].p = play_unbase64(f, "b64", &parts[i].len);
	}
	r = hr_e2b_put_files(c, parts, n, &ret, err);
	for (i = 0; i < n; i++)
		free((char *)(uintptr_t)parts[i].p);
	play_put(o, "files", ret);
	return r;
}

static int
list(struct hr_cloud *c, struct json_object *q, struct json_object *o, struct hr_err *err)
{
	struct json_object *found = NULL;
	char next[512];
	int r;

	(void)snprintf(next, sizeof(next), "%s", hr_json_text_or(q, "next", ""));
	r = hr_e2b_list(c, hr_json_text_at(q, "name"), hr_json_text_at(q, "value"),
	    (unsigned)hr_json_int_at(q, "limit"), next, &found, err);
	play_put(o, "list", found);
	play_put(o, "next", json_object_new_string(next));
	return r;
}

/* 1 and 0 are answers. */
static int
said(int r, struct json_object *o)
{
	if (r >= 0)
		play_put(o, "did", json_object_new_int(r));
	return r < 0 ? -1 : 0;
}

static int
perform(struct hr_cloud *c, const char *op, struct json_object *q, struct json_object *o,
    struct hr_err *err)
{
	const char *id = hr_json_text_or(q, "id", c->id != NULL ? c->id : "");
	unsigned timeout = (unsigned)hr_json_int_at(q, "timeout");
	struct json_object *ret = NULL;
	struct hr_buf b;
	char *text = NULL;
	int r;

	if (strcmp(op, "state") == 0)
		return hr_e2b_plane(c, err);
	if (strcmp(op, "create") == 0)
		return create(c, q, o, err);
	if (strcmp(op, "look") == 0 || strcmp(op, "all") == 0)
		return play_any(c, strcmp(op, "all") == 0 ? "list" : op, q, o, err);
	if (strcmp(op, "stats") == 0) {
		r = c->ops->stats(c, &text, err);
		play_put(o, "figures", r == 0 ? json_object_new_string(text) : NULL);
		free(text);
		return r;
	}
	if (strcmp(op, "connect") == 0)
		return hr_e2b_connect(c, id, timeout, err);
	if (strcmp(op, "kill") == 0)
		return said(hr_e2b_kill(c, id, err), o);
	if (strcmp(op, "timeout") == 0)
		return hr_e2b_timeout(c, id, timeout, err);
	if (strcmp(op, "pause") == 0)
		return said(hr_e2b_pause(c, id, err), o);
	if (strcmp(op, "list") == 0)
		return list(c, q, o, err);
	if (strcmp(op, "run") == 0)
		return run(c, q, o, err);
	if (strcmp(op, "put") == 0)
		return files(c, q, o, err);
	if (strcmp(op, "signal") == 0)
		return said(
		    hr_e2b_signal(c, hr_json_int_at(q, "pid"), hr_json_text_or(q, "name", ""), err),
		    o);
	if (strcmp(op, "code") == 0) {
		hr_buf_init(&b, HR_CLOUD_FILE_MAX);
		r = hr_e2b_code(c, hr_json_text_or(q, "code", ""), &b, err);
		play_put(o, "text", json_object_new_string(hr_buf_str(&b)));
		hr_buf_done(&b);
		return r < 0 ? -1 : 0;
	}
	if (strcmp(op, "get") == 0) {
		hr_buf_init(&b, HR_CLOUD_FILE_MAX);
		r = hr_e2b_get(c, hr_json_text_or(q, "path", ""), &b, err);
		play_bytes(o, "b64", hr_buf_str(&b), b.len);
		hr_buf_done(&b);
		return r;
	}
	r = strcmp(op, "info") == 0      ? hr_e2b_info(c, id, &ret, err)
	    : strcmp(op, "metrics") == 0 ? hr_e2b_metrics(c, id, &ret, err)
	    : strcmp(op, "unary") == 0
		? hr_e2b_unary(
		      c, hr_json_text_or(q, "procedure", ""), hr_json_at(q, "body"), &ret, err)
		: hr_err_set(err, HR_E_INVAL, "cloudplay: \"%s\" is nothing it can do", op);
	play_put(o, "json", ret);
	return r;
}

const struct play_provider play_e2b = {"e2b", hr_e2b_entry, perform};
