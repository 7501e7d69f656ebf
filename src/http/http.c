/* Performs one request at a time on a multi handle, so that the wait can include another
 * descriptor. */
#include "config.h"

#include "http/http_int.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "http/answer.h"
#include "http/near.h"

#define ANSWER_MAX (64u << 20)
#define FOREVER_MS 3600000
#define LATER_MS 2000 /* libcurl ends a silent request before that, and says how silent it was */

struct hr_http {
	CURLM *multi; /* NULL: no request has needed libcurl yet */
};

/* One request in progress. */
struct turn {
	const struct hr_http_request *req;
	struct hr_http_answer *a;
	CURL *easy;
	struct curl_slist *headers;
	curl_mime *form;
	struct curl_slist *connect_to;
	char text[CURL_ERROR_SIZE];
	bool gave_up; /* a callback has given up */
	struct hr_http_pace pace;
	uint64_t got; /* bytes of the answer's body */
};

struct hr_http *
hr_http_new(struct hr_err *err)
{
	struct hr_http *h = calloc(1, sizeof(*h));

	return h != NULL ? h : hr_err_null(err);
}

void
hr_http_free(struct hr_http *h)
{
	if (h == NULL)
		return;
	if (h->multi != NULL)
		(void)hr_curl.multi_cleanup(h->multi);
	free(h);
}

const char *
hr_http_fault_name(enum hr_http_fault f)
{
	static const char *const names[] = {
	    [HR_HTTP_NONE] = "",
	    [HR_HTTP_CONNECT] = "ConnectError",
	    [HR_HTTP_CONNECT_TIMEOUT] = "ConnectTimeout",
	    [HR_HTTP_READ] = "ReadError",
	    [HR_HTTP_READ_TIMEOUT] = "ReadTimeout",
	    [HR_HTTP_WRITE] = "WriteError",
	    [HR_HTTP_PROTOCOL] = "RemoteProtocolError",
	    [HR_HTTP_CANCELLED] = "Cancelled",
	    [HR_HTTP_OTHER] = "RequestError",
	};

	return names[f];
}

static size_t
on_body(char *p, size_t size, size_t n, void *arg)
{
	struct turn *t = arg;

	n *= size;
	t->got += n;
	(void)hr_curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->a->status);
	if (t->req->sink != NULL && t->a->status >= 200 && t->a->status <= 299) {
		if (hr_http_drain(t->req, p, n, &t->pace.away) < 0) {
			t->gave_up = true;
			return CURL_WRITEFUNC_ERROR;
		}
		return n;
	}
	hr_buf_add(&t->a->body, p, n);
	return t->a->body.fail == HR_OK ? n : CURL_WRITEFUNC_ERROR;
}

/* Stores the text after the status of "HTTP/1.1 404 Not Found", and the requested header. */
static size_t
on_header(char *p, size_t size, size_t n, void *arg)
{
	struct turn *t = arg;
	size_t skip = 0;
	unsigned blanks = 0;

	n *= size;
	if (t->req->header != NULL)
		(void)hr_http_field(p, n, t->req->header, t->a->header, sizeof(t->a->header));
	if (t->req->on_header != NULL)
		t->req->on_header(t->req->header_arg, p, n);
	if (n < 5 || memcmp(p, "HTTP/", 5) != 0)
		return n;
	for (; skip < n && blanks < 2; skip++)
		blanks += p[skip] == ' ';
	hr_http_keep(t->a->reason, sizeof(t->a->reason), p + skip, n - skip);
	return n;
}

static size_t
on_source(char *p, size_t size, size_t n, void *arg)
{
	struct turn *t = arg;
	ssize_t got = t->req->source(t->req->source_arg, p, size * n);

	if (got < 0) {
		t->gave_up = true;
		return CURL_READFUNC_ABORT;
	}
	return (size_t)got;
}

static int
on_transfer(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	const struct turn *t = arg;

	if (up >= down)
		t->req->progress(
		    t->req->progress_arg, (unsigned long long)up, (unsigned long long)up_all);
	else
		t->req->progress(
		    t->req->progress_arg, (unsigned long long)down, (unsigned long long)down_all);
	return 0;
}

static int
add_header(struct turn *t, const char *text)
{
	struct curl_slist *l = hr_curl.slist_append(t->headers, text);

	if (l == NULL)
		return -1;
	t->headers = l;
	return 0;
}

