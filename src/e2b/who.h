/* hr_e2b_who: finds the account for which a request acts. */
#ifndef HR_E2B_WHO_H
#define HR_E2B_WHO_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "e2b/setup.h"

struct hr_e2b_who {
	uid_t uid;
	gid_t gid;
	char *name;
	char *home;
};

/* Reads the name from the header Authorization: "Basic BASE64(NAME:PASSWORD)". Returns false if it
 * names no user. */
bool hr_e2b_who_named(const char *authorization, struct hr_buf *ret);

/* Looks up an account; NULL: the default user of the setup, or the account `sandbox` without one.
 * Returns false if there is no such account. Call hr_e2b_who_done() in both cases. */
bool hr_e2b_who_find(
    struct hr_e2b_who *who, const char *name, const struct hr_e2b_setup *s, uid_t sandbox);
void hr_e2b_who_done(struct hr_e2b_who *who);

#endif
