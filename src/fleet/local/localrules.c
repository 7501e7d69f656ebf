/* Rules of a sandbox's network for the engine "local". */
#include "config.h"

#include "fleet/local/local_int.h"

#include <string.h>

#include <json-c/json.h>

#include "base/clean.h"
#include "base/log.h"
#include "egress/policy.h"
#include "fleet/engine.h"
#include "fleet/request.h"
#include "host/config/settings.h"
#include "host/kind.h"
#include "proto/json.h"

int
hr_local_set_rules(struct hr_sandbox *s, const struct hr_fleet_row *row, struct hr_err *err)
{
	HR_PUT struct json_object *request = NULL;
	HR_PUT struct json_object *now = NULL;
	HR_FREE char *before = NULL;
	HR_FREE char *json = NULL;
	struct json_object *rules;

	if (hr_fleet_request_of(row, &request, err) != 0)
		return -1;
	rules = hr_json_at(request, "network");
	if (rules == NULL)
		return 0;
	if (hr_sandbox_network(s, &before, err) < 0)
		return -1;
	if (before != NULL && hr_json_decode(before, strlen(before), &now, NULL) == 0 &&
	    json_object_equal(now, rules))
		return 0;
	json = hr_json_string(rules, EGRESS_POLICY_MAX, err);
	return json != NULL ? hr_sandbox_set_network(s, json, err) : -1;
}

bool
hr_local_may_have_rules(const struct hr_config *c)
{
	const char *mode = hr_config_text(c, "sandbox.security.network_mode");

	return (mode == NULL || strcmp(mode, "default") == 0 || strcmp(mode, "egress") == 0) &&
	       hr_json_count(hr_config_value(c, "sandbox.additional_networks")) == 0;
}

bool
hr_local_rules_hold(const struct hr_fleet_options *o)
{
	struct hr_err why = {0};
	struct hr_kind k = {0};
	bool hold = true;

	if (hr_kind_open(&k, NULL, o->config, o->environ, NULL, &why) == 0 &&
	    k.ops->holds_network != NULL && k.ops->holds_network(k.self, &why) < 0 &&
	    why.code == HR_E_UNSUPPORTED) {
		hold = false;
		hr_log(HR_LOG_WARNING, "no sandbox can have rules of a network: %s", why.msg);
	}
	hr_kind_close(&k);
	return hold;
}
