/* Lists handrail's sandboxes at the providers, recorded here or not. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "host/mask.h"
#include "host/records/record.h"
#include "proto/json.h"

/* Returns true if the record of this name leads to the sandbox with this label. */
static bool
is_recorded(const char *state_dir, const char *sid, const char *run)
{
	HR_PUT struct json_object *o = NULL;
	HR_CLEAN(hr_record_done) struct hr_record r = {0};
	bool is = false;

	if (state_dir == NULL || !hr_sid_valid(sid) ||
	    hr_record_load(state_dir, sid, &r, NULL) != 0)
		return false;
	if (r.backend != NULL && hr_json_decode(r.backend, strlen(r.backend), &o, NULL) == 0)
		is = strcmp(hr_json_text_or(o, "run", ""), run) == 0;
	return is;
}

/* Returns true if that record, or a record of the pool, leads to it. */
static bool
is_known(const char *state_dir, const char *sid, const char *run)
{
	HR_FREE char *pool = NULL;
	bool is = is_recorded(state_dir, sid, run);

	if (!is && state_dir != NULL && asprintf(&pool, "%s" HR_POOL_BELOW, state_dir) >= 0)
		is = is_recorded(pool, sid, run);
	return is;
}

/* Adds to each sandbox of the list its back-end, and whether it is recorded. */
static int
complete(struct hr_sandbox *s, char **text, struct hr_err *err)
{
	HR_PUT struct json_object *list = NULL;
	int r = 0;
	size_t i;

	if (hr_json_decode(*text, strlen(*text), &list, NULL) < 0)
		return hr_err_set(err, HR_E_INVAL, "the back-end's list of sandboxes is not JSON");
	for (i = 0; r == 0 && i < hr_json_count(list); i++) {
		struct json_object *o = hr_json_entry(list, i);
		bool is = is_known(
		    s->state_dir, hr_json_text_or(o, "sid", ""), hr_json_text_or(o, "run", ""));

		if (json_object_object_add(o, "recorded", json_object_new_boolean(is)) != 0 ||
		    json_object_object_add(o, "runtime", json_object_new_string(s->ops->name)) != 0)
			r = hr_err_nomem(err);
	}
	free(*text);
	*text = r == 0 ? hr_json_string(list, HR_JSON_BODY_MAX, err) : NULL;
	return *text != NULL ? 0 : -1;
}

int
hr_sandbox_found(const struct hr_config *c, const struct hr_sandbox_options *o, char **ret_json,
    struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = hr_sandbox_open(c, o, err);
	int r = 0;

	*ret_json = NULL;
	if (s == NULL)
		return -1;
	if (s->ops->found == NULL)
		r = (*ret_json = strdup("[]")) != NULL ? 0 : hr_err_nomem(err);
	else if ((r = s->ops->found(s->self, ret_json, err)) == 0)
		r = complete(s, ret_json, err);
	if (r != 0)
		hr_mask_error(s, err);
	return r;
}

int
hr_sandbox_end_found(const struct hr_config *c, const struct hr_sandbox_options *o, const char *id,
    struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = hr_sandbox_open(c, o, err);
	int r;

	if (s == NULL)
		return -1;
	r = s->ops->end_found != NULL
		? s->ops->end_found(s->self, id, err)
		: hr_err_set(err, HR_E_RUNTIME, "%s runtime does not support ending by an id",
		      s->ops->name);
	if (r != 0)
		hr_mask_error(s, err);
	return r;
}
