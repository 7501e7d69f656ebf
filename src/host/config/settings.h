/* Internals of the configuration: values as json-c objects. */
#ifndef HR_HOST_CONFIG_SETTINGS_H
#define HR_HOST_CONFIG_SETTINGS_H

#include "base/strv.h"
#include "host/config/schema.h"
#include "host/handrail-backend.h"

struct json_object;

struct hr_config {
	struct json_object *values; /* objects: section, then key, then value */
	bool runtime_named;         /* the caller set core.runtime, not a file */
	bool runtime_set;           /* the caller, a file or a variable set core.runtime */
	/* kept for hr_config_own(): unknown sections of the file; settings set as text; and the
	 * environment with the additions of ".env" */
	struct json_object *later, *set;
	struct hr_strv env;
	struct hr_key *own; /* keys of the back-end; their names are borrowed */
	size_t own_n;
	hr_warn_fn *warn; /* used while loading */
	void *warn_arg;
};

static inline void
hr_config_clean(struct hr_config **c) /* Frees *c, for HR_CLEAN(). */
{
	hr_config_free(*c);
}

struct hr_config *hr_config_copy(const struct hr_config *c, struct hr_err *err);

/* Returns a borrowed value, or NULL if it is not set. key is "SECTION.KEY". */
struct json_object *hr_config_value(const struct hr_config *c, const char *key);
int hr_config_put(
    struct hr_config *c, const struct hr_key *k, struct json_object *v_take, struct hr_err *err);
int hr_config_put_text(struct hr_config *c, const char *key, const char *text, struct hr_err *err);

/* Converts text from the environment to the key's type (doc/host.md, "Settings"). Returns NULL with
 * *err set on an error. */
struct json_object *hr_config_convert(const struct hr_key *k, const char *text, struct hr_err *err);

/* Sets *err to a message that names the values that the key accepts. Returns -1. The message quotes
 * the text unless it is a secret. */
int hr_config_wrong_type(const struct hr_key *k, const char *text, struct hr_err *err);

/* Applies all of `root`, parsed TOML, to c. */
int hr_config_apply(
    struct hr_config *c, struct json_object *root, const char *file, struct hr_err *err);
void
hr_config_warn(struct hr_config *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds the settings of a back-end, with the values already given for them; an unknown key is an
 * error. Call it once. */
int hr_config_own(struct hr_config *c, const char *section, const struct hr_backend_option *options,
    struct hr_err *err);

/* Checks that the back-end applies all limits and security settings that are set: otherwise warns
 * of a limit, and returns -1 for a security setting. Also warns of a setting that no back-end
 * implements. `heeds` is that of struct hr_sandbox_ops. */
int hr_config_heeded(const struct hr_config *c, const char *kind, const char *const *heeds,
    hr_warn_fn *warn, void *arg, struct hr_err *err);

/* Writes the name of a key's variable. */
#define HR_VARIABLE_MAX 96
void hr_config_variable(const struct hr_key *k, char name[HR_VARIABLE_MAX]);
/* Returns true if the value has the key's type. */
bool hr_config_fits(const struct hr_key *k, struct json_object *v);

/* Derives settings from others (doc/host.md, "Settings that depend on each other"). */
int hr_config_finish(struct hr_config *c, struct hr_err *err);

/* Returns the value of NAME in "NAME=value" strings, or NULL if it is missing or empty. */
const char *hr_env_get(const char *const *env, const char *name);

#endif
