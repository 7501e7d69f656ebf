/* Loads the settings from all sources, and applies new ones to a running server. */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/trust.h"
#include "supervisor/server.h"

static const char *
environment_get(const char *name)
{
	return getenv(name);
}

static int
load_error(int *ret_status, int status)
{
	if (ret_status != NULL)
		*ret_status = status;
	return -1;
}

/* Makes a name absolute: children run in other directories, and this process may change its own. */
static int
make_absolute(char **path, struct hr_err *err)
{
	char *whole;

	if ((*path)[0] == '\0' || (*path)[0] == '/')
		return 0;
	whole = hr_path_absolute(*path, err);
	if (whole == NULL)
		return -1;
	free(*path);
	*path = whole;
	return 0;
}

int
hr_server_load(struct hr_settings *c, const struct hr_options *o, const char *config_file,
    int *ret_status, struct hr_err *err)
{
	char **const paths[] = {&c->working_dir, &c->log_file, &c->state_dir,
	    &c->session_api_key_file, &c->tls_certificate, &c->tls_certificate_key,
	    &c->tls_client_ca, &c->tls_client_crl, &c->network_log};
	size_t i;

	if (hr_settings_init(c, err) < 0)
		return load_error(ret_status, HR_EXIT_START);
	if (config_file != NULL && hr_settings_read(c, config_file, err) != 0)
		return load_error(ret_status, HR_EXIT_USAGE);
	/* this is the exit status of the original, which reads its variables while it starts */
	if (hr_settings_environment(c, environment_get, err) < 0)
		return load_error(ret_status, HR_EXIT_START);
	if (hr_options_apply(o, c, err) < 0 || hr_settings_check(c, err) < 0)
		return load_error(ret_status, HR_EXIT_USAGE);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (make_absolute(paths[i], err) < 0)
			return load_error(ret_status, HR_EXIT_START);
	return 0;
}

int
hr_server_check_access_log(const struct hr_settings *c, struct hr_err *err)
{
	HR_FREE char *dir = NULL;
	int fd = -1;

	if (!c->start_nginx || strcmp(c->access_log, "off") == 0)
		return 0;
	/* the setting is an absolute path */
	dir = strndup(c->access_log, (size_t)(strrchr(c->access_log, '/') - c->access_log) + 1);
	if (dir == NULL)
		return hr_err_nomem(err);
	if (hr_trust_directory(dir, err) != 0)
		return hr_err_prefix(err, "access log");
	fd = hr_path_open_own(c->access_log, O_WRONLY | O_APPEND | O_NOCTTY, 0640, err);
	if (fd < 0)
		return hr_err_prefix(err, "access log");
	(void)close(fd);
	return 0;
}

int
hr_server_open_log(struct hr_server *s, struct hr_err *err)
{
	const struct hr_settings *c = &s->ctx.settings;
	enum hr_log_level level = HR_LOG_INFO;
	int fd = -1;

	if (c->log_file[0] != '\0') {
		fd = hr_path_open_own(c->log_file, O_WRONLY | O_APPEND | O_NOCTTY, 0640, err);
		if (fd < 0)
			return hr_err_prefix(err, "log file");
	}
	hr_log_set_fd(fd >= 0 ? fd : STDERR_FILENO);
	hr_fd_close(&s->log_fd);
	s->log_fd = fd;
	(void)hr_log_level_parse(c->log_level, &level); /* the value was checked before */
	hr_log_setup(
	    "handraild", strcmp(c->log_format, "json") == 0 ? HR_LOG_JSON : HR_LOG_TEXT, level);
	return 0;
}

void
hr_server_reopen_logs(struct hr_server *s)
{
	struct hr_err err = {0};

	/* a refused file leaves the old one open */
	if (hr_server_open_log(s, &err) < 0)
		hr_log(HR_LOG_ERROR, "%s", err.msg);
	if (hr_server_check_access_log(&s->ctx.settings, &err) < 0)
		hr_log(HR_LOG_ERROR, "%s", err.msg);
	else
		hr_nginx_reopen_logs(&s->nginx);
}

