/* Applies settings of a single back-end: its table names them, so they are known once it is chosen;
 * values given before are kept in the configuration. Also finds settings that it does not apply. */
#include "config.h"

#include "host/config/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/nearest.h"
#include "base/span.h"
#include "base/err.h"
#include "proto/json.h"

/* Keys and options share one enumeration of types. */
_Static_assert((int)HR_OPTION_TEXT == (int)HR_KEY_TEXT && (int)HR_OPTION_MAP == (int)HR_KEY_MAP,
    "one enumeration");

static const struct hr_key *
find(const struct hr_config *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->own_n; i++)
		if (strcmp(c->own[i].name, name) == 0)
			return &c->own[i];
	return NULL;
}

static int
unknown(const struct hr_config *c, const char *section, const char *name, struct hr_err *err)
{
	const char *names[64], *near;
	size_t n = 0;

	for (; n < c->own_n && n < 64; n++)
		names[n] = c->own[n].name;
	near = hr_nearest(name, names, n);
	return hr_err_set(err, HR_E_INVAL, "the back-end %s has no setting \"%s\"%s%s%s", section,
	    name, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
	    near != NULL ? "\"?" : "");
}

static int
put_text(struct hr_config *c, const struct hr_key *k, const char *text, struct hr_err *err)
{
	struct json_object *v = hr_config_convert(k, text, NULL);

	if (v == NULL)
		return hr_config_wrong_type(k, text, err);
	return hr_config_put(c, k, v, err);
}

static int
from_file(struct hr_config *c, const char *section, struct hr_err *err)
{
	struct json_object *table = NULL;
	const struct hr_key *k;

	if (c->later == NULL || !json_object_object_get_ex(c->later, section, &table))
		return 0;
	json_object_object_foreach(table, name, v)
	{
		k = find(c, name);
		if (k == NULL)
			return unknown(c, section, name, err);
		if (!hr_config_fits(k, v))
			return hr_err_set(
			    err, HR_E_INVAL, "\"%s\" in [%s] is of the wrong type", name, section);
		if (hr_config_put(c, k, json_object_get(v), err) < 0)
			return -1;
	}
	return 0;
}

static int
from_environment(struct hr_config *c, struct hr_err *err)
{
	char name[HR_VARIABLE_MAX];
	const char *text;
	size_t i;

	for (i = 0; i < c->own_n; i++) {
		hr_config_variable(&c->own[i], name);
		text = hr_env_get(hr_strv_list(&c->env), name);
		if (text != NULL && put_text(c, &c->own[i], text, err) < 0)
			return -1;
	}
	return 0;
}

/* Applies only this section: another back-end's settings have no effect. */
static int
from_caller(struct hr_config *c, const char *section, struct hr_err *err)
{
	size_t n = strlen(section);
	const struct hr_key *k;

	if (c->set == NULL)
		return 0;
	json_object_object_foreach(c->set, key, v)
	{
		if (strncmp(key, section, n) != 0 || key[n] != '.')
			continue;
		k = find(c, key + n + 1);
		if (k == NULL)
			return unknown(c, section, key + n + 1, err);
		if (put_text(c, k, json_object_get_string(v), err) < 0)
			return -1;
	}
	return 0;
}

int
hr_config_own(struct hr_config *c, const char *section, const struct hr_backend_option *options,
    struct hr_err *err)
{
	struct json_object *v;
	size_t n = 0;

	while (options != NULL && options[n].key != NULL)
		n++;
	c->own = calloc(n + 1, sizeof(*c->own));
	if (c->own == NULL)
		return hr_err_nomem(err);
	for (; c->own_n < n; c->own_n++) {
		const struct hr_backend_option *o = &options[c->own_n];

		c->own[c->own_n] = (struct hr_key){
		    section, o->key, (enum hr_key_type)o->type, o->fallback, o->secret};
		v = o->fallback != NULL ? json_tokener_parse(o->fallback) : NULL;
		if (o->fallback != NULL && v == NULL)
			return hr_err_set(
			    err, HR_E_INVAL, "the default of %s.%s is not JSON", section, o->key);
		if (hr_config_put(c, &c->own[c->own_n], v, err) < 0)
			return -1;
	}
	if (hr_section_known(section))
		return 0; /* the back-end has no settings of its own */
	return from_file(c, section, err) < 0 || from_environment(c, err) < 0 ||
		       from_caller(c, section, err) < 0
		   ? -1
		   : 0;
}

/* ---- settings that the back-end does not apply ---- */

