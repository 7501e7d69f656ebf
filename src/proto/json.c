/* Parses bytes to a tree: decodes to UTF-8, scans, rewrites the rare things that json-c would lose,
 * and parses. Invariant: json-c only ever sees text that the scanner has accepted. */
#include "config.h"

#include "proto/json.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/percent.h"
#include "base/text/utf8.h"

/* json-c gets a number of more than 64 bits in this form: with a leading zero and ".0", which JSON
 * forbids and json-c takes for a double whose source text it keeps. */
#define BIG_INT_PREFIX '0'
#define BIG_INT_SUFFIX ".0"

struct text {
	const char *p;
	size_t len;
	struct hr_buf own; /* owns p unless the input could be used in place */
};

enum encoding { ENC_UTF8, ENC_16BE, ENC_16LE, ENC_32BE, ENC_32LE };

/* Implements Python's json.detect_encoding(), with the length of the byte order mark. */
static enum encoding
detect_encoding(const unsigned char *b, size_t n, size_t *ret_skip)
{
	*ret_skip = 0;
	if (n >= 4 && (memcmp(b, "\0\0\xFE\xFF", 4) == 0 || memcmp(b, "\xFF\xFE\0\0", 4) == 0)) {
		*ret_skip = 4;
		return b[0] == 0 ? ENC_32BE : ENC_32LE;
	}
	if (n >= 2 && (memcmp(b, "\xFE\xFF", 2) == 0 || memcmp(b, "\xFF\xFE", 2) == 0)) {
		*ret_skip = 2;
		return b[0] == 0xFE ? ENC_16BE : ENC_16LE;
	}
	if (n >= 3 && memcmp(b, "\xEF\xBB\xBF", 3) == 0) {
		*ret_skip = 3;
		return ENC_UTF8;
	}
	if (n >= 4 && b[0] == 0)
		return b[1] != 0 ? ENC_16BE : ENC_32BE;
	if (n >= 4 && b[1] == 0)
		return b[2] != 0 || b[3] != 0 ? ENC_16LE : ENC_32LE;
	if (n == 2 && b[0] == 0)
		return ENC_16BE;
	if (n == 2 && b[1] == 0)
		return ENC_16LE;
	return ENC_UTF8;
}

static uint32_t
unit_at(const unsigned char *p, unsigned size, bool big)
{
	uint32_t v = 0;
	unsigned i;

	for (i = 0; i < size; i++)
		v |= (uint32_t)p[i] << 8 * (big ? size - 1 - i : i);
	return v;
}

/* Decodes with "surrogatepass": lone surrogates are kept, pairs joined in UTF-16 only. */
static int
text_from_wide(struct text *t, const unsigned char *p, size_t len, unsigned size, bool big)
{
	size_t at, n;
	uint32_t c, low;
	char *out;

	if (len % size != 0)
		return HR_JSON_NOTTEXT;
	hr_buf_init(&t->own, len / size * 4 + 4);
	out = hr_buf_reserve(&t->own, len / size * 4 + 4);
	if (out == NULL)
		return HR_JSON_NOMEM;
	for (n = at = 0; at < len; at += size) {
		c = unit_at(p + at, size, big);
		if (c > 0x10FFFF)
			return HR_JSON_NOTTEXT;
		if (size == 2 && c >= 0xD800 && c < 0xDC00 && len - at >= 4) {
			low = unit_at(p + at + 2, 2, big);
			if (low >= 0xDC00 && low <= 0xDFFF) {
				c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
				at += 2;
			}
		}
		n += hr_utf8_put(out + n, c);
	}
	hr_buf_grew(&t->own, n);
	t->p = t->own.p;
	t->len = n;
	return HR_JSON_OK;
}

static int
text_decode(struct text *t, const void *p, size_t len)
{
	size_t skip;
	enum encoding e = detect_encoding(p, len, &skip);
	const char *s = (const char *)p + skip;

	if (e != ENC_UTF8)
		return text_from_wide(t, (const unsigned char *)s, len - skip,
		    e == ENC_32BE || e == ENC_32LE ? 4 : 2, e == ENC_32BE || e == ENC_16BE);
	if (!hr_utf8_valid(s, len - skip))
		return HR_JSON_NOTTEXT;
	t->p = s;
	t->len = len - skip;
	return HR_JSON_OK;
}

/* Returns the length of the string token at p (on its opening quote) of a checked text. */
static size_t
string_token(const char *p)
{
	size_t n = 1;

	while (p[n] != '"')
		n += p[n] == '\\' ? 2 : 1;
	return n + 1;
}

static bool
is_key(const char *p, const char *end) /* `p` is after a string token */
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p < end && *p == ':';
}

/* Copies the escape at p, or replaces it by raw bytes if json-c would not keep it. */
static size_t
rewrite_escape(struct hr_buf *b, const char *p, bool key)
{
	int32_t c, low;

	if (p[1] != 'u') {
		hr_buf_add(b, p, 2);
		return 2;
	}
	c = hr_hex4(p + 2);
	if (c == 0 && key) {
		hr_buf_add(b, "\xC0\x80", 2);
		return 6;
	}
	if (!hr_utf8_is_surrogate(c)) {
		hr_buf_add(b, p, 6);
		return 6;
	}
	if (c < 0xDC00 && p[6] == '\\' && p[7] == 'u') {
		low = hr_hex4(p + 8);
		if (low >= 0xDC00 && low <= 0xDFFF) {
			/* json-c 0.16 wrongly decodes pairs for U+?D800..U+?DFFF (U+1D800) to
			 * U+FFFD */
			c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
			hr_utf8_add(b, (uint32_t)c);
			return 12;
		}
	}
	hr_utf8_add(b, (uint32_t)c);
	return 6;
}

