/* Converts with iconv, which reports how far it came; Python's error text is derived from that
 * place. */
#include "config.h"

#include "files/charset/charset.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>

#include "base/text/swar.h"
#include "base/text/utf8.h"
#include "proto/python/repr.h"

#define CHUNK 8192

static const struct hr_charset utf8_mark = {"utf_8_sig", "UTF-8", HR_CHARSET_UTF8};
static const struct hr_charset utf16 = {"utf-16", "UTF-16LE", HR_CHARSET_WIDE};
static const struct hr_charset utf32 = {"utf-32", "UTF-32LE", HR_CHARSET_WIDE};

/* ---- marks ---- */

static const struct {
	enum hr_bom bom;
	size_t len;
	const char *bytes;
	const char *iconv; /* iconv's name of the charset that decodes the bytes after the mark */
	const struct hr_charset *charset;
} marks[] = {
    {HR_BOM_UTF8, 3, "\xEF\xBB\xBF", "UTF-8", &utf8_mark},
    {HR_BOM_UTF32LE, 4, "\xFF\xFE\0\0", "UTF-32LE", &utf32},
    {HR_BOM_UTF32BE, 4, "\0\0\xFE\xFF", "UTF-32BE", &utf32},
    {HR_BOM_ODD, 4, "\xFE\xFF\0\0", NULL, NULL},
    {HR_BOM_ODD, 4, "\0\0\xFF\xFE", NULL, NULL},
    {HR_BOM_UTF16LE, 2, "\xFF\xFE", "UTF-16LE", &utf16},
    {HR_BOM_UTF16BE, 2, "\xFE\xFF", "UTF-16BE", &utf16},
};
#define MARKS (sizeof(marks) / sizeof(marks[0]))

static size_t
find_mark(const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < MARKS; i++)
		if (len >= marks[i].len && memcmp(p, marks[i].bytes, marks[i].len) == 0)
			break;
	return i;
}

enum hr_bom
hr_charset_bom(const char *p, size_t len)
{
	size_t i = find_mark(p, len);

	return i < MARKS ? marks[i].bom : HR_BOM_NONE;
}

const struct hr_charset *
hr_charset_of_bom(enum hr_bom bom)
{
	size_t i;

	for (i = 0; i < MARKS; i++)
		if (marks[i].bom == bom)
			return marks[i].charset;
	return NULL;
}

/* ---- UTF-8 ---- */

bool
hr_charset_has_high(const char *p, size_t len)
{
	uint64_t w;

	for (; len >= sizeof(w); p += sizeof(w), len -= sizeof(w)) {
		memcpy(&w, p, sizeof(w));
		if ((w & HR_SWAR_HIGH) != 0)
			return true;
	}
	for (; len > 0; len--)
		if ((unsigned char)*p++ >= 0x80)
			return true;
	return false;
}

static void
say_decode(
    struct hr_buf *why, const char *codec, const char *p, size_t at, size_t n, const char *reason)
{
	if (why == NULL)
		return;
	if (n == 1)
		hr_buf_addf(why, "'%s' codec can't decode byte 0x%02x in position %zu: %s", codec,
		    (unsigned char)p[at], at, reason);
	else
		hr_buf_addf(why, "'%s' codec can't decode bytes in position %zu-%zu: %s", codec, at,
		    at + n - 1, reason);
}

/* Returns true at an encoded surrogate, whose bytes are no code point here. */
static bool
surrogate_at(const char *p, const char *end)
{
	return end - p >= 2 && (unsigned char)p[0] == 0xED && (unsigned char)p[1] >= 0xA0;
}

static void
say_bad_utf8(struct hr_buf *why, const char *p, size_t at, size_t len, size_t n)
{
	unsigned char lead = (unsigned char)p[at];
	size_t want = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;

	if (lead < 0xC2 || lead > 0xF4)
		say_decode(why, "utf-8", p, at, 1, "invalid start byte");
	else if (surrogate_at(p + at, p + len))
		say_decode(why, "utf-8", p, at, 1, "invalid continuation byte");
	else if (at + n == len && n < want)
		say_decode(why, "utf-8", p, at, n, "unexpected end of data");
	else
		say_decode(why, "utf-8", p, at, n, "invalid continuation byte");
}

int
hr_charset_check_utf8(const char *p, size_t len, struct hr_buf *why)
{
	const char *s = p, *end = p + len;
	uint64_t w;
	size_t n;
	int32_t cp;

	while (s < end) {
		if (end - s >= 8) {
			memcpy(&w, s, sizeof(w));
			if ((w & HR_SWAR_HIGH) == 0) {
				s += 8;
				continue;
			}
		}
		cp = hr_utf8_next(s, end, &n);
		if (cp < 0 || hr_utf8_is_surrogate(cp)) {
			say_bad_utf8(why, p, (size_t)(s - p), len, n);
			return -1;
		}
		s += n;
	}
	return 0;
}

/* ---- text that cannot be encoded ---- */

static int
refuse_surrogates(const char *codec, const char *p, size_t len, struct hr_buf *why)
{
	return hr_charset_has_high(p, len) ? hr_pyencode_check(why, codec, p, len) : 0;
}

int
hr_charset_check_text(const char *p, size_t len, struct hr_buf *why)
{
	return refuse_surrogates("utf-8", p, len, why);
}

/* ---- iconv ---- */

/* Converts as much as it can, *ret_used bytes of p. Returns 0, or -1 if p + *ret_used cannot be
 * converted. out may be NULL. */
