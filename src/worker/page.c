/* Signs in pages and checks their rights. Invariant: the data that a browser sends by itself never
 * suffices, and no client data reaches a response header except as written out here. */
#include "config.h"

#include "worker/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/json.h"
#include "proto/signinweb.h"
#include "worker/live.h"
#include "worker/worker.h"

#define BELOW "/handrail/v1/"

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

/* ---- access ---- */

static bool
find(const struct hr_worker *w, const struct hr_request *r, struct hr_signin *ret)
{
	return hr_signin_by(&w->board->signins, w->auth.head.salt, r->cookie, r->page_token,
		   hr_now_ns(), ret) &&
	       hr_auth_knows(&w->auth, ret->key);
}

/* Accepts only a path below the page's, in its plain spelling: nginx may resolve another spelling
 * differently. */
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

/* Returns true if view-only rights suffice, as they do for signing oneself out. */
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
	const char *uri = asked ? r->asked_uri : r->uri;
	const char *method = asked ? r->asked_method : r->method;
	struct hr_signin s;

	if (r->page_token[0] == '\0' || !is_below(uri) || !find(w, r, &s))
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

static bool
take_asked(const struct hr_request *r, struct json_object *body, struct hr_signin_asked *ret,
    struct hr_answer *answer)
{
	return hr_signin_asked(body, strcmp(r->scheme, "https") == 0, ret) ||
	       hr_answer_detail(
		   answer, 400, "path must end with /handrail/, and port must be a number");
}

/* Sets the cookie; an empty value makes the browser forget it. */
static void
set_cookie(
    struct hr_answer *ret, const struct hr_signin_asked *a, const char *value, int64_t seconds)
{
	char line[HR_SIGNIN_COOKIE_MAX];

	hr_signin_cookie(line, a, value, seconds);
	hr_answer_header(ret, "Set-Cookie", line);
}

/* Appends the sandbox's name: that of its session, else that of the host it runs on. */
static void
put_name(struct hr_buf *b)
{
	const char *session = getenv("OPENHANDS_SESSION_ID");
	struct utsname host;

	if (session != NULL && *session != '\0')
		hr_json_put_named(b, "name", session);
	else if (uname(&host) == 0)
		hr_json_put_named(b, "name", host.nodename);
	else
		hr_json_put_named(b, "name", "");
}

static void
put_me(struct hr_answer *ret, uint32_t rights, int64_t seconds, const char *token)
{
	hr_buf_addf(&ret->body, "{\"rights\":\"%s\",\"expires_in\":", rights_name(rights));
	if (seconds >= 0)
		hr_buf_addf(&ret->body, "%" PRId64, seconds);
	else
		hr_buf_adds(&ret->body, "null");
	put_name(&ret->body);
	if (token != NULL)
		hr_buf_addf(&ret->body, ",\"token\":\"%s\"", token);
	hr_buf_addc(&ret->body, '}');
	hr_answer_header(ret, "Cache-Control", "no-store");
}

static void
sign_in(
    struct hr_worker *w, const char *key, const struct hr_signin_asked *a, struct hr_answer *ret)
{
	struct hr_signin s = {.until_ns = hr_now_ns() + w->page_lifetime_s * HR_NS_PER_S};
	char cookie[HR_SIGNIN_SECRET + 1], token[HR_SIGNIN_SECRET + 1];
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
	if (hr_signin_make(
		&w->board->signins, w->auth.head.salt, &s, hr_now_ns(), cookie, token, &err) < 0 &&
	    err.code == HR_E_BUSY) {
		hr_answer_later(ret, err.msg);
		return;
	}
	if (err.code != HR_OK) {
		hr_log(HR_LOG_ERROR, "signing in: %s", err.msg);
		hr_answer_generic(ret);
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
	HR_PUT struct json_object *body = hr_live_object(w, r, ret);
	struct hr_signin_asked a;

	if (body != NULL && take_asked(r, body, &a, ret))
		sign_in(w, r->session_key, &a, ret);
}

void
hr_handle_signout(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_PUT struct json_object *body = hr_live_object(w, r, ret);
	struct hr_signin s;
	struct hr_signin_asked a;

	if (body == NULL || !take_asked(r, body, &a, ret))
		return;
	if (find(w, r, &s))
		hr_signin_end(&w->board->signins, s.cookie);
	hr_buf_adds(&ret->body, "{}");
	set_cookie(ret, &a, "", 0);
}

void
hr_handle_me(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_signin s;

	if (find(w, r, &s))
		put_me(ret, rights_of(w, &s), (s.until_ns - hr_now_ns()) / HR_NS_PER_S, NULL);
	else
		put_me(ret, HR_PAGE_ACT, -1,
		    NULL); /* the client used the key itself, or no key is required */
}
