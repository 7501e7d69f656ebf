/* hr_shells: the state of a box's shells, which bash itself prints at its prompt and the shells of
 * a branch read. It stays in files of the box, which are copied with the others: nothing outside
 * parses it. Hidden actions do all of this, so that no history and no output shows it. */
#ifndef HR_HOST_BOX_SHELLS_H
#define HR_HOST_BOX_SHELLS_H

#include "host/handle.h"

struct hr_shells {
	char place[64];           /* directory in the box, which the shells make */
	struct hr_strv names;     /* the sessions that are saved */
	struct hr_strv busy;      /* the others, which run a command */
	struct json_object *last; /* name to the number of the last command */
};

void hr_shells_done(struct hr_shells *t);
/* Sorts the sessions of s into the two lists. Returns 0, or -1 with *err set. */
int hr_shells_find(struct hr_sandbox *s, struct hr_shells *t, struct hr_err *err);
/* Makes the shells of the sessions print their state. Returns 0, or -1 with *err set. */
int hr_shells_save(struct hr_sandbox *s, struct hr_shells *t, struct hr_err *err);
/* Fails if a session has run a command since then. */
int hr_shells_check(struct hr_sandbox *s, const struct hr_shells *t, struct hr_err *err);
/* Makes the sessions of a branch, whose shells read the state, and removes the files. */
int hr_shells_restore(struct hr_sandbox *branch, const struct hr_shells *t, struct hr_err *err);
/* Removes the files of a fork from the parent; t NULL: those of all forks. */
void hr_shells_remove(struct hr_sandbox *s, const struct hr_shells *t);

#endif
