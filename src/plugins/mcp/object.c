/* JSON values of several parts. Out of memory is NULL or false, and all that was given is freed:
 * a message that lacks a member is worse than none. */
#include "config.h"

#include <stdarg.h>

#include <json-c/json.h>

#include "plugins/mcp/hub.h"

bool
mcp_put(struct json_object *o, const char *key, struct json_object *value)
{
	if (o != NULL && value != NULL && json_object_object_add(o, key, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

bool
mcp_append(struct json_object *list, struct json_object *value)
{
	if (list != NULL && value != NULL && json_object_array_add(list, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

struct json_object *
mcp_object(const char *key, ...)
{
	struct json_object *o = json_object_new_object();
	bool whole = o != NULL;
	va_list ap;

	va_start(ap, key);
	for (; key != NULL; key = va_arg(ap, const char *))
		whole = mcp_put(o, key, va_arg(ap, struct json_object *)) && whole;
	va_end(ap);
	if (whole)
		return o;
	json_object_put(o);
	return NULL;
}
