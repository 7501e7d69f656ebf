/* hr_server: runs a whole handraild, and connects its parts. The parts know the context
 * (run/context.h) and each other's headers, not this one. */
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

/* the exit statuses; the first three are the original's */
enum hr_exit_status {
	HR_EXIT_REFUSED = 1, /* a port or run directory is in use, or a plugin is unknown */
	HR_EXIT_USAGE = 2,   /* the command line or the configuration file is wrong */
	HR_EXIT_START = 3,   /* anything else failed before the server was ready */
};

/* The stage only increases; only stage_set() in lifecycle.c changes it. */
enum hr_server_stage {
	HR_SERVER_STARTING,
	HR_SERVER_RUNNING,
	HR_SERVER_ENDING_EDGE,     /* no new requests are taken; current ones are answered */
	HR_SERVER_ENDING_WORKERS,  /* each worker ends after its current request */
	HR_SERVER_ENDING_SESSIONS, /* the shells end */
	HR_SERVER_ENDING_STRAYS,   /* processes that the shells left running end */
	HR_SERVER_ENDED,
};

struct hr_reexec {
	char program[PATH_MAX];
	char **argv; /* the arguments as given; the strings are borrowed */
	struct hr_watch *turn;
	unsigned turns; /* iterations left until execve(); meanwhile no signal is handled */
	sigset_t mask;  /* signal mask, restored if the upgrade fails */
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

	struct hr_options options; /* as given, kept for a reload; borrowed from argv */
	const char *config_file;   /* NULL: there is none */
	struct hr_reexec reexec;
	int log_fd; /* descriptor of log_file; -1: stderr */
	struct hr_loglines log_lines;

	enum hr_server_stage stage;
	bool advancing, again; /* see server_changed() in lifecycle.c */
	unsigned urgency;      /* 0: completes all requests; 1: ends at once; 2: kills */
	bool strays_killed;
	bool upgrade;      /* an upgrade is requested, and done once hr_reexec_may() permits */
	char failure[256]; /* why the start failed; "": it has not failed */
	int exit_status;   /* 0: end by the signal, if there was one */
	int exit_signal;
	struct hr_watch *signals[8];
	struct hr_watch *patience; /* timer that limits the present stage */
};

void hr_server_init(struct hr_server *s); /* Initialises s. */

/* Loads and checks the settings, and opens the log (start.c). Returns 0, or -1 with *err and
 * *ret_status, the exit status, set. */
int hr_server_settings(struct hr_server *s, int *ret_status, struct hr_err *err);
/* Logs why the server did not start, prefix and reason. If the log is a file, writes the line to
 * standard error as well, where the person who started the server looks first (start.c). */
void hr_server_log_failure(const struct hr_server *s, const char *prefix, const char *reason);
/* Logs the error in this way. Returns the exit status. */
int hr_server_fail(const struct hr_server *s, int status, const struct hr_err *err);
/* Runs a mode of handraild, as the next two do (start.c). Returns the exit status. */
int hr_server_serve(struct hr_server *s);
int hr_server_check(struct hr_server *s);
int hr_server_print_nginx(struct hr_server *s);
void hr_server_release(struct hr_server *s); /* Removes and frees everything that was made. */

/* Starts everything, serves, and ends everything (lifecycle.c). Returns 0 if the server ended on
 * request. Removes everything that was made in any case; see s->exit_status. */
int hr_server_run(struct hr_server *s, struct hr_err *err);
/* Stops the server in an orderly way at the first call; each further call speeds that up. Keeps the
 * first `signo`. */
void hr_server_stop(struct hr_server *s, int signo);

/* Handles SIGHUP or SIGUSR1 (reload.c). */
void hr_server_reload(struct hr_server *s);
void hr_server_reopen_logs(struct hr_server *s);
/* Starts to watch the resources by the present settings, or applies new ones. */
void hr_server_monitor(struct hr_server *s);
/* Loads settings from all sources; *ret_status (may be NULL) is the exit status for an error. */
int hr_server_load(struct hr_settings *c, const struct hr_options *o, const char *config_file,
    int *ret_status, struct hr_err *err);
/* Sets format, level and file of the log. */
int hr_server_open_log(struct hr_server *s, struct hr_err *err);
/* Checks the access log, which nginx opens by name, with this process's rights and through every
 * link: refuses a place whose path another account can change, and anything but a file. */
int hr_server_check_access_log(const struct hr_settings *c, struct hr_err *err);

/* Ends a failed start with the exit status `status`. Has no effect after HR_SERVER_STARTING. */
void hr_server_start_failed(struct hr_server *s, int status, const char *why);

/* Handles a message of w, for hr_pools (requests.c). Returns false if it is not permitted. */
bool hr_server_request(void *server, struct hr_pool_worker *w, const char *packet, size_t len);

/* reexec.c: an upgrade in place: the same process executes a new image of the program.
 *
 * Everything that must survive is handed over by descriptor (hr_handover): every listening socket,
 * so that no connection is refused; the scoreboard with the workers, which serve until there are
 * new ones; and keys from the environment. The shell is adopted as after a predecessor's death.
 * nginx serves until its successor is about to start. */
/* Saves the command line (a copy, as parsing changes argv), takes the handed descriptors, and
 * closes every other one above 2. main() must call it first. */
int hr_reexec_begin(struct hr_server *s, char *const *argv, struct hr_err *err);

/* Gets the previous image's run directory. Returns false if there was none. */
bool hr_reexec_directory(struct hr_server *s, char *path, size_t size);

/* Returns true if an upgrade may start after SIGUSR2: no nginx or shell is starting, and no
 * alert_command or worker waits for this process. */
bool hr_reexec_may(const struct hr_server *s);
/* Schedules the upgrade: first asks the new image whether it accepts the settings; if not, logs
 * that and continues unchanged. Pending signals are handled before; later ones reach the next
 * image. */
void hr_reexec_soon(struct hr_server *s);

void hr_reexec_done(struct hr_reexec *r);

#endif
