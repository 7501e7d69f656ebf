/* Reads the rules of a sandbox's network. */
#include "config.h"

#include "host/config/rules.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/err.h"
#include "base/clean.h"
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
		(void)hr_json_err(err, HR_E_INVAL, &why, "the rules are not JSON");
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

/* Returns the directory of the presets, which the caller frees. */
static char *
presets_of(const char *const *env)
{
	const char *data = hr_env_get(env, "HANDRAIL_DATADIR");

	return hr_path_join(data != NULL ? data : HR_PKGDATADIR, "network");
}

static int
is_preset(const struct dirent *e)
{
	const char *end = strrchr(e->d_name, '.');

	return end != NULL && strcmp(end, ".json") == 0;
}

int
hr_rules_presets(const char *const *env, struct hr_strv *ret, struct hr_err *err)
{
	HR_FREE char *dir = presets_of(env);
	HR_FREE struct dirent **list = NULL;
	int i, n = dir != NULL ? scandir(dir, &list, is_preset, alphasort) : 0;

	for (i = 0; i < n; i++) {
		hr_strv_addf(ret, "%.*s", (int)(strlen(list[i]->d_name) - 5), list[i]->d_name);
		free(list[i]);
	}
	if (n < 0)
		return hr_err_sys(err, errno, "read %s", dir);
	return dir == NULL || ret->failed ? hr_err_nomem(err) : 0;
}

struct egress_policy *
hr_rules_read(struct json_object *o, const char *const *env, struct hr_err *err)
{
	HR_FREE char *presets = presets_of(env);

	return presets != NULL ? egress_policy_read(o, presets, err) : hr_err_null(err);
}

/* Returns the index of an entry in a list of the rules, or -1. */
static long
find(struct json_object *list, const char *entry)
{
	size_t i;

	for (i = 0; i < hr_json_count(list); i++)
		if (hr_json_str_is(hr_json_entry(list, i), entry))
			return (long)i;
	return -1;
}

static int
add(struct json_object *o, const char *name, const char *entry, struct hr_err *err)
{
	struct json_object *list = hr_json_typed_at(o, name, HR_PY_LIST);

	if (list == NULL) {
		list = json_object_new_array();
		if (hr_json_set(o, name, list, err) < 0)
			return -1;
	}
	return find(list, entry) >= 0 ? 0
				      : hr_json_append(list, json_object_new_string(entry), err);
}

int
hr_rules_allow(struct json_object *o, const char *const *env, const char *entry, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv presets = {0};
	size_t i = 0;

	if (hr_rules_presets(env, &presets, err) < 0)
		return -1;
	while (i < presets.n && strcmp(presets.v[i], entry) != 0)
		i++;
	return add(o, i < presets.n ? "presets" : "allowOut", entry, err);
}

int
hr_rules_deny(struct json_object *o, const char *const *env, const char *entry, struct hr_err *err)
{
	struct json_object *allowed = hr_json_at(o, "allowOut");
	long at = find(allowed, entry);

	(void)env;
	if (at < 0) {
		allowed = hr_json_at(o, "presets");
		at = find(allowed, entry);
	}
	if (at >= 0)
		return json_object_array_del_idx(allowed, (size_t)at, 1) == 0 ? 0
									      : hr_err_nomem(err);
	if (strspn(entry, "0123456789./") == strlen(entry) ||
	    (strchr(entry, ':') != strrchr(entry, ':') &&
		strspn(entry, "0123456789abcdefABCDEF.:/") == strlen(entry)))
		return add(o, "denyOut", entry, err);
	return hr_err_set(err, HR_E_INVAL,
	    "\"%.300s\" is neither in allowOut nor a preset, and only an address or a range can "
	    "be denied",
	    entry);
}
