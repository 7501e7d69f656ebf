/* Holds the table of engines. */
#include "config.h"

#include "fleet/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/trust.h"

static const struct hr_fleet_backing *const backings[] = {
    &hr_fleet_local,
#ifdef HAVE_KUBERNETES
    &hr_fleet_kubernetes,
#endif
};

int
hr_fleet_directory(const char *dir, struct hr_err *err)
{
	struct hr_err e = {0};
	struct stat st;

	if (hr_path_mkdirs_own(dir, 0700, NULL, &e) != 0)
		return e.sys == EACCES ? hr_err_set(err, e.code,
					     "%s; choose a directory of yours with --state-dir, "
					     "or after \"handrail fleet init\"",
					     e.msg)
				       : hr_err_pass(err, &e);
	if (hr_trust_directory(dir, err) != 0)
		return -1;
	/* another program made it, or its owner opened it to others */
	if (stat(dir, &st) != 0 ||
	    ((st.st_mode & 077) != 0 && st.st_uid == geteuid() && chmod(dir, 0700) != 0))
		return hr_err_sys(err, errno, "%s", dir);
	return 0;
}

const struct hr_fleet_backing *
hr_fleet_backing(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(backings) / sizeof(*backings); i++)
		if (strcmp(backings[i]->name, name) == 0)
			return backings[i];
	return NULL;
}
