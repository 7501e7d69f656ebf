/* hr_module: loads a shared object at run time after base/trust has accepted it. */
#ifndef HR_BASE_MODULE_H
#define HR_BASE_MODULE_H

#include <sys/types.h>

#include "base/err.h"

struct hr_module {
	void *object; /* handle of dlopen; NULL: none */
	int dir;    /* directory of the file, kept open so that the object's name stays unique; -1:
		       none */
	void *made; /* data of the holder, freed with the module; NULL: none */
};

#define HR_MODULE_NONE                                                                             \
	{                                                                                          \
		.dir = -1                                                                          \
	}

/* Loads the object. `also`: an owner accepted besides the user and root, as in base/trust. Returns
 * 0, or -1 with *err set and *m empty. */
int hr_module_open(struct hr_module *m, const char *path, uid_t also, struct hr_err *err);
void hr_module_close(struct hr_module *m);
/* Returns the exported symbol, or NULL with *err set. */
void *hr_module_symbol(const struct hr_module *m, const char *name, struct hr_err *err);

/* Loads a module of handrail, which lies beside the programs and is loaded by the first request
 * that needs it, so that its libraries are not in every process. Returns the one exported struct,
 * `name` in directory/file, whose first member is `unsigned version`; or NULL if the module cannot
 * be loaded or has another version. The module stays loaded until the process ends; loading it
 * again only counts. */
const void *hr_module_load(const char *directory, const char *file, const char *symbol,
    unsigned version, struct hr_err *err);

#endif
