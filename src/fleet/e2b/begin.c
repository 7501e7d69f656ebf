/* Prepares a sandbox for clients of the E2B API, before one of them knows that it runs. */
#include "config.h"

#include "fleet/e2b/e2b.h"

#include <json-c/json.h>

#include "host/client/rest.h"
#include "proto/json.h"

int
hr_e2b_begin(const struct hr_fleet_row *row, struct hr_err *err)
{
	HR_PUT struct json_object *request = NULL;
	HR_PUT struct json_object *body = NULL;
	struct json_object *e2b = hr_e2b_of(row, &request);
	HR_CLEAN(hr_rest_clean) struct hr_rest *r = NULL;
	struct hr_rest_call call = {.method = "POST", .path = "/handrail/e2b/init", .raw = true};

	if (e2b == NULL)
		return 0;
	body = hr_json_object(err, "envVars", json_object_get(hr_json_at(e2b, "env")),
	    "defaultUser", hr_json_maybe(hr_json_text_at(e2b, "user")), "defaultWorkdir",
	    hr_json_maybe(hr_json_text_at(e2b, "workdir")), "sandboxId",
	    json_object_new_string(row->id), "templateId",
	    hr_json_maybe(hr_json_text_at(e2b, "template")), "ownRun",
	    json_object_new_boolean(hr_json_true_at(e2b, "ownRun")), NULL);
	r = hr_fleet_asker(row->at);
	if (body == NULL || r == NULL)
		return hr_err_nomem(err);
	call.json = body;
	if (hr_rest_header(r, "X-Session-API-Key", row->server_key, true, err) != 0)
		return -1;
	return hr_rest_call(r, &call, NULL, err) == 0
		   ? 0
		   : hr_err_prefix(err, "the sandbox's server has no E2B API");
}
