/* The kind "runloop": devboxes of Runloop (doc/clouds.md, "Runloop"). Each request that changes
 * something has a key of its own, so that one that is sent again counts once; what a command prints
 * is a stream that goes on where it was cut. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "host/cloud/cloud.h"
#include "base/err.h"
#include "proto/json.h"
#include "shell/quote.h"

#define WHO "Runloop"
#define WAIT_S 300
#define POLL_S 25   /* of one long poll */
#define CUTS_MAX 20 /* of a stream that brings nothing */
#define ENV_FILE "/tmp/.handrail-env-"
#define LINE_MAX_LEN (16u << 20)

static bool
repeats(long status)
{
	return status == 408 || status == 409 || status == 429 || status >= 500;
}

static bool
repeats_waits(long status)
{
	return status == 429 || status >= 500;
}

#define RULE(fn)                                                                                   \
	{                                                                                          \
		.attempts = 6, .first_ms = 1000, .most_ms = 60000, .jitter_percent = 25,           \
		.after_max_s = 60, .should = "x-should-retry", .status = (fn), .lost = true,       \
		.key = "x-request-id: handrail-retry-"                                             \
	}

static const struct hr_api_rule rule = RULE(repeats), wait_rule = RULE(repeats_waits);

/* The second is for long polls, whose 408 is no failure. */
static int
r_open_api(struct hr_cloud *c, struct hr_err *err)
{
	const char *url = hr_cloud_env(c, "RUNLOOP_BASE_URL", "https://api.runloop.ai");
	char *key = hr_cloud_key(c, "RUNLOOP_API_KEY", err), *value = NULL;
	int rc = key != NULL ? hr_cloud_setf(&value, err, "Bearer %s", key) : -1;

	if (rc == 0)
		rc = hr_api_init(&c->api, WHO, &rule, url, err);
	if (rc == 0)
		rc = hr_api_header(&c->api, "Authorization", value, true, err);
	if (rc == 0)
		rc = hr_api_init(&c->plane, WHO, &wait_rule, url, err);
	if (rc == 0)
		rc = hr_api_header(&c->plane, "Authorization", value, true, err);
	free(value);
	free(key);
	return rc;
}

/* ---- requests ---- */

static const char *
path_of(struct hr_buf *b, const char *id, const char *what, const char *more)
{
	hr_buf_init(b, 8192);
	hr_buf_adds(b, "/v1/devboxes/");
	hr_http_escape(b, id);
	hr_buf_adds(b, what);
	if (more != NULL)
		hr_http_escape(b, more);
	return hr_buf_str(b);
}

/* body is taken; *ret (may be NULL) is the caller's. */
static int
post(struct hr_cloud *c, const char *id, const char *what, struct json_object *body,
    struct json_object **ret, struct hr_err *err)
{
	struct hr_api_call q = {.method = "POST", .body = body};
	struct hr_api_answer a;
	struct hr_buf b;
	int rc;

	if (body == NULL)
		q.type = "application/json";
	q.path = path_of(&b, id, what, NULL);
	rc = hr_api_do(&c->api, &q, &a, err);
	if (ret != NULL)
		*ret = rc == 0 ? json_object_get(a.json) : NULL;
	hr_api_answer_done(&a);
	hr_buf_done(&b);
	json_object_put(body);
	return rc;
}

static int
get(struct hr_cloud *c, const char *id, const char *what, const char *more,
    struct json_object **ret, struct hr_err *err)
{
	struct hr_api_call q = {.method = "GET"};
	struct hr_api_answer a;
	struct hr_buf b;
	int rc;

	q.path = path_of(&b, id, what, more);
	rc = hr_api_do(&c->api, &q, &a, err);
	*ret = rc == 0 ? json_object_get(a.json) : NULL;
	hr_api_answer_done(&a);
	hr_buf_done(&b);
	return rc;
}

/* ---- life ---- */

