/* Parses lines, keys and tables of TOML. */
#include "config.h"

#include "host/config/toml.h"
#include "host/config/toml_int.h"

#include <stdint.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/utf8.h"
#include "proto/json.h"

#define KEY_MAX 1024

int
toml_fail(struct toml *t, const char *text)
{
	return hr_err_set(t->err, HR_E_INVAL, "line %u: %s", t->line, text);
}

enum toml_mark
toml_mark(struct json_object *o)
{
	return (enum toml_mark)(intptr_t)json_object_get_userdata(o);
}

void
toml_set_mark(struct json_object *o, enum toml_mark mark)
{
	/* the number is stored in the pointer: there is nothing to free */
	json_object_set_userdata(o, (void *)(intptr_t)mark, NULL);
}

struct json_object *
toml_new_table(struct toml *t, enum toml_mark mark)
{
	struct json_object *o = json_object_new_object();

	if (o == NULL)
		(void)hr_err_nomem(t->err);
	else
		toml_set_mark(o, mark);
	return o;
}

void
toml_blanks(struct toml *t)
{
	while (toml_at(t, ' ') || toml_at(t, '\t'))
		t->p++;
}

/* Accepts only a comment up to the end of the line, and consumes that. */
static int
line_end(struct toml *t)
{
	toml_blanks(t);
	if (toml_at(t, '#')) {
		for (; toml_more(t) && *t->p != '\n'; t->p++)
			if (((unsigned char)*t->p < 0x20 && *t->p != '\t' && *t->p != '\r') ||
			    *t->p == 0x7f)
				return toml_fail(t, "a control character in a comment");
	}
	if (toml_at(t, '\r'))
		t->p++;
	if (toml_at(t, '\n')) {
		t->p++;
		t->line++;
		return 0;
	}
	return toml_more(t) ? toml_fail(t, "only one key or table is allowed on a line") : 0;
}

int
toml_space(struct toml *t)
{
	for (;;) {
		toml_blanks(t);
		if (!toml_at(t, '#') && !toml_at(t, '\r') && !toml_at(t, '\n'))
			return 0;
		if (line_end(t) != 0)
			return -1;
	}
}

static bool
bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* Reads one part of a key. */
static int
key_part(struct toml *t, struct hr_buf *ret)
{
	if (toml_at(t, '"') || toml_at(t, '\'')) {
		if (toml_string(t, false, ret) != 0)
			return -1;
		if (ret->len > 0 && memchr(ret->p, '\0', ret->len) != NULL)
			return toml_fail(t, "a null character in a key");
		return 0;
	}
	if (!toml_more(t) || !bare(*t->p))
		return toml_fail(t, "a key is missing");
	while (toml_more(t) && bare(*t->p))
		hr_buf_addc(ret, *t->p++);
	return hr_buf_check(ret, t->err);
}

/* Returns the table of that name in `in`, created if it is missing, or NULL with the error set. */
static struct json_object *
step(struct toml *t, struct json_object *in, const char *name, enum toml_mark make)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(in, name, &v)) {
		v = toml_new_table(t, make);
		return hr_json_set(in, name, v, t->err) == 0 ? v : NULL;
	}
	if (json_object_is_type(v, json_type_array) && make == TOML_IMPLICIT &&
	    json_object_get_userdata(v) != NULL)
		v = json_object_array_get_idx(v, json_object_array_length(v) - 1);
	if (!json_object_is_type(v, json_type_object) || toml_mark(v) == TOML_CLOSED ||
	    (make == TOML_DOTTED && toml_mark(v) != TOML_DOTTED)) {
		(void)toml_fail(t, "a key is used twice");
		return NULL;
	}
	return v;
}

/* Consumes "." and the blanks around it. Returns false if the key ends here. */
static bool
dot(struct toml *t)
{
	toml_blanks(t);
	if (!toml_at(t, '.'))
		return false;
	t->p++;
	toml_blanks(t);
	return true;
}

int
toml_pair(struct toml *t, struct json_object *table)
{
	struct json_object *v = NULL;
	HR_BUF(key, KEY_MAX);

	if (key_part(t, &key) != 0)
		return -1;
	while (dot(t)) {
		table = step(t, table, hr_buf_str(&key), TOML_DOTTED);
		hr_buf_reset(&key);
		if (table == NULL || key_part(t, &key) != 0)
			return -1;
	}
	if (!toml_at(t, '='))
		return toml_fail(t, "a key without \"=\"");
	t->p++;
	toml_blanks(t);
	if (json_object_object_get_ex(table, hr_buf_str(&key), NULL))
		return toml_fail(t, "a key is used twice");
	return toml_value(t, &v) == 0 ? hr_json_set(table, hr_buf_str(&key), v, t->err) : -1;
}

