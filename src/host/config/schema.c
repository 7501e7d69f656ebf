/* Holds the table of keys. A key's variable is its section's prefix and its name, in capitals; core
 * has no prefix. */
#include "config.h"

#include "host/config/schema.h"

#include <string.h>

#include "base/text/nearest.h"
#include "base/span.h"

#define TEXT(section, name, fallback)                                                              \
	{                                                                                          \
		section, name, HR_KEY_TEXT, fallback, false                                        \
	}
#define SECRET(section, name)                                                                      \
	{                                                                                          \
		section, name, HR_KEY_TEXT, NULL, true                                             \
	}
#define INT(section, name, fallback)                                                               \
	{                                                                                          \
		section, name, HR_KEY_INT, fallback, false                                         \
	}
#define BOOL(section, name, fallback)                                                              \
	{                                                                                          \
		section, name, HR_KEY_BOOL, fallback, false                                        \
	}
#define LIST(section, name, fallback)                                                              \
	{                                                                                          \
		section, name, HR_KEY_LIST, fallback, false                                        \
	}
#define MAP(section, name, fallback)                                                               \
	{                                                                                          \
		section, name, HR_KEY_MAP, fallback, false                                         \
	}

const struct hr_key hr_keys_all[] = {
    TEXT("core", "runtime", "\"docker\""),
    TEXT("core", "default_agent", "\"CodeActAgent\""),
    TEXT("core", "workspace_base", NULL),
    TEXT("core", "workspace_mount_path", NULL),
    TEXT("core", "workspace_mount_path_in_sandbox", "\"/workspace\""),
    TEXT("core", "workspace_mount_rewrite", NULL),
    BOOL("core", "run_as_openhands", "true"),
    BOOL("core", "enable_browser", "true"),
    BOOL("core", "init_git_in_empty_workspace", "false"),
    TEXT("core", "git_user_name", "\"openhands\""),
    TEXT("core", "git_user_email", "\"openhands@all-hands.dev\""),
    BOOL("core", "debug", "false"),
    BOOL("core", "disable_color", "false"),
    TEXT("core", "cache_dir", "\"/tmp/cache\""),
    TEXT("core", "file_store", "\"local\""),
    TEXT("core", "file_store_path", "\"~/.openhands\""),
    TEXT("core", "file_store_web_hook_url", NULL),
    MAP("core", "file_store_web_hook_headers", NULL),
    BOOL("core", "file_store_web_hook_batch", "false"),
    SECRET("core", "jwt_secret"),
    TEXT("core", "save_trajectory_path", NULL),
    BOOL("core", "save_screenshots_in_trajectory", "false"),
    TEXT("core", "replay_trajectory_path", NULL),
    SECRET("core", "search_api_key"),
    INT("core", "max_iterations", "500"),
    {"core", "max_budget_per_task", HR_KEY_FLOAT, NULL, false},
    INT("core", "file_uploads_max_file_size_mb", "0"),
    BOOL("core", "file_uploads_restrict_file_types", "false"),
    LIST("core", "file_uploads_allowed_extensions", "[\".*\"]"),
    BOOL("core", "cli_multiline_input", "false"),
    INT("core", "conversation_max_age_seconds", "864000"),
    BOOL("core", "enable_default_condenser", "true"),
    INT("core", "max_concurrent_conversations", "3"),
    INT("core", "client_wait_timeout", "30"),
    TEXT("core", "mcp_host", "\"localhost:3000\""),

    TEXT("sandbox", "remote_runtime_api_url", "\"http://localhost:8000\""),
    TEXT("sandbox", "local_runtime_url", "\"http://localhost\""),
    BOOL("sandbox", "keep_runtime_alive", "false"),
    BOOL("sandbox", "pause_closed_runtimes", "true"),
    BOOL("sandbox", "rm_all_containers", "false"),
    SECRET("sandbox", "api_key"),
    TEXT("sandbox", "base_container_image", "\"nikolaik/python-nodejs:python3.12-nodejs22\""),
    TEXT("sandbox", "runtime_container_image", NULL),
    TEXT("sandbox", "payload", NULL),
    INT("sandbox", "user_id", NULL),
    INT("sandbox", "timeout", "120"),
    INT("sandbox", "remote_runtime_init_timeout", "180"),
    INT("sandbox", "remote_runtime_api_timeout", "180"),
    BOOL("sandbox", "remote_runtime_enable_retries", "true"),
    TEXT("sandbox", "remote_runtime_class", NULL),
    INT("sandbox", "remote_runtime_resource_factor", "1"),
    BOOL("sandbox", "enable_auto_lint", "false"),
    BOOL("sandbox", "use_host_network", "false"),
    LIST("sandbox", "additional_networks", "[]"),
    TEXT("sandbox", "runtime_binding_address", "\"0.0.0.0\""),
    LIST("sandbox", "runtime_extra_build_args", NULL),
    BOOL("sandbox", "initialize_plugins", "true"),
    BOOL("sandbox", "force_rebuild_runtime", "false"),
    TEXT("sandbox", "runtime_extra_deps", NULL),
    MAP("sandbox", "runtime_startup_env_vars", "{}"),
    TEXT("sandbox", "browsergym_eval_env", NULL),
    TEXT("sandbox", "platform", NULL),
    INT("sandbox", "close_delay", "3600"),
    BOOL("sandbox", "enable_gpu", "false"),
    TEXT("sandbox", "cuda_visible_devices", NULL),
    MAP("sandbox", "docker_runtime_kwargs", NULL),
    TEXT("sandbox", "docker_pause_mode", "\"stop\""),
    TEXT("sandbox", "selected_repo", NULL),
    LIST("sandbox", "trusted_dirs", "[]"),
    INT("sandbox", "vscode_port", NULL),
    TEXT("sandbox", "volumes", NULL),
    MAP("sandbox", "network", NULL),
    TEXT("sandbox", "network_file", NULL),
    TEXT("sandbox", "unix_socket", NULL),
    BOOL("sandbox", "auto_restart", "false"),
    INT("sandbox", "max_restarts", "3"),

    TEXT("sandbox.limits", "profile", "\"none\""),
    INT("sandbox.limits", "cpu_period", NULL),
    INT("sandbox.limits", "cpu_quota", NULL),
    TEXT("sandbox.limits", "mem_limit", NULL),
    TEXT("sandbox.limits", "memswap_limit", NULL),
    INT("sandbox.limits", "ulimit_nofile", NULL),
    INT("sandbox.limits", "pids", NULL),
    INT("sandbox.limits", "max_memory_gb", NULL),

    INT("sandbox.security", "run_as_user", NULL),
    INT("sandbox.security", "run_as_group", NULL),
    BOOL("sandbox.security", "readonly_root_fs", "false"),
    TEXT("sandbox.security", "network_mode", "\"default\""),
    LIST("sandbox.security", "devices", "[]"),
    BOOL("sandbox.security", "no_new_privileges", "false"),
    LIST("sandbox.security", "cap_drop", "[]"),
    LIST("sandbox.security", "cap_add", "[]"),

    TEXT("kubernetes", "namespace", "\"default\""),
    TEXT("kubernetes", "ingress_domain", "\"localhost\""),
    TEXT("kubernetes", "pvc_storage_size", "\"2Gi\""),
    TEXT("kubernetes", "pvc_storage_class", NULL),
    TEXT("kubernetes", "resource_cpu_request", "\"1\""),
    TEXT("kubernetes", "resource_memory_request", "\"1Gi\""),
    TEXT("kubernetes", "resource_memory_limit", "\"2Gi\""),
    TEXT("kubernetes", "image_pull_secret", NULL),
    TEXT("kubernetes", "ingress_tls_secret", NULL),
    TEXT("kubernetes", "node_selector_key", NULL),
    TEXT("kubernetes", "node_selector_val", NULL),
    TEXT("kubernetes", "tolerations_yaml", NULL),
    BOOL("kubernetes", "privileged", "false"),
    TEXT("kubernetes", "kubeconfig", NULL),
    TEXT("kubernetes", "context", NULL),
    TEXT("kubernetes", "access", "\"auto\""),
    BOOL("kubernetes", "ingress", "true"),
    TEXT("kubernetes", "network_policy", "\"none\""),
    BOOL("kubernetes", "network_policy_enforced", "false"),
    TEXT("kubernetes", "runtime_class", NULL),
    TEXT("kubernetes", "service_account", NULL),
    INT("kubernetes", "schedule_timeout", "0"),
    TEXT("kubernetes", "agent_sandbox", NULL),

    BOOL("security", "confirmation_mode", "false"),
    TEXT("security", "security_analyzer", NULL),

    LIST("mcp", "sse_servers", "[]"),
    LIST("mcp", "shttp_servers", "[]"),
    LIST("mcp", "stdio_servers", "[]"),

    BOOL("monitoring", "enabled", "false"),
    INT("monitoring", "interval_seconds", "15"),
    INT("monitoring", "history", "240"),
    TEXT("monitoring", "log_path", NULL),
    TEXT("monitoring", "prometheus_path", NULL),
    TEXT("monitoring", "alert_exec", NULL),
    TEXT("monitoring", "alert_webhook", NULL),
    LIST("monitoring", "rules", NULL),
};