void
hr_server_monitor(struct hr_server *s)
{
	HR_BUF(missing, 1024);

	hr_monitor_close(&s->monitor);
	hr_monitor_open(&s->monitor, s->ctx.loop, &s->alerts, &s->ctx.settings, &s->ctx.cgroup,
	    "/proc", &missing);
	if (missing.len > 0)
		hr_log(HR_LOG_NOTICE, "no alerts about: %s", hr_buf_str(&missing));
}

/* Refuses settings that would leave a public server, whose address stays, without access
 * control. */
static int
stays_closed(const struct hr_server *s, const struct hr_settings *fresh, const struct hr_keys *keys,
    struct hr_err *err)
{
	bool has_key = keys->from_environment ? s->site.keys.count > 0 : keys->count > 0;

	if (!s->site.listen.public || has_key || s->ctx.settings.allow_unauthenticated ||
	    fresh->tls_client_ca[0] != '\0')
		return 0;
	return hr_err_set(err, HR_E_INVAL,
	    "%s can be reached from other machines and would have no session key: keep one, "
	    "or restart with --allow-unauthenticated",
	    s->site.listen.text);
}

/* Applies the settings: all steps that can fail come first, while the old settings are in force. */
static int
apply(struct hr_server *s, struct hr_settings *fresh, struct hr_err *err)
{
	struct hr_keys keys = {.from_environment = s->site.keys.from_environment};
	const struct hr_keys *now = keys.from_environment ? &s->site.keys : &keys;
	const char *stays;

	/* nginx opens the log when it tests its configuration */
	if (hr_server_check_access_log(fresh, err) < 0 ||
	    hr_keys_read_file(&keys, fresh->session_api_key_file, err) < 0)
		return -1;
	s->site.grown = 0;
	if (s->ctx.settings.start_nginx &&
	    (stays_closed(s, fresh, &keys, err) < 0 ||
		hr_nginx_configure(&s->site, fresh, now, true, err) < 0)) {
		hr_keys_done(&keys);
		return -1;
	}
	if (!keys.from_environment) {
		hr_keys_done(&s->site.keys);
		s->site.keys = keys;
		hr_plugins_keys(&s->plugins, &s->site.keys);
	}
	stays = hr_settings_adopt(&s->ctx.settings, fresh);
	if (stays != NULL)
		hr_log(HR_LOG_WARNING, "a new value of \"%s\" needs a restart", stays);
	if (hr_server_open_log(s, err) < 0)
		hr_log(HR_LOG_ERROR, "%s", err->msg);
	return 0;
}

void
hr_server_reload(struct hr_server *s)
{
	struct hr_settings fresh;
	struct hr_err err = {0};
	unsigned i;

	if (s->stage != HR_SERVER_RUNNING) {
		hr_log(HR_LOG_WARNING, "no reload while the server starts or stops");
		return;
	}
	hr_notify_send(
	    &s->notify, "RELOADING=1\nMONOTONIC_USEC=%lld\n", (long long)hr_now_ms() * 1000);
	if (hr_server_load(&fresh, &s->options, s->config_file, NULL, &err) < 0 ||
	    apply(s, &fresh, &err) < 0) {
		hr_log(HR_LOG_ERROR, "reload refused, nothing has changed: %s", err.msg);
	} else {
		if (s->ctx.settings.start_nginx)
			hr_nginx_reload(&s->nginx);
		hr_fd_close(&s->pools.image); /* the program may have been replaced */
		for (i = 0; i < HR_POOLS; i++)
			hr_pool_recycle(&s->pools.v[i]);
		hr_server_monitor(s);
		hr_log(HR_LOG_NOTICE, "reloaded");
	}
	hr_settings_done(&fresh);
	hr_notify_send(&s->notify, "READY=1\n");
}
