/* Sends requests with retries, by resttry.c. */
#include "config.h"

#include "host/client/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "host/client/rest.h"
#include "proto/json.h"

#define HEADERS_MAX (HR_ENDPOINT_HEADERS + 8)
#define TOO_MANY 429
#define URL_MAX 65536

/* Rules like those of the original's client, which retries every request after 429 and after a
 * broken answer. */
static const struct hr_rest_rule rules[] = {
    {.failures = HR_REST_LIMITED,
	.attempts = 3,
	.first_ms = 1000,
	.least_ms = 4000,
	.most_ms = 60000},
    {.failures = HR_REST_LOST, .attempts = 5, .first_ms = 1000, .least_ms = 4000, .most_ms = 15000},
    {0},
};

static void
forget(struct hr_client *c)
{
	char **h;

	for (h = c->headers; *h != NULL; h++) {
		free(*h);
		*h = NULL;
	}
	free(c->url);
	free(c->unix_socket);
	c->url = c->unix_socket = NULL;
}

/* Returns 0, or -1 without memory. */
static int
add_header(struct hr_client *c, const char *before, const char *text)
{
	size_t n = 0;

	while (c->headers[n] != NULL)
		n++;
	hr_assert(n < HR_ENDPOINT_HEADERS + 1);
	if (asprintf(&c->headers[n], "%s%s", before, text) >= 0)
		return 0;
	c->headers[n] = NULL;
	return -1;
}

int
hr_client_point(struct hr_client *c, const struct hr_endpoint *e, struct hr_err *err)
{
	size_t n = 0;
	int bad;
	size_t i;

	forget(c);
	while (e->headers != NULL && e->headers[n] != NULL)
		n++;
	if (n > HR_ENDPOINT_HEADERS)
		return hr_err_set(err, HR_E_INVAL,
		    "the sandbox's back-end adds %zu headers to each request; at most %d are "
		    "possible",
		    n, HR_ENDPOINT_HEADERS);
	c->url = strdup(e->url == NULL                     ? ""
			: strncmp(e->url, "unix:", 5) == 0 ? "http://localhost"
							   : e->url);
	bad =
	    c->url == NULL || (e->key != NULL && add_header(c, "X-Session-API-Key: ", e->key) != 0);
	if (e->unix_socket != NULL)
		bad |= (c->unix_socket = strdup(e->unix_socket)) == NULL;
	for (i = 0; i < n; i++)
		bad |= add_header(c, "", e->headers[i]) != 0;
	if (bad) {
		forget(c);
		return hr_err_nomem(err);
	}
	for (n = strlen(c->url); n > 0 && c->url[n - 1] == '/'; n--)
		c->url[n - 1] = '\0';
	return 0;
}

int
hr_client_init(struct hr_client *c, const struct hr_endpoint *e, struct hr_err *err)
{
	memset(c, 0, sizeof(*c));
	c->http = hr_http_new(NULL);
	if (c->http == NULL)
		return hr_err_nomem(err);
	if (hr_client_point(c, e, err) == 0)
		return 0;
	hr_client_done(c);
	return -1;
}

void
hr_client_done(struct hr_client *c)
{
	forget(c);
	hr_http_free(c->http);
	memset(c, 0, sizeof(*c));
}

static int
send_raw(struct hr_client *c, const struct hr_http_request *req, struct hr_http_answer *ret,
    struct hr_err *err)
{
	const char *headers[HEADERS_MAX];
	struct hr_http_request whole = *req;
	struct hr_err he = {0};
	HR_BUF(url, URL_MAX);
	size_t n = 0;
	int r;
	size_t i;

