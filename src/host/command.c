/* The start command, byte for byte as the original's from the port on. Git settings are never on
 * it. */
#include "config.h"

#include "host/command.h"

#include "base/err.h"
#include "host/config/settings.h"

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
