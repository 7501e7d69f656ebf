/* hr_keys: what the supervisor keeps of the session keys, which is not enough to know one: each key
 * is turned into a salted sum when it is read, and wiped. */
#ifndef HR_SUPERVISOR_RUN_KEYS_H
#define HR_SUPERVISOR_RUN_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/keysum.h"
#include "supervisor/run/edgekey.h"

struct hr_buf;

/* Of one key. Whatever else is to be kept of it belongs here and into key_take(): there is no other
 * time at which the key is known. */
struct hr_key {
	unsigned char sum[HR_KEYSUM];
	unsigned char edge[HR_EDGEKEY]; /* for nginx */
};

/* Zero it once. */
struct hr_keys {
	unsigned char salt[HR_KEYSUM_SALT];
	size_t count;     /* 0: authentication is off */
	uint32_t longest; /* bytes of the longest key */
	struct hr_key *v;
	bool from_environment;
};

/* Takes SESSION_API_KEY out of the environment of this process, its bytes too, so that /proc shows
 * it no longer. Empty counts as not set. A key with a line feed is an error. */
int hr_keys_take_environment(struct hr_keys *k, struct hr_err *err);

/* Reads the keys from a file, one a line, unless the environment gave one. Path "": none. On an
 * error what was known before stays. */
int hr_keys_read_file(struct hr_keys *k, const char *path, struct hr_err *err);

/* Appends what a worker asks for: a struct hr_keysum_head and as many sums from number `from` on as
 * `room` bytes have place for. */
void hr_keys_tell(const struct hr_keys *k, size_t from, size_t room, struct hr_buf *ret);

/* For the next image of this process: a memory file, the caller's, and what was in it. It holds no
 * key either. `fd` stays open. */
int hr_keys_hand_over(const struct hr_keys *k, struct hr_err *err);
int hr_keys_inherit(struct hr_keys *k, int fd, struct hr_err *err);

void hr_keys_done(struct hr_keys *k);

#endif
