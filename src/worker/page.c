/* Signing in and what it opens. Invariant: what a browser would send by itself is enough for
 * nothing, and nothing that a client sends reaches a header of ours but what is spelled out here.
 */
#include "config.h"

#include "worker/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "proto/json.h"
#include "worker/live.h"
#include "worker/worker.h"

#define BELOW "/handrail/v1/"
#define COOKIE "handrail-" /* and the port as the browser knows it: ports share their cookies */
#define SECRET 64          /* hexadecimal digits: 256 bits */
#define COOKIES_MAX 32     /* of ours, in one request */
#define PATH_MAX_BYTES 512

enum hr_page_rights
hr_page_rights_of(const char *name)
{
	if (name != NULL && strcmp(name, "act") == 0)
		return HR_PAGE_ACT;
	return name != NULL && strcmp(name, "look") == 0 ? HR_PAGE_LOOK : HR_PAGE_NONE;
}

static const char *
rights_name(uint32_t rights)
{
	return rights == HR_PAGE_ACT ? "act" : rights == HR_PAGE_LOOK ? "look" : "none";
}

/* ---- who asks ---- */

static const char *
text(const char *header)
{
	return header != NULL ? header : "";
}

/* Looks through the cookies for one of ours that is signed in with that token. */
static bool
find(const struct hr_worker *w, const struct hr_request *r, struct hr_signin *ret)
{
	unsigned char cookie[HR_KEYSUM], token[HR_KEYSUM];
	const char *p = text(r->cookie), *value;
	size_t len, tries = 0;

	if (strlen(text(r->page_token)) != SECRET)
		return false;
	hr_keysum(w->auth.head.salt, r->page_token, SECRET, token);
	for (; *p != '\0'; p += len + (p[len] == ';')) {
		p += strspn(p, " ");
		len = strcspn(p, ";");
		value = memchr(p, '=', len);
		if (value == NULL || strncmp(p, COOKIE, strlen(COOKIE)) != 0 ||
		    len - (size_t)(value + 1 - p) != SECRET || tries++ == COOKIES_MAX)
			continue;
		hr_keysum(w->auth.head.salt, value + 1, SECRET, cookie);
		if (hr_signin_find(&w->board->signins, cookie, token, hr_now_ns(), ret) &&
		    hr_auth_knows(&w->auth, ret->key))
			return true;
	}
	return false;
}

/* Exactly one below ours, in no other spelling: nginx may have taken another path for it. */
static bool
is_below(const char *uri)
{
	size_t len = strcspn(uri, "?"), i;

	if (strncmp(uri, BELOW, strlen(BELOW)) != 0)
		return false;
	for (i = 0; i < len; i++) {
		char c = uri[i];

		if (!((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
			strchr("/_.-", c) != NULL) ||
		    (c == '.' && uri[i + 1] == '.'))
			return false;
	}
	return true;
}

static enum hr_page_rights
rights_of(const struct hr_worker *w, const struct hr_signin *s)
{
	return s->rights < w->page_rights ? s->rights : w->page_rights;
}

/* What the rights of one who only looks on do. Ending one's own stay needs no more. */
static bool
only_looks(const char *method, const char *uri)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
	       strcmp(uri, BELOW "signout") == 0;
}

bool
hr_page_passes(const struct hr_worker *w, const struct hr_request *r)
{
	bool asked = strcmp(hr_buf_str(r->path), "/-/auth") == 0;
	const char *uri = asked ? text(r->asked_uri) : r->uri;
	const char *method = asked ? text(r->asked_method) : r->method;
	struct hr_signin s;

	if (text(r->page_token)[0] == '\0' || !is_below(uri) || !find(w, r, &s))
		return false;
	return rights_of(w, &s) == HR_PAGE_ACT ||
	       (rights_of(w, &s) == HR_PAGE_LOOK && only_looks(method, uri));
}

void
hr_page_enter(const struct hr_worker *w, const struct hr_request *r, struct hr_stay *ret)
{
	ret->signed_in = !hr_auth_passes(&w->auth, r->session_key) && find(w, r, &ret->by);
}

/* ---- signing in ---- */

/* The path below which the page lies, as the browser sees it: a proxy may have put something in
 * front. */
static bool
path_fits(const char *p, size_t len)
{
	static const char end[] = "/handrail/";
	size_t i;

	if (len > PATH_MAX_BYTES || len < sizeof(end) - 1 || p[0] != '/' ||
	    memcmp(p + len - (sizeof(end) - 1), end, sizeof(end) - 1) != 0)
		return false;
	for (i = 0; i < len; i++)
		if (p[i] <= ' ' || p[i] >= 0x7F || p[i] == ';' || p[i] == ',')
			return false;
	return true;
}

static bool
is_port(const char *p, size_t len)
{
	return len <= 5 && strspn(p, "0123456789") == len;
}

struct asked {
	const char *path, *port;
	size_t path_len, port_len;
	bool secure, look;
};

