/* Implements gRPC by libcurl: one request, frames both ways, and a trailing status. */
#include "config.h"

#include "host/modal/grpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text/percent.h"
#include "host/cloud/cloud.h"
#include "base/err.h"
#include "base/random.h"
#include "e2b/connect.h"
#include "host/modal/pb.h"
#include "http/answer.h"

#define DEADLINE_S 60
#define LATE_S 5      /* seconds after which this process enforces a deadline itself */
#define SILENT_S 3600 /* seconds without data in a stream */

/* the rules for retries are those of Modal's client: 0.1 s, doubled each time */
static const struct hr_rest_rule rules[] = {
    {.failures = HR_REST_UNSENT | HR_REST_BUSY | HR_REST_LOST,
	.always = HR_REST_UNSENT,
	.attempts = 4,
	.first_ms = 100,
	.most_ms = 10000,
	.jitter_percent = 20,
	.after_max_s = 60},
    {0},
};

int
hr_grpc_init(struct hr_grpc *g, const char *url, struct hr_err *err)
{
	size_t n;

	*g = (struct hr_grpc){0};
	if (hr_api_url(HR_MODAL_WHO, url, err) != 0)
		return -1;
	if (hr_text_set(&g->url, url, err) != 0)
		return -1;
	for (n = strlen(g->url); n > 0 && g->url[n - 1] == '/'; n--)
		g->url[n - 1] = '\0';
	g->http = hr_http_new(err);
	return g->http != NULL ? 0 : -1;
}

void
hr_grpc_done(struct hr_grpc *g)
{
	hr_http_free(g->http);
	hr_strv_done(&g->headers);
	hr_strv_done(&g->secrets);
	free(g->url);
	memset(g, 0, sizeof(*g));
}

/* ---- one attempt ---- */

struct turn {
	const struct hr_grpc *g;
	const struct hr_grpc_call *c;
	struct hr_connect frames;
	ProtobufCMessage *first; /* the answer if it is a single one */
	unsigned n;              /* number of received messages */
	int status;              /* HR_GRPC_LOST until the status arrives */
	bool http2, grpc, enough;
	char message[4096];
	struct hr_rest_failure failure;
	struct hr_err err; /* error in the received data */
};

/* Handles headers and trailers. */
static void
on_header(void *arg, const char *line, size_t len)
{
	struct turn *t = arg;
	char text[100], *end;
	long n;

	if (len > 5 && memcmp(line, "HTTP/", 5) == 0)
		t->http2 = line[5] == '2';
	if (hr_http_field(line, len, "content-type", text, sizeof(text)))
		t->grpc = strncasecmp(text, "application/grpc", 16) == 0;
	if (hr_http_field(line, len, "grpc-status", text, sizeof(text))) {
		n = strtol(text, &end, 10);
		t->status =
		    end != text && *end == '\0' && n >= 0 && n <= 16 ? (int)n : HR_GRPC_UNKNOWN;
	}
	(void)hr_http_field(line, len, "grpc-message", t->message, sizeof(t->message));
	hr_rest_heed(&t->failure, NULL, line, len);
}

static int
on_frame(void *arg, unsigned flags, const char *p, size_t len)
{
	struct turn *t = arg;
	ProtobufCMessage *m;
	char subject[200];
	int r = 0;

	(void)snprintf(subject, sizeof(subject), "the answer of %.150s",
	    strrchr(t->c->path, '/') != NULL ? strrchr(t->c->path, '/') + 1 : t->c->path);
	if (flags != 0)
		r = hr_err_set(&t->err, HR_E_PROTO,
		    HR_MODAL_WHO ": %s is a frame of an unknown type", subject);
	else if (t->c->each == NULL && t->n > 0)
		r = hr_err_set(
		    &t->err, HR_E_PROTO, HR_MODAL_WHO ": %s is more than one message", subject);
	m = r == 0 ? hr_pb_read(subject, t->c->type, p, len, &t->err) : NULL;
	if (m == NULL)
		return 1;
	t->n++;
	if (t->c->each == NULL) {
		t->first = m;
		return 0;
	}
	r = t->c->each(t->c->arg, m, &t->err);
	hr_pb_done(&m);
	t->enough = r > 0;
	return r != 0;
}

static int
on_bytes(void *arg, const char *p, size_t len)
{
	struct turn *t = arg;
	struct hr_err e = {0};
	int r;

	if (!t->http2 || !t->grpc)
		return (void)hr_err_set(&t->err, HR_E_PROTO,
			   HR_MODAL_WHO ": its address does not speak gRPC over HTTP/2"),
		       -1;
	r = hr_connect_feed(&t->frames, p, len, &e);
	if (r < 0)
		(void)hr_err_set(&t->err, HR_E_PROTO, HR_MODAL_WHO ": its answer: %s", e.msg);
	return r == 0 ? 0 : -1;
}

