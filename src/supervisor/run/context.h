/* hr_context: what one handraild has from its start on and each of its parts uses: settings,
 * directories, accounts, the scoreboard, what children inherit; and how a part tells the whole that
 * something has happened. It knows none of them. */
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
	struct hr_cgroup cgroup; /* of the shells */
	struct hr_scoreboard *board;
	int board_fd;
	char *journal; /* its directory */
	const char *libexecdir, *datadir;
	char *www;                  /* directory of the page; NULL: there is none */
	struct hr_strv child_env;   /* what commands see: ours without what is ours alone */
	struct rlimit nofile_given; /* as we were started; ours is raised */
	int umask_given;
	struct hr_handover handed; /* by the image before us */
	bool relieves;             /* that one serves until we do */
	bool ending;               /* nothing more is begun */

	/* Something that others may wait for has happened. May be called from anywhere in the
	 * loop. */
	void (*changed)(struct hr_context *ctx);
	/* While the server starts: gives up. Later: nothing. */
	void (*start_failed)(struct hr_context *ctx, const char *why);
};

#endif
