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
		return hr_err_set(err, HR_E_INVAL,
		    "tls_certificate and tls_certificate_key are of use together only");
	if (!tls && c->tls_client_ca[0] != '\0')
		return hr_err_set(
		    err, HR_E_INVAL, "tls_client_ca: there are no client certificates without TLS");
	if (c->tls_client_crl[0] != '\0' && c->tls_client_ca[0] == '\0')
		return hr_err_set(err, HR_E_INVAL, "tls_client_crl needs tls_client_ca");
	if (strcmp(c->page_rights, "act") != 0 && strcmp(c->page_rights, "look") != 0 &&
	    strcmp(c->page_rights, "none") != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "page_rights: \"%.64s\" is neither act nor look nor none", c->page_rights);
	if (strcmp(c->tls_min_version, "1.2") != 0 && strcmp(c->tls_min_version, "1.3") != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "tls_min_version: \"%.64s\" is neither 1.2 nor 1.3", c->tls_min_version);
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
		    "access_log: \"%.64s\" is neither \"off\" nor an absolute path", path);
	return hr_template_fill(&filled, text, sizeof(text) - 1, &place, 1, err);
}

static int
check_pool(const char *name, long long size, long long max, struct hr_err *err)
{
	if (size <= max)
		return 0;
	return hr_err_set(err, HR_E_INVAL, "%s_workers (%lld) is more than %s_workers_max (%lld)",
	    name, size, name, max);
}

int
hr_settings_check(const struct hr_settings *c, struct hr_err *err)
{
	enum hr_log_level level;

	if (c->port == 0)
		return hr_err_set(err, HR_E_INVAL, "the following arguments are required: port");
	if (c->mcp[0] != '\0' && hr_settings_truth(c->mcp) < 0)
		return hr_err_set(
		    err, HR_E_INVAL, "mcp: \"%.64s\" is neither true nor false", c->mcp);
	if (c->cpu_quota > 0 && c->cpu_quota < 1000)
		return hr_err_set(err, HR_E_INVAL, "cpu_quota: %lld is less than 1000 microseconds",
		    c->cpu_quota);
	if (strcmp(c->log_format, "text") != 0 && strcmp(c->log_format, "json") != 0)
		return hr_err_set(err, HR_E_INVAL, "log_format: \"%.64s\" is neither text nor json",
		    c->log_format);
	if (hr_log_level_parse(c->log_level, &level) != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "log_level: \"%.64s\" is none of error, warning, notice, info, debug",
		    c->log_level);
	if (c->alert_command[0] != '\0' && c->alert_command[0] != '/')
		return hr_err_set(err, HR_E_INVAL,
		    "alert_command: \"%.64s\" is not an absolute path", c->alert_command);
	if (check_access_log(c->access_log, err) < 0 || check_tls(c, err) < 0)
		return -1;
	if (check_pool("control", c->control_workers, c->control_workers_max, err) < 0 ||
	    check_pool("files", c->files_workers, c->files_workers_max, err) < 0)
		return -1;
	if (check_pool("live", c->live_workers, c->live_workers_max, err) < 0)
		return -1;
	return check_pool("action", c->action_workers, c->action_workers_max, err);
}

/* A value that is not positive means no limit, as in the original. */
uint64_t
hr_settings_memory(const struct hr_settings *c)
{
	return c->max_memory_gb > 0 ? (uint64_t)c->max_memory_gb << 30 : 0;
}
