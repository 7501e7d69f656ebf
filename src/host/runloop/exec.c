/* Runs commands in a devbox of Runloop: an interrupted output stream resumes where it was cut. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/text/utf8.h"
#include "host/runloop/runloop.h"
#include "proto/json.h"
#include "shell/quote.h"

#define ENV_FILE "/tmp/.handrail-env-"
#define ENV_FILE_MAX 100
#define LINE_MAX_LEN (16u << 20)
#define REST_MAX 4096 /* maximum bytes of a path */

/* The state of one of a command's two streams. */
struct stream {
	const struct hr_cloud_command *q;
	int number;
	unsigned long long have;
	bool gap, came;
	struct hr_buf line;
	struct hr_err err;
};

static int
on_update(struct stream *s, const char *p, size_t len)
{
	struct json_object *text;
	HR_PUT struct json_object *o = NULL;
	HR_BUF(line, 3 * (size_t)LINE_MAX_LEN);
	int64_t offset = 0;
	size_t n, skip, whole;
	int r = -1;

	hr_utf8_replace(&line, p, len);
	if (hr_buf_check(&line, &s->err) == 0 &&
	    hr_json_decode(hr_buf_str(&line), line.len, &o, NULL) != 0)
		(void)hr_err_set(
		    &s->err, HR_E_PROTO, HR_RUNLOOP_WHO ": an update of a command is not JSON");
	else if (s->err.code == HR_OK &&
		 hr_field_int(HR_RUNLOOP_WHO, "an update of a command", o, "offset", &offset,
		     &s->err) == 0 &&
		 hr_field_of(HR_RUNLOOP_WHO, "an update of a command", o, "output",
		     json_type_string, &text, &s->err) == 0)
		r = offset >= 0
			? 0
			: hr_err_set(&s->err, HR_E_PROTO,
			      HR_RUNLOOP_WHO ": the offset of an update of a command is negative");
	if (r == 0) {
		n = (size_t)json_object_get_string_len(text);
		/* offsets count sent characters, some of which may now be U+FFFD */
		whole = n > line.len - len ? n - (line.len - len) : 0;
		s->gap = s->gap || (unsigned long long)offset > s->have;
		/* data from before the cut is repeated if the server resends an update from its
		 * start */
		skip = (unsigned long long)offset < s->have ? s->have - (size_t)offset : 0;
		if (skip < whole && s->q->output != NULL)
			s->q->output(
			    s->q->arg, s->number, json_object_get_string(text) + skip, n - skip);
		if ((unsigned long long)offset + whole > s->have)
			s->have = (unsigned long long)offset + whole;
		s->came = true;
	}
	return r;
}

/* Reads event lines "data: {...}" and ignores the others. */
static int
on_bytes(void *arg, const char *p, size_t len)
{
	struct stream *s = arg;
	const char *end;

	hr_buf_add(&s->line, p, len);
	if (hr_buf_check(&s->line, NULL) != 0)
		return hr_err_set(
		    &s->err, HR_E_PROTO, HR_RUNLOOP_WHO ": a line of a stream is too long");
	while (s->line.len > 0 && (end = memchr(s->line.p, '\n', s->line.len)) != NULL) {
		size_t n = (size_t)(end - s->line.p);

		if (n > 5 && memcmp(s->line.p, "data:", 5) == 0 &&
		    on_update(s, s->line.p + 5, n - 5) != 0)
			return -1;
		hr_buf_drop_front(&s->line, n + 1);
	}
	return 0;
}

/* Makes "/executions/ID/WHAT" after the devbox's path; the caller owns b. */
static const char *
rest_of(struct hr_buf *b, const char *execution, const char *what)
{
	hr_buf_adds(b, "/executions/");
	hr_http_escape(b, execution);
	hr_buf_adds(b, what);
	return hr_buf_str(b);
}

