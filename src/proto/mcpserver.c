/* Parses descriptions of MCP servers; the error messages are the original's. */
#include "config.h"

#include "proto/mcpserver.h"

#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/text/utf8.h"
#include "proto/json.h"

#define TEXT_MAX (1u << 20)
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

char *
hr_mcpserver_trimmed(struct json_object *v, const char *what, struct hr_err *err)
{
	const char *s = hr_json_text(v);
	size_t len = s != NULL ? strlen(s) : 0;
	char *copy;

	if (s == NULL) {
		(void)hr_err_set(err, HR_E_INVAL, "%s is a text", what);
		return NULL;
	}
	hr_utf8_strip(&s, &len);
	copy = strndup(s, len);
	return copy != NULL ? copy : hr_err_null(err);
}

/* ---- "args" ---- */

/* Reads one word as Python's shlex.split() into b. Returns 1, 0 at the end, or -1 with *err. */
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
			/* A backslash within double quotes escapes only these two. */
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
	struct json_object *list = json_object_new_array();
	HR_BUF(b, TEXT_MAX);
	int r = list != NULL ? 1 : hr_err_nomem(err);

	while (r > 0 && (r = next_word(&text, &b, err)) > 0) {
		if (hr_buf_check(&b, err) < 0 ||
		    hr_json_append(list, json_object_new_string(hr_buf_str(&b)), err) < 0)
			r = -1;
		hr_buf_reset(&b);
	}
	if (r == 0)
		return list;
	json_object_put(list);
	return NULL;
}

static struct json_object *
args_of(struct json_object *v, struct hr_err *err)
{
	if (v == NULL)
		return json_object_new_array();
	if (hr_json_text(v) != NULL) /* a null character would cut the argument */
		return split_args(hr_json_text(v), err);
	if (hr_json_type(v) == HR_PY_LIST && hr_json_all_strings(v))
		return json_object_get(v);
	(void)hr_err_set(err, HR_E_INVAL, "args is a list of texts, or a text");
	return NULL;
}

/* ---- "env" ---- */

/* Adds one "NAME=value", trimming white space around it and its parts. */
static int
add_variable(struct json_object *env, const char *pair, size_t len, struct hr_err *err)
{
	HR_FREE char *name = NULL;
	HR_FREE char *value = NULL;
	const char *eq, *p;
	size_t n, rest;

	hr_utf8_strip(&pair, &len);
	if (len == 0)
		return 0;
	eq = memchr(pair, '=', len);
	if (eq == NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "Environment variable '%.*s' must be in KEY=VALUE format",
		    (int)(len < 200 ? len : 200), pair);
	p = pair;
	n = (size_t)(eq - pair);
	hr_utf8_strip(&p, &n);
	name = strndup(p, n);
	p = eq + 1;
	rest = len - (size_t)(p - pair);
	hr_utf8_strip(&p, &rest);
	value = strndup(p, rest);
	if (name == NULL || value == NULL)
		return hr_err_nomem(err);
	if (n == 0)
		return hr_err_set(err, HR_E_INVAL, "Environment variable key cannot be empty");
	if (strspn(name, DIGITS) > 0 || strspn(name, LETTERS DIGITS "_") != n)
		return hr_err_set(err, HR_E_INVAL,
		    "Invalid environment variable name '%.200s'. Must contain only letters, "
		    "numbers, and underscores, and start with a letter or underscore",
		    name);
	return hr_json_set(env, name, json_object_new_string(value), err);
}

static struct json_object *
split_variables(const char *text, struct hr_err *err)
{
	struct json_object *env = json_object_new_object();
	int r = env != NULL ? 0 : hr_err_nomem(err);
	size_t n;

	for (; r == 0 && *text != '\0'; text += n + (text[n] == ',')) {
		n = strcspn(text, ",");
		r = add_variable(env, text, n, err);
	}
	if (r == 0)
		return env;
	json_object_put(env);
	return NULL;
}

static struct json_object *
env_of(struct json_object *v, struct hr_err *err)
{
	if (v == NULL)
		return json_object_new_object();
	if (hr_json_text(v) != NULL)
		return split_variables(hr_json_text(v), err);
	if (hr_json_type(v) != HR_PY_DICT) {
		(void)hr_err_set(err, HR_E_INVAL, "env is a map of texts, or a text");
		return NULL;
	}
	json_object_object_foreach(v, name, value)
	{
		if (hr_json_type(value) == HR_PY_STR)
			continue;
		(void)hr_err_set(
		    err, HR_E_INVAL, "The value of environment variable '%.200s' is a text", name);
		return NULL;
	}
	return json_object_get(v);
}

/* ---- the whole entry ---- */

static int
check_name(const char *name, struct hr_err *err)
{
	if (*name == '\0')
		return hr_err_set(err, HR_E_INVAL, "Server name cannot be empty");
	if (strspn(name, LETTERS DIGITS "_-") != strlen(name))
		return hr_err_set(err, HR_E_INVAL,
		    "Server name can only contain letters, numbers, hyphens, and underscores");
	return 0;
}

static int
check_command(const char *command, struct hr_err *err)
{
	if (*command == '\0')
		return hr_err_set(err, HR_E_INVAL, "Command cannot be empty");
	if (strchr(command, ' ') != NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "Command should be a single executable without spaces (use arguments field "
		    "for parameters)");
	return 0;
}

struct json_object *
hr_mcpserver(struct json_object *entry, struct hr_err *err)
{
	HR_FREE char *name = hr_mcpserver_trimmed(hr_json_at(entry, "name"), "Server name", err);
	HR_FREE char *command = NULL;
	HR_PUT struct json_object *args = NULL;
	HR_PUT struct json_object *env = NULL;

	if (name == NULL || check_name(name, err) < 0)
		return NULL;
	command = hr_mcpserver_trimmed(hr_json_at(entry, "command"), "Command", err);
	if (command == NULL || check_command(command, err) < 0)
		return NULL;
	args = args_of(hr_json_at(entry, "args"), err);
	env = args != NULL ? env_of(hr_json_at(entry, "env"), err) : NULL;
	if (env == NULL)
		return NULL;
	return hr_json_object(err, "name", json_object_new_string(name), "command",
	    json_object_new_string(command), "args", json_object_get(args), "env",
	    json_object_get(env), NULL);
}
