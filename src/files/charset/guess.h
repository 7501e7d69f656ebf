/* hr_guess: guesses the legacy charset of some bytes from libuchardet's statistics. */
#ifndef HR_FILES_CHARSET_GUESS_H
#define HR_FILES_CHARSET_GUESS_H

#include <stdbool.h>
#include <stddef.h>

struct hr_charset;

/* Guesses the charset of bytes that are not UTF-8 (doc/files.md, "Charsets"). The result decodes
 * all of p. Returns NULL if there is no guess, or p is not text. */
const struct hr_charset *hr_guess_charset(const char *p, size_t len);

/* Returns true if the original's detector would be more than 90 % sure (doc/files.md, "A charset
 * that is certain", 4). libuchardet is of the same family but does not report its confidence: its
 * answer counts if p decodes strictly and nearly all of it is in the script of that charset. Latin
 * scripts never count. */
bool hr_guess_sure(const char *p, size_t len);

#endif
