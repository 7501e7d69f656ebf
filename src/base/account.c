/* Only the effective identity changes: the real and the saved one stay root's, so that the account
 * cannot signal or trace this process meanwhile. */
#include "config.h"

#include "base/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"

bool
hr_account_is_root(void)
{
	HR_BUF(map, 4096);
	unsigned long inside, outside, count;

	return geteuid() == 0 && hr_path_read("/proc/self/uid_map", &map, NULL) == 0 &&
	       sscanf(hr_buf_str(&map), "%lu %lu %lu", &inside, &outside, &count) == 3 &&
	       outside == 0 && count == UINT32_MAX;
}

void
hr_account_find(struct hr_account *a, uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);

	memset(a, 0, sizeof(*a));
	a->uid = uid;
	a->gid = pw != NULL ? pw->pw_gid : (gid_t)uid;
	a->ngroups = HR_ACCOUNT_GROUPS;
	/* An account with too many groups keeps as many as fit, which never grants too much. */
	if (pw == NULL || (getgrouplist(pw->pw_name, a->gid, a->groups, &a->ngroups) < 0 &&
			      a->ngroups < HR_ACCOUNT_GROUPS)) {
		a->groups[0] = a->gid;
		a->ngroups = 1;
	}
	if (a->ngroups > HR_ACCOUNT_GROUPS)
		a->ngroups = HR_ACCOUNT_GROUPS;
}

int
hr_account_enter(const struct hr_account *a, struct hr_account_own *own)
{
	int sys;

	own->changed = false;
	if (geteuid() != 0 || a->uid == 0)
		return 0;
	own->gid = getegid();
	own->ngroups = getgroups(HR_ACCOUNT_GROUPS, own->groups);
	if (own->ngroups < 0)
		return -1;
	own->changed = true;
	if (setgroups((size_t)a->ngroups, a->groups) == 0 && setegid(a->gid) == 0 &&
	    seteuid(a->uid) == 0)
		return 0;
	sys = errno;
	hr_account_leave(own);
	own->changed = false;
	errno = sys;
	return -1;
}

void
hr_account_leave(const struct hr_account_own *own)
{
	int sys = errno;

	if (!own->changed)
		return;
	hr_assert(seteuid(0) == 0 && setegid(own->gid) == 0);
	/* setgroups() fails with EPERM where it is not permitted at all, so nothing was changed. */
	hr_assert(setgroups((size_t)own->ngroups, own->groups) == 0 || errno == EPERM);
	errno = sys;
}
