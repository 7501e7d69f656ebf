/* A configuration file of any bytes: no crash, and what is taken is an object that can be written.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include <json-c/json.h>

#include "host/config/toml.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object *o = NULL;
	struct hr_err err = {0};

	if (hr_toml_parse((const char *)data, size, &o, &err) != 0) {
		if (err.code == HR_OK)
			abort();
		return 0;
	}
	if (!json_object_is_type(o, json_type_object) || json_object_to_json_string(o) == NULL)
		abort();
	json_object_put(o);
	return 0;
}
