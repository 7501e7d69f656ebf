/* Routes requests of the E2B API to a sandbox: finds it by the headers E2b-Sandbox-Id and
 * E2b-Sandbox-Port, by a host name PORT-ID.DOMAIN or by a signature, checks the client's token, and
 * answers in the sandbox's name where it cannot. */
#include "config.h"

#include "fleet/e2b/e2b.h"
#include "fleet/edge.h"
#include "fleet/fleet_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <json-c/json.h>

#include "proto/json.h"

#define ID_LEN (HR_FLEET_ID - 1)
#define SEARCH_PAGE 100 /* rows that a search reads at once */

struct target {
	char id[HR_FLEET_ID];
	int port;
};

enum kind {
	OTHER, /* no request of this API */
	WRONG, /* no sandbox is named; the answer says why */
	NAMED,
};

/* Answers a text. */
static void
say_text(struct hr_fleet_answer *a, int status, const char *text)
{
	a->status = status;
	a->type = "text/plain; charset=utf-8";
	hr_buf_reset(&a->body);
	hr_buf_adds(&a->body, text);
}

/* Answers for a sandbox; port 0: none. */
static void
say_of(struct hr_fleet_answer *a, int status, const char *id, const char *message, int port)
{
	a->status = status;
	a->type = "application/json; charset=utf-8";
	hr_buf_reset(&a->body);
	hr_buf_addc(&a->body, '{');
	hr_json_put_named(&a->body, "sandboxId", id);
	hr_json_put_named(&a->body, "message", message);
	if (port > 0)
		hr_buf_addf(&a->body, ",\"port\":%d", port);
	hr_buf_addf(&a->body, ",\"code\":%d}", status);
}

static void
say_gone(struct hr_fleet_answer *a, const char *id)
{
	say_of(a, 502, id, "The sandbox was not found", 0);
}

/* ---- which sandbox ---- */

static int
port_of(const char *text, size_t len)
{
	char *end;
	long n = len > 0 && len < 6 && isdigit((unsigned char)*text) ? strtol(text, &end, 10) : 0;

	return n > 0 && n < 65536 && end == text + len ? (int)n : 0;
}

static bool
take_id(struct target *t, const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!islower((unsigned char)text[i]) && !isdigit((unsigned char)text[i]))
			return false;
	/* another length is that of no sandbox */
	(void)snprintf(t->id, sizeof(t->id), "%.*s", len == ID_LEN ? ID_LEN : 1, text);
	return len > 0;
}

static enum kind
by_header(const struct hr_fleet_request *q, struct target *t, struct hr_fleet_answer *a)
{
	t->port = port_of(q->e2b_port, strlen(q->e2b_port));
	if (*q->e2b_id != '\0' && take_id(t, q->e2b_id, strlen(q->e2b_id)) && t->port > 0)
		return NAMED;
	say_text(a, 400,
	    "E2b-Sandbox-Id must be the id of a sandbox, and E2b-Sandbox-Port a port number\n");
	return WRONG;
}

/* Parses "PORT-ID.DOMAIN" and the old "PORT-ID-CLIENT.DOMAIN". */
static enum kind
by_name(const struct hr_fleet_api *api, const char *host, struct target *t)
{
	const char *dash = strchr(host, '-'), *dot = strchr(host, '.');
	size_t n = api->domain != NULL ? strlen(api->domain) : 0, len;

	if (n == 0 || dash == NULL || dot == NULL || dot < dash ||
	    strncasecmp(dot + 1, api->domain, n) != 0 || (dot[1 + n] != '\0' && dot[1 + n] != ':'))
		return OTHER;
	t->port = port_of(host, (size_t)(dash - host));
	len = strcspn(dash + 1, "-.");
	return t->port > 0 && len == ID_LEN && take_id(t, dash + 1, len) ? NAMED : OTHER;
}

