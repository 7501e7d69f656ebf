/* Stores a configuration, and has its getters. */
#include "config.h"

#include "host/config/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/err.h"
#include "host/common/kindfile.h"
#include "host/config/mcpconf.h"
#include "proto/json.h"
#include "proto/python/literal.h"

#define JSON_MAX (16u << 20)
#define WARNING_MAX 500

static struct json_object *
section_of(const struct hr_config *c, const char *name)
{
	struct json_object *s = NULL;

	(void)json_object_object_get_ex(c->values, name, &s);
	return s;
}

static bool
is_runtime(const struct hr_key *k)
{
	return strcmp(k->section, "core") == 0 && strcmp(k->name, "runtime") == 0;
}

int
hr_config_put(
    struct hr_config *c, const struct hr_key *k, struct json_object *v, struct hr_err *err)
{
	struct json_object *s = section_of(c, k->section);

	if (hr_json_has_null(v)) { /* a C string would end at the null character */
		json_object_put(v);
		return hr_err_set(err, HR_E_INVAL, "\"%s\" in [%s] must not have a null character",
		    k->name, k->section);
	}
	if (s == NULL) {
		s = json_object_new_object();
		if (s == NULL || json_object_object_add(c->values, k->section, s) != 0) {
			json_object_put(s);
			json_object_put(v);
			return hr_err_nomem(err);
		}
	}
	if (json_object_object_add(s, k->name, v) != 0) {
		json_object_put(v);
		return hr_err_nomem(err);
	}
	if (is_runtime(k)) {
		c->runtime_named = false;
		c->runtime_set = true;
	}
	return 0;
}

static int
put_default(struct hr_config *c, const struct hr_key *k, struct hr_err *err)
{
	struct json_object *v = NULL;

	if (k->fallback != NULL) {
		v = json_tokener_parse(k->fallback);
		if (v == NULL)
			return hr_err_nomem(err);
	}
	return hr_config_put(c, k, v, err);
}

struct hr_config *
hr_config_new(struct hr_err *err)
{
	struct hr_config *c = calloc(1, sizeof(*c));
	size_t i;

	if (c == NULL || (c->values = json_object_new_object()) == NULL) {
		free(c);
		return hr_err_null(err);
	}
	for (i = 0; i < hr_keys_all_n; i++) {
		if (put_default(c, &hr_keys_all[i], err) < 0) {
			hr_config_free(c);
			return NULL;
		}
	}
	c->runtime_set = false;
	return c;
}

static int
copy_tree(struct json_object *from, struct json_object **to)
{
	return from != NULL ? json_object_deep_copy(from, to, NULL) : 0;
}

struct hr_config *
hr_config_copy(const struct hr_config *c, struct hr_err *err)
{
	struct hr_config *n = calloc(1, sizeof(*n));

	if (n != NULL)
		hr_strv_add_all(&n->env, hr_strv_list(&c->env));
	if (n == NULL || n->env.failed || copy_tree(c->values, &n->values) != 0 ||
	    copy_tree(c->later, &n->later) != 0 || copy_tree(c->set, &n->set) != 0) {
		hr_config_free(n);
		return hr_err_null(err);
	}
	n->runtime_named = c->runtime_named;
	n->runtime_set = c->runtime_set;
	return n;
}

void
hr_config_free(struct hr_config *c)
{
	if (c == NULL)
		return;
	json_object_put(c->values);
	json_object_put(c->later);
	json_object_put(c->set);
	hr_strv_done(&c->env);
	free(c->own);
	free(c);
}

void
hr_config_warn(struct hr_config *c, const char *fmt, ...)
{
	char text[WARNING_MAX];
	va_list ap;

	if (c->warn == NULL)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->warn(c->warn_arg, text);
}

static const struct hr_key *
key_of(const struct hr_config *c, const char *key)
{
	const struct hr_key *found;
	const char *dot = strrchr(key, '.');
	char section[32];
	size_t i;

	if (dot == NULL || (size_t)(dot - key) >= sizeof(section))
		return NULL;
	memcpy(section, key, (size_t)(dot - key));
	section[dot - key] = '\0';
	found = hr_key_find(section, dot + 1, strlen(dot + 1));
	for (i = 0; found == NULL && i < c->own_n; i++)
		if (strcmp(c->own[i].section, section) == 0 && strcmp(c->own[i].name, dot + 1) == 0)
			found = &c->own[i];
	return found;
}

