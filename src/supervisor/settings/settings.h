/* hr_settings: holds all settings of a server in one struct. Each has one row in a table: name,
 * type, limits. Precedence, lowest first: defaults, file, environment, command line. */
#ifndef HR_SUPERVISOR_SETTINGS_SETTINGS_H
#define HR_SUPERVISOR_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strv.h"

/* Strings are never NULL; "" means "not given, choose". Times are in seconds; 0: no limit where the
 * manual says so. */
struct hr_settings {
	/* ---- the original's command line ---- */
	long long port; /* 0: the option is not given */
	char *working_dir, *username, *browsergym_eval_env;
	long long user_id, group_id; /* group_id -1: the account's own group */
	bool enable_browser;
	struct hr_strv plugins;
	/* ---- the original's environment ---- */
	char *runtime_username, *sandbox_group;
	bool su_to_user, keep_owners;
	long long no_change_timeout, max_memory_gb, init_plugin_timeout;
	/* limits for the shell's processes; 0: no limit */
	long long max_processes, max_open_files;
	long long cpu_quota, cpu_period; /* microseconds */
	bool no_new_privileges;
	/* a text, since a value that is not an integer only disables the plugin */
	char *vscode_port;
	/* ---- handrail's own settings ---- */
	char *plugin_path; /* separated by colons */
	char *listen, *session_api_key_file, *run_dir, *state_dir;
	bool allow_unauthenticated, start_nginx;
	char *log_format, *log_level, *log_file, *access_log;
	char *nginx, *nginx_user;
	char *viewer_url_file;
	char *allowed_hosts;
	char *cors_origins; /* pages that may read the answers of OpenHands V1's API */
	bool port_paths;
	char *network_log;
	long long nginx_workers, nginx_connections, client_max_body_bytes;
	long long client_header_timeout, client_body_timeout, keepalive_timeout, fastcgi_timeout;
	long long client_send_timeout, client_max_header_bytes;
	/* ---- the edge: certificates, and limits per client; 0: no limit ---- */
	char *tls_certificate, *tls_certificate_key, *tls_min_version, *tls_ciphers;
	char *page_rights; /* "act", "look" or "none" */
	char *tls_client_ca, *tls_client_crl;
	bool http2;
	long long address_requests_per_minute, address_burst, address_connections;
	long long key_requests_per_minute, key_burst, key_connections;
	long long control_workers, control_workers_max, files_workers, files_workers_max;
	long long live_workers, live_workers_max, output_log_bytes, page_lifetime;
	long long action_workers, action_workers_max, worker_max_requests, worker_idle_timeout;
	long long unpack_max_bytes, unpack_max_entries;
	char *office_converter;
	bool openhands_v1;
	bool swerex;
	char *mcp; /* "true" or "false"; "": true unless the port is public */
	long long journal_entries, journal_bytes, journal_age;
	bool journal_sync, journal_required;
	/* percent; 0: never */
	long long alert_memory, alert_memory_critical, alert_memory_pressure, alert_cpu_pressure;
	long long alert_disk, alert_errors, alert_clear_seconds;
	char *alert_command; /* "": there is none */
	long long static_sessions_max, named_sessions_max, start_timeout, stop_timeout,
	    session_stop_timeout;
};

int hr_settings_init(struct hr_settings *c, struct hr_err *err); /* Sets the defaults. */
void hr_settings_done(struct hr_settings *c);

/* Parses JSON as in handrail.conf(5): one object; C comments are permitted. An unknown key is an
 * error that names it and the nearest known one. On an error c is partly changed. */
int hr_settings_parse(struct hr_settings *c, const char *text, size_t len, struct hr_err *err);
/* Parses a file; messages begin with its name. */
int hr_settings_read(struct hr_settings *c, const char *path, struct hr_err *err);
/* Applies handraild(8), section "environment". get is getenv(), or a replacement. */
int hr_settings_environment(
    struct hr_settings *c, const char *(*get)(const char *name), struct hr_err *err);
/* Checks the combination of settings. */
int hr_settings_check(const struct hr_settings *c, struct hr_err *err);

/* Returns the memory limit of all commands together, in bytes; 0: no limit. */
uint64_t hr_settings_memory(const struct hr_settings *c);
/* Returns true if there is a browser: without an evaluation, or for one with a known name. */
bool hr_settings_browses(const struct hr_settings *c);

/* Sets one setting by its name. */
int hr_settings_set(struct hr_settings *c, const char *key, const char *text, struct hr_err *err);

/* Swaps the reloadable settings of `from` into c. Returns the first setting that differs but
 * requires a restart, or NULL. */
const char *hr_settings_adopt(struct hr_settings *c, struct hr_settings *from);

/* Replaces the list, and frees the old one; on an error it stays. */
int hr_words_copy(struct hr_strv *w, char *const *v, size_t n, struct hr_err *err);

/* Returns the name of the i-th setting; NULL after the last. */
const char *hr_settings_name(size_t i);

/* Parses "1", "true", "t", "yes", "y", "on" and their opposites, in any case. Returns 1, 0, or -1
 * for anything else. */
int hr_settings_truth(const char *text);

#endif
