/* hr_quote: makes bytes of unknown origin safe for a log line, a JSON text, a shell or a
 * message. */
#ifndef HR_BASE_TEXT_QUOTE_H
#define HR_BASE_TEXT_QUOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends one line of plain text: control characters (C0, DEL, C1) and bytes that are not UTF-8
 * become \xHH, so that no escape sequence and no forged line reaches a terminal or a log. */
void hr_quote_text(struct hr_buf *b, const char *s, size_t len);

/* Appends a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void hr_quote_json(struct hr_buf *b, const char *s, size_t len);

/* Appends base64 in the alphabet of RFC 4648 with padding, without line breaks and quotes. */
void hr_quote_base64(struct hr_buf *b, const void *data, size_t len);
/* Appends the decoded bytes. Returns false if s is not base64; b then has the bytes before the
 * error. */
bool hr_quote_unbase64(struct hr_buf *b, const char *s, size_t len);

/* Appends a shell word in single quotes. */
void hr_quote_shell(struct hr_buf *b, const char *s, size_t len);

/* Writes two lower-case hexadecimal digits for each byte, and a NUL. */
void hr_quote_hex(char *to, const void *data, size_t len);

#endif