struct json_object *
hr_config_value(const struct hr_config *c, const char *key)
{
	const struct hr_key *k = key_of(c, key);
	struct json_object *v = NULL;

	if (k != NULL)
		(void)json_object_object_get_ex(section_of(c, k->section), k->name, &v);
	return v;
}

const char *
hr_config_text(const struct hr_config *c, const char *key)
{
	struct json_object *v = hr_config_value(c, key);

	return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
}

long long
hr_config_int(const struct hr_config *c, const char *key)
{
	struct json_object *v = hr_config_value(c, key);

	return json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : 0;
}

bool
hr_config_bool(const struct hr_config *c, const char *key)
{
	struct json_object *v = hr_config_value(c, key);

	return json_object_is_type(v, json_type_boolean) && json_object_get_boolean(v);
}

static struct json_object *
convert_number(const struct hr_key *k, const char *text)
{
	char *stop;
	double d;

	errno = 0;
	if (k->type == HR_KEY_INT) {
		long long n = strtoll(text, &stop, 10);

		while (isspace((unsigned char)*stop))
			stop++;
		return stop == text || *stop != '\0' || errno != 0 ? NULL
								   : json_object_new_int64(n);
	}
	d = strtod(text, &stop);
	return stop == text || *stop != '\0' ? NULL : json_object_new_double(d);
}

/* Parses a Python literal, or JSON. */
static struct json_object *
convert_tree(const struct hr_key *k, const char *text)
{
	struct json_object *v = NULL;

	if (hr_pyliteral(text, strlen(text), &v) != 0 &&
	    hr_json_decode(text, strlen(text), &v, NULL) < 0)
		return NULL;
	if (!json_object_is_type(v, k->type == HR_KEY_LIST ? json_type_array : json_type_object)) {
		json_object_put(v);
		return NULL;
	}
	return v;
}

struct json_object *
hr_config_convert(const struct hr_key *k, const char *text, struct hr_err *err)
{
	struct json_object *v = NULL, *list;

	switch (k->type) {
	case HR_KEY_TEXT: v = json_object_new_string(text); break;
	case HR_KEY_BOOL:
		v = json_object_new_boolean(
		    strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0);
		break;
	case HR_KEY_INT:
	case HR_KEY_FLOAT: v = convert_number(k, text); break;
	case HR_KEY_LIST:
	case HR_KEY_MAP: v = convert_tree(k, text); break;
	}
	if (v == NULL)
		(void)hr_err_set(err, HR_E_INVAL, "check that the value is of the right type");
	if (v == NULL || strcmp(k->section, "mcp") != 0)
		return v;
	list = hr_mcpconf_check(k->name, v, err);
	json_object_put(v);
	return list;
}

int
hr_config_put_text(struct hr_config *c, const char *key, const char *text, struct hr_err *err)
{
	const struct hr_key *k = key_of(c, key);
	struct json_object *v = NULL;

	hr_assert(k != NULL);
	if (text != NULL && (v = json_object_new_string(text)) == NULL)
		return hr_err_nomem(err);
	return hr_config_put(c, k, v, err);
}

static int
unknown_key(const char *key, struct hr_err *err)
{
	const char *dot = strrchr(key, '.'), *near = NULL;
	char section[32] = "core";

	if (dot != NULL)
		(void)snprintf(section, sizeof(section), "%.*s", (int)(dot - key), key);
	near = hr_key_nearest(section, dot != NULL ? dot + 1 : key);
	return hr_err_set(err, HR_E_INVAL, "there is no setting \"%s\"%s%s%s%s%s", key,
	    near != NULL ? "; did you mean \"" : "", near != NULL ? section : "",
	    near != NULL ? "." : "", near != NULL ? near : "", near != NULL ? "\"?" : "");
}

int
hr_config_wrong_type(const struct hr_key *k, const char *text, struct hr_err *err)
{
	static const char *const must_be[] = {[HR_KEY_TEXT] = "a string",
	    [HR_KEY_INT] = "an integer",
	    [HR_KEY_FLOAT] = "a number",
	    [HR_KEY_BOOL] = "true or false",
	    [HR_KEY_LIST] = "a list in JSON",
	    [HR_KEY_MAP] = "an object in JSON"};

	return hr_err_set(err, HR_E_INVAL, "%s.%s must be %s%s%s", k->section, k->name,
	    must_be[k->type], k->secret ? "" : ", not: ", k->secret ? "" : text);
}

