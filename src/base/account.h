/* hr_account: takes another account's identity, to act as that account for a call or two. Whether
 * it may read a file is decided by opening the file as that account, not by reading its mode. */
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

/* The identity that hr_account_leave() restores. */
struct hr_account_own {
	bool changed;
	gid_t gid;
	gid_t groups[HR_ACCOUNT_GROUPS];
	int ngroups;
};

/* Returns true for root of the machine: id 0 of a user namespace has its rights only there. */
bool hr_account_is_root(void);

/* Looks up the account with all its groups in the system's tables. An account that they lack gets
 * the group of its own number and no others. */
void hr_account_find(struct hr_account *a, uid_t uid);

/* Gives this process (which has one thread) the account's rights for opening files. Returns 0, also
 * when the process is not root and nothing changes; or -1 with errno and nothing changed. */
int hr_account_enter(const struct hr_account *a, struct hr_account_own *own);
/* Restores the identity, or ends the process: a worker must not continue with another account's
 * rights. */
void hr_account_leave(const struct hr_account_own *own);

#endif