void
hr_e2b_signed_read(const struct hr_fleet_request *q, struct hr_e2b_signed *s)
{
	const char *query = strchr(q->uri, '?'), *p;

	hr_buf_init(&s->path, HR_E2B_QUERY_MAX);
	hr_buf_init(&s->user, HR_E2B_QUERY_MAX);
	hr_buf_init(&s->signature, HR_E2B_QUERY_MAX);
	hr_buf_init(&s->expiry, HR_E2B_QUERY_MAX);
	query = query != NULL ? query + 1 : "";
	s->operation = strcmp(q->method, "POST") == 0 ? "write" : "read";
	/* the sandbox would decode a name, and read another value than the one that was signed */
	for (p = query; p != NULL; p = strchr(p, '&') != NULL ? strchr(p, '&') + 1 : NULL)
		if (strcspn(p, "%+") < strcspn(p, "=&"))
			return;
	(void)hr_fleet_query(&s->path, query, "path");
	(void)hr_fleet_query(&s->user, query, "username");
	(void)hr_fleet_query(&s->signature, query, "signature");
	(void)hr_fleet_query(&s->expiry, query, "signature_expiration");
}

void
hr_e2b_signed_done(struct hr_e2b_signed *s)
{
	hr_buf_done(&s->path);
	hr_buf_done(&s->user);
	hr_buf_done(&s->signature);
	hr_buf_done(&s->expiry);
}

bool
hr_e2b_signed_by(const struct hr_e2b_signed *s, const char *token)
{
	char right[HR_E2B_SIGNATURE];

	hr_e2b_sign(hr_buf_str(&s->path), s->operation, hr_buf_str(&s->user), token,
	    hr_buf_str(&s->expiry), right);
	return hr_fleet_same(right, hr_buf_str(&s->signature));
}

struct search {
	const struct hr_e2b_signed *s;
	char id[HR_FLEET_ID]; /* the sandbox whose token signed it; "": none so far */
	char last[HR_FLEET_ID];
	unsigned n; /* rows of this page */
};

static void
try_row(void *arg, const struct hr_fleet_row *row)
{
	struct search *s = arg;

	s->n++;
	memcpy(s->last, row->id, sizeof(s->last));
	if (s->id[0] == '\0' && row->key != 0 && hr_fleet_has_session(row->state) &&
	    hr_e2b_signed_by(s->s, row->session_key))
		memcpy(s->id, row->id, sizeof(s->id));
}

static bool
is_path(const char *uri, const char *path)
{
	size_t n = strlen(path);

	return strncmp(uri, path, n) == 0 && (uri[n] == '\0' || uri[n] == '?');
}

/* Finds the sandbox whose token signed a URL that names none. */
static enum kind
by_signature(const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct target *t,
    struct hr_fleet_answer *a)
{
	struct hr_fleet *f = api->fleet;
	HR_CLEAN(hr_e2b_signed_done) struct hr_e2b_signed s = {.operation = NULL};
	struct search search = {.s = &s};
	struct hr_fleet_place turn;
	struct hr_err err = {0};
	int r;

	hr_e2b_signed_read(q, &s);
	if (s.signature.len == 0 || f->store->ops->page == NULL) {
		say_text(a, 400,
		    "the headers E2b-Sandbox-Id and E2b-Sandbox-Port are missing, which name the "
		    "sandbox\n");
		return WRONG;
	}
	if (!hr_fleet_turn_take(f, &turn, HR_FLEET_NO_KEY)) {
		(void)hr_e2b_say(a, 429, "too many requests wait already");
		return WRONG;
	}
	/* This search is open to all. It goes page by page, so that no request waits for all rows.
	 */
	do {
		char after[HR_FLEET_ID];

		memcpy(after, search.last, sizeof(after));
		search.n = 0;
		(void)pthread_mutex_lock(&f->lock);
		r = f->store->ops->page(
		    f->store, 0, true, after, SEARCH_PAGE, try_row, &search, &err);
		(void)pthread_mutex_unlock(&f->lock);
	} while (r == 0 && search.id[0] == '\0' && search.n == SEARCH_PAGE);
	hr_fleet_turn_give(f, &turn);
	if (r == 0 && search.id[0] != '\0') {
		memcpy(t->id, search.id, sizeof(t->id));
		t->port = HR_E2B_ENVD_PORT;
		return NAMED;
	}
	(void)hr_e2b_say(a, 401, "invalid signature");
	return WRONG;
}

