/* Sends requests with retries, reads lists in pages, and resumes watches. */
#include "config.h"

#include "host/kubernetes/kube.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "base/text/text.h"
#include "proto/json.h"

#define CALL_TIMEOUT_S 30
#define CONNECT_TIMEOUT_S 10
#define PATIENCE_MS 60000
#define ANSWER_MAX (32u << 20)
#define URL_TEXT_MAX 16384
#define PAGE 250
#define PAGES_MAX 4000 /* a million objects, so that a server cannot hold a list forever */
#define ATTEMPTS 100   /* never reached, since the time limit ends the retries */

/* the rules: every request may be repeated, since an object has a name and exists only once */
static const struct hr_rest_rule rules[] = {
    {.failures = HR_REST_UNSENT | HR_REST_LOST | HR_REST_FAILED,
	.attempts = ATTEMPTS,
	.first_ms = 250,
	.most_ms = 4000,
	.jitter_percent = 50},
    {.failures = HR_REST_LIMITED,
	.attempts = ATTEMPTS,
	.first_ms = 1000,
	.most_ms = 8000,
	.jitter_percent = 50},
    {0},
};

static const struct {
	const char *method, *type, *query;
} verbs[] = {
    [HR_KUBE_GET] = {"GET", NULL, ""},
    [HR_KUBE_CREATE] = {"POST", "Content-Type: application/json", ""},
    [HR_KUBE_MERGE] = {"PATCH", "Content-Type: application/merge-patch+json", ""},
    [HR_KUBE_APPLY] = {"PATCH", "Content-Type: application/apply-patch+yaml",
	"?fieldManager=handrail&force=true"},
    [HR_KUBE_DELETE] = {"DELETE", "Content-Type: application/json", ""},
};

/* Applies tls-server-name: connects to the server's address, but verifies against tls_name; a path
 * in the URL, as cluster proxies have it, stays. */
static int
rename_server(struct hr_kube *k, struct hr_err *err)
{
	const char *server = k->login.server, *path, *port;
	bool tls = strncmp(server, "https://", 8) == 0;
	HR_FREE char *host = NULL;

	server += tls ? 8 : 7;
	path = server + strcspn(server, "/?#");
	host = strndup(server, (size_t)(path - server));
	if (host == NULL)
		return hr_err_nomem(err);
	port = strrchr(host, ':');
	if (port != NULL && strchr(port, ']') != NULL)
		port = NULL; /* the colon belongs to an IPv6 address */
	if (hr_text_setf(&k->base, err, "%s%s%s%s", tls ? "https://" : "http://", k->login.tls_name,
		port != NULL ? port : "", path) != 0)
		return -1;
	return hr_text_setf(&k->connect_to, err, "%s%s", host,
	    port != NULL ? ""
	    : tls        ? ":443"
			 : ":80");
}

int
hr_kube_init(struct hr_kube *k, const struct hr_config *c, const char *const *env,
    unsigned patience_ms, struct hr_err *err)
{
	/* a caller's time limit covers the whole call, even without an answer */
	struct hr_rest_options o = {.rules = rules,
	    .timeout_s = patience_ms > 0 && patience_ms < CALL_TIMEOUT_S * 1000
			     ? (patience_ms + 999) / 1000
			     : CALL_TIMEOUT_S,
	    .deadline_ms = patience_ms,
	    .patience_ms = patience_ms > 0 ? patience_ms : PATIENCE_MS,
	    .answer_max = ANSWER_MAX,
	    .watch_fd = -1};

	memset(k, 0, sizeof(*k));
	k->watch_fd = -1;
	if (hr_kube_login_init(&k->login, c, env, err) != 0)
		return -1;
	if (k->login.tls_name != NULL ? rename_server(k, err) != 0
				      : (k->base = strdup(k->login.server)) == NULL) {
		hr_kube_done(k);
		return hr_err_nomem(err);
	}
	o.url = k->base;
	k->rest = hr_rest_new(&o, err);
	if (k->rest != NULL &&
	    hr_rest_header(k->rest, "User-Agent", "handrail/" PACKAGE_VERSION, false, err) == 0)
		return 0;
	hr_kube_done(k);
	return -1;
}

