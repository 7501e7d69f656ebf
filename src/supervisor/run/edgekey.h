/* hr_edgekey: makes a digest of a session key that nginx itself can compare: MD5, the only
 * algorithm of its module secure_link, over the salt in hexadecimal and the key. Sum and salt
 * cannot be sent in place of the key, and reveal it only if it can be guessed. */
#ifndef HR_SUPERVISOR_RUN_EDGEKEY_H
#define HR_SUPERVISOR_RUN_EDGEKEY_H

#include <stddef.h>

#include "base/buf.h"
#include "proto/keysum.h"

#define HR_EDGEKEY 16

void hr_edgekey_sum(const unsigned char salt[HR_KEYSUM_SALT], const char *key, size_t len,
    unsigned char ret[HR_EDGEKEY]);

/* Appends two directives: the expected digest, and the value to compare with it. */
void hr_edgekey_put(struct hr_buf *b, const unsigned char salt[HR_KEYSUM_SALT],
    const unsigned char sum[HR_EDGEKEY]);

#endif