	for (i = 0; c->headers[i] != NULL; i++)
		headers[n++] = c->headers[i];
	for (i = 0; req->headers != NULL && req->headers[i] != NULL; i++) {
		hr_assert(n < HEADERS_MAX - 1);
		headers[n++] = req->headers[i];
	}
	headers[n] = NULL;
	whole.headers = headers;
	hr_buf_adds(&url, c->url != NULL ? c->url : "");
	hr_buf_adds(&url, req->url);
	whole.url = hr_buf_str(&url);
	whole.unix_socket = c->unix_socket;
	whole.watch_fd = req->watch_fd;
	memset(ret, 0, sizeof(*ret));
	r = hr_buf_check(&url, &he);
	if (r == 0)
		r = hr_http_do(c->http, &whole, ret, &he);
	return r == 0 ? 0 : hr_rest_fault(ret, &he, err);
}

/* Sets the error for a status other than 2xx. */
static void
status_error(const struct hr_client *c, const struct hr_http_request *req,
    const struct hr_http_answer *a, struct hr_err *err)
{
	const char *kind = a->status >= 500   ? "Server error"
			   : a->status >= 400 ? "Client error"
			   : a->status >= 300 ? "Redirect response"
					      : "Informational response";
	struct json_object *detail;
	HR_PUT struct json_object *o = NULL;
	size_t n;

	(void)hr_err_set(err, HR_E_HTTP_STATUS,
	    "%s '%ld %s' for url '%s%s'\nFor more information check: "
	    "https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/%ld",
	    kind, a->status, a->reason, c->url, req->url, a->status);
	err->status = (int)a->status;
	if (a->body.len > 0)
		(void)hr_json_decode_foreign(
		    a->body.p, a->body.len, &o, NULL); /* o stays NULL on failure */
	detail = hr_json_at(o, "detail");
	if (detail != NULL) {
		/* as in the original, a list or a number becomes JSON */
		n = strlen(err->msg);
		(void)snprintf(err->msg + n, sizeof(err->msg) - n, "\nDetails: %s",
		    json_object_get_string(detail));
	}
}

static void
exhausted(struct hr_err *err)
{
	const enum hr_errc last = err->code;
	const int status = err->status;
	char cls[64];

	(void)snprintf(cls, sizeof(cls), "%s", hr_err_class(err));
	(void)hr_err_set(err, HR_E_RETRY, "RetryError[<Future state=finished raised %s>]", cls);
	err->last = last;
	err->status = status;
}

/* Makes one attempt; a status other than 2xx is an error. */
static int
attempt(struct hr_client *c, const struct hr_http_request *req, struct hr_http_answer *ret,
    unsigned *failure, struct hr_err *err)
{
	int r = send_raw(c, req, ret, err);

	*failure = r != 0 && err->code == HR_E_PROTO ? HR_REST_LOST : 0;
	if (r != 0 || (ret->status >= 200 && ret->status < 300))
		return r;
	status_error(c, req, ret, err);
	*failure = ret->status == TOO_MANY ? HR_REST_LIMITED : 0;
	return -1;
}

int
hr_client_send_once(struct hr_client *c, const struct hr_http_request *req,
    struct hr_http_answer *ret, struct hr_err *err)
{
	struct hr_err mine;
	unsigned failure;

	return attempt(c, req, ret, &failure, err != NULL ? err : &mine);
}

int
hr_client_send(struct hr_client *c, const struct hr_http_request *req, struct hr_http_answer *ret,
    struct hr_err *err)
{
	struct hr_rest_tries tries = {.rules = rules, .watch_fd = req->watch_fd};
	bool may_repeat = req->source == NULL && req->sink == NULL, again;
	struct hr_rest_failure failure = {0};
	struct hr_err mine;
	unsigned k = 1;

	err = err != NULL ? err : &mine;
	while (attempt(c, req, ret, &failure.bit, err) != 0) {
		again = may_repeat && hr_rest_again(&tries, &failure, true);
		if (!again && tries.spent)
			exhausted(err);
		if (!again && (ret->fault == HR_HTTP_CANCELLED || c->failed == NULL ||
				  !c->failed(c->failed_arg, k++, err) || !may_repeat))
			return -1;
		if (!again)
			tries = (struct hr_rest_tries){.rules = rules, .watch_fd = req->watch_fd};
		hr_http_answer_done(ret);
	}
	return 0;
}
