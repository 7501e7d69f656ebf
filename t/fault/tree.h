/* What a scenario finds in the directory of its run, and must find there afterwards. All of it runs
 * spared: no call of these fails. */
#ifndef HR_T_FAULT_TREE_H
#define HR_T_FAULT_TREE_H

#include <stddef.h>
#include <sys/types.h>

struct tree_file {
	const char *name; /* below fault_dir() */
	const char *old;  /* NULL: not there at first */
	const char *new;  /* NULL: `old` stays */
	mode_t mode;      /* of old; 0: 0644 */
	size_t len;       /* of each text that is there; 0: they end with a NUL */
};

/* Writes the old files, and their directories. */
void tree_make(const struct tree_file *files, size_t n);
/* Each file must be old or new, an old one of the same mode, and nothing else be there but
 * directories. Tells which ones are new: so much a success must have in common with others. */
void tree_check(const struct tree_file *files, size_t n);

/* fault_tell_bytes() with "DIR" for fault_dir(), whose name is another one each time. */
void tree_tell(const char *p, size_t len);

/* "fault_dir()/name"; static, overwritten by the fourth call from here. */
const char *tree_path(const char *name);

#endif