static enum kind
find_target(const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct target *t,
    struct hr_fleet_answer *a)
{
	enum kind k;

	if (*q->e2b_id != '\0' || *q->e2b_port != '\0')
		return by_header(q, t, a);
	if (*q->sandbox_id != '\0')
		return OTHER;
	k = by_name(api, q->host, t);
	if (k != OTHER)
		return k;
	if (is_path(q->uri, "/files"))
		return by_signature(api, q, t, a);
	if (strncmp(q->uri, "/process.Process/", 17) != 0 &&
	    strncmp(q->uri, "/filesystem.Filesystem/", 23) != 0)
		return OTHER;
	return by_header(q, t, a);
}

/* ---- rights ---- */

/* Returns 0, or -1 after it has answered. */
static int
check_file(
    const struct hr_fleet_request *q, const struct hr_fleet_row *row, struct hr_fleet_answer *a)
{
	HR_CLEAN(hr_e2b_signed_done) struct hr_e2b_signed s = {.operation = NULL};
	const char *expiry;
	char *end;

	if (*q->access_token != '\0')
		return hr_fleet_same(q->access_token, row->session_key)
			   ? 0
			   : hr_e2b_say(
				 a, 401, "access token present in header but does not match");
	hr_e2b_signed_read(q, &s);
	expiry = hr_buf_str(&s.expiry);
	if (s.signature.len == 0)
		return hr_e2b_say(a, 401, "missing signature query parameter");
	if (!hr_e2b_signed_by(&s, row->session_key))
		return hr_e2b_say(a, 401, "invalid signature");
	if (*expiry == '\0')
		return 0;
	if (strtoll(expiry, &end, 10) < (int64_t)time(NULL) || *end != '\0')
		return hr_e2b_say(a, 401, "signature is already expired");
	return 0;
}

static int
check_token(
    const struct hr_fleet_request *q, const struct hr_fleet_row *row, struct hr_fleet_answer *a)
{
	if (hr_fleet_same(q->access_token, row->session_key))
		return 0;
	return hr_e2b_say(a, 401,
	    "unauthorized access, please provide a valid access token or method signing if "
	    "supported");
}

static int
check_traffic(const struct hr_fleet_request *q, const struct hr_fleet_row *row,
    struct json_object *e2b, struct hr_fleet_answer *a)
{
	char right[HR_E2B_TRAFFIC_TOKEN];

	if (e2b == NULL || hr_json_true_at(e2b, "public"))
		return 0;
	hr_e2b_traffic_token(row->session_key, right);
	if (hr_fleet_same(q->traffic_token, right))
		return 0;
	say_of(a, 403, row->id, "the traffic access token is missing or wrong", 0);
	return -1;
}

/* Returns true for what clients ask of the code interpreter without a token. The sandbox's nginx
 * decodes paths: any other spelling may be that of /execute. */
static bool
is_open(const char *uri)
{
	return is_path(uri, "/health") || is_path(uri, "/contexts") ||
	       strncmp(uri, "/contexts/", 10) == 0;
}

/* Checks whether the client may use the port. Returns 0, or -1 after it has answered. */
static int
check(const struct hr_fleet_request *q, const struct target *t, const struct hr_fleet_row *row,
    struct json_object *e2b, struct hr_fleet_answer *a)
{
	if (hr_e2b_leads_out(q->uri)) {
		say_text(a, 400, "the path must not have \"..\"\n");
		return -1;
	}
	if (t->port != HR_E2B_ENVD_PORT && check_traffic(q, row, e2b, a) != 0)
		return -1;
	if (t->port == HR_E2B_CODE_PORT)
		return is_open(q->uri) && *q->access_token == '\0' ? 0 : check_token(q, row, a);
	if (t->port != HR_E2B_ENVD_PORT || is_path(q->uri, "/health"))
		return 0;
	if (hr_e2b_is_closed(q->uri)) {
		HR_BUF(path, HR_E2B_QUERY_MAX);

		hr_buf_add(&path, q->uri, strcspn(q->uri, "?"));
		(void)hr_e2b_say(a, 404, "the path is closed from outside");
		a->body.p[--a->body.len] = '\0';
		hr_json_put_named(&a->body, "path", hr_buf_str(&path));
		hr_buf_addc(&a->body, '}');
		return -1;
	}
	return is_path(q->uri, "/files") ? check_file(q, row, a) : check_token(q, row, a);
}

