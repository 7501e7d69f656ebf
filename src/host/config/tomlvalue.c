/* Parses values of TOML: strings, numbers, arrays, inline tables. */
#include "config.h"

#include "host/config/toml_int.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/utf8.h"
#include "proto/json.h"

#define NUMBER_MAX 512

static int
unicode_escape(struct toml *t, int digits, struct hr_buf *b)
{
	uint32_t cp = 0;
	int i;

	for (i = 0; i < digits; i++) {
		if (!toml_more(t) || !isxdigit((unsigned char)*t->p))
			return toml_fail(t, "a \\u escape needs hexadecimal digits");
		cp = cp << 4 | (uint32_t)(*t->p <= '9' ? *t->p - '0' : (*t->p | 0x20) - 'a' + 10);
		t->p++;
	}
	if (cp > 0x10FFFF || hr_utf8_is_surrogate((int32_t)cp))
		return toml_fail(t, "a \\u escape is not a character");
	hr_utf8_add(b, cp);
	return 0;
}

/* Reads an escape after the backslash. */
static int
escape(struct toml *t, bool multi, struct hr_buf *b)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	const char *known;
	char c;

	if (!toml_more(t))
		return toml_fail(t, "a string has no end");
	c = *t->p++;
	known = c != '\0' ? strchr(from, c) : NULL;
	if (known != NULL) {
		hr_buf_addc(b, to[known - from]);
		return 0;
	}
	if (c == 'u' || c == 'U')
		return unicode_escape(t, c == 'u' ? 4 : 8, b);
	if (!multi || !isspace((unsigned char)c))
		return toml_fail(t, "an unknown escape in a string");
	/* this is a continued line: skip blanks up to its end, then all white space */
	for (t->p--; toml_at(t, ' ') || toml_at(t, '\t') || toml_at(t, '\r'); t->p++)
		;
	if (!toml_at(t, '\n'))
		return toml_fail(t, "an unknown escape in a string");
	for (; toml_more(t) && isspace((unsigned char)*t->p); t->p++)
		t->line += *t->p == '\n';
	return 0;
}

static bool
at_three(const struct toml *t, char q)
{
	return t->end - t->p >= 3 && t->p[0] == q && t->p[1] == q && t->p[2] == q;
}

/* Reads the contents of a string, and consumes its end. */
static int
string_body(struct toml *t, char q, bool multi, struct hr_buf *b)
{
	for (;;) {
		if (!toml_more(t) || (!multi && *t->p == '\n'))
			return toml_fail(t, "a string has no end");
		if (*t->p == q && !multi) {
			t->p++;
			return 0;
		}
		if (*t->p == q && at_three(t, q)) {
			int i;

			/* up to two quotes may stand before the end */
			for (i = 0; i < 2 && t->end - t->p > 3 && t->p[3] == q; i++, t->p++)
				hr_buf_addc(b, q);
			t->p += 3;
			return 0;
		}
		if (*t->p == '\\' && q == '"') {
			t->p++;
			if (escape(t, multi, b) != 0)
				return -1;
			continue;
		}
		if (((unsigned char)*t->p < 0x20 && *t->p != '\t' &&
			!(multi && strchr("\r\n", *t->p))) ||
		    *t->p == '\0' || *t->p == 0x7f)
			return toml_fail(t, "a control character in a string");
		t->line += *t->p == '\n';
		hr_buf_addc(b, *t->p++);
	}
}

int
toml_string(struct toml *t, bool multi, struct hr_buf *ret)
{
	char q = *t->p;

	multi = multi && at_three(t, q);
	t->p += multi ? 3 : 1;
	if (multi) { /* a line feed at the start is dropped */
		if (toml_at(t, '\r') && t->end - t->p > 1 && t->p[1] == '\n')
			t->p++;
		if (toml_at(t, '\n')) {
			t->p++;
			t->line++;
		}
	}
	if (string_body(t, q, multi, ret) != 0)
		return -1;
	return hr_buf_check(ret, t->err);
}

