/* hr_kind: a kind of sandbox without a sandbox, for what its table does for all of them. */
#ifndef HR_HOST_KIND_H
#define HR_HOST_KIND_H

#include "host/handle.h"

/* What is used where nothing says another. */
#define HR_KIND_DEFAULT "docker"

struct hr_kind {
	const struct hr_sandbox_ops *ops; /* NULL: it is not open */
	void *self;
	struct hr_module module;
	struct hr_config *config;
	struct hr_backend_host host;
};

/* By its name; NULL: core.runtime of c. env and state_dir (NULL: none) are borrowed. */
int hr_kind_open(struct hr_kind *k, const char *name, const struct hr_config *c,
    const char *const *env, const char *state_dir, struct hr_err *err);
void hr_kind_close(struct hr_kind *k); /* of one that is zeroed or was opened */

#endif
