/* hr_auth: checks a client's session key (doc/http.md, "The key"). Workers and
 * plugins have only salted sums of the keys, which the supervisor sends. */
#ifndef HR_PROTO_AUTH_H
#define HR_PROTO_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "proto/keysum.h"

struct hr_auth {
	struct hr_keysum_head head;       /* count 0: authentication is off */
	unsigned char (*sums)[HR_KEYSUM]; /* the sums, head.count of them */
	size_t have;                      /* number of sums received so far */
};

/* Asks the supervisor for all sums. The caller must be a process that no other can inspect. */
int hr_auth_ask(struct hr_auth *a, int channel, struct hr_err *err);
/* Takes one answer of the supervisor. Returns 1 if all sums have arrived, 0 if the next answer must
 * start at number a->have, or -1 with *err set. */
int hr_auth_take(struct hr_auth *a, const char *p, size_t len, struct hr_err *err);
/* Takes all sums from the file of a plugin. Returns false while the file is written, or after an
 * error: no key must pass then. */
bool hr_auth_read(struct hr_auth *a, int fd);
void hr_auth_done(struct hr_auth *a);

/* Returns true if the header's value, without blanks at its ends, is one of the keys, or if
 * authentication is off. Takes the same time for all wrong values of one length. */
bool hr_auth_passes(const struct hr_auth *a, const char *value);
/* Does the same and returns the sum, too; zeros if authentication is off. */
bool hr_auth_sum(const struct hr_auth *a, const char *value, unsigned char ret_sum[HR_KEYSUM]);
/* Returns true if the sum belongs to a current key. */
bool hr_auth_knows(const struct hr_auth *a, const unsigned char sum[HR_KEYSUM]);

#endif
