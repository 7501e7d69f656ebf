/* Reads settings from the environment. */
#include "config.h"

#include "base/log.h"
#include "supervisor/settings/settings.h"

/* Sets LOG_JSON and DEBUG by their truth value, the other settings by the value itself. */
int
hr_settings_environment(
    struct hr_settings *c, const char *(*get)(const char *name), struct hr_err *err)
{
	static const struct {
		const char *name, *key;
	} names[] = {
	    {"RUNTIME_USERNAME", "runtime_username"},
	    {"SANDBOX_GROUP_ID", "sandbox_group"},
	    {"NO_CHANGE_TIMEOUT_SECONDS", "no_change_timeout"},
	    {"RUNTIME_MAX_MEMORY_GB", "max_memory_gb"},
	    {"INIT_PLUGIN_TIMEOUT", "init_plugin_timeout"},
	    {"VSCODE_PORT", "vscode_port"},
	    {"HANDRAIL_PLUGIN_PATH", "plugin_path"},
	    {"HANDRAIL_VIEWER_URL_FILE", "viewer_url_file"},
	    {"HANDRAIL_ALLOWED_HOSTS", "allowed_hosts"},
	    {"HANDRAIL_MCP", "mcp"},
	    {"HANDRAIL_PORT_PATHS", "port_paths"},
	    {"HANDRAIL_KEEP_OWNERS", "keep_owners"},
	    {"HANDRAIL_NETWORK_LOG", "network_log"},
	    {"HANDRAIL_SWEREX", "swerex"},
	    {"HANDRAIL_OPENHANDS_V1", "openhands_v1"},
	};
	enum hr_log_level level;
	const char *v;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		v = get(names[i].name);
		if (v != NULL && hr_settings_set(c, names[i].key, v, err) < 0)
			return hr_err_prefix(err, "environment variable %s", names[i].name);
	}
	/* the contract treats any other value than those in the list of truths as false */
	v = get("SU_TO_USER");
	if (v != NULL)
		c->su_to_user = hr_settings_truth(v) == 1;
	v = get("LOG_JSON");
	if (v != NULL && hr_settings_truth(v) >= 0 &&
	    hr_settings_set(c, "log_format", hr_settings_truth(v) == 1 ? "json" : "text", err) < 0)
		return -1;
	v = get("LOG_LEVEL");
	if (v != NULL && hr_log_level_parse(v, &level) == 0 &&
	    hr_settings_set(c, "log_level", v, err) < 0)
		return -1;
	v = get("DEBUG");
	if (v != NULL && hr_settings_truth(v) == 1)
		return hr_settings_set(c, "log_level", "debug", err);
	return 0;
}