static void
rewrite_string(struct hr_buf *b, const char *p, size_t len, bool key)
{
	size_t at = 0, run;

	while (at < len) {
		const char *slash = memchr(p + at, '\\', len - at);

		run = slash == NULL ? len - at : (size_t)(slash - (p + at));
		hr_buf_add(b, p + at, run);
		at += run;
		if (slash != NULL)
			at += rewrite_escape(b, p + at, key);
	}
}

static size_t
number_token(const char *p, const char *end)
{
	size_t n = 1;

	while (p + n < end && p[n] != '\0' && strchr("0123456789+-.eE", p[n]) != NULL)
		n++;
	return n;
}

static void
rewrite_number(struct hr_buf *b, const char *p, size_t len)
{
	size_t sign = p[0] == '-', i;

	for (i = sign; i < len; i++)
		if (p[i] < '0' || p[i] > '9')
			break;
	if (i < len || hr_json_int_fits(p + sign, len - sign, sign != 0)) {
		hr_buf_add(b, p, len);
		return;
	}
	hr_buf_add(b, p, sign);
	hr_buf_addc(b, BIG_INT_PREFIX);
	hr_buf_add(b, p + sign, len - sign);
	hr_buf_adds(b, BIG_INT_SUFFIX);
}

/* Rewrites the document in a form that json-c keeps completely. */
static int
text_rewrite(struct text *t)
{
	struct hr_buf b;
	const char *p = t->p, *end = p + t->len;
	size_t n;

	hr_buf_init(&b, t->len * 2 + 16);
	while (p < end) {
		if (*p == '"') {
			n = string_token(p);
			rewrite_string(&b, p, n, is_key(p + n, end));
		} else if ((*p >= '0' && *p <= '9') || *p == '-') {
			n = number_token(p, end);
			rewrite_number(&b, p, n);
		} else {
			n = 1;
			hr_buf_addc(&b, *p);
		}
		p += n;
	}
	hr_buf_done(&t->own);
	t->own = b;
	t->p = b.p;
	t->len = b.len;
	return b.fail == HR_OK ? HR_JSON_OK : HR_JSON_NOMEM;
}

static int
text_parse(const struct text *t, unsigned depth, struct json_object **ret)
{
	struct json_tokener *tok;
	enum json_tokener_error e;

	if (t->len > INT_MAX)
		return HR_JSON_NOMEM;
	tok = json_tokener_new_ex((int)depth + 2);
	if (tok == NULL)
		return HR_JSON_NOMEM;
	*ret = json_tokener_parse_ex(tok, t->p, (int)t->len);
	e = json_tokener_get_error(tok);
	if (e == json_tokener_continue) {
		/* ends a bare number or word, which json-c would otherwise expect to continue */
		*ret = json_tokener_parse_ex(tok, " ", 1);
		e = json_tokener_get_error(tok);
	}
	json_tokener_free(tok);
	return e == json_tokener_success ? HR_JSON_OK : HR_JSON_NOMEM;
}

int
hr_json_decode(const void *p, size_t len, struct json_object **ret, struct hr_json_error *ret_error)
{
	struct text t = {.p = NULL};
	struct hr_json_error e = {.verdict = HR_JSON_OK};
	struct hr_json_facts facts;

	e.verdict = text_decode(&t, p, len);
	if (e.verdict == HR_JSON_OK && hr_json_scan(t.p, t.len, &facts, &e) == 0) {
		if (facts.odd)
			e.verdict = text_rewrite(&t);
		if (e.verdict == HR_JSON_OK)
			e.verdict = text_parse(&t, facts.depth, ret);
	}
	hr_buf_done(&t.own);
	if (e.verdict == HR_JSON_OK)
		return 0;
	if (ret_error != NULL)
		*ret_error = e;
	return -1;
}

int
hr_json_decode_foreign(
    const void *p, size_t len, struct json_object **ret, struct hr_json_error *ret_error)
{
	HR_BUF(b, 3 * (size_t)HR_JSON_BODY_MAX); /* U+FFFD has three bytes */

	if (hr_utf8_strict(p, len))
		return hr_json_decode(p, len, ret, ret_error);
	hr_utf8_replace(&b, p, len);
	if (hr_buf_check(&b, NULL) == 0)
		return hr_json_decode(hr_buf_str(&b), b.len, ret, ret_error);
	if (ret_error != NULL)
		*ret_error = (struct hr_json_error){.verdict = HR_JSON_NOMEM};
	return -1;
}

int
hr_json_err(
    struct hr_err *err, enum hr_errc code, const struct hr_json_error *why, const char *fmt, ...)
{
	static const char *const reasons[] = {
	    [HR_JSON_NOTTEXT] = "its bytes are not text", [HR_JSON_NOMEM] = "no memory"};
	const char *reason = why->text != NULL ? why->text : reasons[why->verdict];
	char what[sizeof(err->msg)];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (why->verdict == HR_JSON_SYNTAX)
		return hr_err_set(
		    err, code, "%s, at character %zu: %s", what, why->pos + 1, reason);
	return hr_err_set(
	    err, code, "%s%s%s", what, reason != NULL ? ": " : "", reason != NULL ? reason : "");
}

const char *
hr_json_big_int(struct json_object *v, bool *ret_negative, size_t *ret_len)
{
	const char *s;

	if (!json_object_is_type(v, json_type_double))
		return NULL;
	s = json_object_get_userdata(v); /* this is the number's source text, kept by the tokener */
	if (s == NULL)
		return NULL;
	*ret_negative = *s == '-';
	s += *s == '-';
	if (s[0] != BIG_INT_PREFIX || s[1] < '0' || s[1] > '9')
		return NULL;
	*ret_len = strlen(s) - 1 - strlen(BIG_INT_SUFFIX);
	return s + 1;
}
