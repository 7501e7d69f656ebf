/* Sends requests that concern one command. */
#include "config.h"

#include "cli/watched.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <json-c/json_object.h>

#include "proto/json.h"

#define TEXT_MAX (1u << 20)
#define REQUEST_S 30

int
cli_watched_open(struct cli_watched *k, const struct hr_endpoint *e, struct hr_err *err)
{
	*k = (struct cli_watched){.given_up_fd = -1, .timeout_s = REQUEST_S, .exit_code = -1};
	hr_buf_init(&k->key, TEXT_MAX);
	hr_buf_init(&k->text, TEXT_MAX);
	return hr_client_init(&k->client, e, err);
}

void
cli_watched_close(struct cli_watched *k)
{
	hr_client_done(&k->client);
	hr_buf_done(&k->key);
	hr_buf_done(&k->text);
}

static int
ask(struct cli_watched *k, bool once, const char *method, const char *path, const char *body,
    struct json_object **ret, struct hr_err *err)
{
	char whole[128];
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct hr_http_request q = {.method = method,
	    .url = whole,
	    .body = body,
	    .body_len = body != NULL ? strlen(body) : 0,
	    .headers = headers,
	    .timeout_s = k->timeout_s,
	    .watch_fd = k->given_up_fd};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_json_error why = {0};

	(void)snprintf(
	    whole, sizeof(whole), "%s%s%s", path, k->session[0] != '\0' ? "?" : "", k->session);
	if ((once ? hr_client_send_once : hr_client_send)(&k->client, &q, &a, err) != 0)
		return -1;
	return hr_json_decode_foreign(hr_buf_str(&a.body), a.body.len, ret, &why) == 0
		   ? 0
		   : hr_json_err(
			 err, HR_E_PROTO, &why, "the server's answer to %s is not JSON", path);
}

int
cli_watched_ask(struct cli_watched *k, const char *method, const char *path, const char *body,
    struct json_object **ret, struct hr_err *err)
{
	return ask(k, false, method, path, body, ret, err);
}

void
cli_watched_post_once(struct cli_watched *k, const char *path, const char *body)
{
	HR_PUT struct json_object *o = NULL;

	(void)ask(k, true, "POST", path, body, &o, NULL);
}

static bool
is_it(const struct cli_watched *k, struct json_object *o)
{
	const char *key = hr_json_text_or(o, "key", "");
	const size_t n = strlen(k->request);

	if (k->id != 0)
		return hr_json_int_at(o, "id") == k->id && strcmp(key, hr_buf_str(&k->key)) == 0;
	if (n == 0) /* commands of the sandbox's setup are hidden */
		return hr_json_int_at(o, "length") > 0;
	return strncmp(key, "x:", 2) == 0 && strncmp(key + 2, k->request, n) == 0 &&
	       key[2 + n] == ':';
}

static void
take(struct cli_watched *k, struct json_object *o)
{
	struct json_object *span = hr_json_at(o, "output"), *code = hr_json_at(o, "exit_code");

	k->listed = true;
	k->running = strcmp(hr_json_text_or(o, "state", ""), "running") == 0;
	k->exit_code =
	    json_object_is_type(code, json_type_int) ? (int)hr_json_int_at(o, "exit_code") : -1;
	k->end = (uint64_t)hr_json_int_at(span, "end");
	if (k->id != 0)
		return;
	k->id = hr_json_int_at(o, "id");
	k->at = (uint64_t)hr_json_int_at(span, "start");
	hr_buf_adds(&k->key, hr_json_text_or(o, "key", ""));
	hr_buf_adds(&k->text, hr_json_text_or(o, "command", ""));
}

/* Sets the present end of the shell's output: a later command's output comes after it. */
static int
place(struct cli_watched *k, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;

	if (cli_watched_ask(k, "GET", "/handrail/v1/session", NULL, &o, err) != 0)
		return -1;
	k->at = (uint64_t)hr_json_int_at(hr_json_at(o, "output"), "end");
	return 0;
}

int
cli_watched_look(struct cli_watched *k, struct hr_err *err)
{
	struct json_object *list, *o;
	HR_PUT struct json_object *all = NULL;
	size_t i;

	if ((k->id == 0 && !k->answered && place(k, err) != 0) ||
	    cli_watched_ask(k, "GET", "/handrail/v1/commands", NULL, &all, err) != 0)
		return -1;
	k->listed = k->running = k->behind = false;
	list = hr_json_at(all, "commands");
	for (i = hr_json_count(list); i > 0 && !k->listed; i--) {
		o = hr_json_entry(list, i - 1);
		if (is_it(k, o))
			take(k, o);
		else if (strcmp(hr_json_text_or(o, "state", ""), "running") == 0)
			k->behind = true;
	}
	return 0;
}

