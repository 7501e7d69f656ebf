/* Builds the start command; from the port on, it equals the original's byte for byte. Git settings
 * are never in it. */
#include "config.h"

#include "host/command.h"

#include <json-c/json.h>

#include "base/clean.h"
#include "base/err.h"
#include "base/text/text.h"
#include "base/random.h"
#include "base/process/spawn.h"
#include "host/config/settings.h"
#include "proto/json.h"

#define KEY_DIGITS 32

struct hr_command
hr_command_in_image(const struct hr_backend_host *h, int port)
{
	static const char *const prefix[] = {"/openhands/micromamba/bin/micromamba", "run", "-n",
	    "openhands", "poetry", "run", "python", "-u", "-m",
	    "openhands.runtime.action_execution_server", NULL};

	return (struct hr_command){.prefix = prefix,
	    .port = port,
	    .working_dir = hr_config_text(h->config, "core.workspace_mount_path_in_sandbox"),
	    .plugins = h->plugins,
	    .user_id = -1};
}

int
hr_command_key(const char *const *env, char **ret, struct hr_err *err)
{
	const char *given = hr_env_get(env, "SESSION_API_KEY");
	char text[KEY_DIGITS + 1];

	if (given == NULL && hr_random_hex(text, KEY_DIGITS, err) < 0)
		return -1;
	return hr_text_set(ret, given != NULL ? given : text, err);
}

void
hr_command_env(struct hr_strv *env, const struct hr_backend_host *h, const char *key,
    int vscode_port, const int app_ports[2])
{
	struct json_object *map = hr_config_value(h->config, "sandbox.runtime_startup_env_vars");
	long long gb = hr_config_int(h->config, "sandbox.limits.max_memory_gb");

	hr_strv_set_env(env, "PYTHONUNBUFFERED=1");
	hr_strv_set_envf(env, "VSCODE_PORT=%d", vscode_port);
	hr_strv_set_envf(env, "APP_PORT_1=%d", app_ports[0]);
	hr_strv_set_envf(env, "APP_PORT_2=%d", app_ports[1]);
	hr_strv_set_envf(env, "OPENHANDS_SESSION_ID=%s", h->sid);
	hr_strv_set_env(env, "PIP_BREAK_SYSTEM_PACKAGES=1");
	if (key != NULL)
		hr_strv_set_envf(env, "SESSION_API_KEY=%s", key);
	if (gb > 0)
		hr_strv_set_envf(env, "RUNTIME_MAX_MEMORY_GB=%lld", gb);
	if (hr_config_bool(h->config, "core.debug"))
		hr_strv_set_env(env, "DEBUG=true");
	if (!json_object_is_type(map, json_type_object))
		return;
	json_object_object_foreach(map, name, value)
	{
		hr_strv_set_envf(
		    env, "%s=%s", name, value != NULL ? json_object_get_string(value) : "");
	}
}

int
hr_command_worker_port(struct json_object *environment, int i)
{
	const char *text = hr_json_text_at(environment, i == 0 ? "WORKER_1" : "WORKER_2");
	long long n;

	return text != NULL && hr_text_python_int(text, &n) == 0 && n > 0 && n <= UINT16_MAX
		   ? (int)n
		   : 0;
}

int
hr_command_here(
    const struct hr_strv *words, const char *const *env, int *ret_status, struct hr_err *err)
{
	struct hr_spawn sp = {.argv = hr_strv_list(words), .umask = -1};
	HR_CLEAN(hr_strv_done) struct hr_strv own = {0};
	struct hr_err e = {0};
	int r;

	hr_strv_add_all(&own, env);
	hr_strv_unset_env(&own, "SESSION_API_KEY");
	sp.path = sp.argv[0];
	sp.envp = own.v;
	if (words->failed || own.failed)
		r = hr_err_nomem(err);
	else if ((r = hr_spawn_here(&sp, ret_status, &e)) != 0)
		r = hr_err_from(err, HR_E_RUNTIME, &e);
	return r;
}

int
hr_command_build(struct hr_strv *ret, const struct hr_command *c, const struct hr_config *cfg,
    const char *const *env, struct hr_err *err)
{
	bool openhands = hr_config_bool(cfg, "core.run_as_openhands");
	const char *user = c->username, *eval;

	hr_strv_add_all(ret, c->prefix);
	hr_strv_addf(ret, "%d", c->port);
	hr_strv_add(ret, "--working-dir");
	hr_strv_add(ret, c->working_dir);
	if (c->plugins != NULL && *c->plugins != NULL) {
		hr_strv_add(ret, "--plugins");
		hr_strv_add_all(ret, c->plugins);
	}
	if (user == NULL || *user == '\0')
		user = hr_env_get(env, "RUNTIME_USERNAME");
	hr_strv_add(ret, "--username");
	hr_strv_add(ret, user != NULL ? user : openhands ? "openhands" : "root");
	hr_strv_add(ret, "--user-id");
	if (c->user_id >= 0)
		hr_strv_addf(ret, "%ld", c->user_id);
	else if (hr_env_get(env, "RUNTIME_UID") != NULL)
		hr_strv_add(ret, hr_env_get(env, "RUNTIME_UID"));
	else
		hr_strv_add(ret, openhands ? "1000" : "0");
	eval = hr_config_text(cfg, "sandbox.browsergym_eval_env");
	if (eval != NULL && *eval != '\0') {
		hr_strv_add(ret, "--browsergym-eval-env");
		hr_strv_add_words(ret, eval);
	}
	if (!hr_config_bool(cfg, "core.enable_browser"))
		hr_strv_add(ret, "--no-enable-browser");
	return ret->failed ? hr_err_nomem(err) : 0;
}
