/* Reads messages by their tables. json-c keeps no places of values, so an error's place is looked
 * up in the text by the names that lead to it. */
#include "config.h"

#include "e2b/message.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/quote.h"
#include "proto/json.h"

#define DEPTH 8
#define TOKEN_MAX 200
#define BYTES_MAX (64u << 20)

struct reader {
	const struct hr_message *whole;
	struct hr_span text;
	struct hr_connect_error *e;
	const char *way[DEPTH]; /* the member names, as the text has them, that lead to a value */
	size_t depth;
};

/* ---- places ---- */

static size_t
skip_blanks(struct hr_span t, size_t at)
{
	while (at < t.len && memchr(" \t\r\n", t.p[at], 4) != NULL)
		at++;
	return at;
}

/* Returns the end of the value at `at` of a valid text. */
static size_t
skip_value(struct hr_span t, size_t at)
{
	size_t depth = 0;
	bool quoted = false;

	for (; at < t.len; at++) {
		char c = t.p[at];

		if (quoted) {
			if (c == '\\')
				at++;
			else if (c == '"')
				quoted = false;
		} else if (c == '"') {
			quoted = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (depth > 0 && (c == '}' || c == ']')) {
			depth--;
		} else if (depth == 0 && memchr(",]}: \t\r\n", c, 8) != NULL) {
			break;
		} else {
			continue;
		}
		if (!quoted && depth == 0)
			return at + 1;
	}
	return at < t.len ? at : t.len;
}

/* Finds the last member of that name in the object at `at`, as the parser does. Returns false if it
 * is not there, as with a name that the text writes with escapes. */
static bool
find_member(struct hr_span t, size_t at, const char *name, size_t *ret_name, size_t *ret_value)
{
	size_t start, end, len = strlen(name);
	bool found = false;

	at = skip_blanks(t, at);
	while (at < t.len && (t.p[at] == '{' || t.p[at] == ',')) {
		start = skip_blanks(t, at + 1);
		end = skip_value(t, start);
		at = skip_blanks(t, end);
		if (at >= t.len || t.p[at] != ':')
			break;
		at = skip_blanks(t, at + 1);
		if (end - start == len + 2 && memcmp(t.p + start + 1, name, len) == 0) {
			*ret_name = start;
			*ret_value = at;
			found = true;
		}
		at = skip_blanks(t, skip_value(t, at));
	}
	return found;
}

/* Writes "(line L:C)" of the value that r->way leads to, or of its name, and the value's text. */
static void
place(const struct reader *r, bool of_name, char ret[40], char token[TOKEN_MAX])
{
	size_t i, name = 0, value = 0, end, line = 1, column = 1;

	for (i = 0; i < r->depth; i++)
		if (!find_member(r->text, value, r->way[i], &name, &value))
			break;
	end = skip_value(r->text, value);
	(void)snprintf(token, TOKEN_MAX, "%.*s",
	    (int)(end - value < TOKEN_MAX ? end - value : TOKEN_MAX - 1), r->text.p + value);
	for (i = 0; i < (of_name ? name : value); i++) {
		column = r->text.p[i] == '\n' ? 1 : column + 1;
		line += r->text.p[i] == '\n';
	}
	(void)snprintf(ret, 40, "(line %zu:%zu)", line, column);
}

/* The blank after "proto:" is one without a break in the original. */
#define INTO "unmarshal message: unmarshal into *%s: proto:\xC2\xA0"

static int
wrong_value(struct reader *r, const char *type, const char *name)
{
	char where[40], token[TOKEN_MAX];

	place(r, false, where, token);
	return hr_connect_fail(r->e, HR_CONNECT_INVALID_ARGUMENT,
	    INTO "%s: invalid value for %s field %s: %s", r->whole->name, where, type, name, token);
}

static int
set_twice(struct reader *r, const struct hr_message *m, const struct hr_message_field *f)
{
	char where[40], token[TOKEN_MAX];

	place(r, true, where, token);
	return hr_connect_fail(r->e, HR_CONNECT_INVALID_ARGUMENT,
	    INTO "%s: error parsing \"%s\", oneof %s.%s is already set", r->whole->name, where,
	    r->way[r->depth - 1], m->name, f->oneof);
}

static int
syntax(const struct hr_message *m, struct hr_span t, const struct hr_json_error *why,
    struct hr_connect_error *e)
{
	size_t at = why->pos < t.len ? why->pos : t.len, i, line = 1, column = 1, len = 0;

	at = skip_blanks(t, at);
	if (at >= t.len && why->verdict == HR_JSON_SYNTAX)
		return hr_connect_fail(
		    e, HR_CONNECT_INVALID_ARGUMENT, INTO "unexpected EOF", m->name);
	if (why->verdict != HR_JSON_SYNTAX)
		return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT, INTO "syntax error: %s",
		    m->name, why->text != NULL ? why->text : "invalid UTF-8");
	for (i = 0; i < at; i++) {
		column = t.p[i] == '\n' ? 1 : column + 1;
		line += t.p[i] == '\n';
	}
	while (at + len < t.len && len < 40 && (isalnum((unsigned char)t.p[at + len]) || len == 0))
		len++;
	return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT,
	    INTO "syntax error (line %zu:%zu): invalid value %.*s", m->name, line, column, (int)len,
	    t.p + at);
}