bool
cli_watched_take(struct cli_watched *k, const char *observation)
{
	HR_PUT struct json_object *o = NULL;
	struct json_object *extras, *output;
	int64_t id, code;

	if (k->id != 0 || hr_json_decode(observation, strlen(observation), &o, NULL) < 0)
		return false;
	extras = hr_json_at(o, "extras");
	output = hr_json_at(extras, "output");
	id = hr_json_int_at(output, "command");
	code = hr_json_int_at(hr_json_at(extras, "metadata"), "exit_code");
	if (id <= 0 || code < 0)
		return false;
	k->id = id;
	k->listed = true;
	k->running = false;
	k->exit_code = (int)code;
	k->at = (uint64_t)hr_json_int_at(output, "start");
	k->end = (uint64_t)hr_json_int_at(output, "end");
	return true;
}

/* ---- output ---- */

struct sink {
	struct cli_watched *k;
	const struct hr_http_answer *answer;
	cli_watched_fn *fn;
	void *arg;
	uint64_t end; /* end of the requested range */
	bool placed, enough;
};

static int
on_bytes(void *arg, const char *p, size_t len)
{
	struct sink *s = arg;
	struct cli_watched *k = s->k;
	uint64_t from, lost = 0;

	if (k->id == 0) { /* shell activity: the command may exist now */
		s->enough = true;
		return -1;
	}
	if (!s->placed) {
		from = strtoull(s->answer->header, NULL, 10);
		if (from > s->end)
			from = s->end;
		if (from > k->at) {
			lost = from - k->at;
			k->at = from;
		}
		s->placed = true;
	}
	if (len > s->end - k->at)
		len = (size_t)(s->end - k->at);
	k->at += len;
	return s->fn(s->arg, lost, p, len);
}

int
cli_watched_output(
    struct cli_watched *k, int follow_until_fd, cli_watched_fn *fn, void *arg, struct hr_err *err)
{
	const bool follow = follow_until_fd >= 0;
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct sink s = {
	    .k = k, .answer = &a, .fn = fn, .arg = arg, .end = follow ? UINT64_MAX : k->end};
	struct hr_http_request q = {.method = "GET",
	    .sink = on_bytes,
	    .sink_arg = &s,
	    .header = "X-Handrail-Offset",
	    .watch_fd = follow ? follow_until_fd : k->given_up_fd,
	    .timeout_s = follow ? 0 : 60};
	char path[128];

	(void)snprintf(path, sizeof(path),
	    "/handrail/v1/output?offset=%" PRIu64 "&command=%" PRId64 "&returned=true%s%s%s", k->at,
	    k->id, follow ? "&follow=true" : "", k->session[0] != '\0' ? "&" : "", k->session);
	q.url = path;
	if (hr_client_send(&k->client, &q, &a, err) == 0)
		return 0;
	return a.fault == HR_HTTP_CANCELLED || s.enough ? 1 : -1;
}

/* ---- requests to the command ---- */

void
cli_watched_interrupt(struct cli_watched *k)
{
	char body[64];

	(void)snprintf(body, sizeof(body), "{\"signal\":\"INT\",\"command\":%" PRId64 "}", k->id);
	cli_watched_post_once(k, "/handrail/v1/signal", body);
}

void
cli_watched_let_go(struct cli_watched *k)
{
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	char path[160];
	const struct hr_http_request q = {
	    .method = "GET", .url = path, .timeout_s = 3, .watch_fd = k->given_up_fd};

	(void)snprintf(path, sizeof(path),
	    "/handrail/v1/output?offset=%" PRId64 "&command=%" PRId64 "%s%s", INT64_MAX, k->id,
	    k->session[0] != '\0' ? "&" : "", k->session);
	(void)hr_client_send_once(&k->client, &q, &a, NULL);
}

bool
cli_watched_size(int *ret_rows, int *ret_columns)
{
	struct winsize w = {0};

	if (ioctl(1, TIOCGWINSZ, &w) != 0 || w.ws_row == 0 || w.ws_col == 0)
		return false;
	*ret_rows = w.ws_row < 1000 ? w.ws_row : 1000;
	*ret_columns = w.ws_col < 1000 ? w.ws_col : 1000;
	return true;
}

void
cli_watched_resize(struct cli_watched *k, int rows, int columns)
{
	char body[96];

	(void)snprintf(body, sizeof(body), "{\"rows\":%d,\"columns\":%d,\"command\":%" PRId64 "}",
	    rows, columns, k->id);
	cli_watched_post_once(k, "/handrail/v1/resize", body);
}
