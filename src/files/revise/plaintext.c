/* Decides whether a file is text, and in which charset; the whole file counts. */
#include "config.h"

#include "files/revise/plaintext.h"

#include <string.h>

#include "base/text/utf8.h"
#include "files/charset/charset.h"
#include "files/charset/encoding.h"

#define TEXT_MAX (HR_PLAINTEXT_MAX * 4) /* maximum bytes of UTF-8 for the longest file */
#define ODD_PERCENT 30 /* maximum percentage of control characters and invalid bytes */
/* minimum percentage of blanks, line ends and letters in UTF-16 without a mark */
#define WIDE_ASCII_PERCENT 10

/* Raw encodings: the mark is kept apart, and Python's codecs are not used. */
static const struct hr_charset utf16le = {"utf-16-le", "UTF-16LE", HR_CHARSET_MULTIBYTE};
static const struct hr_charset utf16be = {"utf-16-be", "UTF-16BE", HR_CHARSET_MULTIBYTE};
static const struct hr_charset utf32le = {"utf-32-le", "UTF-32LE", HR_CHARSET_MULTIBYTE};
static const struct hr_charset utf32be = {"utf-32-be", "UTF-32BE", HR_CHARSET_MULTIBYTE};

static const struct {
	enum hr_bom bom;
	size_t len;
	const struct hr_charset *charset;
} marks[] = {
    {HR_BOM_UTF8, 3, NULL},
    {HR_BOM_UTF16LE, 2, &utf16le},
    {HR_BOM_UTF16BE, 2, &utf16be},
    {HR_BOM_UTF32LE, 4, &utf32le},
    {HR_BOM_UTF32BE, 4, &utf32be},
};

void
hr_plaintext_init(struct hr_plaintext *t)
{
	memset(t, 0, sizeof(*t));
	hr_buf_init(&t->text, TEXT_MAX);
	t->ends = "";
}

void
hr_plaintext_done(struct hr_plaintext *t)
{
	hr_buf_done(&t->text);
}

static bool
is_blank(int32_t cp)
{
	return (cp >= '\b' && cp <= '\r') || cp == 0x1B;
}

/* Returns true if too many bytes are control characters or invalid UTF-8 for a text. */
static bool
is_odd(const char *p, size_t len)
{
	const char *end = p + len;
	size_t n, odd = 0;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (cp < 0 || cp == 0x7F || (cp < 0x20 && !is_blank(cp)))
			odd += n;
	}
	return odd * 100 > len * ODD_PERCENT;
}

/* Returns true for damaged UTF-8: more multi-byte characters than invalid bytes. A single-byte
 * charset would show it garbled. */
static bool
is_damaged_utf8(const char *p, size_t len)
{
	const char *end = p + len;
	size_t n, good = 0, bad = 0;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		good += cp >= 0x80;
		bad += cp < 0;
	}
	return good > bad;
}

/* Decodes all of p, and checks that encoding restores the same bytes. */
static bool
decode_as(struct hr_plaintext *t, const struct hr_charset *c, const char *p, size_t len)
{
	HR_BUF(again, HR_PLAINTEXT_MAX + 16);
	HR_BUF(why, 1024);

	hr_buf_reset(&t->text);
	if (hr_charset_decode(c, p, len, &t->text, NULL) < 0 || t->text.fail != HR_OK ||
	    hr_charset_encode(c, false, hr_buf_str(&t->text), t->text.len, &again, &why) < 0 ||
	    again.len != len || (len > 0 && memcmp(again.p, p, len) != 0))
		return false;
	t->charset = c;
	return true;
}

static bool
take_bytes(struct hr_plaintext *t, const char *p, size_t len)
{
	hr_buf_reset(&t->text);
	hr_buf_add(&t->text, p, len);
	t->charset = NULL;
	return t->text.fail == HR_OK;
}