/* Maps a plain HTTP status to a gRPC status. */
static int
status_of_http(long status)
{
	switch (status) {
	case 401: return HR_GRPC_UNAUTHENTICATED;
	case 403: return HR_GRPC_DENIED;
	case 404: return HR_GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504: return HR_GRPC_UNAVAILABLE;
	default: return HR_GRPC_UNKNOWN;
	}
}

static const char *
word_of(int status)
{
	static const char *const words[] = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT",
	    "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
	    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
	    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"};

	return words[status];
}

static enum hr_errc
code_of(int status)
{
	switch (status) {
	case HR_GRPC_DEADLINE: return HR_E_TIMEOUT;
	case HR_GRPC_NOT_FOUND: return HR_E_NO_SANDBOX;
	case HR_GRPC_DENIED:
	case HR_GRPC_UNAUTHENTICATED: return HR_E_PERMISSION;
	case HR_GRPC_EXHAUSTED:
	case HR_GRPC_UNAVAILABLE: return HR_E_UNAVAILABLE;
	default: return HR_E_RUNTIME;
	}
}

/* Sets *err from the status; the service's message is limited and stripped of control
 * characters. */
static int
explain(const struct turn *t, struct hr_err *err)
{
	HR_BUF(said, sizeof(t->message));
	HR_BUF(b, 8 * sizeof(t->message));
	size_t i;

	hr_percent_decode(&said, t->message, strlen(t->message), false);
	hr_cloud_hide(&b, hr_strv_list(&t->g->secrets), hr_buf_str(&said), said.len);
	for (i = 0; i < b.len; i++)
		if ((unsigned char)b.p[i] < ' ' || b.p[i] == 0x7f)
			b.p[i] = ' ';
	(void)hr_err_set(err, code_of(t->status), HR_MODAL_WHO ": %s: %s%s%s",
	    strrchr(t->c->path, '/') + 1, word_of(t->status), b.len > 0 ? ": " : "",
	    hr_buf_str(&b));
	if (t->status == HR_GRPC_UNAUTHENTICATED)
		(void)hr_err_set(err, HR_E_PERMISSION,
		    HR_MODAL_WHO
		    ": %s: UNAUTHENTICATED%s%.300s; check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET",
		    strrchr(t->c->path, '/') + 1, b.len > 0 ? ": " : "", hr_buf_str(&b));
	return -1;
}

/* Judges an attempt that had no local error. Returns 0, or -1 with *err set, and the failure's bit
 * if the service did not execute the call. */
static int
judge(struct turn *t, const struct hr_http_answer *a, int http_rc, const struct hr_err *he,
    struct hr_err *err)
{
	bool told = t->status != HR_GRPC_LOST && t->frames.part.len == 0;

	if (http_rc == 0 && a->status != 200) {
		t->status = status_of_http(a->status);
		/* this is not gRPC: a proxy before the service answered */
		if (a->status == 429 || a->status == 503)
			t->failure.bit = HR_REST_UNSENT;
		(void)snprintf(t->message, sizeof(t->message), "HTTP status %ld", a->status);
		return explain(t, err);
	}
	if (http_rc != 0 && !told) {
		if (a->fault == HR_HTTP_CONNECT || a->fault == HR_HTTP_CONNECT_TIMEOUT)
			t->failure.bit = HR_REST_UNSENT;
		t->status = a->fault == HR_HTTP_READ_TIMEOUT ? HR_GRPC_DEADLINE : HR_GRPC_LOST;
		return hr_rest_fault(a, he, err);
	}
	if (!t->http2 || !t->grpc)
		return hr_err_set(
		    err, HR_E_PROTO, HR_MODAL_WHO ": its address does not speak gRPC over HTTP/2");
	if (!told) {
		t->status = HR_GRPC_LOST;
		return hr_err_set(err, HR_E_PROTO,
		    HR_MODAL_WHO ": the answer of %s is cut: it ends without a status",
		    strrchr(t->c->path, '/') + 1);
	}
	if (t->status != HR_GRPC_OK)
		return explain(t, err);
	if (t->c->each == NULL && t->first == NULL) {
		t->status = HR_GRPC_UNKNOWN;
		return hr_err_set(err, HR_E_PROTO, HR_MODAL_WHO ": the answer of %s has no message",
		    strrchr(t->c->path, '/') + 1);
	}
	return 0;
}

static int
attempt(
    struct turn *t, const struct hr_strv *headers, const struct hr_buf *body, struct hr_err *err)
{
	const struct hr_grpc_call *c = t->c;
	unsigned deadline = c->deadline_s > 0 ? c->deadline_s : c->each == NULL ? DEADLINE_S : 0;
	struct hr_http_request q = {.method = "POST",
	    .headers = hr_strv_list(headers),
	    .body = hr_buf_str(body),
	    .body_len = body->len,
	    .timeout_s = deadline > 0 ? deadline + LATE_S : SILENT_S,
	    .total_s = deadline > 0 ? deadline + LATE_S : 0,
	    .sink = on_bytes,
	    .sink_arg = t,
	    .answer_max = 65536,
	    .on_header = on_header,
	    .header_arg = t,
	    .http2 = true,
	    /* libcurl 7.88 fails when it reuses an HTTP/2 connection */
	    .fresh = true,
	    .watch_fd = c->watch_fd > 0 ? c->watch_fd : -1};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_err he = {0};
	HR_FREE char *url = NULL;
	int r;