static const char *
member(struct json_object *body, const char *name, size_t *ret_len)
{
	struct json_object *v = hr_json_typed_at(body, name, HR_PY_STR);

	*ret_len = 0;
	return v != NULL ? hr_json_str(v, ret_len) : "";
}

static bool
take_asked(const struct hr_request *r, struct json_object *body, struct asked *ret,
    struct hr_answer *answer)
{
	struct json_object *v;

	ret->path = member(body, "path", &ret->path_len);
	ret->port = member(body, "port", &ret->port_len);
	v = hr_json_typed_at(body, "secure", HR_PY_BOOL);
	ret->secure = v != NULL && json_object_get_boolean(v);
	v = hr_json_typed_at(body, "look", HR_PY_BOOL);
	ret->look = v != NULL && json_object_get_boolean(v);
	ret->secure |= strcmp(r->scheme, "https") == 0;
	if (path_fits(ret->path, ret->path_len) && is_port(ret->port, ret->port_len))
		return true;
	hr_answer_detail(answer, 400, "path has to end with /handrail/, port to be a number");
	return false;
}

/* value "": the browser forgets it. */
static void
set_cookie(struct hr_answer *ret, const struct asked *a, const char *value, int64_t seconds)
{
	char line[PATH_MAX_BYTES + 256];

	(void)snprintf(line, sizeof(line),
	    COOKIE "%.*s=%s; Path=%.*s; Max-Age=%" PRId64 "; HttpOnly; SameSite=Strict%s",
	    (int)a->port_len, a->port, value, (int)a->path_len, a->path, seconds,
	    a->secure ? "; Secure" : "");
	hr_answer_header(ret, "Set-Cookie", line);
}

static void
put_me(struct hr_answer *ret, uint32_t rights, int64_t seconds, const char *token)
{
	hr_buf_addf(&ret->body, "{\"rights\":\"%s\",\"expires_in\":", rights_name(rights));
	if (seconds >= 0)
		hr_buf_addf(&ret->body, "%" PRId64, seconds);
	else
		hr_buf_adds(&ret->body, "null");
	if (token != NULL)
		hr_buf_addf(&ret->body, ",\"token\":\"%s\"", token);
	hr_buf_addc(&ret->body, '}');
	hr_answer_header(ret, "Cache-Control", "no-store");
}

static void
sign_in(struct hr_worker *w, const char *key, const struct asked *a, struct hr_answer *ret)
{
	struct hr_signin s = {.until_ns = hr_now_ns() + w->page_lifetime_s * HR_NS_PER_S};
	char cookie[SECRET + 1], token[SECRET + 1];
	struct hr_err err = {0};

	s.rights = a->look && w->page_rights > HR_PAGE_LOOK ? HR_PAGE_LOOK : w->page_rights;
	if (!hr_auth_sum(&w->auth, key, s.key)) {
		hr_answer_detail(ret, 403, "Invalid API Key");
		return;
	}
	if (s.rights == HR_PAGE_NONE) {
		hr_answer_detail(ret, 403, "the page is switched off (page_rights)");
		return;
	}
	if (hr_random_hex(cookie, SECRET, &err) < 0 || hr_random_hex(token, SECRET, &err) < 0) {
		hr_log(HR_LOG_ERROR, "signing in: %s", err.msg);
		hr_answer_generic(ret);
		return;
	}
	hr_keysum(w->auth.head.salt, cookie, SECRET, s.cookie);
	hr_keysum(w->auth.head.salt, token, SECRET, s.token);
	if (!hr_signin_add(&w->board->signins, &s, hr_now_ns())) {
		hr_answer_detail(ret, 503, "too many sign in at the same time");
		ret->retry_after_s = 1;
		return;
	}
	put_me(ret, s.rights, w->page_lifetime_s, token);
	set_cookie(ret, a, cookie, w->page_lifetime_s);
	explicit_bzero(cookie, sizeof(cookie));
	explicit_bzero(token, sizeof(token));
}

void
hr_handle_signin(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct json_object *body = hr_live_object(w, r, ret);
	struct asked a;

	if (body != NULL && take_asked(r, body, &a, ret))
		sign_in(w, r->session_key, &a, ret);
	json_object_put(body);
}

void
hr_handle_signout(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct json_object *body = hr_live_object(w, r, ret);
	struct hr_signin s;
	struct asked a;

	if (body != NULL && take_asked(r, body, &a, ret)) {
		if (find(w, r, &s))
			hr_signin_end(&w->board->signins, s.cookie);
		hr_buf_adds(&ret->body, "{}");
		set_cookie(ret, &a, "", 0);
	}
	json_object_put(body);
}

void
hr_handle_me(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_signin s;

	if (find(w, r, &s))
		put_me(ret, rights_of(w, &s), (s.until_ns - hr_now_ns()) / HR_NS_PER_S, NULL);
	else
		put_me(ret, HR_PAGE_ACT, -1, NULL); /* by the key itself, or none is needed */
}
