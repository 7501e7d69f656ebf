/* Parses by recursive descent; the depth is bounded as for JSON. */
#include "config.h"

#include "proto/python/literal.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "proto/json.h"
#include "base/text/utf8.h"
#include "proto/python/escape.h"

struct lit {
	const char *p;
	const char *end;
	unsigned depth;
};

static int lit_value(struct lit *l, struct json_object **ret);

static bool
at_char(const struct lit *l, char c)
{
	return l->p < l->end && *l->p == c;
}

/* Skips white space. Called only inside brackets or at the ends, where newlines do not count. */
static void
lit_space(struct lit *l)
{
	while (l->p < l->end) {
		if (*l->p == '#') {
			while (l->p < l->end && *l->p != '\n')
				l->p++;
		} else if (strchr(" \t\n\r\f", *l->p) != NULL) {
			l->p++;
		} else {
			return;
		}
	}
}

/* Reads a string from after its opening quotes to after its closing ones. */
static int
string_body(struct lit *l, struct hr_buf *b, char quote, bool triple, bool raw)
{
	const char *from = l->p;
	HR_BUF(why, 500);

	for (; l->p < l->end; l->p++) {
		if (*l->p == quote &&
		    (!triple || (l->end - l->p >= 3 && l->p[1] == quote && l->p[2] == quote)))
			break;
		if (*l->p == '\n' && !triple)
			return -1;
		if (*l->p == '\\')
			l->p++; /* the next character does not end the string */
	}
	if (l->p >= l->end)
		return -1;
	if (raw)
		hr_buf_add(b, from, (size_t)(l->p - from));
	else if (hr_pyescape(b, from, (size_t)(l->p - from), NULL, &why) != 0)
		return -1;
	l->p += triple ? 3 : 1;
	return 0;
}

/* Returns true if a string starts at l->p, with the bytes before its quote in *ret_prefix and
 * *ret_raw set for a raw string. */
static bool
string_starts(const struct lit *l, size_t *ret_prefix, bool *ret_raw)
{
	size_t n = 0;

	*ret_raw = at_char(l, 'r') || at_char(l, 'R');
	if (*ret_raw || at_char(l, 'u') || at_char(l, 'U'))
		n = 1;
	*ret_prefix = n;
	return (size_t)(l->end - l->p) > n && (l->p[n] == '\'' || l->p[n] == '"');
}

/* Reads one or more adjacent string literals. */
static int
lit_string(struct lit *l, struct json_object **ret)
{
	HR_BUF(b, (size_t)(l->end - l->p) * 2 + 16);
	size_t prefix;
	bool raw, triple, fine = true;

	while (fine && string_starts(l, &prefix, &raw)) {
		char quote;

		l->p += prefix;
		quote = *l->p;
		triple = l->end - l->p >= 3 && l->p[1] == quote && l->p[2] == quote;
		l->p += triple ? 3 : 1;
		fine = string_body(l, &b, quote, triple, raw) == 0;
		lit_space(l);
	}
	*ret = NULL;
	if (fine && b.fail == HR_OK)
		*ret = json_object_new_string_len(hr_buf_str(&b), (int)b.len);
	return *ret != NULL ? 0 : -1;
}

static bool
is_word_char(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
	       c == '.';
}

/* Parses 0x, 0o and 0b; the digits in s have no underscores. */
static int
radix_number(const char *s, struct json_object **ret)
{
	static const char marks[] = "xob";
	static const int bases[] = {16, 8, 2};
	const char *mark = strchr(marks, s[1] | 0x20);
	unsigned long long v;
	char *end;

	if (mark == NULL || s[2] == '\0')
		return -1;
	v = strtoull(s + 2, &end, bases[mark - marks]);
	if (*end != '\0' || v > INT64_MAX)
		return -1;
	*ret = json_object_new_int64((int64_t)v);
	return *ret != NULL ? 0 : -1;
}

static int
decimal_number(const char *s, bool negative, struct json_object **ret)
{
	HR_BUF(b, strlen(s) + 2);
	char *end;
	double d;

	if (strspn(s, "0123456789") != strlen(s)) {
		d = strtod(s, &end);
		if (end == s || *end != '\0' || strpbrk(s, "xXnN") != NULL)
			return -1;
		*ret = json_object_new_double(negative ? -d : d);
		return *ret != NULL ? 0 : -1;
	}
	if (s[0] == '0' && strspn(s, "0") != strlen(s))
		return -1;
	while (s[0] == '0' && s[1] != '\0')
		s++;
	hr_buf_addf(&b, "%s%s", negative ? "-" : "", s);
	return b.fail == HR_OK ? hr_json_decode(b.p, b.len, ret, NULL) : -1;
}

static int
negate(struct json_object *v)
{
	return json_object_set_int64(v, -json_object_get_int64(v)) != 0 ? 0 : -1;
}

