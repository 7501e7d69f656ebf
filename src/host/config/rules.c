/* Reads the rules of a sandbox's network. */
#include "config.h"

#include "host/config/rules.h"

#include <json-c/json_object.h>

#include "base/err.h"
#include "base/path.h"
#include "base/trust.h"
#include "host/config/settings.h"
#include "proto/json.h"

struct json_object *
hr_rules_decode(const char *text, size_t len, struct hr_err *err)
{
	struct json_object *o = NULL;
	struct hr_json_error why = {0};

	if (hr_json_decode(text, len, &o, &why) < 0)
		(void)hr_err_set(err, HR_E_INVAL, "the rules are not JSON, at character %zu: %s",
		    why.pos + 1, why.text != NULL ? why.text : "no memory");
	else if (!json_object_is_type(o, json_type_object))
		(void)hr_err_set(err, HR_E_INVAL, "the rules must be an object");
	else
		return o;
	json_object_put(o);
	return NULL;
}

int
hr_rules_load(struct hr_config *c, struct hr_err *err)
{
	const char *file = hr_config_text(c, "sandbox.network_file");
	struct json_object *o;
	HR_BUF(text, EGRESS_POLICY_MAX);

	if (file == NULL)
		return 0;
	if (hr_config_value(c, "sandbox.network") != NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.network and sandbox.network_file are set: leave one out");
	if (hr_trust_read(file, HR_TRUST_NOBODY, &text, err) < 0)
		return hr_err_prefix(err, "sandbox.network_file");
	o = hr_rules_decode(hr_buf_str(&text), text.len, err);
	if (o == NULL)
		return hr_err_prefix(err, "sandbox.network_file: %s", file);
	return hr_config_put(c, hr_key_find("sandbox", "network", 7), o, err) < 0
		   ? -1
		   : hr_config_put_text(c, "sandbox.network_file", NULL, err);
}

struct egress_policy *
hr_rules_read(struct json_object *o, const char *const *env, struct hr_err *err)
{
	const char *data = hr_env_get(env, "HANDRAIL_DATADIR");
	HR_FREE char *presets = hr_path_join(data != NULL ? data : HR_PKGDATADIR, "network");

	return presets != NULL ? egress_policy_read(o, presets, err) : hr_err_null(err);
}
