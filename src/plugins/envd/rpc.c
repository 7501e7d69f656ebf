/* Serves calls. The order of the checks is the original's: method, type of the body, user, message.
 * A stream has status 200 whatever happens; its error is in the last frame. */
#include "config.h"

#include "plugins/envd/rpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/loop.h"
#include "e2b/gzip.h"
#include "http/serve.h"
#include "proto/json.h"

#define PREFIX "/handrail/e2b"
#define ANSWER_MAX (256u << 20)
#define SILENCE_MS 90000
#define PART_MAX (HR_CONNECT_FRAME_MAX + (64u << 10))
#define HELD_MAX ((size_t)160 << 20) /* bytes of input in all calls: five long messages */
#define KEPT_MAX (64u << 10)         /* bytes that were read and may wait for more to be dropped */
#define SILENCE_MAX_S 86400
#define TIMEOUT_MAX_MS 10000000000000 /* 317 years, which can be added to a clock */

static bool
is_stream(const struct envd_call *c)
{
	return c->method->shape != ENVD_UNARY;
}

/* ---- the ends of a call ---- */

static void
call_free(struct envd_call *c)
{
	hr_watch_free(c->deadline);
	hr_watch_free(c->silence);
	json_object_put(c->in);
	c->envd->held -= c->held;
	hr_buf_done(&c->part);
	hr_buf_done(&c->input);
	hr_e2b_who_done(&c->who);
	free(c);
}

/* Compresses `text` if the client asks for it; returns what to send. */
static struct hr_span
pack(const struct envd_call *c, struct hr_span text, struct hr_buf *packed)
{
	return c->gzip && hr_gzip(packed, text) == 0 ? hr_span_of_buf(packed) : text;
}

static void
put_frame(struct envd_call *c, unsigned flags, struct hr_span json)
{
	HR_BUF(frame, ANSWER_MAX);
	HR_BUF(packed, ANSWER_MAX);
	struct hr_span data = pack(c, json, &packed);

	if (data.p != json.p)
		flags |= HR_CONNECT_COMPRESSED;
	hr_connect_put(&frame, flags, data.p, data.len);
	if (frame.fail != HR_OK)
		hr_log(HR_LOG_ERROR, "out of memory: a client misses output");
	hr_serve_send(c->q, hr_buf_str(&frame), frame.len);
}

static void
stream_open(struct envd_call *c)
{
	if (c->opened)
		return;
	c->opened = true;
	hr_serve_set(c->q, "Connect-Accept-Encoding", "gzip");
	if (c->gzip)
		hr_serve_set(c->q, "Connect-Content-Encoding", "gzip");
	hr_serve_start(c->q, "application/connect+json");
	hr_json_drop(&c->in);
}

static void
send_unary(struct envd_call *c, int status, struct hr_span json)
{
	HR_BUF(packed, ANSWER_MAX);
	struct hr_span data = pack(c, json, &packed);
	const char *type = hr_serve_header(c->q, "Content-Type");
	struct hr_serve_request *q = c->q;

	if (data.p != json.p)
		hr_serve_set(q, "Content-Encoding", "gzip");
	type = status == 200 && type != NULL && strcasestr(type, "charset") != NULL
		   ? "application/json; charset=utf-8"
		   : "application/json";
	hr_serve_answer(q, status, type, data.p, data.len);
	call_free(c);
}

void
envd_call_end(struct envd_call *c, const struct hr_connect_error *e)
{
	HR_BUF(b, 4 * sizeof(e->text) + 200);

	if (!is_stream(c)) {
		if (e != NULL)
			hr_connect_put_error(&b, e);
		else
			hr_buf_adds(&b, "{}");
		send_unary(c, e != NULL ? hr_connect_status(e->code) : 200, hr_span_of_buf(&b));
		return;
	}
	stream_open(c);
	hr_connect_put_end(&b, e);
	put_frame(c, HR_CONNECT_END,
	    (struct hr_span){hr_buf_str(&b) + HR_CONNECT_HEAD, b.len - HR_CONNECT_HEAD});
	hr_serve_end(c->q, true);
	call_free(c);
}