void
hr_kube_done(struct hr_kube *k)
{
	hr_rest_free(k->rest);
	hr_kube_login_done(&k->login);
	free(k->base);
	free(k->connect_to);
	memset(k, 0, sizeof(*k));
}

void
hr_kube_give_up(struct hr_kube *k, int watch_fd)
{
	k->watch_fd = watch_fd;
	hr_rest_watch(k->rest, watch_fd);
}

/* ---- one request ---- */

static int
present(struct hr_kube *k, bool now, struct hr_err *err)
{
	struct hr_rest_peer peer;
	HR_FREE char *bearer = NULL;
	int r;

	if (hr_kube_login_renew(&k->login, now, err) != 0)
		return -1;
	peer = hr_kube_login_peer(&k->login);
	peer.connect_to = k->connect_to;
	hr_rest_peer(k->rest, &peer);
	if (k->login.token == NULL)
		return hr_rest_header(k->rest, "Authorization", NULL, true, err);
	if (asprintf(&bearer, "Bearer %s", k->login.token) < 0)
		return hr_err_nomem(err);
	r = hr_rest_header(k->rest, "Authorization", bearer, true, err);
	explicit_bzero(bearer, strlen(bearer));
	return r;
}

/* Returns true for the errors that rest.h counts as the network's. */
static bool
is_lost(const struct hr_err *e)
{
	return e->code == HR_E_HTTP_NETWORK || e->code == HR_E_HTTP_TIMEOUT ||
	       e->code == HR_E_PROTO;
}

/* Sends a request once. A refusal is in k->status, and explained in *err. *lost is set if there was
 * no answer, or an incomplete one. */
static int
ask(struct hr_kube *k, const struct hr_rest_call *c, struct hr_rest_answer *a, bool *lost,
    struct hr_err *err)
{
	struct hr_err e = {0};
	int r = -1;
	int i;

	*lost = false;
	memset(a, 0, sizeof(*a));
	for (i = 0; i < 2; i++) {
		memset(&k->status, 0, sizeof(k->status));
		/* after a refusal, the credentials may only be stale */
		if (present(k, i > 0, err) != 0)
			return -1;
		hr_rest_answer_done(a);
		r = hr_rest_call(k->rest, c, a, &e);
		if (r == 0 || e.code != HR_E_HTTP_STATUS || e.status != 401)
			break;
	}
	if (r == 0)
		return 0;
	if (e.code == HR_E_HTTP_STATUS) {
		hr_kube_status_read(&k->status, e.status, hr_buf_str(&a->body), a->body.len);
		return hr_kube_status_error(&k->status, err);
	}
	*lost = is_lost(&e);
	if (*lost)
		return hr_err_set(err, HR_E_UNAVAILABLE, "the API server %s cannot be reached: %s",
		    k->login.server, e.msg);
	return hr_err_pass(err, &e);
}

int
hr_kube_call(struct hr_kube *k, enum hr_kube_verb verb, const char *path, const char *body,
    struct json_object **ret, struct hr_err *err)
{
	const char *const headers[] = {verbs[verb].type, NULL};
	struct hr_rest_call c = {.method = verbs[verb].method,
	    .body = body,
	    .body_len = body != NULL ? strlen(body) : 0,
	    .headers = body != NULL ? headers : NULL,
	    .idempotent = true};
	HR_CLEAN(hr_rest_answer_done) struct hr_rest_answer a = {0};
	HR_BUF(url, URL_TEXT_MAX);
	bool lost;
	int r;

	hr_buf_adds(&url, path);
	hr_buf_adds(&url, verbs[verb].query);
	c.path = hr_buf_str(&url);
	r = hr_buf_check(&url, NULL) == 0 ? ask(k, &c, &a, &lost, err) : hr_err_nomem(err);
	if (ret != NULL && r == 0) {
		*ret = a.json;
		a.json = NULL;
	}
	return r;
}