static int
r_create(struct hr_cloud *c, bool *unsure, struct hr_err *err)
{
	struct json_object *body = hr_cloud_object(err, "name", c->h->sid, NULL);
	struct json_object *labels = json_object_new_object();
	const struct hr_api_call q = {.method = "POST", .path = "/v1/devboxes", .body = body};
	struct hr_api_answer a = {0};
	const char *id;
	int rc = body != NULL && labels != NULL ? hr_cloud_labels(c, labels, err) : -1;

	*unsure = false;
	if (rc == 0)
		rc = hr_cloud_put(body, "metadata", json_object_get(labels), err);
	if (rc == 0 && c->image != NULL)
		rc = hr_cloud_put(body, "blueprint_name", json_object_new_string(c->image), err);
	json_object_put(labels);
	if (rc == 0) {
		rc = hr_api_do(&c->api, &q, &a, err);
		*unsure = rc != 0 && a.unsure;
	}
	if (rc == 0)
		rc = hr_field_text(WHO, "the devbox", a.json, "id", &id, err);
	if (rc == 0)
		rc = hr_cloud_set(&c->id, id, err);
	hr_api_answer_done(&a);
	json_object_put(body);
	return rc;
}

/* {"statuses": [...], "timeout_seconds": 25} */
static struct json_object *
statuses(const char *const *words, struct hr_err *err)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	int rc = o != NULL && list != NULL ? 0 : hr_err_nomem(err);

	for (; rc == 0 && *words != NULL; words++)
		if (json_object_array_add(list, json_object_new_string(*words)) != 0)
			rc = hr_err_nomem(err);
	if (rc == 0)
		rc = hr_cloud_put(o, "statuses", json_object_get(list), err);
	if (rc == 0)
		rc = hr_cloud_put(o, "timeout_seconds", json_object_new_int(POLL_S), err);
	json_object_put(list);
	if (rc == 0)
		return o;
	json_object_put(o);
	return NULL;
}

/* A long poll: 1 with *ret, the caller's; 0: not yet; -1. */
static int
poll_status(struct hr_cloud *c, const char *what, const char *const *words, int watch_fd,
    struct json_object **ret, struct hr_err *err)
{
	struct json_object *body = statuses(words, err);
	struct hr_api_call q = {
	    .method = "POST", .body = body, .timeout_s = POLL_S + 30, .watch_fd = watch_fd};
	struct hr_err mine = {0};
	struct hr_api_answer a;
	struct hr_buf b;
	int rc;

	if (body == NULL)
		return -1;
	q.path = path_of(&b, c->id, what, NULL);
	rc = hr_api_do(&c->plane, &q, &a, &mine);
	*ret = rc == 0 ? json_object_get(a.json) : NULL;
	hr_api_answer_done(&a);
	hr_buf_done(&b);
	json_object_put(body);
	if (rc != 0 && mine.status == 408)
		return 0;
	if (rc != 0 && err != NULL)
		*err = mine;
	return rc == 0 ? 1 : -1;
}

static int
wait_status(struct hr_cloud *c, const char *wanted, struct hr_err *err)
{
	const char *const words[] = {wanted, "failure", "shutdown", NULL};
	time_t end = time(NULL) + WAIT_S;
	struct json_object *o = NULL;
	const char *status;
	int rc;

	while ((rc = poll_status(c, "/wait_for_status", words, -1, &o, err)) == 0)
		if (time(NULL) > end)
			return hr_err_set(err, HR_E_RUNTIME_TIMEOUT,
			    WHO ": the devbox is not %s after %d seconds", wanted, WAIT_S);
	if (rc < 0)
		return -1;
	rc = hr_field_text(WHO, "the devbox", o, "status", &status, err);
	if (rc == 0 && strcmp(status, wanted) != 0)
		rc = hr_err_set(err, HR_E_RUNTIME, WHO ": the devbox ended in %s: %.300s", status,
		    hr_json_text_or(o, "failure_reason",
			hr_json_text_or(o, "shutdown_reason", "no reason is told")));
	json_object_put(o);
	return rc;
}

static int
r_wait(struct hr_cloud *c, struct hr_err *err)
{
	return wait_status(c, "running", err);
}

static const char *
word_of(const char *status)
{
	if (strcmp(status, "suspended") == 0 || strcmp(status, "suspending") == 0)
		return "paused";
	if (strcmp(status, "shutdown") == 0)
		return "gone";
	return strcmp(status, "failure") == 0 ? "exited" : status;
}

static int
r_look(struct hr_cloud *c, struct hr_err *err)
{
	struct json_object *o = NULL;
	struct hr_err mine = {0};
	const char *status = "shutdown";
	int rc = get(c, c->id, "", NULL, &o, &mine);

	if (rc == 0)
		rc = hr_field_text(WHO, "the devbox", o, "status", &status, &mine);
	else if (mine.code == HR_E_NO_SANDBOX)
		rc = 0;
	if (rc == 0)
		(void)snprintf(c->state, sizeof(c->state), "%s", word_of(status));
	json_object_put(o);
	if (rc != 0 && err != NULL)
		*err = mine;
	return rc;
}

