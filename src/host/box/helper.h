/* hr_box_helper: programs that serve a box from outside, one process of each. */
#ifndef HR_HOST_BOX_HELPER_H
#define HR_HOST_BOX_HELPER_H

#include "host/box/box_int.h"

struct hr_box_helper {
	/* The program, a file of the directory for programs, and its arguments. Its descriptors
	 * are: 1, the locked record, to which it writes {"pid": N, "started": N, "port": N} when it
	 * serves; 2, to which it writes why it cannot, and which it closes when it serves; 3, a
	 * pidfd of the box's first process; 4, the server's socket, if the program needs it. */
	const char *const *argv;
	bool socket;
	const char *record; /* a file below the box's directory */
	const char *what;   /* the subject of errors */
};

/* Starts the program of a running box unless it runs already. Returns its port (0: it has none), or
 * -1 with *err set. */
int hr_box_helper_find(const struct hr_box *b, const struct hr_box_helper *h, struct hr_err *err);
/* Ends it, if it runs, and removes its record. */
void hr_box_helper_end(const struct hr_box *b, const char *record);

#endif
