/* hr_plaintext: keeps a file's text without normalisation: line ends stay, and a byte order mark
 * and the charset are kept for writing. A text that cannot be written back byte for byte is not
 * treated as text. The original editor's rules are in files/editor and files/binary.h, and are not
 * used here. */
#ifndef HR_FILES_REVISE_PLAINTEXT_H
#define HR_FILES_REVISE_PLAINTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

struct hr_charset;

/* Longer texts are not read or changed as a whole. */
#define HR_PLAINTEXT_MAX ((size_t)32 << 20)

struct hr_plaintext {
	struct hr_buf text;               /* UTF-8; it has invalid bytes only if charset is NULL */
	const struct hr_charset *charset; /* the file's charset; NULL: UTF-8 */
	char mark[4];                     /* the byte order mark */
	size_t mark_len;
	bool cr;          /* lines end with CR; the file has no LF */
	const char *ends; /* end of most lines: "\n", "\r\n" or "\r"; "": no line end */
};

void hr_plaintext_init(struct hr_plaintext *t);
void hr_plaintext_done(struct hr_plaintext *t);

/* Fills t from a file's bytes. Returns false if they are not text, or without memory
 * (t->text.fail). */
bool hr_plaintext_decode(struct hr_plaintext *t, const char *p, size_t len);
/* Appends `text` as the bytes of a file with t's charset and mark. Returns 0, or -1 with the reason
 * in why. */
int hr_plaintext_encode(
    const struct hr_plaintext *t, struct hr_span text, struct hr_buf *bytes, struct hr_buf *why);

/* Returns the length of the line at p without its end, and in *ret_end the length of the end: 1, 2,
 * or 0 for a last line that has none. */
size_t hr_plaintext_line(const char *p, size_t len, bool cr, size_t *ret_end);
/* Returns the number of lines; the last one needs no end. */
size_t hr_plaintext_lines(const struct hr_plaintext *t);
/* Returns the offset at which line number `line` (from 1) begins, or the length of the text. */
size_t hr_plaintext_line_at(const struct hr_plaintext *t, size_t line);

#endif
