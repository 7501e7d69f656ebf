/* hr_scrap: the name of a file that must not outlive a process that dies before it could rename or
 * remove it. It is written down in memory that another process shares, which removes the file. */
#ifndef HR_BASE_SCRAP_H
#define HR_BASE_SCRAP_H

#include <stdatomic.h>
#include <stdint.h>

#define HR_SCRAP_PATH 4092
#define HR_SCRAP_PREFIX ".handrail-" /* of the names of all such files */

/* One page. One writer at a time: the process that makes files, then, after its end, the other. */
struct hr_scrap {
	_Atomic uint32_t len; /* of path; 0: none */
	char path[HR_SCRAP_PATH];
};

/* Where this process writes down; s stays the caller's. NULL, as at first: nowhere. */
void hr_scrap_use(struct hr_scrap *s);
/* Before `name` comes to be in the directory dir. A path that is too long is not written down. */
void hr_scrap_note(int dir, const char *name);
/* It has its final name, or is gone. */
void hr_scrap_forget(void);

/* Removes what a process that has ended left; what is no file of that kind stays. */
void hr_scrap_remove(struct hr_scrap *s);

#endif
