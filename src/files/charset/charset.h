/* hr_charset: handles text in charsets other than UTF-8: names as Python knows them, conversion by
 * iconv, errors with the text of Python's codecs (doc/files.md, "Charsets"). */
#ifndef HR_FILES_CHARSET_CHARSET_H
#define HR_FILES_CHARSET_CHARSET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum hr_charset_kind {
	HR_CHARSET_UTF8,      /* UTF-8, decoded strictly */
	HR_CHARSET_WIDE,      /* UTF-16, UTF-32: written in little-endian order with a mark */
	HR_CHARSET_CHARMAP,   /* one byte per character, by a table */
	HR_CHARSET_ORDINAL,   /* Latin-1 */
	HR_CHARSET_MULTIBYTE, /* East Asian charsets */
};

struct hr_charset {
	const char *name;  /* Python's name, with '_' */
	const char *iconv; /* iconv's name */
	enum hr_charset_kind kind;
};

extern const struct hr_charset hr_charset_utf8;

/* Finds a charset by name or alias, in lower case and with '_' for '-'. Returns NULL if Python
 * knows none. *ret_text is false if the codec is not for text, has no conversion here, or is one
 * that only the bytes of the file can confirm (UTF-8, UTF-16); the result must then not be used. */
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
/* Returns the charset of a mark, not HR_BOM_NONE or HR_BOM_ODD. Decoding skips the mark, encoding
 * writes that of the charset: UTF-16BE is decoded as such but encoded as little-endian, as in
 * Python. */
const struct hr_charset *hr_charset_of_bom(enum hr_bom bom);

bool hr_charset_has_high(const char *p, size_t len); /* Returns true if any byte is above 0x7F. */

/* Checks bytes before decoding; surrogates are errors. hr_charset_check_text() checks text before
 * encoding, where only surrogates are errors. Returns 0, or -1 with Python's error in why (may be
 * NULL). */
int hr_charset_check_utf8(const char *p, size_t len, struct hr_buf *why);
int hr_charset_check_text(const char *p, size_t len, struct hr_buf *why);

/* Returns true if all of p is text in that charset. */
bool hr_charset_fits(const struct hr_charset *c, const char *p, size_t len);

/* Appends p as UTF-8, without the charset's mark at the start. Returns 0, or -1 with the error text
 * in why. Check `text` for memory. */
int hr_charset_decode(
    const struct hr_charset *c, const char *p, size_t len, struct hr_buf *text, struct hr_buf *why);

/* Appends generalised UTF-8 in that charset; the charset's mark comes first if `mark` or if the
 * charset always has one. */
int hr_charset_encode(const struct hr_charset *c, bool mark, const char *p, size_t len,
    struct hr_buf *bytes, struct hr_buf *why);

#endif
