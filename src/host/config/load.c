/* Loads the sources of settings: the TOML file, ".env", the environment; and settings derived from
 * them. */
#include "config.h"

#include "host/config/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/trust.h"
#include "host/common/kindfile.h"
#include "host/config/dotenv.h"
#include "base/err.h"
#include "base/path.h"
#include "host/config/mcpconf.h"
#include "host/config/toml.h"

#define DOTENV_MAX (1u << 20) /* maximum bytes, including an added line end */
#define NAME_MAX_LEN 96
#define LISTED_MAX 10 /* keys of a section that a warning lists */

/* ---- TOML ---- */

bool
hr_config_fits(const struct hr_key *k, struct json_object *v)
{
	switch (k->type) {
	case HR_KEY_TEXT: return json_object_is_type(v, json_type_string);
	case HR_KEY_INT: return json_object_is_type(v, json_type_int);
	case HR_KEY_FLOAT:
		return json_object_is_type(v, json_type_double) ||
		       json_object_is_type(v, json_type_int);
	case HR_KEY_BOOL: return json_object_is_type(v, json_type_boolean);
	case HR_KEY_LIST: return json_object_is_type(v, json_type_array);
	case HR_KEY_MAP: return json_object_is_type(v, json_type_object);
	}
	return false;
}

/* Resets a section: one in the file replaces all of it, so its keys return to their defaults
 * first. */
static int
reset_section(struct hr_config *c, const char *section, struct hr_err *err)
{
	struct hr_config *fresh = hr_config_new(err);
	struct json_object *s = NULL;

	if (fresh == NULL)
		return -1;
	(void)json_object_object_get_ex(fresh->values, section, &s);
	if (json_object_object_add(c->values, section, json_object_get(s)) != 0) {
		json_object_put(s);
		hr_config_free(fresh);
		return hr_err_nomem(err);
	}
	hr_config_free(fresh);
	return 0;
}

static int
section_error(const char *section, const char *file, const char *why, struct hr_err *err)
{
	if (strcmp(section, "kubernetes") == 0)
		return hr_err_set(err, HR_E_INVAL, "Invalid kubernetes configuration: %s", why);
	if (strcmp(section, "mcp") == 0)
		return hr_err_set(err, HR_E_INVAL, "Error in MCP sections in %s", file);
	return hr_err_set(err, HR_E_INVAL, "Error in [%s] section in %s: %s", section, file, why);
}

static int apply_section(struct hr_config *c, const char *section, struct json_object *table,
    const char *file, struct hr_err *err);

/* Warns of an unknown key, with the nearest one or, if the section is small, all that it has. */
static void
warn_of_key(struct hr_config *c, const char *section, const char *name)
{
	const char *near = hr_key_nearest(section, name);
	HR_BUF(all, 4096);
	size_t i, n = 0;

	for (i = 0; i < hr_keys_all_n; i++)
		if (strcmp(hr_keys_all[i].section, section) == 0)
			hr_buf_addf(
			    &all, "%s%s", n++ > 0 ? ", " : "; known are ", hr_keys_all[i].name);
	hr_config_warn(c, "Unknown config key \"%s\" in [%s] section%s%s%s", name, section,
	    near != NULL ? "; did you mean \"" : "",
	    near != NULL      ? near
	    : n <= LISTED_MAX ? hr_buf_str(&all)
			      : "",
	    near != NULL ? "\"?" : "");
}

static int
apply_key(struct hr_config *c, const char *section, const char *name, struct json_object *v,
    const char *file, struct hr_err *err)
{
	const struct hr_key *k = hr_key_find(section, name, strlen(name));
	bool lax = strcmp(section, "core") == 0;
	char inner[NAME_MAX_LEN], why[160];
	struct hr_err e = {0};

	if (k == NULL && json_object_is_type(v, json_type_object)) {
		(void)snprintf(inner, sizeof(inner), "%s.%s", section, name);
		if (hr_section_known(inner))
			return apply_section(c, inner, v, file, err);
	}
	if (k == NULL) {
		warn_of_key(c, section, name);
		return 0;
	}
	if (!hr_config_fits(k, v)) {
		hr_config_warn(
		    c, "The value of \"%s\" in [%s] is of the wrong type", name, section);
		(void)snprintf(why, sizeof(why), "\"%s\" is of the wrong type", k->name);
		return lax ? 0 : section_error(section, file, why, err);
	}
	if (strcmp(section, "mcp") == 0) {
		v = hr_mcpconf_check(k->name, v, &e);
		if (v == NULL)
			hr_config_warn(c, "%s in [mcp]: %s", name, e.msg);
		return v != NULL ? hr_config_put(c, k, v, err)
				 : section_error(section, file, e.msg, err);
	}
	return hr_config_put(c, k, json_object_get(v), err);
}

