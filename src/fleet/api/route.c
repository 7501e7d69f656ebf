/* Routes a client's request to an address from the engine, at one of the sandbox's own ports. There
 * are three forms: "/ID/...", "PORT-ID.DOMAIN" and "vscode-ID.DOMAIN", and the header X-Sandbox-ID
 * with X-Sandbox-Port. The rest of the URI stays as it was sent. */
#include "config.h"

#include "fleet/api/api_int.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text/percent.h"
#include "base/text/quote.h"
#include "fleet/edge.h"
#include "fleet/fleet_int.h"

#define ID_LEN (HR_FLEET_ID - 1)
#define PATH_BYTES (1u << 16)

struct target {
	char id[HR_FLEET_ID];
	char port[16]; /* "": the port of the server */
	const char *rest;
};

static bool
take_id(struct target *t, const char *p)
{
	if (strspn(p, "0123456789abcdef") != ID_LEN)
		return false;
	memcpy(t->id, p, ID_LEN);
	t->id[ID_LEN] = '\0';
	return true;
}

static bool
take_port(struct target *t, const char *p, size_t len)
{
	if (len == 0 || len >= sizeof(t->port))
		return false;
	memcpy(t->port, p, len);
	t->port[len] = '\0';
	return true;
}

/* Parses "ID.DOMAIN", "PORT-ID.DOMAIN" and the old "PORT-ID-CLIENT.DOMAIN", with or without a port
 * after it. nginx counts the visitors of the same names (handrail-fleet-http.conf.in). */
static bool
by_name(const struct hr_fleet_api *api, const char *host, struct target *t)
{
	const char *dash = strchr(host, '-'), *dot;
	size_t n = api->domain != NULL ? strlen(api->domain) : 0;

	/* "ID.DOMAIN" is the address of the server */
	if (n > 0 && take_id(t, host))
		return host[ID_LEN] == '.' && strncasecmp(host + ID_LEN + 1, api->domain, n) == 0 &&
		       (host[ID_LEN + 1 + n] == '\0' || host[ID_LEN + 1 + n] == ':');
	/* the form "work-1-ID.DOMAIN" */
	if (dash != NULL && strncmp(host, "work-", 5) == 0)
		dash = strchr(dash + 1, '-');
	if (n == 0 || dash == NULL || !take_id(t, dash + 1))
		return false;
	dot = dash + 1 + ID_LEN;
	if (*dot == '-')
		dot += strcspn(dot, ".");
	return *dot == '.' && strncasecmp(dot + 1, api->domain, n) == 0 &&
	       (dot[1 + n] == '\0' || dot[1 + n] == ':') &&
	       take_port(t, host, (size_t)(dash - host));
}

static bool
find_target(const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct target *t)
{
	memset(t, 0, sizeof(*t));
	t->rest = q->uri;
	if (*q->sandbox_id != '\0')
		return strlen(q->sandbox_id) == ID_LEN && take_id(t, q->sandbox_id) &&
		       (*q->sandbox_port == '\0' ||
			   take_port(t, q->sandbox_port, strlen(q->sandbox_port)));
	if (by_name(api, q->host, t))
		return true;
	if (*q->uri != '/' || !take_id(t, q->uri + 1))
		return false;
	t->rest = q->uri + 1 + ID_LEN;
	return *t->rest == '/' || *t->rest == '?' || *t->rest == '\0';
}

/* Returns the port, 0 for a server at a Unix socket, or -1 if the sandbox has no such port. */
static int
port_of(const struct hr_fleet_row *row, const char *name)
{
	bool at_socket = hr_fleet_is_unix(row->at);
	const char *colon = at_socket ? NULL : strrchr(row->at, ':');
	int server = colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0;
	size_t i;
	const struct {
		const char *name;
		int port;
	} ports[] = {{"", server}, {"vscode", row->vscode_port}, {"work-1", row->app_ports[0]},
	    {"work-2", row->app_ports[1]}};
	char number[16];

	if (at_socket && name[0] == '\0')
		return 0;
	if (!at_socket && colon == NULL) /* the engine gave no port */
		return -1;
	for (i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
		(void)snprintf(number, sizeof(number), "%d", ports[i].port);
		if (ports[i].port > 0 &&
		    (strcmp(name, ports[i].name) == 0 || strcmp(name, number) == 0))
			return ports[i].port;
	}
	return -1;
}