/* Opens [name], which may occur once. */
static struct json_object *
open_table(struct toml *t, struct json_object *in, const char *name)
{
	struct json_object *v = NULL;
	bool there = json_object_object_get_ex(in, name, &v);

	if (there && (!json_object_is_type(v, json_type_object) || toml_mark(v) != TOML_IMPLICIT)) {
		(void)toml_fail(t, "a table is given twice");
		return NULL;
	}
	v = step(t, in, name, TOML_HEADER);
	if (v != NULL)
		toml_set_mark(v, TOML_HEADER);
	return v;
}

/* Opens [[name]]: appends an element. */
static struct json_object *
open_element(struct toml *t, struct json_object *in, const char *name)
{
	struct json_object *list = NULL, *v;

	if (!json_object_object_get_ex(in, name, &list)) {
		list = json_object_new_array();
		if (hr_json_set(in, name, list, t->err) != 0)
			return NULL;
		toml_set_mark(list, TOML_HEADER);
	} else if (!json_object_is_type(list, json_type_array) ||
		   json_object_get_userdata(list) == NULL) {
		(void)toml_fail(t, "a key is used twice");
		return NULL;
	}
	v = toml_new_table(t, TOML_HEADER);
	return hr_json_append(list, v, t->err) == 0 ? v : NULL;
}

static struct json_object *
header(struct toml *t, struct json_object *root)
{
	struct json_object *at = root;
	HR_BUF(key, KEY_MAX);
	bool element;
	int i;

	t->p++;
	element = toml_at(t, '[');
	t->p += element;
	toml_blanks(t);
	if (key_part(t, &key) != 0)
		return NULL;
	while (dot(t)) {
		at = step(t, at, hr_buf_str(&key), TOML_IMPLICIT);
		hr_buf_reset(&key);
		if (at == NULL || key_part(t, &key) != 0)
			return NULL;
	}
	at = element ? open_element(t, at, hr_buf_str(&key)) : open_table(t, at, hr_buf_str(&key));
	for (i = 0; i <= (int)element && at != NULL; i++) {
		if (!toml_at(t, ']')) {
			(void)toml_fail(t, "a table's name has no end");
			return NULL;
		}
		t->p++;
	}
	return at;
	return NULL;
}

/* Removes the parser's marks: a tree with them could not be copied. */
static void
drop_marks(struct json_object *o)
{
	if (json_object_is_type(o, json_type_array)) {
		size_t i;

		json_object_set_userdata(o, NULL, NULL);
		for (i = 0; i < json_object_array_length(o); i++)
			drop_marks(json_object_array_get_idx(o, i));
	} else if (json_object_is_type(o, json_type_object)) {
		json_object_set_userdata(o, NULL, NULL);
		json_object_object_foreach(o, key, v)
		{
			(void)key;
			drop_marks(v);
		}
	}
}

int
hr_toml_parse(const char *p, size_t len, struct json_object **ret, struct hr_err *err)
{
	struct toml t = {.p = p, .end = p + len, .line = 1, .err = err};
	HR_PUT struct json_object *root = NULL;
	struct json_object *table;

	if (len > HR_TOML_MAX)
		return hr_err_set(
		    err, HR_E_TOOLARGE, "the file must not be longer than %u bytes", HR_TOML_MAX);
	if (!hr_utf8_valid(p, len))
		return hr_err_set(err, HR_E_INVAL, "the file is not UTF-8");
	root = table = toml_new_table(&t, TOML_HEADER);
	if (root == NULL)
		return -1;
	if (len >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
		t.p += 3;
	for (;;) {
		if (toml_space(&t) != 0)
			return -1;
		if (!toml_more(&t))
			break;
		if (toml_at(&t, '[')) {
			table = header(&t, root);
			if (table == NULL)
				return -1;
		} else if (toml_pair(&t, table) != 0) {
			return -1;
		}
		if (line_end(&t) != 0)
			return -1;
	}
	drop_marks(root);
	*ret = json_object_get(root);
	return 0;
}