static int
apply_section(struct hr_config *c, const char *section, struct json_object *table, const char *file,
    struct hr_err *err)
{
	if (strcmp(section, "core") != 0 && reset_section(c, section, err) < 0)
		return -1;
	json_object_object_foreach(table, name, v)
	{
		if (apply_key(c, section, name, v, file, err) < 0)
			return -1;
	}
	return 0;
}

/* Keeps an unknown section, which may be the back-end's. */
static int
keep_section(struct hr_config *c, const char *section, struct json_object *table)
{
	if (c->later == NULL && (c->later = json_object_new_object()) == NULL)
		return -1;
	if (json_object_object_add(c->later, section, json_object_get(table)) == 0)
		return 0;
	json_object_put(table);
	return -1;
}

static int
stop(void *arg, const char *path)
{
	(void)arg;
	(void)path;
	return 1;
}

/* Warns of unknown sections. A section is known if it is that of the chosen back-end, which the
 * command line may name before and after loading, or of any back-end that is a file: `ps` and `run`
 * need not choose one. */
static void
warn_of_sections(struct hr_config *c, const char *const *env, const char *before, const char *file)
{
	const char *kind = hr_config_text(c, "core.runtime");
	const char *dirs = hr_env_get(env, "OH_RUNTIME_PLUGIN_PATH");
	char inner[NAME_MAX_LEN];
	bool meant;

	if (c->later == NULL)
		return;
	json_object_object_foreach(c->later, section, table)
	{
		(void)table;
		if ((kind == NULL || strcmp(section, kind) != 0) && strcmp(section, before) != 0 &&
		    hr_kindfile_find(dirs, section, stop, NULL) == 0) {
			(void)snprintf(inner, sizeof(inner), "sandbox.%s", section);
			meant = hr_section_known(inner);
			hr_config_warn(c, "Unknown section [%s] in %s%s%s%s", section, file,
			    meant ? "; did you mean [" : "", meant ? inner : "", meant ? "]?" : "");
		}
	}
}

/* Warns of a value in the place of a section. */
static void
warn_of_top(struct hr_config *c, const char *name, const char *file)
{
	if (hr_key_find("core", name, strlen(name)) != NULL)
		hr_config_warn(
		    c, "\"%s\" is in no section of %s: write it below [core]", name, file);
	else
		hr_config_warn(c, "Unknown section [%s] in %s", name, file);
}

int
hr_config_apply(struct hr_config *c, struct json_object *root, const char *file, struct hr_err *err)
{
	if (!json_object_object_get_ex(root, "core", NULL))
		hr_config_warn(c,
		    "No [core] section in %s: its settings have their defaults; add an empty "
		    "[core] to silence this warning",
		    file);
	json_object_object_foreach(root, section, table)
	{
		if (hr_section_foreign(section))
			continue;
		if (!json_object_is_type(table, json_type_object)) {
			warn_of_top(c, section, file);
			continue;
		}
		if (!hr_section_known(section)) {
			if (keep_section(c, section, table) != 0)
				return hr_err_nomem(err);
			continue;
		}
		if (apply_section(c, section, table, file, err) < 0)
			return -1;
	}
	return 0;
}

/* Loads the file. Skips an untrusted file that the caller did not name, so that a user who can
 * write in a directory cannot block others who work there. A named file that cannot be read is an
 * error, and so is a trusted file that cannot be parsed. */
