/* Drops capabilities by system calls: libcap would be one more library in every worker. */
#include "config.h"

#include "worker/harden.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The capabilities for opening, reading, writing and giving away files, for a temporary change of
 * account, for ending a converter, and for the disk blocks reserved for root. */
static const unsigned kept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
    CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_RESOURCE};

static uint64_t
kept_mask(void)
{
	uint64_t mask = 0;
	size_t i;

	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		mask |= UINT64_C(1) << kept[i];
	return mask;
}

static int
drop_capabilities(struct hr_err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint64_t mask = kept_mask();
	unsigned i;

	/* no_new_privs limits the children to this process's rights, and so does the bounding set
	 * where this process may change it. EINVAL: the last capability was passed. */
	for (i = 0; i < 64 && (prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0); i++)
		if ((mask >> i & 1) == 0)
			(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return hr_err_sys(err, errno, "PR_SET_NO_NEW_PRIVS");
	if (syscall(SYS_capget, &head, data) < 0)
		return hr_err_sys(err, errno, "capget");
	for (i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(mask >> 32 * i);
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0; /* the call clears the ambient set as well */
	}
	if (syscall(SYS_capset, &head, data) < 0)
		return hr_err_sys(err, errno, "capset");
	return 0;
}

int
hr_harden(struct hr_err *err)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return hr_err_sys(err, errno, "PR_SET_DUMPABLE");
	/* a program executed by descriptor has a number as its name */
	(void)prctl(PR_SET_NAME, "handrail-worker", 0, 0, 0);
	return drop_capabilities(err);
}
