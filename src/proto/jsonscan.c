/* A recursive-descent checker that mirrors scan_once and scanstring of CPython's _json.c: the order
 * of its tests decides which of several errors is reported, so it is preserved here. Recursion is
 * bounded by HR_JSON_DEPTH. */
#include "config.h"

#include "proto/jsonscan.h"

#include <stdint.h>
#include <string.h>

#include "base/text/percent.h"
#include "base/text/swar.h"
#include "base/text/utf8.h"

struct scan {
	const char *s;
	size_t len;
	size_t at; /* offset of the next byte */
	unsigned depth;
	unsigned values;
	struct hr_json_facts facts;
	struct hr_json_error error;
};

static bool scan_value(struct scan *sc);

static bool
scan_fail(struct scan *sc, const char *text, size_t at)
{
	sc->error.verdict = HR_JSON_SYNTAX;
	sc->error.text = text;
	sc->error.pos = at; /* counts bytes until the end of the scan, and characters afterwards */
	return false;
}

static bool
scan_limit(struct scan *sc, const char *text)
{
	sc->error.verdict = HR_JSON_LIMIT;
	sc->error.text = text;
	return false;
}

static void
skip_space(struct scan *sc)
{
	while (sc->at < sc->len) {
		switch (sc->s[sc->at]) {
		case ' ':
		case '\t':
		case '\n':
		case '\r': sc->at++; break;
		default: return;
		}
	}
}

static bool
scan_is(const struct scan *sc, char c)
{
	return sc->at < sc->len && sc->s[sc->at] == c;
}

/* Scans an escape with sc->at on its 'u'. A surrogate pair counts as one. */
static bool
scan_unicode_escape(struct scan *sc, bool key)
{
	size_t u = sc->at, end = u + 5;
	int32_t c, low;

	if (end >= sc->len || (c = hr_hex4(sc->s + u + 1)) < 0)
		return scan_fail(sc, "Invalid \\uXXXX escape", u);
	sc->at = end;
	if (c == 0 && key)
		sc->facts.odd = true;
	if (!hr_utf8_is_surrogate(c))
		return true;
	sc->facts.odd = true;
	if (c < 0xDC00 && sc->len - end > 6 && sc->s[end] == '\\' && sc->s[end + 1] == 'u') {
		low = hr_hex4(sc->s + end + 2);
		if (low < 0)
			return scan_fail(sc, "Invalid \\uXXXX escape", end + 1);
		if (low >= 0xDC00 && low <= 0xDFFF)
			sc->at = end + 6;
	}
	return true;
}

/* Scans a string from its opening quote; moves sc->at past the closing one. */
static bool
scan_string(struct scan *sc, bool key)
{
	size_t begin = sc->at++;

	for (;;) {
		sc->at += hr_swar_plain(sc->s + sc->at, sc->len - sc->at);
		if (sc->at >= sc->len)
			return scan_fail(sc, "Unterminated string starting at", begin);
		if (sc->s[sc->at] == '"') {
			sc->at++;
			return true;
		}
		if (sc->s[sc->at] != '\\')
			return scan_fail(sc, "Invalid control character at", sc->at);
		sc->at++;
		if (sc->at >= sc->len)
			return scan_fail(sc, "Unterminated string starting at", begin);
		if (sc->s[sc->at] == 'u') {
			if (!scan_unicode_escape(sc, key))
				return false;
		} else if (sc->s[sc->at] != '\0' && strchr("\"\\/bfnrt", sc->s[sc->at]) != NULL) {
			sc->at++;
		} else {
			return scan_fail(sc, "Invalid \\escape", sc->at - 1);
		}
	}
}

static bool
is_digit(const struct scan *sc, size_t at)
{
	return at < sc->len && sc->s[at] >= '0' && sc->s[at] <= '9';
}

static size_t
digits_end(const struct scan *sc, size_t at)
{
	while (is_digit(sc, at))
		at++;
	return at;
}

bool
hr_json_int_fits(const char *digits, size_t n, bool negative)
{
	if (n != 19)
		return n < 19;
	return memcmp(digits, negative ? "9223372036854775808" : "9223372036854775807", 19) <= 0;
}

