/* hr_stay: checks the authorization of an endless answer. If the client is authorized by a sign-in
 * to the page, the answer ends when the sign-in does. */
#ifndef HR_WORKER_STAY_H
#define HR_WORKER_STAY_H

#include <stdbool.h>

#include "proto/signin.h"

struct hr_worker;

/* The sign-in of an answer, filled by hr_page_enter(). */
struct hr_stay {
	bool signed_in; /* false: the client used a key, or no key is required */
	struct hr_signin by;
};

/* Returns false if the sign-in is over and nothing more may be sent. */
bool hr_stay_lasts(const struct hr_worker *w, const struct hr_stay *s);

#endif
