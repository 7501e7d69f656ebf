/* Holds the settings. Invariant: from every source a value is checked against the limits of its
 * row. */
#include "config.h"

#include "supervisor/settings/settings.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/text/nearest.h"
#include "base/text/text.h"
#include "base/trust.h"

#define SETTINGS_FILE_MAX (1u << 20)
#define SETTINGS_JSON_DEPTH 8
#define DAY 86400
#define RATE_MAX 1000000 /* maximum, since nginx counts thousandths in an int */

enum setting_type { TEXT, INT, BOOL, WORDS };

struct setting {
	const char *key;
	enum setting_type type;
	size_t at;
	bool reload; /* SIGHUP applies the setting */
	long long min, max;
	const char *fallback;
};

#define AT(member) offsetof(struct hr_settings, member)

static const struct setting settings[] = {
    {"port", INT, AT(port), false, 1, 65535, NULL},
    {"working_dir", TEXT, AT(working_dir), false, 0, 0, ""},
    {"username", TEXT, AT(username), false, 0, 0, "openhands"},
    {"user_id", INT, AT(user_id), false, 0, UINT32_MAX - 1LL, "1000"},
    {"group_id", INT, AT(group_id), false, -1, UINT32_MAX - 1LL, "-1"},
    {"plugins", WORDS, AT(plugins), false, 0, 0, NULL},
    {"plugin_path", TEXT, AT(plugin_path), false, 0, 0, ""},
    {"enable_browser", BOOL, AT(enable_browser), false, 0, 0, "true"},
    {"browsergym_eval_env", TEXT, AT(browsergym_eval_env), false, 0, 0, ""},
    {"runtime_username", TEXT, AT(runtime_username), false, 0, 0, ""},
    {"sandbox_group", TEXT, AT(sandbox_group), false, 0, 0, "root"},
    {"su_to_user", BOOL, AT(su_to_user), false, 0, 0, "true"},
    {"keep_owners", BOOL, AT(keep_owners), false, 0, 0, "false"},
    {"no_change_timeout", INT, AT(no_change_timeout), false, INT_MIN, INT_MAX, "10"},
    {"max_memory_gb", INT, AT(max_memory_gb), false, INT_MIN, INT_MAX, "0"},
    {"max_processes", INT, AT(max_processes), false, 0, INT_MAX, "0"},
    {"cpu_quota", INT, AT(cpu_quota), false, 0, INT_MAX, "0"},
    {"cpu_period", INT, AT(cpu_period), false, 1000, 1000000, "100000"},
    {"max_open_files", INT, AT(max_open_files), false, 0, INT_MAX, "0"},
    {"no_new_privileges", BOOL, AT(no_new_privileges), false, 0, 0, "false"},
    {"init_plugin_timeout", INT, AT(init_plugin_timeout), false, INT_MIN, INT_MAX, "120"},
    {"vscode_port", TEXT, AT(vscode_port), false, 0, 0, ""},
    {"listen", TEXT, AT(listen), false, 0, 0, ""},
    {"allowed_hosts", TEXT, AT(allowed_hosts), true, 0, 0, ""},
    {"cors_origins", TEXT, AT(cors_origins), true, 0, 0, ""},
    {"port_paths", BOOL, AT(port_paths), true, 0, 0, "false"},
    {"network_log", TEXT, AT(network_log), false, 0, 0, ""},
    {"allow_unauthenticated", BOOL, AT(allow_unauthenticated), false, 0, 0, "false"},
    {"session_api_key_file", TEXT, AT(session_api_key_file), true, 0, 0, ""},
    {"run_dir", TEXT, AT(run_dir), false, 0, 0, ""},
    {"state_dir", TEXT, AT(state_dir), false, 0, 0, ""},
    {"log_format", TEXT, AT(log_format), true, 0, 0, "text"},
    {"log_level", TEXT, AT(log_level), true, 0, 0, "info"},
    {"log_file", TEXT, AT(log_file), true, 0, 0, ""},
    {"start_nginx", BOOL, AT(start_nginx), false, 0, 0, "true"},
    {"nginx", TEXT, AT(nginx), false, 0, 0, HR_NGINX_PATH},
    {"nginx_user", TEXT, AT(nginx_user), false, 0, 0, ""},
    {"viewer_url_file", TEXT, AT(viewer_url_file), false, 0, 0, "viewer-url"},
    {"nginx_workers", INT, AT(nginx_workers), true, 1, 256, "1"},
    {"nginx_connections", INT, AT(nginx_connections), true, 64, 1 << 20, "1024"},
    {"access_log", TEXT, AT(access_log), true, 0, 0, "off"},
    {"client_max_body_bytes", INT, AT(client_max_body_bytes), true, 0, LLONG_MAX / 2, "0"},
    {"client_header_timeout", INT, AT(client_header_timeout), true, 1, DAY, "10"},
    {"client_body_timeout", INT, AT(client_body_timeout), true, 1, DAY, "60"},
    {"keepalive_timeout", INT, AT(keepalive_timeout), true, 0, DAY, "75"},
    {"client_send_timeout", INT, AT(client_send_timeout), true, 1, DAY, "300"},
    {"client_max_header_bytes", INT, AT(client_max_header_bytes), true, 1024, 1 << 20, "63488"},
    {"tls_certificate", TEXT, AT(tls_certificate), true, 0, 0, ""},
    {"tls_certificate_key", TEXT, AT(tls_certificate_key), true, 0, 0, ""},
    {"tls_min_version", TEXT, AT(tls_min_version), true, 0, 0, "1.2"},
    {"tls_ciphers", TEXT, AT(tls_ciphers), true, 0, 0, ""},
    {"tls_client_ca", TEXT, AT(tls_client_ca), true, 0, 0, ""},
    {"tls_client_crl", TEXT, AT(tls_client_crl), true, 0, 0, ""},
    {"http2", BOOL, AT(http2), true, 0, 0, "true"},
    {"address_requests_per_minute", INT, AT(address_requests_per_minute), true, 0, RATE_MAX, "0"},
    {"address_burst", INT, AT(address_burst), true, 0, RATE_MAX, "20"},
    {"address_connections", INT, AT(address_connections), true, 0, 65535, "0"},
    {"key_requests_per_minute", INT, AT(key_requests_per_minute), true, 0, RATE_MAX, "0"},
    {"key_burst", INT, AT(key_burst), true, 0, RATE_MAX, "20"},
    {"key_connections", INT, AT(key_connections), true, 0, 65535, "0"},
    /* epoll_wait counts milliseconds in an int: 24 days at most */
    {"fastcgi_timeout", INT, AT(fastcgi_timeout), true, 1, 24 * DAY, "604800"},
    {"control_workers", INT, AT(control_workers), true, 1, 64, "2"},
    {"control_workers_max", INT, AT(control_workers_max), true, 1, 64, "8"},
    {"files_workers", INT, AT(files_workers), true, 1, 128, "2"},
    {"files_workers_max", INT, AT(files_workers_max), true, 1, 128, "16"},
    {"action_workers", INT, AT(action_workers), true, 1, 256, "2"},
    {"action_workers_max", INT, AT(action_workers_max), true, 1, 256, "128"},
    {"live_workers", INT, AT(live_workers), true, 1, 64, "1"},
    {"live_workers_max", INT, AT(live_workers_max), true, 1, 64, "16"},
    {"page_rights", TEXT, AT(page_rights), true, 0, 0, "act"},
    {"page_lifetime", INT, AT(page_lifetime), true, 60, 30 * DAY, "43200"},
    {"output_log_bytes", INT, AT(output_log_bytes), false, 4096, 1 << 30, "4194304"},
    {"worker_max_requests", INT, AT(worker_max_requests), true, 0, INT_MAX, "0"},
    {"worker_idle_timeout", INT, AT(worker_idle_timeout), true, 1, DAY, "30"},
    {"unpack_max_bytes", INT, AT(unpack_max_bytes), true, 0, LLONG_MAX, "17179869184"},
    {"mcp", TEXT, AT(mcp), true, 0, 0, ""},
    {"swerex", BOOL, AT(swerex), true, 0, 0, "false"},
    {"openhands_v1", BOOL, AT(openhands_v1), true, 0, 0, "false"},
    {"unpack_max_entries", INT, AT(unpack_max_entries), true, 0, LLONG_MAX, "1000000"},
    {"office_converter", TEXT, AT(office_converter), true, 0, 0, ""},
    {"journal_entries", INT, AT(journal_entries), true, 0, 1000000, "2048"},
    {"journal_bytes", INT, AT(journal_bytes), true, 1 << 16, 1LL << 40, "33554432"},
    {"journal_age", INT, AT(journal_age), true, 60, 30 * DAY, "3600"},
    {"journal_sync", BOOL, AT(journal_sync), false, 0, 0, "false"},
    {"journal_required", BOOL, AT(journal_required), true, 0, 0, "false"},
    {"alert_memory", INT, AT(alert_memory), true, 0, 100, "90"},
    {"alert_memory_critical", INT, AT(alert_memory_critical), true, 0, 100, "97"},
    {"alert_memory_pressure", INT, AT(alert_memory_pressure), true, 0, 100, "30"},
    {"alert_cpu_pressure", INT, AT(alert_cpu_pressure), true, 0, 100, "0"},
    {"alert_disk", INT, AT(alert_disk), true, 0, 100, "90"},
    {"alert_errors", INT, AT(alert_errors), true, 0, 100, "50"},
    {"alert_clear_seconds", INT, AT(alert_clear_seconds), true, 1, DAY, "60"},
    {"alert_command", TEXT, AT(alert_command), true, 0, 0, ""},
    {"named_sessions_max", INT, AT(named_sessions_max), true, 0, 64, "8"},
    {"static_sessions_max", INT, AT(static_sessions_max), true, 0, 1024, "32"},
    {"start_timeout", INT, AT(start_timeout), false, 1, DAY, "660"},
    {"stop_timeout", INT, AT(stop_timeout), true, 0, 30 * DAY, "0"},
    {"session_stop_timeout", INT, AT(session_stop_timeout), true, 1, DAY, "5"},
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static void *
setting_of(const struct hr_settings *c, const struct setting *s)
{
	return (char *)(uintptr_t)c + s->at;
}

/* Moves the list `from` to w. */
static int
words_become(struct hr_strv *w, struct hr_strv *from, struct hr_err *err)
{
	if (from->failed) {
		hr_strv_done(from);
		return hr_err_nomem(err);
	}
	hr_strv_done(w);
	*w = *from;
	return 0;
}

int
hr_words_copy(struct hr_strv *w, char *const *v, size_t n, struct hr_err *err)
{
	struct hr_strv copy = {0};
	size_t i;

	for (i = 0; i < n; i++)
		hr_strv_add(&copy, v[i]);
	return words_become(w, &copy, err);
}

bool
hr_settings_browses(const struct hr_settings *c)
{
	const char *evaluation = c->browsergym_eval_env;

	/* "visualwebarena" contains this word, too */
	return c->enable_browser &&
	       (evaluation[0] == '\0' || strstr(evaluation, "webarena") != NULL ||
		   strstr(evaluation, "miniwob") != NULL);
}

int
hr_settings_truth(const char *text)
{
	return hr_text_truth(text, strlen(text));
}

static int
set_int(struct hr_settings *c, const struct setting *s, long long n, struct hr_err *err)
{
	if (n < s->min || n > s->max)
		return hr_err_set(err, HR_E_INVAL, "%s: %lld is not between %lld and %lld", s->key,
		    n, s->min, s->max);
	*(long long *)setting_of(c, s) = n;
	return 0;
}

static int
set_from_text(struct hr_settings *c, const struct setting *s, const char *text, struct hr_err *err)
{
	long long n;

	switch (s->type) {
	case TEXT: return hr_text_set(setting_of(c, s), text, err);
	case INT:
		if (hr_text_python_int(text, &n) != 0)
			return hr_err_set(
			    err, HR_E_INVAL, "%s: must be an integer, not \"%.64s\"", s->key, text);
		return set_int(c, s, n, err);
	case BOOL:
		if (hr_settings_truth(text) < 0)
			return hr_err_set(err, HR_E_INVAL,
			    "%s: must be true or false, not \"%.64s\"", s->key, text);
		*(bool *)setting_of(c, s) = hr_settings_truth(text) == 1;
		return 0;
	case WORDS: break;
	}
	return hr_err_set(err, HR_E_INVAL, "%s: cannot be set by one string: it is a list", s->key);
}

static const struct setting *
setting_find(const char *key)
{
	size_t i;

	for (i = 0; i < SETTINGS; i++) {
		if (strcmp(settings[i].key, key) == 0)
			return &settings[i];
	}
	return NULL;
}

int
hr_settings_set(struct hr_settings *c, const char *key, const char *text, struct hr_err *err)
{
	const struct setting *s = setting_find(key);

	if (s == NULL)
		return hr_err_set(err, HR_E_INVAL, "unknown setting \"%.64s\"", key);
	return set_from_text(c, s, text, err);
}

const char *
hr_settings_name(size_t i)
{
	return i < SETTINGS ? settings[i].key : NULL;
}

int
hr_settings_init(struct hr_settings *c, struct hr_err *err)
{
	size_t i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < SETTINGS; i++) {
		if (settings[i].fallback != NULL &&
		    set_from_text(c, &settings[i], settings[i].fallback, err) < 0) {
			hr_settings_done(c);
			return -1;
		}
	}
	return 0;
}

