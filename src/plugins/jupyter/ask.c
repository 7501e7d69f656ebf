#include "config.h"

#include "plugins/jupyter/ask.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "proto/json.h"

#define MEMBERS_MAX 16384 /* each is compared with the variables of the kernel */

const struct hr_ask_field hr_ask_execute[] = {{"code", true, false}, {"context_id", false, false},
    {"language", false, false}, {"env_vars", false, true}, {.name = NULL}};
const struct hr_ask_field hr_ask_create[] = {
    {"cwd", false, false}, {"language", false, false}, {.name = NULL}};

/* Appends an error; loc is JSON: the members that lead to the value. */
static void
put_error(struct hr_buf *why, const char *type, struct hr_span loc, const char *msg,
    struct json_object *input)
{
	hr_buf_adds(why, why->len == 0 ? "{\"detail\":[" : ",");
	hr_buf_addf(why, "{\"type\":\"%s\",\"loc\":[\"body\"", type);
	hr_buf_add(why, loc.p, loc.len);
	hr_buf_addf(why, "],\"msg\":\"%s\",\"input\":", msg);
	hr_json_put_whole(why, input);
	hr_buf_addc(why, '}');
}

static void
put_loc(struct hr_buf *loc, const char *name)
{
	hr_buf_addc(loc, ',');
	(void)hr_json_put_str(loc, name, strlen(name), HR_JSON_REPLACE);
}

static void
check_map(struct json_object *map, const struct hr_buf *loc, struct hr_buf *why)
{
	json_object_object_foreach(map, name, v)
	{
		HR_BUF(at, why->cap);

		hr_buf_add(&at, loc->p, loc->len);
		put_loc(&at, name);
		if (hr_json_type(v) != HR_PY_STR)
			put_error(why, "string_type", hr_span_of_buf(&at),
			    "Input should be a valid string", v);
	}
}

static void
check(struct json_object *body, const struct hr_ask_field *f, struct hr_buf *why)
{
	struct json_object *v = NULL;
	bool there = json_object_object_get_ex(body, f->name, &v);
	HR_BUF(loc, why->cap);
	HR_BUF(most, 100);

	hr_buf_addf(&most, "Dictionary should have at most %d items", MEMBERS_MAX);
	put_loc(&loc, f->name);
	if (!there && f->required)
		put_error(why, "missing", hr_span_of_buf(&loc), "Field required", body);
	if (!there || (v == NULL && !f->required))
		return;
	if (!f->map && hr_json_type(v) != HR_PY_STR)
		put_error(
		    why, "string_type", hr_span_of_buf(&loc), "Input should be a valid string", v);
	else if (f->map && hr_json_type(v) != HR_PY_DICT)
		put_error(why, "dict_type", hr_span_of_buf(&loc),
		    "Input should be a valid dictionary", v);
	else if (f->map && json_object_object_length(v) > MEMBERS_MAX)
		put_error(why, "too_long", hr_span_of_buf(&loc), hr_buf_str(&most), v);
	else if (f->map)
		check_map(v, &loc, why);
}

int
hr_ask_read(struct hr_span text, const struct hr_ask_field *fields, struct json_object **ret,
    struct hr_buf *why)
{
	HR_PUT struct json_object *body = NULL;
	struct json_object *const nothing = NULL;
	struct hr_json_error e = {.verdict = HR_JSON_OK};

	if (text.len == 0) {
		put_error(why, "missing", hr_span_of(""), "Field required", nothing);
	} else if (hr_json_decode(text.p, text.len, &body, &e) < 0) {
		if (e.verdict != HR_JSON_SYNTAX) {
			hr_buf_adds(why, "{\"detail\":\"There was an error parsing the body\"}");
			return 400;
		}
		hr_buf_addf(why,
		    "{\"detail\":[{\"type\":\"json_invalid\",\"loc\":[\"body\",%zu],"
		    "\"msg\":\"JSON decode error\",\"input\":{},\"ctx\":{\"error\":",
		    e.pos);
		(void)hr_json_put_str(why, e.text, strlen(e.text), HR_JSON_REPLACE);
		hr_buf_adds(why, "}}");
	} else if (hr_json_type(body) != HR_PY_DICT) {
		put_error(why, "model_attributes_type", hr_span_of(""),
		    "Input should be a valid dictionary or object to extract fields from", body);
	} else {
		for (; fields->name != NULL; fields++)
			check(body, fields, why);
	}
	if (why->len == 0) {
		*ret = json_object_get(body);
		return 0;
	}
	hr_buf_adds(why, "]}");
	return 422;
}

char *
hr_ask_language(struct json_object *name)
{
	static const char *const names[][2] = {
	    {"", "python"}, {"js", "javascript"}, {"ts", "typescript"}};
	size_t len = 0, i;
	const char *p = name != NULL ? hr_json_str(name, &len) : "";
	char *s, *c;

	for (; len > 0 && isspace((unsigned char)*p); len--)
		p++;
	while (len > 0 && isspace((unsigned char)p[len - 1]))
		len--;
	s = strndup(p, len);
	for (c = s; c != NULL && *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	for (i = 0; s != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(s, names[i][0]) != 0)
			continue;
		free(s);
		return strdup(names[i][1]);
	}
	return s;
}
