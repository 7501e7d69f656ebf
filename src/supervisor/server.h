/* hr_server: all that one handraild is. The parts know each other only through this. */
#ifndef HR_SUPERVISOR_SERVER_H
#define HR_SUPERVISOR_SERVER_H

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/resource.h>

#include "base/err.h"
#include "proto/scoreboard.h"
#include "supervisor/resources/alert.h"
#include "supervisor/resources/cgroup.h"
#include "supervisor/children/child.h"
#include "supervisor/run/identity.h"
#include "supervisor/run/keys.h"
#include "supervisor/edge/listen.h"
#include "supervisor/resources/monitor.h"
#include "supervisor/edge/nginx.h"
#include "supervisor/run/notify.h"
#include "supervisor/settings/options.h"
#include "supervisor/children/plugins.h"
#include "supervisor/children/pool.h"
#include "supervisor/reexec.h"
#include "supervisor/run/rundir.h"
#include "supervisor/children/session.h"
#include "supervisor/children/sessions.h"
#include "supervisor/settings/settings.h"
#include "supervisor/children/static_sessions.h"
#include "supervisor/edge/viewer.h"

/* Exit statuses; the first three are the original's. */
enum hr_exit_status {
	HR_EXIT_REFUSED = 1, /* port in use, unknown plugin, run directory in use */
	HR_EXIT_USAGE = 2,   /* command line or configuration file */
	HR_EXIT_START = 3,   /* anything else before the server was ready */
};

/* Only ever forward; moved by stage_set() in lifecycle.c alone. */
enum hr_server_stage {
	HR_SERVER_STARTING,
	HR_SERVER_RUNNING,
	HR_SERVER_ENDING_EDGE,     /* no new requests; those under way are answered */
	HR_SERVER_ENDING_WORKERS,  /* each after the request in hand */
	HR_SERVER_ENDING_SESSIONS, /* the shells */
	HR_SERVER_ENDING_STRAYS,   /* whatever they left running */
	HR_SERVER_ENDED,
};

#define HR_SERVER_POOLS 5 /* control, files, action, live, page: also their index on the board */

struct hr_server {
	struct hr_settings settings;
	struct hr_loop *loop;
	struct hr_children kids;
	struct hr_rundir run;
	struct hr_identity id;
	struct hr_keys keys;
	struct hr_cgroup cgroup; /* of the shells */
	struct hr_alerts alerts;
	struct hr_monitor monitor;
	struct hr_notify notify;
	struct hr_listen listen;
	int listener; /* TCP; -1: none (any more) */
	struct hr_viewer viewer;
	struct hr_scoreboard *board;
	int board_fd;
	int worker_image; /* see worker_image() in workerproc.c; -1: not made */
	bool plain_image; /* it cannot be made */
	char *journal;    /* its directory */
	bool slot_used[HR_SCOREBOARD_SLOTS];
	const char *libexecdir, *datadir;
	char *www;                  /* directory of the page; NULL: there is none */
	char **child_env;           /* what commands see: ours without what is ours alone */
	struct rlimit nofile_given; /* as we were started; ours is raised */
	int umask_given;

	struct hr_pool pools[HR_SERVER_POOLS];
	struct hr_session session;
	struct hr_sessions sessions;
	struct hr_static_sessions static_sessions;
	struct hr_nginx nginx;
	struct hr_plugins plugins;

	struct hr_options options; /* as given, for a reload; borrows from argv */
	const char *config_file;   /* NULL: none */
	struct hr_reexec reexec;
	int log_fd; /* of log_file; -1: stderr */

	enum hr_server_stage stage;
	bool advancing, again; /* see hr_server_changed() */
	unsigned urgency;      /* 0: every request is answered; 1: at once; 2: kill */
	bool strays_killed;
	bool relieves;   /* the image before us serves until we do */
	bool upgrade;    /* as soon as hr_reexec_may() */
	int exit_status; /* with which to end; 0: by the signal, if there was one */
	int exit_signal;
	struct hr_watch *signals[8];
	bool staged;               /* worker in a pool, until there is time for more */
	struct hr_watch *patience; /* how long the present stage may take */
};

void hr_server_init(struct hr_server *s);

/* start.c: what handraild does with its options, each returns the exit status. */
int hr_server_settings(struct hr_server *s, int *ret_status, struct hr_err *err); /* comes first */
int hr_server_serve(struct hr_server *s);
int hr_server_check(struct hr_server *s);
int hr_server_print_nginx(struct hr_server *s);
void hr_server_release(struct hr_server *s); /* removes and frees whatever was made */

/* lifecycle.c: starts everything, serves, ends everything. 0: ended as asked. What was made is
 * removed in any case; s->exit_status says the rest. */
int hr_server_run(struct hr_server *s, struct hr_err *err);
/* The first call ends in order, each further one presses: `signo` is remembered from the first. */
void hr_server_stop(struct hr_server *s, int signo);

/* reload.c: at SIGHUP and SIGUSR1. */
void hr_server_reload(struct hr_server *s);
void hr_server_reopen_logs(struct hr_server *s);
/* Begins to watch the resources by the settings in force, or goes on by new ones. */
void hr_server_monitor(struct hr_server *s);
/* Fills settings from all sources; *ret_status (may be NULL): the exit status for an error. */
int hr_server_load(struct hr_settings *c, const struct hr_options *o, const char *config_file,
    int *ret_status, struct hr_err *err);
/* Format, level and file of the log. */
int hr_server_open_log(struct hr_server *s, struct hr_err *err);

/* Something that a stage may wait for has happened. May be called from anywhere in the loop. */
void hr_server_changed(struct hr_server *s);
/* Before HR_SERVER_RUNNING: gives up with the status. Later: nothing. */
void hr_server_start_failed(struct hr_server *s, int status, const char *why);

/* A place on the scoreboard, or -1 if all are taken. */
int hr_server_take_slot(struct hr_server *s);
void hr_server_give_slot(struct hr_server *s, int slot);

#endif
