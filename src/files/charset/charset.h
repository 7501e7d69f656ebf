/* hr_charset: texts in other charsets than UTF-8: names as Python knows them, conversion by iconv,
 * failures in the words of Python's codecs (doc/files.md, "Charsets"). */
#ifndef HR_FILES_CHARSET_CHARSET_H
#define HR_FILES_CHARSET_CHARSET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum hr_charset_kind {
	HR_CHARSET_UTF8,      /* strict */
	HR_CHARSET_WIDE,      /* UTF-16, UTF-32: written little-endian with a mark */
	HR_CHARSET_CHARMAP,   /* one byte a character, by a table */
	HR_CHARSET_ORDINAL,   /* Latin-1 */
	HR_CHARSET_MULTIBYTE, /* the East Asian ones */
};

struct hr_charset {
	const char *name;  /* Python's, with '_' */
	const char *iconv; /* what iconv calls it */
	enum hr_charset_kind kind;
};

extern const struct hr_charset hr_charset_utf8;

/* By a name or alias, in lower case and with '_' for '-'. NULL: not known to Python. *ret_text:
 * false for one that is no charset here: no text, no conversion, or one that bytes must show
 * themselves (UTF-8, UTF-16); the result is then some charset, not to be used. */
const struct hr_charset *hr_charset_find(const char *name, size_t len, bool *ret_text);

enum hr_bom {
	HR_BOM_NONE,
	HR_BOM_UTF8,
	HR_BOM_UTF16LE,
	HR_BOM_UTF16BE,
	HR_BOM_UTF32LE,
	HR_BOM_UTF32BE,
	HR_BOM_ODD, /* UTF-32 in an unusual order */
};
enum hr_bom hr_charset_bom(const char *p, size_t len);
/* Not for HR_BOM_NONE and HR_BOM_ODD. Decoding skips the mark, encoding writes the one of the
 * charset: UTF-16BE is decoded as such and encoded as little-endian, as Python does. */
const struct hr_charset *hr_charset_of_bom(enum hr_bom bom);

bool hr_charset_has_high(const char *p, size_t len); /* a byte above 0x7F */

/* Strict. 0, or -1 with the text of Python's error in why (which may be NULL), for bytes that are
 * to be decoded; surrogates are errors, for a text that is to be encoded they are the only ones. */
int hr_charset_check_utf8(const char *p, size_t len, struct hr_buf *why);
int hr_charset_check_text(const char *p, size_t len, struct hr_buf *why);

/* Whether all of p is text in that charset. */
bool hr_charset_fits(const struct hr_charset *c, const char *p, size_t len);

/* Appends the UTF-8 of p, a mark of the charset at its beginning taken off. 0; -1: the error text
 * is in why. Check `text` for memory. */
int hr_charset_decode(
    const struct hr_charset *c, const char *p, size_t len, struct hr_buf *text, struct hr_buf *why);

/* Appends generalised UTF-8 in that charset, with its mark in front if `mark` or if it always has
 * one. */
int hr_charset_encode(const struct hr_charset *c, bool mark, const char *p, size_t len,
    struct hr_buf *bytes, struct hr_buf *why);

#endif
