/* Computes repr(), float() and truth of values that came as JSON. HR_JSON_DEPTH bounds the
 * recursion. */
#include "config.h"

#include "proto/python/repr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <utf8proc.h>

#include "base/text/floatrepr.h"
#include "base/text/utf8.h"

/* Implements Python's str.isprintable(): not categories C* and Z*, except the blank. */
static bool
is_printable(int32_t cp)
{
	switch (utf8proc_category(cp)) {
	case UTF8PROC_CATEGORY_CN:
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_CS:
	case UTF8PROC_CATEGORY_CO:
	case UTF8PROC_CATEGORY_ZS:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP: return cp == ' ';
	default: return true;
	}
}

static char
quote_for(const char *p, size_t len)
{
	return memchr(p, '\'', len) != NULL && memchr(p, '"', len) == NULL ? '"' : '\'';
}

static void
put_escaped(struct hr_buf *b, uint32_t c)
{
	switch (c) {
	case '\n': hr_buf_adds(b, "\\n"); break;
	case '\r': hr_buf_adds(b, "\\r"); break;
	case '\t': hr_buf_adds(b, "\\t"); break;
	default:
		if (c < 0x100)
			hr_buf_addf(b, "\\x%02x", c);
		else if (c < 0x10000)
			hr_buf_addf(b, "\\u%04x", c);
		else
			hr_buf_addf(b, "\\U%08x", c);
	}
}

/* Returns the length of the prefix that is printable ASCII without backslash and quotes. */
static size_t
simple_run(const char *p, size_t len)
{
	size_t n = 0;

	while (
	    n < len && p[n] >= 0x20 && p[n] < 0x7F && p[n] != '\\' && p[n] != '\'' && p[n] != '"')
		n++;
	return n;
}

/* Appends the repr. With `text` p is UTF-8; otherwise each byte stands alone. */
static void
put_repr(struct hr_buf *b, const char *p, size_t len, bool text)
{
	const char *end = p + len;
	char quote = quote_for(p, len);
	size_t n;
	int32_t cp;

	hr_buf_addc(b, quote);
	for (; p < end && b->fail == HR_OK; p += n) {
		n = simple_run(p, (size_t)(end - p));
		if (n > 0) {
			hr_buf_add(b, p, n);
			continue;
		}
		n = 1;
		cp = text ? hr_utf8_next(p, end, &n) : (unsigned char)*p;
		if (cp < 0)
			/* requests never contain invalid UTF-8 */
			hr_buf_addf(b, "\\x%02x", (unsigned char)*p);
		else if (cp == quote || cp == '\\')
			hr_buf_addf(b, "\\%c", (char)cp);
		else if (text ? is_printable(cp) : cp == '\'' || cp == '"')
			hr_buf_add(b, p, n);
		else
			put_escaped(b, (uint32_t)cp);
	}
	hr_buf_addc(b, quote);
}

void
hr_pyrepr_str(struct hr_buf *b, const char *p, size_t len)
{
	put_repr(b, p, len, true);
}

void
hr_pyrepr_bytes(struct hr_buf *b, const void *data, size_t len)
{
	hr_buf_addc(b, 'b');
	put_repr(b, data, len, false);
}

void
hr_pyencode_error(
    struct hr_buf *b, const char *codec, int32_t first, size_t at, size_t count, const char *reason)
{
	if (count > 1) {
		hr_buf_addf(b, "'%s' codec can't encode characters in position %zu-%zu: %s", codec,
		    at, at + count - 1, reason);
		return;
	}
	hr_buf_addf(b, "'%s' codec can't encode character '", codec);
	put_escaped(b, (uint32_t)first);
	hr_buf_addf(b, "' in position %zu: %s", at, reason);
}

int
hr_pyencode_check(struct hr_buf *b, const char *codec, const char *p, size_t len)
{
	const char *end = p + len;
	size_t n, at = 0, run = 0;
	int32_t cp, first = 0;

	for (; p < end; p += n, at++) {
		cp = hr_utf8_next(p, end, &n);
		if (hr_utf8_is_surrogate(cp)) {
			first = run++ == 0 ? cp : first;
		} else if (run > 0) {
			break;
		}
	}
	if (run == 0)
		return 0;
	if (b != NULL)
		hr_pyencode_error(b, codec, first, at - run, run, "surrogates not allowed");
	return -1;
}

static void
repr_dict(struct hr_buf *b, struct json_object *v)
{
	HR_BUF(tmp, HR_JSON_BODY_MAX);
	const char *sep = "", *s;
	size_t len;

	hr_buf_addc(b, '{');
	json_object_object_foreach(v, key, value)
	{
		hr_buf_adds(b, sep);
		sep = ", ";
		s = hr_json_key(key, &tmp, &len);
		hr_pyrepr_str(b, s, len);
		hr_buf_adds(b, ": ");
		hr_pyrepr(b, value);
		if (b->fail != HR_OK)
			break;
	}
	hr_buf_addc(b, '}');
	if (tmp.fail != HR_OK && b->fail == HR_OK)
		b->fail = tmp.fail;
}

static void
repr_list(struct hr_buf *b, struct json_object *v)
{
	size_t i, n = json_object_array_length(v);

	hr_buf_addc(b, '[');
	for (i = 0; i < n && b->fail == HR_OK; i++) {
		if (i > 0)
			hr_buf_adds(b, ", ");
		hr_pyrepr(b, json_object_array_get_idx(v, i));
	}
	hr_buf_addc(b, ']');
}

