#include "config.h"

#include "shell/ps1json.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 500

struct reader {
	const char *s;
	size_t len, at;
	int depth;
};

static bool read_value(struct reader *r, struct hr_ps1_value *ret);

static void
skip_space(struct reader *r)
{
	while (r->at < r->len && r->s[r->at] != '\0' && strchr(" \t\n\r", r->s[r->at]))
		r->at++;
}

static bool
take(struct reader *r, char c)
{
	if (r->at == r->len || r->s[r->at] != c)
		return false;
	r->at++;
	return true;
}

static bool
take_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	if (r->len - r->at < n || memcmp(r->s + r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

static size_t
take_digits(struct reader *r)
{
	size_t from = r->at;

	while (r->at < r->len && r->s[r->at] >= '0' && r->s[r->at] <= '9')
		r->at++;
	return r->at - from;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits; -1 if there are less. */
static long
hex4(const char *s, size_t len)
{
	long v = 0;

	if (len < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int d = hex_digit(s[i]);

		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

static bool
read_string(struct reader *r)
{
	if (!take(r, '"'))
		return false;
	while (r->at < r->len) {
		unsigned char c = (unsigned char)r->s[r->at++];

		if (c == '"')
			return true;
		if (c < 0x20)
			return false;
		if (c != '\\')
			continue;
		if (r->at == r->len)
			return false;
		c = (unsigned char)r->s[r->at++];
		if (c == 'u') {
			if (hex4(r->s + r->at, r->len - r->at) < 0)
				return false;
			r->at += 4;
		} else if (c == '\0' || !strchr("\"\\/bfnrt", c)) {
			return false;
		}
	}
	return false;
}

static bool
read_number(struct reader *r, struct hr_ps1_value *ret)
{
	size_t mark;

	(void)take(r, '-');
	if (take_word(r, "Infinity")) {
		ret->type = HR_PS1_FLOAT;
		return true;
	}
	if (!take(r, '0') && take_digits(r) == 0)
		return false;
	ret->type = HR_PS1_INT;
	/* A point or an e without digits behind it does not belong to the number. */
	mark = r->at;
	if (take(r, '.') && take_digits(r) > 0) {
		ret->type = HR_PS1_FLOAT;
		mark = r->at;
	}
	r->at = mark;
	if (take(r, 'e') || take(r, 'E')) {
		if (!take(r, '+'))
			(void)take(r, '-');
		if (take_digits(r) > 0) {
			ret->type = HR_PS1_FLOAT;
			mark = r->at;
		}
	}
	r->at = mark;
	return true;
}

/* The inside of [ ] or { }, whose opening is read. */
static bool
read_items(struct reader *r, char close, bool keys)
{
	struct hr_ps1_value item;

	skip_space(r);
	if (take(r, close))
		return true;
	for (;;) {
		skip_space(r);
		if (keys) {
			if (!read_string(r))
				return false;
			skip_space(r);
			if (!take(r, ':'))
				return false;
			skip_space(r);
		}
		if (!read_value(r, &item))
			return false;
		skip_space(r);
		if (take(r, close))
			return true;
		if (!take(r, ','))
			return false;
	}
}

static bool
read_container(struct reader *r, bool dict)
{
	bool ok;

	if (r->depth == MAX_DEPTH)
		return false;
	r->depth++;
	r->at++;
	ok = read_items(r, dict ? '}' : ']', dict);
	r->depth--;
	return ok;
}

/* No white space before it. */
static bool
read_value(struct reader *r, struct hr_ps1_value *ret)
{
	size_t from = r->at;
	bool ok;

	if (from == r->len)
		return false;
	switch (r->s[from]) {
	case '"':
		ret->type = HR_PS1_STR;
		ok = read_string(r);
		break;
	case '{':
		ret->type = HR_PS1_DICT;
		ok = read_container(r, true);
		break;
	case '[':
		ret->type = HR_PS1_LIST;
		ok = read_container(r, false);
		break;
	case 'n':
		ret->type = HR_PS1_NULL;
		ok = take_word(r, "null");
		break;
	case 't':
	case 'f':
		ret->type = HR_PS1_BOOL;
		ok = take_word(r, "true") || take_word(r, "false");
		break;
	case 'N':
		ret->type = HR_PS1_FLOAT;
		ok = take_word(r, "NaN");
		break;
	default: ok = read_number(r, ret);
	}
	ret->raw = r->s + from;
	ret->len = r->at - from;
	return ok;
}

bool
hr_ps1_json_value(const char *s, size_t len, size_t *at, struct hr_ps1_value *ret)
{
	struct reader r = {.s = s, .len = len, .at = *at};

	skip_space(&r);
	if (!read_value(&r, ret))
		return false;
	*at = r.at;
	return true;
}

bool
hr_ps1_json_text(const char *s, size_t len, struct hr_ps1_value *ret)
{
	struct reader r = {.s = s, .len = len};

	skip_space(&r);
	if (!read_value(&r, ret))
		return false;
	skip_space(&r);
	return r.at == len;
}

bool
hr_ps1_json_member(const struct hr_ps1_value *dict, size_t *at, struct hr_ps1_value *ret_key,
    struct hr_ps1_value *ret_value)
{
	struct reader r = {.s = dict->raw, .len = dict->len, .at = *at};

	/* Behind the brace, or behind the member before. */
	if (r.at == 0)
		r.at = 1;
	skip_space(&r);
	(void)take(&r, ',');
	if (!hr_ps1_json_value(r.s, r.len, &r.at, ret_key))
		return false;
	skip_space(&r);
	if (!take(&r, ':') || !hr_ps1_json_value(r.s, r.len, &r.at, ret_value))
		return false;
	*at = r.at;
	return true;
}

static char *
put_utf8(char *out, unsigned long c)
{
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xC0 | c >> 6);
		*out++ = (char)(0x80 | (c & 0x3F));
	} else if (c < 0x10000) {
		*out++ = (char)(0xE0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3F));
		*out++ = (char)(0x80 | (c & 0x3F));
	} else {
		*out++ = (char)(0xF0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3F));
		*out++ = (char)(0x80 | (c >> 6 & 0x3F));
		*out++ = (char)(0x80 | (c & 0x3F));
	}
	return out;
}

/* \uXXXX at s, behind the u; a pair of surrogates is one character. Returns how many bytes were
 * read. */
static size_t
decode_u(const char *s, size_t len, char **out)
{
	unsigned long c = (unsigned long)hex4(s, len);
	long low;

	if (c >= 0xD800 && c < 0xDC00 && len >= 10 && s[4] == '\\' && s[5] == 'u') {
		low = hex4(s + 6, len - 6);
		if (low >= 0xDC00 && low < 0xE000) {
			c = 0x10000 + ((c - 0xD800) << 10) + (unsigned long)(low - 0xDC00);
			*out = put_utf8(*out, c);
			return 10;
		}
	}
	*out = put_utf8(*out, c);
	return 4;
}

char *
hr_ps1_json_string(const struct hr_ps1_value *str, size_t *ret_len)
{
	static const char plain[] = "bfnrt", meant[] = "\b\f\n\r\t";
	const char *s = str->raw + 1;
	size_t len = str->len - 2;
	char *r = malloc(len + 1), *out = r; /* decoding never lengthens */

	if (!r)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		const char *p;

		if (s[i] != '\\') {
			*out++ = s[i];
			continue;
		}
		i++;
		p = strchr(plain, s[i]);
		if (s[i] == 'u')
			i += decode_u(s + i + 1, len - i - 1, &out);
		else
			*out++ = p ? meant[p - plain] : s[i];
	}
	*out = '\0';
	*ret_len = (size_t)(out - r);
	return r;
}
