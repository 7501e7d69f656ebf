/* hr_keys: keeps the session keys as the supervisor stores them, which reveals none: each key is
 * turned into a salted sum when it is read, and erased. */
#ifndef HR_SUPERVISOR_RUN_KEYS_H
#define HR_SUPERVISOR_RUN_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/keysum.h"
#include "supervisor/run/edgekey.h"

struct hr_buf;

/* One key. Any value derived from it belongs here and into key_take(), the only place that sees the
 * key. */
struct hr_key {
	unsigned char sum[HR_KEYSUM];
	unsigned char edge[HR_EDGEKEY]; /* sum for nginx */
};

/* The keys; zero the struct once. */
struct hr_keys {
	unsigned char salt[HR_KEYSUM_SALT];
	size_t count;     /* 0: authentication is off */
	uint32_t longest; /* bytes of the longest key */
	struct hr_key *v;
	bool from_environment;
};

/* Takes SESSION_API_KEY from this process's environment and erases its bytes, so that /proc no
 * longer shows it. Empty counts as unset. A key with a line feed is an error. */
int hr_keys_take_environment(struct hr_keys *k, struct hr_err *err);

/* Reads the keys from a file, one per line, unless the environment gave one. Path "": there is no
 * file. On an error the old keys stay. */
int hr_keys_read_file(struct hr_keys *k, const char *path, struct hr_err *err);

/* Appends the answer to a worker: a struct hr_keysum_head, and the sums from number `from` on that
 * fit `room` bytes. */
void hr_keys_tell(const struct hr_keys *k, size_t from, size_t room, struct hr_buf *ret);

/* Hands the sums to the next image of this process in a memory file, which the caller owns;
 * hr_keys_inherit() takes them from it. The file contains no key either. `fd` stays open. */
int hr_keys_hand_over(const struct hr_keys *k, struct hr_err *err);
int hr_keys_inherit(struct hr_keys *k, int fd, struct hr_err *err);

void hr_keys_done(struct hr_keys *k);

#endif
