/* Finds back-ends by name. */
#ifndef HR_HOST_BACKENDS_H
#define HR_HOST_BACKENDS_H

#include "host/handrail-backend.h"
#include "host/common/module.h"

/* Returns a back-end's table; the caller closes *m after its last use. `named`: the caller named
 * the back-end; otherwise the name of a file is not accepted. */
const struct hr_sandbox_ops *hr_backend_find(const char *name, bool named, const char *const *env,
    struct hr_module *m, hr_warn_fn *warn, void *arg, struct hr_err *err);

extern const struct hr_sandbox_ops hr_backend_box;
extern const struct hr_sandbox_ops hr_backend_local;
extern const struct hr_sandbox_ops hr_backend_docker;
extern const struct hr_sandbox_ops hr_backend_remote;

#endif