void
envd_call_answer(struct envd_call *c, struct hr_span json)
{
	if (is_stream(c)) {
		stream_open(c);
		put_frame(c, 0, json);
		envd_call_end(c, NULL);
	} else {
		send_unary(c, 200, json);
	}
}

void
envd_call_cut(struct envd_call *c)
{
	if (c->opened)
		hr_serve_end(c->q, false);
	else
		hr_serve_answer(c->q, 503, NULL, "", 0);
	call_free(c);
}

/* ---- streams ---- */

static void
listen_to_silence(struct envd_call *c)
{
	if (c->silence != NULL)
		(void)hr_watch_arm(c->silence, c->silence_ms, NULL);
}

void
envd_call_send(struct envd_call *c, struct hr_span json)
{
	stream_open(c);
	put_frame(c, 0, json);
	listen_to_silence(c);
}

size_t
envd_call_pending(const struct envd_call *c)
{
	return hr_serve_pending(c->q);
}

static void
on_silence(void *arg)
{
	struct envd_call *c = arg;

	/* a client that does not read needs no sign of life, and each one would cost memory */
	if (envd_call_pending(c) == 0)
		envd_call_send(c, hr_span_of(c->method->keepalive));
	else
		listen_to_silence(c);
}

static void
on_deadline(void *arg)
{
	struct envd_call *c = arg;

	c->late = true;
	c->events->over(c->arg);
}

static void
on_drained(void *arg)
{
	const struct envd_call *c = arg;

	if (c->events->drained != NULL)
		c->events->drained(c->arg);
}

static void
on_left(void *arg)
{
	const struct envd_call *c = arg;

	c->events->over(c->arg);
}

void
envd_call_wait(struct envd_call *c, const struct envd_events *events, void *arg)
{
	struct hr_loop *loop = c->envd->loop;

	c->events = events;
	c->arg = arg;
	hr_serve_watch(c->q, on_drained, on_left, c);
	hr_serve_read(c->q, events->arrived, arg);
	if (c->timeout_ms >= 0 && c->deadline == NULL) {
		c->deadline = hr_loop_timer(loop, on_deadline, c, NULL);
		if (c->deadline != NULL)
			(void)hr_watch_arm(c->deadline, c->timeout_ms, NULL);
	}
	if (c->method->keepalive != NULL && c->silence == NULL) {
		c->silence = hr_loop_timer(loop, on_silence, c, NULL);
		listen_to_silence(c);
	}
}

/* ---- a request ---- */

static void
refuse(struct hr_serve_request *q, int status, const char *name, const char *value)
{
	if (name != NULL)
		hr_serve_set(q, name, value);
	hr_serve_answer(q, status, NULL, "", 0);
}

/* Returns true for that type, alone or with the one charset that JSON has. */
static bool
type_is(const char *type, const char *wanted)
{
	size_t len = strlen(wanted);

	if (type == NULL || strncasecmp(type, wanted, len) != 0)
		return false;
	type += len;
	type += strspn(type, " ");
	if (*type == '\0')
		return true;
	type += strspn(type, "; ");
	return strcasecmp(type, "charset=utf-8") == 0 || strcasecmp(type, "charset=\"utf-8\"") == 0;
}

static int
find_user(struct envd_call *c, struct hr_connect_error *e)
{
	const char *text = hr_serve_header(c->q, "Authorization");
	struct hr_err err = {0};
	HR_BUF(name, 4096);
	bool named = text != NULL && hr_e2b_who_named(text, &name);

	if (hr_e2b_setup_read(&c->envd->setup, c->envd->run_dir, &err) != 0)
		return hr_connect_fail(e, HR_CONNECT_INTERNAL, "%s", err.msg);
	if (!hr_e2b_who_find(
		&c->who, named ? hr_buf_str(&name) : NULL, &c->envd->setup, c->envd->sandbox))
		return hr_connect_fail(e, HR_CONNECT_UNAUTHENTICATED, "invalid username: '%s'",
		    named ? hr_buf_str(&name)
			  : (c->envd->setup.user != NULL ? c->envd->setup.user : ""));
	return 0;
}

