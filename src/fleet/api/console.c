/* Handles the console's requests (doc/fleet.md, "Console"): they arrive through their own nginx
 * server, with a cookie and a token instead of a key. Invariant: a request from there does nothing
 * without both. */
#include "config.h"

#include "fleet/api/api_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text/quote.h"
#include "base/random.h"
#include "proto/json.h"
#include "proto/signinweb.h"

#define BELOW "/handrail/v1/"
#define RUNTIME_API "/handrail/v1/api" /* prefix of the paths of the Runtime API */
#define LIFETIME_S INT64_C(43200)
#define TICKETS 16 /* maximum per key at the same time; a new ticket replaces the oldest */
#define TICKET_S INT64_C(60)
#define KEY_BEGIN "hrk_"
#define KEY_BYTES 24
#define KEY_TEXT (sizeof(KEY_BEGIN) + 2 * (size_t)KEY_BYTES)

/* The sign-ins and tickets of one key. Each key has its own set, so that no key can displace
 * another's. */
struct of_key {
	struct of_key *next;
	int64_t key;
	struct hr_signins signins; /* key: the bytes of the API key */
	struct ticket {            /* a sign-in to the page of one sandbox */
		unsigned char sum[HR_KEYSUM];
		char id[HR_FLEET_ID];
		int64_t until_ns; /* 0: the ticket is used */
	} tickets[TICKETS];
	size_t next_ticket; /* index for the next ticket */
};

/* The console's state lives only in memory: no key is stored, and all sign-ins end with the
 * process. */
struct hr_fleet_console {
	unsigned char salt[HR_KEYSUM_SALT];
	pthread_mutex_t lock; /* guards the members below; always the last lock taken */
	struct of_key *keys;
};

struct hr_fleet_console *
hr_fleet_console_open(struct hr_err *err)
{
	struct hr_fleet_console *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return hr_err_null(err);
	(void)pthread_mutex_init(&c->lock, NULL);
	if (hr_random(c->salt, sizeof(c->salt), err) == 0)
		return c;
	free(c);
	return NULL;
}

/* Finds or adds the set of a key; called with the console's lock. Returns NULL without memory. */
static struct of_key *
of_key(struct hr_fleet_console *c, int64_t key)
{
	struct of_key *k = c->keys;

	while (k != NULL && k->key != key)
		k = k->next;
	if (k == NULL && (k = calloc(1, sizeof(*k))) != NULL) {
		k->key = key;
		k->next = c->keys;
		c->keys = k;
	}
	return k;
}

/* ---- keys as bytes ---- */

static bool
key_bytes(const char *text, unsigned char ret[HR_KEYSUM])
{
	size_t n = strlen(KEY_BEGIN);
	size_t i;

	memset(ret, 0, HR_KEYSUM);
	if (strlen(text) != KEY_TEXT - 1 || strncmp(text, KEY_BEGIN, n) != 0 ||
	    strspn(text + n, "0123456789abcdef") != 2 * (size_t)KEY_BYTES)
		return false;
	for (i = 0; i < KEY_BYTES; i++)
		/* cannot fail, since the characters are digits */
		(void)sscanf(text + n + 2 * i, "%2hhx", &ret[i]);
	return true;
}

static void
key_text(const unsigned char bytes[HR_KEYSUM], char ret[KEY_TEXT])
{
	(void)snprintf(ret, KEY_TEXT, KEY_BEGIN);
	hr_quote_hex(ret + strlen(KEY_BEGIN), bytes, KEY_BYTES);
}

/* ---- callers ---- */

static bool
is_call(const struct hr_fleet_request *q, const char *method, const char *name)
{
	size_t n = strlen(BELOW), len = strcspn(q->uri, "?");

	return strcmp(q->method, method) == 0 && len == n + strlen(name) &&
	       strncmp(q->uri, BELOW, n) == 0 && strncmp(q->uri + n, name, len - n) == 0;
}

/* Checks the headers in which browsers name the requesting page; other clients send none. */
static bool
is_from_here(const struct hr_fleet_request *q)
{
	const char *host = strstr(q->origin, "://");

	return *q->origin == '\0' || (host != NULL && strcmp(host + 3, q->host) == 0);
}

