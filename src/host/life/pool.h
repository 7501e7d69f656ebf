/* hr_pool: sandboxes that were made before anybody asked for one (doc/host.md, "The pool"). They
 * are recorded in the directory "warm" of the state directory; whoever has a record locked has the
 * sandbox. */
#ifndef HR_HOST_LIFE_POOL_H
#define HR_HOST_LIFE_POOL_H

#include "host/handle.h"

#define HR_POOL_BELOW "/warm" /* behind the state directory's name */

/* Makes s, which is open but not connected, one of those that fit it: 1; 0: there is none. What is
 * found dead is cleared away. Until hr_pool_taken() it is recorded as being taken, so that it is
 * found if the caller dies. */
int hr_pool_take(struct hr_sandbox *s, struct hr_err *err);
/* The sandbox is recorded as what it is, or ended. */
void hr_pool_taken(struct hr_sandbox *s);

/* There is a record of s that says that it is being taken, as `taking`. Ends what was taken if
 * whoever did that has died; an error if not. There may be another record of s afterwards. */
int hr_pool_settle(struct hr_sandbox *s, const char *taking, struct hr_err *err);

#endif