static int
read_headers(struct envd_call *c, struct hr_connect_error *e)
{
	const char *text = hr_serve_header(c->q, "Connect-Timeout-Ms");
	char *end;
	long n;

	c->timeout_ms = -1;
	if (text != NULL && *text != '\0') {
		errno = 0;
		n = strtol(text, &end, 10);
		if (*end != '\0' || end == text || errno != 0)
			return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT,
			    "parse timeout: strconv.ParseInt: parsing \"%.100s\": %s", text,
			    errno == ERANGE ? "value out of range" : "invalid syntax");
		c->timeout_ms = n <= 0 ? 0 : n < TIMEOUT_MAX_MS ? n : TIMEOUT_MAX_MS;
	}
	text = hr_serve_header(c->q, "Keepalive-Ping-Interval");
	n = text != NULL ? strtol(text, &end, 10) : 0;
	c->silence_ms = text != NULL && end != text && *end == '\0' && n > 0 && n <= SILENCE_MAX_S
			    ? n * 1000
			    : SILENCE_MS;
	text = hr_serve_header(c->q, "Connect-Protocol-Version");
	if (text != NULL && strcmp(text, "1") != 0)
		return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT,
		    "connect-protocol-version must be \"1\": got \"%.100s\"", text);
	return 0;
}

static bool
accepts_gzip(const struct envd_call *c)
{
	const char *text =
	    hr_serve_header(c->q, is_stream(c) ? "Connect-Accept-Encoding" : "Accept-Encoding");

	return text != NULL && strstr(text, "gzip") != NULL && strstr(text, "gzip;q=0") == NULL;
}

/* Sets *ret to true if the request may be compressed; the answer is then compressed, too. */
static int
read_encoding(const struct envd_call *c, bool *ret, struct hr_connect_error *e)
{
	const char *text =
	    hr_serve_header(c->q, is_stream(c) ? "Connect-Content-Encoding" : "Content-Encoding");

	*ret = text != NULL && strcmp(text, "gzip") == 0;
	if (*ret || text == NULL || *text == '\0' || strcmp(text, "identity") == 0)
		return 0;
	return hr_connect_fail(e, HR_CONNECT_UNIMPLEMENTED,
	    "unknown compression \"%.100s\": supported encodings are gzip", text);
}

static int
read_one(const struct envd_call *c, struct hr_span data, bool packed, struct json_object **ret,
    struct hr_connect_error *e)
{
	HR_BUF(plain, HR_CONNECT_FRAME_MAX);

	if (packed && hr_gunzip(&plain, data) != 0)
		return hr_connect_fail(
		    e, HR_CONNECT_INVALID_ARGUMENT, "decompress: gzip: invalid data");
	return hr_message_read(c->method->in, packed ? hr_span_of_buf(&plain) : data, ret, e);
}

/* Reads the message of the frame at the front. */
static int
read_frame(const struct envd_call *c, struct hr_span *rest, struct json_object **ret,
    struct hr_connect_error *e)
{
	struct hr_span data;
	unsigned flags;

	if (hr_connect_take(rest, c->packed, &flags, &data, e) != 0)
		return -1;
	return read_one(c, data, (flags & HR_CONNECT_COMPRESSED) != 0, ret, e);
}

int
envd_call_hold(struct envd_call *c, struct hr_connect_error *e)
{
	const size_t now = c->part.len + c->input.len;

	c->envd->held = c->envd->held - c->held + now;
	c->held = now;
	return c->envd->held <= HELD_MAX ? 0
					 : hr_connect_fail(e, HR_CONNECT_RESOURCE_EXHAUSTED,
					       "more than %zu MiB of input wait for processes: end "
					       "some calls, or let the "
					       "processes read",
					       HELD_MAX >> 20);
}

/* Drops the bytes that were read, and the memory that a long message took. */
static int
drop_used(struct envd_call *c, struct hr_connect_error *e)
{
	struct hr_buf old = c->part;

	if (c->used == 0)
		return 0;
	hr_buf_init(&c->part, PART_MAX);
	hr_buf_add(&c->part, old.p + c->used, old.len - c->used);
	hr_buf_done(&old);
	c->used = 0;
	return hr_buf_check(&c->part, NULL) == 0 ? 0
						 : hr_connect_fail(e, HR_CONNECT_RESOURCE_EXHAUSTED,
						       "there is no memory for the input");
}

