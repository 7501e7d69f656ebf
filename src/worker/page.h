/* hr_page: who has signed in to the page of the sandbox (doc/page.md): by a cookie that the browser
 * keeps from scripts, and by a token that only the page knows, which a browser adds to no request
 * by itself. One without the other is nothing. */
#ifndef HR_WORKER_PAGE_H
#define HR_WORKER_PAGE_H

#include <stdbool.h>

#include "proto/signin.h"
#include "worker/request/request.h"
#include "worker/stay.h"

/* "none", "look", "act"; NULL: as "none". */
enum hr_page_rights hr_page_rights_of(const char *name);

/* Whether it is the page's, and may be done by who has signed in there. Paths below /handrail/v1/
 * only: no other is of the page. */
bool hr_page_passes(const struct hr_worker *w, const struct hr_request *r);

/* For an answer without an end: what it lasts by. */
void hr_page_enter(const struct hr_worker *w, const struct hr_request *r, struct hr_stay *ret);

#endif