void
hr_settings_done(struct hr_settings *c)
{
	size_t i;

	for (i = 0; i < SETTINGS; i++) {
		if (settings[i].type == TEXT)
			free(*(char **)setting_of(c, &settings[i]));
		else if (settings[i].type == WORDS)
			hr_strv_done(setting_of(c, &settings[i]));
	}
	memset(c, 0, sizeof(*c));
}

static int
unknown_key(const char *key, struct hr_err *err)
{
	const char *keys[SETTINGS], *nearest;
	size_t i;

	for (i = 0; i < SETTINGS; i++)
		keys[i] = settings[i].key;
	nearest = hr_nearest(key, keys, SETTINGS);
	if (nearest != NULL)
		return hr_err_set(
		    err, HR_E_INVAL, "unknown key \"%.64s\"; did you mean \"%s\"?", key, nearest);
	return hr_err_set(err, HR_E_INVAL, "unknown key \"%.64s\"", key);
}

static bool
has_null(struct json_object *text)
{
	return strlen(json_object_get_string(text)) != (size_t)json_object_get_string_len(text);
}

static int
set_words_json(
    struct hr_settings *c, const struct setting *s, struct json_object *list, struct hr_err *err)
{
	size_t n = json_object_array_length(list), i;
	struct hr_strv words = {0};