bool
hr_fleet_console_knows(struct hr_fleet_console *c, const struct hr_signin *s)
{
	const struct of_key *k;
	struct hr_signin now;
	bool found = false;

	(void)pthread_mutex_lock(&c->lock);
	for (k = c->keys; k != NULL && !found; k = k->next)
		found = hr_signin_find(&k->signins, s->cookie, s->token, hr_now_ns(), &now);
	(void)pthread_mutex_unlock(&c->lock);
	return found;
}

static bool
find_signin(struct hr_fleet_console *c, const struct hr_fleet_request *q, struct hr_signin *ret)
{
	const struct of_key *k;
	bool found = false;

	(void)pthread_mutex_lock(&c->lock);
	for (k = c->keys; k != NULL && !found; k = k->next)
		found =
		    hr_signin_by(&k->signins, c->salt, q->cookie, q->page_token, hr_now_ns(), ret);
	(void)pthread_mutex_unlock(&c->lock);
	return found;
}

static int
find_key(const struct hr_fleet_api *api, const char *text, struct hr_fleet_key *ret)
{
	struct hr_err err = {0};
	int found;

	(void)pthread_mutex_lock(&api->fleet->lock);
	found = api->fleet->store->ops->key_find(api->fleet->store, text, ret, &err);
	(void)pthread_mutex_unlock(&api->fleet->lock);
	if (found < 0)
		hr_log(HR_LOG_ERROR, "cannot check a key of the console: %s", err.msg);
	return found;
}

/* ---- pages of sandboxes ---- */

static int
give_ticket(struct hr_fleet_console *c, int64_t key, const char *id, char ret[HR_SIGNIN_SECRET + 1],
    struct hr_err *err)
{
	struct of_key *k;
	struct ticket *t;

	if (hr_random_hex(ret, HR_SIGNIN_SECRET, err) < 0)
		return -1;
	(void)pthread_mutex_lock(&c->lock);
	k = of_key(c, key);
	if (k != NULL) {
		t = &k->tickets[k->next_ticket++ % TICKETS];
		hr_keysum(c->salt, ret, HR_SIGNIN_SECRET, t->sum);
		(void)snprintf(t->id, sizeof(t->id), "%s", id);
		t->until_ns = hr_now_ns() + TICKET_S * HR_NS_PER_S;
	}
	(void)pthread_mutex_unlock(&c->lock);
	return k != NULL ? 0 : hr_err_nomem(err);
}

/* Consumes the ticket. */
static bool
take_ticket(struct of_key *k, const unsigned char sum[HR_KEYSUM], const char *id)
{
	bool opens = false;
	size_t i;

	for (i = 0; i < TICKETS && !opens; i++) {
		struct ticket *t = &k->tickets[i];

		opens = t->until_ns > hr_now_ns() && strcmp(t->id, id) == 0 &&
			CRYPTO_memcmp(t->sum, sum, HR_KEYSUM) == 0;
		if (opens)
			t->until_ns = 0;
	}
	return opens;
}

bool
hr_fleet_console_opens(const struct hr_fleet_api *api, const char *text, const char *id)
{
	struct hr_fleet_console *c = api->console;
	unsigned char sum[HR_KEYSUM];
	struct of_key *k;
	bool opens = false;

	if (strlen(text) != HR_SIGNIN_SECRET)
		return false;
	hr_keysum(c->salt, text, HR_SIGNIN_SECRET, sum);
	(void)pthread_mutex_lock(&c->lock);
	for (k = c->keys; k != NULL && !opens; k = k->next)
		opens = take_ticket(k, sum, id);
	(void)pthread_mutex_unlock(&c->lock);
	return opens;
}

/* Returns the ":PORT" after a host, or "". */
static const char *
port_behind(const char *at)
{
	const char *port = at != NULL ? strrchr(at, ':') : NULL;

	return port != NULL && port[1] != '\0' && strspn(port + 1, "0123456789") == strlen(port + 1)
		   ? port
		   : "";
}

/* Appends the address of a page. Each page has its own host name, so that no sandbox's content
 * shares an origin with another's page, as all would by a path. */
static void
put_page(struct hr_buf *b, const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const char *id)
{
	const char *scheme = q->scheme, *port = port_behind(api->listen);

	if (api->public_url != NULL) {
		scheme = strncmp(api->public_url, "https:", 6) == 0 ? "https" : "http";
		port = port_behind(api->public_url);
	}
	hr_buf_addf(b, "\"%s://%s.%s%s/handrail/\"", scheme, id, api->domain, port);
}