/* Returns true for a path that ".." could lead out of /port/N/, which comes before it. */
static bool
leads_out(const char *rest)
{
	HR_BUF(path, PATH_BYTES);

	hr_buf_addc(&path, '/');
	hr_percent_decode(&path, rest, strcspn(rest, "?"), false);
	return hr_buf_check(&path, NULL) != 0 || memchr(path.p, '\0', path.len) != NULL ||
	       strstr(hr_buf_str(&path), "/..") != NULL;
}

/* Returns the rest of the path; V1 clients check a server's health without a key, at a path that
 * ours does not have. */
static const char *
rest_of(const struct target *t)
{
	return t->port[0] == '\0' && strcmp(t->rest, "/health") == 0 ? "/alive" : t->rest;
}

bool
hr_fleet_same(const char *a, const char *b)
{
	size_t n = strlen(a);

	return n > 0 && n == strlen(b) && CRYPTO_memcmp(a, b, n) == 0;
}

/* Accepts the console's ticket, for a sign-in to the page of the sandbox `id`. */
static bool
has_ticket(const struct hr_fleet_api *api, const struct hr_fleet_request *q, const struct target *t,
    const char *id)
{
	return api->console != NULL && t->port[0] == '\0' && t->rest == q->uri &&
	       strcmp(q->method, "POST") == 0 && strcmp(q->uri, "/handrail/v1/signin") == 0 &&
	       hr_fleet_console_opens(api, q->session_key, id);
}

/* Finds a row that is not in memory. Anybody can ask for ids that do not exist, and a distant store
 * is asked for each: few wait for that, one after the other. Returns 1, 0 if there is none, -1, or
 * 2 if many wait already. */
static int
search(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err)
{
	const bool far = f->store->ops->known != NULL;
	struct hr_fleet_place turn;
	int found;

	if (far && !hr_fleet_turn_take(f, &turn, HR_FLEET_NO_KEY))
		return 2;
	(void)pthread_mutex_lock(&f->lock);
	found = f->store->ops->find(f->store, id, row, err);
	(void)pthread_mutex_unlock(&f->lock);
	if (far)
		hr_fleet_turn_give(f, &turn);
	return found;
}

enum hr_fleet_result
hr_fleet_look(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err)
{
	const struct hr_store_ops *ops = f->store->ops;
	int found = 0;

	memset(row, 0, sizeof(*row));
	/* asked without the lock, for which others may wait while a distant store answers */
	if (ops->known != NULL)
		found = ops->known(f->store, id, row, err);
	if (found != 1)
		found = search(f, id, row, err);
	if (found > 1)
		return HR_FLEET_LATE;
	if (found <= 0 || row->key == 0) /* the sandbox is warm: no key may use it */
		return found < 0 ? HR_FLEET_BROKEN : HR_FLEET_NOT_FOUND;
	if (row->state == HR_FLEET_RUNNING)
		return HR_FLEET_OK;
	return row->state == HR_FLEET_STARTING || row->state == HR_FLEET_RESUMING
		   ? HR_FLEET_LATE
		   : HR_FLEET_CONFLICT;
}

/* Checks the key first, because a request without one resumes nothing and counts as no activity. */
static enum hr_fleet_result
find(const struct hr_fleet_api *api, const struct hr_fleet_request *q, const struct target *t,
    struct hr_fleet_row *row, bool *ret_in, struct hr_err *err)
{
	enum hr_fleet_result r = hr_fleet_look(api->fleet, t->id, row, err);
	bool with_key;

