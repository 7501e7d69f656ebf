/* Uses a sandbox of a program: commands, files, a server, a terminal. */
#include "config.h"

#include "host/program/program_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/process/spawn.h"
#include "host/cloud/actions_int.h"
#include "proto/json.h"

#define WHO "the program"
#define WORDS_MAX 1000

/* ---- commands ---- */

static int
on_output(void *arg, const struct hr_program_answer *a, struct hr_err *err)
{
	const struct hr_cloud_command *q = arg;

	if (a->kind != HR_PROGRAM_DATA || a->stream == 0)
		return hr_err_set(
		    err, HR_E_PROTO, WHO ": its answer to \"exec\" has invalid output");
	if (q->output != NULL && a->data.len > 0)
		q->output(q->arg, a->stream, a->data.p, a->data.len);
	return 0;
}

static int
read_end(struct hr_cloud *c, struct json_object *ok, struct hr_cloud_end *ret, struct hr_err *err)
{
	static const char subject[] = "the answer to \"exec\"";
	const char *note;
	HR_BUF(b, 3 * sizeof(ret->note));
	int64_t code;
	int r;

	if (hr_field_int(WHO, subject, ok, "code", &code, err) != 0)
		return -1;
	if (code < 0 || code > 255)
		return hr_err_set(err, HR_E_PROTO,
		    WHO ": \"code\" of %s must be from 0 to 255, not %lld", subject,
		    (long long)code);
	ret->code = (int)code;
	if (hr_json_at(ok, "note") == NULL)
		return 0;
	if (hr_program_word(ok, subject, "note", sizeof(ret->note) - 1, &note, err) != 0)
		return -1;
	hr_cloud_hide(&b, hr_program_of(c)->child.secrets, note, strlen(note));
	r = hr_buf_check(&b, err);
	(void)snprintf(ret->note, sizeof(ret->note), "%s", hr_buf_str(&b));
	return r;
}

int
hr_program_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	struct hr_child_call call = {
	    .op = "exec", .timeout_ms = q->timeout_ms, .event = on_output, .arg = (void *)q};
	struct hr_child_end end = {0};
	struct hr_err mine = {0};
	int r = -1;

	*ret = (struct hr_cloud_end){.code = -1};
	call.args = hr_json_object(err, "sandbox", json_object_new_string(c->id), "command",
	    json_object_new_string(q->line), "cwd", hr_json_maybe(q->cwd), "env",
	    hr_cloud_env_object(q->env, err), "timeout_ms",
	    q->timeout_ms > 0 ? json_object_new_int64(q->timeout_ms) : HR_JSON_NONE, NULL);
	if (call.args != NULL) {
		r = hr_program_talk(c, &call, &end, &mine);
		/* late even if the program answered the cancellation: the caller ends what was
		 * started */
		ret->timed_out = end.late;
		if (r == 0 && !end.late)
			r = hr_program_named(c, read_end(c, end.ok, ret, &mine), &mine);
		if (end.late)
			r = 0;
		if (r != 0 && err != NULL)
			*err = mine;
	}
	json_object_put(end.ok);
	json_object_put(call.args);
	return r;
}

/* ---- files ---- */

static int
on_bytes(void *arg, const struct hr_program_answer *a, struct hr_err *err)
{
	struct hr_buf *b = arg;

	if (a->kind != HR_PROGRAM_DATA || a->stream != 0)
		return hr_err_set(err, HR_E_PROTO, WHO ": its answer to \"get\" has invalid data");
	hr_buf_add(b, hr_buf_str(&a->data), a->data.len);
	return hr_buf_check(b, err);
}

int
hr_program_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err)
{
	const struct hr_child_call q = {.op = "get",
	    .args = hr_program_args(c, "path", path, err),
	    .timeout_ms = hr_program_patience(c, HR_PROGRAM_SLOW),
	    .event = on_bytes,
	    .arg = b};
	struct hr_child_end end = {0};
	struct hr_err mine = {0};
	int r = q.args != NULL ? hr_program_talk(c, &q, &end, &mine) : -1;

	if (r != 0 && mine.code == HR_E_NOTFOUND)
		(void)hr_err_set(&mine, HR_E_NOTFOUND, "path '%s' does not exist", path);
	if (r != 0 && q.args != NULL && err != NULL)
		*err = mine;
	json_object_put(q.args);
	json_object_put(end.ok);
	return r;
}

