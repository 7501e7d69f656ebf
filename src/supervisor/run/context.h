/* hr_context: holds the state that every part of a handraild uses from its start on: settings,
 * directories, accounts, the scoreboard, the children's inheritance; and the callbacks by which a
 * part reports events. It depends on no part. */
#ifndef HR_SUPERVISOR_RUN_CONTEXT_H
#define HR_SUPERVISOR_RUN_CONTEXT_H

#include <stdbool.h>
#include <sys/resource.h>

#include "proto/scoreboard.h"
#include "supervisor/run/cgroup.h"
#include "base/process/handover.h"
#include "base/strv.h"
#include "supervisor/run/identity.h"
#include "supervisor/run/rundir.h"
#include "supervisor/settings/settings.h"

struct hr_children;
struct hr_loop;

struct hr_context {
	struct hr_settings settings;
	struct hr_loop *loop;
	struct hr_children *kids;
	struct hr_rundir run;
	struct hr_identity id;
	struct hr_cgroup cgroup; /* control groups of the shells */
	struct hr_scoreboard *board;
	int board_fd;
	char *journal; /* path of the journal's directory */
	const char *libexecdir, *datadir;
	char *www; /* directory of the page; NULL: no page */
	/* environment of commands: the server's, less its own variables */
	struct hr_strv child_env;
	struct rlimit nofile_given; /* limit as at the start; this process raises it */
	int umask_given;
	struct hr_handover handed; /* handed over by the previous image */
	bool relieves;             /* the previous image's workers serve until the new ones do */
	bool ending;               /* the server is ending, and starts nothing new */

	/* Called when something has happened that others may wait for, from anywhere in the
	 * loop. */
	void (*changed)(struct hr_context *ctx);
	/* Gives up while the server starts; later it has no effect. */
	void (*start_failed)(struct hr_context *ctx, const char *why);
};

#endif
