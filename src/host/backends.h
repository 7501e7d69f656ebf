/* The kinds of sandboxes by their names. */
#ifndef HR_HOST_BACKENDS_H
#define HR_HOST_BACKENDS_H

#include "host/handrail-backend.h"
#include "host/common/module.h"

/* The table of a runtime's name; *m is to be closed with the last of it. named: by whoever calls;
 * otherwise the name is not taken for that of a file. */
const struct hr_sandbox_ops *hr_backend_find(const char *name, bool named, const char *const *env,
    struct hr_module *m, hr_warn_fn *warn, void *arg, struct hr_err *err);

extern const struct hr_sandbox_ops hr_backend_local;
extern const struct hr_sandbox_ops hr_backend_docker;
extern const struct hr_sandbox_ops hr_backend_remote;

#endif
