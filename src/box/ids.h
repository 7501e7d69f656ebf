/* box_ids: maps the accounts of a box to accounts of the host. */
#ifndef HR_BOX_IDS_H
#define HR_BOX_IDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Finds the first range of an account in the text of /etc/subuid, "NAME:START:COUNT" a line, where
 * NAME may be the number. Returns false if there is none. */
bool box_ids_range(const char *text, const char *name, uid_t uid, long *ret_start, long *ret_count);

/* Subordinate ids of the caller: /etc/subuid and /etc/subgid have a range, and newuidmap(1) and
 * newgidmap(1) are installed. */
struct box_ids {
	bool many;
	long uid_start, uid_count, gid_start, gid_count; /* the first range, if `many` is set */
};
void box_ids_find(struct box_ids *ids);

/* Maps the ids of process `pid`, which waits in a new user namespace: the box's root is the caller,
 * and the ids from 1 on are subordinate ones, if there are any. Returns 0, or -1 with *err. */
int box_ids_map(const struct box_ids *ids, pid_t pid, struct hr_err *err);

/* Calls `fn` as the root of a box of this account: in this process for root, in a child in a user
 * namespace for another account. Returns the result of `fn`, which is below 100. */
typedef int box_ids_fn(const void *arg, struct hr_err *err);
int box_ids_run(box_ids_fn *fn, const void *arg, struct hr_err *err);

/* Sets the owner and the group of an entry of `dir`, or of `dir` itself for "". One that the box
 * does not have, as the group of a directory with the set-group-ID bit, becomes the caller's.
 * Returns 0, or -1 with errno. */
int box_ids_give(int dir, const char *name, uid_t uid, gid_t gid);

#endif
