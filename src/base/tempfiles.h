/* hr_tempfiles: the names of files that must not outlive a process that dies before it could rename
 * or remove them. They are written down in memory that another process shares, which removes the
 * files. */
#ifndef HR_BASE_TEMPFILES_H
#define HR_BASE_TEMPFILES_H

#include <stdatomic.h>
#include <stdint.h>

#define HR_TEMPFILES_PATH 4092
#define HR_TEMPFILE_PREFIX ".handrail-" /* of the names of all such files */

/* One page. One writer at a time: the process that makes files, then, after its end, the other. */
struct hr_tempfiles {
	_Atomic uint32_t len;         /* of all in path; 0: none */
	char path[HR_TEMPFILES_PATH]; /* one behind the other, each with its NUL */
};

/* Where this process writes down; s stays the caller's. NULL, as at first: nowhere. */
void hr_tempfiles_use(struct hr_tempfiles *s);
/* Before `name` comes to be in the directory dir; those that were noted before stay. A path for
 * which there is no room is not written down. */
void hr_tempfiles_note(int dir, const char *name);
/* All of them have their final names, or are gone. */
void hr_tempfiles_forget(void);

/* Removes what a process that has ended left; what is no file of that kind stays. s is empty then.
 */
void hr_tempfiles_remove(struct hr_tempfiles *s);

#endif