static int
set_headers(struct turn *t, CURL *e)
{
	const char *const *h;

	/* "Expect: 100-continue" costs a wait */
	if (add_header(t, "Expect:") != 0)
		return -1;
	if (t->req->source != NULL && add_header(t, "Transfer-Encoding: chunked") != 0)
		return -1;
	for (h = t->req->headers; h != NULL && *h != NULL; h++)
		if (add_header(t, *h) != 0)
			return -1;
	return hr_curl.easy_setopt(e, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK ? 0 : -1;
}

static int
set_body(struct turn *t, CURL *e)
{
	const struct hr_http_request *req = t->req;
	curl_mimepart *part;
	int bad = 0;

	if (req->file != NULL) {
		t->form = hr_curl.mime_init(e);
		part = t->form != NULL ? hr_curl.mime_addpart(t->form) : NULL;
		if (part == NULL)
			return -1;
		bad |= hr_curl.mime_name(part, "file") != CURLE_OK;
		bad |= hr_curl.mime_filedata(part, req->file) != CURLE_OK;
		if (req->file_name != NULL)
			bad |= hr_curl.mime_filename(part, req->file_name) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_MIMEPOST, t->form) != CURLE_OK;
	} else if (req->source != NULL) {
		bad |= hr_curl.easy_setopt(e, CURLOPT_POST, 1L) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_READFUNCTION, on_source) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_READDATA, t) != CURLE_OK;
	} else if (req->body != NULL) {
		bad |= hr_curl.easy_setopt(e, CURLOPT_POST, 1L) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_POSTFIELDS, req->body) != CURLE_OK;
		bad |= hr_curl.easy_setopt(
			   e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body_len) != CURLE_OK;
	} else if (strcmp(req->method, "POST") == 0) {
		bad |= hr_curl.easy_setopt(e, CURLOPT_POST, 1L) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_POSTFIELDS, "") != CURLE_OK;
	}
	bad |= hr_curl.easy_setopt(e, CURLOPT_CUSTOMREQUEST, req->method) != CURLE_OK;
	return bad ? -1 : 0;
}

static bool
set_pem(CURL *e, CURLoption option, const char *pem)
{
	struct curl_blob blob = {.flags = CURL_BLOB_COPY};

	if (pem == NULL)
		return true;
	blob.len = strlen(pem);
	memcpy(&blob.data, &pem, sizeof(pem)); /* curl copies the data */
	return hr_curl.easy_setopt(e, option, &blob) == CURLE_OK;
}

/* Returns true if the URL's host is this machine, which no proxy of another machine can reach. */
static bool
stays_here(const char *url)
{
	const char *host = strstr(url, "://");
	struct in_addr a;
	char name[64];

	if (host == NULL)
		return false;
	host += 3;
	if (strncmp(host, "[::1]", 5) == 0)
		return strchr(":/?#", host[5]) != NULL;
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, ":/?#"), host);
	if (memchr(host, '@', strcspn(host, "/?#")) != NULL)
		return false;
	return strcasecmp(name, "localhost") == 0 ||
	       (inet_pton(AF_INET, name, &a) == 1 && ntohl(a.s_addr) >> 24 == IN_LOOPBACKNET);
}

int
hr_http_set_peer(CURL *e, const struct hr_http_request *req, struct curl_slist **ret_connect_to)
{
	char to[512];
	int bad = 0;

	bad |= hr_curl.easy_setopt(e, CURLOPT_URL, req->url) != CURLE_OK;
	bad |= hr_curl.easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK;
	bad |= hr_curl.easy_setopt(e, CURLOPT_NOSIGNAL, 1L) != CURLE_OK;
	if (req->unix_socket != NULL) {
		bad |=
		    hr_curl.easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, req->unix_socket) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_PROXY, "") != CURLE_OK;
	}
	if (req->proxy != NULL || stays_here(req->url))
		bad |= hr_curl.easy_setopt(
			   e, CURLOPT_PROXY, req->proxy != NULL ? req->proxy : "") != CURLE_OK;
	if (req->connect_to != NULL) {
		(void)snprintf(to, sizeof(to), "::%s", req->connect_to);
		*ret_connect_to = hr_curl.slist_append(NULL, to);
		bad |= *ret_connect_to == NULL ||
		       hr_curl.easy_setopt(e, CURLOPT_CONNECT_TO, *ret_connect_to) != CURLE_OK;
	}
	if (req->total_s > 0)
		bad |= hr_curl.easy_setopt(e, CURLOPT_TIMEOUT, (long)req->total_s) != CURLE_OK;
	if (req->fresh)
		bad |= hr_curl.easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L) != CURLE_OK;
	if (req->insecure) {
		bad |= hr_curl.easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L) != CURLE_OK;
	}
	bad |= !set_pem(e, CURLOPT_CAINFO_BLOB, req->ca_pem) ||
	       !set_pem(e, CURLOPT_SSLCERT_BLOB, req->cert_pem) ||
	       !set_pem(e, CURLOPT_SSLKEY_BLOB, req->key_pem);
	return bad ? -1 : 0;
}

