/* What clients of the fleet send to start a sandbox: it is refused with words, or has a factor that
 * is allowed, plugins that are texts, and a shape, which is the same each time and does not know
 * who asks or what is in the environment. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "fleet/request.h"
#include "proto/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool cond)
{
	if (!cond)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char first[HR_FLEET_SHAPE], again[HR_FLEET_SHAPE];
	struct json_object *request = NULL;
	struct hr_json_error why;
	struct hr_strv plugins = {0};
	struct hr_err err = {0};
	const char *wrong;
	size_t i;

	if (hr_json_decode((const char *)data, size, &request, &why) != 0)
		return 0;
	wrong = hr_fleet_request_wrong(request);
	must(wrong == NULL || *wrong != '\0');
	if (wrong == NULL) {
		must(hr_fleet_request_factor(request) >= 1 &&
		     hr_fleet_request_factor(request) <= HR_FLEET_FACTOR_MOST);
		hr_fleet_request_plugins(request, &plugins);
		for (i = 0; i < plugins.n; i++)
			must(strncmp(plugins.v[i], "--", 2) != 0);
		must(hr_fleet_request_shape(request, "x:1", first, &err) == 0);
		json_object_object_del(request, "environment");
		must(json_object_object_add(
			 request, "session_id", json_object_new_string("other")) == 0);
		must(hr_fleet_request_shape(request, "x:1", again, &err) == 0);
		must(strlen(first) == sizeof(first) - 1 && strcmp(first, again) == 0);
	}
	hr_strv_done(&plugins);
	json_object_put(request);
	return 0;
}
