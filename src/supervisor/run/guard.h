/* hr_guard: notices that files of the run directory were removed or damaged. A command may do so
 * where the shell has the server's own account. */
#ifndef HR_SUPERVISOR_RUN_GUARD_H
#define HR_SUPERVISOR_RUN_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_context;
struct hr_loop;
struct hr_watch;

struct hr_guard_file {
	char *path;
	mode_t mode; /* type and rights */
	ino_t ino;   /* of a directory */
};

struct hr_guard {
	int fd; /* inotify; -1: not open */
	struct hr_watch *events, *timer;
	struct hr_guard_file *files;
	size_t n;
	bool pending; /* a look follows */
	void (*fn)(void *arg, const char *path);
	void *arg;
};

void hr_guard_init(struct hr_guard *g);
/* Remembers the directories and sockets that are there now, and the journal. From then on
 * fn is called with a file that is missing or is another one, some time after it was seen, and
 * again as long as it is so. */
int hr_guard_open(struct hr_guard *g, const struct hr_context *ctx,
    void (*fn)(void *arg, const char *path), void *arg, struct hr_err *err);
void hr_guard_close(struct hr_guard *g);

#endif
