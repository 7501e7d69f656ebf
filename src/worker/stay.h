/* hr_stay: by what an answer without an end was asked for. It ends with the sign-in to the page,
 * where that was it. */
#ifndef HR_WORKER_STAY_H
#define HR_WORKER_STAY_H

#include <stdbool.h>

#include "proto/signin.h"

struct hr_worker;

/* By hr_page_enter(). */
struct hr_stay {
	bool signed_in; /* else by the key, or none is needed */
	struct hr_signin by;
};

/* False: the sign-in is over, and nothing more may be told. */
bool hr_stay_lasts(const struct hr_worker *w, const struct hr_stay *s);

#endif
