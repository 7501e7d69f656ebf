/* hr_egress: applies the rules of a network of a sandbox of this machine, which handrail-egress(8)
 * enforces from outside. */
#ifndef HR_HOST_SIDECAR_EGRESS_H
#define HR_HOST_SIDECAR_EGRESS_H

#include "host/sidecar/sidecar.h"

struct json_object;

/* Checks the rules of the settings before anything is made. `net` is the name of the sandbox's
 * network: only "egress" has rules. */
int hr_egress_check(const struct hr_backend_host *h, const char *net, struct hr_err *err);
/* Writes the rules of the settings, and all that their broker needs, for a sandbox that starts;
 * without `rules` it removes what an earlier one had. */
int hr_egress_prepare(const struct hr_sidecars *b, bool rules, struct hr_err *err);
/* Adds the variables of a sandbox with rules: its certificates and the placeholders. */
int hr_egress_env(const struct hr_sidecars *b, struct hr_strv *env, struct hr_err *err);
/* Calls fn with each file that such a sandbox sees, read-only, and its place there. */
typedef int hr_egress_file_fn(void *arg, const char *source, const char *target);
int
hr_egress_files(const struct hr_sidecars *b, hr_egress_file_fn *fn, void *arg, struct hr_err *err);
/* Starts the broker of a sandbox with rules unless it runs already; b->watch must be open. */
int hr_egress_keep(const struct hr_sidecars *b, struct hr_err *err);
/* Ends the broker, if there is one. */
void hr_egress_stop(const struct hr_sidecars *b);
/* Does the same, and removes the values of secrets. */
void hr_egress_end(const struct hr_sidecars *b);

/* Serves the member of struct hr_sandbox_ops, as the next two do. */
int hr_egress_rules(const struct hr_sidecars *b, char **ret_json, struct hr_err *err);
int hr_egress_set_rules(const struct hr_sidecars *b, const char *json, struct hr_err *err);
int hr_egress_log(
    const struct hr_sidecars *b, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err);

/* Adds credentials to the rules for the caller's tokens of git's providers, for hosts that the
 * rules allow. */
int hr_egress_add_tokens(
    const struct hr_backend_host *h, struct json_object *rules, struct hr_err *err);
/* Returns the caller's token if the secret has the name of one; NULL: it has not. */
const char *hr_egress_token(const struct hr_backend_host *h, const char *secret);

#endif
