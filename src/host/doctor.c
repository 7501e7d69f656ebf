/* What a kind of sandbox needs on this machine, looked at before one is started (doc/host.md,
 * "doctor"). Everything is looked at, whatever is missing. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/path.h"
#include "host/docker/engine.h"
#include "host/common/error.h"
#include "host/common/module.h"
#include "host/portlock.h"
#include "host/sandbox.h"
#include "host/config/settings.h"
#include "proto/json.h"

#define TEXT_MAX_LEN 700

struct exam {
	const struct hr_config *config;
	const char *const *env;
	const char *state_dir;
	hr_finding_fn *fn;
	void *arg;
	bool bad;
};

static void found(struct exam *x, bool ok, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void
found(struct exam *x, bool ok, const char *what, const char *fmt, ...)
{
	char text[TEXT_MAX_LEN];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	x->bad |= !ok;
	x->fn(x->arg, ok, what, text);
}

/* ---- programs ---- */

/* On the PATH of the sandboxes; the caller frees. */
static char *
which(const struct exam *x, const char *name)
{
	const char *dirs = hr_env_get(x->env, "PATH"), *end;
	char *path;

	for (; dirs != NULL && *dirs != '\0'; dirs = *end == ':' ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (asprintf(&path, "%.*s/%s", (int)(end - dirs), dirs, name) < 0)
			return NULL;
		if (end > dirs && access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

static void
need_program(struct exam *x, const char *name, const char *hint)
{
	char *path = which(x, name);

	if (path != NULL)
		found(x, true, name, "%s", path);
	else
		found(x, false, name, "%s is not properly installed. %s", name, hint);
	free(path);
}

static void
need_file(struct exam *x, const char *what, const char *path, const char *hint)
{
	if (path != NULL && access(path, X_OK) == 0)
		found(x, true, what, "%s", path);
	else
		found(x, false, what, "%s is not properly installed. %s", what, hint);
}

/* ---- what every kind needs ---- */

static void
state_directory(struct exam *x)
{
	struct hr_error e = {0};

	if (hr_state_directory(x->state_dir, true, &e) != 0)
		found(x, false, "state directory", "%s", e.text);
	else if (access(x->state_dir, R_OK | W_OK | X_OK) != 0)
		found(x, false, "state directory", "%s cannot be written", x->state_dir);
	else
		found(x, true, "state directory", "%s", x->state_dir);
}

static void
ports(struct exam *x, const char *address)
{
	struct hr_portlock lock = HR_PORTLOCK_NONE;
	struct hr_error e = {0};
	int min, max;

	hr_port_range(HR_PORT_SERVER, &min, &max);
	if (hr_portlock_find(&lock, NULL, min, max, 20, address, NULL, &e) == 0)
		found(x, true, "ports", "free between %d and %d", min, max);
	else
		found(x, false, "ports", "%s", e.text);
	hr_portlock_release(&lock);
}

/* ---- kinds ---- */

static void
local(struct exam *x)
{
	const char *given = hr_env_get(x->env, "HANDRAIL_SERVER");

	need_file(x, "handraild", given != NULL ? given : HR_SBINDIR "/handraild",
	    "Install it, or name it in HANDRAIL_SERVER.");
	need_program(x, "bash", "Debian: bash.");
	need_program(x, "git", "Debian: git.");
	/* the server looks where administrators' programs are, too */
	if (access("/usr/sbin/nginx", X_OK) == 0)
		found(x, true, "nginx", "/usr/sbin/nginx");
	else
		need_program(x, "nginx", "Debian: nginx.");
	ports(x, "127.0.0.1");
}

static void
cli(struct exam *x)
{
	struct hr_error e = {0};
	struct hr_module m;
	char *path;

	need_program(x, "bash", "Debian: bash.");
	if (hr_module_open_own(&m, "handrail-cli.so", &e) == 0) {
		path = hr_module_path("handrail-cli.so", NULL);
		found(x, true, "handrail-cli.so", "%s", path != NULL ? path : "");
		free(path);
	} else {
		found(x, false, "handrail-cli.so", "%s", e.text);
	}
	hr_module_close(&m);
}

static void
image(struct exam *x, struct hr_engine *engine)
{
	const char *name = hr_config_text(x->config, "sandbox.runtime_container_image");
	struct hr_error e = {0};
	char path[1024];

	if (name == NULL) {
		found(x, false, "image",
		    "sandbox.runtime_container_image is not set; \"handrail build\" makes an "
		    "image");
		return;
	}
	(void)snprintf(path, sizeof(path), "/images/%s/json", name);
	if (hr_engine_call(engine, "GET", path, NULL, NULL, &e) == 0)
		found(x, true, "image", "%s", name);
	else
		found(x, false, "image", "%s", e.text);
}

static void
docker(struct exam *x)
{
	struct json_object *o = NULL;
	struct hr_engine engine = {0};
	struct hr_error e = {0};

	if (hr_engine_init(&engine, x->env, &e) != 0 ||
	    hr_engine_call(&engine, "GET", "/version", NULL, &o, &e) != 0) {
		found(x, false, "engine", "%s", e.text);
	} else {
		found(x, true, "engine", "version %s, API %s",
		    hr_json_text_or(o, "Version", "unknown"),
		    hr_json_text_or(o, "ApiVersion", "unknown"));
		image(x, &engine);
	}
	json_object_put(o);
	hr_engine_done(&engine);
	ports(x, "0.0.0.0");
}

int
hr_doctor(const struct hr_config *c, const char *const *env, const char *state_dir,
    hr_finding_fn *fn, void *arg, bool *ret_well, struct hr_error *err)
{
	static const struct {
		const char *name;
		void (*look)(struct exam *x);
	} kinds[] = {{"docker", docker}, {"eventstream", docker}, {"local", local}, {"cli", cli}};
	const char *kind = hr_config_text(c, "core.runtime");
	struct exam x = {.config = c, .env = env, .state_dir = state_dir, .fn = fn, .arg = arg};

	for (size_t i = 0; kind != NULL && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kind, kinds[i].name) != 0)
			continue;
		if (state_dir != NULL)
			state_directory(&x);
		kinds[i].look(&x);
		*ret_well = !x.bad;
		return 0;
	}
	return hr_error_set(err, HR_ERROR_VALUE,
	    "there is nothing to look at for the kind \"%s\"; known are: cli, docker, local",
	    kind != NULL ? kind : "");
}