/* ---- objects ---- */

const char *
hr_kube_label(struct json_object *o, const char *name, const char *otherwise)
{
	return hr_json_text_or(hr_json_at(hr_json_at(o, "metadata"), "labels"), name, otherwise);
}

const char *
hr_kube_note(struct json_object *o, const char *name, const char *otherwise)
{
	return hr_json_text_or(
	    hr_json_at(hr_json_at(o, "metadata"), "annotations"), name, otherwise);
}

/* ---- lists ---- */

/* Returns true if the answer is a list; Go writes null for an empty one. Anything else must not
 * pass for a list without items, because callers forget the objects that a list does not have. */
static bool
is_list(struct json_object *page)
{
	struct json_object *items = NULL;

	return json_object_object_get_ex(page, "items", &items) &&
	       (items == NULL || json_object_is_type(items, json_type_array));
}

static int
each(struct json_object *page, hr_kube_item_fn *fn, void *arg)
{
	struct json_object *items = hr_json_at(page, "items");
	int r = 0;
	size_t i;

	for (i = 0; r == 0 && i < hr_json_count(items); i++)
		r = fn(arg, hr_json_entry(items, i));
	return r;
}

int
hr_kube_list(struct hr_kube *k, const char *path, const char *selector, hr_kube_item_fn *fn,
    void *arg, char *version, size_t cap, struct hr_err *err)
{
	bool more = true;
	HR_BUF(url, URL_TEXT_MAX);
	int stop = 0, pages = 0;

	hr_buf_addf(&url, "%s?limit=%d&%s", path, PAGE, selector);
	while (stop == 0 && more) {
		HR_PUT struct json_object *page = NULL;
		struct json_object *meta;
		const char *next;

		if (hr_buf_check(&url, NULL) != 0)
			return hr_err_nomem(err);
		if (pages++ == PAGES_MAX)
			return hr_err_set(err, HR_E_TOOLARGE,
			    "the API server %s sends a list of more than %d pages", k->login.server,
			    PAGES_MAX);
		if (hr_kube_call(k, HR_KUBE_GET, hr_buf_str(&url), NULL, &page, err) != 0)
			return -1;
		if (!is_list(page))
			return hr_err_set(err, HR_E_PROTO,
			    "the API server %s sent no list for %.200s", k->login.server, path);
		meta = hr_json_at(page, "metadata");
		next = hr_json_text_or(meta, "continue", "");
		if (version != NULL)
			(void)snprintf(
			    version, cap, "%s", hr_json_text_or(meta, "resourceVersion", ""));
		stop = each(page, fn, arg);
		if (stop < 0)
			return hr_err_nomem(err);
		more = *next != '\0';
		hr_buf_reset(&url);
		hr_buf_addf(&url, "%s?limit=%d&%s&continue=", path, PAGE, selector);
		hr_http_escape(&url, next);
	}
	return 0;
}

/* ---- watches ---- */

int
hr_kube_watch_line(const char *p, size_t len, enum hr_kube_event *ret_event,
    struct json_object **ret_object, char *version, size_t cap, struct hr_kube_status *ret)
{
	struct json_object *object;
	HR_PUT struct json_object *o = NULL;
	const char *type, *at;
	int r = 1;

	memset(ret, 0, sizeof(*ret));
	if (hr_json_decode_foreign(p, len, &o, NULL) != 0) {
		(void)snprintf(ret->message, sizeof(ret->message), "an event that is not JSON");
		return -1;
	}
	type = hr_json_text_or(o, "type", "");
	object = hr_json_at(o, "object");
	at = hr_json_text_or(hr_json_at(object, "metadata"), "resourceVersion", "");
	if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
		*ret_event = HR_KUBE_THERE;
	else if (strcmp(type, "DELETED") == 0)
		*ret_event = HR_KUBE_DELETED;
	else
		r = strcmp(type, "BOOKMARK") == 0 ? 0 : -1;
	if (r < 0 && !hr_kube_status_of(ret, object))
		(void)snprintf(ret->message, sizeof(ret->message), "an event of no known type");
	if (r == 1 && !json_object_is_type(object, json_type_object)) {
		(void)snprintf(ret->message, sizeof(ret->message), "an event without an object");
		r = -1;
	}
	if (r >= 0 && *at != '\0')
		(void)snprintf(version, cap, "%s", at);
	if (r == 1)
		*ret_object = json_object_get(object);
	return r;
}