/* ---- values ---- */

static struct json_object *
read_part(struct reader *r, const struct hr_message *m, struct json_object *o, const char *field);

static struct json_object *
no_memory(struct reader *r)
{
	(void)hr_connect_fail(r->e, HR_CONNECT_UNKNOWN, "out of memory");
	return NULL;
}

static struct json_object *
read_strings(struct reader *r, struct json_object *v, const char *name)
{
	size_t i;

	for (i = 0; i < json_object_array_length(v); i++)
		if (!json_object_is_type(json_object_array_get_idx(v, i), json_type_string)) {
			(void)wrong_value(r, "string", name);
			return NULL;
		}
	return json_object_get(v);
}

static struct json_object *
read_map(struct reader *r, struct json_object *v, const char *name)
{
	json_object_object_foreach(v, key, value)
	{
		(void)key;
		if (!json_object_is_type(value, json_type_string)) {
			(void)wrong_value(r, "string", name);
			return NULL;
		}
	}
	return json_object_get(v);
}

/* Accepts both alphabets, with and without padding. */
static struct json_object *
read_bytes(struct reader *r, struct json_object *v, const char *name)
{
	struct json_object *ret = NULL;
	HR_BUF(text, BYTES_MAX);
	HR_BUF(data, BYTES_MAX);
	size_t len, i;
	const char *p = hr_json_str(v, &len);

	while (len > 0 && p[len - 1] == '=')
		len--;
	hr_buf_add(&text, p, len);
	for (i = 0; i < text.len; i++)
		text.p[i] = (char)(text.p[i] == '-' ? '+' : text.p[i] == '_' ? '/' : text.p[i]);
	while (text.len % 4 != 0 && text.fail == HR_OK)
		hr_buf_addc(&text, '=');
	if (!hr_quote_unbase64(&data, hr_buf_str(&text), text.len))
		(void)wrong_value(r, "bytes", name);
	else if (text.fail != HR_OK || data.fail != HR_OK ||
		 (ret = json_object_new_string_len(hr_buf_str(&data), (int)data.len)) == NULL)
		ret = no_memory(r);
	return ret;
}

/* Reads a number that may be text. */
static bool
number_of(struct json_object *v, int64_t *ret)
{
	const char *text = hr_json_text(v);
	double d;
	char *end;

	if (text != NULL) {
		*ret = strtoll(text, &end, 10);
		return *text != '\0' && strlen(text) < 20 && *end == '\0' &&
		       !isspace((unsigned char)*text);
	}
	if (hr_json_type(v) == HR_PY_FLOAT) {
		d = json_object_get_double(v);
		*ret = d >= -1e15 && d <= 1e15 ? (int64_t)d : -1;
		return d >= -1e15 && d <= 1e15 && (double)*ret == d;
	}
	*ret = hr_json_int(v);
	return hr_json_type(v) == HR_PY_INT;
}

static struct json_object *
read_number(struct reader *r, const struct hr_message_field *f, struct json_object *v)
{
	const struct hr_message_enum *x;
	const char *text = hr_json_text(v);
	bool is_enum = f->type == HR_MESSAGE_ENUM, good = false;
	int64_t n = 0;

	for (x = f->values; is_enum && text != NULL && !good && x->name != NULL; x++)
		if (strcmp(x->name, text) == 0) {
			n = x->number;
			good = true;
		}
	if (!good && !(is_enum && text != NULL))
		good = number_of(v, &n) && (is_enum ? n == (int32_t)n : n == (uint32_t)n);
	if (good)
		return json_object_new_int64(n);
	(void)wrong_value(r, is_enum ? "enum" : "uint32", f->name);
	return NULL;
}

