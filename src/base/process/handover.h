/* hr_handover: descriptors that one image of a program leaves to the next, by name, across an
 * upgrade in place. An environment variable lists their numbers.
 *
 * A name says what a descriptor is for: a socket's is its name in the run directory
 * ("fcgi/control.sock"), others contain a number or two ("worker/files/3/1234"). A name may come
 * without a descriptor. The reader must check that a descriptor is what its name says. */
#ifndef HR_BASE_PROCESS_HANDOVER_H
#define HR_BASE_PROCESS_HANDOVER_H

#include <stddef.h>

#include "base/err.h"

struct hr_handed {
	char *name;
	int fd; /* -1: none, or taken */
};

struct hr_handover {
	struct hr_handed *v; /* a zeroed struct is an empty list */
	size_t n;
};

/* ---- the image that is replaced ---- */

/* Adds a copy of fd (-1: the name alone), which the next image finds open. The name must not
 * contain a blank or '='. */
int hr_handover_add(struct hr_handover *h, int fd, struct hr_err *err, const char *form, ...)
    __attribute__((format(printf, 4, 5)));
/* Sets the environment variable of this process; hr_handover_hide() unsets it. */
int hr_handover_show(const struct hr_handover *h, struct hr_err *err);
void hr_handover_hide(void);

/* ---- the image that replaces it ---- */

/* Reads the list that an earlier image of this process left, or its parent, which asks whether this
 * image could take over; unsets the variable. Descriptors become close-on-exec, all others above 2
 * are closed. A variable with another process's id is ignored; a malformed one is an error, so that
 * the earlier image, which asks first, keeps running. */
int hr_handover_read(struct hr_handover *h, struct hr_err *err);
/* Takes a descriptor out of the list, which the caller then owns; -1: there is none of that
 * name. */
int hr_handover_take(struct hr_handover *h, const char *name);
/* Finds the next name with that prefix from *at on and moves *at past it. Returns NULL after the
 * last. */
const char *hr_handover_next(const struct hr_handover *h, size_t *at, const char *prefix);

/* Closes the descriptors left in the list. */
void hr_handover_done(struct hr_handover *h);

#endif
