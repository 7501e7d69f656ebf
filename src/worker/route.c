/* Dispatches a request to its handler (doc/http.md, "From a path to its handler"): checks the key,
 * then the path exactly as the client sent it, decoded once, then the method. nginx's normalised
 * path is not used. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "base/text/percent.h"
#include "base/text/text.h"
#include "base/text/utf8.h"
#include "worker/once.h"
#include "worker/page.h"
#include "worker/worker.h"

#define URL_SAFE "_.-~:/%#?=@[]!$&'()*+,;" /* Starlette does not escape these */

struct route {
	const char *path;
	const char *method; /* NULL: any method is allowed */
	bool open;          /* the path needs no key, whatever the method */
	hr_handler_fn *handle;
};

static const struct route routes[] = {
    {"/alive", "GET", true, hr_handle_alive},
    {"/server_info", "GET", true, hr_handle_info},
    {"/execute_action", "POST", false, hr_handle_execute},
    {"/list_files", "POST", false, hr_handle_list},
    {"/upload_file", "POST", false, hr_handle_upload},
    {"/download_files", "GET", false, hr_handle_download},
    {"/download_file", NULL, false, hr_handle_download_one},
    {"/update_mcp_server", "POST", false, hr_handle_mcp},
    {"/vscode/connection_token", "GET", false, hr_handle_token},
    {"/ready", "GET", false, hr_handle_ready},
    {"/metrics", "GET", false, hr_handle_metrics},
    /* documented in doc/live.md */
    {"/handrail/v1/alerts", "GET", false, hr_handle_alerts},
    {"/handrail/v1/sessions", "GET", false, hr_handle_live_sessions},
    {"/handrail/v1/create", "POST", false, hr_handle_live_create},
    {"/handrail/v1/run", "POST", false, hr_handle_live_run},
    {"/handrail/v1/kill", "POST", false, hr_handle_live_kill},
    {"/handrail/v1/session", "GET", false, hr_handle_live_session},
    {"/handrail/v1/commands", "GET", false, hr_handle_live_commands},
    {"/handrail/v1/cells", "GET", false, hr_handle_live_cells},
    {"/handrail/v1/network", "GET", false, hr_handle_live_network},
    {"/handrail/v1/output", "GET", false, hr_handle_live_output},
    {"/handrail/v1/browser/", "GET", false, hr_handle_live_browser},
    {"/handrail/v1/input", "POST", false, hr_handle_live_input},
    {"/handrail/v1/keys", "POST", false, hr_handle_live_keys},
    {"/handrail/v1/resize", "POST", false, hr_handle_live_resize},
    {"/handrail/v1/signal", "POST", false, hr_handle_live_signal},
    /* the page, documented in doc/page.md */
    {"/handrail/v1/signin", "POST", false, hr_handle_signin},
    {"/handrail/v1/signout", "POST", false, hr_handle_signout},
    {"/handrail/v1/events", "GET", false, hr_handle_events},
    {"/handrail/v1/me", "GET", false, hr_handle_me},
    {"/handrail/v1/ready", "GET", false, hr_handle_ready},
    {"/handrail/v1/metrics", "GET", false, hr_handle_metrics},
    {"/handrail/v1/usage", "GET", false, hr_handle_usage},
    {"/handrail/v1/upload", "POST", false, hr_handle_upload},
    {"/handrail/v1/download", "GET", false, hr_handle_download_one},
    {"/handrail/v1/stat", "GET", false, hr_handle_stat},
    {"/handrail/v1/pack", "GET", false, hr_handle_pack},
    {"/handrail/v1/unpack", "POST", false, hr_handle_unpack},
    {"/handrail/v1/log", "GET", false, hr_handle_log},
    {"/handrail/v1/files", "GET", false, hr_handle_files},
    {"/handrail/v1/rename", "POST", false, hr_handle_rename},
    {"/handrail/v1/remove", "POST", false, hr_handle_remove},
    /* documented in doc/agents.md; this handler checks the key itself */
    {"/handrail/mcp", "POST", true, hr_handle_door},
    /* nginx's auth_request, which keeps the method of the original request */
    {"/-/auth", NULL, false, hr_handle_auth},
    {"/-/bearer", NULL, false, hr_handle_bearer},
    {"/-/door", NULL, true, hr_handle_door_key},
    {"/-/swerex", NULL, true, hr_handle_rex_key},
    {"/-/port", NULL, false, hr_handle_port},
    /* nginx's answer when its limit is exceeded; it needs no key either */
    {"/-/refused", NULL, true, hr_handle_refused},
};