/* Tries UTF-16 without a mark, in the byte order that gives more ASCII. */
static bool
decode_wide(struct hr_plaintext *t, const char *p, size_t len)
{
	size_t ascii[2] = {0, 0}, i, k;
	unsigned unit;

	if (len % 2 != 0)
		return false;
	for (i = 0; i < len; i += 2)
		for (k = 0; k < 2; k++) {
			unit = (unsigned)(unsigned char)p[i + k] |
			       (unsigned)(unsigned char)p[i + 1 - k] << 8;
			ascii[k] += (unit >= 0x20 && unit < 0x7F) || is_blank((int32_t)unit);
		}
	k = ascii[1] > ascii[0];
	return ascii[k] * 2 * 100 >= len * WIDE_ASCII_PERCENT &&
	       decode_as(t, k == 0 ? &utf16le : &utf16be, p, len) &&
	       memchr(hr_buf_str(&t->text), '\0', t->text.len) == NULL &&
	       !is_odd(hr_buf_str(&t->text), t->text.len);
}

/* Decodes the bytes after the mark, if there is one. */
static bool
decode_rest(struct hr_plaintext *t, const char *p, size_t len)
{
	struct hr_encoding e;

	if (t->mark_len > 0 && t->charset != NULL)
		return decode_as(t, t->charset, p, len) &&
		       memchr(hr_buf_str(&t->text), '\0', t->text.len) == NULL;
	if (len > 0 && memchr(p, '\0', len) != NULL)
		return decode_wide(t, p, len);
	if (t->mark_len == 0) {
		hr_encoding_detect(p, len, &e);
		if (e.charset->kind != HR_CHARSET_UTF8 && !is_damaged_utf8(p, len) &&
		    decode_as(t, e.charset, p, len))
			return true;
	}
	return !is_odd(p, len) && take_bytes(t, p, len);
}

/* Determines the line end that most lines have. */
static void
look_at_ends(struct hr_plaintext *t)
{
	const char *p = hr_buf_str(&t->text), *begin = p, *end = p + t->text.len;
	size_t lf = 0, crlf = 0;

	while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		if (p > begin && p[-1] == '\r')
			crlf++;
		else
			lf++;
		p++;
	}
	t->cr = lf + crlf == 0 && memchr(begin, '\r', t->text.len) != NULL;
	t->ends = t->cr ? "\r" : crlf > lf ? "\r\n" : lf > 0 ? "\n" : "";
}

bool
hr_plaintext_decode(struct hr_plaintext *t, const char *p, size_t len)
{
	enum hr_bom bom = hr_charset_bom(p, len);
	size_t i;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (marks[i].bom == bom) {
			t->mark_len = marks[i].len;
			memcpy(t->mark, p, t->mark_len);
			t->charset = marks[i].charset;
		}
	if (!decode_rest(t, p + t->mark_len, len - t->mark_len))
		return false;
	look_at_ends(t);
	return true;
}

int
hr_plaintext_encode(
    const struct hr_plaintext *t, struct hr_span text, struct hr_buf *bytes, struct hr_buf *why)
{
	hr_buf_add(bytes, t->mark, t->mark_len);
	if (t->charset != NULL)
		return hr_charset_encode(t->charset, false, text.p, text.len, bytes, why);
	hr_buf_add(bytes, text.p, text.len);
	return 0;
}

size_t
hr_plaintext_line(const char *p, size_t len, bool cr, size_t *ret_end)
{
	const char *end = len > 0 ? memchr(p, cr ? '\r' : '\n', len) : NULL;

	*ret_end = end != NULL;
	if (end == NULL)
		return len;
	if (!cr && end > p && end[-1] == '\r') {
		*ret_end = 2;
		end--;
	}
	return (size_t)(end - p);
}

size_t
hr_plaintext_lines(const struct hr_plaintext *t)
{
	size_t at = 0, n = 0, end;

	while (at < t->text.len) {
		at += hr_plaintext_line(t->text.p + at, t->text.len - at, t->cr, &end);
		at += end;
		n++;
	}
	return n;
}

size_t
hr_plaintext_line_at(const struct hr_plaintext *t, size_t line)
{
	size_t at = 0, end;

	for (; line > 1 && at < t->text.len; line--) {
		at += hr_plaintext_line(t->text.p + at, t->text.len - at, t->cr, &end);
		at += end;
	}
	return at;
}