struct watch {
	hr_kube_event_fn *fn;
	void *arg;
	char version[128];
	int stop;    /* result of fn */
	bool forgot; /* the server has dropped the version: list again */
	bool heard;  /* the present stream delivered something */
};

static int
on_line(void *arg, const char *p, size_t len)
{
	struct hr_kube_status status;
	enum hr_kube_event event;
	HR_PUT struct json_object *o = NULL;
	struct watch *w = arg;
	int r;

	if (len == 0)
		return 0;
	r = hr_kube_watch_line(p, len, &event, &o, w->version, sizeof(w->version), &status);
	w->heard |= r >= 0;
	w->forgot |= r < 0;
	if (r == 1)
		w->stop = w->fn(w->arg, event, o);
	return r < 0 || w->stop != 0;
}

static int
on_item(void *arg, struct json_object *item)
{
	struct watch *w = arg;

	w->stop = w->fn(w->arg, HR_KUBE_THERE, item);
	return w->stop != 0;
}

static int
list_first(
    struct hr_kube *k, struct watch *w, const char *path, const char *selector, struct hr_err *err)
{
	int r;

	w->stop = w->fn(w->arg, HR_KUBE_LIST, NULL);
	if (w->stop != 0)
		return 0;
	r = hr_kube_list(k, path, selector, on_item, w, w->version, sizeof(w->version), err);
	/* the server has dropped the version between two pages */
	if (r != 0 && k->status.code == 410) {
		w->forgot = true;
		w->heard = false;
		return 0;
	}
	if (r == 0 && w->stop == 0)
		w->stop = w->fn(w->arg, HR_KUBE_LISTED, NULL);
	return r;
}

/* Reads one stream. Returns 0 if it ended and can resume, or -1. */
static int
stream(
    struct hr_kube *k, struct watch *w, const char *path, const char *selector, struct hr_err *err)
{
	struct hr_rest_call c = {.method = "GET", .line = on_line, .arg = w, .endless = true};
	HR_BUF(url, URL_TEXT_MAX);
	HR_CLEAN(hr_rest_answer_done) struct hr_rest_answer a = {0};
	bool lost = false;
	int r;

	hr_buf_addf(&url, "%s?watch=true&allowWatchBookmarks=true&resourceVersion=", path);
	hr_http_escape(&url, w->version);
	hr_buf_addf(&url, "&%s", selector);
	c.path = hr_buf_str(&url);
	w->heard = false;
	r = hr_buf_check(&url, NULL) == 0 ? ask(k, &c, &a, &lost, err) : hr_err_nomem(err);
	if (r != 0 && k->status.code == 410)
		w->forgot = true;
	/* a cut stream counts as one that ended */
	if (w->stop != 0 || w->forgot || (lost && w->heard))
		r = 0;
	return r;
}

int
hr_kube_watch(struct hr_kube *k, const char *path, const char *selector, hr_kube_event_fn *fn,
    void *arg, struct hr_err *err)
{
	struct watch w = {.fn = fn, .arg = arg, .forgot = true};
	unsigned empty = 0;
	int r = 0;

	while (r == 0 && w.stop == 0) {
		if (w.forgot) {
			w.forgot = false;
			r = list_first(k, &w, path, selector, err);
		}
		if (r == 0 && w.stop == 0 && !w.forgot)
			r = stream(k, &w, path, selector, err);
		/* slows down if the stream ends at once, again and again */
		empty = w.heard ? 0 : empty + 1;
		if (r == 0 && w.stop == 0 && empty > 1 &&
		    hr_rest_wait(k->watch_fd, empty < 10 ? empty * 100 : 1000))
			r = hr_err_set(err, HR_E_RUNTIME, "given up");
	}
	return r == 0 ? 1 : -1;
}

