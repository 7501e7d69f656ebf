/* hr_readyline: the one line by which a keeper says that it is ready, or why it never will be. */
#ifndef HR_SUPERVISOR_CHILDREN_READYLINE_H
#define HR_SUPERVISOR_CHILDREN_READYLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct hr_loop;
struct hr_watch;

/* ready, or reason (not NULL) why not: the text behind "failed " or "unavailable ", or that it
 * ended without a word.
 * Called once; the readyline is closed before. */
typedef void hr_readyline_fn(void *arg, bool ready, const char *reason);

/* The reason when it ended without a word. */
#define HR_READYLINE_ENDED "it ended before it was ready"

struct hr_readyline {
	int fd; /* -1: not open */
	struct hr_watch *watch;
	hr_readyline_fn *fn;
	void *arg;
	bool never; /* "unavailable": another start would say the same */
	size_t len;
	char text[256];
};

/* A pipe: *ret_child is for the program (close-on-exec, the caller closes it after the spawn). */
int hr_readyline_open(struct hr_readyline *r, struct hr_loop *loop, hr_readyline_fn *fn, void *arg,
    int *ret_child, struct hr_err *err);
/* Of a program that has ended: a line that it said before is told now. Nothing if there is none. */
void hr_readyline_look(struct hr_readyline *r);
void hr_readyline_close(struct hr_readyline *r); /* fn is not called any more; closed: nothing */

#endif