void
hr_pyrepr(struct hr_buf *b, struct json_object *v)
{
	const char *s;
	size_t len;

	switch (hr_json_type(v)) {
	case HR_PY_NONE: hr_buf_adds(b, "None"); break;
	case HR_PY_BOOL: hr_buf_adds(b, json_object_get_boolean(v) ? "True" : "False"); break;
	case HR_PY_INT:
		s = json_object_is_type(v, json_type_int) ? json_object_get_userdata(v) : NULL;
		if (s != NULL)
			hr_buf_adds(b, s);
		else
			hr_json_put_int(b, v);
		break;
	case HR_PY_FLOAT: hr_float_repr(b, json_object_get_double(v)); break;
	case HR_PY_STR:
		s = hr_json_str(v, &len);
		hr_pyrepr_str(b, s, len);
		break;
	case HR_PY_LIST: repr_list(b, v); break;
	case HR_PY_DICT: repr_dict(b, v); break;
	}
}

struct json_object *
hr_pyrepr_named_int(int value, const char *text)
{
	union {
		const char *text;
		void *userdata;
	} u = {.text = text};
	struct json_object *v = json_object_new_int(value);

	if (v != NULL)
		json_object_set_userdata(v, u.userdata, NULL);
	return v;
}

const char *
hr_py_type_name(enum hr_py_type t)
{
	static const char *const names[] = {
	    [HR_PY_NONE] = "NoneType",
	    [HR_PY_BOOL] = "bool",
	    [HR_PY_INT] = "int",
	    [HR_PY_FLOAT] = "float",
	    [HR_PY_STR] = "str",
	    [HR_PY_LIST] = "list",
	    [HR_PY_DICT] = "dict",
	};

	return names[t];
}

bool
hr_py_truthy(struct json_object *v)
{
	bool negative;
	size_t len;

	switch (hr_json_type(v)) {
	case HR_PY_NONE: return false;
	case HR_PY_BOOL: return json_object_get_boolean(v);
	case HR_PY_INT:
		return hr_json_big_int(v, &negative, &len) != NULL || json_object_get_int64(v) != 0;
	case HR_PY_FLOAT: return json_object_get_double(v) != 0; /* nan counts as true */
	case HR_PY_STR: return json_object_get_string_len(v) > 0;
	case HR_PY_LIST: return json_object_array_length(v) > 0;
	case HR_PY_DICT: return json_object_object_length(v) > 0;
	}
	return false;
}

/* Copies digits with single underscores between them and moves *p past them. Returns false if there
 * are no digits. */
static bool
float_digits(const char **p, const char *end, struct hr_buf *out)
{
	const char *s = *p;

	if (s == end || *s < '0' || *s > '9')
		return false;
	while (s < end) {
		if (*s >= '0' && *s <= '9') {
			hr_buf_addc(out, *s++);
		} else if (*s == '_' && end - s > 1 && s[1] >= '0' && s[1] <= '9') {
			s++;
		} else {
			break;
		}
	}
	*p = s;
	return true;
}

static bool
float_word(const char *p, const char *end, struct hr_buf *out)
{
	static const char *const words[] = {"inf", "infinity", "nan"};
	size_t i, n = (size_t)(end - p);

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == n && strncasecmp(words[i], p, n) == 0) {
			hr_buf_adds(out, words[i]);
			return true;
		}
	return false;
}

/* Copies a number that float() accepts to out, in the form that strtod() accepts. */
static bool
float_copy(const char *p, const char *end, struct hr_buf *out)
{
	bool digits;

	if (p < end && (*p == '+' || *p == '-'))
		hr_buf_addc(out, *p++);
	if (float_word(p, end, out))
		return true;
	digits = float_digits(&p, end, out);
	if (p < end && *p == '.') {
		hr_buf_addc(out, *p++);
		digits = float_digits(&p, end, out) || digits;
	}
	if (!digits)
		return false;
	if (p < end && (*p == 'e' || *p == 'E')) {
		hr_buf_addc(out, *p++);
		if (p < end && (*p == '+' || *p == '-'))
			hr_buf_addc(out, *p++);
		if (!float_digits(&p, end, out))
			return false;
	}
	return p == end;
}

static int
float_of_text(struct json_object *v, double *ret, struct hr_buf *why)
{
	size_t len, full;
	const char *s = hr_json_str(v, &full), *p = s;
	HR_BUF(copy, full + 16);
	bool fine;

	len = full;
	hr_utf8_strip(&p, &len);
	fine = float_copy(p, p + len, &copy);
	if (fine)
		*ret = strtod(hr_buf_str(&copy), NULL);
	if (copy.fail != HR_OK)
		why->fail = copy.fail;
	if (fine)
		return why->fail == HR_OK ? 0 : -1;
	hr_buf_adds(why, "could not convert string to float: ");
	hr_pyrepr_str(why, s, full);
	return -1;
}

int
hr_py_float(struct json_object *v, double *ret, struct hr_buf *why)
{
	enum hr_py_type t = hr_json_type(v);

	switch (t) {
	case HR_PY_BOOL: *ret = json_object_get_boolean(v); return 0;
	case HR_PY_INT:
	case HR_PY_FLOAT:
		*ret = json_object_get_double(v);
		if (t == HR_PY_INT && isinf(*ret)) {
			hr_buf_adds(why, "int too large to convert to float");
			return -1;
		}
		return 0;
	case HR_PY_STR: return float_of_text(v, ret, why);
	default:
		hr_buf_addf(why, "float() argument must be a string or a real number, not '%s'",
		    hr_py_type_name(t));
		return -1;
	}
}
