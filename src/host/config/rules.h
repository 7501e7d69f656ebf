/* hr_rules: the rules of a sandbox's network, in settings and as text (handrail-egress(8), "The
 * rules"). */
#ifndef HR_HOST_CONFIG_RULES_H
#define HR_HOST_CONFIG_RULES_H

#include "base/strv.h"
#include "egress/policy.h"
#include "host/handrail.h"

/* Replaces sandbox.network_file by the file's content as sandbox.network. Both are an error. */
int hr_rules_load(struct hr_config *c, struct hr_err *err);

/* Decodes a network object. Returns NULL with *err set. The caller owns it. */
struct json_object *hr_rules_decode(const char *text, size_t len, struct hr_err *err);

/* Reads a network object with the presets of this installation. env is the caller's environment.
 * The policy is the caller's; NULL: *err is set. */
struct egress_policy *
hr_rules_read(struct json_object *o, const char *const *env, struct hr_err *err);

/* Appends the sorted names of the presets. */
int hr_rules_presets(const char *const *env, struct hr_strv *ret, struct hr_err *err);

/* Adds an entry to allowOut of a network object, or to presets if it is the name of one; or takes
 * one back: removes it from these lists, else adds it to denyOut if it is an address or a range. */
typedef int hr_rules_change_fn(
    struct json_object *o, const char *const *env, const char *entry, struct hr_err *err);
hr_rules_change_fn hr_rules_allow, hr_rules_deny;

/* Frees *p, for HR_CLEAN(). */
static inline void
hr_rules_clean(struct egress_policy **p)
{
	egress_policy_free(*p);
}

#endif
