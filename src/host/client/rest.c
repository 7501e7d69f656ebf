/* Calls services. Each attempt is one hr_http_do(), whose failure becomes one bit; resttry.c
 * decides by it. */
#include "config.h"

#include "host/client/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/text/quote.h"
#include "base/err.h"
#include "http/answer.h"
#include "proto/json.h"

#define URL_MAX 65536
#define HEADERS_MAX 32 /* maximum headers of a service and a call together */
#define LINE_MAX_BYTES (1u << 20)
#define TEXT_MAX 4096 /* bytes of an error before it is cut */
#define ANSWER_MAX (16u << 20)
#define TIMEOUT_S 60
#define PATIENCE_MS 120000

const struct hr_rest_rule hr_rest_rules[] = {
    {.failures = HR_REST_UNSENT,
	.always = HR_REST_UNSENT,
	.attempts = 4,
	.first_ms = 500,
	.most_ms = 8000,
	.jitter_percent = 50},
    {.failures = HR_REST_LIMITED,
	.always = HR_REST_LIMITED,
	.attempts = 5,
	.first_ms = 1000,
	.most_ms = 30000,
	.jitter_percent = 50},
    {.failures = HR_REST_LOST | HR_REST_FAILED,
	.attempts = 4,
	.first_ms = 500,
	.most_ms = 8000,
	.jitter_percent = 50},
    {0},
};

const struct hr_rest_rule hr_rest_once[] = {{0}};

struct header {
	char *line; /* the line "Name: value" */
	size_t name_len;
	bool secret;
};

struct hr_rest {
	struct hr_http *http;
	char *url, *unix_socket;
	struct hr_rest_options o;
	struct hr_rest_peer peer;
	struct header headers[HEADERS_MAX];
	size_t n;
};

static bool
copy(char **to, const char *from)
{
	*to = from != NULL ? strdup(from) : NULL;
	return from == NULL || *to != NULL;
}

struct hr_rest *
hr_rest_new(const struct hr_rest_options *o, struct hr_err *err)
{
	struct hr_rest *rest = calloc(1, sizeof(*rest));
	struct hr_err he = {0};
	size_t n;

	if (rest == NULL)
		return hr_err_null(err);
	rest->o = *o;
	rest->http = hr_http_new(&he);
	if (!copy(&rest->url, o->url != NULL ? o->url : "") ||
	    !copy(&rest->unix_socket, o->unix_socket) || rest->http == NULL) {
		hr_rest_free(rest);
		return hr_err_null(err);
	}
	for (n = strlen(rest->url); n > 0 && rest->url[n - 1] == '/'; n--)
		rest->url[n - 1] = '\0';
	rest->o.rules = o->rules != NULL ? o->rules : hr_rest_rules;
	rest->o.timeout_s = o->timeout_s > 0 ? o->timeout_s : TIMEOUT_S;
	rest->o.patience_ms = o->patience_ms > 0 ? o->patience_ms : PATIENCE_MS;
	rest->o.answer_max = o->answer_max > 0 ? o->answer_max : ANSWER_MAX;
	return rest;
}

static void
free_header(struct header *h)
{
	if (h->line != NULL && h->secret)
		explicit_bzero(h->line, strlen(h->line));
	free(h->line);
}

void
hr_rest_free(struct hr_rest *rest)
{
	size_t i;

	if (rest == NULL)
		return;
	for (i = 0; i < rest->n; i++)
		free_header(&rest->headers[i]);
	hr_http_free(rest->http);
	free(rest->url);
	free(rest->unix_socket);
	free(rest);
}

