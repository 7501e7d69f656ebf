/* hr_keys: the session keys, kept where neither an environment nor a command line shows them: in a
 * sealed memory file that only workers get. */
#ifndef HR_SUPERVISOR_KEYS_H
#define HR_SUPERVISOR_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct hr_keys {
	int fd; /* one key a line; -1: not made yet */
	size_t count;
	bool from_environment;
};

/* Takes SESSION_API_KEY out of the environment of this process, its bytes too, so that /proc shows
 * it no longer. Empty counts as not set. A key with a line feed is an error. */
int hr_keys_take_environment(struct hr_keys *k, struct hr_err *err);

/* Reads the keys from a file, one a line, unless the environment gave one. Path "": none. Replaces
 * fd; on an error the old one stays. */
int hr_keys_read_file(struct hr_keys *k, const char *path, struct hr_err *err);

/* Another sealed file of the same keys, for one worker: through a copy of the descriptor the
 * readers would share one position, and the second would find no key. The caller closes it. */
int hr_keys_copy(const struct hr_keys *k, struct hr_err *err);

void hr_keys_done(struct hr_keys *k);

#endif
