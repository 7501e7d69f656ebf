/* hr_encoding: detects the charset of a file by its content (doc/files.md, "Charsets"). */
#ifndef HR_FILES_CHARSET_ENCODING_H
#define HR_FILES_CHARSET_ENCODING_H

#include <stdbool.h>
#include <stddef.h>

struct hr_charset;

struct hr_encoding {
	const struct hr_charset *charset; /* never NULL */
	bool mark;                        /* UTF-8 with a byte order mark */
};

#define HR_ENCODING_SAMPLE (1u << 20) /* bytes that are examined */

/* Detects the charset of a file's bytes. Never fails: the fallback is UTF-8, which may then not
 * decode. Pure. */
void hr_encoding_detect(const char *p, size_t len, struct hr_encoding *ret);

#endif
