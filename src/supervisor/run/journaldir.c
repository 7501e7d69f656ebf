/* Makes the directory of the journal, which outlives the run directory where the server has a state
 * directory. */
#include "config.h"

#include "supervisor/run/journaldir.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text/text.h"
#include "supervisor/run/context.h"

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

/* Returns true if the state directory has become unusable in a way that commands of the server's
 * own account have: a link or a file is in its place, or they closed their own directory. A disk
 * that is full or broken is another thing, and who requires the journal gets no other. */
static bool
is_spoilt(const struct hr_context *ctx, const struct hr_err *why)
{
	struct stat st;

	if (ctx->id.shell_uid != geteuid() || ctx->settings.journal_required)
		return false;
	if (why->sys == EACCES)
		return lstat(ctx->settings.state_dir, &st) == 0 && st.st_uid == geteuid();
	return why->code == HR_E_INVAL || why->sys == ENOENT || why->sys == ENOTDIR ||
	       why->sys == ELOOP || why->sys == EEXIST;
}

int
hr_journaldir_choose(struct hr_context *ctx, struct hr_err *err)
{
	HR_FREE char *own = hr_rundir_file(&ctx->run, "journal");
	char *path = NULL;
	struct hr_err why = {0};

	if (own == NULL)
		return hr_err_nomem(err);
	/* a journal that has moved stays until the next start */
	if (ctx->settings.state_dir[0] != '\0' &&
	    (ctx->journal == NULL || strcmp(ctx->journal, own) != 0)) {
		if (hr_text_setf(&path, err, "%s/journal/%lld", ctx->settings.state_dir,
			ctx->settings.port) < 0)
			return -1;
		if (hr_journaldir_make(path, &why) < 0) {
			free(path);
			if (!is_spoilt(ctx, &why))
				return hr_err_from(err, why.code, &why);
			hr_log(HR_LOG_WARNING,
			    "%s; the journal is in the run directory until the next start, and a "
			    "request that is repeated now may act twice",
			    why.msg);
			path = NULL;
		}
	}
	if (path == NULL) {
		path = own;
		own = NULL;
	}
	free(ctx->journal);
	ctx->journal = path;
	return 0;
}
