/* Checks the requirements for MCP servers in a configuration. Messages are the original's. */
#include "config.h"

#include "host/config/mcpconf.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <json-c/json.h>

#include "base/err.h"
#include "proto/json.h"
#include "proto/mcpserver.h"

#define TIMEOUT_S 60
#define TIMEOUT_MAX_S 3600
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* ---- servers with a URL ---- */

/* Splits a URL as Python's urlparse() does. */
static int
check_url(const char *url, struct hr_err *err)
{
	static const char *const schemes[] = {"http", "https", "ws", "wss"};
	size_t n = strspn(url, LETTERS);
	size_t i;

	if (*url == '\0')
		return hr_err_set(err, HR_E_INVAL, "URL cannot be empty");
	if (n > 0)
		n += strspn(url + n, LETTERS DIGITS "+-.");
	if (n == 0 || url[n] != ':')
		return hr_err_set(
		    err, HR_E_INVAL, "URL must include a scheme (http:// or https://)");
	if (strncmp(url + n, "://", 3) != 0 || strcspn(url + n + 3, "/?#") == 0)
		return hr_err_set(err, HR_E_INVAL, "URL must include a valid domain/host");
	for (i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
		if (strlen(schemes[i]) == n && strncasecmp(schemes[i], url, n) == 0)
			return 0;
	return hr_err_set(err, HR_E_INVAL, "URL scheme must be http, https, ws, or wss");
}

static int
check_timeout(struct json_object *o, struct json_object *to, struct hr_err *err)
{
	struct json_object *v = NULL;
	int64_t s;

	if (!json_object_object_get_ex(o, "timeout", &v))
		return hr_json_set(to, "timeout", json_object_new_int(TIMEOUT_S), err);
	if (v == NULL) /* there is no list */
		return json_object_object_add(to, "timeout", NULL) == 0 ? 0 : hr_err_nomem(err);
	if (!json_object_is_type(v, json_type_int))
		return hr_err_set(err, HR_E_INVAL, "Timeout is a number of seconds");
	s = json_object_get_int64(v);
	if (s <= 0)
		return hr_err_set(err, HR_E_INVAL, "Timeout must be positive");
	if (s > TIMEOUT_MAX_S)
		return hr_err_set(
		    err, HR_E_INVAL, "Timeout cannot exceed %d seconds", TIMEOUT_MAX_S);
	return hr_json_set(to, "timeout", json_object_new_int64(s), err);
}

static int
remote(struct json_object *o, struct json_object *to, bool with_timeout, struct hr_err *err)
{
	bool text = json_object_is_type(o, json_type_string);
	struct json_object *key = hr_json_at(o, "api_key");
	HR_FREE char *url = hr_mcpserver_trimmed(text ? o : hr_json_at(o, "url"), "URL", err);

	if (url == NULL || check_url(url, err) != 0 ||
	    hr_json_set(to, "url", json_object_new_string(url), err) != 0)
		return -1;
	if (key != NULL && !json_object_is_type(key, json_type_string))
		return hr_err_set(err, HR_E_INVAL, "api_key must be a string");
	if (key != NULL && hr_json_set(to, "api_key", json_object_get(key), err) != 0)
		return -1;
	if (with_timeout && (text ? hr_json_set(to, "timeout", json_object_new_int(TIMEOUT_S), err)
				  : check_timeout(o, to, err)) != 0)
		return -1;
	return 0;
}

/* ---- lists ---- */

static bool
has_url(struct json_object *list, struct json_object *url)
{
	size_t i;

	for (i = 0; i < json_object_array_length(list); i++)
		if (json_object_equal(hr_json_at(json_object_array_get_idx(list, i), "url"), url))
			return true;
	return false;
}

static int
add(struct json_object *list, struct json_object *o, const char *name, struct hr_err *err)
{
	bool sse = strcmp(name, "sse_servers") == 0, shttp = strcmp(name, "shttp_servers") == 0;
	struct json_object *to;
	int r;

	if (!json_object_is_type(o, json_type_object) &&
	    !((sse || shttp) && json_object_is_type(o, json_type_string)))
		return hr_err_set(err, HR_E_INVAL, "a server must be %s",
		    sse || shttp ? "a URL, or a table with url" : "a table with name and command");
	to = sse || shttp ? json_object_new_object() : hr_mcpserver(o, err);
	if (to == NULL)
		return sse || shttp ? hr_err_nomem(err) : -1;
	r = sse || shttp ? remote(o, to, shttp, err) : 0;
	if (r == 0 && sse && has_url(list, hr_json_at(to, "url")))
		r = hr_err_set(err, HR_E_INVAL, "Duplicate MCP server URLs are not allowed");
	if (r == 0 && json_object_array_add(list, to) != 0)
		r = hr_err_nomem(err);
	if (r != 0)
		json_object_put(to);
	return r;
}

struct json_object *
hr_mcpconf_check(const char *name, struct json_object *list, struct hr_err *err)
{
	struct json_object *checked = json_object_new_array();
	size_t i;

	if (checked == NULL)
		return hr_err_null(err);
	for (i = 0; i < json_object_array_length(list); i++) {
		if (add(checked, json_object_array_get_idx(list, i), name, err) != 0) {
			json_object_put(checked);
			return NULL;
		}
	}
	return checked;
}
