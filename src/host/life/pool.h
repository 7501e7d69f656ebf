/* hr_pool: sandboxes that were made before anybody asked for one (doc/host.md, "The pool"). They
 * are recorded in the directory "warm" of the state directory; the process that has a record locked
 * may take the sandbox, or end it. */
#ifndef HR_HOST_LIFE_POOL_H
#define HR_HOST_LIFE_POOL_H

#include "host/handle.h"

#define HR_POOL_BELOW "/warm" /* behind the state directory's name */

/* Makes s, which is open but not connected, and whose name the caller has locked, one of those that
 * fit it: 1; 0: there is none. Dead ones are cleared away. From the first moment on s has a record,
 * which is one of a sandbox that is not ready until hr_record_save(). */
int hr_pool_take(struct hr_sandbox *s, struct hr_err *err);

/* Ends the sandbox `sid` of the directory, whatever its state is, with the settings of s. */
int hr_pool_end(struct hr_sandbox *s, const char *state_dir, const char *sid, struct hr_err *err);

#endif
