/* Checks combinations of settings, and choices from a list. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/text/template.h"
#include "supervisor/settings/settings.h"

static int
check_tls(const struct hr_settings *c, struct hr_err *err)
{
	bool tls = c->tls_certificate[0] != '\0';

	if (tls != (c->tls_certificate_key[0] != '\0'))
		return hr_err_set(
		    err, HR_E_INVAL, "set both tls_certificate and tls_certificate_key");
	if (!tls && c->tls_client_ca[0] != '\0')
		return hr_err_set(err, HR_E_INVAL,
		    "tls_client_ca needs TLS: set tls_certificate and tls_certificate_key");
	if (c->tls_client_crl[0] != '\0' && c->tls_client_ca[0] == '\0')
		return hr_err_set(err, HR_E_INVAL, "tls_client_crl needs tls_client_ca: set both");
	if (strcmp(c->page_rights, "act") != 0 && strcmp(c->page_rights, "look") != 0 &&
	    strcmp(c->page_rights, "none") != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "page_rights: must be act, look or none, not \"%.64s\"", c->page_rights);
	if (strcmp(c->tls_min_version, "1.2") != 0 && strcmp(c->tls_min_version, "1.3") != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "tls_min_version: must be 1.2 or 1.3, not \"%.64s\"", c->tls_min_version);
	return 0;
}

/* Checks the value before handraild creates the file, which precedes nginx's configuration. */
static int
check_access_log(const char *path, struct hr_err *err)
{
	static const char text[] = "@access_log@";
	const struct hr_place place = {"access_log", path, false};
	HR_BUF(filled, 8192);

	if (strcmp(path, "off") != 0 && path[0] != '/')
		return hr_err_set(err, HR_E_INVAL,
		    "access_log: must be \"off\" or an absolute path, not \"%.64s\"", path);
	return hr_template_fill(&filled, text, sizeof(text) - 1, &place, 1, err);
}

static int
check_pool(const char *name, long long size, long long max, struct hr_err *err)
{
	if (size <= max)
		return 0;
	return hr_err_set(err, HR_E_INVAL,
	    "%s_workers (%lld) must not be more than %s_workers_max (%lld)", name, size, name, max);
}

int
hr_settings_check(const struct hr_settings *c, struct hr_err *err)
{
	enum hr_log_level level;

	if (c->port == 0)
		return hr_err_set(err, HR_E_INVAL, "the following arguments are required: port");
	if (c->mcp[0] != '\0' && hr_settings_truth(c->mcp) < 0)
		return hr_err_set(
		    err, HR_E_INVAL, "mcp: must be true or false, not \"%.64s\"", c->mcp);
	if (c->cpu_quota > 0 && c->cpu_quota < 1000)
		return hr_err_set(err, HR_E_INVAL,
		    "cpu_quota: must be at least 1000 (microseconds), not %lld", c->cpu_quota);
	if (strcmp(c->log_format, "text") != 0 && strcmp(c->log_format, "json") != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "log_format: must be text or json, not \"%.64s\"", c->log_format);
	if (hr_log_level_parse(c->log_level, &level) != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "log_level: must be error, warning, notice, info or debug, not \"%.64s\"",
		    c->log_level);
	if (c->alert_command[0] != '\0' && c->alert_command[0] != '/')
		return hr_err_set(err, HR_E_INVAL,
		    "alert_command: must be an absolute path, not \"%.64s\"", c->alert_command);
	if (check_access_log(c->access_log, err) < 0 || check_tls(c, err) < 0)
		return -1;
	if (check_pool("control", c->control_workers, c->control_workers_max, err) < 0 ||
	    check_pool("files", c->files_workers, c->files_workers_max, err) < 0)
		return -1;
	if (check_pool("live", c->live_workers, c->live_workers_max, err) < 0)
		return -1;
	return check_pool("action", c->action_workers, c->action_workers_max, err);
}

/* Returns the limit in bytes. A setting that is not positive means no limit, as in the original. */
uint64_t
hr_settings_memory(const struct hr_settings *c)
{
	return c->max_memory_gb > 0 ? (uint64_t)c->max_memory_gb << 30 : 0;
}
