/* hr_textfile: a file's bytes and its text. */
#ifndef HR_FILES_TEXTFILE_H
#define HR_FILES_TEXTFILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "files/charset/encoding.h"

/* Appends all bytes of path, at most the cap of b. 0; -1: err->sys is the errno, EFBIG for a file
 * that is longer, HR_E_NOMEM. Never waits for a FIFO: without a writer it is empty. */
int hr_textfile_read(const char *path, struct hr_buf *b, struct hr_err *err);

/* The same of a file that is not binary (files/binary.h), which is opened once for both.
 * *ret_binary: it is; then only its beginning was read. */
int hr_textfile_read_text(const char *path, struct hr_buf *b, bool *ret_binary, struct hr_err *err);

/* Text mode (doc/files.md, "Text"): the text of some bytes in a charset, line ends made "\n". 0;
 * -1: the codec's message is in why. The bytes are used up: where they are the text already they
 * become it without a copy. */
int hr_textfile_decode(
    struct hr_buf *bytes, const struct hr_encoding *e, struct hr_buf *text, struct hr_buf *why);

#endif