/* Returns true for a setting "NAME.KEY" of the chosen back-end NAME, which is not known yet. */
static bool
is_of_kind(const struct hr_config *c, const char *key)
{
	const char *kind = hr_config_text(c, "core.runtime");
	char of_file[HR_KINDFILE_NAME];
	size_t n;

	if (kind != NULL && strchr(kind, '/') != NULL)
		kind = hr_kindfile_name(kind, of_file) ? of_file : NULL;
	n = kind != NULL ? strlen(kind) : 0;
	return n > 0 && strncmp(key, kind, n) == 0 && key[n] == '.' && !hr_section_known(kind);
}

static int
set_later(struct hr_config *c, const char *key, const char *value, struct hr_err *err)
{
	if (c->set == NULL)
		c->set = json_object_new_object();
	return hr_json_set(c->set, key, json_object_new_string(value), err);
}

int
hr_config_set(struct hr_config *c, const char *key, const char *value, struct hr_err *err)
{
	const struct hr_key *k = key_of(c, key);
	struct hr_err e = {0};
	struct json_object *v;

	if (k == NULL && is_of_kind(c, key))
		return set_later(c, key, value, err);
	if (k == NULL)
		return unknown_key(key, err);
	v = hr_config_convert(k, value, &e);
	if (v == NULL && strcmp(k->section, "mcp") == 0)
		return hr_err_set(err, HR_E_INVAL, "%s: %s", key, e.msg);
	if (v == NULL)
		return hr_config_wrong_type(k, value, err);
	if (hr_config_put(c, k, v, err) < 0)
		return -1;
	c->runtime_named |= is_runtime(k);
	return 0;
}

#define MASK "\"******\""

/* Appends MCP servers without keys and without the values of variables, or the rules of a network
 * without the values of headers. */
static void
put_tree(struct hr_buf *b, struct json_object *v, bool hide)
{
	bool first = true;

	if (json_object_is_type(v, json_type_array)) {
		size_t i;

		hr_buf_addc(b, '[');
		for (i = 0; i < json_object_array_length(v); i++) {
			hr_buf_adds(b, i > 0 ? "," : "");
			put_tree(b, json_object_array_get_idx(v, i), hide);
		}
		hr_buf_addc(b, ']');
	} else if (json_object_is_type(v, json_type_object)) {
		hr_buf_addc(b, '{');
		json_object_object_foreach(v, key, value)
		{
			hr_buf_adds(b, first ? "" : ",");
			(void)hr_json_put_str(b, key, strlen(key), HR_JSON_REPLACE);
			hr_buf_addc(b, ':');
			put_tree(b, value,
			    hide || strcmp(key, "env") == 0 || strcmp(key, "api_key") == 0 ||
				strcmp(key, "headers") == 0);
			first = false;
		}
		hr_buf_addc(b, '}');
	} else if (hide && v != NULL) {
		hr_buf_adds(b, MASK);
	} else {
		(void)hr_json_put(b, v);
	}
}

static void
put_masked(struct hr_buf *b, const struct hr_key *k, struct json_object *v)
{
	if (k->secret && v != NULL)
		hr_buf_adds(b, MASK);
	else if (strcmp(k->section, "mcp") == 0 || strcmp(k->name, "network") == 0)
		put_tree(b, v, false);
	else
		(void)hr_json_put(b, v); /* cannot fail, since the value was parsed from text */
}

char *
hr_config_json(const struct hr_config *c, struct hr_err *err)
{
	const char *section = "";
	struct json_object *v;
	HR_BUF(b, JSON_MAX);
	size_t i;

	hr_buf_addc(&b, '{');
	for (i = 0; i < hr_keys_all_n; i++) {
		const struct hr_key *k = &hr_keys_all[i];

		if (strcmp(section, k->section) != 0) {
			hr_buf_addf(&b, "%s\"%s\":{", *section != '\0' ? "}," : "", k->section);
			section = k->section;
		} else {
			hr_buf_addc(&b, ',');
		}
		v = NULL;
		(void)json_object_object_get_ex(section_of(c, section), k->name, &v);
		hr_buf_addf(&b, "\"%s\":", k->name);
		put_masked(&b, k, v);
	}
	hr_buf_adds(&b, "}}");
	return hr_buf_end(&b, err);
}

const char *
hr_env_get(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env != NULL && *env != NULL; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return (*env)[n + 1] != '\0' ? *env + n + 1 : NULL;
	return NULL;
}
