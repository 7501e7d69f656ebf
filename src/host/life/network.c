/* Implements the rules of a sandbox's network, which some back-ends have. */
#include "config.h"

#include "base/err.h"
#include "host/handle.h"

int
hr_sandbox_network(struct hr_sandbox *s, char **ret_json, struct hr_err *err)
{
	*ret_json = NULL;
	return s->ops->network != NULL ? s->ops->network(s->self, ret_json, err) : 0;
}

static int
no_rules(struct hr_sandbox *s, struct hr_err *err)
{
	return hr_err_set(err, HR_E_UNSUPPORTED,
	    "the network of sandbox \"%s\" has no rules: \"handrail down -n %s\" ends it, and "
	    "\"handrail up -r box --network egress\" starts one that has",
	    s->sid, s->sid);
}

int
hr_sandbox_set_network(struct hr_sandbox *s, const char *json, struct hr_err *err)
{
	HR_FREE char *now = NULL;

	if (hr_sandbox_network(s, &now, err) < 0)
		return -1;
	return now != NULL ? s->ops->set_network(s->self, json, err) : no_rules(s, err);
}

int
hr_sandbox_network_log(
    struct hr_sandbox *s, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	HR_FREE char *now = NULL;

	if (hr_sandbox_network(s, &now, err) < 0)
		return -1;
	return now != NULL ? s->ops->network_log(s->self, follow, fn, arg, err) : no_rules(s, err);
}