int
envd_call_read(struct envd_call *c, struct json_object **ret, struct hr_connect_error *e)
{
	struct hr_span rest, more;
	int r;

	*ret = NULL;
	for (;;) {
		rest = (struct hr_span){hr_buf_str(&c->part) + c->used, c->part.len - c->used};
		if (hr_connect_has(rest))
			break;
		if (drop_used(c, e) != 0)
			return -1;
		rest = hr_span_of_buf(&c->part);
		r = hr_serve_take(c->q, &more);
		if (r == 1 && more.len == 0)
			return envd_call_hold(c, e) == 0 ? 1 : -1;
		if (r == 0 && rest.len == 0)
			return 0;
		if (r <= 0)
			break; /* the body ends within a frame */
		hr_buf_add(&c->part, more.p, more.len);
		if (hr_buf_check(&c->part, NULL) != 0)
			return hr_connect_fail(
			    e, HR_CONNECT_RESOURCE_EXHAUSTED, "the message is too long");
		if (envd_call_hold(c, e) != 0)
			return -1;
	}
	if (read_frame(c, &rest, ret, e) != 0)
		return -1;
	c->used = c->part.len - rest.len;
	if (c->used <= KEPT_MAX || drop_used(c, e) == 0)
		return 1;
	hr_json_drop(ret);
	return -1;
}

static int
read_message(struct envd_call *c, struct hr_connect_error *e)
{
	struct hr_span rest = hr_serve_body(c->q);

	if (read_encoding(c, &c->packed, e) != 0)
		return -1;
	c->gzip = c->gzip || c->packed;
	if (c->method->shape == ENVD_UNARY)
		return read_one(c, rest, c->packed, &c->in, e);
	if (c->method->shape == ENVD_INPUT)
		return 0;
	if (rest.len == 0)
		return hr_connect_fail(
		    e, HR_CONNECT_UNIMPLEMENTED, "unary request has zero messages");
	if (read_frame(c, &rest, &c->in, e) != 0)
		return -1;
	if (rest.len > 0)
		return hr_connect_fail(
		    e, HR_CONNECT_UNIMPLEMENTED, "unary request has multiple messages");
	return 0;
}

static void
perform(struct envd *envd, const struct envd_method *m, struct hr_serve_request *q)
{
	struct envd_call *c = calloc(1, sizeof(*c));
	struct hr_connect_error e;

	if (c == NULL) {
		refuse(q, 503, NULL, NULL);
		return;
	}
	c->envd = envd;
	c->method = m;
	c->q = q;
	c->gzip = accepts_gzip(c);
	hr_buf_init(&c->part, PART_MAX);
	hr_buf_init(&c->input, HR_CONNECT_FRAME_MAX);
	if (find_user(c, &e) != 0 || read_headers(c, &e) != 0 || read_message(c, &e) != 0)
		envd_call_end(c, &e);
	else
		m->fn(c);
}

static const struct envd_method *
find_method(const char *path)
{
	static const struct envd_method *const tables[] = {
	    envd_process_methods, envd_watch_methods};
	const struct envd_method *m;
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (m = tables[i]; m->path != NULL; m++)
			if (strcmp(m->path, path) == 0)
				return m;
	return NULL;
}

void
envd_rpc_request(void *envd, struct hr_serve_request *q)
{
	static const char missing[] = "404 page not found\n";
	const char *path = hr_serve_path(q), *type = hr_serve_header(q, "Content-Type");
	const struct envd_method *m;

	if (strncmp(path, PREFIX "/", sizeof(PREFIX)) == 0)
		path += sizeof(PREFIX) - 1;
	m = find_method(path);
	if (m == NULL)
		hr_serve_answer(q, 404, "text/plain; charset=utf-8", missing, sizeof(missing) - 1);
	else if (strcmp(hr_serve_method(q), "POST") != 0)
		refuse(q, 405, "Allow", "POST");
	else if (m->shape == ENVD_UNARY && !type_is(type, "application/json"))
		refuse(q, 415, "Accept-Post", "application/json, application/json; charset=utf-8");
	else if (m->shape != ENVD_UNARY && !type_is(type, "application/connect+json"))
		refuse(q, 415, "Accept-Post",
		    "application/connect+json, application/connect+json; charset=utf-8");
	else
		perform(envd, m, q);
}
