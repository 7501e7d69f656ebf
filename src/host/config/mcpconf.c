/* What an MCP server in a configuration has to be. Messages are the original's. */
#include "config.h"

#include "host/config/mcpconf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/json.h"

#define TIMEOUT_S 60
#define TIMEOUT_MAX_S 3600
#define TEXT_MAX (1u << 20)
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* Without white space around it; NULL: *err. The caller frees. */
static char *
trimmed(struct json_object *v, const char *what, struct hr_err *err)
{
	const char *s = json_object_get_string(v), *end;
	char *copy;

	if (!json_object_is_type(v, json_type_string)) {
		(void)hr_err_set(err, HR_E_INVAL, "%s is a text", what);
		return NULL;
	}
	while (isspace((unsigned char)*s))
		s++;
	for (end = s + strlen(s); end > s && isspace((unsigned char)end[-1]);)
		end--;
	copy = strndup(s, (size_t)(end - s));
	return copy != NULL ? copy : hr_err_null(err);
}

/* ---- servers with a URL ---- */

/* As Python's urlparse() splits it. */
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
	if (v == NULL) /* none */
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
	HR_FREE char *url = trimmed(text ? o : hr_json_at(o, "url"), "URL", err);

	if (url == NULL || check_url(url, err) != 0 ||
	    hr_json_set(to, "url", json_object_new_string(url), err) != 0)
		return -1;
	if (key != NULL && !json_object_is_type(key, json_type_string))
		return hr_err_set(err, HR_E_INVAL, "api_key is a text");
	if (key != NULL && hr_json_set(to, "api_key", json_object_get(key), err) != 0)
		return -1;
	if (with_timeout && (text ? hr_json_set(to, "timeout", json_object_new_int(TIMEOUT_S), err)
				  : check_timeout(o, to, err)) != 0)
		return -1;
	return 0;
}

/* ---- servers that are programs ---- */

/* One word as Python's shlex.split() reads it, into b: 1 there was one, 0 the end, -1 *err. */
static int
next_word(const char **text, struct hr_buf *b, struct hr_err *err)
{
	const char *p = *text, *why = NULL;
	char quote = '\0';

	while (*p != '\0' && strchr(" \t\r\n", *p) != NULL)
		p++;
	if (*p == '\0')
		return 0;
	for (; *p != '\0' && (quote != '\0' || strchr(" \t\r\n", *p) == NULL); p++) {
		if (quote == '\0' && (*p == '\'' || *p == '"')) {
			quote = *p;
		} else if (quote != '\0' && *p == quote) {
			quote = '\0';
		} else if (*p == '\\' && quote == '\0' && p[1] == '\0') {
			why = "No escaped character";
		} else {
			/* between double quotes it is for these two only */
			if (*p == '\\' && (quote == '\0' || (quote == '"' && p[1] != '\0' &&
								strchr("\"\\", p[1]) != NULL)))
				p++;
			hr_buf_addc(b, *p);
		}
	}
	if (quote != '\0')
		why = "No closing quotation";
	*text = p;
	return why == NULL ? 1 : hr_err_set(err, HR_E_INVAL, "Invalid argument format: %s", why);
}

static struct json_object *
split_args(const char *text, struct hr_err *err)
{
	struct json_object *list = json_object_new_array(), *word;
	HR_BUF(b, TEXT_MAX);
	int r;

	if (list == NULL)
		(void)hr_err_nomem(err);
	while (list != NULL && (r = next_word(&text, &b, err)) != 0) {
		word = r == 1 ? json_object_new_string(hr_buf_str(&b)) : NULL;
		if (r == 1 && (hr_buf_check(&b, NULL) != 0 || word == NULL ||
				  json_object_array_add(list, word) != 0)) {
			json_object_put(word);
			r = hr_err_nomem(err);
		}
		if (r < 0) {
			json_object_put(list);
			list = NULL;
		}
		hr_buf_reset(&b);
	}
	return list;
}

static int
check_args(struct json_object *v, struct json_object *to, struct hr_err *err)
{
	struct json_object *list;
	size_t i;

	if (json_object_is_type(v, json_type_string)) {
		list = split_args(json_object_get_string(v), err);
		return list != NULL ? hr_json_set(to, "args", list, err) : -1;
	}
	if (v == NULL)
		return hr_json_set(to, "args", json_object_new_array(), err);
	if (!json_object_is_type(v, json_type_array))
		return hr_err_set(err, HR_E_INVAL, "args is a list of texts, or a text");
	for (i = 0; i < json_object_array_length(v); i++)
		if (!json_object_is_type(json_object_array_get_idx(v, i), json_type_string))
			return hr_err_set(err, HR_E_INVAL, "args is a list of texts, or a text");
	return hr_json_set(to, "args", json_object_get(v), err);
}

