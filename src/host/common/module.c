/* Finds the modules' directory. */
#include "config.h"

#include "host/common/module.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/trust.h"
#include "base/err.h"

const char *
hr_module_dir(void)
{
	const char *dir = getenv("HANDRAIL_LIBEXECDIR");

	return dir != NULL && *dir != '\0' ? dir : HR_LIBEXECDIR;
}

char *
hr_module_path(const char *file, struct hr_err *err)
{
	char *path = NULL;

	/* the path always has a slash: dlopen() searches elsewhere for a bare name */
	if (asprintf(&path, "%s/%s", hr_module_dir(), file) < 0)
		return hr_err_null(err);
	return path;
}

int
hr_module_open_own(struct hr_module *m, const char *file, struct hr_err *err)
{
	HR_FREE char *path = hr_module_path(file, err);
	struct hr_err e = {0};
	int r;

	*m = (struct hr_module)HR_MODULE_NONE;
	if (path == NULL)
		return -1;
	r = hr_module_open(m, path, hr_trust_program_owner(), &e);
	return r == 0 ? 0 : hr_err_from(err, HR_E_INVAL, &e);
}