/* Returns true if the text cannot end a line of the request. */
static bool
plain(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

int
hr_rest_header(
    struct hr_rest *rest, const char *name, const char *value, bool secret, struct hr_err *err)
{
	size_t i = 0, len = strlen(name);
	char *line = NULL;

	if (*name == '\0' || strpbrk(name, ": ") != NULL || !plain(name) ||
	    (value != NULL && !plain(value)))
		return hr_err_set(err, HR_E_INVAL,
		    "the value for the header %.40s has a control character in it", name);
	if (value != NULL && asprintf(&line, "%s: %s", name, value) < 0)
		return hr_err_nomem(err);
	while (i < rest->n && (rest->headers[i].name_len != len ||
				  strncasecmp(rest->headers[i].line, name, len) != 0))
		i++;
	if (i == HEADERS_MAX) {
		free(line);
		return hr_err_set(err, HR_E_INVAL, "too many headers");
	}
	if (i < rest->n)
		free_header(&rest->headers[i]);
	else if (line != NULL)
		rest->n++;
	if (line != NULL)
		rest->headers[i] = (struct header){line, len, secret};
	else if (i < rest->n)
		rest->headers[i] = rest->headers[--rest->n];
	return 0;
}

void
hr_rest_peer(struct hr_rest *rest, const struct hr_rest_peer *p)
{
	rest->peer = *p;
}

void
hr_rest_watch(struct hr_rest *rest, int watch_fd)
{
	rest->o.watch_fd = watch_fd;
}

/* ---- errors ---- */

/* Appends text, with ****** for each secret. */
static void
mask(const struct hr_rest *rest, struct hr_buf *b, const char *text)
{
	const struct header *h;
	size_t skip;

	for (; *text != '\0'; text += skip) {
		size_t i;

		skip = 0;
		for (i = 0; skip == 0 && i < rest->n; i++) {
			const char *value, *word;

			h = &rest->headers[i];
			value = h->line + h->name_len + 2;
			if (!h->secret || *value == '\0')
				continue;
			if (strncmp(text, value, strlen(value)) == 0)
				skip = strlen(value);
			/* "Bearer TOKEN": an error may quote the secret without the first word */
			word = strchr(value, ' ');
			if (skip == 0 && word != NULL && word[1] != '\0' &&
			    strncmp(text, word + 1, strlen(word + 1)) == 0)
				skip = strlen(word + 1);
		}
		if (skip > 0)
			hr_buf_adds(b, "******");
		else
			hr_buf_addc(b, text[skip++]);
	}
}

/* Returns the error text, by the names that services use. */
static const char *
told(struct json_object *o)
{
	static const char *const names[] = {"detail", "message", "error", "error_description"};
	const char *text = NULL;
	size_t i;

	for (i = 0; text == NULL && i < sizeof(names) / sizeof(*names); i++) {
		struct json_object *v = hr_json_at(o, names[i]);

		text = hr_json_text(v);
		if (text == NULL && hr_json_type(v) == HR_PY_DICT)
			text = hr_json_text_at(v, "message");
		else if (text == NULL && v != NULL)
			text = json_object_get_string(v);
	}
	return text;
}

/* Sets the error "METHOD URL: what", without the query. */
static int
say(const struct hr_rest *rest, const struct hr_rest_call *c, struct hr_err *err, enum hr_errc code,
    const char *what)
{
	bool whole = *c->path != '/';
	HR_BUF(text, TEXT_MAX + URL_MAX);
	HR_BUF(masked, 2 * (TEXT_MAX + URL_MAX));
	HR_BUF(line, 8 * (TEXT_MAX + URL_MAX));

	hr_buf_addf(&text, "%s %s%.*s: ", c->method, whole ? "" : rest->url,
	    (int)strcspn(c->path, "?"), c->path);
	hr_buf_add(&text, what, strnlen(what, TEXT_MAX));
	mask(rest, &masked, hr_buf_str(&text));
	hr_quote_text(&line, hr_buf_str(&masked), masked.len);
	return hr_err_set(err, code, "%s", hr_buf_str(&line));
}

/* ---- one attempt ---- */

struct turn {
	const struct hr_rest_call *c;
	struct hr_rest_answer *ret;
	const char *should;
	struct hr_rest_failure failure;
	struct hr_buf line;
	bool begun, enough, too_long;
};

static int
on_line(struct turn *t)
{
	size_t n = t->line.len;

	if (n > 0 && t->line.p[n - 1] == '\r')
		n--;
	t->enough = t->c->line(t->c->arg, hr_buf_str(&t->line), n) != 0;
	hr_buf_reset(&t->line);
	return t->enough ? -1 : 0;
}

static int
on_bytes(void *arg, const char *p, size_t len)
{
	struct turn *t = arg;
	const char *nl;
	size_t n;

	t->begun = true;
	if (t->c->line == NULL) {
		t->enough = t->c->sink(t->c->arg, p, len) != 0;
		return t->enough ? -1 : 0;
	}
	for (; len > 0; p += n, len -= n) {
		nl = memchr(p, '\n', len);
		n = nl != NULL ? (size_t)(nl - p) : len;
		hr_buf_add(&t->line, p, n);
		t->too_long = t->line.fail != HR_OK;
		if (t->too_long || (nl != NULL && on_line(t) != 0))
			return -1;
		n += nl != NULL;
	}
	return 0;
}

/* Collects the headers of both; the result is borrowed from them. */
static int
all_headers(
    const struct hr_rest *rest, const struct hr_rest_call *c, const char **list, struct hr_err *err)
{
	const char *const *h;
	size_t n = 0;
	size_t i;

	for (i = 0; i < rest->n; i++)
		list[n++] = rest->headers[i].line;
	if (c->json != NULL)
		list[n++] = "Content-Type: application/json";
	for (h = c->headers; h != NULL && *h != NULL; h++) {
		if (n >= 2 * (size_t)HEADERS_MAX)
			return say(rest, c, err, HR_E_INVAL, "too many headers");
		if (!plain(*h))
			return say(
			    rest, c, err, HR_E_INVAL, "a header has a control character in it");
		list[n++] = *h;
	}
	list[n] = NULL;
	return 0;
}

/* Returns the failure's bit, or 0. */
static unsigned
failure_of(const struct hr_http_answer *a)
{
	switch (a->untrusted ? HR_HTTP_OTHER : a->fault) {
	case HR_HTTP_NONE: break;
	case HR_HTTP_CONNECT:
	case HR_HTTP_CONNECT_TIMEOUT: return HR_REST_UNSENT;
	case HR_HTTP_CANCELLED:
	case HR_HTTP_OTHER: return 0;
	default: return HR_REST_LOST;
	}
	switch (a->status) {
	case 408: return HR_REST_SLOW;
	case 409: return HR_REST_CONFLICT;
	case 429: return HR_REST_LIMITED;
	case 500: return HR_REST_BROKEN;
	case 502: return HR_REST_GATEWAY;
	case 503: return HR_REST_BUSY;
	case 504: return HR_REST_LATE;
	default: return a->status >= 500 ? HR_REST_ODD : a->status >= 300 ? HR_REST_REFUSED : 0;
	}
}

static bool
idempotent(const struct hr_rest_call *c)
{
	return c->idempotent || (strcmp(c->method, "POST") != 0 && strcmp(c->method, "PATCH") != 0);
}

/* Keeps headers of the attempt's last answer. */
static void
on_header(void *arg, const char *line, size_t len)
{
	struct turn *t = arg;
	const char *name = t->c->header;

	if (len > 5 && memcmp(line, "HTTP/", 5) == 0) {
		t->failure = (struct hr_rest_failure){0};
		*t->ret->header = '\0';
	}
	hr_rest_heed(&t->failure, t->should, line, len);
	if (name != NULL)
		(void)hr_http_field(line, len, name, t->ret->header, sizeof(t->ret->header));
}

static int
take_answer(const struct hr_rest *rest, const struct hr_rest_call *c, struct hr_http_answer *a,
    struct hr_rest_answer *ret, struct hr_err *err)
{
	bool good = a->status >= 200 && a->status <= 299;
	HR_BUF(text, TEXT_MAX);
	struct hr_json_error why = {0};
	struct hr_err e = {0};
	const char *detail;
	int r = 0;

	ret->status = a->status;
	if (a->body.len > 0 && (!good || !c->raw) &&
	    hr_json_decode_foreign(a->body.p, a->body.len, &ret->json, &why) != 0 && good) {
		(void)hr_json_err(&e, HR_E_RUNTIME, &why, "the answer is not JSON");
		r = say(rest, c, err, e.code, e.msg);
	}
	if (!good) {
		detail = told(ret->json);
		hr_buf_addf(&text, "status %ld %s%s%.2000s", a->status, a->reason,
		    detail != NULL ? ": " : "", detail != NULL ? detail : "");
		r = say(rest, c, err, HR_E_HTTP_STATUS, hr_buf_str(&text));
		if (err != NULL)
			err->status = (int)a->status;
	}
	hr_buf_done(&ret->body);
	ret->body = a->body;
	memset(&a->body, 0, sizeof(a->body));
	return r;
}

/* Returns 0, or -1 with *err and t->failure set. */
static int
attempt(struct hr_rest *rest, const struct hr_rest_call *c, struct hr_http_request *q,
    struct turn *t, struct hr_rest_answer *ret, struct hr_err *err)
{
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_err fault = {0};
	struct hr_err he = {0};
	const char *cls;
	int r;

	hr_rest_answer_done(ret);
	t->failure = (struct hr_rest_failure){0};
	q->watch_fd = rest->o.watch_fd;
	r = hr_http_do(rest->http, q, &a, &he);
	ret->status = a.status;
	ret->failure = t->failure.bit = failure_of(&a);
	if (t->enough)
		r = 0;
	else if (t->too_long)
		r = say(rest, c, err, HR_E_RUNTIME, "a line of the answer is too long");
	else if (r == 0)
		r = take_answer(rest, c, &a, ret, err);
	else {
		r = hr_rest_fault(&a, &he, &fault);
		cls = fault.cls;
		(void)say(rest, c, err, fault.code, fault.msg);
		if (err != NULL)
			err->cls = cls;
	}
	if (r == 0 && c->line != NULL && !t->enough && t->line.len > 0)
		(void)on_line(t);
	return r;
}

int
hr_rest_call(struct hr_rest *rest, const struct hr_rest_call *c, struct hr_rest_answer *ret,
    struct hr_err *err)
{
	const char *headers[2 * HEADERS_MAX + 2];
	struct hr_http_request q = {
	    .method = c->method,
	    .unix_socket = rest->unix_socket,
	    .headers = headers,
	    .body = c->body,
	    .body_len = c->body_len,
	    .timeout_s = c->endless         ? 0
			 : c->timeout_s > 0 ? c->timeout_s
					    : rest->o.timeout_s,
	    .total_s = c->line == NULL && c->sink == NULL ? rest->o.total_s : 0,
	    .answer_max = rest->o.answer_max,
	    .on_header = on_header,
	    .fresh = !idempotent(c),
	    .insecure = rest->peer.insecure,
	    .ca_pem = rest->peer.ca_pem,
	    .cert_pem = rest->peer.cert_pem,
	    .key_pem = rest->peer.key_pem,
	    .proxy = rest->peer.proxy,
	    .connect_to = rest->peer.connect_to,
	};
	struct turn t = {.c = c, .should = rest->o.should};
	struct hr_rest_tries tries = {.rules = rest->o.rules,
	    .patience_ms = rest->o.patience_ms,
	    .watch_fd = rest->o.watch_fd};
	HR_CLEAN(hr_rest_answer_done) struct hr_rest_answer mine = {0};
	struct hr_err none;
	HR_BUF(url, URL_MAX);
	HR_BUF(body, HR_JSON_BODY_MAX);
	int r;

	err = err != NULL ? err : &none;
	ret = ret != NULL ? ret : &mine;
	memset(ret, 0, sizeof(*ret));
	t.ret = ret;
	q.header_arg = &t;
	hr_buf_addf(&url, "%s%s", *c->path == '/' ? rest->url : "", c->path);
	q.url = hr_buf_str(&url);
	if (c->line != NULL || c->sink != NULL) {
		q.sink = on_bytes;
		q.sink_arg = &t;
	}
	if (hr_buf_check(&url, NULL) != 0 || !plain(q.url) || strchr(q.url, ' ') != NULL)
		return say(rest, c, err, HR_E_INVAL, "this is not a URL");
	if (c->json != NULL) {
		if (hr_json_put(&body, c->json) != 0 || hr_buf_check(&body, NULL) != 0)
			return say(rest, c, err, HR_E_INVAL, "a value cannot be written as JSON");
		q.body = hr_buf_str(&body);
		q.body_len = body.len;
	}
	if (all_headers(rest, c, headers, err) != 0)
		return -1;
	hr_buf_init(&t.line, LINE_MAX_BYTES);
	if (rest->o.deadline_ms > 0)
		tries.end_ms = hr_now_ms() + rest->o.deadline_ms;
	do
		r = attempt(rest, c, &q, &t, ret, err);
	while (r != 0 && !t.begun && hr_rest_again(&tries, &t.failure, idempotent(c)));
	hr_buf_done(&t.line);
	return r;
}

void
hr_rest_answer_done(struct hr_rest_answer *a)
{
	json_object_put(a->json);
	hr_buf_done(&a->body);
	memset(a, 0, sizeof(*a));
}

int
hr_rest_get(struct hr_rest *rest, const char *path, struct json_object **ret, struct hr_err *err)
{
	return hr_rest_send(rest, "GET", path, NULL, ret, err);
}

int
hr_rest_send(struct hr_rest *rest, const char *method, const char *path, struct json_object *body,
    struct json_object **ret, struct hr_err *err)
{
	struct hr_rest_call c = {.method = method, .path = path, .json = body};
	HR_CLEAN(hr_rest_answer_done) struct hr_rest_answer a = {0};
	int r = hr_rest_call(rest, &c, &a, err);

	if (ret != NULL) {
		*ret = r == 0 ? a.json : NULL;
		if (r == 0)
			a.json = NULL;
	}
	return r;
}
