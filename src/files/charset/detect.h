/* hr_detect: what libuchardet and libmagic say of some bytes. libuchardet brings libstdc++ along
 * and libmagic three libraries that unpack, and few workers ever ask them: a worker loads each with
 * the first question, as a module (detectload.c). Tests link the two answers themselves
 * (libdetect.la).
 *
 * Not for threads. */
#ifndef HR_FILES_CHARSET_DETECT_H
#define HR_FILES_CHARSET_DETECT_H

#include <stddef.h>

#include "base/buf.h"

/* Appends libuchardet's name of the charset, as "WINDOWS-1251"; nothing: it has no idea, or is not
 * to be had. */
void hr_detect_charset(struct hr_buf *b, const void *p, size_t len);

/* Appends "PNG image data, 16 x 16, ..."; nothing if libmagic or its database is not to be had.
 *
 * Only for words, for a person or an agent who is told that a file cannot be shown: no verdict
 * depends on it. For text or binary the contract has rules of its own, from which libmagic's differ
 * (files/binary.h). */
void hr_detect_kind(struct hr_buf *b, const void *p, size_t len);

/* ---- the modules ---- */

#define HR_DETECT_CHARSET_FILE "handrail-charset.so"
#define HR_DETECT_KIND_FILE "handrail-kind.so"
#define HR_DETECT_VERSION 1 /* of the struct below and of what its function takes */

struct hr_detector {
	unsigned version; /* first: it is looked at before anything else */
	void (*ask)(struct hr_buf *b, const void *p, size_t len);
};

/* Where the modules are; borrowed for good. One that cannot be loaded is logged once, and tried
 * again at the next question. */
void hr_detect_from(const char *directory);

/* The only symbol of each. */
extern const struct hr_detector hr_charset_module, hr_kind_module;

#endif