/* The file viewer needs no key: its base path is a secret. */
static const struct route viewer_routes[] = {
    {"/", "GET", true, hr_handle_viewer},
    {"/view", "GET", true, hr_handle_view},
};

static const struct route *
route_find(const struct hr_request *r, size_t len)
{
	const struct route *table = r->viewer ? viewer_routes : routes;
	size_t i, n = r->viewer ? sizeof(viewer_routes) / sizeof(viewer_routes[0])
				: sizeof(routes) / sizeof(routes[0]);

	for (i = 0; i < n; i++)
		if (strlen(table[i].path) == len &&
		    memcmp(table[i].path, hr_buf_str(r->path), len) == 0)
			return &table[i];
	return NULL;
}

int
hr_request_split(struct hr_request *r)
{
	size_t len = strcspn(r->uri, "?");

	r->query = r->uri[len] == '?' ? r->uri + len + 1 : "";
	hr_buf_reset(r->path);
	hr_percent_decode(r->path, r->uri, len, false);
	return r->path->fail == HR_OK ? 0 : -1;
}

static bool
query(const struct hr_request *r, const char *name, bool bytes, size_t which, struct hr_buf *ret)
{
	const char *p = r->query, *equals;
	size_t len, key_len, room = strlen(r->query) + 1;
	HR_BUF(text, room);
	bool found = false;
	size_t n = 0;

	for (; *p != '\0' && text.fail == HR_OK && n <= which; p += len + (p[len] == '&')) {
		len = strcspn(p, "&");
		equals = memchr(p, '=', len);
		key_len = equals != NULL ? (size_t)(equals - p) : len;
		hr_buf_reset(&text);
		hr_percent_decode(&text, p, key_len, true);
		if (text.len != strlen(name) || memcmp(hr_buf_str(&text), name, text.len) != 0)
			continue;
		found = which == SIZE_MAX || n == which;
		n++;
		hr_buf_reset(&text);
		if (equals != NULL)
			hr_percent_decode(&text, equals + 1, len - key_len - 1, true);
		hr_buf_reset(ret);
		if (bytes)
			hr_buf_add(ret, hr_buf_str(&text), text.len);
		else
			hr_utf8_replace(ret, hr_buf_str(&text), text.len);
	}
	if (text.fail != HR_OK)
		ret->fail = text.fail;
	return found;
}

bool
hr_request_query(const struct hr_request *r, const char *name, struct hr_buf *ret)
{
	return query(r, name, false, SIZE_MAX, ret);
}

bool
hr_request_query_bytes(const struct hr_request *r, const char *name, struct hr_buf *ret)
{
	return query(r, name, true, SIZE_MAX, ret);
}

bool
hr_request_query_at(const struct hr_request *r, const char *name, size_t which, struct hr_buf *ret)
{
	return query(r, name, true, which, ret);
}

/* Redirects "/alive/" and "/alive//" to "/alive". */
static bool
redirect(const struct hr_request *r, struct hr_answer *ret)
{
	const struct route *found;
	size_t len = r->path->len;

	while (len > 1 && r->path->p[len - 1] == '/')
		len--;
	found = len < r->path->len ? route_find(r, len) : NULL;
	if (found == NULL || found->method == NULL)
		return false;
	hr_request_redirect(r, found->path, ret);
	return true;
}

void
hr_request_redirect(const struct hr_request *r, const char *path, struct hr_answer *ret)
{
	hr_answer_reset(ret);
	ret->status = 307;
	ret->content_type = NULL;
	if (r->host[0] != '\0') {
		hr_percent_encode(&ret->location, r->scheme, URL_SAFE);
		hr_buf_adds(&ret->location, "://");
		hr_percent_encode(&ret->location, r->host, URL_SAFE);
	}
	if (r->admitted)
		hr_buf_adds(&ret->location, r->viewer_base);
	hr_buf_adds(&ret->location, path);
	if (r->query[0] != '\0') {
		hr_buf_addc(&ret->location, '?');
		hr_percent_encode(&ret->location, r->query, URL_SAFE);
	}
	hr_answer_settle(ret);
}

const char *
hr_request_bearer(const struct hr_request *r)
{
	static const char scheme[] = "Bearer ";

	return strncasecmp(r->authorization, scheme, sizeof(scheme) - 1) == 0
		   ? r->authorization + sizeof(scheme) - 1
		   : "";
}

