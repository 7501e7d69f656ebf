/* hr_guess: which legacy charset some bytes are in, by the statistics of libuchardet. */
#ifndef HR_FILES_CHARSET_GUESS_H
#define HR_FILES_CHARSET_GUESS_H

#include <stdbool.h>
#include <stddef.h>

struct hr_charset;

/* For bytes that are not UTF-8 (doc/files.md, "Charsets"). The result decodes all of p. NULL: no
 * idea, or no text. */
const struct hr_charset *hr_guess_charset(const char *p, size_t len);

/* Whether the original's detector would be more than 90 % sure (doc/files.md, "A charset that is
 * certain", 4). libuchardet is of the same family but does not tell how sure it is: what it says
 * counts if p decodes strictly and nearly all of it is in the script of that charset. Latin scripts
 * never count. */
bool hr_guess_sure(const char *p, size_t len);

#endif
