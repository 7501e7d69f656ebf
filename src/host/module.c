/* Where the modules are. */
#include "config.h"

#include "host/module.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/error.h"

const char *
hr_module_dir(void)
{
	const char *dir = getenv("HANDRAIL_LIBEXECDIR");

	return dir != NULL && *dir != '\0' ? dir : HR_LIBEXECDIR;
}

char *
hr_module_path(const char *file, struct hr_error *err)
{
	char *path = NULL;

	/* always with a slash: a bare name would be looked for elsewhere */
	if (asprintf(&path, "%s/%s", hr_module_dir(), file) < 0) {
		(void)hr_error_nomem(err);
		return NULL;
	}
	return path;
}