/* ---- logs ---- */

int
hr_kube_logs(struct hr_kube *k, const char *pod_path, bool follow, const char *query,
    hr_line_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_rest_call c = {.method = "GET", .line = fn, .arg = arg, .endless = follow};
	HR_BUF(url, URL_TEXT_MAX);
	HR_CLEAN(hr_rest_answer_done) struct hr_rest_answer a = {0};
	bool lost;

	hr_buf_addf(&url, "%s/log?follow=%s&container=runtime%s", pod_path,
	    follow ? "true" : "false", query);
	c.path = hr_buf_str(&url);
	return hr_buf_check(&url, NULL) == 0 ? ask(k, &c, &a, &lost, err) : hr_err_nomem(err);
}

/* ---- sockets ---- */

int
hr_kube_may(struct hr_kube *k, const char *ns, const char *verb, const char *group,
    const char *resource, const char *sub, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	char body[512];

	(void)snprintf(body, sizeof(body),
	    "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\","
	    "\"spec\":{\"resourceAttributes\":{\"namespace\":\"%s\",\"verb\":\"%s\","
	    "\"group\":\"%s\",\"resource\":\"%s\",\"subresource\":\"%s\"}}}",
	    ns, verb, group, resource, sub);
	if (hr_kube_call(k, HR_KUBE_CREATE,
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body, &o, err) != 0)
		return -1;
	return hr_json_true_at(hr_json_at(o, "status"), "allowed");
}

struct hr_ws *
hr_kube_socket(struct hr_kube *k, const char *path, const char *protocols, struct hr_err *err)
{
	struct hr_http_request r = {.timeout_s = CONNECT_TIMEOUT_S, .watch_fd = k->watch_fd};
	const char *headers[] = {"User-Agent: handrail/" PACKAGE_VERSION, NULL, NULL};
	struct hr_ws_refusal refusal;
	struct hr_rest_peer peer;
	struct hr_err he = {0};
	struct hr_ws *w = NULL;
	char *bearer = NULL;
	HR_BUF(url, URL_TEXT_MAX);
	int i;

	hr_buf_addf(&url, "%s%s", k->base, path);
	r.url = hr_buf_str(&url);
	r.headers = headers;
	r.connect_to = k->connect_to;
	memset(&k->status, 0, sizeof(k->status));
	for (i = 0; i < 2 && w == NULL && (i == 0 || k->status.code == 401); i++) {
		if (hr_kube_login_renew(&k->login, i > 0, err) != 0)
			break;
		free(bearer);
		if (hr_buf_check(&url, NULL) != 0 ||
		    (k->login.token != NULL &&
			asprintf(&bearer, "Authorization: Bearer %s", k->login.token) < 0)) {
			bearer = NULL;
			(void)hr_err_nomem(err);
			break;
		}
		headers[1] = bearer;
		peer = hr_kube_login_peer(&k->login);
		r.insecure = peer.insecure;
		r.ca_pem = peer.ca_pem;
		r.cert_pem = peer.cert_pem;
		r.key_pem = peer.key_pem;
		r.proxy = peer.proxy;
		w = hr_ws_open(&r, protocols, &refusal, &he);
		memset(&k->status, 0, sizeof(k->status));
		if (w == NULL && refusal.fault == HR_HTTP_NONE && refusal.status > 0) {
			hr_kube_status_read(&k->status, (int)refusal.status,
			    hr_buf_str(&refusal.body), refusal.body.len);
			(void)hr_kube_status_error(&k->status, err);
		} else if (w == NULL) {
			(void)hr_err_set(err, HR_E_UNAVAILABLE,
			    "the API server %s cannot be reached: %s", k->login.server, he.msg);
		}
		hr_ws_refusal_done(&refusal);
	}
	free(bearer);
	return w;
}