	if (r == HR_FLEET_BROKEN || r == HR_FLEET_NOT_FOUND || row->id[0] == '\0')
		return r;
	with_key = hr_fleet_same(q->session_key, row->session_key);
	*ret_in = with_key || has_ticket(api, q, t, row->id);
	if (q->route == HR_FLEET_ROUTE_ASK && (*ret_in || api->wakes)) {
		hr_fleet_row_done(row);
		r = hr_fleet_route(api->fleet, t->id, true, row, err);
		/* a resume may have replaced the key meanwhile */
		if (with_key)
			*ret_in = hr_fleet_same(q->session_key, row->session_key);
	} else {
		__atomic_add_fetch(&api->fleet->counts.routes, 1, __ATOMIC_RELAXED);
	}
	return r;
}

/* Adds the sum of the clients' key for the agent server of OpenHands V1, which gets keys in
 * messages, where nginx cannot replace them. */
static void
put_front(struct hr_fleet_answer *a, const struct target *t, const struct hr_fleet_row *row)
{
	static const char sockets[] = "/sockets/";
	unsigned char sum[SHA256_DIGEST_LENGTH];
	size_t at;

	if (t->port[0] != '\0' || strncmp(t->rest, sockets, sizeof(sockets) - 1) != 0)
		return;
	(void)SHA256((const unsigned char *)row->session_key, strlen(row->session_key), sum);
	at = (size_t)snprintf(a->front, sizeof(a->front), "%s ", row->server_key);
	hr_quote_hex(a->front + at, sum, sizeof(sum));
}

void
hr_fleet_handle_route(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	enum hr_fleet_result r;
	struct hr_err err = {0};
	struct target t;
	bool is_in = false, at_path;
	int port;

	if (hr_e2b_route(api, q, a))
		return;
	if (!find_target(api, q, &t)) {
		(void)hr_fleet_say(a, 404, "Not Found");
		return;
	}
	r = find(api, q, &t, &row, &is_in, &err);
	port = r == HR_FLEET_OK ? port_of(&row, t.port) : -1;
	at_path = port > 0 && hr_fleet_is_unix(row.at);
	if (r == HR_FLEET_CONFLICT &&
	    (row.state == HR_FLEET_PAUSED || row.state == HR_FLEET_PAUSING)) {
		(void)hr_fleet_say(a, 409,
		    "the sandbox is paused; a request with its X-Session-API-Key wakes it, or "
		    "/resume");
	} else if (r != HR_FLEET_OK) {
		hr_fleet_refuse(a, r, &row, &err);
	} else if (port < 0) {
		(void)hr_fleet_say(a, 404, "the sandbox has no such port");
	} else if (at_path && leads_out(t.rest)) {
		(void)hr_fleet_say(a, 400, "the path of a program must not have \"..\"");
	} else if (q->route == HR_FLEET_ROUTE_REFUSED) {
		/* the sandbox is ready by now, so make the client try again */
		hr_fleet_refuse(a, HR_FLEET_LATE, &row, &err);
	} else {
		a->status = 200;
		hr_fleet_put_way(&a->at, row.at, port, is_in || api->wakes);
		hr_buf_addf(&a->at, "%s%s", *t.rest == '/' ? "" : "/", rest_of(&t));
		if (t.rest != q->uri)
			(void)snprintf(a->prefix, sizeof(a->prefix), "/%s", t.id);
		a->own_origin = at_path;
		/* the server asks for its key at /port/N/, and keeps it from the program */
		if (is_in || at_path)
			(void)snprintf(a->server_key, sizeof(a->server_key), "%s", row.server_key);
		put_front(a, &t, &row);
		if (hr_buf_check(&a->at, &err) != 0)
			(void)hr_fleet_say(a, 414, "the URI is too long");
	}
}