bool
hr_request_from_here(const struct hr_request *r)
{
	const char *host;

	if (r->origin[0] == '\0' || r->cors)
		return true;
	host = strstr(r->origin, "://");
	if (host == NULL)
		return false;
	/* a rebound name under TLS does not match our certificate */
	return hr_text_is_here(host + 3) ||
	       (strcmp(r->scheme, "https") == 0 && strncmp(r->origin, "https://", 8) == 0 &&
		   strcasecmp(host + 3, r->host) == 0);
}

/* Returns true for a request of a page of another origin, which is refused if no key is set: any
 * page in a browser on this machine, even the agent's own, could run commands, for which it needs
 * no answer. nginx's internal requests never come from a page. */
static bool
is_foreign(const struct hr_worker *w, const struct hr_request *r, const struct route *to)
{
	return w->auth.head.count == 0 && strncmp(to->path, "/-/", 3) != 0 &&
	       strcmp(r->method, "POST") == 0 && !hr_request_from_here(r);
}

/* Returns true for the endpoints of SWE-ReX, which have a table of their own as those of OpenHands
 * V1 and of E2B. */
static bool
is_rex(const struct hr_request *r)
{
	static const char prefix[] = "/swerex/";

	return r->rex && r->path->len >= sizeof(prefix) - 1 &&
	       memcmp(r->path->p, prefix, sizeof(prefix) - 1) == 0;
}

/* Returns true for a path that OpenHands V1 has, too, whose refusals name the allowed method. */
static bool
is_shared(const struct hr_request *r)
{
	static const char *const shared[] = {"/alive", "/ready", "/server_info", NULL};

	return r->v1 && hr_is_one_of(hr_buf_str(r->path), shared);
}

/* Changes that a second try of nginx does not do again. Actions and uploads ask the journal
 * themselves. join: the handler can finish one that a killed worker had started, else the answer is
 * that nobody knows what came of it. */
static const struct change {
	hr_handler_fn *handle;
	bool join;
} changes[] = {
    {hr_handle_live_create, false},
    {hr_handle_live_kill, true},
    {hr_handle_live_input, false},
    {hr_handle_live_keys, false},
    {hr_handle_live_signal, false},
    {hr_handle_rename, true},
    {hr_handle_remove, true},
};

static void
handle(struct hr_worker *w, struct hr_request *r, hr_handler_fn *handler, struct hr_answer *ret)
{
	const struct change *end = changes + sizeof(changes) / sizeof(*changes), *c = changes;

	while (c < end && c->handle != handler)
		c++;
	if (c < end && !hr_once_try(w, r, c->join, ret))
		return;
	handler(w, r, ret);
	if (c < end)
		hr_once_leave(w, ret);
}

static void
route(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	const struct route *found = route_find(r, r->path->len);

	if (is_rex(r) || hr_v1_is(r) || (!r->viewer && hr_e2b_is(r))) {
		hr_worker_stage(w, HR_STAGE_RUNNING);
		(is_rex(r) ? hr_handle_rex : hr_v1_is(r) ? hr_handle_v1 : hr_handle_e2b)(w, r, ret);
	} else if (!r->viewer && (found == NULL || !found->open) &&
		   !hr_auth_passes(&w->auth, r->session_key) && !hr_page_passes(w, r)) {
		hr_answer_detail(ret, 403, "Invalid API Key");
	} else if (found == NULL) {
		if (!redirect(r, ret))
			hr_answer_detail(ret, 404, "Not Found");
	} else if (found->method != NULL && strcmp(found->method, r->method) != 0) {
		hr_answer_detail(ret, 405, "Method Not Allowed");
		if (r->viewer || is_shared(r))
			hr_answer_header(ret, "Allow", found->method);
	} else if (is_foreign(w, r, found)) {
		hr_answer_detail(ret, 403, "This origin is not allowed");
	} else {
		hr_worker_stage(w, HR_STAGE_RUNNING); /* a body read sets READING again */
		handle(w, r, found->handle, ret);
	}
}

/* Takes the viewer's base off the path. Returns false if the path is not below it. */
static bool
enter_viewer(const struct hr_request *r)
{
	size_t n = strlen(r->viewer_base);

	if (n == 0 || r->path->len <= n || r->path->p[n] != '/' ||
	    memcmp(r->path->p, r->viewer_base, n) != 0)
		return false;
	hr_buf_drop_front(r->path, n);
	return true;
}

void
hr_handle(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	hr_answer_reset(ret);
	r->path = &w->path;
	if (hr_request_split(r) < 0) {
		hr_answer_generic(ret);
	} else {
		r->admitted = r->viewer && enter_viewer(r);
		route(w, r, ret);
	}
	hr_answer_settle(ret);
}
