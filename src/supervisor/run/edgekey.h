/* hr_edgekey: a session key's sum as nginx itself can compare it: MD5, the only one that its module
 * secure_link knows, of the salt in hexadecimal and the key. Whoever reads sum and salt can send
 * neither in the key's place, and finds no key with them but one that can be guessed. */
#ifndef HR_SUPERVISOR_RUN_EDGEKEY_H
#define HR_SUPERVISOR_RUN_EDGEKEY_H

#include <stddef.h>

#include "base/buf.h"
#include "proto/keysum.h"

#define HR_EDGEKEY 16

void hr_edgekey_sum(const unsigned char salt[HR_KEYSUM_SALT], const char *key, size_t len,
    unsigned char ret[HR_EDGEKEY]);

/* Appends the two directives: what is expected, and what it is compared with. */
void hr_edgekey_put(struct hr_buf *b, const unsigned char salt[HR_KEYSUM_SALT],
    const unsigned char sum[HR_EDGEKEY]);

#endif
