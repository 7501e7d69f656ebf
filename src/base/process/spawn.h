/* hr_spawn: fork and exec one program in a known state. */
#ifndef HR_BASE_PROCESS_SPAWN_H
#define HR_BASE_PROCESS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct rlimit;

struct hr_spawn_fd {
	int from; /* a descriptor of the caller */
	int to;   /* its number in the program */
};

/* Who the program becomes; only root can. */
struct hr_spawn_user {
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t ngroups;
};

struct hr_spawn {
	const char *path; /* without '/': looked for on PATH */
	const int
	    *image; /* an open program to execute in its place, if that can be done; NULL: none */
	const char *const *argv;
	char *const *envp; /* NULL: the caller's environment */
	/* 0, 1, 2 that are not named become /dev/null; every other descriptor of the caller is
	 * expected to be close-on-exec, or: */
	const struct hr_spawn_fd *fds;
	size_t nfds;
	bool alone;  /* it gets none that is not named, whatever who started the caller left open */
	bool setsid; /* own session and process group */
	bool setpgid;                     /* own process group only */
	int pdeathsig;                    /* signal to it at the caller's death, 0: none */
	int umask;                        /* -1: the caller's */
	const struct rlimit *nofile;      /* NULL: the caller's */
	const struct rlimit *data;        /* memory of its own, NULL: the caller's */
	const struct hr_spawn_user *user; /* NULL: the caller's */
	const char *dir; /* NULL: the caller's; one that cannot be entered (as user) becomes "/" */
	/* In the caller, while the child waits to become the program: if the caller is killed
	 * there, it ends as well. NULL: none. */
	void (*forked)(void *arg, pid_t pid);
	void *arg;
};

/* The process id after a successful exec; -1 with the failed step in *err when the program could
 * not be started (no child is left then). Blocks until exec. The program starts with no signal
 * blocked and none ignored or handled. */
pid_t hr_spawn(const struct hr_spawn *s, struct hr_err *err);

/* Waits for the end of a child, whatever signals come: 0 with its wait status (NULL: of no
 * interest), or -1 with errno and a status that is no success, as when SIGCHLD is ignored. */
int hr_spawn_end(pid_t pid, int *ret_status);

/* Runs a program on the caller's own stdin, stdout and stderr to its end, for a terminal: 0 with
 * its exit code as shells number it, or -1. Sets s->fds. */
int hr_spawn_here(struct hr_spawn *s, int *ret_code, struct hr_err *err);

/* Runs a program to its end with stdin and stdout on /dev/null: its wait status, or -1 if it
 * cannot be started. What it writes on stderr goes to the NUL-terminated `text`, cut at cap. */
int hr_spawn_wait(const char *const *argv, char *text, size_t cap, struct hr_err *err);
/* The same in a process group of its own, which is killed when it takes longer: -1, HR_E_TIMEOUT.
 * Where there is no pidfd_open() (Linux before 5.3) one that has closed stderr is waited for. */
int hr_spawn_wait_for(
    const char *const *argv, int patience_ms, char *text, size_t cap, struct hr_err *err);

/* A descriptor of a process, readable when it has ended; close-on-exec. -1 with errno: there is no
 * such process any more, or the kernel is older than Linux 5.3. */
int hr_pidfd_open(pid_t pid);

/* A wait status as shells number it: the exit code, or 128 + signal. */
int hr_exit_code(int status);
/* The same in words: "exit 3", "signal 9 (Killed)". Good until the thread's next call. */
const char *hr_exit_words(int status);

#endif
