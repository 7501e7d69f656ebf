/* hr_shellproc: one bash on one PTY: started as the right user, its terminal looked after, ended.
 */
#ifndef HR_SESSION_SHELLPROC_H
#define HR_SESSION_SHELLPROC_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#define HR_SHELL_COLS 1000
#define HR_SHELL_ROWS 1000

struct hr_confine;

struct hr_shell_user {
	char *name, *home;
	uid_t uid;
	gid_t gid;
	bool change;                      /* become this user; otherwise stay who we are */
	bool stays;                       /* its shells outlive whoever starts them */
	bool login;                       /* as `su` does: its home and shell are announced */
	const struct hr_confine *confine; /* borrowed; NULL: no limits */
};

/* Looks the name up. Not change: the caller's own identity under its own name and home. */
int hr_shell_user_find(struct hr_shell_user *u, const char *name, bool change, struct hr_err *err);
void hr_shell_user_done(struct hr_shell_user *u);

struct hr_shellproc {
	pid_t pid;  /* the shell: leader of its session; 0: none */
	int master; /* ours, non-blocking, close-on-exec; -1: none */
	int slave;  /* ours, to read and set the terminal's modes */
};

void hr_shellproc_init(struct hr_shellproc *s);

/* Between fork and exec: all signals as a program expects them. */
void hr_shellproc_reset_signals(void);

/* bash, interactive, with the given start-up file, in `dir` or the nearest directory above it that
 * the user can enter. NULL environment entries end the list; it is used as it is. *ret_dir: the
 * directory (the caller frees). */
int hr_shellproc_start(struct hr_shellproc *s, const char *bash, const char *rcfile,
    const struct hr_shell_user *user, char *const *envp, const char *dir, char **ret_dir,
    struct hr_err *err);

/* Puts back the modes that a person at a prompt needs (canonical input, echo, signals, output
 * processing), lets output flow, and drops input that nobody read. Special characters stay
 * the user's, unless text could not be typed with them, and so does the window size. */
void hr_shellproc_tidy(struct hr_shellproc *s);

/* Lets output flow that a program has stopped by tcflow(). What ^S stopped waits for ^Q. */
void hr_shellproc_flow(struct hr_shellproc *s);

/* Drops unread input; what was typed a moment ago is gone, too, and its echo there. */
void hr_shellproc_flush(struct hr_shellproc *s);

/* Lets control characters through to readline until it leaves the terminal again. */
void hr_shellproc_literal(struct hr_shellproc *s);

/* What programs are told of the terminal's size; those that run in the foreground get SIGWINCH. */
void hr_shellproc_resize(struct hr_shellproc *s, unsigned rows, unsigned columns);
void hr_shellproc_size(const struct hr_shellproc *s, unsigned *ret_rows, unsigned *ret_columns);

bool hr_shellproc_raw(const struct hr_shellproc *s);    /* canonical mode is off */
bool hr_shellproc_echoes(const struct hr_shellproc *s); /* not (echo off in canonical mode) */
bool hr_shellproc_shows(const struct hr_shellproc *s, int fd); /* the shell's fd is this terminal */
bool
hr_shellproc_foreground(const struct hr_shellproc *s, pid_t pid); /* pid's group has the terminal */

/* Stopped by a signal. */
bool hr_shellproc_stopped(const struct hr_shellproc *s);

/* Of a process that has ended and is not our child, by a handle of it: its exit code, or 128 +
 * signal. -1: nobody can know, as before Linux 6.15. */
int hr_shellproc_exit_code(int pidfd);

/* SIGKILL to every process of the session, which need not be a shell's. */
void hr_shellproc_kill(pid_t sid);

/* Hangs up: SIGHUP and SIGCONT to every process of the session, descriptors closed. With
 * kill_all SIGKILL follows for who has not ended half a second later. Does not reap the shell. */
void hr_shellproc_hangup(struct hr_shellproc *s, bool kill_all);

#endif
