/* Holds the table of back-ends: built-in ones, and those in shared objects and programs. */
#include "config.h"

#include "host/backends.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/nearest.h"
#include "base/path.h"
#include "base/trust.h"
#include "base/err.h"
#include "host/common/kindfile.h"
#include "host/config/settings.h"

typedef const struct hr_sandbox_ops *entry_fn(unsigned abi);
/* as in src/host/program/program.h; the function is in a module */
typedef struct hr_sandbox_ops *program_fn(unsigned abi, const char *name, const char *path);
typedef int
check_fn(const char *name, const char *path, const char *const *given, struct hr_err *err);

/* A built-in back-end: a table, or a module's name, if it needs that module's libraries. */
#define CLOUDS "handrail-clouds.so"
static const struct {
	const char *name;
	const struct hr_sandbox_ops *ops;
	const char *file, *entry;
} builtin[] = {
    {"box", &hr_backend_box, NULL, NULL}, {"cli", NULL, "handrail-cli.so", "hr_backend_entry"},
    {"docker", &hr_backend_docker, NULL, NULL},
    {"kubernetes", NULL, "handrail-kubernetes.so", "hr_backend_entry"},
    {"local", &hr_backend_local, NULL, NULL}, {"remote", &hr_backend_remote, NULL, NULL},
    {"daytona", NULL, CLOUDS, "hr_daytona_entry"}, {"e2b", NULL, CLOUDS, "hr_e2b_entry"},
    {"modal", NULL, CLOUDS, "hr_modal_entry"}, {"runloop", NULL, CLOUDS, "hr_runloop_entry"},
    {"eventstream", &hr_backend_docker, NULL, NULL}, /* the original's older name of docker */
};

static const struct hr_sandbox_ops *
refuse(struct hr_module *m, struct hr_err *err, const char *path, const char *why)
{
	(void)hr_err_set(err, HR_E_RUNTIME, "Failed to import third-party runtime %s: %s", path,
	    why != NULL ? why : "unknown");
	hr_module_close(m);
	return NULL;
}

/* Returns the table of a module; m was opened from path by hr_module_open(), or `why` is the error
 * of that, otherwise NULL. */
static const struct hr_sandbox_ops *
load(struct hr_module *m, const char *path, const char *name, const char *why, struct hr_err *err)
{
	const struct hr_sandbox_ops *ops;
	struct hr_err none = {0};
	entry_fn *entry;
	void *symbol;

	if (why != NULL)
		return refuse(m, err, path, why);
	symbol = hr_module_symbol(m, name, &none);
	if (symbol == NULL)
		return refuse(m, err, path, none.msg);
	memcpy(&entry, &symbol, sizeof(entry));
	ops = entry(HR_BACKEND_ABI);
	if (ops == NULL || ops->abi != HR_BACKEND_ABI)
		return refuse(m, err, path, "it was made for another version of handrail");
	if (ops->name == NULL || ops->open == NULL || ops->free == NULL || ops->connect == NULL)
		return refuse(m, err, path, "its table lacks name, open, free or connect");
	return ops;
}

/* Checks a name, which becomes a section of config.toml, and a part of records and variables. */
static bool
is_name(const char *name)
{
	return *name != '\0' && strlen(name) <= 32 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name) &&
	       !hr_section_known(name);
}

/* Returns the table that represents a program, which belongs to m. Does not start the program. */
static const struct hr_sandbox_ops *
load_program(struct hr_module *m, const char *path, struct hr_err *err)
{
	const char *name = hr_kindfile_program(path);
	struct hr_err why = {0};
	struct hr_trusted t;
	program_fn *entry;
	void *symbol;

	if (!is_name(name))
		return refuse(m, err, path,
		    "the part after \"" HR_KINDFILE_PROGRAM
		    "\" in its name must be 1 to 32 of a to z, 0 to 9, _ "
		    "and -, and not the name of a section of settings");
	if (hr_trust_open(&t, path, HR_TRUST_NOBODY, &why) != 0)
		return refuse(m, err, path, why.msg);
	hr_trusted_done(&t);
	if (hr_module_open_own(m, CLOUDS, &why) != 0 ||
	    (symbol = hr_module_symbol(m, "hr_program_entry", &why)) == NULL)
		return refuse(m, err, path, why.msg);
	memcpy(&entry, &symbol, sizeof(entry));
	m->made = entry(HR_BACKEND_ABI, name, path);
	if (m->made == NULL)
		return refuse(m, err, path, "out of memory, or " CLOUDS " has another version");
	return m->made;
}

/* Checks that the program answers like a back-end. */
static int
check_program(
    const struct hr_module *m, const char *path, const char *const *env, struct hr_err *err)
{
	void *symbol = hr_module_symbol(m, "hr_programcheck_entry", err);
	check_fn *check;

	if (symbol == NULL)
		return -1;
	memcpy(&check, &symbol, sizeof(check));
	return check(hr_kindfile_program(path), path, env, err);
}

static const struct hr_sandbox_ops *
load_path(struct hr_module *m, const char *path, struct hr_err *err)
{
	struct hr_err why = {0};
	int r;

	if (hr_kindfile_program(path) != NULL)
		return load_program(m, path, err);
	r = hr_module_open(m, path, HR_TRUST_NOBODY, &why);
	return load(m, path, "hr_backend_entry", r != 0 ? why.msg : NULL, err);
}

static const struct hr_sandbox_ops *
load_own(struct hr_module *m, const char *file, const char *entry, struct hr_err *err)
{
	struct hr_err why = {0};
	int r = hr_module_open_own(m, file, &why);

	return load(m, file, entry, r != 0 ? why.msg : NULL, err);
}