/* *last: the id that the next page goes on behind, "" after the last one. */
static int
one_page(struct json_object *page, const char *run, char last[256], hr_cloud_found_fn *fn,
    void *arg, struct hr_err *err)
{
	struct json_object *list;
	const char *id = "";
	int rc = hr_field_of(WHO, "the list", page, "devboxes", json_type_array, &list, err);

	for (size_t i = 0; rc == 0 && i < hr_json_count(list); i++) {
		struct json_object *o = hr_json_entry(list, i);
		struct hr_cloud_found f = hr_cloud_found_in(NULL, hr_json_at(o, "metadata"));

		rc = hr_field_text(WHO, "a devbox of the list", o, "id", &id, err);
		f.id = id;
		f.state = word_of(hr_json_text_or(o, "status", "unknown"));
		if (rc == 0 && f.run != NULL && (run == NULL || strcmp(run, f.run) == 0) &&
		    strcmp(f.state, "gone") != 0)
			rc = fn(arg, &f);
	}
	(void)snprintf(last, 256, "%s", rc == 0 && hr_json_true_at(page, "has_more") ? id : "");
	return rc;
}

static int
r_list(struct hr_cloud *c, const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err)
{
	char last[256] = "";
	int rc;

	do {
		struct hr_api_call q = {.method = "GET"};
		struct hr_api_answer a;
		struct hr_buf b;

		hr_buf_init(&b, 4096);
		hr_buf_adds(&b, "/v1/devboxes?limit=100");
		if (*last != '\0') {
			hr_buf_adds(&b, "&starting_after=");
			hr_http_escape(&b, last);
		}
		q.path = hr_buf_str(&b);
		rc = hr_api_do(&c->api, &q, &a, err);
		if (rc == 0)
			rc = one_page(a.json, run, last, fn, arg, err);
		hr_api_answer_done(&a);
		hr_buf_done(&b);
	} while (rc == 0 && *last != '\0');
	return rc < 0 ? -1 : 0;
}

static int
r_end(struct hr_cloud *c, const char *id, struct hr_err *err)
{
	struct hr_err mine = {0};

	if (post(c, id, "/shutdown", NULL, NULL, &mine) == 0 || mine.code == HR_E_NO_SANDBOX)
		return 0;
	if (err != NULL)
		*err = mine;
	return -1;
}

static int
r_pause(struct hr_cloud *c, struct hr_err *err)
{
	return post(c, c->id, "/suspend", NULL, NULL, err) == 0 ? wait_status(c, "suspended", err)
								: -1;
}

static int
r_resume(struct hr_cloud *c, struct hr_err *err)
{
	return post(c, c->id, "/resume", NULL, NULL, err) == 0 ? r_wait(c, err) : -1;
}

static int
r_keep(struct hr_cloud *c, unsigned seconds, struct hr_err *err)
{
	(void)seconds; /* it says no more than "used now" */
	return post(c, c->id, "/keep_alive", json_object_new_object(), NULL, err);
}

/* ---- files ---- */

static int
r_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err)
{
	struct json_object *body = hr_cloud_object(err, "path", path, NULL);
	struct hr_api_call q = {.method = "POST", .body = body, .raw = true};
	struct hr_err mine = {0};
	struct hr_api_answer a;
	struct hr_buf url;
	int rc;

	if (body == NULL)
		return -1;
	q.path = path_of(&url, c->id, "/download_file", NULL);
	rc = hr_api_do(&c->api, &q, &a, &mine);
	if (rc == 0) {
		hr_buf_add(b, hr_buf_str(&a.body), a.body.len);
		rc = hr_buf_check(b, NULL) == 0 ? 0 : hr_err_nomem(&mine);
	} else if (mine.code == HR_E_NO_SANDBOX || strstr(mine.msg, "not found") != NULL) {
		(void)hr_err_set(&mine, HR_E_NOTFOUND, "path '%s' does not exist", path);
	}
	hr_api_answer_done(&a);
	hr_buf_done(&url);
	json_object_put(body);
	if (rc != 0 && err != NULL)
		*err = mine;
	return rc;
}

