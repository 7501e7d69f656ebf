/* hr_shellproc: runs one bash on one PTY: starts it as the right user, maintains its terminal, ends
 * it. */
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
	bool change;                      /* true: take the user's identity */
	bool stays;                       /* shells outlive this process */
	bool login;                       /* true: set home and shell, as `su` does */
	const struct hr_confine *confine; /* borrowed; NULL: no limits */
};

/* Looks the name up. Without `change` it returns the caller's own identity under its own name and
 * home. */
int hr_shell_user_find(struct hr_shell_user *u, const char *name, bool change, struct hr_err *err);
void hr_shell_user_done(struct hr_shell_user *u);

struct hr_shellproc {
	pid_t pid;  /* the shell, leader of its session; 0: there is none */
	int master; /* this process's end, non-blocking, close-on-exec; -1: not open */
	int slave;  /* this process's copy, to get and set the terminal's modes */
};

void hr_shellproc_init(struct hr_shellproc *s);

/* Starts an interactive bash with the given start-up file, in `dir` or the nearest directory above
 * it that the user can enter. The environment ends with NULL and is passed unchanged. *ret_dir is
 * the directory (the caller frees). */
int hr_shellproc_start(struct hr_shellproc *s, const char *bash, const char *rcfile,
    const struct hr_shell_user *user, char *const *envp, const char *dir, char **ret_dir,
    struct hr_err *err);

/* Restores the modes that a person at a prompt needs (canonical input, echo, signals, output
 * processing), lets output flow, and drops unread input. Keeps the user's special characters,
 * unless they prevent typing text, and the window size. */
void hr_shellproc_tidy(struct hr_shellproc *s);

/* Resumes output that a program has stopped by tcflow(). Output that ^S stopped waits for ^Q. */
void hr_shellproc_flow(struct hr_shellproc *s);

/* Drops unread input, including text typed just before, and the echo of that. */
void hr_shellproc_flush(struct hr_shellproc *s);

/* Passes control characters to readline until it leaves the terminal again. */
void hr_shellproc_literal(struct hr_shellproc *s);

/* Sets the terminal's size as programs see it; the foreground gets SIGWINCH. */
void hr_shellproc_resize(struct hr_shellproc *s, unsigned rows, unsigned columns);
void hr_shellproc_size(const struct hr_shellproc *s, unsigned *ret_rows, unsigned *ret_columns);

bool hr_shellproc_raw(const struct hr_shellproc *s); /* Returns true if canonical mode is off. */
/* Returns false in canonical mode without echo. */
bool hr_shellproc_echoes(const struct hr_shellproc *s);
/* Returns true if fd is this terminal. */
bool hr_shellproc_shows(const struct hr_shellproc *s, int fd);
/* Returns true if pid's group has the terminal. */
bool hr_shellproc_foreground(const struct hr_shellproc *s, pid_t pid);

/* Returns true if a signal has stopped the shell. */
bool hr_shellproc_stopped(const struct hr_shellproc *s);

/* Returns the exit code, or 128 + signal, of an ended process that is not a child, by its pidfd;
 * -1 if it is not available, as before Linux 6.15. */
int hr_shellproc_exit_code(int pidfd);

/* Sends SIGKILL to every process of the session, which need not be a shell's. */
void hr_shellproc_kill(pid_t sid);

/* Hangs up: sends SIGHUP and SIGCONT to every process of the session and closes the descriptors.
 * With kill_all SIGKILL follows after half a second for the rest. Does not reap the shell. */
void hr_shellproc_hangup(struct hr_shellproc *s, bool kill_all);

#endif
