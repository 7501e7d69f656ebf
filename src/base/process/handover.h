/* hr_handover: descriptors that one image of a program leaves to the next, by name, across an
 * upgrade in place. Their numbers are told in an environment variable.
 *
 * A name says what a descriptor is for: a socket's is its name in the run directory
 * ("fcgi/control.sock"), others hold a number or two ("worker/files/3/1234"). One may stand without
 * a descriptor. Whoever takes one looks itself whether it is what its name says. */
#ifndef HR_BASE_PROCESS_HANDOVER_H
#define HR_BASE_PROCESS_HANDOVER_H

#include <stddef.h>

#include "base/err.h"

struct hr_handed {
	char *name;
	int fd; /* -1: none, or taken */
};

struct hr_handover {
	struct hr_handed *v; /* zeroed: empty */
	size_t n;
};

/* ---- the image that goes ---- */

/* Adds a copy of fd (-1: the name alone) that the next image finds open. The name holds neither
 * blank nor '='. */
int hr_handover_add(struct hr_handover *h, int fd, struct hr_err *err, const char *form, ...)
    __attribute__((format(printf, 4, 5)));
/* Puts it into the environment of this process, or takes it out again. */
int hr_handover_show(const struct hr_handover *h, struct hr_err *err);
void hr_handover_hide(void);

/* ---- the image that comes ---- */

/* What an earlier image of this process left, or of its parent, which asks whether we could go on;
 * the variable is removed. Descriptors become close-on-exec, every other one above 2 is closed. A
 * variable that somebody else set counts for nothing; one of another form is an error, so that the
 * earlier image, which asks first, goes on as it is. */
int hr_handover_read(struct hr_handover *h, struct hr_err *err);
/* It is the caller's now; -1: there is none of that name. */
int hr_handover_take(struct hr_handover *h, const char *name);
/* The name at *at or behind it that begins so, *at being moved behind it; NULL: no more. */
const char *hr_handover_next(const struct hr_handover *h, size_t *at, const char *prefix);

/* Closes what is left in it. */
void hr_handover_done(struct hr_handover *h);

#endif