static int
string_value(struct toml *t, struct json_object **ret)
{
	HR_BUF(b, HR_TOML_MAX);

	if (toml_string(t, true, &b) != 0)
		return -1;
	*ret = json_object_new_string_len(hr_buf_str(&b), (int)b.len);
	return *ret != NULL ? 0 : hr_err_nomem(t->err);
}

/* Copies digits without underscores, which are allowed only between digits. */
static int
plain_number(struct toml *t, const char *p, size_t len, char out[NUMBER_MAX])
{
	size_t n = 0;
	size_t i;

	if (len >= NUMBER_MAX)
		return toml_fail(t, "a number is too long");
	for (i = 0; i < len; i++) {
		if (p[i] == '_') {
			if (i == 0 || i + 1 == len || !isxdigit((unsigned char)p[i - 1]) ||
			    !isxdigit((unsigned char)p[i + 1]))
				return toml_fail(t, "a misplaced _ in a number");
			continue;
		}
		out[n++] = p[i];
	}
	out[n] = '\0';
	return 0;
}

static int
integer_value(struct toml *t, const char *s, int base, struct json_object **ret)
{
	char *stop;
	long long v;

	errno = 0;
	v = strtoll(s, &stop, base);
	if (*s == '\0' || *stop != '\0' || errno == ERANGE ||
	    (base != 10 && !isxdigit((unsigned char)*s)))
		return toml_fail(t, "no value");
	*ret = json_object_new_int64(v);
	return *ret != NULL ? 0 : hr_err_nomem(t->err);
}

/* Accepts digits, a fraction, an exponent: every part needs a digit, without a leading zero. */
static bool
is_float(const char *s, bool *ret_integer)
{
	*ret_integer = false;
	if (*s == '+' || *s == '-')
		s++;
	if (!isdigit((unsigned char)*s) || (*s == '0' && isdigit((unsigned char)s[1])))
		return false;
	while (isdigit((unsigned char)*s))
		s++;
	if (*s == '\0')
		*ret_integer = true;
	if (*s == '.') {
		if (!isdigit((unsigned char)*++s))
			return false;
		while (isdigit((unsigned char)*s))
			s++;
	}
	if (*s == 'e' || *s == 'E') {
		s++;
		if (*s == '+' || *s == '-')
			s++;
		if (!isdigit((unsigned char)*s))
			return false;
		while (isdigit((unsigned char)*s))
			s++;
	}
	return *s == '\0';
}

/* Returns true for a date or time: digits first, and '-' or ':' at the right place. */
static bool
is_date(const char *s, size_t len)
{
	return (len >= 10 && s[4] == '-' && s[7] == '-') ||
	       (len >= 8 && s[2] == ':' && s[5] == ':');
}

static bool
word_is(const char *p, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(p, word, len) == 0;
}

static int
special_word(const char *p, size_t len, struct json_object **ret)
{
	size_t sign = len > 0 && (*p == '+' || *p == '-') ? 1 : 0;

	if (word_is(p, len, "true") || word_is(p, len, "false"))
		*ret = json_object_new_boolean(len == 4);
	else if (word_is(p + sign, len - sign, "inf"))
		*ret = json_object_new_double(*p == '-' ? -INFINITY : INFINITY);
	else if (word_is(p + sign, len - sign, "nan"))
		*ret = json_object_new_double(NAN);
	else
		return 0;
	return *ret != NULL ? 1 : -1;
}

/* ---- values without brackets and quotes ---- */
/* Consumes everything up to a character that can follow a value. */
static size_t
take_word(struct toml *t)
{
	const char *p = t->p;

	while (toml_more(t) && *t->p != '\0' && strchr(" \t\r\n,]}#=", *t->p) == NULL)
		t->p++;
	/* one blank is allowed between date and time */
	if (t->p - p == 10 && is_date(p, 10) && t->end - t->p >= 6 && *t->p == ' ' &&
	    isdigit((unsigned char)t->p[1]) && t->p[3] == ':')
		for (t->p++; toml_more(t) && *t->p != '\0' && strchr(" \t\r\n,]}#", *t->p) == NULL;)
			t->p++;
	return (size_t)(t->p - p);
}