/* ---- the target ---- */

/* Returns true if the sandbox takes the call at its direct socket, and sets `at` to it. A name
 * whose server has closed the socket is as good as none: nginx must not try it, since it could not
 * send the request elsewhere then. */
static bool
is_direct(const struct hr_fleet_request *q, const struct target *t, const struct hr_fleet_row *row,
    char at[sizeof(row->at)])
{
	if (!q->direct || t->port != HR_E2B_ENVD_PORT || !hr_fleet_is_unix(row->at))
		return false;
	return (size_t)snprintf(at, sizeof(row->at), "%s" HR_FLEET_DIRECT, row->at) <
		   sizeof(row->at) &&
	       hr_fleet_listens(at + strlen(HR_FLEET_UNIX));
}

/* Appends the header lines with the host and the scheme for the program at the port. */
static void
put_ingress(struct hr_fleet_answer *a, int port, struct json_object *network)
{
	const char *mask = hr_json_text_at(network, "maskRequestHost"), *rest;
	struct json_object *tls = hr_json_at(network, "httpsPorts");
	size_t i;

	for (i = 0; i < hr_json_count(tls); i++) {
		if (hr_json_int(hr_json_entry(tls, i)) == port) {
			hr_buf_adds(&a->head, "X-Handrail-Scheme: https\r\n");
			break;
		}
	}
	if (mask == NULL || *mask == '\0')
		return;
	hr_buf_adds(&a->head, "X-Handrail-Host: ");
	for (; (rest = strstr(mask, HR_E2B_PORT)) != NULL; mask = rest + strlen(HR_E2B_PORT)) {
		hr_buf_add(&a->head, mask, (size_t)(rest - mask));
		hr_buf_addf(&a->head, "%d", port);
	}
	hr_buf_addf(&a->head, "%s\r\n", mask);
}

static void
put_at(struct hr_fleet_answer *a, const struct hr_fleet_request *q, const struct target *t,
    const struct hr_fleet_row *row, struct json_object *e2b)
{
	const char *colon = hr_fleet_is_unix(row->at) ? NULL : strrchr(row->at, ':');
	char direct[sizeof(row->at)];
	struct hr_err err = {0};

	hr_fleet_put_way(&a->at, is_direct(q, t, row, direct) ? direct : row->at,
	    colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0, true);
	if (t->port == HR_E2B_ENVD_PORT)
		hr_buf_adds(&a->at, "/handrail/e2b");
	else if (t->port == HR_E2B_CODE_PORT)
		hr_buf_adds(&a->at, "/handrail/e2b/code");
	else
		hr_buf_addf(&a->at, "/port/%d", t->port);
	hr_buf_adds(&a->at, q->uri);
	a->status = 200;
	a->own_origin = t->port != HR_E2B_ENVD_PORT && t->port != HR_E2B_CODE_PORT;
	if (a->own_origin)
		put_ingress(a, t->port, hr_json_at(e2b, "network"));
	(void)snprintf(a->server_key, sizeof(a->server_key), "%s", row->server_key);
	memcpy(a->e2b, row->id, sizeof(a->e2b));
	if (hr_buf_check(&a->at, &err) != 0) {
		hr_buf_reset(&a->at);
		(void)hr_e2b_say(a, 414, "the URI is too long");
	}
}

static void
say_state(struct hr_fleet_answer *a, enum hr_fleet_result r, const struct hr_fleet_row *row,
    const struct hr_err *err)
{
	if (r == HR_FLEET_BROKEN || r == HR_FLEET_LEAVING)
		hr_fleet_refuse(a, r, row, err);
	else if (r == HR_FLEET_LATE || row->state == HR_FLEET_PAUSING)
		say_of(a, 409, row->id,
		    "The sandbox is still transitioning. Try again in a moment.", 0);
	else
		say_gone(a, row->id);
}

