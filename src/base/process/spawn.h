/* hr_spawn: fork and exec one program in a known state. */
#ifndef HR_BASE_PROCESS_SPAWN_H
#define HR_BASE_PROCESS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct rlimit;

struct hr_spawn_fd {
	int from; /* the caller's descriptor */
	int to;   /* number in the program */
};

/* The program's identity; only root can set it. */
struct hr_spawn_user {
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t ngroups;
};

struct hr_spawn {
	const char *path; /* searched on PATH if it has no '/' */
	const int *image; /* open program to execute instead, if the kernel can; NULL: none */
	const char *const *argv;
	char *const *envp; /* NULL: the caller's environment */
	/* Unlisted 0, 1, 2 become /dev/null; every other descriptor of the caller must be
	 * close-on-exec, unless `alone` is set. */
	const struct hr_spawn_fd *fds;
	size_t nfds;
	bool alone;    /* closes all unlisted descriptors, whatever the caller's parent left open */
	bool setsid;   /* own session and process group */
	bool setpgid;  /* own process group only */
	int pdeathsig; /* signal sent to the program at the caller's death; 0: none */
	int umask;     /* -1: the caller's */
	const struct rlimit *nofile;      /* NULL: the caller's */
	const struct rlimit *data;        /* limit of the program's memory; NULL: the caller's */
	const struct hr_spawn_user *user; /* NULL: the caller's */
	int start_ms; /* limit until exec; 0: none, or 10 s with a user, who may stop the child */
	const char
	    *dir; /* NULL: the caller's; a directory that the user cannot enter becomes "/" */
	/* Called in the caller while the child waits before exec; if the caller is killed there,
	 * the child ends as well. NULL: none. */
	void (*forked)(void *arg, pid_t pid);
	void *arg;
};

/* Starts the program and returns its process id after a successful exec, or -1 with the failed step
 * in *err (no child is left then). Blocks until exec. The program starts with no signal blocked,
 * ignored or handled. */
pid_t hr_spawn(const struct hr_spawn *s, struct hr_err *err);

/* Resets all signals to their defaults and unblocks them, in a child between fork and exec: exec
 * keeps ignored ones. */
void hr_spawn_reset_signals(void);

/* Waits for the end of a child, repeating EINTR. Returns 0 with its wait status (NULL: not needed),
 * or -1 with errno and a status that is no success, as when SIGCHLD is ignored. */
int hr_spawn_end(pid_t pid, int *ret_status);

/* Runs a program to its end on the caller's own stdin, stdout and stderr, for a terminal. Returns 0
 * with its exit code as shells number it, or -1. Sets s->fds. */
int hr_spawn_here(struct hr_spawn *s, int *ret_code, struct hr_err *err);

/* Runs a program to its end with stdin and stdout on /dev/null. Returns its wait status, or -1 if
 * it cannot be started. Its stderr goes to the NUL-terminated `text`, cut at cap. */
int hr_spawn_wait(const char *const *argv, char *text, size_t cap, struct hr_err *err);
/* Does the same in a process group of its own, which is killed on timeout: -1, HR_E_TIMEOUT.
 * Without pidfd_open() (Linux before 5.3) the call waits for a program that has closed stderr. */
int hr_spawn_wait_for(
    const char *const *argv, int patience_ms, char *text, size_t cap, struct hr_err *err);

/* Returns a descriptor that is readable when the process has ended; close-on-exec. Returns -1 with
 * errno if there is no such process or the kernel is older than Linux 5.3. */
int hr_pidfd_open(pid_t pid);

/* Returns a wait status as shells number it: the exit code, or 128 + signal. */
int hr_exit_code(int status);
/* Returns the status in words: "exit 3", "signal 9 (Killed)". Valid until the thread's next
 * call. */
const char *hr_exit_words(int status);

#endif
