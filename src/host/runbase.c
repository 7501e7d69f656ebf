/* Chooses a directory for run directories. */
#include "config.h"

#include "host/runbase.h"

#include <unistd.h>

#include "base/way.h"
#include "host/config/settings.h"

#define RUN_BASE_MAX 62 /* bytes; longer paths do not fit the addresses of the sockets */

const char *
hr_run_base(const char *const *env)
{
	const char *tmp = hr_env_get(env, "TMPDIR");
	/* nginx's account cannot enter a checkout in /root */
	const char *roots[] = {HR_RUNSTATEDIR, "/run", tmp, "/tmp"};
	const char *users[] = {hr_env_get(env, "XDG_RUNTIME_DIR"), tmp, "/tmp"};

	return geteuid() == 0 ? hr_way_base(roots, 4, true, RUN_BASE_MAX)
			      : hr_way_base(users, 3, false, RUN_BASE_MAX);
}
