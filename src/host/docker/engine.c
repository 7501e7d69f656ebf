/* Calls a Docker Engine. */
#include "config.h"

#include "host/docker/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text/text.h"
#include "host/records/record.h"
#include "host/config/settings.h"
#include "proto/json.h"

#define CALL_TIMEOUT_S 70 /* seconds; stopping takes as long as the container needs */
#define PING_TIMEOUT_S 10
#define URL_TEXT_MAX 16384
#define LINE_MAX_BYTES (1u << 20)
#define NO_ANSWER                                                                                  \
	"Launch docker client failed. Please make sure you have installed docker and started "     \
	"docker desktop/daemon."

const char *
hr_engine_at(const char *const *env)
{
	const char *host = hr_env_get(env, "DOCKER_HOST");

	return host != NULL ? host : "unix:///var/run/docker.sock";
}

static int
address(struct hr_engine *e, const char *host, struct hr_err *err)
{
	if (strncmp(host, "unix://", 7) == 0)
		return hr_text_set(&e->socket, host + 7, err) == 0
			   ? hr_text_set(&e->base, "http://localhost", err)
			   : -1;
	if (strncmp(host, "tcp://", 6) == 0)
		return hr_text_setf(&e->base, err, "http://%s", host + 6);
	if (strncmp(host, "http://", 7) == 0 || strncmp(host, "https://", 8) == 0)
		return hr_text_set(&e->base, host, err);
	return hr_err_set(err, HR_E_INVAL,
	    "DOCKER_HOST must be an address such as unix:///run/docker.sock, not: %s", host);
}

static int
status_error(const struct hr_http_answer *a, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	enum hr_errc code = HR_E_RUNTIME;
	const char *text;

	if (a->body.len > 0)
		(void)hr_json_decode_foreign(
		    a->body.p, a->body.len, &o, NULL); /* o stays NULL on failure */
	text = hr_json_text_or(o, "message", a->reason);
	if (a->status == 404)
		code = strcasestr(text, "no such image") != NULL ||
			       strcasestr(text, "manifest") != NULL ||
			       strcasestr(text, "repository") != NULL
			   ? HR_E_NOTFOUND
			   : HR_E_NO_SANDBOX;
	(void)hr_err_set(err, code, "%s", text);
	if (err != NULL)
		err->status = (int)a->status;
	return -1;
}

static int
send_it(struct hr_engine *e, struct hr_http_request *req, const char *path,
    struct hr_http_answer *a, struct hr_err *err)
{
	struct hr_err he = {0};
	HR_BUF(url, URL_TEXT_MAX);
	int r;

	hr_buf_adds(&url, e->base);
	hr_buf_adds(&url, path);
	req->url = hr_buf_str(&url);
	req->unix_socket = e->socket;
	req->watch_fd = e->watch_fd;
	memset(a, 0, sizeof(*a));
	r = hr_buf_check(&url, &he) == 0 ? hr_http_do(e->http, req, a, &he) : -1;
	/* curl would name a meaningless host and port */
	if (r != 0 && e->socket != NULL && a->fault == HR_HTTP_CONNECT)
		return hr_err_set(err, HR_E_UNAVAILABLE, "Nobody answers at %s.", e->socket);
	if (r != 0)
		return hr_err_from(err, HR_E_UNAVAILABLE, &he);
	return a->status >= 400 ? status_error(a, err) : 0;
}

/* Reads the version from a header, because "/version" starts two programs to ask theirs. */
int
hr_engine_init(struct hr_engine *e, const char *const *env, struct hr_err *err)
{
	struct hr_http_request ping = {
	    .method = "GET", .timeout_s = PING_TIMEOUT_S, .header = "Api-Version"};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_err why = {0};
	struct hr_err he = {0};
	const char *version;

	memset(e, 0, sizeof(*e));
	e->watch_fd = -1;
	e->timeout_s = CALL_TIMEOUT_S;
	if (address(e, hr_engine_at(env), err) < 0)
		return -1;
	e->http = hr_http_new(&he);
	if (e->http == NULL)
		return hr_err_nomem(err);
	if (send_it(e, &ping, "/_ping", &a, &why) < 0)
		return hr_err_set(err, HR_E_UNAVAILABLE, NO_ANSWER " %s", why.msg);
	version = strspn(a.header, "0123456789.") == strlen(a.header) ? a.header : "";
	return hr_text_setf(&e->base, err, "%s/v%s", e->base, *version != '\0' ? version : "1.24");
}

void
hr_engine_done(struct hr_engine *e)
{
	hr_http_free(e->http);
	free(e->socket);
	free(e->base);
	memset(e, 0, sizeof(*e));
}

int
hr_engine_call(struct hr_engine *e, const char *method, const char *path, struct json_object *body,
    struct json_object **ret, struct hr_err *err)
{
	static const char *const json[] = {"Content-Type: application/json", NULL};
	struct hr_http_request req = {.method = method, .timeout_s = e->timeout_s};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_json_error why = {0};
	HR_BUF(b, 64u << 20);