/* Follows one connection from the last offset. Returns 0 if it ended or was cut. */
static int
follow(struct hr_cloud *c, struct stream *s, const char *execution, int timer, struct hr_err *err)
{
	struct hr_api_call q = {.method = "GET",
	    .path = HR_RUNLOOP_PATH,
	    .id = c->id,
	    .sink = on_bytes,
	    .sink_arg = s,
	    .timeout_s = 600,
	    .watch_fd = timer};
	struct hr_err mine = {0};
	HR_BUF(b, REST_MAX);
	int r;

	(void)rest_of(
	    &b, execution, s->number == 1 ? "/stream_stdout_updates" : "/stream_stderr_updates");
	if (s->have > 0)
		hr_buf_addf(&b, "?offset=%llu", s->have);
	q.rest = hr_buf_str(&b);
	hr_buf_reset(&s->line);
	s->came = false;
	r = hr_api_json(&c->plane, &q, NULL, &mine);
	if (s->err.code != HR_OK)
		mine = s->err;
	else if (r != 0 && mine.status == 0)
		r = 0;
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

/* Returns 1 with the status if the command has ended, 0 if not, or -1 with *err set. */
static int
ended(struct hr_cloud *c, const char *execution, int timer, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	static const char *const words[] = {"completed", NULL};
	HR_PUT struct json_object *o = NULL;
	const char *status;
	HR_BUF(what, REST_MAX);
	int r = hr_runloop_poll(
	    c, rest_of(&what, execution, "/wait_for_status"), words, timer, &o, err);

	if (r <= 0)
		return r;
	if (hr_field_text(HR_RUNLOOP_WHO, "the execution", o, "status", &status, err) != 0)
		r = -1;
	else if (strcmp(status, "completed") != 0)
		r = 0;
	else if (hr_field_code(
		     HR_RUNLOOP_WHO, "the execution", o, "exit_status", &ret->code, err) != 0)
		r = -1;
	return r;
}

/* Makes the command line. The API has no fields for directory and variables: cd sets the first, a
 * file the others, because others could read a command line. The command removes this file, and
 * does not run if it is missing. */
static int
command_line(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_buf *b,
    char file[ENV_FILE_MAX], struct hr_err *err)
{
	const char *const *e;
	const char *eq;
	char name[HR_UUID_TEXT];
	struct hr_buf env;
	int r = 0;

	if (q->env != NULL && *q->env != NULL) {
		if (hr_random_uuid(name, err) < 0)
			return -1;
		(void)snprintf(file, ENV_FILE_MAX, ENV_FILE "%s", name);
		hr_buf_init(&env, LINE_MAX_LEN);
		for (e = q->env; *e != NULL; e++) {
			eq = strchr(*e, '=');
			if (eq == NULL)
				continue;
			hr_buf_addf(&env, "export %.*s=", (int)(eq - *e), *e);
			hr_shell_quote(&env, eq + 1, strlen(eq + 1));
			hr_buf_addc(&env, '\n');
		}
		r = hr_buf_check(&env, NULL) == 0 ? hr_runloop_put(c, file, env.p, env.len, err)
						  : hr_err_nomem(err);
		hr_buf_done(&env);
		hr_buf_addf(b, "chmod 600 %s && . %s || exit; rm -f %s; ", file, file, file);
	}
	if (q->cwd != NULL) {
		hr_buf_adds(b, "cd ");
		hr_shell_quote(b, q->cwd, strlen(q->cwd));
		hr_buf_adds(b, " && ");
	}
	hr_buf_adds(b, "exec bash -l -c ");
	hr_shell_quote(b, q->line, strlen(q->line));
	return r == 0 && hr_buf_check(b, NULL) != 0 ? hr_err_nomem(err) : r;
}

/* Starts a command; the caller frees *ret_id. */
static int
begin(struct hr_cloud *c, const char *line, char **ret_id, struct hr_err *err)
{
	struct json_object *body = hr_json_texts(err, "command", line, NULL);
	HR_PUT struct json_object *o = NULL;
	const char *id;

	if (body == NULL || hr_runloop_post(c, c->id, "/execute_async", body, &o, err) != 0 ||
	    hr_field_text(HR_RUNLOOP_WHO, "the execution", o, "execution_id", &id, err) != 0)
		return -1;
	return hr_text_set(ret_id, id, err);
}

static void
end_execution(struct hr_cloud *c, const char *execution)
{
	HR_BUF(what, REST_MAX);

	/* the command may have ended */
	(void)hr_runloop_post(c, c->id, rest_of(&what, execution, "/kill"), NULL, NULL, NULL);
}

/* Follows until the command and both streams have ended. */
static int
follow_all(struct hr_cloud *c, const char *execution, struct stream s[2], int timer,
    struct hr_cloud_end *ret, struct hr_err *err)
{
	struct hr_cloud_cuts cuts = {.since_ms = hr_now_ms()};
	bool more = true;
	int done = 0;

	while (done == 0 && more) {
		if (follow(c, &s[0], execution, timer, err) != 0)
			return -1;
		done = hr_fd_is_readable(timer) ? -2 : ended(c, execution, timer, ret, err);
		if (done == -1 && hr_fd_is_readable(timer))
			done = -2;
		more = hr_cloud_goes_on(&cuts, s[0].came, hr_now_ms());
	}
	if (done == -2) {
		end_execution(c, execution);
		ret->timed_out = true;
		ret->code = -1;
		done = 1;
	}
	if (done == 0)
		return hr_err_set(err, HR_E_PROTO,
		    HR_RUNLOOP_WHO
		    ": the output of the command was cut too often; the command may still run");
	/* fetches the rest of a cut stream, now that it is complete */
	if (done == 1 && (follow(c, &s[0], execution, -1, err) != 0 ||
			     follow(c, &s[1], execution, -1, err) != 0))
		return -1;
	if (s[0].gap || s[1].gap)
		(void)snprintf(ret->note, sizeof(ret->note),
		    "[Runloop did not keep all that the command printed: a part is missing.]");
	return done == 1 ? 0 : -1;
}

int
hr_runloop_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	struct stream s[2] = {{.q = q, .number = 1}, {.q = q, .number = 2}};
	HR_BUF(line, LINE_MAX_LEN);
	HR_FREE char *execution = NULL;
	char file[ENV_FILE_MAX] = "", command[ENV_FILE_MAX + 8];
	int r;
	HR_CLOSE int timer = -1;

	*ret = (struct hr_cloud_end){.code = -1};
	if (q->timeout_ms > 0 && (timer = hr_cloud_timer(q->timeout_ms, err)) < 0)
		return -1;
	hr_buf_init(&s[0].line, LINE_MAX_LEN);
	hr_buf_init(&s[1].line, LINE_MAX_LEN);
	r = command_line(c, q, &line, file, err);
	if (r == 0)
		r = begin(c, hr_buf_str(&line), &execution, err);
	if (r != 0 && file[0] != '\0') {
		(void)snprintf(command, sizeof(command), "rm -f %s", file);
		(void)hr_runloop_launch(c, command, NULL);
	}
	if (r == 0)
		r = follow_all(c, execution, s, timer, ret, err);
	hr_buf_done(&s[0].line);
	hr_buf_done(&s[1].line);
	return r;
}

int
hr_runloop_launch(struct hr_cloud *c, const char *line, struct hr_err *err)
{
	HR_FREE char *execution = NULL;

	return begin(c, line, &execution, err);
}
