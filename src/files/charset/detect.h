/* hr_detect: asks libuchardet and libmagic about some bytes. libuchardet depends on libstdc++ and
 * libmagic on three decompression libraries, and few workers ever ask either: a worker loads each
 * as a module with the first question (detectload.c). Tests link both directly (libdetect.la).
 *
 * Not thread-safe. */
#ifndef HR_FILES_CHARSET_DETECT_H
#define HR_FILES_CHARSET_DETECT_H

#include <stddef.h>

#include "base/buf.h"

/* Appends libuchardet's name of the charset, such as "WINDOWS-1251", or nothing if libuchardet has
 * no answer or is not available. */
void hr_detect_charset(struct hr_buf *b, const void *p, size_t len);

/* Appends "PNG image data, 16 x 16, ...", or nothing if libmagic or its database is not available.
 * The text only explains to a person or an agent why a file cannot be shown: no verdict depends on
 * it. The contract's own rules for text or binary differ from libmagic's (files/binary.h). */
void hr_detect_kind(struct hr_buf *b, const void *p, size_t len);

/* ---- the modules ---- */

#define HR_DETECT_CHARSET_FILE "handrail-charset.so"
#define HR_DETECT_KIND_FILE "handrail-kind.so"
#define HR_DETECT_VERSION 1 /* version of the struct below and of its function's parameters */

struct hr_detector {
	unsigned version; /* first member, since it is checked before any other */
	void (*ask)(struct hr_buf *b, const void *p, size_t len);
};

/* Sets the directory of the modules; borrowed for ever. A module that cannot be loaded is logged
 * once, and tried again with the next question. */
void hr_detect_from(const char *directory);

/* the only symbol of each module */
extern const struct hr_detector hr_charset_module, hr_kind_module;

#endif
