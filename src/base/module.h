/* hr_module: a shared object that is loaded while we run, once base/trust lets it pass. */
#ifndef HR_BASE_MODULE_H
#define HR_BASE_MODULE_H

#include <sys/types.h>

#include "base/err.h"

struct hr_module {
	void *object; /* dlopen's; NULL: none */
	int dir;      /* where it was found, open so that its name stays its own; -1 */
};

#define HR_MODULE_NONE                                                                             \
	{                                                                                          \
		.dir = -1                                                                          \
	}

/* also: an owner besides the user and root, as in base/trust. -1: *m is none. */
int hr_module_open(struct hr_module *m, const char *path, uid_t also, struct hr_err *err);
void hr_module_close(struct hr_module *m);

#endif