static int
r_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err)
{
	const struct hr_cloud_part parts[] = {{.name = "path", .p = path, .len = strlen(path)},
	    {.name = "file",
		.filename = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path,
		.type = "application/octet-stream",
		.p = p,
		.len = len}};
	struct hr_api_call q = {.method = "POST", .raw = true};
	struct hr_api_answer a = {0};
	struct hr_buf url, b;
	char type[100];
	int rc;

	hr_buf_init(&b, HR_CLOUD_FILE_MAX + (1u << 20));
	q.path = path_of(&url, c->id, "/upload_file", NULL);
	rc = hr_cloud_form(&b, parts, 2, type, err);
	q.type = type;
	q.bytes = hr_buf_str(&b);
	q.bytes_len = b.len;
	if (rc == 0)
		rc = hr_api_do(&c->api, &q, &a, err);
	hr_api_answer_done(&a);
	hr_buf_done(&b);
	hr_buf_done(&url);
	return rc;
}

/* ---- commands ---- */

/* What one of a command's two streams has brought. */
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
	struct json_object *o = NULL, *text;
	struct hr_json_error why;
	int64_t offset = 0;
	size_t n, skip;
	int rc = -1;

	if (hr_json_decode(p, len, &o, &why) != 0)
		(void)hr_err_set(&s->err, HR_E_PROTO, WHO ": an update of a command is no JSON");
	else if (hr_field_int(WHO, "an update of a command", o, "offset", &offset, &s->err) == 0 &&
		 hr_field_of(WHO, "an update of a command", o, "output", json_type_string, &text,
		     &s->err) == 0)
		rc = 0;
	if (rc == 0) {
		n = (size_t)json_object_get_string_len(text);
		s->gap = s->gap || (unsigned long long)offset > s->have;
		/* what came before the cut comes again where an update is told from its start on */
		skip = (unsigned long long)offset < s->have ? s->have - (size_t)offset : 0;
		if (skip < n && s->q->output != NULL)
			s->q->output(
			    s->q->arg, s->number, json_object_get_string(text) + skip, n - skip);
		if ((unsigned long long)offset + n > s->have)
			s->have = (unsigned long long)offset + n;
		s->came = true;
	}
	json_object_put(o);
	return rc;
}

/* Lines of events: "data: {...}"; the rest does not count. */
static int
on_bytes(void *arg, const char *p, size_t len)
{
	struct stream *s = arg;
	const char *end;

	hr_buf_add(&s->line, p, len);
	if (hr_buf_check(&s->line, NULL) != 0)
		return hr_err_set(&s->err, HR_E_PROTO, WHO ": a line of a stream is too long");
	while (s->line.len > 0 && (end = memchr(s->line.p, '\n', s->line.len)) != NULL) {
		size_t n = (size_t)(end - s->line.p);

		if (n > 5 && memcmp(s->line.p, "data:", 5) == 0 &&
		    on_update(s, s->line.p + 5, n - 5) != 0)
			return -1;
		hr_buf_drop_front(&s->line, n + 1);
	}
	return 0;
}

/* One connection, from where the last one was cut. 0: it ended, or was cut. */
static int
follow(struct hr_cloud *c, struct stream *s, const char *execution, int timer, struct hr_err *err)
{
	struct hr_api_call q = {
	    .method = "GET", .sink = on_bytes, .sink_arg = s, .timeout_s = 600, .watch_fd = timer};
	struct hr_err mine = {0};
	struct hr_api_answer a;
	struct hr_buf b;
	int rc;

	(void)path_of(&b, c->id, "/executions/", execution);
	hr_buf_addf(&b, "/stream_%s_updates", s->number == 1 ? "stdout" : "stderr");
	if (s->have > 0)
		hr_buf_addf(&b, "?offset=%llu", s->have);
	q.path = hr_buf_str(&b);
	hr_buf_reset(&s->line);
	s->came = false;
	rc = hr_api_do(&c->plane, &q, &a, &mine);
	hr_api_answer_done(&a);
	hr_buf_done(&b);
	if (s->err.code != HR_OK)
		mine = s->err;
	else if (rc != 0 && mine.status == 0)
		rc = 0;
	if (rc != 0 && err != NULL)
		*err = mine;
	return rc;
}

static bool
is_over(int timer)
{
	char n[8];

	return timer >= 0 && hr_fd_nonblock(timer, true, NULL) == 0 &&
	       hr_fd_read(timer, n, sizeof(n)) > 0;
}

