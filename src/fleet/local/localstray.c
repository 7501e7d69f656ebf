#include "config.h"

#include "fleet/local/local_int.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "proto/json.h"

/* Parses the list in text, which it frees. Returns NULL with *err set. */
static struct json_object *
list_of(char *text, struct hr_err *err)
{
	struct json_object *list = NULL;

	if (text != NULL && hr_json_decode(text, strlen(text), &list, NULL) != 0)
		(void)hr_err_set(err, HR_E_INVAL, "the list of sandboxes is not JSON");
	free(text);
	return list;
}

int
hr_local_list_recorded(const char *dir, hr_fleet_id_fn *fn, void *arg, struct hr_err *err)
{
	HR_PUT struct json_object *list = list_of(hr_sandbox_list(dir, err), err);
	size_t i;

	if (list == NULL)
		return -1;
	for (i = 0; i < hr_json_count(list); i++)
		fn(arg, hr_json_text_or(hr_json_entry(list, i), "sid", ""));
	return 0;
}

static struct hr_sandbox_options
options_of(const struct hr_fleet_options *o, const char *dir)
{
	return (struct hr_sandbox_options){
	    .environ = o->environ, .headless = true, .state_dir = dir};
}

/* Lists sandboxes. Returns NULL with *err set. */
static struct json_object *
found(const struct hr_fleet_options *o, const char *dir, struct hr_err *err)
{
	struct hr_sandbox_options with = options_of(o, dir);
	char *text = NULL;

	return hr_sandbox_found(o->config, &with, &text, err) == 0 ? list_of(text, err) : NULL;
}

static bool
is_stray(struct json_object *o)
{
	return hr_json_true_at(o, "ours") && !hr_json_true_at(o, "recorded");
}

int
hr_local_list_strays(const struct hr_fleet_options *o, const char *dir, hr_fleet_id_fn *fn,
    void *arg, struct hr_err *err)
{
	HR_PUT struct json_object *list = found(o, dir, err);
	size_t i;

	if (list == NULL)
		return -1;
	for (i = 0; i < hr_json_count(list); i++)
		if (is_stray(hr_json_entry(list, i)))
			fn(arg, hr_json_text_or(hr_json_entry(list, i), "sid", ""));
	return 0;
}

int
hr_local_end_stray(
    const struct hr_fleet_options *o, const char *dir, const char *id, struct hr_err *err)
{
	struct hr_sandbox_options with = options_of(o, dir);
	struct json_object *it;
	HR_PUT struct json_object *list = found(o, dir, err);
	int r = list != NULL ? 0 : -1;
	size_t i;

	for (i = 0; r == 0 && i < hr_json_count(list); i++) {
		it = hr_json_entry(list, i);
		if (is_stray(it) && strcmp(hr_json_text_or(it, "sid", ""), id) == 0)
			r = hr_sandbox_end_found(
			    o->config, &with, hr_json_text_or(it, "id", ""), err);
	}
	return r;
}