	if (hr_text_setf(&url, err, "%s%s", t->g->url, c->path) != 0)
		return -1;
	q.url = url;
	hr_connect_init(&t->frames, on_frame, t);
	r = hr_http_do(t->g->http, &q, &a, &he);
	if (t->enough) {
		t->status = HR_GRPC_OK;
		r = 0;
	} else if (t->err.code != HR_OK) {
		t->status = HR_GRPC_INTERNAL;
		if (err != NULL)
			*err = t->err;
		r = -1;
	} else {
		r = judge(t, &a, r, &he, err);
	}
	hr_connect_done(&t->frames);
	return r;
}

/* ---- one call ---- */

static int
add_headers(struct hr_strv *v, const struct hr_grpc *g, const struct hr_grpc_call *c,
    const char *key, const struct hr_rest_tries *tries)
{
	unsigned deadline = c->deadline_s > 0 ? c->deadline_s : c->each == NULL ? DEADLINE_S : 0;

	hr_strv_add(v, "Content-Type: application/grpc+proto");
	hr_strv_add(v, "TE: trailers");
	hr_strv_add_all(v, hr_strv_list(&g->headers));
	if (deadline > 0)
		hr_strv_addf(v, "grpc-timeout: %uS", deadline);
	if (c->key) {
		hr_strv_addf(v, "x-idempotency-key: %s", key);
		hr_strv_addf(v, "x-retry-attempt: %u", tries->failed);
	}
	if (c->key && tries->failed > 0)
		hr_strv_addf(
		    v, "x-retry-delay: %u.%03u", tries->last_ms / 1000, tries->last_ms % 1000);
	return v->failed ? -1 : 0;
}

/* Returns the bit of a failure without a final answer. The key lets the service detect that it has
 * executed the call before. */
static unsigned
failure_of(const struct turn *t)
{
	if (t->failure.bit != 0 || t->err.code != HR_OK || (t->c->each != NULL && t->n > 0))
		return t->failure.bit;
	if (t->status == HR_GRPC_UNAVAILABLE)
		return t->c->key && t->c->each == NULL ? HR_REST_UNSENT : HR_REST_BUSY;
	return t->status == HR_GRPC_LOST || t->status == HR_GRPC_CANCELLED ? HR_REST_LOST : 0;
}

static int
call(struct hr_grpc *g, const struct hr_grpc_call *c, const struct hr_buf *body, const char *key,
    ProtobufCMessage **ret, struct hr_grpc_end *end, struct hr_err *err)
{
	struct hr_rest_tries tries = {
	    .rules = rules, .watch_fd = c->watch_fd > 0 ? c->watch_fd : -1};
	struct hr_strv headers = {0};
	struct turn t = {0};
	int r;

	do {
		hr_pb_done(&t.first);
		t = (struct turn){.g = g, .c = c, .status = HR_GRPC_LOST};
		r = add_headers(&headers, g, c, key, &tries);
		if (r == 0)
			r = attempt(&t, &headers, body, err);
		hr_strv_done(&headers);
		if (headers.failed)
			return hr_err_nomem(err);
		*end = (struct hr_grpc_end){
		    .status = t.status, .unsure = r != 0 && t.failure.bit == 0, .messages = t.n};
		t.failure.bit = r != 0 ? failure_of(&t) : 0;
	} while (r != 0 && hr_rest_again(&tries, &t.failure, !c->once));
	if (r == 0)
		*ret = t.first;
	else
		hr_pb_done(&t.first);
	return r;
}

int
hr_grpc_do(struct hr_grpc *g, const struct hr_grpc_call *c, void *ret, struct hr_grpc_end *end,
    struct hr_err *err)
{
	HR_BUF(message, HR_CONNECT_FRAME_MAX);
	HR_BUF(body, HR_CONNECT_FRAME_MAX + 16);
	ProtobufCMessage *answer = NULL;
	struct hr_err mine = {0};
	char key[37] = "";
	int r;

	*end = (struct hr_grpc_end){.status = HR_GRPC_LOST};
	r = hr_pb_put(&message, c->q, &mine);
	hr_connect_put(&body, 0, hr_buf_str(&message), message.len);
	if (r == 0 && hr_buf_check(&body, NULL) != 0)
		r = hr_err_nomem(&mine);
	if (r == 0 && c->key)
		r = hr_random_uuid(key, &mine);
	if (r == 0)
		r = call(g, c, &body, key, &answer, end, &mine);
	if (r == 0 && ret != NULL)
		memcpy(ret, &answer, sizeof(answer));
	else
		hr_pb_done(&answer);
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}
