/* hr_page: manages signed-in clients of the sandbox's page (doc/page.md). A sign-in needs both a
 * cookie that scripts cannot read and a token that only the page knows, which a browser adds to no
 * request by itself. */
#ifndef HR_WORKER_PAGE_H
#define HR_WORKER_PAGE_H

#include <stdbool.h>

#include "proto/signin.h"
#include "worker/request/request.h"
#include "worker/stay.h"

/* Returns the rights of "none", "look" or "act"; NULL counts as "none". */
enum hr_page_rights hr_page_rights_of(const char *name);

/* Returns true if a signed-in page makes this request and has the right to. Only paths below
 * /handrail/v1/ belong to the page. */
bool hr_page_passes(const struct hr_worker *w, const struct hr_request *r);

/* Fills *ret with the sign-in on which an endless answer depends. */
void hr_page_enter(const struct hr_worker *w, const struct hr_request *r, struct hr_stay *ret);

#endif