	for (i = 0; i < n; i++) {
		struct json_object *word = json_object_array_get_idx(list, i);
		bool text = json_object_is_type(word, json_type_string);

		if (!text || has_null(word)) {
			hr_strv_done(&words);
			return hr_err_set(err, HR_E_INVAL, "%s: entry %zu %s", s->key, i + 1,
			    text ? "must not contain a NUL byte" : "must be a string");
		}
		hr_strv_add(&words, json_object_get_string(word));
	}
	return words_become(setting_of(c, s), &words, err);
}

static int
set_from_json(
    struct hr_settings *c, const struct setting *s, struct json_object *v, struct hr_err *err)
{
	static const char *const wanted[] = {"a string", "an integer", "true or false", "a list"};

	if (s->type == TEXT && json_object_is_type(v, json_type_string))
		return has_null(v)
			   ? hr_err_set(err, HR_E_INVAL, "%s: must not contain a NUL byte", s->key)
			   : hr_text_set(setting_of(c, s), json_object_get_string(v), err);
	if (s->type == INT && json_object_is_type(v, json_type_int))
		return set_int(c, s, json_object_get_int64(v), err);
	if (s->type == BOOL && json_object_is_type(v, json_type_boolean)) {
		*(bool *)setting_of(c, s) = json_object_get_boolean(v);
		return 0;
	}
	if (s->type == WORDS && json_object_is_type(v, json_type_array))
		return set_words_json(c, s, v, err);
	return hr_err_set(err, HR_E_INVAL, "%s: must be %s", s->key, wanted[s->type]);
}

