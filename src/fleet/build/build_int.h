/* hr_build: holds the state of a build; buildrecord.c stores it. */
#ifndef HR_FLEET_BUILD_BUILD_INT_H
#define HR_FLEET_BUILD_BUILD_INT_H

#include "fleet/build/build.h"
#include "base/strv.h"

enum hr_build_status {
	HR_BUILD_QUEUED,
	HR_BUILD_WORKING,
	HR_BUILD_SUCCESS, /* this and later ones mean that the build is finished */
	HR_BUILD_FAILURE,
	HR_BUILD_TIMEOUT,
	HR_BUILD_INTERNAL_ERROR,
};
extern const char *const hr_build_words[]; /* the words for the states, indexed by status */

struct hr_build {
	struct hr_build *next; /* next younger build */
	char id[HR_FLEET_BUILD_ID];
	int64_t key, created;
	enum hr_build_status status;
	struct hr_strv names;
	char error[sizeof(((struct hr_err *)NULL)->msg)];
};

void hr_build_free(struct hr_build *b);

/* Loads a build from the directory of all builds; an unfinished one becomes QUEUED. Returns NULL
 * with *err set; HR_E_INVAL: the record is damaged. */
struct hr_build *hr_build_load(const char *builds, const char *id, struct hr_err *err);
int hr_build_write(const char *builds, const struct hr_build *one, struct hr_err *err);

#endif
