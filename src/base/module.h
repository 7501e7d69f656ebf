/* hr_module: a shared object that is loaded while we run, once base/trust lets it pass. */
#ifndef HR_BASE_MODULE_H
#define HR_BASE_MODULE_H

#include <sys/types.h>

#include "base/err.h"

struct hr_module {
	void *object; /* dlopen's; NULL: none */
	int dir;      /* where it was found, open so that its name stays its own; -1 */
	void *made;   /* what it has made for its holder, and is freed with it; NULL: nothing */
};

#define HR_MODULE_NONE                                                                             \
	{                                                                                          \
		.dir = -1                                                                          \
	}

/* also: an owner besides the user and root, as in base/trust. -1: *m is none. */
int hr_module_open(struct hr_module *m, const char *path, uid_t also, struct hr_err *err);
void hr_module_close(struct hr_module *m);
/* What it exports by that name. NULL with *err: nothing. */
void *hr_module_symbol(const struct hr_module *m, const char *name, struct hr_err *err);

/* One of ours, which lies beside the programs and is loaded by the first request that needs it: the
 * libraries behind it would be in every process otherwise. It exports one struct, whose first
 * member is `unsigned version`: the one named symbol in directory/file. NULL: it cannot be loaded,
 * or is of another version. What was loaded stays until the process ends; once more only counts. */
const void *hr_module_load(const char *directory, const char *file, const char *symbol,
    unsigned version, struct hr_err *err);

#endif
