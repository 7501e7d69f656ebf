/* hr_readyline: reads the line by which a program reports that it is ready, or why it never will
 * be. */
#ifndef HR_SUPERVISOR_CHILDREN_READYLINE_H
#define HR_SUPERVISOR_CHILDREN_READYLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct hr_loop;
struct hr_watch;

/* Called once, after the readyline was closed. Either `ready` is true; or `reason` (not NULL) is
 * the text after "failed " or "unavailable ", or HR_READYLINE_ENDED. */
typedef void hr_readyline_fn(void *arg, bool ready, const char *reason);

/* the reason if the program ended without a line */
#define HR_READYLINE_ENDED "it ended before it was ready"

struct hr_readyline {
	int fd; /* -1: not open */
	struct hr_watch *watch;
	hr_readyline_fn *fn;
	void *arg;
	bool never; /* after "unavailable": a restart would not help */
	size_t len;
	char text[256];
};

/* Opens a pipe: *ret_child is for the program (close-on-exec; the caller closes it afterwards). */
int hr_readyline_open(struct hr_readyline *r, struct hr_loop *loop, hr_readyline_fn *fn, void *arg,
    int *ret_child, struct hr_err *err);
/* Reports a line that the program wrote before its end, if there is one; call it after the end. */
void hr_readyline_look(struct hr_readyline *r);
/* Closes the pipe: fn is not called any more. The pipe may be closed already. */
void hr_readyline_close(struct hr_readyline *r);

#endif
