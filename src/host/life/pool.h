/* hr_pool: keeps sandboxes created in advance (doc/host.md, "The pool"). They are recorded in the
 * directory "warm" of the state directory; a process that has locked a record may take the sandbox,
 * or end it. */
#ifndef HR_HOST_LIFE_POOL_H
#define HR_HOST_LIFE_POOL_H

#include "host/handle.h"
#include "host/records/record.h"

/* Turns s, which is open but not connected, and whose name the caller has locked, into a matching
 * warm sandbox. Returns 1, or 0 if there is none. Removes dead ones. From the first moment on s has
 * a record, which counts as not ready until hr_record_save(). */
int hr_pool_take(struct hr_sandbox *s, struct hr_err *err);

/* Ends the sandbox `sid` of the directory, whatever its state, with the settings of s. */
int hr_pool_end(struct hr_sandbox *s, const char *state_dir, const char *sid, struct hr_err *err);

#endif
