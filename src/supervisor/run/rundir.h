/* hr_rundir: the directory of one running server: sockets, nginx's files, the shell's pipes.
 *
 *   DIR           0711 root (0700 when we are not root)
 *   DIR/lock      held while we live: a second server on the same directory is refused
 *   DIR/keeper    who the keeper of the default session is, for a successor
 *   DIR/fcgi/     the pools' sockets, each only for nginx's account (and root)
 *   DIR/session.sock   0600: workers only
 *   DIR/shell/NAME/    private pipes of one shell
 *   DIR/plugin/NAME.sock, NAME.http   sockets of a plugin: for workers, for nginx
 *   DIR/plugin/NAME/     what it keeps while it runs, its own
 *   DIR/action/TYPE      leads to the socket of the plugin that takes such actions
 *   DIR/nginx/    nginx's configuration and temporary files
 *   DIR/www/      what nginx serves by itself
 *   DIR/undo/     0700: the editor's history (files/history.h); the workers make it
 *   DIR/viewer-url  where the file viewer is, for the shell's account alone
 *   DIR/journal/  what actions were done (proto/journal.h), unless there is a state directory
 *
 * A command in the sandbox runs as another user than we do (when we are root): it can list and
 * write none of these. */
#ifndef HR_SUPERVISOR_RUN_RUNDIR_H
#define HR_SUPERVISOR_RUN_RUNDIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_handover;

struct hr_rundir {
	char *path;     /* absolute */
	int lock;       /* -1: not open */
	bool made;      /* the directory itself is ours to remove */
	bool inherited; /* a predecessor was killed and left it, or is our own earlier image */
	bool privileged;
	uid_t nginx_uid;
	struct hr_handover *handed; /* sockets of the image before us, borrowed; NULL: none */
};

struct hr_rundir_place {
	const char *wanted;                   /* run_dir of the configuration, "" = choose */
	const char *runstatedir;              /* where root's default lies */
	const char *xdg_runtime_dir, *tmpdir; /* of the environment; NULL: not set */
	const char *before; /* of our earlier image, where it would be a new one; NULL: none */
	long long port;
	bool privileged; /* we are root */
};

/* The name of the directory without making it; the caller frees. NULL: no memory, or it would be a
 * new one each time. */
char *hr_rundir_name(const struct hr_rundir_place *where, struct hr_err *err);

/* Makes the directory if needed and takes its lock. HR_E_BUSY: a living server has it (the message
 * names its process). */
int hr_rundir_open(struct hr_rundir *r, const struct hr_rundir_place *where, struct hr_err *err);

/* Removes what a killed predecessor left, then makes the parts. With keep_session its session
 * socket and the shell's pipes stay. The pools' sockets stay until there are others, and all that
 * nginx and the workers of the image before us may still look for. */
int hr_rundir_prepare(struct hr_rundir *r, uid_t nginx_uid, bool keep_session, struct hr_err *err);

/* Makes what is missing of the directory, its lock and its parts while the server runs. */
int hr_rundir_restore(struct hr_rundir *r, struct hr_err *err);

/* Fails if that account cannot enter a directory on the way to DIR, and names both: `role` is the
 * program that runs as `name`. Only root has other accounts. DIR exists and has its mode. */
int hr_rundir_check(
    const struct hr_rundir *r, uid_t uid, const char *name, const char *role, struct hr_err *err);

/* "DIR/" and the name that fmt makes; the caller frees. NULL: no memory. */
char *hr_rundir_file(const struct hr_rundir *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Removes that, if it is there. What cannot be goes with the directory. */
void hr_rundir_remove(const struct hr_rundir *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A listening Unix socket at DIR/name, mode 0600, owned by uid; close-on-exec. -1 with *err. The
 * one that was handed over, or a new one in the place of whatever is there: at no moment is there
 * none.
 */
int hr_rundir_listen(const struct hr_rundir *r, const char *name, uid_t uid, struct hr_err *err);
/* The one that was handed over if it is there; else -1. */
int hr_rundir_inherit(const struct hr_rundir *r, const char *name);

/* Makes the directory of one shell's pipes, DIR/shell/NAME, given as the whole path. It is ours:
 * the keeper may be root and lets the shell's user only pass (session/statedir.h). */
int hr_rundir_shell(const struct hr_rundir *r, const char *path, struct hr_err *err);

/* The name of the journal's directory: below the state directory, for the server at `port`, or,
 * without one (""), DIR/journal. The caller frees; NULL: no memory. */
char *hr_rundir_journal(const struct hr_rundir *r, const char *state_dir, long long port);
/* Makes it, reached by nobody but us. */
int hr_rundir_make_journal(const char *path, struct hr_err *err);

/* Removes everything that was made and gives the lock up. Also after a failed or no open. */
void hr_rundir_close(struct hr_rundir *r);

#endif