/* One "NAME=value" of n bytes, with white space around it and its parts. */
static int
add_variable(struct json_object *env, const char *pair, size_t n, struct hr_err *err)
{
	struct json_object *v = json_object_new_string_len(pair, (int)n);
	char *eq, *value = NULL;
	HR_FREE char *whole = v != NULL ? trimmed(v, "env", err) : NULL;
	size_t name;
	int r = whole != NULL ? 0 : v == NULL ? hr_err_nomem(err) : -1;

	json_object_put(v);
	if (r != 0 || *whole == '\0')
		return r;
	eq = strchr(whole, '=');
	for (name = eq != NULL ? (size_t)(eq - whole) : 0;
	     name > 0 && isspace((unsigned char)whole[name - 1]); name--)
		;
	if (eq == NULL) {
		r = hr_err_set(err, HR_E_INVAL,
		    "Environment variable '%.200s' must be in KEY=VALUE format", whole);
	} else if (name == 0) {
		r = hr_err_set(err, HR_E_INVAL, "Environment variable key cannot be empty");
	} else {
		*eq = '\0';
		whole[name] = '\0';
		for (value = eq + 1; isspace((unsigned char)*value); value++)
			;
		if (strspn(whole, DIGITS) > 0 || strspn(whole, LETTERS DIGITS "_") != name)
			r = hr_err_set(err, HR_E_INVAL,
			    "Invalid environment variable name '%.200s'. Must contain only "
			    "letters, numbers, and underscores, and start with a letter or "
			    "underscore",
			    whole);
		else
			r = hr_json_set(env, whole, json_object_new_string(value), err);
	}
	return r;
}

static int
check_env(struct json_object *v, struct json_object *to, struct hr_err *err)
{
	struct json_object *env;
	const char *p;
	size_t n;
	int r;

	if (json_object_is_type(v, json_type_object)) {
		json_object_object_foreach(v, name, value)
		{
			if (!json_object_is_type(value, json_type_string))
				return hr_err_set(err, HR_E_INVAL,
				    "The value of environment variable '%.200s' is a text", name);
		}
		return hr_json_set(to, "env", json_object_get(v), err);
	}
	if (v != NULL && !json_object_is_type(v, json_type_string))
		return hr_err_set(err, HR_E_INVAL, "env is a map of texts, or a text");
	env = json_object_new_object();
	r = env != NULL ? 0 : hr_err_nomem(err);
	for (p = v != NULL ? json_object_get_string(v) : ""; r == 0 && *p != '\0'; p += n) {
		n = strcspn(p, ",");
		r = add_variable(env, p, n, err);
		n += p[n] == ',';
	}
	if (r == 0)
		return hr_json_set(to, "env", env, err);
	json_object_put(env);
	return r;
}

static int
program(struct json_object *o, struct json_object *to, struct hr_err *err)
{
	HR_FREE char *name = trimmed(hr_json_at(o, "name"), "Server name", err);
	HR_FREE char *command = NULL;

	if (name == NULL)
		return -1;
	if (*name == '\0')
		return hr_err_set(err, HR_E_INVAL, "Server name cannot be empty");
	if (strspn(name, LETTERS DIGITS "_-") != strlen(name))
		return hr_err_set(err, HR_E_INVAL,
		    "Server name can only contain letters, numbers, hyphens, and underscores");
	command = trimmed(hr_json_at(o, "command"), "Command", err);
	if (command == NULL)
		return -1;
	if (*command == '\0')
		return hr_err_set(err, HR_E_INVAL, "Command cannot be empty");
	if (strchr(command, ' ') != NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "Command should be a single executable without spaces (use arguments field "
		    "for parameters)");
	if (hr_json_set(to, "name", json_object_new_string(name), err) != 0 ||
	    hr_json_set(to, "command", json_object_new_string(command), err) != 0 ||
	    check_args(hr_json_at(o, "args"), to, err) != 0)
		return -1;
	return check_env(hr_json_at(o, "env"), to, err);
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
		return hr_err_set(err, HR_E_INVAL, "a server is %s",
		    sse || shttp ? "a URL or a table with one" : "a table with name and command");
	to = json_object_new_object();
	if (to == NULL)
		return hr_err_nomem(err);
	r = sse || shttp ? remote(o, to, shttp, err) : program(o, to, err);
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