/* Answers the address of the page of this key's sandbox, with a ticket that works once. */
static void
open_page(const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct hr_fleet_key *k, struct hr_fleet_answer *a)
{
	HR_PUT struct json_object *body = NULL;
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	char ticket[HR_SIGNIN_SECRET + 1];
	struct hr_err err = {0};
	const char *id;
	enum hr_fleet_result r;

	if (q->body_len > 0)
		(void)hr_json_decode(q->body, q->body_len, &body, NULL);
	id = hr_json_text_or(body, "runtime_id", "");
	r = hr_fleet_get(api->fleet, k->id, id, &row, &err);
	if ((k->scopes & HR_SCOPE_USE) == 0)
		(void)hr_fleet_say(a, 403, "this key is not for that");
	else if (api->domain == NULL)
		(void)hr_fleet_say(
		    a, 409, "pages of sandboxes need host names: start the service with --domain");
	else if (r == HR_FLEET_OK && give_ticket(api->console, k->id, id, ticket, &err) != 0)
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
	else if (r != HR_FLEET_OK)
		hr_fleet_refuse(a, r, NULL, &err);
	else {
		a->status = 200;
		hr_buf_adds(&a->body, "{\"url\":");
		put_page(&a->body, api, q, row.id);
		hr_buf_addf(&a->body, ",\"key\":\"%s\"}", ticket);
		hr_log(HR_LOG_NOTICE, "key %" PRId64 " opens the page of sandbox %s", k->id, id);
	}
	explicit_bzero(ticket, sizeof(ticket));
}

/* ---- signing in ---- */

static void
put_me(const struct hr_fleet_api *api, struct hr_fleet_answer *a, const struct hr_fleet_key *k,
    const struct hr_signin *s, const char *token)
{
	a->status = 200;
	hr_buf_addf(&a->body, "{\"rights\":\"%s\",\"expires_in\":%" PRId64 ",\"key\":%" PRId64,
	    s->rights == HR_PAGE_ACT ? "act" : "look", (s->until_ns - hr_now_ns()) / HR_NS_PER_S,
	    k->id);
	if (token != NULL)
		hr_json_put_named(&a->body, "token", token);
	hr_json_put_named(&a->body, "name", k->name);
	hr_buf_addf(&a->body, ",\"pages\":%s,\"pauses\":%s,\"scope\":\"%s\"}",
	    api->domain != NULL ? "true" : "false", api->fleet->engine->stays ? "false" : "true",
	    (k->scopes & HR_SCOPE_ADMIN) != 0 ? "admin"
	    : (k->scopes & HR_SCOPE_USE) != 0 ? "use"
					      : "read");
}

/* Stores a sign-in; if the key has too many, the oldest is dropped. */
static int
keep_signin(struct hr_fleet_console *c, int64_t key, struct hr_signin *s,
    char cookie[HR_SIGNIN_SECRET + 1], char token[HR_SIGNIN_SECRET + 1], struct hr_err *err)
{
	struct of_key *k;
	int r = -1;

	(void)pthread_mutex_lock(&c->lock);
	k = of_key(c, key);
	if (k == NULL)
		(void)hr_err_nomem(err);
	else
		r = hr_signin_make(&k->signins, c->salt, s, hr_now_ns(), cookie, token, err);
	(void)pthread_mutex_unlock(&c->lock);
	return r;
}

