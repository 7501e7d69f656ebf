/* exec_work: starts the processes of a command beside the shell. */
#ifndef HR_SESSION_EXEC_WORK_H
#define HR_SESSION_EXEC_WORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors of handrail-bound beside the standard streams. */
enum { HR_BOUND_DIR = 3, HR_BOUND_STATUS, HR_BOUND_FDS };

struct hr_keeper;

/* A command as its child processes need it. Borrowed. */
struct exec_work {
	const struct hr_keeper *keeper;
	const char *argv[4];
	const char *dir;
	bool given; /* `dir` is the client's */
	int64_t limit_s;
	int fds[2];         /* files or pipes for standard output and error */
	const char *minder; /* handrail-bound; NULL: the command is not kept */
	int kept, status;   /* locked directory and file of a kept command; or -1 */
	int input;          /* standard input; -1: /dev/null */
};

/* Returns the number of the process, or -1 with errno. */
pid_t exec_fork(const struct exec_work *w);

#endif
