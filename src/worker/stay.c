/* Looked at before each step of a stream, since a sign-in may be ended by any worker at any time.
 */
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