const size_t hr_keys_all_n = sizeof(hr_keys_all) / sizeof(*hr_keys_all);

const struct hr_key *
hr_key_find(const char *section, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < hr_keys_all_n; i++)
		if (strcmp(hr_keys_all[i].section, section) == 0 &&
		    strlen(hr_keys_all[i].name) == len &&
		    memcmp(hr_keys_all[i].name, name, len) == 0)
			return &hr_keys_all[i];
	return NULL;
}

bool
hr_section_known(const char *section)
{
	size_t i;

	for (i = 0; i < hr_keys_all_n; i++)
		if (strcmp(hr_keys_all[i].section, section) == 0)
			return true;
	return false;
}

const char *
hr_key_nearest(const char *section, const char *name)
{
	const char *words[sizeof(hr_keys_all) / sizeof(*hr_keys_all)];
	size_t n = 0;
	size_t i;

	for (i = 0; i < hr_keys_all_n; i++)
		if (strcmp(hr_keys_all[i].section, section) == 0)
			words[n++] = hr_keys_all[i].name;
	return hr_nearest(name, words, n);
}

bool
hr_section_foreign(const char *section)
{
	static const char *const names[] = {
	    "llm", "agent", "condenser", "model_routing", "extended", "cli", NULL};

	return hr_is_one_of(section, names);
}
