/* hr_server: all that one handraild is, and how its parts hang together. They know the context
 * (run/context.h) and each other's headers, not this. */
#ifndef HR_SUPERVISOR_SERVER_H
#define HR_SUPERVISOR_SERVER_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/loglines.h"
#include "supervisor/children/child.h"
#include "supervisor/children/plugins.h"
#include "supervisor/children/pool.h"
#include "supervisor/children/session.h"
#include "supervisor/children/sessions.h"
#include "supervisor/children/static_sessions.h"
#include "supervisor/edge/nginx.h"
#include "supervisor/edge/nginxconf.h"
#include "supervisor/resources/alert.h"
#include "supervisor/resources/monitor.h"
#include "supervisor/run/context.h"
#include "supervisor/run/guard.h"
#include "base/process/notify.h"
#include "supervisor/settings/options.h"

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

struct hr_reexec {
	char program[PATH_MAX];
	char **argv; /* as given; the words are borrowed */
	struct hr_watch *turn;
	unsigned turns; /* of the loop, until we go; meanwhile no signal is caught */
	sigset_t mask;  /* for after that, if we stay */
};

struct hr_server {
	struct hr_context ctx;
	struct hr_children kids;
	struct hr_alerts alerts;
	struct hr_monitor monitor;
	struct hr_notify notify;
	struct hr_guard guard;

	struct hr_pools pools;
	struct hr_session session;
	struct hr_sessions sessions;
	struct hr_static_sessions static_sessions;
	struct hr_plugins plugins;
	struct hr_site site;
	struct hr_nginx nginx;

	struct hr_options options; /* as given, for a reload; borrows from argv */
	const char *config_file;   /* NULL: none */
	struct hr_reexec reexec;
	int log_fd; /* of log_file; -1: stderr */
	struct hr_loglines log_lines;

	enum hr_server_stage stage;
	bool advancing, again; /* see server_changed() in lifecycle.c */
	unsigned urgency;      /* 0: every request is answered; 1: at once; 2: kill */
	bool strays_killed;
	bool upgrade;      /* as soon as hr_reexec_may() */
	char failure[256]; /* why the start failed; "": it did not */
	int exit_status;   /* with which to end; 0: by the signal, if there was one */
	int exit_signal;
	struct hr_watch *signals[8];
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
/* nginx opens its log by name, with this process's rights and along every link: refuses a place
 * where another account may choose where the name leads, and what is no file. */
int hr_server_check_access_log(const struct hr_settings *c, struct hr_err *err);

/* Before HR_SERVER_RUNNING: gives up with the status. Later: nothing. */
void hr_server_start_failed(struct hr_server *s, int status, const char *why);

/* requests.c: a message of w; false: it may not send that. For hr_pools. */
bool hr_server_request(void *server, struct hr_pool_worker *w, const char *packet, size_t len);

/* reexec.c: an upgrade in place: the same process goes on as another image of the program.
 *
 * What must not be lost meanwhile is handed over by descriptor (hr_handover): every listening
 * socket, so that no connection is refused, the scoreboard with the workers, which go on to serve
 * until there are new ones, and keys that came by the environment. The shell is adopted as after
 * the death of a predecessor. nginx serves until its successor is about to start. */
/* First of all in main(): remembers how we were started (argv is copied, as parsing changes it),
 * takes what a predecessor handed over, and closes every other descriptor above 2. */
int hr_reexec_begin(struct hr_server *s, char *const *argv, struct hr_err *err);

/* The TCP socket that was handed over, if it is the one that the settings ask for; else -1. */
int hr_reexec_listener(struct hr_server *s);

/* The run directory of the image before us; false: there was none. */
bool hr_reexec_directory(struct hr_server *s, char *path, size_t size);

/* At SIGUSR2, when nothing is under way that another image could not go on with: nginx starts, a
 * shell starts, an alert_command or a worker waits for us. */
bool hr_reexec_may(const struct hr_server *s);
/* Then: asks the new image first whether it can use the settings, and stays as it is with a word in
 * the log if not. A signal that has come is acted on before, one that comes is the next image's. */
void hr_reexec_soon(struct hr_server *s);

void hr_reexec_done(struct hr_reexec *r);

#endif
