/* hr_account: who somebody else is, and being him for the length of a call or two: a file is tried
 * by opening it as he, never by guessing from its mode. */
#ifndef HR_BASE_ACCOUNT_H
#define HR_BASE_ACCOUNT_H

#include <stdbool.h>
#include <sys/types.h>

#define HR_ACCOUNT_GROUPS 64

struct hr_account {
	uid_t uid;
	gid_t gid;
	gid_t groups[HR_ACCOUNT_GROUPS];
	int ngroups;
};

/* What hr_account_leave() goes back to. */
struct hr_account_own {
	bool changed;
	gid_t gid;
	gid_t groups[HR_ACCOUNT_GROUPS];
	int ngroups;
};

/* The account of that number with all its groups, as the system's tables have it. One that they do
 * not have has a group of its own number and no further ones. */
void hr_account_find(struct hr_account *a, uid_t uid);

/* From here on files are opened with that account's rights, for this process (which has one
 * thread). 0 also when we are not root: then we stay who we are. -1 with errno: nothing changed. */
int hr_account_enter(const struct hr_account *a, struct hr_account_own *own);
/* Back, or the process ends: a worker with somebody else's rights must not go on. */
void hr_account_leave(const struct hr_account_own *own);

#endif
