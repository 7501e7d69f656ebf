/* The configuration from inside: values as json-c objects. */
#ifndef HR_HOST_CONFIG_SETTINGS_H
#define HR_HOST_CONFIG_SETTINGS_H

#include "base/strv.h"
#include "host/config/schema.h"
#include "host/handrail-backend.h"

struct json_object;

struct hr_config {
	struct json_object *values; /* section -> key -> value */
	bool runtime_named;         /* core.runtime is the caller's word, not a file's */
	/* For hr_config_own(): sections that nobody knows yet, as in a file; what was set, which is
	 * text; and the environment with what ".env" adds. */
	struct json_object *later, *set;
	struct hr_strv env;
	struct hr_key *own; /* keys of the kind; its names are borrowed */
	size_t own_n;
	hr_warn_fn *warn; /* while loading */
	void *warn_arg;
};

static inline void
hr_config_clean(struct hr_config **c) /* for HR_CLEAN() */
{
	hr_config_free(*c);
}

struct hr_config *hr_config_copy(const struct hr_config *c, struct hr_err *err);

/* Borrowed; NULL: not set. key is "SECTION.KEY". */
struct json_object *hr_config_value(const struct hr_config *c, const char *key);
int hr_config_put(
    struct hr_config *c, const struct hr_key *k, struct json_object *v_take, struct hr_err *err);
int hr_config_put_text(struct hr_config *c, const char *key, const char *text, struct hr_err *err);

/* From the environment's text to a value of the key's type (doc/host.md, "Settings"); NULL with
 * *err. */
struct json_object *hr_config_convert(const struct hr_key *k, const char *text, struct hr_err *err);

/* Sets *err to what the key's value must be. Returns -1. The text is named unless it is a secret.
 */
int hr_config_wrong_type(const struct hr_key *k, const char *text, struct hr_err *err);

/* All of `root`, parsed TOML, into c. */
int hr_config_apply(
    struct hr_config *c, struct json_object *root, const char *file, struct hr_err *err);
void
hr_config_warn(struct hr_config *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The settings of a kind, with all that was said of them: an unknown key is an error. Once. */
int hr_config_own(struct hr_config *c, const char *section, const struct hr_backend_option *options,
    struct hr_err *err);

/* Is everything heeded that was set of limits and security? Otherwise warn is told of a limit, and
 * -1 of a promise of security. warn is also told of a setting that no kind does. heeds: as in
 * struct hr_sandbox_ops. */
int hr_config_heeded(const struct hr_config *c, const char *kind, const char *const *heeds,
    hr_warn_fn *warn, void *arg, struct hr_err *err);

/* The name of a key's variable. */
#define HR_VARIABLE_MAX 96
void hr_config_variable(const struct hr_key *k, char name[HR_VARIABLE_MAX]);
/* Is that a value of the key's type? */
bool hr_config_fits(const struct hr_key *k, struct json_object *v);

/* What follows from the values together (doc/host.md, "What follows from settings together"). */
int hr_config_finish(struct hr_config *c, struct hr_err *err);

/* The value of NAME in "NAME=value" texts; NULL: not there, or empty. */
const char *hr_env_get(const char *const *env, const char *name);

#endif
