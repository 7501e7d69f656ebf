/* hr_textfile: reads a file's bytes and decodes its text. */
#ifndef HR_FILES_TEXTFILE_H
#define HR_FILES_TEXTFILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "files/charset/encoding.h"

/* Appends all bytes of path, up to the cap of b. Returns 0, or -1 with errno in err->sys (EFBIG for
 * a longer file) or HR_E_NOMEM. Never blocks on a FIFO: one without a writer is empty. */
int hr_textfile_read(const char *path, struct hr_buf *b, struct hr_err *err);

/* Reads a file unless it is binary (files/binary.h), and opens it only once. *ret_binary is set if
 * the file is binary; then only its beginning was read. */
int hr_textfile_read_text(const char *path, struct hr_buf *b, bool *ret_binary, struct hr_err *err);

/* Decodes bytes as text mode does (doc/files.md, "Text"), with line ends made "\n". Returns 0, or
 * -1 with the codec's message in why. Consumes bytes: if they are the text already, it takes them
 * over without a copy. */
int hr_textfile_decode(
    struct hr_buf *bytes, const struct hr_encoding *e, struct hr_buf *text, struct hr_buf *why);

#endif
