/* Checks bodies against tables and reports errors in the words of pydantic 2. */
#include "config.h"

#include "worker/rex/rex.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/text.h"
#include "base/text/utf8.h"
#include "proto/python/repr.h"

static const char *const checks[] = {"silent", "raise", "ignore", NULL};

static const struct hr_rex_field create_fields[] = {
    {"startup_source", HR_REX_STRS, false, false, NULL},
    {"session", HR_REX_STR, false, false, NULL},
    {"startup_timeout", HR_REX_NUMBER, false, false, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
const struct hr_rex_model hr_rex_create_model = {"session_type", "bash", create_fields, NULL};

static const struct hr_rex_field close_fields[] = {
    {"session", HR_REX_STR, false, false, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
const struct hr_rex_model hr_rex_close_model = {"session_type", "bash", close_fields, NULL};

static const struct hr_rex_field bash_fields[] = {
    {"command", HR_REX_STR, true, false, NULL},
    {"session", HR_REX_STR, false, false, NULL},
    {"timeout", HR_REX_NUMBER, false, true, NULL},
    {"is_interactive_command", HR_REX_BOOL, false, false, NULL},
    {"is_interactive_quit", HR_REX_BOOL, false, false, NULL},
    {"check", HR_REX_ONE_OF, false, false, checks},
    {"error_msg", HR_REX_STR, false, false, NULL},
    {"expect", HR_REX_STRS, false, false, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
static const struct hr_rex_field interrupt_fields[] = {
    {"session", HR_REX_STR, false, false, NULL},
    {"timeout", HR_REX_NUMBER, false, false, NULL},
    {"n_retry", HR_REX_INT, false, false, NULL},
    {"expect", HR_REX_STRS, false, false, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
static const struct hr_rex_model interrupt_model = {
    "action_type", "bash_interrupt", interrupt_fields, NULL};
const struct hr_rex_model hr_rex_run_model = {"action_type", "bash", bash_fields, &interrupt_model};

static const struct hr_rex_field execute_fields[] = {
    {"command", HR_REX_COMMAND, true, false, NULL},
    {"timeout", HR_REX_NUMBER, false, true, NULL},
    {"shell", HR_REX_BOOL, false, false, NULL},
    {"check", HR_REX_BOOL, false, false, NULL},
    {"error_msg", HR_REX_STR, false, false, NULL},
    {"env", HR_REX_MAP, false, true, NULL},
    {"cwd", HR_REX_STR, false, true, NULL},
    {"merge_output_streams", HR_REX_BOOL, false, false, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
const struct hr_rex_model hr_rex_execute_model = {NULL, NULL, execute_fields, NULL};

static const struct hr_rex_field read_fields[] = {
    {"path", HR_REX_STR, true, false, NULL},
    {"encoding", HR_REX_STR, false, true, NULL},
    {"errors", HR_REX_STR, false, true, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
const struct hr_rex_model hr_rex_read_model = {NULL, NULL, read_fields, NULL};

static const struct hr_rex_field write_fields[] = {
    {"content", HR_REX_STR, true, false, NULL},
    {"path", HR_REX_STR, true, false, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
const struct hr_rex_model hr_rex_write_model = {NULL, NULL, write_fields, NULL};

/* ---- errors ---- */

struct errors {
	struct hr_buf b;
	struct hr_buf where; /* loc of the model, such as ,"bash" */
	size_t n;
};

/* Adds an error. `where` is loc after the model; `input` is the value, or NULL for null. */
static void
add(struct errors *e, const char *type, const char *where, const char *msg,
    struct json_object *input, const char *ctx)
{
	hr_buf_addf(&e->b,
	    "%s{\"type\":\"%s\",\"loc\":[\"body\"%s%s],\"msg\":", e->n++ > 0 ? "," : "", type,
	    hr_buf_str(&e->where), where);
	(void)hr_json_put_str(&e->b, msg, strlen(msg), HR_JSON_REPLACE);
	hr_buf_adds(&e->b, ",\"input\":");
	if (hr_json_put(&e->b, input) < 0)
		e->b.fail = HR_E_INVAL; /* the original sends the generic 500, too */
	if (ctx != NULL)
		hr_buf_addf(&e->b, ",\"ctx\":{%s}", ctx);
	hr_buf_addc(&e->b, '}');
}

bool
hr_rex_refuse(struct hr_answer *ret, const char *type, const char *where, const char *msg,
    const char *input, const char *ctx)
{
	hr_answer_reset(ret);
	ret->status = 422;
	hr_buf_addf(
	    &ret->body, "{\"detail\":[{\"type\":\"%s\",\"loc\":[\"body\"%s],\"msg\":", type, where);
	(void)hr_json_put_str(&ret->body, msg, strlen(msg), HR_JSON_REPLACE);
	hr_buf_addf(&ret->body, ",\"input\":%s", input);
	if (ctx != NULL)
		hr_buf_addf(&ret->body, ",\"ctx\":{%s}", ctx);
	hr_buf_adds(&ret->body, "}]}");
	return false;
}

/* ---- values ---- */

static int
bool_of(struct json_object *v)
{
	enum hr_py_type type = hr_json_type(v);
	const char *p;
	size_t len;
	double d;

	if (type == HR_PY_BOOL)
		return json_object_get_boolean(v);
	if (type == HR_PY_STR) {
		p = hr_json_str(v, &len);
		return hr_text_truth(p, len);
	}
	d = json_object_get_double(v);
	return type != HR_PY_INT && type != HR_PY_FLOAT ? -1 : d == 0 ? 0 : d == 1 ? 1 : -1;
}

bool
hr_rex_parse_int(struct hr_span s, long long *ret)
{
	const char *p = s.p, *end;
	bool negative, over = false;
	long long n = 0;

	hr_utf8_strip(&p, &s.len);
	end = p + s.len;
	while (end > p && end[-1] == '0')
		end--;
	end = end > p && end[-1] == '.' && end < p + s.len ? end - 1 : p + s.len;
	negative = p < end && *p == '-';
	p += p < end && (*p == '-' || *p == '+');
	if (p == end)
		return false;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9')
			return false;
		over = over || __builtin_mul_overflow(n, 10LL, &n) ||
		       __builtin_add_overflow(n, (long long)(*p - '0'), &n);
		p += end - p > 2 && p[1] == '_';
	}
	n = over ? LLONG_MAX : n;
	*ret = negative ? -n : n;
	return true;
}

/* Parses a number in a string like JSON or Python. */
static bool
number_of(struct json_object *v, double *ret)
{
	enum hr_py_type type = hr_json_type(v);
	struct hr_span s = {NULL, 0};
	long long n;
	char *end;

	if (type == HR_PY_BOOL || type == HR_PY_INT || type == HR_PY_FLOAT) {
		*ret = type == HR_PY_BOOL ? json_object_get_boolean(v) : json_object_get_double(v);
		return true;
	}
	if (type != HR_PY_STR)
		return false;
	s.p = hr_json_str(v, &s.len);
	hr_utf8_strip(&s.p, &s.len);
	if (hr_rex_parse_int(s, &n)) {
		*ret = (double)n;
		return true;
	}
	if (s.len == 0 || s.len > 64 || strspn(s.p, "0123456789+-.eE") < s.len)
		return false;
	*ret = strtod(s.p, &end);
	return end == s.p + s.len;
}

/* Returns true for a number that is no string, and for a string that is an integer: "1.0", but not
 * "1e3". */
static bool
is_int(struct json_object *v, double *ret)
{
	struct hr_span s = {NULL, 0};
	long long n;

	if (hr_json_type(v) == HR_PY_STR) {
		s.p = hr_json_str(v, &s.len);
		return hr_rex_parse_int(s, &n) && number_of(v, ret);
	}
	return number_of(v, ret);
}

static void
check_strings(struct errors *e, const char *where, struct json_object *list)
{
	HR_BUF(at, 256);
	size_t i;

	for (i = 0; i < json_object_array_length(list); i++) {
		if (hr_json_type(json_object_array_get_idx(list, i)) == HR_PY_STR)
			continue;
		hr_buf_reset(&at);
		hr_buf_addf(&at, "%s,%zu", where, i);
		add(e, "string_type", hr_buf_str(&at), "Input should be a valid string",
		    json_object_array_get_idx(list, i), NULL);
	}
}

static void
check_map(struct errors *e, const char *where, struct json_object *map)
{
	HR_BUF(at, HR_JSON_BODY_MAX);
	HR_BUF(tmp, HR_JSON_BODY_MAX);
	const char *name;
	size_t len;

	json_object_object_foreach(map, key, value)
	{
		if (hr_json_type(value) == HR_PY_STR)
			continue;
		name = hr_json_key(key, &tmp, &len);
		hr_buf_reset(&at);
		hr_buf_addf(&at, "%s,", where);
		(void)hr_json_put_str(&at, name, len, HR_JSON_REPLACE);
		add(e, "string_type", hr_buf_str(&at), "Input should be a valid string", value,
		    NULL);
	}
}

static void
check_command(struct errors *e, const char *where, struct json_object *v)
{
	HR_BUF(at, 256);
	size_t i = 0;

	if (hr_json_type(v) == HR_PY_STR)
		return;
	while (i < hr_json_count(v) && hr_json_type(hr_json_entry(v, i)) == HR_PY_STR)
		i++;
	if (hr_json_type(v) == HR_PY_LIST && i == hr_json_count(v))
		return;
	hr_buf_addf(&at, "%s,\"str\"", where);
	add(e, "string_type", hr_buf_str(&at), "Input should be a valid string", v, NULL);
	hr_buf_reset(&at);
	hr_buf_addf(&at, "%s,\"list[str]\"", where);
	if (hr_json_type(v) == HR_PY_LIST)
		check_strings(e, hr_buf_str(&at), v);
	else
		add(e, "list_type", hr_buf_str(&at), "Input should be a valid list", v, NULL);
}

void
hr_rex_put_choices(struct hr_buf *msg, struct hr_buf *ctx, const char *const *values)
{
	HR_BUF(list, 256);
	size_t i;

	for (i = 0; values[i] != NULL; i++)
		hr_buf_addf(&list, "%s'%s'",
		    i == 0                  ? ""
		    : values[i + 1] == NULL ? " or "
					    : ", ",
		    values[i]);
	hr_buf_addf(msg, "Input should be %s", hr_buf_str(&list));
	hr_buf_addf(ctx, "\"expected\":\"%s\"", hr_buf_str(&list));
}

static void
check_one_of(
    struct errors *e, const char *where, const struct hr_rex_field *f, struct json_object *v)
{
	HR_BUF(msg, 512);
	HR_BUF(ctx, 512);
	size_t i;

	for (i = 0; f->values[i] != NULL; i++)
		if (hr_json_str_is(v, f->values[i]))
			return;
	hr_rex_put_choices(&msg, &ctx, f->values);
	add(e, "literal_error", where, hr_buf_str(&msg), v, hr_buf_str(&ctx));
}

static void
check_value(
    struct errors *e, const char *where, const struct hr_rex_field *f, struct json_object *v)
{
	enum hr_py_type type = hr_json_type(v);
	bool text = type == HR_PY_STR, number = type == HR_PY_INT || type == HR_PY_FLOAT;
	double d;

	switch (f->type) {
	case HR_REX_STR:
		if (!text)
			add(e, "string_type", where, "Input should be a valid string", v, NULL);
		break;
	case HR_REX_NUMBER:
		if (!number_of(v, &d))
			add(e, text ? "float_parsing" : "float_type", where,
			    text ? "Input should be a valid number, unable to parse string as a "
				   "number"
				 : "Input should be a valid number",
			    v, NULL);
		break;
	case HR_REX_INT:
		if (!is_int(v, &d))
			add(e, text ? "int_parsing" : "int_type", where,
			    text ? "Input should be a valid integer, unable to parse string as an "
				   "integer"
				 : "Input should be a valid integer",
			    v, NULL);
		else if (d != floor(d))
			add(e, "int_from_float", where,
			    "Input should be a valid integer, got a number with a fractional part",
			    v, NULL);
		break;
	case HR_REX_BOOL:
		if (bool_of(v) < 0)
			add(e, text || number ? "bool_parsing" : "bool_type", where,
			    text || number ? "Input should be a valid boolean, unable to interpret "
					     "input"
					   : "Input should be a valid boolean",
			    v, NULL);
		break;
	case HR_REX_STRS:
		if (type == HR_PY_LIST)
			check_strings(e, where, v);
		else
			add(e, "list_type", where, "Input should be a valid list", v, NULL);
		break;
	case HR_REX_MAP:
		if (type == HR_PY_DICT)
			check_map(e, where, v);
		else
			add(e, "dict_type", where, "Input should be a valid dictionary", v, NULL);
		break;
	case HR_REX_COMMAND: check_command(e, where, v); break;
	case HR_REX_ONE_OF: check_one_of(e, where, f, v); break;
	}
}

/* ---- the body ---- */

/* Appends Python's str(v). */
static void
put_str(struct hr_buf *b, struct json_object *v)
{
	const char *p;
	size_t len;

	if (hr_json_type(v) != HR_PY_STR) {
		hr_pyrepr(b, v);
		return;
	}
	p = hr_json_str(v, &len);
	hr_buf_add(b, p, len);
}

/* Chooses the model by the body's tag. Returns NULL after adding an error. */
static const struct hr_rex_model *
choose(struct errors *e, const struct hr_rex_model *m, struct json_object *body)
{
	const struct hr_rex_model *all = m;
	struct json_object *tag = NULL;
	bool has_tag;
	HR_BUF(list, 256);
	HR_BUF(msg, HR_JSON_BODY_MAX);
	HR_BUF(ctx, HR_JSON_BODY_MAX);
	HR_BUF(said, HR_JSON_BODY_MAX);

	if (m->tag == NULL)
		return m;
	has_tag = json_object_object_get_ex(body, m->tag, &tag);
	for (; m != NULL; m = m->other)
		if (hr_json_str_is(tag, m->value)) {
			hr_buf_addf(&e->where, ",\"%s\"", m->value);
			return m;
		}
	hr_buf_addf(&ctx, "\"discriminator\":\"'%s'\"", all->tag);
	if (!has_tag) {
		hr_buf_addf(&msg, "Unable to extract tag using discriminator '%s'", all->tag);
		add(e, "union_tag_not_found", "", hr_buf_str(&msg), body, hr_buf_str(&ctx));
	} else {
		for (m = all; m != NULL; m = m->other)
			hr_buf_addf(&list, "'%s'%s", m->value, m->other != NULL ? ", " : "");
		put_str(&said, tag);
		hr_buf_addf(&msg,
		    "Input tag '%s' found using '%s' does not match any of the expected tags: %s",
		    hr_buf_str(&said), all->tag, hr_buf_str(&list));
		hr_buf_adds(&ctx, ",\"tag\":");
		(void)hr_json_put_str(&ctx, hr_buf_str(&said), said.len, HR_JSON_REPLACE);
		hr_buf_addf(&ctx, ",\"expected_tags\":\"%s\"", hr_buf_str(&list));
		add(e, "union_tag_invalid", "", hr_buf_str(&msg), body, hr_buf_str(&ctx));
	}
	if (msg.fail != HR_OK || ctx.fail != HR_OK || said.fail != HR_OK)
		e->b.fail = HR_E_NOMEM;
	return NULL;
}

/* Sends the errors and frees them. Returns true if there are none. */
static bool
finish(struct errors *e, struct hr_answer *ret)
{
	bool fine = e->n == 0;

	if (!fine) {
		hr_answer_reset(ret);
		ret->status = 422;
		hr_buf_adds(&ret->body, "{\"detail\":[");
		hr_buf_add(&ret->body, hr_buf_str(&e->b), e->b.len);
		hr_buf_adds(&ret->body, "]}");
		if (e->b.fail != HR_OK || e->where.fail != HR_OK)
			hr_answer_generic(ret);
	}
	hr_buf_done(&e->b);
	hr_buf_done(&e->where);
	return fine;
}

bool
hr_rex_check_list(bool given, struct json_object *body, struct hr_answer *ret)
{
	struct errors e = {.n = 0};

	hr_buf_init(&e.b, HR_ANSWER_MAX);
	if (!given)
		add(&e, "missing", "", "Field required", NULL, NULL);
	else if (hr_json_type(body) != HR_PY_LIST)
		add(&e, "list_type", "", "Input should be a valid list", body, NULL);
	else
		check_strings(&e, "", body);
	return finish(&e, ret);
}

bool
hr_rex_check(const struct hr_rex_model *m, struct json_object *body, struct hr_answer *ret)
{
	struct errors e = {.n = 0};
	const struct hr_rex_field *f;
	struct json_object *v;
	HR_BUF(at, 128);

	hr_buf_init(&e.b, HR_ANSWER_MAX);
	hr_buf_init(&e.where, 64);
	if (body == NULL) {
		add(&e, "missing", "", "Field required", NULL, NULL);
	} else if (hr_json_type(body) != HR_PY_DICT) {
		add(&e, "model_attributes_type", "",
		    "Input should be a valid dictionary or object to extract fields from", body,
		    NULL);
	} else {
		m = choose(&e, m, body);
		for (f = m != NULL ? m->fields : NULL; f != NULL && f->name != NULL; f++) {
			hr_buf_reset(&at);
			hr_buf_addf(&at, ",\"%s\"", f->name);
			if (!json_object_object_get_ex(body, f->name, &v)) {
				if (f->required)
					add(&e, "missing", hr_buf_str(&at), "Field required", body,
					    NULL);
			} else if (v != NULL || !f->null) {
				check_value(&e, hr_buf_str(&at), f, v);
			}
		}
	}
	return finish(&e, ret);
}

struct hr_span
hr_rex_str(const struct hr_rex_call *c, const char *name)
{
	return hr_json_span_or(c->body, name, NULL);
}

double
hr_rex_number(const struct hr_rex_call *c, const char *name, double otherwise)
{
	double d = otherwise;

	(void)number_of(hr_json_at(c->body, name), &d);
	return d;
}

bool
hr_rex_true(const struct hr_rex_call *c, const char *name)
{
	return bool_of(hr_json_at(c->body, name)) == 1;
}