static int
load_toml(struct hr_config *c, const char *named, struct hr_err *err)
{
	const char *file = named != NULL ? named : "config.toml";
	const char *base = hr_path_leaf(file);
	struct json_object *root = NULL;
	struct hr_err e = {0};
	HR_BUF(b, HR_TOML_MAX);
	int r = 0;

	if (hr_trust_read(file, HR_TRUST_NOBODY, &b, &e) != 0) {
		if (named != NULL && e.sys != ENOENT)
			r = hr_err_from(err, HR_E_INVAL, &e);
		else if (e.sys != ENOENT)
			hr_config_warn(c, "%s", e.msg);
	} else if (hr_toml_parse(hr_buf_str(&b), b.len, &root, &e) < 0) {
		/* continuing would drop the file's limits */
		r = hr_err_set(err, HR_E_INVAL, "Cannot parse %s: %s", file, e.msg);
	} else {
		r = hr_config_apply(c, root, base, err);
		json_object_put(root);
	}
	return r;
}

/* ---- the environment ---- */

void
hr_config_variable(const struct hr_key *k, char name[HR_VARIABLE_MAX])
{
	const char *parts[2] = {strcmp(k->section, "core") == 0 ? "" : k->section, k->name};
	size_t n = 0;
	size_t i;

	for (i = 0; i < 2; i++) {
		const char *p;

		for (p = parts[i]; *p != '\0' && n < HR_VARIABLE_MAX - 2; p++)
			name[n++] = (char)(*p == '.' ? '_' : toupper((unsigned char)*p));
		if (i == 0 && n > 0)
			name[n++] = '_';
	}
	name[n] = '\0';
}

static bool
sensitive(const char *name)
{
	return strstr(name, "KEY") != NULL || strstr(name, "TOKEN") != NULL ||
	       strstr(name, "SECRET") != NULL || strncmp(name, "MCP_", 4) == 0;
}

static int
load_environment(struct hr_config *c, const char *const *env, struct hr_err *err)
{
	char name[HR_VARIABLE_MAX];
	struct hr_err e = {0};
	struct json_object *v;
	const char *text;
	size_t i;

	for (i = 0; i < hr_keys_all_n; i++) {
		hr_config_variable(&hr_keys_all[i], name);
		text = hr_env_get(env, name);
		if (text == NULL)
			continue;
		v = hr_config_convert(&hr_keys_all[i], text, &e);
		/* The network would have other rules than were asked for. */
		if (v == NULL && &hr_keys_all[i] == hr_key_find("sandbox", "network", 7))
			return hr_err_set(err, HR_E_INVAL, "%s: %s", name, e.msg);
		if (v == NULL)
			hr_config_warn(c, "Error setting env var %s=%s: %s", name,
			    sensitive(name) ? "******" : text, e.msg);
		else if (hr_config_put(c, &hr_keys_all[i], v, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- .env ---- */

/* Reads the current directory's file into b, if it can be trusted. */
static void
read_dotenv(struct hr_config *c, struct hr_buf *b)
{
	struct hr_err e = {0};

	if (hr_trust_read(".env", HR_TRUST_NOBODY, b, &e) == 0)
		return;
	hr_buf_reset(b);
	/* Python uses directories of that name */
	if (e.sys != ENOENT && e.sys != EISDIR)
		hr_config_warn(c, "%s", e.msg);
}

int
hr_config_load(struct hr_config *c, const char *file, const char *const *env, hr_warn_fn *warn,
    void *arg, struct hr_err *err)
{
	const char *kind = hr_config_text(c, "core.runtime");
	HR_BUF(text, DOTENV_MAX);
	HR_FREE char *before = strdup(kind != NULL ? kind : "");
	HR_FREE const char **all = NULL;
	int r;

	c->warn = warn;
	c->warn_arg = arg;
	read_dotenv(c, &text);
	hr_buf_addc(&text, '\n'); /* the text is never empty */
	all = text.p != NULL ? hr_dotenv_merge(env, text.p) : NULL;
	if (all == NULL || before == NULL) {
		c->warn = NULL;
		return hr_err_nomem(err);
	}
	hr_strv_done(&c->env);
	hr_strv_add_all(&c->env, all);
	r = c->env.failed ? hr_err_nomem(err) : load_toml(c, file, err);
	if (r == 0)
		r = load_environment(c, all, err);
	if (r == 0)
		r = hr_config_finish(c, err);
	warn_of_sections(c, env, before, file != NULL ? file : "config.toml");
	c->warn = NULL;
	return r;
}
