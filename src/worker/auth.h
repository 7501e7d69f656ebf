/* hr_auth: the session keys and their comparison (http-api.md 2). */
#ifndef HR_WORKER_AUTH_H
#define HR_WORKER_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HR_AUTH_BYTES_MAX (64u << 10) /* of all keys together */

struct hr_auth {
	char *keys; /* one a line; NULL: authentication is off */
	size_t len;
};

/* Reads the keys from the start of fd, which stays the caller's. Empty lines do not count. */
int hr_auth_read(struct hr_auth *a, int fd, struct hr_err *err);
/* The same from memory. */
int hr_auth_set(struct hr_auth *a, const char *keys, size_t len, struct hr_err *err);
void hr_auth_done(struct hr_auth *a); /* wipes them */

/* Is the header's value, without blanks at its ends, one of the keys? True without keys. Takes the
 * same time for every wrong value of one length. */
bool hr_auth_passes(const struct hr_auth *a, const char *value);

#endif