/* Parses text without blanks and underscores. */
static int
number_value(struct toml *t, const char *text, struct json_object **ret)
{
	bool integer;
	int base = 0;

	if (text[0] == '0' && text[1] != '\0')
		base = text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : text[1] == 'b' ? 2 : 0;
	if (base != 0)
		return integer_value(t, text + 2, base, ret);
	if (!is_float(text, &integer))
		return toml_fail(t, isalpha((unsigned char)*text)
					? "no value: a string must be in quotes"
					: "no value");
	if (integer)
		return integer_value(t, text, 10, ret);
	*ret = json_object_new_double(strtod(text, NULL));
	return *ret != NULL ? 0 : hr_err_nomem(t->err);
}

static int
word_value(struct toml *t, struct json_object **ret)
{
	const char *p = t->p;
	size_t len = take_word(t);
	char text[NUMBER_MAX];
	int r = special_word(p, len, ret);

	if (r != 0)
		return r > 0 ? 0 : hr_err_nomem(t->err);
	if (len > 0 && isdigit((unsigned char)*p) && is_date(p, len)) {
		*ret = json_object_new_string_len(p, (int)len);
		return *ret != NULL ? 0 : hr_err_nomem(t->err);
	}
	if (len == 0)
		return toml_fail(t, "no value");
	return plain_number(t, p, len, text) == 0 ? number_value(t, text, ret) : -1;
}

static int
array_value(struct toml *t, struct json_object **ret)
{
	HR_PUT struct json_object *list = json_object_new_array();

	if (list == NULL)
		return hr_err_nomem(t->err);
	for (t->p++;;) {
		struct json_object *v = NULL;

		if (toml_space(t) != 0)
			return -1;
		if (toml_at(t, ']'))
			break;
		if (toml_value(t, &v) != 0 || hr_json_append(list, v, t->err) != 0 ||
		    toml_space(t) != 0)
			return -1;
		if (toml_at(t, ']'))
			break;
		if (!toml_at(t, ','))
			return toml_fail(t, "an array has no end");
		t->p++;
	}
	t->p++;
	*ret = json_object_get(list);
	return 0;
}

static void
close_tables(struct json_object *o)
{
	toml_set_mark(o, TOML_CLOSED);
	json_object_object_foreach(o, key, v)
	{
		(void)key;
		if (json_object_is_type(v, json_type_object) && toml_mark(v) != TOML_CLOSED)
			close_tables(v);
	}
}

static int
inline_table(struct toml *t, struct json_object **ret)
{
	HR_PUT struct json_object *table = toml_new_table(t, TOML_DOTTED);
	bool first = true;

	if (table == NULL)
		return -1;
	for (t->p++;; first = false) {
		toml_blanks(t);
		if (toml_at(t, '}') && first)
			break;
		if (toml_pair(t, table) != 0)
			return -1;
		toml_blanks(t);
		if (toml_at(t, '}'))
			break;
		if (!toml_at(t, ','))
			return toml_fail(t, "an inline table has no end");
		t->p++;
	}
	t->p++;
	close_tables(table);
	*ret = json_object_get(table);
	return 0;
}

int
toml_value(struct toml *t, struct json_object **ret)
{
	int r;

	if (!toml_more(t))
		return toml_fail(t, "no value");
	if (*t->p == '"' || *t->p == '\'')
		return string_value(t, ret);
	if (*t->p != '[' && *t->p != '{')
		return word_value(t, ret);
	if (t->depth >= HR_TOML_DEPTH)
		return toml_fail(t, "nested too deep");
	t->depth++;
	r = *t->p == '[' ? array_value(t, ret) : inline_table(t, ret);
	t->depth--;
	return r;
}
