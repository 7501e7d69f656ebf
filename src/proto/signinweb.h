/* hr_signin_web: handles the browser's side of a sign-in (proto/signin.h): a cookie that the
 * browser sends by itself, and a token that only the page sends. Neither suffices alone. */
#ifndef HR_PROTO_SIGNINWEB_H
#define HR_PROTO_SIGNINWEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/signin.h"

#define HR_SIGNIN_SECRET 64 /* hexadecimal digits of each secret: 256 bits */
#define HR_SIGNIN_COOKIE_MAX 800

struct json_object;

/* The page's address as the browser sees it, and the requested sign-in. Strings are borrowed from
 * the body. */
struct hr_signin_asked {
	const char *path, *port;
	size_t path_len, port_len;
	bool secure, look;
};

/* Parses the body of a sign-in or sign-out; over_tls: the request came over TLS as far as the
 * server can see. Returns false if path or port are invalid. */
bool hr_signin_asked(struct json_object *body, bool over_tls, struct hr_signin_asked *ret);

/* Makes a sign-in in a place of its own and sets what->cookie and what->token. Returns 0, or -1
 * with HR_E_BUSY or HR_E_SYS. */
int hr_signin_make(struct hr_signins *s, const unsigned char salt[HR_KEYSUM_SALT],
    struct hr_signin *what, int64_t now_ns, char ret_cookie[HR_SIGNIN_SECRET + 1],
    char ret_token[HR_SIGNIN_SECRET + 1], struct hr_err *err);

/* Writes the value of Set-Cookie. With an empty value the browser deletes the cookie. */
void hr_signin_cookie(char line[HR_SIGNIN_COOKIE_MAX], const struct hr_signin_asked *a,
    const char *value, int64_t seconds);

/* Finds the sign-in of these headers; "" for a missing header. */
bool hr_signin_by(const struct hr_signins *s, const unsigned char salt[HR_KEYSUM_SALT],
    const char *cookies, const char *token, int64_t now_ns, struct hr_signin *ret);

#endif
