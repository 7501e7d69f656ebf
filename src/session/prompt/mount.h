/* hr_root_mount: which mount is "/"? The number changes when the root of this process is exchanged
 * under it. */
#ifndef HR_SESSION_PROMPT_MOUNT_H
#define HR_SESSION_PROMPT_MOUNT_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

/* Returns 0 with a kernel before 5.8. */
static inline uint64_t
hr_root_mount(void)
{
	struct statx st;

	return statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) == 0 &&
		       (st.stx_mask & STATX_MNT_ID) != 0
		   ? st.stx_mnt_id
		   : 0;
}

#endif
