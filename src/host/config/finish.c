/* Derives settings from others: the workspace and its mounts (doc/host.md, "Settings
 * that depend on each other"). */
#include "config.h"

#include "host/config/settings.h"

#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/err.h"
#include "host/config/volumes.h"

#define BASE "core.workspace_base"
#define MOUNT "core.workspace_mount_path"
#define IN_SANDBOX "core.workspace_mount_path_in_sandbox"
#define PATH_TEXT_MAX 65536

static int
put_absolute(struct hr_config *c, const char *key, const char *path, struct hr_err *err)
{
	struct hr_err e = {0};
	HR_FREE char *whole = hr_path_absolute(path, &e);

	if (whole == NULL)
		return hr_err_from(err, HR_E_SYS, &e);
	return hr_config_put_text(c, key, whole, err);
}

static int
finish_volumes(struct hr_config *c, const char *text, struct hr_err *err)
{
	HR_CLEAN(hr_volumes_done) struct hr_volumes v = {0};
	int r = 0;
	size_t i;

	if (hr_volumes_parse(text, &v, err) < 0)
		return -1;
	if (hr_config_put_text(c, BASE, NULL, err) < 0 ||
	    hr_config_put_text(c, MOUNT, NULL, err) < 0)
		r = -1;
	for (i = 0; i < v.n && r == 0; i++) {
		if (strcmp(v.v[i].target, "/workspace") != 0)
			continue;
		r = put_absolute(c, BASE, v.v[i].source, err);
		if (r == 0)
			r = put_absolute(c, MOUNT, v.v[i].source, err);
		if (r == 0)
			r = hr_config_put_text(c, IN_SANDBOX, "/workspace", err);
		break;
	}
	return r;
}

/* Applies "from:to": replaces every `from` in the text. */
static int
rewrite(struct hr_config *c, const char *rule, struct hr_err *err)
{
	const char *colon = strchr(rule, ':'), *base = hr_config_text(c, BASE), *at;
	HR_FREE char *cwd = NULL;
	size_t n;
	HR_BUF(b, PATH_TEXT_MAX);
	int r = -1;

	if (colon == NULL || colon == rule)
		return hr_err_set(err, HR_E_INVAL,
		    "workspace_mount_rewrite is not of the form from:to: %s", rule);
	n = (size_t)(colon - rule);
	if (base == NULL)
		base = cwd = getcwd(NULL, 0);
	for (at = base; at != NULL && *at != '\0';) {
		if (strncmp(at, rule, n) == 0) {
			hr_buf_adds(&b, colon + 1);
			at += n;
		} else {
			hr_buf_addc(&b, *at++);
		}
	}
	if (base == NULL || hr_buf_check(&b, NULL) != 0)
		(void)hr_err_nomem(err);
	else
		r = hr_config_put_text(c, MOUNT, hr_buf_str(&b), err);
	return r;
}

static int
finish_workspace(struct hr_config *c, struct hr_err *err)
{
	const char *base = hr_config_text(c, BASE), *rule;

	if (base != NULL && put_absolute(c, BASE, base, err) < 0)
		return -1;
	if (hr_config_text(c, MOUNT) == NULL &&
	    hr_config_put_text(c, MOUNT, hr_config_text(c, BASE), err) < 0)
		return -1;
	rule = hr_config_text(c, "core.workspace_mount_rewrite");
	return rule != NULL ? rewrite(c, rule, err) : 0;
}

int
hr_config_finish(struct hr_config *c, struct hr_err *err)
{
	const char *volumes = hr_config_text(c, "sandbox.volumes");
	const char *cache = hr_config_text(c, "core.cache_dir");
	struct hr_err e = {0};
	int r;

	r = volumes != NULL ? finish_volumes(c, volumes, err) : finish_workspace(c, err);
	if (r == 0 && cache != NULL && hr_path_mkdirs_own(cache, 0755, NULL, &e) < 0)
		hr_config_warn(c, "%s", e.msg);
	return r;
}