static int
parse_object(struct hr_settings *c, struct json_object *top, struct hr_err *err)
{
	if (!json_object_is_type(top, json_type_object))
		return hr_err_set(err, HR_E_INVAL, "must be a JSON object");
	json_object_object_foreach(top, key, value)
	{
		const struct setting *s = setting_find(key);

		if (s == NULL)
			return unknown_key(key, err);
		if (set_from_json(c, s, value, err) < 0)
			return -1;
	}
	return 0;
}

static int
syntax_error(const char *text, size_t at, const char *what, struct hr_err *err)
{
	size_t line = 1, i;

	for (i = 0; i < at; i++)
		line += text[i] == '\n';
	return hr_err_set(err, HR_E_INVAL, "line %zu: %s", line, what);
}

int
hr_settings_parse(struct hr_settings *c, const char *text, size_t len, struct hr_err *err)
{
	struct json_tokener *tok;
	struct json_object *top = NULL;
	size_t end;
	int r;

	if (len > SETTINGS_FILE_MAX)
		return hr_err_set(err, HR_E_TOOLARGE, "exceeds %u bytes", SETTINGS_FILE_MAX);
	tok = json_tokener_new_ex(SETTINGS_JSON_DEPTH);
	if (tok == NULL)
		return hr_err_nomem(err);
	/* not strict, since comments are permitted */
	json_tokener_set_flags(tok, JSON_TOKENER_VALIDATE_UTF8);
	top = json_tokener_parse_ex(tok, text, (int)len);
	end = json_tokener_get_parse_end(tok);
	if (json_tokener_get_error(tok) == json_tokener_continue) { /* a number waits for its end */
		top = json_tokener_parse_ex(tok, "\0", 1);
		end = len;
	}
	while (end < len && isspace((unsigned char)text[end]))
		end++;
	if (json_tokener_get_error(tok) != json_tokener_success)
		r = syntax_error(text, end < len ? end : len,
		    json_tokener_error_desc(json_tokener_get_error(tok)), err);
	else if (end < len)
		r = syntax_error(text, end, "only one object is allowed", err);
	else
		r = parse_object(c, top, err);
	json_object_put(top);
	json_tokener_free(tok);
	return r;
}