static int
unknown(const char *name, const char *why, struct hr_err *err)
{
	const char *names[sizeof(builtin) / sizeof(*builtin)], *near;
	char known[256] = "";
	size_t i;

	for (i = 0; i < sizeof(builtin) / sizeof(*builtin); i++) {
		size_t n = strlen(known);

		names[i] = builtin[i].name;
		(void)snprintf(
		    known + n, sizeof(known) - n, "%s%s", i > 0 ? ", " : "", builtin[i].name);
	}
	near = hr_nearest(name, names, sizeof(names) / sizeof(*names));
	return hr_err_set(err, *why != '\0' ? HR_E_RUNTIME : HR_E_INVAL,
	    "Runtime %s not supported%s%s%snown are: %s and what is found in %s%s%s", name,
	    near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
	    near != NULL ? "\"? K" : ", k", known, HR_BACKENDDIR, *why != '\0' ? "; " : "", why);
}

struct lookup {
	const struct hr_sandbox_ops *ops;
	struct hr_module *m;
	struct hr_err *err;
};

static int
load_found(void *arg, const char *path)
{
	struct lookup *l = arg;

	l->ops = load_path(l->m, path, l->err);
	return l->ops != NULL ? 1 : -1;
}

const struct hr_sandbox_ops *
hr_backend_find(const char *name, bool named, const char *const *env, struct hr_module *m,
    hr_warn_fn *warn, void *arg, struct hr_err *err)
{
	struct hr_err why = {0};
	struct lookup l = {.m = m, .err = &why};
	size_t i;
	int r;

	*m = (struct hr_module)HR_MODULE_NONE;
	if (*name == '\0') {
		(void)hr_err_set(err, HR_E_INVAL,
		    "core.runtime is empty: it must name a back-end, such as docker or local");
		return NULL;
	}
	for (i = 0; i < sizeof(builtin) / sizeof(*builtin); i++)
		if (strcmp(builtin[i].name, name) == 0)
			return builtin[i].ops != NULL
				   ? builtin[i].ops
				   : load_own(m, builtin[i].file, builtin[i].entry, err);
	if (strchr(name, '/') != NULL && !named) {
		(void)hr_err_set(err, HR_E_INVAL,
		    "core.runtime is the file %s: a shared object is taken from the command line "
		    "only, not from a file of settings, a variable or a record; use \"-r %s\"",
		    name, name);
		return NULL;
	}
	if (strchr(name, '/') != NULL)
		return load_path(m, name, err);
	r = hr_kindfile_find(hr_env_get(env, "OH_RUNTIME_PLUGIN_PATH"), name, load_found, &l);
	if (r == 1)
		return l.ops;
	if (r < 0 && warn != NULL)
		warn(arg, why.msg);
	(void)unknown(name, why.msg, err);
	return NULL;
}

/* ---- the list ---- */

struct listing {
	hr_finding_fn *fn;
	void *arg;
	const char *const *env;
};

static void
tell(const struct listing *l, const char *name, struct hr_module *m,
    const struct hr_sandbox_ops *ops, const char *where, const struct hr_err *why)
{
	l->fn(l->arg, ops != NULL, name, ops != NULL ? where : why->msg);
	hr_module_close(m);
}

/* Lists the back-ends of a directory; a missing directory counts as empty. */
static int
list_in(const struct listing *l, const char *dir, struct hr_err *err)
{
	HR_FREE struct dirent **entries = NULL;
	int n = scandir(dir, &entries, NULL, alphasort), r = 0;
	char name[HR_KINDFILE_NAME], *path;
	int i;

	if (n < 0 && errno == ENOMEM)
		return hr_err_nomem(err);
	if (n < 0 && errno != ENOENT)
		l->fn(l->arg, false, dir, strerror(errno));
	for (i = 0; i < n; i++) {
		const struct hr_sandbox_ops *ops = NULL;
		struct hr_module m = HR_MODULE_NONE;
		struct hr_err why = {0};

		path = hr_kindfile_name(entries[i]->d_name, name)
			   ? hr_path_join(dir, entries[i]->d_name)
			   : NULL;
		if (path != NULL)
			ops = load_path(&m, path, &why);
		if (ops != NULL && hr_kindfile_program(path) != NULL &&
		    check_program(&m, path, l->env, &why) != 0)
			ops = NULL;
		if (path != NULL)
			tell(l, name, &m, ops, path, &why);
		free(path);
		free(entries[i]);
	}
	return r;
}

int
hr_backend_list(const char *const *env, hr_finding_fn *fn, void *arg, struct hr_err *err)
{
	const char *dirs = hr_env_get(env, "OH_RUNTIME_PLUGIN_PATH"), *end;
	const struct listing l = {fn, arg, env};
	int r = 0;
	size_t i;

	for (i = 0; i < sizeof(builtin) / sizeof(*builtin); i++) {
		struct hr_module m = HR_MODULE_NONE;
		const struct hr_sandbox_ops *ops = builtin[i].ops;
		struct hr_err why = {0};

		if (ops == NULL)
			ops = load_own(&m, builtin[i].file, builtin[i].entry, &why);
		tell(&l, builtin[i].name, &m, ops,
		    strcmp(builtin[i].name, "eventstream") == 0
			? "built in: docker, by its name in older versions of OpenHands"
			: "built in",
		    &why);
	}
	for (; r == 0 && dirs != NULL && *dirs != '\0'; dirs = *end == ':' ? end + 1 : end) {
		HR_FREE char *dir = NULL;

		end = strchrnul(dirs, ':');
		if (end == dirs)
			continue;
		dir = strndup(dirs, (size_t)(end - dirs));
		r = dir != NULL ? list_in(&l, dir, err) : hr_err_nomem(err);
	}
	return r == 0 ? list_in(&l, HR_BACKENDDIR, err) : r;
}