static int
set_all(struct turn *t, CURL *e)
{
	const struct hr_http_request *req = t->req;
	int bad = 0;

	bad |= hr_curl.easy_setopt(e, CURLOPT_ERRORBUFFER, t->text) != CURLE_OK;
	bad |= hr_curl.easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body) != CURLE_OK;
	bad |= hr_curl.easy_setopt(e, CURLOPT_WRITEDATA, t) != CURLE_OK;
	bad |= hr_curl.easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header) != CURLE_OK;
	bad |= hr_curl.easy_setopt(e, CURLOPT_HEADERDATA, t) != CURLE_OK;
	if (req->progress != NULL) {
		bad |= hr_curl.easy_setopt(e, CURLOPT_NOPROGRESS, 0L) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_transfer) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_XFERINFODATA, t) != CURLE_OK;
	}
	if (req->http2)
		bad |= hr_curl.easy_setopt(e, CURLOPT_HTTP_VERSION,
			   strncmp(req->url, "https:", 6) == 0
			       ? (long)CURL_HTTP_VERSION_2TLS
			       : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE) != CURLE_OK;
	if (req->timeout_s > 0) {
		bad |= hr_curl.easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)req->timeout_s) !=
		       CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L) != CURLE_OK;
		bad |= hr_curl.easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)req->timeout_s) !=
		       CURLE_OK;
	}
	return bad || hr_http_set_peer(e, req, &t->connect_to) != 0 || set_body(t, e) != 0 ||
		       set_headers(t, e) != 0
		   ? -1
		   : 0;
}

/* Returns the milliseconds until the request is late; 0: it is. */
static int
left_ms(struct turn *t)
{
	const int64_t now = hr_now_ms();
	curl_off_t sent = 0, all = -1; /* -1: unknown */
	long head = 0;
	int64_t end;

	(void)hr_curl.easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	(void)hr_curl.easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T, &all);
	(void)hr_curl.easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &head);
	/* libcurl 8.14 counts the body as part of the request's size, and 7.88 does not */
	end = hr_http_late_at(
	    &t->pace, t->req, t->a, (uint64_t)(sent > 0 ? sent : head), sent >= all, t->got, now);
	end += LATER_MS;
	return end == LATER_MS || end - now > FOREVER_MS ? FOREVER_MS
	       : end > now                               ? (int)(end - now)
							 : 0;
}

/* Returns -1 if the request was given up or waiting failed; otherwise *ret_code is curl's
 * result. */
static int
wait_for(struct hr_http *h, struct turn *t, CURLcode *ret_code, bool *ret_cancelled)
{
	const struct hr_http_request *req = t->req;
	struct curl_waitfd watch = {.fd = req->watch_fd, .events = CURL_WAIT_POLLIN};
	unsigned n = req->watch_fd >= 0 ? 1 : 0;
	int running = 1, left, patience;
	CURLMsg *m;

	for (;;) {
		if (hr_curl.multi_perform(h->multi, &running) != CURLM_OK)
			return -1;
		while ((m = hr_curl.multi_info_read(h->multi, &left)) != NULL) {
			if (m->msg == CURLMSG_DONE) {
				*ret_code = m->data.result;
				return 0;
			}
		}
		patience = left_ms(t);
		if (patience == 0) {
			*ret_code = CURLE_OPERATION_TIMEDOUT;
			return 0;
		}
		watch.revents = 0;
		if (hr_curl.multi_poll(h->multi, &watch, n, patience, NULL) != CURLM_OK)
			return -1;
		if (n > 0 && watch.revents != 0) {
			*ret_cancelled = true;
			return -1;
		}
	}
}