static bool
is_heeded(const struct hr_config *c, const char *const *heeds, const char *key)
{
	const char *value = hr_config_text(c, key), *is;
	size_t len = strlen(key);

	for (; heeds != NULL && *heeds != NULL; heeds++) {
		is = strchr(*heeds, '=');
		if (is == NULL && strncmp(key, *heeds, strlen(*heeds)) == 0)
			return true;
		if (is != NULL && (size_t)(is - *heeds) == len && strncmp(key, *heeds, len) == 0 &&
		    value != NULL && strcmp(value, is + 1) == 0)
			return true;
	}
	return false;
}

/* Returns true for settings that are known from the original, but not implemented (doc/host.md,
 * "Keys of settings"). */
static bool
is_undone(const struct hr_key *k)
{
	static const char *const names[] = {"rm_all_containers", "user_id", "initialize_plugins",
	    "close_delay", "trusted_dirs", "unix_socket", "auto_restart", "max_restarts", NULL};

	return (strcmp(k->section, "sandbox") == 0 && hr_is_one_of(k->name, names)) ||
	       strcmp(k->section, "monitoring") == 0;
}

/* Returns true for settings of containers, which other back-ends ignore. */
static bool
is_of_containers(const struct hr_key *k)
{
	static const char *const names[] = {"enable_gpu", "cuda_visible_devices",
	    "additional_networks", "docker_runtime_kwargs", "use_host_network",
	    "runtime_binding_address", NULL};

	return strcmp(k->section, "sandbox") == 0 && hr_is_one_of(k->name, names);
}

static bool
is_default(const struct hr_config *c, const struct hr_key *k, const char *key)
{
	struct json_object *v = hr_config_value(c, key);
	HR_PUT struct json_object *fallback =
	    k->fallback != NULL ? json_tokener_parse(k->fallback) : NULL;

	return v == NULL || json_object_equal(v, fallback) != 0;
}

/* Refuses the mode egress where the back-end has no rules: an Engine would look for a network of
 * that name. */
static int
check_egress(
    const struct hr_config *c, const char *kind, const char *const *heeds, struct hr_err *err)
{
	const char *mode = hr_config_text(c, "sandbox.security.network_mode");

	return mode == NULL || strcmp(mode, "egress") != 0 || is_heeded(c, heeds, "sandbox.network")
		   ? 0
		   : hr_err_set(err, HR_E_INVAL,
			 "sandbox.security.network_mode is egress, but the back-end %s does not "
			 "support that: use the back-end box",
			 kind);
}

int
hr_config_heeded(const struct hr_config *c, const char *kind, const char *const *heeds,
    hr_warn_fn *warn, void *arg, struct hr_err *err)
{
	char key[HR_VARIABLE_MAX], text[300];
	size_t i;

	if (check_egress(c, kind, heeds, err) < 0)
		return -1;
	for (i = 0; i < hr_keys_all_n; i++) {
		const struct hr_key *k = &hr_keys_all[i];
		const bool network =
		    strcmp(k->section, "sandbox") == 0 && strncmp(k->name, "network", 7) == 0;
		bool security = network || strcmp(k->section, "sandbox.security") == 0;
		bool undone = is_undone(k), of_containers = is_of_containers(k);

		if (!security && !undone && !of_containers &&
		    strcmp(k->section, "sandbox.limits") != 0)
			continue;
		(void)snprintf(key, sizeof(key), "%s.%s", k->section, k->name);
		if (is_heeded(c, heeds, key) || is_default(c, k, key))
			continue;
		if (security)
			return hr_err_set(err, HR_E_INVAL,
			    "%s is set, but the back-end %s does not support it: unset it, or use "
			    "another back-end, such as %s",
			    key, kind, network ? "box" : "docker");
		if (undone)
			(void)snprintf(text, sizeof(text),
			    "%s is set but has no effect: no back-end supports it", key);
		else
			(void)snprintf(text, sizeof(text),
			    "%s is set but has no effect: the back-end %s does not %s", key, kind,
			    of_containers ? "support it" : "have this limit");
		if (warn != NULL)
			warn(arg, text);
	}
	if (warn != NULL && hr_config_text(c, "sandbox.cuda_visible_devices") != NULL &&
	    !hr_config_bool(c, "sandbox.enable_gpu") &&
	    is_heeded(c, heeds, "sandbox.cuda_visible_devices"))
		warn(arg, "sandbox.cuda_visible_devices is set but has no effect: set "
			  "sandbox.enable_gpu too");
	return 0;
}