static void
sign_in(const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct hr_signin_asked *asked, struct hr_fleet_answer *a)
{
	struct hr_signin s = {.until_ns = hr_now_ns() + LIFETIME_S * HR_NS_PER_S,
	    .rights = asked->look ? HR_PAGE_LOOK : HR_PAGE_ACT};
	char cookie[HR_SIGNIN_SECRET + 1], token[HR_SIGNIN_SECRET + 1];
	struct hr_err err = {0};
	struct hr_fleet_key k;

	if (!key_bytes(q->api_key, s.key) || find_key(api, q->api_key, &k) != 1) {
		(void)hr_fleet_say(a, 403, "this service does not know that key");
	} else if (keep_signin(api->console, k.id, &s, cookie, token, &err) < 0) {
		hr_log(HR_LOG_ERROR, "signing in to the console: %s", err.msg);
		(void)hr_fleet_say(a, 503, "signing in is not possible now; see the service's log");
		a->retry_after_s = HR_FLEET_BUSY_S;
	} else {
		put_me(api, a, &k, &s, token);
		hr_signin_cookie(a->cookie, asked, cookie, LIFETIME_S);
		hr_log(HR_LOG_NOTICE, "key %" PRId64 " has signed in to the console", k.id);
	}
	explicit_bzero(cookie, sizeof(cookie));
	explicit_bzero(token, sizeof(token));
	explicit_bzero(&s, sizeof(s));
}

/* Signs out, which ends the sign-in's streams. */
static void
sign_out(const struct hr_fleet_api *api, const struct hr_signin *s,
    const struct hr_signin_asked *asked, struct hr_fleet_answer *a)
{
	struct of_key *k;

	(void)pthread_mutex_lock(&api->console->lock);
	for (k = api->console->keys; k != NULL && s != NULL; k = k->next)
		hr_signin_end(&k->signins, s->cookie);
	(void)pthread_mutex_unlock(&api->console->lock);
	(void)pthread_cond_broadcast(&api->fleet->changed);
	a->status = 200;
	hr_buf_adds(&a->body, "{}");
	hr_signin_cookie(a->cookie, asked, "", 0);
}

/* Handles a sign-in or sign-out; s is the caller's sign-in, or NULL. */
static void
handle_signin(const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct hr_signin *s, struct hr_fleet_answer *a)
{
	HR_PUT struct json_object *body = NULL;
	struct hr_signin_asked asked;

	if (hr_json_decode(q->body, q->body_len, &body, NULL) != 0 ||
	    hr_json_type(body) != HR_PY_DICT ||
	    !hr_signin_asked(body, strcmp(q->scheme, "https") == 0, &asked))
		(void)hr_fleet_say(a, 400, "path must end with /handrail/, port must be a number");
	else if (is_call(q, "POST", "signin"))
		sign_in(api, q, &asked, a);
	else
		sign_out(api, s, &asked, a);
}

/* Handles a signed-in request, which has the rights of its key. */
static void
handle_call(const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct hr_signin *s, struct hr_fleet_answer *a)
{
	struct hr_fleet_request as = *q;
	char text[KEY_TEXT];
	struct hr_fleet_key k;

	key_text(s->key, text);
	as.api_key = text;
	as.signed_in = s;
	if (strncmp(q->uri, RUNTIME_API "/", strlen(RUNTIME_API) + 1) == 0)
		as.uri = q->uri + strlen(RUNTIME_API);
	if (find_key(api, text, &k) != 1)
		(void)hr_fleet_say(a, 403, "the key of this sign-in is not valid any more");
	else if (s->rights != HR_PAGE_ACT && strcmp(q->method, "GET") != 0)
		(void)hr_fleet_say(a, 403, "this sign-in may only watch");
	else if (is_call(q, q->method, "api/metrics") && (k.scopes & HR_SCOPE_ADMIN) == 0)
		(void)hr_fleet_say(a, 403, "this key is not for that");
	else if (is_call(q, "GET", "me"))
		put_me(api, a, &k, s, NULL);
	else if (is_call(q, "POST", "open"))
		open_page(api, q, &k, a);
	else
		hr_fleet_handle_call(api, &as, a);
	explicit_bzero(text, sizeof(text));
}

void
hr_fleet_handle_console(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a)
{
	struct hr_signin s;
	bool found;

	if (api->console == NULL) {
		(void)hr_fleet_say(a, 404, "this service has no console");
		return;
	}
	found = find_signin(api->console, q, &s);
	if (strcmp(q->method, "GET") != 0 && !is_from_here(q))
		(void)hr_fleet_say(a, 403, "a page from elsewhere asks");
	else if (is_call(q, "POST", "signin") || is_call(q, "POST", "signout"))
		handle_signin(api, q, found ? &s : NULL, a);
	else if (!found)
		(void)hr_fleet_say(a, 403, "sign in first");
	else
		handle_call(api, q, &s, a);
	explicit_bzero(&s, sizeof(s));
}