int
hr_settings_read(struct hr_settings *c, const char *path, struct hr_err *err)
{
	HR_BUF(b, SETTINGS_FILE_MAX);
	int r;

	/* the file names programs that run with this process's rights */
	r = hr_trust_read(path, HR_TRUST_NOBODY, &b, err);
	if (r == 0) {
		r = hr_settings_parse(c, hr_buf_str(&b), b.len, err);
		if (r != 0)
			hr_err_prefix(err, "%s", path);
	}
	return r;
}

static bool
setting_equal(const struct setting *s, const struct hr_settings *a, const struct hr_settings *b)
{
	const struct hr_strv *wa, *wb;
	size_t i;

	switch (s->type) {
	case TEXT: return strcmp(*(char **)setting_of(a, s), *(char **)setting_of(b, s)) == 0;
	case INT: return *(long long *)setting_of(a, s) == *(long long *)setting_of(b, s);
	case BOOL: return *(bool *)setting_of(a, s) == *(bool *)setting_of(b, s);
	case WORDS: break;
	}
	wa = setting_of(a, s);
	wb = setting_of(b, s);
	for (i = 0; wa->n == wb->n && i < wa->n; i++) {
		if (strcmp(wa->v[i], wb->v[i]) != 0)
			return false;
	}
	return wa->n == wb->n;
}

static void
swap_bytes(void *a, void *b, size_t n)
{
	char *x = a, *y = b, t;

	for (; n > 0; n--, x++, y++) {
		t = *x;
		*x = *y;
		*y = t;
	}
}

const char *
hr_settings_adopt(struct hr_settings *c, struct hr_settings *from)
{
	const char *stays = NULL;
	size_t i;

	for (i = 0; i < SETTINGS; i++) {
		const struct setting *s = &settings[i];
		size_t size = s->type == INT    ? sizeof(long long)
			      : s->type == BOOL ? sizeof(bool)
						: sizeof(char *);

		if (setting_equal(s, c, from))
			continue;
		hr_assert(!s->reload || s->type != WORDS);
		if (s->reload)
			swap_bytes(setting_of(c, s), setting_of(from, s), size);
		else if (stays == NULL)
			stays = s->key;
	}
	return stays;
}
