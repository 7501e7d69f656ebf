/* Handles the cookies of sign-ins. Invariant: input from a client reaches a response header only in
 * the forms spelled out here. */
#include "config.h"

#include "proto/signinweb.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/random.h"
#include "proto/json.h"

/* prefix of the cookie's name; the browser's port follows, since cookies are shared between
 * ports */
#define COOKIE "handrail-"
#define COOKIES_MAX 32 /* limit of handrail's cookies in one request */
#define PATH_MAX_BYTES 512

/* Checks the path of the page as the browser sees it: a proxy may have added a prefix. */
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

static const char *
member(struct json_object *body, const char *name, size_t *ret_len)
{
	struct json_object *v = hr_json_typed_at(body, name, HR_PY_STR);

	*ret_len = 0;
	return v != NULL ? hr_json_str(v, ret_len) : "";
}

bool
hr_signin_asked(struct json_object *body, bool over_tls, struct hr_signin_asked *ret)
{
	ret->path = member(body, "path", &ret->path_len);
	ret->port = member(body, "port", &ret->port_len);
	ret->secure = over_tls || hr_json_true_at(body, "secure");
	ret->look = hr_json_true_at(body, "look");
	return path_fits(ret->path, ret->path_len) && is_port(ret->port, ret->port_len);
}

int
hr_signin_make(struct hr_signins *s, const unsigned char salt[HR_KEYSUM_SALT],
    struct hr_signin *what, int64_t now_ns, char ret_cookie[HR_SIGNIN_SECRET + 1],
    char ret_token[HR_SIGNIN_SECRET + 1], struct hr_err *err)
{
	if (hr_random_hex(ret_cookie, HR_SIGNIN_SECRET, err) < 0 ||
	    hr_random_hex(ret_token, HR_SIGNIN_SECRET, err) < 0)
		return -1;
	hr_keysum(salt, ret_cookie, HR_SIGNIN_SECRET, what->cookie);
	hr_keysum(salt, ret_token, HR_SIGNIN_SECRET, what->token);
	return hr_signin_add(s, what, now_ns)
		   ? 0
		   : hr_err_set(err, HR_E_BUSY, "too many sign-ins at the same time; try again");
}

void
hr_signin_cookie(char line[HR_SIGNIN_COOKIE_MAX], const struct hr_signin_asked *a,
    const char *value, int64_t seconds)
{
	(void)snprintf(line, HR_SIGNIN_COOKIE_MAX,
	    COOKIE "%.*s=%s; Path=%.*s; Max-Age=%" PRId64 "; HttpOnly; SameSite=Strict%s",
	    (int)a->port_len, a->port, value, (int)a->path_len, a->path, seconds,
	    a->secure ? "; Secure" : ""); /* the buffer is large enough */
}

bool
hr_signin_by(const struct hr_signins *s, const unsigned char salt[HR_KEYSUM_SALT],
    const char *cookies, const char *token, int64_t now_ns, struct hr_signin *ret)
{
	unsigned char cookie_sum[HR_KEYSUM], token_sum[HR_KEYSUM];
	const char *p = cookies, *value;
	size_t len, tries = 0;

	if (strlen(token) != HR_SIGNIN_SECRET)
		return false;
	hr_keysum(salt, token, HR_SIGNIN_SECRET, token_sum);
	for (; *p != '\0'; p += len + (p[len] == ';')) {
		p += strspn(p, " ");
		len = strcspn(p, ";");
		value = memchr(p, '=', len);
		if (value == NULL || strncmp(p, COOKIE, strlen(COOKIE)) != 0 ||
		    len - (size_t)(value + 1 - p) != HR_SIGNIN_SECRET || tries++ == COOKIES_MAX)
			continue;
		hr_keysum(salt, value + 1, HR_SIGNIN_SECRET, cookie_sum);
		if (hr_signin_find(s, cookie_sum, token_sum, now_ns, ret))
			return true;
	}
	return false;
}