static bool
scan_number(struct scan *sc)
{
	size_t begin = sc->at, at = begin, digits, e;
	bool is_float = false;

	if (sc->s[at] == '-')
		at++;
	digits = at;
	if (!is_digit(sc, at))
		return scan_fail(sc, "Expecting value", begin);
	at = sc->s[at] == '0' ? at + 1 : digits_end(sc, at);
	e = at;
	if (at < sc->len && sc->s[at] == '.' && is_digit(sc, at + 1)) {
		is_float = true;
		at = digits_end(sc, at + 1);
	}
	if (at < sc->len && (sc->s[at] == 'e' || sc->s[at] == 'E')) {
		size_t x = at + 1;

		if (x < sc->len && (sc->s[x] == '+' || sc->s[x] == '-'))
			x++;
		if (is_digit(sc, x)) {
			is_float = true;
			at = digits_end(sc, x);
		}
	}
	sc->at = at;
	if (is_float)
		return true;
	if (e - digits > HR_JSON_INT_DIGITS)
		return scan_limit(sc, "an integer is too long");
	if (!hr_json_int_fits(sc->s + digits, e - digits, digits > begin))
		sc->facts.odd = true;
	return true;
}

static bool
scan_word(struct scan *sc, const char *word)
{
	size_t n = strlen(word);

	if (sc->len - sc->at < n || memcmp(sc->s + sc->at, word, n) != 0)
		return false;
	sc->at += n;
	return true;
}

/* Scans one key, its colon and its value. */
static bool
scan_member(struct scan *sc)
{
	if (!scan_is(sc, '"'))
		return scan_fail(sc, "Expecting property name enclosed in double quotes", sc->at);
	if (!scan_string(sc, true))
		return false;
	skip_space(sc);
	if (!scan_is(sc, ':'))
		return scan_fail(sc, "Expecting ':' delimiter", sc->at);
	sc->at++;
	skip_space(sc);
	return scan_value(sc);
}

/* Scans a list or an object; sc->at is on the opening bracket. */
static bool
scan_container(struct scan *sc, char close)
{
	if (sc->depth == HR_JSON_DEPTH)
		return scan_limit(sc, "nested too deeply");
	if (++sc->depth > sc->facts.depth)
		sc->facts.depth = sc->depth;
	sc->at++;
	skip_space(sc);
	if (!scan_is(sc, close)) {
		for (;;) {
			if (!(close == '}' ? scan_member(sc) : scan_value(sc)))
				return false;
			skip_space(sc);
			if (scan_is(sc, close))
				break;
			if (!scan_is(sc, ','))
				return scan_fail(sc, "Expecting ',' delimiter", sc->at);
			sc->at++;
			skip_space(sc);
		}
	}
	sc->at++;
	sc->depth--;
	return true;
}

static bool
scan_value(struct scan *sc)
{
	if (++sc->values > HR_JSON_VALUES_MAX)
		return scan_limit(sc, "too many values");
	if (sc->at >= sc->len)
		return scan_fail(sc, "Expecting value", sc->at);
	switch (sc->s[sc->at]) {
	case '"': return scan_string(sc, false);
	case '{': return scan_container(sc, '}');
	case '[': return scan_container(sc, ']');
	case 'n':
		if (scan_word(sc, "null"))
			return true;
		break;
	case 't':
		if (scan_word(sc, "true"))
			return true;
		break;
	case 'f':
		if (scan_word(sc, "false"))
			return true;
		break;
	case 'N':
		if (scan_word(sc, "NaN"))
			return true;
		break;
	case 'I':
		if (scan_word(sc, "Infinity"))
			return true;
		break;
	case '-':
		if (scan_word(sc, "-Infinity"))
			return true;
		return scan_number(sc);
	default: return scan_number(sc);
	}
	return scan_fail(sc, "Expecting value", sc->at);
}

int
hr_json_scan(const char *p, size_t len, struct hr_json_facts *ret, struct hr_json_error *ret_error)
{
	struct scan sc = {.s = p, .len = len};

	skip_space(&sc);
	if (scan_value(&sc)) {
		skip_space(&sc);
		if (sc.at == len) {
			*ret = sc.facts;
			return 0;
		}
		(void)scan_fail(&sc, "Extra data", sc.at); /* the result is false either way */
	}
	*ret_error = sc.error;
	if (sc.error.verdict == HR_JSON_SYNTAX)
		ret_error->pos = hr_utf8_count(p, sc.error.pos < len ? sc.error.pos : len);
	return -1;
}