/* Routes to the sandbox `t`; *ret_row is the sandbox as it was found. */
static void
route(const struct hr_fleet_api *api, const struct hr_fleet_request *q, const struct target *t,
    struct hr_fleet_row *row, struct hr_fleet_answer *a)
{
	HR_PUT struct json_object *request = NULL;
	struct json_object *e2b = hr_e2b_of(row, &request);
	/* a sandbox of another API wakes for each client with its key */
	bool wakes = e2b != NULL ? hr_json_true_at(e2b, "autoResume")
				 : hr_fleet_same(q->access_token, row->session_key);
	struct hr_err err = {0};
	enum hr_fleet_result r;

	if (check(q, t, row, e2b, a) != 0)
		return;
	/* a client with the token that asks whether the sandbox still runs is answered after the
	 * pause; others must not hold places of the sandbox's owner */
	if (row->state == HR_FLEET_PAUSING && !wakes &&
	    hr_fleet_same(q->access_token, row->session_key)) {
		hr_fleet_row_done(row);
		r = hr_fleet_wait(api->fleet, t->id, row, &err);
		(void)snprintf(row->id, sizeof(row->id), "%s", t->id);
		if (r != HR_FLEET_OK) {
			say_state(a, r, row, &err);
			return;
		}
	}
	if (row->state != HR_FLEET_RUNNING && !wakes) {
		say_state(a,
		    row->state == HR_FLEET_STARTING || row->state == HR_FLEET_RESUMING
			? HR_FLEET_LATE
			: HR_FLEET_CONFLICT,
		    row, &err);
		return;
	}
	hr_fleet_row_done(row);
	r = hr_fleet_route(api->fleet, t->id, q->route == HR_FLEET_ROUTE_ASK, row, &err);
	if (r != HR_FLEET_OK)
		say_state(a, r, row, &err);
	else if (q->route == HR_FLEET_ROUTE_REFUSED) /* the port may be used by now */
		say_state(a, HR_FLEET_LATE, row, &err);
	else if (check(q, t, row, e2b, a) == 0) /* a resume may have replaced the token meanwhile */
		put_at(a, q, t, row, e2b);
}

/* Looks the sandbox `t` up and routes to it. Returns false for a sandbox of another API. */
static bool
look_and_route(const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct target *t, bool own, struct hr_fleet_answer *a)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_err err = {0};
	enum hr_fleet_result r = hr_fleet_look(api->fleet, t->id, &row, &err);

	/* a program's host name means the same in all APIs, but for sandboxes of this one */
	if (!own && *q->e2b_id == '\0' &&
	    (row.request == NULL || strstr(row.request, "\"e2b\":{") == NULL))
		return false;
	if (r == HR_FLEET_BROKEN || (r == HR_FLEET_LATE && row.id[0] == '\0'))
		hr_fleet_refuse(a, r, &row, &err);
	else if (r == HR_FLEET_NOT_FOUND || !hr_fleet_has_session(row.state))
		say_gone(a, row.id[0] != '\0' ? row.id : *q->e2b_id != '\0' ? q->e2b_id : t->id);
	else
		route(api, q, t, &row, a);
	return true;
}

bool
hr_e2b_route(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a)
{
	struct target t = {.port = 0};
	bool own = false; /* the port is one of this API's own */
	enum kind kind;

	kind = find_target(api, q, &t, a);
	own = t.port == HR_E2B_ENVD_PORT || t.port == HR_E2B_CODE_PORT;
	if (kind == NAMED && own && strcmp(q->method, "OPTIONS") == 0)
		a->status = 204;
	else if (kind == NAMED && !look_and_route(api, q, &t, own, a))
		return false;
	if (kind != OTHER && a->status != 200 && (own || kind == WRONG) &&
	    (*q->origin != '\0' || a->status == 204))
		hr_buf_adds(&a->head, HR_E2B_CORS);
	if (kind != OTHER && strcmp(a->type, "application/json") == 0)
		a->type = "application/json; charset=utf-8";
	if (kind != OTHER && own && a->status == 200)
		a->cors = true;
	return kind != OTHER;
}