	if (body != NULL) {
		req.headers = json;
		if (hr_json_put(&b, body) != 0 || hr_buf_check(&b, NULL) != 0)
			return hr_err_set(err, HR_E_INVAL, "a value cannot be written as JSON");
		req.body = hr_buf_str(&b);
		req.body_len = b.len;
	}
	if (ret != NULL)
		*ret = NULL;
	if (send_it(e, &req, path, &a, err) != 0)
		return -1;
	if (ret != NULL && a.body.len > 0 &&
	    hr_json_decode_foreign(a.body.p, a.body.len, ret, &why) < 0)
		return hr_json_err(err, HR_E_RUNTIME, &why, "the Engine's answer is not JSON");
	return 0;
}

/* Remembers that the sink asked to stop. An error's body is small and arrives whole. */
struct stop {
	hr_http_sink_fn *sink;
	void *arg;
	bool stopped;
};

static int
until_enough(void *arg, const char *p, size_t len)
{
	struct stop *s = arg;

	if (s->sink(s->arg, p, len) == 0)
		return 0;
	s->stopped = true;
	return -1;
}

int
hr_engine_stream(struct hr_engine *e, const char *method, const char *path,
    hr_http_source_fn *source, void *source_arg, hr_http_sink_fn *sink, void *sink_arg,
    unsigned timeout_s, struct hr_err *err)
{
	static const char *const tar[] = {"Content-Type: application/x-tar", NULL};
	struct stop s = {.sink = sink, .arg = sink_arg};
	struct hr_http_request req = {
	    .method = method,
	    .timeout_s = timeout_s,
	    .source = source,
	    .source_arg = source_arg,
	    .headers = source != NULL ? tar : NULL,
	    .sink = until_enough,
	    .sink_arg = &s,
	};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	int r = send_it(e, &req, path, &a, err);

	return s.stopped ? 0 : r;
}

bool
hr_engine_event(struct hr_engine_event *ret, const char *line, size_t len)
{
	static const char *const told[] = {
	    "start", "die", "oom", "pause", "unpause", "destroy", "restart"};
	struct json_object *attributes;
	HR_PUT struct json_object *o = NULL;
	const char *name, *status, *code;

	*ret = (struct hr_engine_event){.what = NULL};
	if (hr_json_decode_foreign(line, len, &o, NULL) < 0)
		return false;
	attributes = hr_json_at(hr_json_at(o, "Actor"), "Attributes");
	name = hr_json_text_or(attributes, "name", "");
	status = hr_json_text_or(o, "status", "");
	code = hr_json_text_or(attributes, "exitCode", "");
	if (*code != '\0')
		(void)snprintf(ret->detail, sizeof(ret->detail), "exit status %.20s", code);
	if (strncmp(name, HR_CONTAINER_PREFIX, sizeof(HR_CONTAINER_PREFIX) - 1) == 0) {
		size_t i;

		name += sizeof(HR_CONTAINER_PREFIX) - 1;
		for (i = 0; i < sizeof(told) / sizeof(*told); i++)
			if (strcmp(status, told[i]) == 0 && hr_sid_valid(name))
				ret->what = told[i];
		(void)snprintf(ret->sid, sizeof(ret->sid), "%s", name);
	}
	return ret->what != NULL;
}

void
hr_demux_init(struct hr_demux *d, hr_line_fn *fn, void *arg)
{
	memset(d, 0, sizeof(*d));
	d->fn = fn;
	d->arg = arg;
	hr_buf_init(&d->lines[0], LINE_MAX_BYTES);
	hr_buf_init(&d->lines[1], LINE_MAX_BYTES);
}

static int
payload(struct hr_demux *d, const char *p, size_t len)
{
	struct hr_buf *b = &d->lines[d->head[0] == 2];

	for (; len > 0; p++, len--) {
		if (*p != '\n' && b->len < LINE_MAX_BYTES - 1) {
			hr_buf_addc(b, *p);
			continue;
		}
		if (d->fn(d->arg, hr_buf_str(b), b->len) != 0) {
			d->stopped = true;
			return -1;
		}
		hr_buf_reset(b);
	}
	return 0;
}

int
hr_demux_sink(void *demux, const char *p, size_t len)
{
	struct hr_demux *d = demux;
	size_t n;

	while (len > 0) {
		if (d->left == 0) {
			d->head[d->head_len++] = (unsigned char)*p++;
			len--;
			if (d->head_len < sizeof(d->head))
				continue;
			d->head_len = 0;
			d->left = (size_t)d->head[4] << 24 | (size_t)d->head[5] << 16 |
				  (size_t)d->head[6] << 8 | d->head[7];
			continue;
		}
		n = len < d->left ? len : d->left;
		if (payload(d, p, n) != 0)
			return -1;
		p += n;
		len -= n;
		d->left -= n;
	}
	return 0;
}

void
hr_demux_done(struct hr_demux *d)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		if (d->lines[i].len > 0 && !d->stopped)
			(void)d->fn(d->arg, d->lines[i].p, d->lines[i].len);
		hr_buf_done(&d->lines[i]);
	}
}