/* Has it ended? 1, with its status; 0; -1. */
static int
ended(struct hr_cloud *c, const char *execution, int timer, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	static const char *const words[] = {"completed", NULL};
	struct json_object *o = NULL;
	const char *status;
	struct hr_buf what;
	int64_t code;
	int rc;

	hr_buf_init(&what, 4096);
	hr_buf_adds(&what, "/executions/");
	hr_http_escape(&what, execution);
	hr_buf_adds(&what, "/wait_for_status");
	rc = poll_status(c, hr_buf_str(&what), words, timer, &o, err);
	hr_buf_done(&what);
	if (rc <= 0)
		return rc;
	if (hr_field_text(WHO, "the execution", o, "status", &status, err) != 0)
		rc = -1;
	else if (strcmp(status, "completed") != 0)
		rc = 0;
	else if (hr_field_int(WHO, "the execution", o, "exit_status", &code, err) != 0)
		rc = -1;
	else
		ret->code = (int)code;
	json_object_put(o);
	return rc;
}

/* There is no field for them: the directory by cd, variables by a file, as others could read a
 * command line. */
static int
command_line(
    struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_buf *b, struct hr_err *err)
{
	char file[100];
	struct hr_buf env;
	int rc = 0;

	if (q->env != NULL && *q->env != NULL) {
		(void)snprintf(file, sizeof(file), ENV_FILE "%s", c->run);
		hr_buf_init(&env, LINE_MAX_LEN);
		for (const char *const *e = q->env; *e != NULL; e++) {
			const char *eq = strchr(*e, '=');

			if (eq == NULL)
				continue;
			hr_buf_addf(&env, "export %.*s=", (int)(eq - *e), *e);
			hr_shell_quote(&env, eq + 1, strlen(eq + 1));
			hr_buf_addc(&env, '\n');
		}
		rc = hr_buf_check(&env, NULL) == 0 ? r_put(c, file, env.p, env.len, err)
						   : hr_err_nomem(err);
		hr_buf_done(&env);
		hr_buf_addf(b, "chmod 600 %s; . %s; ", file, file);
	}
	if (q->cwd != NULL) {
		hr_buf_adds(b, "cd ");
		hr_shell_quote(b, q->cwd, strlen(q->cwd));
		hr_buf_adds(b, " && ");
	}
	hr_buf_adds(b, "exec bash -l -c ");
	hr_shell_quote(b, q->line, strlen(q->line));
	return rc == 0 && hr_buf_check(b, NULL) != 0 ? hr_err_nomem(err) : rc;
}

/* *ret_id is the caller's. */
static int
begin(struct hr_cloud *c, const char *line, char **ret_id, struct hr_err *err)
{
	struct json_object *body = hr_cloud_object(err, "command", line, NULL), *o = NULL;
	const char *id;
	int rc = body != NULL ? post(c, c->id, "/execute_async", body, &o, err) : -1;

	if (rc == 0)
		rc = hr_field_text(WHO, "the execution", o, "execution_id", &id, err);
	if (rc == 0)
		rc = hr_cloud_set(ret_id, id, err);
	json_object_put(o);
	return rc;
}

static void
end_execution(struct hr_cloud *c, const char *execution)
{
	struct hr_buf what;

	hr_buf_init(&what, 4096);
	hr_buf_adds(&what, "/executions/");
	hr_http_escape(&what, execution);
	hr_buf_adds(&what, "/kill");
	/* it may have ended */
	(void)post(c, c->id, hr_buf_str(&what), NULL, NULL, NULL);
	hr_buf_done(&what);
}

/* Until it has ended and both streams are at their end. */
static int
follow_all(struct hr_cloud *c, const char *execution, struct stream s[2], int timer,
    struct hr_cloud_end *ret, struct hr_err *err)
{
	int done = 0, idle = 0;

	while (done == 0 && idle < CUTS_MAX) {
		if (follow(c, &s[0], execution, timer, err) != 0)
			return -1;
		done = is_over(timer) ? -2 : ended(c, execution, timer, ret, err);
		if (done == -1 && is_over(timer))
			done = -2;
		idle = s[0].came ? 0 : idle + 1;
	}
	if (done == -2) {
		end_execution(c, execution);
		ret->timed_out = true;
		ret->code = -1;
		done = 1;
	}
	if (done == 0)
		return hr_err_set(
		    err, HR_E_PROTO, WHO ": the stream of the command is cut again and again");
	/* of what was cut: the rest, now that there is no more to come */
	if (done == 1 && (follow(c, &s[0], execution, -1, err) != 0 ||
			     follow(c, &s[1], execution, -1, err) != 0))
		return -1;
	if (s[0].gap || s[1].gap)
		(void)snprintf(ret->note, sizeof(ret->note),
		    "[Runloop did not keep all that the command printed: a part is missing.]");
	return done == 1 ? 0 : -1;
}

