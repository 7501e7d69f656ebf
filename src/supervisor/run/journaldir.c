/* Makes the directory of the journal, which outlives the run directory where the server has a state
 * directory. */
#include "config.h"

#include "supervisor/run/journaldir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text/text.h"
#include "supervisor/run/rundir.h"

char *
hr_journaldir_path(const struct hr_rundir *r, const char *state_dir, long long port)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "journal/%lld", port);
	return state_dir[0] != '\0' ? hr_path_join(state_dir, name) : hr_rundir_file(r, "journal");
}

static int
make_journal(const char *path, struct hr_err *err)
{
	struct stat st;

	if (hr_path_mkdirs_own(path, 0700, NULL, err) < 0)
		return -1;
	if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return hr_err_set(err, HR_E_INVAL, "%s must be a directory of this account", path);
	if (chmod(path, 0700) != 0)
		return hr_err_sys(err, errno, "%s: mode", path);
	return 0;
}

/* Replaces what programs of a box have made of the journal: without its answers a repeated action
 * may run again, without its directory the box would never start again. */
int
hr_journaldir_make(const char *path, struct hr_err *err)
{
	const char *slash = strrchr(path, '/');
	HR_FREE char *above = slash != NULL ? strndup(path, (size_t)(slash - path)) : NULL;
	const char *const bad[] = {path, above};
	struct hr_err why = {0};
	size_t i;

	if (make_journal(path, err) == 0)
		return 0;
	for (i = 0; i < 2; i++) {
		HR_FREE char *lost = NULL;

		if (bad[i] == NULL || hr_text_setf(&lost, NULL, "%s.lost", bad[i]) < 0 ||
		    hr_path_remove(lost, NULL) < 0 || rename(bad[i], lost) != 0 ||
		    make_journal(path, &why) < 0)
			continue;
		hr_log(HR_LOG_WARNING,
		    "%s; it was moved to %s, and a request that is repeated now may act twice",
		    err->msg, lost);
		return 0;
	}
	return -1;
}
