/* Checks sign-ins before each step of a stream, because any worker may end a sign-in at any
 * time. */
#include "config.h"

#include "worker/stay.h"

#include "base/clock.h"
#include "worker/worker.h"

bool
hr_stay_lasts(const struct hr_worker *w, const struct hr_stay *s)
{
	struct hr_signin now;

	return !s->signed_in ||
	       hr_signin_find(&w->board->signins, s->by.cookie, s->by.token, hr_now_ns(), &now);
}