static struct json_object *
read_value(struct reader *r, const struct hr_message_field *f, struct json_object *v)
{
	static const struct {
		json_type json;
		const char *name;
	} types[] = {[HR_MESSAGE_STRING] = {json_type_string, "string"},
	    [HR_MESSAGE_STRINGS] = {json_type_array, "string"},
	    [HR_MESSAGE_MAP] = {json_type_object, "map"},
	    [HR_MESSAGE_BYTES] = {json_type_string, "bytes"},
	    [HR_MESSAGE_BOOL] = {json_type_boolean, "bool"},
	    [HR_MESSAGE_PART] = {json_type_object, "message"}};
	struct json_object *ret;

	if (f->type == HR_MESSAGE_UINT32 || f->type == HR_MESSAGE_ENUM)
		return read_number(r, f, v);
	if (!json_object_is_type(v, types[f->type].json)) {
		(void)wrong_value(r, types[f->type].name, f->name);
		return NULL;
	}
	switch (f->type) {
	case HR_MESSAGE_STRINGS: ret = read_strings(r, v, f->name); break;
	case HR_MESSAGE_MAP: ret = read_map(r, v, f->name); break;
	case HR_MESSAGE_BYTES: ret = read_bytes(r, v, f->name); break;
	case HR_MESSAGE_PART: ret = read_part(r, f->part, v, f->name); break;
	default: ret = json_object_get(v);
	}
	return ret;
}

/* Returns true if `name` is the field's name, or that in snake_case. */
static bool
names(const struct hr_message_field *f, const char *name)
{
	const char *p = f->name;

	if (strcmp(p, name) == 0)
		return true;
	for (; *p != '\0'; p++) {
		if (isupper((unsigned char)*p) && *name++ != '_')
			return false;
		if (tolower((unsigned char)*p) != *name++)
			return false;
	}
	return *name == '\0';
}

static bool
oneof_taken(const struct hr_message *m, const struct hr_message_field *f, struct json_object *ret)
{
	const struct hr_message_field *other;

	for (other = m->fields; f->oneof != NULL && other->name != NULL; other++)
		if (other != f && other->oneof != NULL && strcmp(other->oneof, f->oneof) == 0 &&
		    hr_json_at(ret, other->name) != NULL)
			return true;
	return false;
}

/* Reads one member. Returns 0, or -1 with the error. */
static int
read_member(
    struct reader *r, const struct hr_message *m, struct json_object *v, struct json_object *ret)
{
	const struct hr_message_field *f = m->fields;
	struct json_object *value;

	while (f->name != NULL && !names(f, r->way[r->depth - 1]))
		f++;
	if (f->name == NULL || v == NULL)
		return 0;
	if (oneof_taken(m, f, ret))
		return set_twice(r, m, f);
	value = read_value(r, f, v);
	if (value == NULL)
		return r->e->code != HR_CONNECT_OK ? -1 : (no_memory(r), -1);
	if (hr_json_set(ret, f->name, value, NULL) != 0) {
		(void)no_memory(r);
		return -1;
	}
	return 0;
}

static struct json_object *
read_part(struct reader *r, const struct hr_message *m, struct json_object *o, const char *field)
{
	struct json_object *ret = json_object_new_object();
	int failed = 0;

	if (ret == NULL)
		return no_memory(r);
	if (r->depth == DEPTH) {
		failed = wrong_value(r, "message", field);
	} else {
		json_object_object_foreach(o, key, v)
		{
			r->way[r->depth++] = key;
			failed = read_member(r, m, v, ret);
			r->depth--;
			if (failed != 0)
				break;
		}
	}
	if (failed != 0)
		hr_json_drop(&ret);
	return ret;
}

int
hr_message_read(const struct hr_message *m, struct hr_span text, struct json_object **ret,
    struct hr_connect_error *e)
{
	struct reader r = {.whole = m, .text = text, .e = e};
	struct hr_json_error why = {0};
	HR_PUT struct json_object *o = NULL;

	*ret = NULL;
	e->code = HR_CONNECT_OK;
	if (hr_json_decode(text.p != NULL ? text.p : "", text.len, &o, &why) != 0)
		return syntax(m, text, &why, e);
	if (!json_object_is_type(o, json_type_object))
		return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT,
		    INTO "syntax error (line 1:1): unexpected token %.*s", m->name,
		    (int)(text.len < 40 ? text.len : 40), text.p);
	*ret = read_part(&r, m, o, "");
	return *ret != NULL ? 0 : -1;
}
