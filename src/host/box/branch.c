/* Keeps the settings with which a box was started, and starts its branches from them. */
#include "config.h"

#include "host/box/branch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "base/err.h"
#include "base/path.h"
#include "base/span.h"
#include "host/config/settings.h"
#include "proto/json.h"

/* A file in the box's directory: {"settings": {KEY: VALUE}, "plugins": [...], "env": [...]}. */
#define SETTINGS "settings"
#define SETTINGS_MAX (16u << 20)
#define EGRESS "egress"
#define PLACEHOLDERS EGRESS "/placeholders.json"

/* Returns true for a setting that affects a box, and is no secret. */
static bool
is_kept(const struct hr_key *k)
{
	static const char *const core[] = {"debug", "run_as_openhands", "workspace_base",
	    "workspace_mount_path", "workspace_mount_path_in_sandbox", NULL};

	return !k->secret && (strncmp(k->section, "sandbox", 7) == 0 ||
				 (strcmp(k->section, "core") == 0 && hr_is_one_of(k->name, core)));
}

/* Adds a setting, if it has a value. A directory gets its absolute path, since the branch may be
 * started in another one. */
static int
add(struct json_object *o, const struct hr_config *c, const struct hr_key *k, struct hr_err *err)
{
	static const char *const directories[] = {
	    "box.root", "core.workspace_base", "core.workspace_mount_path", NULL};
	HR_FREE char *path = NULL;
	char key[128];
	struct json_object *v;

	(void)snprintf(key, sizeof(key), "%s.%s", k->section, k->name);
	v = hr_config_value(c, key);
	if (v == NULL)
		return 0;
	if (!hr_is_one_of(key, directories) || hr_json_text(v) == NULL)
		return hr_json_set(o, key, json_object_get(v), err);
	path = hr_path_absolute(hr_json_text(v), err);
	return path != NULL ? hr_json_set(o, key, json_object_new_string(path), err) : -1;
}

int
hr_box_keep_settings(const struct hr_box *b, struct hr_err *err)
{
	HR_FREE char *path = hr_sidecar_path(&b->side, SETTINGS);
	const struct hr_config *c = b->h->config;
	struct json_object *settings = json_object_new_object();
	HR_PUT struct json_object *o = hr_json_object(err, "settings", settings, "plugins",
	    hr_json_list(NULL, b->h->plugins), "env", hr_json_list(NULL, b->h->env), NULL);
	HR_BUF(text, SETTINGS_MAX);
	size_t i;

	if (path == NULL || o == NULL)
		return hr_err_nomem(err);
	for (i = 0; i < hr_keys_all_n; i++)
		if (is_kept(&hr_keys_all[i]) && add(settings, c, &hr_keys_all[i], err) < 0)
			return -1;
	for (i = 0; i < c->own_n; i++)
		if (strcmp(c->own[i].name, "from") != 0 && add(settings, c, &c->own[i], err) < 0)
			return -1;
	hr_json_put_whole(&text, o);
	return hr_buf_check(&text, err) < 0
		   ? -1
		   : hr_path_write(path, hr_buf_str(&text), text.len, 0600, err);
}

int
hr_box_settings(const struct hr_box *b, struct json_object **ret, struct hr_err *err)
{
	HR_FREE char *path = hr_sidecar_path(&b->side, SETTINGS);
	HR_BUF(text, SETTINGS_MAX);
	struct hr_err e = {0};

	*ret = NULL;
	if (path == NULL)
		return hr_err_nomem(err);
	if (hr_path_read(path, &text, &e) < 0)
		return e.sys == ENOENT ? hr_err_set(err, HR_E_UNSUPPORTED,
					     "an earlier version of handrail started this box, and "
					     "kept no settings for a branch: start it again")
				       : hr_err_pass(err, &e);
	return hr_json_decode(hr_buf_str(&text), text.len, ret, NULL) == 0 &&
		       json_object_is_type(hr_json_at(*ret, "settings"), json_type_object)
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "%s is damaged", path);
}

struct hr_config *
hr_box_branch_config(
    const struct hr_config *c, struct json_object *kept, const char *rules, struct hr_err *err)
{
	struct json_object *settings = hr_json_at(kept, "settings"), *network = NULL;
	HR_CLEAN(hr_config_clean) struct hr_config *n = hr_config_copy(c, err);
	struct hr_config *done;
	char key[128];
	size_t i;

	if (n == NULL)
		return NULL;
	if (rules != NULL && hr_json_decode(rules, strlen(rules), &network, NULL) < 0) {
		(void)hr_err_set(err, HR_E_INVAL, "the rules of the network are not JSON");
		return NULL;
	}
	if (rules != NULL && hr_json_set(settings, "sandbox.network", network, err) < 0)
		return NULL;
	for (i = 0; i < hr_keys_all_n; i++) {
		(void)snprintf(
		    key, sizeof(key), "%s.%s", hr_keys_all[i].section, hr_keys_all[i].name);
		if (is_kept(&hr_keys_all[i]) &&
		    hr_config_put(
			n, &hr_keys_all[i], json_object_get(hr_json_at(settings, key)), err) < 0)
			return NULL;
	}
	/* the back-end's own settings come from the parent alone, as if the caller gave them */
	hr_strv_done(&n->env);
	hr_json_drop(&n->later);
	json_object_put(n->set);
	n->set = json_object_new_object();
	json_object_object_foreach(settings, name, v)
	{
		if (strncmp(name, "box.", 4) == 0 &&
		    hr_json_set(
			n->set, name, json_object_new_string(json_object_get_string(v)), err) < 0)
			return NULL;
	}
	if (hr_config_put_text(n, "core.runtime", "box", err) < 0)
		return NULL;
	done = n;
	n = NULL;
	return done;
}

/* Copies the placeholders, which files and variables of the branch hold. */
static int
take_placeholders(const struct hr_box *b, struct hr_err *err)
{
	HR_FREE char *from = hr_path_join(b->parent, PLACEHOLDERS);
	HR_FREE char *dir = hr_sidecar_path(&b->side, EGRESS);
	HR_FREE char *to = hr_sidecar_path(&b->side, PLACEHOLDERS);
	HR_BUF(text, SETTINGS_MAX);
	struct hr_err e = {0};

	if (from == NULL || dir == NULL || to == NULL)
		return hr_err_nomem(err);
	if (hr_path_read(from, &text, &e) < 0)
		return e.sys == ENOENT ? 0 : hr_err_pass(err, &e);
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return hr_err_sys(err, errno, "create %s", dir);
	return hr_path_write(to, hr_buf_str(&text), text.len, 0600, err);
}

int
hr_box_take_branch(const struct hr_box *b, struct hr_err *err)
{
	HR_FREE char *storage = b->prepared != NULL ? hr_sidecar_path(&b->side, "storage") : NULL;

	if (b->prepared == NULL)
		return 0;
	if (storage == NULL)
		return hr_err_nomem(err);
	return rename(b->prepared, storage) == 0 ? take_placeholders(b, err)
						 : hr_err_sys(err, errno, "create %s", storage);
}
