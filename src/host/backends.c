/* Which kinds of sandboxes there are: built in, and found as shared objects. */
#include "config.h"

#include "host/sandbox.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "host/error.h"
#include "host/module.h"

#define PATH_TEXT_MAX 4096

typedef const struct hr_sandbox_ops *entry_fn(unsigned abi);

static const struct {
	const char *name;
	const struct hr_sandbox_ops *ops;
} builtin[] = {
    {"docker", &hr_backend_docker}, {"eventstream", &hr_backend_docker},
    {"local", &hr_backend_local}, {"cli", NULL}, /* a module, because of the editor in it */
};

#define CLI_FILE "handrail-cli.so"

static const struct hr_sandbox_ops *
refuse(void *object, struct hr_error *err, const char *path, const char *why)
{
	(void)hr_error_set(err, HR_ERROR_VALUE, "Failed to import third-party runtime %s: %s", path,
	    why != NULL ? why : "unknown");
	if (object != NULL)
		(void)dlclose(object);
	return NULL;
}

static const struct hr_sandbox_ops *
load(const char *path, void **ret_object, struct hr_error *err)
{
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct hr_sandbox_ops *ops;
	entry_fn *entry;
	void *symbol;

	if (object == NULL)
		return refuse(NULL, err, path, dlerror());
	symbol = dlsym(object, "hr_backend_entry");
	if (symbol == NULL)
		return refuse(object, err, path, "it exports no hr_backend_entry()");
	memcpy(&entry, &symbol, sizeof(entry));
	ops = entry(HR_BACKEND_ABI);
	if (ops == NULL || ops->abi != HR_BACKEND_ABI)
		return refuse(object, err, path, "it is made for another version of handrail");
	if (ops->name == NULL || ops->open == NULL || ops->free == NULL || ops->connect == NULL)
		return refuse(object, err, path, "its table lacks what every backend has");
	*ret_object = object;
	return ops;
}

static const struct hr_sandbox_ops *
load_own(const char *file, void **ret_object, struct hr_error *err)
{
	char *path = hr_module_path(file, err);
	const struct hr_sandbox_ops *ops = path != NULL ? load(path, ret_object, err) : NULL;

	free(path);
	return ops;
}

/* In one directory: 1 found, 0 not there, -1 broken. */
static int
look_in(const char *dir, size_t len, const char *name, const struct hr_sandbox_ops **ret,
    void **ret_object, struct hr_error *err)
{
	struct hr_buf path;
	int rc = 0;

	hr_buf_init(&path, PATH_TEXT_MAX);
	hr_buf_add(&path, dir, len);
	hr_buf_addf(&path, "/libhandrail-backend-%s.so", name);
	if (hr_buf_check(&path, NULL) == 0 && access(path.p, R_OK) == 0) {
		*ret = load(path.p, ret_object, err);
		rc = *ret != NULL ? 1 : -1;
	}
	hr_buf_done(&path);
	return rc;
}

const struct hr_sandbox_ops *
hr_backend_find(const char *name, const char *const *env, void **ret_object, hr_warn_fn *warn,
    void *arg, struct hr_error *err)
{
	const char *dirs = hr_env_get(env, "OH_RUNTIME_PLUGIN_PATH"), *end;
	const struct hr_sandbox_ops *ops = NULL;
	struct hr_error why = {0};
	int rc = 0;

	*ret_object = NULL;
	if (*name == '\0') {
		(void)hr_error_set(err, HR_ERROR_VALUE,
		    "core.runtime is empty: it is the kind of the sandbox, such as docker or "
		    "local");
		return NULL;
	}
	for (size_t i = 0; i < sizeof(builtin) / sizeof(*builtin); i++)
		if (strcmp(builtin[i].name, name) == 0)
			return builtin[i].ops != NULL ? builtin[i].ops
						      : load_own(CLI_FILE, ret_object, err);
	if (strchr(name, '/') != NULL)
		return load(name, ret_object, err);
	for (; rc == 0 && dirs != NULL && *dirs != '\0'; dirs = *end == ':' ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (end > dirs)
			rc = look_in(dirs, (size_t)(end - dirs), name, &ops, ret_object, &why);
	}
	if (rc == 0)
		rc = look_in(HR_BACKENDDIR, strlen(HR_BACKENDDIR), name, &ops, ret_object, &why);
	if (rc == 1)
		return ops;
	if (rc < 0 && warn != NULL)
		warn(arg, why.text);
	(void)hr_error_set(err, HR_ERROR_VALUE,
	    "Runtime %s not supported, known are: cli, docker, local and what is found in %s%s%s",
	    name, HR_BACKENDDIR, rc < 0 ? "; " : "", rc < 0 ? why.text : "");
	return NULL;
}
