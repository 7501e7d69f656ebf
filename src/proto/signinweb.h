/* hr_signin_web: what a browser sends and is sent for a sign-in (proto/signin.h): a cookie that it
 * sends by itself, and a token that only the page sends. Neither is anything alone. */
#ifndef HR_PROTO_SIGNINWEB_H
#define HR_PROTO_SIGNINWEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/signin.h"

#define HR_SIGNIN_SECRET 64 /* hexadecimal digits of each: 256 bits */
#define HR_SIGNIN_COOKIE_MAX 800

struct json_object;

/* Where the page is as the browser sees it, and what it asks for. Texts are the body's. */
struct hr_signin_asked {
	const char *path, *port;
	size_t path_len, port_len;
	bool secure, look;
};

/* The body of a sign-in or its end; over_tls: as far as we can see. false: path or port are none.
 */
bool hr_signin_asked(struct json_object *body, bool over_tls, struct hr_signin_asked *ret);

/* A sign-in in a place of its own; what->cookie and what->token are set. -1: HR_E_BUSY, HR_E_SYS.
 */
int hr_signin_make(struct hr_signins *s, const unsigned char salt[HR_KEYSUM_SALT],
    struct hr_signin *what, int64_t now_ns, char ret_cookie[HR_SIGNIN_SECRET + 1],
    char ret_token[HR_SIGNIN_SECRET + 1], struct hr_err *err);

/* The value of Set-Cookie. value "": the browser forgets it. */
void hr_signin_cookie(char line[HR_SIGNIN_COOKIE_MAX], const struct hr_signin_asked *a,
    const char *value, int64_t seconds);

/* The one that these headers are of, "" for one that is not there. */
bool hr_signin_by(const struct hr_signins *s, const unsigned char salt[HR_KEYSUM_SALT],
    const char *cookies, const char *token, int64_t now_ns, struct hr_signin *ret);

#endif
