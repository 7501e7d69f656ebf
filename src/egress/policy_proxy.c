/* Reads the proxy by which connections leave. */
#include "config.h"

#include "egress/policy_int.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/text/text.h"
#include "proto/json.h"

#define SECRET "${secrets."

static int
read_address(const char *text, struct egress_proxy *ret, struct hr_err *err)
{
	static const char http[] = "http://", socks[] = "socks5://";
	struct policy_target t;

	if (hr_text_set(&ret->spelled, text, err) < 0)
		return -1;
	ret->http = strncmp(text, http, sizeof(http) - 1) == 0;
	if (ret->http)
		text += sizeof(http) - 1;
	else if (strncmp(text, socks, sizeof(socks) - 1) == 0)
		text += sizeof(socks) - 1;
	if (policy_target_read(text, &t, err) < 0)
		return -1;
	if (t.port == 0 || t.name[0] == '.' || (t.range.version == 4 && t.range.length < 32) ||
	    (t.range.version == 6 && t.range.length < 128))
		return hr_err_set(
		    err, HR_E_INVAL, "must be HOST:PORT, http://HOST:PORT or socks5://HOST:PORT");
	ret->port = t.port;
	if (t.range.version == 0) {
		memcpy(ret->name, t.name, sizeof(ret->name));
	} else if (t.range.version == 4) {
		ret->address.in.sin_family = AF_INET;
		ret->address.in.sin_port = htons((uint16_t)t.port);
		memcpy(&ret->address.in.sin_addr, t.range.a, sizeof(struct in_addr));
	} else {
		ret->address.in6.sin6_family = AF_INET6;
		ret->address.in6.sin6_port = htons((uint16_t)t.port);
		memcpy(&ret->address.in6.sin6_addr, t.range.a, sizeof(struct in6_addr));
	}
	return 0;
}

static int
read_user(const char *user, const char *password, struct egress_proxy *ret, struct hr_err *err)
{
	const size_t start = sizeof(SECRET) - 1, n = strlen(password);
	const char *at;

	for (at = user; *at >= ' ' && *at < 0x7F && *at != ':';)
		at++;
	if (at == user || *at != '\0' || at - user > EGRESS_SOCKS_MAX)
		return hr_err_set(
		    err, HR_E_INVAL, "username must be 1 to 255 characters of ASCII without \":\"");
	if (strncmp(password, SECRET, start) != 0 || strchr(password, '}') != password + n - 1)
		return hr_err_set(err, HR_E_INVAL,
		    "password must be ${secrets.NAME}: its value does not belong "
		    "into rules, which can be shown");
	ret->secret = strndup(password + start, n - start - 1);
	return ret->secret != NULL ? hr_text_set(&ret->user, user, err) : hr_err_nomem(err);
}

int
policy_proxy_read(struct json_object *v, struct egress_proxy *ret, struct hr_err *err)
{
	const char *address = hr_json_text_at(v, "address");
	const char *user = hr_json_text_at(v, "username");
	const char *password = hr_json_text_at(v, "password");

	if (hr_json_type(v) != HR_PY_DICT || address == NULL ||
	    (user == NULL) != (password == NULL) ||
	    json_object_object_length(v) != (user != NULL ? 3 : 1))
		return hr_err_set(err, HR_E_INVAL,
		    "must be an object with \"address\", and \"username\" and "
		    "\"password\" if the proxy requires them");
	if (read_address(address, ret, err) < 0)
		return hr_err_prefix(err, "address");
	return user != NULL ? read_user(user, password, ret, err) : 0;
}

void
policy_proxy_done(struct egress_proxy *p)
{
	free(p->spelled);
	free(p->user);
	free(p->secret);
}

const struct egress_proxy *
egress_policy_proxy(const struct egress_policy *p)
{
	return p->proxy.spelled != NULL ? &p->proxy : NULL;
}

int
egress_policy_password(
    const struct egress_policy *p, struct json_object *secrets, struct hr_err *err)
{
	const struct egress_proxy *x = &p->proxy;
	const char *value = x->secret != NULL ? hr_json_text_at(secrets, x->secret) : NULL;
	const size_t n = value != NULL ? strlen(value) : 0;
	const size_t most = x->http ? EGRESS_CONNECT_MAX : EGRESS_SOCKS_MAX;

	return n <= most ? 0
			 : hr_err_set(err, HR_E_INVAL,
			       "egressProxy: the secret \"%s\" has %zu bytes: the password of %s "
			       "proxy must have at most %zu",
			       x->secret, n, x->http ? "an HTTP" : "a SOCKS5", most);
}