static int
convert(const char *to, const char *from, const char *p, size_t len, struct hr_buf *out,
    size_t *ret_used)
{
	iconv_t cd = iconv_open(to, from);
	char chunk[CHUNK], *in = (char *)(uintptr_t)p,
			   *o; /* iconv requires this type, but does not write through it */
	size_t in_left = len, out_left, r;
	bool ending = false; /* true: the reset sequence of a stateful charset remains */
	int sys;

	*ret_used = 0;
	if (cd == (iconv_t)-1)
		return -1;
	for (;;) {
		o = chunk;
		out_left = sizeof(chunk);
		r = ending ? iconv(cd, NULL, NULL, &o, &out_left)
			   : iconv(cd, &in, &in_left, &o, &out_left);
		sys = errno;
		if (out != NULL)
			hr_buf_add(out, chunk, sizeof(chunk) - out_left);
		if (r == (size_t)-1 && sys == E2BIG)
			continue;
		if (r == (size_t)-1 || ending)
			break;
		ending = true;
	}
	*ret_used = len - in_left;
	(void)iconv_close(cd);
	return r == (size_t)-1 ? -1 : 0;
}

static const char *
codec_name(const struct hr_charset *c)
{
	switch (c->kind) {
	case HR_CHARSET_UTF8: return "utf-8";
	case HR_CHARSET_CHARMAP: return "charmap";
	case HR_CHARSET_ORDINAL: return "latin-1";
	case HR_CHARSET_WIDE:
	case HR_CHARSET_MULTIBYTE: break;
	}
	return c->name;
}

static const char *
decode_reason(const struct hr_charset *c, size_t rest)
{
	switch (c->kind) {
	case HR_CHARSET_WIDE: return rest < 4 ? "truncated data" : "illegal encoding";
	case HR_CHARSET_MULTIBYTE:
		return rest < 2 ? "incomplete multibyte sequence" : "illegal multibyte sequence";
	case HR_CHARSET_UTF8:
	case HR_CHARSET_CHARMAP:
	case HR_CHARSET_ORDINAL: break;
	}
	return "character maps to <undefined>";
}

int
hr_charset_decode(
    const struct hr_charset *c, const char *p, size_t len, struct hr_buf *text, struct hr_buf *why)
{
	const char *from = c->iconv;
	size_t used, mark = 0, i;

	if (c->kind == HR_CHARSET_WIDE || c == &utf8_mark) {
		i = find_mark(p, len);
		if (i < MARKS && marks[i].charset == c) {
			mark = marks[i].len;
			from = marks[i].iconv;
		}
	}
	if (c->kind == HR_CHARSET_UTF8) {
		if (hr_charset_check_utf8(p + mark, len - mark, why) < 0)
			return -1;
		if (text != NULL)
			hr_buf_add(text, p + mark, len - mark);
		return 0;
	}
	if (convert("UTF-8", from, p + mark, len - mark, text, &used) == 0)
		return 0;
	say_decode(why, codec_name(c), p, mark + used < len ? mark + used : len - 1, 1,
	    decode_reason(c, len - mark - used));
	return -1;
}

bool
hr_charset_fits(const struct hr_charset *c, const char *p, size_t len)
{
	return hr_charset_decode(c, p, len, NULL, NULL) == 0;
}

/* Returns how many consecutive characters from p on cannot be encoded. */
static size_t
count_unencodable(const struct hr_charset *c, const char *p, const char *end)
{
	size_t count = 0, n, used;

	for (; p < end; p += n, count++) {
		(void)hr_utf8_next(p, end, &n);
		if (convert(c->iconv, "UTF-8", p, n, NULL, &used) == 0)
			break;
		if (c->kind == HR_CHARSET_MULTIBYTE)
			return 1; /* these codecs report one character at a time */
	}
	return count > 0 ? count : 1;
}

static void
say_unencodable(
    const struct hr_charset *c, const char *p, size_t len, size_t used, struct hr_buf *why)
{
	const char *reason = "character maps to <undefined>";
	size_t n;

	if (c->kind == HR_CHARSET_ORDINAL)
		reason = "ordinal not in range(256)";
	else if (c->kind == HR_CHARSET_MULTIBYTE)
		reason = "illegal multibyte sequence";
	hr_pyencode_error(why, codec_name(c), hr_utf8_next(p + used, p + len, &n),
	    hr_utf8_count(p, used), count_unencodable(c, p + used, p + len), reason);
}

int
hr_charset_encode(const struct hr_charset *c, bool mark, const char *p, size_t len,
    struct hr_buf *bytes, struct hr_buf *why)
{
	size_t used, i;

	if ((c->kind == HR_CHARSET_UTF8 || c->kind == HR_CHARSET_WIDE) &&
	    refuse_surrogates(codec_name(c), p, len, why) < 0)
		return -1;
	for (i = 0; i < MARKS; i++)
		if (marks[i].charset == c && (c->kind == HR_CHARSET_WIDE || mark)) {
			hr_buf_add(bytes, marks[i].bytes, marks[i].len);
			break; /* the little-endian mark comes first in the table */
		}
	if (c->kind == HR_CHARSET_UTF8) {
		hr_buf_add(bytes, p, len);
		return 0;
	}
	if (convert(c->iconv, "UTF-8", p, len, bytes, &used) == 0)
		return 0;
	say_unencodable(c, p, len, used < len ? used : 0, why);
	return -1;
}
