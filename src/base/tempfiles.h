/* hr_tempfiles: names of files that must not outlive a process that dies before it renames or
 * removes them. The process records them in memory shared with another process, which removes the
 * files. */
#ifndef HR_BASE_TEMPFILES_H
#define HR_BASE_TEMPFILES_H

#include <stdatomic.h>
#include <stdint.h>

#define HR_TEMPFILES_PATH 4092
#define HR_TEMPFILE_PREFIX ".handrail-" /* prefix of all such files */

/* One page of shared memory with one writer at a time: the process that makes files and, after its
 * end, the other process. */
struct hr_tempfiles {
	_Atomic uint32_t len;         /* bytes used in path; 0: none */
	char path[HR_TEMPFILES_PATH]; /* names one after another, each with its NUL */
};

/* Sets where this process records names; s stays the caller's. NULL (the default): nowhere. */
void hr_tempfiles_use(struct hr_tempfiles *s);
/* Records `name` before the file is created in dir; earlier records stay. A path that does not fit
 * is not recorded. */
void hr_tempfiles_note(int dir, const char *name);
/* Forgets all names: the files have their final names, or are gone. */
void hr_tempfiles_forget(void);

/* Removes the files that an ended process left and empties s; names without the prefix are
 * skipped. */
void hr_tempfiles_remove(struct hr_tempfiles *s);

#endif
