/* hr_guard: detects that files of the run directory were removed or damaged, which a command can do
 * if the shell has the server's own account. */
#ifndef HR_SUPERVISOR_RUN_GUARD_H
#define HR_SUPERVISOR_RUN_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_context;
struct hr_watch;

struct hr_guard_file {
	char *path;
	mode_t mode; /* type and permissions */
	ino_t ino;   /* inode of a directory */
};

#define HR_GUARD_WATCHES 5 /* the run directory, three in it, and the journal's parent */

struct hr_guard {
	int fd; /* inotify's descriptor; -1: not open */
	int watches[HR_GUARD_WATCHES];
	size_t nwatches;
	struct hr_watch *events, *timer;
	struct hr_guard_file *files;
	size_t n;
	bool pending; /* a check is due */
	void (*fn)(void *arg, const char *path);
	void *arg;
};

void hr_guard_init(struct hr_guard *g);
/* Records the present directories and sockets, and the journal. From then on fn is called with a
 * file that is missing or was replaced, shortly after the change, and again while that persists. */
int hr_guard_open(struct hr_guard *g, const struct hr_context *ctx,
    void (*fn)(void *arg, const char *path), void *arg, struct hr_err *err);
/* Stops watching, and leaves the descriptor open: while the kernel frees watches, which takes it
 * 10 ms and more, a close would wait. */
void hr_guard_stop(struct hr_guard *g);
void hr_guard_close(struct hr_guard *g);

#endif
