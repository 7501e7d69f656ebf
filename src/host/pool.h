/* hr_pool: sandboxes that were made before anybody asked for one (runtimes.md 8.2, 8.3). They are
 * recorded in the directory "warm" of the state directory; whoever has a record locked has
 * the sandbox. */
#ifndef HR_HOST_POOL_H
#define HR_HOST_POOL_H

#include "host/sandbox.h"

/* Makes s, which is open but not connected, one of those that fit it: 1; 0: there is none. What is
 * found dead is cleared away. */
int hr_pool_take(struct hr_sandbox *s, struct hr_error *err);

#endif