enum hr_http_fault
hr_http_fault_of(CURLcode code, CURL *e)
{
	long sent = 0;

	switch (code) {
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION: return HR_HTTP_CONNECT;
	case CURLE_RECV_ERROR: return HR_HTTP_READ;
	case CURLE_SEND_ERROR:
	case CURLE_SEND_FAIL_REWIND: return HR_HTTP_WRITE;
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY: return HR_HTTP_PROTOCOL;
	case CURLE_OPERATION_TIMEDOUT:
		/* A reused connection took no time; a connection may hang before TLS is ready. */
		(void)hr_curl.easy_getinfo(e, CURLINFO_REQUEST_SIZE, &sent);
		return sent > 0 ? HR_HTTP_READ_TIMEOUT : HR_HTTP_CONNECT_TIMEOUT;
	default: return HR_HTTP_OTHER;
	}
}

static int
failed(struct turn *t, CURL *e, CURLcode code, struct hr_err *err)
{
	enum hr_errc c = HR_E_GONE;

	if (t->gave_up)
		t->a->fault = HR_HTTP_CANCELLED;
	else
		t->a->fault = hr_http_fault_of(code, e);
	t->a->untrusted = code == CURLE_PEER_FAILED_VERIFICATION;
	if (t->a->fault == HR_HTTP_READ_TIMEOUT || t->a->fault == HR_HTTP_CONNECT_TIMEOUT)
		c = HR_E_TIMEOUT;
	else if (code == CURLE_OUT_OF_MEMORY)
		c = HR_E_NOMEM;
	else if (t->a->body.fail == HR_E_TOOLARGE)
		return hr_err_set(err, HR_E_TOOLARGE, "the answer is too long");
	return hr_err_set(err, c, "%s", t->text[0] != '\0' ? t->text : hr_curl.easy_strerror(code));
}

static int
perform(struct hr_http *h, struct turn *t, CURL *e, struct hr_err *err)
{
	CURLcode code = CURLE_OK;
	bool cancelled = false;
	int r;

	if (hr_curl.multi_add_handle(h->multi, e) != CURLM_OK)
		return hr_err_nomem(err);
	r = wait_for(h, t, &code, &cancelled);
	(void)hr_curl.multi_remove_handle(h->multi, e);
	if (cancelled) {
		t->a->fault = HR_HTTP_CANCELLED;
		return hr_err_set(err, HR_E_GONE, "given up");
	}
	if (r != 0) {
		t->a->fault = HR_HTTP_OTHER;
		return hr_err_set(err, HR_E_SYS, "libcurl cannot wait");
	}
	if (code != CURLE_OK)
		return failed(t, e, code, err);
	(void)hr_curl.easy_getinfo(e, CURLINFO_RESPONSE_CODE, &t->a->status);
	return 0;
}

static int
by_curl(struct hr_http *h, const struct hr_http_request *req, struct hr_http_answer *ret,
    struct hr_err *err)
{
	struct turn t = {.req = req, .a = ret};
	int r = -1;

	if (hr_curl_load(err) != 0)
		return -1;
	if (h->multi == NULL)
		h->multi = hr_curl.multi_init();
	if (h->multi != NULL)
		t.easy = hr_curl.easy_init();
	if (t.easy == NULL || set_all(&t, t.easy) != 0)
		(void)hr_err_nomem(err);
	else if ((r = perform(h, &t, t.easy, err)) == 0)
		ret->fault = HR_HTTP_NONE;
	hr_curl.easy_cleanup(t.easy);
	hr_curl.mime_free(t.form);
	hr_curl.slist_free_all(t.headers);
	hr_curl.slist_free_all(t.connect_to);
	return r;
}

int
hr_http_do(struct hr_http *h, const struct hr_http_request *req, struct hr_http_answer *ret,
    struct hr_err *err)
{
	memset(ret, 0, sizeof(*ret));
	hr_buf_init(&ret->body, req->answer_max > 0 ? req->answer_max : ANSWER_MAX);
	ret->fault = HR_HTTP_OTHER;
	return hr_near_can(req) ? hr_near_do(req, ret, err) : by_curl(h, req, ret, err);
}

void
hr_http_answer_done(struct hr_http_answer *a)
{
	hr_buf_done(&a->body);
}

long
hr_http_seconds(const char *retry_after)
{
	char *end;
	long n = -1;
	time_t at;

	while (isspace((unsigned char)*retry_after))
		retry_after++;
	if (isdigit((unsigned char)*retry_after)) {
		n = strtol(retry_after, &end, 10);
		return *end == '\0' ? n : -1;
	}
	at = *retry_after != '\0' && hr_curl_load(NULL) == 0 ? hr_curl.getdate(retry_after, NULL)
							     : -1;
	if (at >= 0)
		n = at > time(NULL) ? (long)(at - time(NULL)) : 0;
	return n;
}
