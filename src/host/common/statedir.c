/* Creates the state directory, and checks that it can be trusted. */
#include "config.h"

#include "host/common/statedir.h"

#include <errno.h>

#include "base/path.h"
#include "base/trust.h"

int
hr_state_directory(const char *dir, bool make, struct hr_err *err)
{
	struct hr_err e = {0};

	if ((!make || hr_path_mkdirs_own(dir, 0700, NULL, &e) == 0) &&
	    hr_trust_directory(dir, &e) == 0)
		return 0;
	if (!make && e.sys == ENOENT)
		return 0;
	return hr_err_from(err, HR_E_SYS, &e);
}
