/* hr_auth: whether a client knows a session key (doc/http.md, "The key"). A worker knows none
 * itself: it has their salted sums, from the supervisor. */
#ifndef HR_WORKER_REQUEST_AUTH_H
#define HR_WORKER_REQUEST_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "proto/keysum.h"

struct hr_auth {
	struct hr_keysum_head head;       /* count 0: authentication is off */
	unsigned char (*sums)[HR_KEYSUM]; /* head.count of them */
	size_t have;                      /* of them, so far */
};

/* Asks the supervisor for all sums. Only for a process that nobody else can look into. */
int hr_auth_ask(struct hr_auth *a, int channel, struct hr_err *err);
/* One of its answers. 1: all have come; 0: the next one has to begin at number a->have; -1. */
int hr_auth_take(struct hr_auth *a, const char *p, size_t len, struct hr_err *err);
void hr_auth_done(struct hr_auth *a);

/* Is the header's value, without blanks at its ends, one of the keys? True where authentication is
 * off. Takes the same time for every wrong value of one length. */
bool hr_auth_passes(const struct hr_auth *a, const char *value);
/* The same, and its sum; zeros where authentication is off. */
bool hr_auth_sum(const struct hr_auth *a, const char *value, unsigned char ret_sum[HR_KEYSUM]);
/* Whether it is the sum of a key that still counts. */
bool hr_auth_knows(const struct hr_auth *a, const unsigned char sum[HR_KEYSUM]);

#endif
