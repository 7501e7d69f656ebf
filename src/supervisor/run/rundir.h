/* hr_rundir: the directory of a running server: sockets, nginx's files, the shell's pipes.
 *
 *   DIR           0711 root (0700 if this process is not root)
 *   DIR/lock      locked while the server runs: a second one on the same directory is refused
 *   DIR/keeper    identifies the keeper of the default session, for a successor
 *   DIR/fcgi/     the pools' sockets, each only for nginx's account (and root)
 *   DIR/session.sock   0600: workers only
 *   DIR/shell/NAME/    private pipes of one shell
 *   DIR/plugin/NAME.sock, NAME.http   sockets of a plugin: for workers, for nginx
 *   DIR/plugin/NAME/     the plugin's own state while it runs
 *   DIR/action/TYPE      link to the socket of the plugin that takes such actions
 *   DIR/nginx/    nginx's configuration and temporary files
 *   DIR/www/      files that nginx serves itself
 *   DIR/undo/     0700: the editor's history (files/history.h); the workers make it
 *   DIR/viewer-url  address of the file viewer, for the shell's account only
 *   DIR/v1/       0700: commands of V1 (worker/v1/command.h); the workers make it
 *   DIR/journal/  results of actions (proto/journal.h), unless there is a state directory
 *
 * A command in the sandbox runs as another user (if this process is root): it can neither list nor
 * write any of these. */
#ifndef HR_SUPERVISOR_RUN_RUNDIR_H
#define HR_SUPERVISOR_RUN_RUNDIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_handover;

struct hr_rundir {
	char *path;     /* absolute path */
	int lock;       /* -1: not open */
	bool made;      /* this server made the directory and removes it */
	bool inherited; /* left by a killed predecessor, or by the previous image */
	bool privileged;
	uid_t nginx_uid;
	struct hr_handover *handed; /* sockets of the previous image, borrowed; NULL: none */
};

struct hr_rundir_place {
	const char *wanted;                   /* the setting run_dir; "": choose a directory */
	const char *runstatedir;              /* parent of the default for root */
	const char *xdg_runtime_dir, *tmpdir; /* environment variables; NULL: not set */
	const char *before; /* directory of the previous image, if needed; NULL: none */
	long long port;
	bool privileged; /* this process is root */
};

/* Returns the directory's path without making it; the caller frees it. Returns NULL without memory,
 * or if the path would be a new one each time. */
char *hr_rundir_name(const struct hr_rundir_place *where, struct hr_err *err);

/* Makes the directory if necessary, and takes its lock. Fails with HR_E_BUSY if a running server
 * has it (the message names the process). */
int hr_rundir_open(struct hr_rundir *r, const struct hr_rundir_place *where, struct hr_err *err);

/* Removes a killed predecessor's leftovers, then makes the parts. With keep_session its session
 * socket and the shell's pipes stay. The pools' sockets stay until they are replaced, and so does
 * everything that the previous image's nginx and workers may still need. */
int hr_rundir_prepare(struct hr_rundir *r, uid_t nginx_uid, bool keep_session, struct hr_err *err);

/* Makes missing parts of the directory, and its lock, while the server runs. */
int hr_rundir_restore(struct hr_rundir *r, struct hr_err *err);

/* Fails if that account cannot enter a directory on the path to DIR, and names both: `role` is the
 * program that runs as `name`. Only root has other accounts. DIR exists and has its mode. */
int hr_rundir_check(
    const struct hr_rundir *r, uid_t uid, const char *name, const char *role, struct hr_err *err);

/* Returns "DIR/" and the formatted name, which the caller frees; NULL without memory. */
char *hr_rundir_file(const struct hr_rundir *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Removes such a file, if it exists. On failure the file is removed with the directory. */
void hr_rundir_remove(const struct hr_rundir *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns a listening Unix socket at DIR/name, or at an absolute path, mode 0600, owned by uid,
 * close-on-exec, or -1 with *err set. It is the handed one, or a new one that replaces an existing
 * file atomically. */
int hr_rundir_listen(const struct hr_rundir *r, const char *name, uid_t uid, struct hr_err *err);
/* Returns the handed socket, or -1. */
int hr_rundir_inherit(const struct hr_rundir *r, const char *name);

/* Makes the directory of a shell's pipes, DIR/shell/NAME, given as the whole path. The server owns
 * it: the keeper may be root and lets the shell's user only pass through (session/statedir.h). */
int hr_rundir_shell(const struct hr_rundir *r, const char *path, struct hr_err *err);

/* Removes all that was made, and releases the lock. Permitted without a successful open. */
void hr_rundir_close(struct hr_rundir *r);

#endif
