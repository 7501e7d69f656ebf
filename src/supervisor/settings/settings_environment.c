/* Reads settings from the environment. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text/text.h"
#include "supervisor/settings/origins.h"
#include "supervisor/settings/settings.h"

#define ORIGINS_MAX 100

/* Appends a word of one of the agent server's own variables to cors_origins, if it has the type
 * that the variable gives: the original starts with any other value, too, which no browser sends.
 */
static int
add_origin(struct hr_settings *c, const char *name, const char *word, bool host, struct hr_err *err)
{
	enum hr_origins_word type = hr_origins_type(word, strlen(word));

	if (type == HR_ORIGINS_BAD || (type == HR_ORIGINS_HOST) != host) {
		hr_log(HR_LOG_WARNING, "environment variable %s: \"%s\" is not %s and is ignored",
		    name, word,
		    host ? "a host" : "an origin such as https://app.example.org or \"*\"");
		return 0;
	}
	return hr_text_setf(&c->cors_origins, err, "%s %s", c->cors_origins, word);
}

/* Reads the list as the original does: up to the first variable that is missing. */
static int
add_origins(struct hr_settings *c, const char *(*get)(const char *name), struct hr_err *err)
{
	static const char docker[] = "DOCKER_HOST_ADDR";
	char name[48] = "OH_ALLOW_CORS_ORIGINS_0";
	const char *word;
	int i;

	for (i = 0; i < ORIGINS_MAX && (word = get(name)) != NULL; i++) {
		if (add_origin(c, name, word, false, err) < 0)
			return -1;
		(void)snprintf(name, sizeof(name), "OH_ALLOW_CORS_ORIGINS_%d", i + 1);
	}
	word = get(docker);
	return word != NULL && *word != '\0' ? add_origin(c, docker, word, true, err) : 0;
}

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
	    {"HANDRAIL_CORS_ORIGINS", "cors_origins"},
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
	if (add_origins(c, get, err) < 0)
		return -1;
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
