/* Reads the values of trees, and makes trees. */
#include "config.h"

#include "proto/json.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include <json-c/json.h>

enum hr_py_type
hr_json_type(struct json_object *v)
{
	size_t len;
	bool negative;

	switch (json_object_get_type(v)) {
	case json_type_null: return HR_PY_NONE;
	case json_type_boolean: return HR_PY_BOOL;
	case json_type_int: return HR_PY_INT;
	case json_type_string: return HR_PY_STR;
	case json_type_array: return HR_PY_LIST;
	case json_type_object: return HR_PY_DICT;
	default: return hr_json_big_int(v, &negative, &len) != NULL ? HR_PY_INT : HR_PY_FLOAT;
	}
}

const char *
hr_json_str(struct json_object *v, size_t *ret_len)
{
	hr_assert(json_object_is_type(v, json_type_string));
	*ret_len = (size_t)json_object_get_string_len(v);
	return json_object_get_string(v);
}

bool
hr_json_str_is(struct json_object *v, const char *text)
{
	size_t len;
	const char *s;

	if (!json_object_is_type(v, json_type_string))
		return false;
	s = hr_json_str(v, &len);
	return len == strlen(text) && memcmp(s, text, len) == 0;
}

struct json_object *
hr_json_at(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	if (json_object_is_type(o, json_type_object))
		(void)json_object_object_get_ex(o, name, &v);
	return v;
}

struct json_object *
hr_json_typed_at(struct json_object *o, const char *name, enum hr_py_type type)
{
	struct json_object *v = hr_json_at(o, name);

	return hr_json_type(v) == type ? v : NULL;
}

struct hr_span
hr_json_span_or(struct json_object *o, const char *name, const char *otherwise)
{
	struct json_object *v = hr_json_typed_at(o, name, HR_PY_STR);
	struct hr_span s = {otherwise, 0};

	if (v != NULL)
		s.p = hr_json_str(v, &s.len);
	return s;
}

const char *
hr_json_text(struct json_object *v)
{
	size_t len = 0;
	const char *s = json_object_is_type(v, json_type_string) ? hr_json_str(v, &len) : NULL;

	return s != NULL && strlen(s) == len ? s : NULL;
}

bool
hr_json_has_null(struct json_object *v)
{
	bool found = json_object_is_type(v, json_type_string) && hr_json_text(v) == NULL;
	size_t i;

	for (i = 0; i < hr_json_count(v) && !found; i++)
		found = hr_json_has_null(hr_json_entry(v, i));
	if (!found && json_object_is_type(v, json_type_object)) {
		json_object_object_foreach(v, name, member)
		{
			/* the library ends the name at a null character, so restore it */
			(void)name;
			found |= hr_json_has_null(member);
		}
	}
	return found;
}

const char *
hr_json_text_at(struct json_object *o, const char *name)
{
	return hr_json_text(hr_json_at(o, name));
}

const char *
hr_json_text_or(struct json_object *o, const char *name, const char *otherwise)
{
	const char *text = hr_json_text_at(o, name);

	return text != NULL ? text : otherwise;
}

int64_t
hr_json_int(struct json_object *v)
{
	const char *digits;
	bool negative;
	size_t len;

	if (json_object_is_type(v, json_type_int))
		return json_object_get_int64(v);
	digits = hr_json_type(v) == HR_PY_INT ? hr_json_big_int(v, &negative, &len) : NULL;
	return digits == NULL ? 0 : negative ? INT64_MIN : INT64_MAX;
}

int64_t
hr_json_int_at(struct json_object *o, const char *name)
{
	return hr_json_int(hr_json_at(o, name));
}

double
hr_json_number_at(struct json_object *o, const char *name)
{
	struct json_object *v = hr_json_at(o, name);
	double n = 0;

	if (json_object_is_type(v, json_type_int))
		n = (double)json_object_get_int64(v);
	else if (json_object_is_type(v, json_type_double))
		n = json_object_get_double(v);
	return isfinite(n) ? n : 0;
}

bool
hr_json_true_at(struct json_object *o, const char *name)
{
	struct json_object *v = hr_json_at(o, name);

	return json_object_is_type(v, json_type_boolean) && json_object_get_boolean(v);
}

bool
hr_json_all_strings(struct json_object *v)
{
	size_t i;

	for (i = 0; i < hr_json_count(v); i++)
		if (hr_json_type(hr_json_entry(v, i)) != HR_PY_STR)
			return false;
	if (!json_object_is_type(v, json_type_object))
		return json_object_is_type(v, json_type_array);
	json_object_object_foreach(v, key, value)
	{
		(void)key;
		if (hr_json_type(value) != HR_PY_STR)
			return false;
	}
	return true;
}

size_t
hr_json_count(struct json_object *list)
{
	return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

struct json_object *
hr_json_entry(struct json_object *list, size_t i)
{
	return i < hr_json_count(list) ? json_object_array_get_idx(list, i) : NULL;
}

struct json_object *
hr_json_find(struct json_object *list, const char *name, const char *text)
{
	size_t i;

	for (i = 0; i < hr_json_count(list); i++)
		if (strcmp(hr_json_text_or(hr_json_entry(list, i), name, ""), text) == 0)
			return hr_json_entry(list, i);
	return NULL;
}

int
hr_json_set(struct json_object *o, const char *name, struct json_object *v, struct hr_err *err)
{
	if (o != NULL && v != NULL && json_object_object_add(o, name, v) == 0)
		return 0;
	json_object_put(v);
	return hr_err_nomem(err);
}

int
hr_json_append(struct json_object *list, struct json_object *v, struct hr_err *err)
{
	if (list != NULL && v != NULL && json_object_array_add(list, v) == 0)
		return 0;
	json_object_put(v);
	return hr_err_nomem(err);
}

const char hr_json_none;

struct json_object *
hr_json_maybe(const char *text)
{
	return text != NULL ? json_object_new_string(text) : HR_JSON_NONE;
}

/* Returns o, or frees it and returns NULL if an insertion failed. */
static struct json_object *
whole(struct json_object *o, int bad, struct hr_err *err)
{
	if (o != NULL && bad == 0)
		return o;
	json_object_put(o);
	return hr_err_null(err);
}

struct json_object *
hr_json_object(struct hr_err *err, const char *name, ...)
{
	struct json_object *o = json_object_new_object(), *v;
	int bad = 0;
	va_list ap;

	va_start(ap, name);
	for (; name != NULL; name = va_arg(ap, const char *)) {
		v = va_arg(ap, struct json_object *);
		if (v != HR_JSON_NONE)
			bad |= hr_json_set(o, name, v, NULL);
	}
	va_end(ap);
	return whole(o, bad, err);
}

struct json_object *
hr_json_texts(struct hr_err *err, const char *name, ...)
{
	struct json_object *o = json_object_new_object();
	const char *text;
	int bad = 0;
	va_list ap;

	va_start(ap, name);
	for (; name != NULL; name = va_arg(ap, const char *)) {
		text = va_arg(ap, const char *);
		if (text != NULL)
			bad |= hr_json_set(o, name, json_object_new_string(text), NULL);
	}
	va_end(ap);
	return whole(o, bad, err);
}

struct json_object *
hr_json_list(struct hr_err *err, const char *const *texts)
{
	struct json_object *list = json_object_new_array();
	int bad = 0;

	for (; *texts != NULL; texts++)
		bad |= hr_json_append(list, json_object_new_string(*texts), NULL);
	return whole(list, bad, err);
}
