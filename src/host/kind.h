/* hr_kind: opens a back-end without a sandbox, for its functions that concern all sandboxes. */
#ifndef HR_HOST_KIND_H
#define HR_HOST_KIND_H

#include "host/handle.h"

/* the back-end used by default */
#define HR_KIND_DEFAULT "docker"

struct hr_kind {
	const struct hr_sandbox_ops *ops; /* NULL: the back-end is not open */
	void *self;
	struct hr_module module;
	struct hr_config *config;
	struct hr_backend_host host;
};

/* Opens a back-end by name; NULL: core.runtime of c. env and state_dir (NULL: none) are
 * borrowed. */
int hr_kind_open(struct hr_kind *k, const char *name, const struct hr_config *c,
    const char *const *env, const char *state_dir, struct hr_err *err);
void hr_kind_close(struct hr_kind *k); /* Closes k, which must be zeroed or opened. */

#endif
