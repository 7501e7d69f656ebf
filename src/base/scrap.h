/* hr_scrap: the names of files that must not outlive a process that dies before it could rename or
 * remove them. They are written down in memory that another process shares, which removes the
 * files. */
#ifndef HR_BASE_SCRAP_H
#define HR_BASE_SCRAP_H

#include <stdatomic.h>
#include <stdint.h>

#define HR_SCRAP_PATH 4092
#define HR_SCRAP_PREFIX ".handrail-" /* of the names of all such files */

/* One page. One writer at a time: the process that makes files, then, after its end, the other. */
struct hr_scrap {
	_Atomic uint32_t len;     /* of all in path; 0: none */
	char path[HR_SCRAP_PATH]; /* one behind the other, each with its NUL */
};

/* Where this process writes down; s stays the caller's. NULL, as at first: nowhere. */
void hr_scrap_use(struct hr_scrap *s);
/* Before `name` comes to be in the directory dir; those that were noted before stay. A path for
 * which there is no room is not written down. */
void hr_scrap_note(int dir, const char *name);
/* All of them have their final names, or are gone. */
void hr_scrap_forget(void);

/* Removes what a process that has ended left; what is no file of that kind stays. s is empty then.
 */
void hr_scrap_remove(struct hr_scrap *s);

#endif