static int
r_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	struct stream s[2] = {{.q = q, .number = 1}, {.q = q, .number = 2}};
	char *execution = NULL;
	struct hr_buf line;
	int timer = -1, rc;

	*ret = (struct hr_cloud_end){.code = -1};
	if (q->timeout_ms > 0 && (timer = hr_cloud_timer(q->timeout_ms, err)) < 0)
		return -1;
	hr_buf_init(&line, LINE_MAX_LEN);
	hr_buf_init(&s[0].line, LINE_MAX_LEN);
	hr_buf_init(&s[1].line, LINE_MAX_LEN);
	rc = command_line(c, q, &line, err);
	if (rc == 0)
		rc = begin(c, hr_buf_str(&line), &execution, err);
	if (rc == 0)
		rc = follow_all(c, execution, s, timer, ret, err);
	hr_buf_done(&line);
	hr_buf_done(&s[0].line);
	hr_buf_done(&s[1].line);
	hr_fd_close(&timer);
	free(execution);
	return rc;
}

static int
r_launch(struct hr_cloud *c, const char *line, struct hr_err *err)
{
	char *execution = NULL;
	int rc = begin(c, line, &execution, err);

	free(execution);
	return rc;
}

/* The older way says an address, the newer one a key of it. */
static int
r_publish(struct hr_cloud *c, int port, struct hr_err *err)
{
	struct json_object *body = json_object_new_object(), *o = NULL;
	const char *key, *token;
	struct hr_err mine = {0};
	int rc = body != NULL ? hr_cloud_put(body, "port", json_object_new_int(port), err)
			      : hr_err_nomem(err);

	if (rc != 0) {
		json_object_put(body);
		return -1;
	}
	if (post(c, c->id, "/create_tunnel", body, &o, &mine) == 0) {
		rc = hr_field_text(WHO, "the tunnel", o, "url", &key, err);
		if (rc == 0)
			rc = hr_cloud_set(&c->url, key, err);
	} else if (mine.code != HR_E_NO_SANDBOX) {
		if (err != NULL)
			*err = mine;
		rc = -1;
	} else {
		body = hr_cloud_object(err, "auth_mode", "authenticated", NULL);
		rc = body != NULL ? post(c, c->id, "/enable_tunnel", body, &o, err) : -1;
		if (rc == 0)
			rc = hr_field_text(WHO, "the tunnel", o, "tunnel_key", &key, err);
		if (rc == 0)
			rc = hr_field_maybe(WHO, "the tunnel", o, "auth_token", &token, err);
		if (rc == 0)
			rc = hr_cloud_setf(
			    &c->url, err, "https://%d-%s.tunnel.runloop.ai", port, key);
		if (rc == 0 && token != NULL) {
			rc = hr_cloud_setf(&c->url_header, err,
			    "X-Runloop-Tunnel-Authorization: Bearer %s", token);
			if (c->h->secret != NULL)
				c->h->secret(c->h->arg, token);
		}
	}
	json_object_put(o);
	return rc;
}

static const char *const lacks[] = {
    "Runloop: without a blueprint that has handrail in it (sandbox.runtime_container_image) each "
    "command has a shell of its own: no directory, variable or program in it lasts, and there is "
    "no "
    "input for a running one; stderr comes when it has ended; no Jupyter, MCP servers, browser, "
    "editor or live view.",
    NULL};

static const struct hr_cloud_ops ops = {
    .name = "runloop",
    .title = WHO,
    .lacks = lacks,
    .open = r_open_api,
    .create = r_create,
    .wait = r_wait,
    .look = r_look,
    .list = r_list,
    .end = r_end,
    .pause = r_pause,
    .resume = r_resume,
    .keep = r_keep,
    .exec = r_exec,
    .get = r_get,
    .put = r_put,
    .launch = r_launch,
    .publish = r_publish,
};

static int
r_open(const struct hr_backend_host *h, void **ret_self, struct hr_err *err)
{
	return hr_cloud_open(&ops, h, ret_self, err);
}

HR_CLOUD_KIND(hr_runloop_entry, "runloop", r_open)
