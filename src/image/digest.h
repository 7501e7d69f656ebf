/* hr_digest: computes MD5 and SHA-256 of bytes as they arrive, with libmd. Here MD5 only names
 * images and protects nothing. */
#ifndef HR_IMAGE_DIGEST_H
#define HR_IMAGE_DIGEST_H

#include <stddef.h>

#include "base/err.h"

enum hr_digest_kind { HR_DIGEST_MD5, HR_DIGEST_SHA256 };

#define HR_DIGEST_HEX 65 /* room for the longest in lower-case hexadecimal, with its NUL */

struct hr_digest;

/* Returns NULL with *err set if out of memory. */
struct hr_digest *hr_digest_new(enum hr_digest_kind kind, struct hr_err *err);
void hr_digest_free(struct hr_digest *d); /* Accepts NULL. */

void hr_digest_add(struct hr_digest *d, const void *p, size_t len);
/* Adds a file's bytes; arguments as for openat(). Returns -1 if it cannot be read to its end. */
int hr_digest_add_file(struct hr_digest *d, int dirfd, const char *path, struct hr_err *err);

/* Ends the digest; nothing can be added afterwards. */
void hr_digest_hex(struct hr_digest *d, char ret[HR_DIGEST_HEX]);

/* Computes a digest in one call. */
int hr_digest_of(enum hr_digest_kind kind, const void *p, size_t len, char ret[HR_DIGEST_HEX],
    struct hr_err *err);

#endif