int
hr_program_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err)
{
	const struct hr_child_call q = {.op = "put",
	    .args = hr_json_object(err, "sandbox", json_object_new_string(c->id), "path",
		json_object_new_string(path), "size", json_object_new_int64((int64_t)len), NULL),
	    .timeout_ms = hr_program_patience(c, HR_PROGRAM_SLOW),
	    .bytes = p,
	    .bytes_len = len};
	struct hr_child_end end = {0};
	int r = q.args != NULL ? hr_program_talk(c, &q, &end, err) : -1;

	json_object_put(q.args);
	json_object_put(end.ok);
	return r;
}

/* ---- a server in the sandbox ---- */

int
hr_program_launch(struct hr_cloud *c, const char *line, struct hr_err *err)
{
	return hr_program_ask(c, "launch", hr_program_args(c, "command", line, err), 1, NULL, err);
}

int
hr_program_publish(struct hr_cloud *c, int port, struct hr_err *err)
{
	static const char subject[] = "the answer to \"publish\"";
	struct json_object *args = hr_json_object(
	    err, "sandbox", json_object_new_string(c->id), "port", json_object_new_int(port), NULL);
	HR_PUT struct json_object *ok = NULL;
	const char *url, *header;

	if (hr_program_ask(c, "publish", args, 1, &ok, err) != 0 ||
	    hr_program_named(
		c, hr_program_word(ok, subject, "url", HR_PROGRAM_WORD_MAX, &url, err), err) != 0 ||
	    hr_api_url(c->ops->title, url, err) != 0 || hr_text_set(&c->url, url, err) != 0)
		return -1;
	if (hr_json_at(ok, "header") == NULL)
		return 0;
	if (hr_program_named(c,
		hr_program_word(ok, subject, "header", HR_PROGRAM_WORD_MAX, &header, err),
		err) != 0 ||
	    hr_text_set(&c->url_header, header, err) != 0)
		return -1;
	if (c->h->secret != NULL)
		c->h->secret(c->h->arg, header);
	return 0;
}

/* ---- a terminal ---- */

/* Reads the arguments of a command for this machine. */
static int
read_words(struct json_object *ok, struct hr_strv *words, struct hr_err *err)
{
	struct json_object *list;
	size_t n, i;

	if (hr_field_of(WHO, "the answer to \"shell\"", ok, "argv", json_type_array, &list, err) !=
	    0)
		return -1;
	n = hr_json_count(list);
	if (n == 0 || n > WORDS_MAX)
		return hr_err_set(err, HR_E_PROTO,
		    WHO ": \"argv\" of the answer to \"shell\" must have 1 to %d entries, not %zu",
		    WORDS_MAX, n);
	for (i = 0; i < n; i++) {
		struct json_object *v = hr_json_entry(list, i);
		size_t len = 0;

		if (!json_object_is_type(v, json_type_string) ||
		    strlen(hr_json_str(v, &len)) != len || (i == 0 && len == 0))
			return hr_err_set(err, HR_E_PROTO,
			    WHO ": entry %zu of \"argv\" of the answer to \"shell\" is not text",
			    i);
		hr_strv_add(words, hr_json_str(v, &len));
	}
	return words->failed ? hr_err_nomem(err) : 0;
}

static int
run_here(struct hr_cloud *c, const struct hr_strv *words, int *ret_status, struct hr_err *err)
{
	struct hr_spawn sp = {.path = words->v[0],
	    .argv = hr_strv_list(words),
	    .envp = (char *const *)hr_strv_list(&hr_program_of(c)->env),
	    .alone = true,
	    .umask = -1};

	return hr_spawn_here(&sp, ret_status, err);
}

int
hr_program_shell(void *self, const char *const *argv, int *ret_status, struct hr_err *err)
{
	struct hr_cloud *c = self;
	struct json_object *args;
	HR_PUT struct json_object *ok = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv words = {0};

	if (hr_program_need(c, HR_PROGRAM_SHELL, "a terminal", err) != 0)
		return -1;
	args = hr_json_object(err, "sandbox", json_object_new_string(c->id), "cwd",
	    json_object_new_string(hr_cloud_workspace(c)), "argv", hr_json_list(err, argv), "env",
	    hr_cloud_env_object(hr_strv_list(&c->env), err), "terminal",
	    json_object_new_boolean(isatty(0) && isatty(1)), NULL);
	if (hr_program_ask(c, "shell", args, 1, &ok, err) != 0 ||
	    hr_program_named(c, read_words(ok, &words, err), err) != 0)
		return -1;
	return run_here(c, &words, ret_status, err);
}