static bool
is_digit_of(char c, bool radix)
{
	return (c >= '0' && c <= '9') || (radix && (c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Copies a number without its underscores. Returns false if an underscore is not between digits. */
static bool
number_copy(struct lit *l, struct hr_buf *b)
{
	const char *s = l->p;
	bool radix = l->end - s > 1 && s[0] == '0' && strchr("xXoObB", s[1]) != NULL;

	for (; l->p < l->end; l->p++) {
		char c = *l->p, before = b->len > 0 ? l->p[-1] : '\0';

		if (c == '_') {
			if (!(is_digit_of(before, radix) || (radix && b->len == 2)) ||
			    l->end - l->p < 2 || !is_digit_of(l->p[1], radix))
				return false;
			continue;
		}
		if (!is_word_char(c) &&
		    !((c == '+' || c == '-') && !radix && (before | 0x20) == 'e'))
			break;
		hr_buf_addc(b, c);
	}
	return b->len > 0 && b->fail == HR_OK;
}

static int
lit_number(struct lit *l, struct json_object **ret)
{
	bool negative = at_char(l, '-');
	HR_BUF(b, (size_t)(l->end - l->p) + 1);

	if (negative || at_char(l, '+')) {
		l->p++;
		lit_space(l);
	}
	if (!number_copy(l, &b))
		return -1;
	if (b.len <= 1 || b.p[0] != '0' || strchr("xXoObB", b.p[1]) == NULL)
		return decimal_number(b.p, negative, ret);
	if (radix_number(b.p, ret) < 0)
		return -1;
	return negative ? negate(*ret) : 0;
}

static bool
lit_word(struct lit *l, const char *word)
{
	size_t n = strlen(word), room = (size_t)(l->end - l->p);

	if (room < n || memcmp(l->p, word, n) != 0 || (room > n && is_word_char(l->p[n])))
		return false;
	l->p += n;
	return true;
}

/* Reads a list, a tuple, or a value in parentheses; l->p is after the bracket. */
static int
lit_sequence(struct lit *l, char close, struct json_object **ret)
{
	HR_PUT struct json_object *list = json_object_new_array();
	struct json_object *v;
	bool comma = false;

	if (list == NULL)
		return -1;
	for (lit_space(l); !at_char(l, close); lit_space(l)) {
		if ((json_object_array_length(list) > 0 && !comma) || lit_value(l, &v) < 0)
			return -1;
		if (json_object_array_add(list, v) < 0) {
			json_object_put(v);
			return -1;
		}
		lit_space(l);
		comma = at_char(l, ',');
		l->p += comma;
	}
	l->p++;
	*ret = json_object_get(close == ')' && !comma && json_object_array_length(list) == 1
				   ? json_object_array_get_idx(list, 0)
				   : list);
	return 0;
}

static int
lit_member(struct lit *l, struct json_object *dict)
{
	struct json_object *v;
	HR_PUT struct json_object *key = NULL;
	const char *s;
	size_t len;

	if (lit_value(l, &key) < 0)
		return -1;
	lit_space(l);
	if (hr_json_type(key) != HR_PY_STR || !at_char(l, ':'))
		return -1;
	s = hr_json_str(key, &len);
	l->p++;
	if (strlen(s) != len || lit_value(l, &v) < 0)
		return -1;
	if (json_object_object_add(dict, s, v) == 0)
		return 0;
	json_object_put(v);
	return -1;
}

static int
lit_dict(struct lit *l, struct json_object **ret)
{
	HR_PUT struct json_object *dict = json_object_new_object();
	bool comma = true;

	if (dict == NULL)
		return -1;
	for (lit_space(l); !at_char(l, '}'); lit_space(l)) {
		if (!comma || lit_member(l, dict) < 0)
			return -1;
		lit_space(l);
		comma = at_char(l, ',');
		l->p += comma;
	}
	l->p++;
	*ret = json_object_get(dict);
	return 0;
}

static int
lit_bracket(struct lit *l, struct json_object **ret)
{
	char c = *l->p;
	int r;

	if (l->depth == HR_JSON_DEPTH)
		return -1;
	l->depth++;
	l->p++;
	r = c == '{' ? lit_dict(l, ret) : lit_sequence(l, c == '[' ? ']' : ')', ret);
	l->depth--;
	return r;
}

static int
lit_value(struct lit *l, struct json_object **ret)
{
	size_t prefix;
	bool raw, truth;

	lit_space(l);
	*ret = NULL;
	if (l->p == l->end)
		return -1;
	if (*l->p == '{' || *l->p == '[' || *l->p == '(')
		return lit_bracket(l, ret);
	if (string_starts(l, &prefix, &raw))
		return lit_string(l, ret);
	if (lit_word(l, "None"))
		return 0;
	truth = lit_word(l, "True");
	if (truth || lit_word(l, "False")) {
		*ret = json_object_new_boolean(truth);
		return *ret != NULL ? 0 : -1;
	}
	return lit_number(l, ret);
}

/* Reads the whole literal: values with commas, without parentheses, are a tuple. */
static int
lit_all(struct lit *l, struct json_object **ret)
{
	HR_PUT struct json_object *list = NULL, *v = NULL;
	bool pending = true; /* v is not in the list */

	if (lit_value(l, &v) < 0)
		return -1;
	for (lit_space(l); at_char(l, ','); lit_space(l)) {
		if (list == NULL)
			list = json_object_new_array();
		if (list == NULL || json_object_array_add(list, v) < 0)
			return -1;
		v = NULL;
		l->p++;
		lit_space(l);
		pending = l->p < l->end;
		if (pending && lit_value(l, &v) < 0)
			return -1;
	}
	if (list == NULL) {
		*ret = json_object_get(v);
		return 0;
	}
	if (pending && json_object_array_add(list, v) < 0)
		return -1;
	v = NULL;
	*ret = json_object_get(list);
	return 0;
}

int
hr_pyliteral(const char *p, size_t len, struct json_object **ret)
{
	struct lit l = {.p = p, .end = p + len};
	struct json_object *v;

	if (memchr(p, '\0', len) != NULL || !hr_utf8_strict(p, len) || lit_all(&l, &v) < 0)
		return -1;
	lit_space(&l);
	if (l.p != l.end) {
		json_object_put(v);
		return -1;
	}
	*ret = v;
	return 0;
}
