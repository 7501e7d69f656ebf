/* Holds the parts that actions and copies share: handrail's own commands, and files on this
 * machine. */
#include "config.h"

#include "host/cloud/actions_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "files/charset/detect.h"
#include "base/err.h"
#include "host/common/module.h"
#include "shell/quote.h"

#define KEEP_EVERY_MS 60000
#define KEEP_MORE_S 60
#define KEEP_LEAST_S 300
#define HELPER_TIMEOUT_MS 120000

/* ---- handrail's own commands ---- */

struct heard {
	struct hr_buf b;
};

static void
hear(void *arg, int stream, const char *p, size_t len)
{
	struct heard *h = arg;

	if (stream == 1)
		hr_buf_add(&h->b, p, len);
}

int
hr_cloud_helper(
    struct hr_cloud *c, const char *line, struct hr_buf *out, int *ret_status, struct hr_err *err)
{
	struct heard h;
	const struct hr_cloud_command q = {
	    .line = line, .timeout_ms = HELPER_TIMEOUT_MS, .output = hear, .arg = &h};
	struct hr_cloud_end end = {0};
	int r;

	hr_buf_init(&h.b, HR_CLOUD_REPLY_MAX);
	r = c->ops->exec(c, &q, &end, err);
	if (r == 0 && end.timed_out)
		r = hr_err_set(err, HR_E_TIMEOUT,
		    "%s: a command of handrail's own did not end in time", c->ops->title);
	if (r == 0 && hr_buf_check(&h.b, NULL) != 0)
		r = hr_err_nomem(err);
	*ret_status = end.code;
	if (out != NULL)
		*out = h.b;
	else
		hr_buf_done(&h.b);
	return r;
}

int
hr_cloud_helper_on(struct hr_cloud *c, const char *before, const char *path, const char *after,
    struct hr_buf *out, int *ret_status, struct hr_err *err)
{
	HR_BUF(b, HR_CLOUD_LINE_MAX);
	int r;

	hr_buf_adds(&b, before);
	hr_shell_quote(&b, path, strlen(path));
	hr_buf_adds(&b, after);
	r = hr_buf_check(&b, NULL) == 0 ? hr_cloud_helper(c, b.p, out, ret_status, err)
					: hr_err_nomem(err);
	if (b.p == NULL && out != NULL)
		hr_buf_init(out, 1);
	return r;
}

const char *
hr_cloud_workspace(const struct hr_cloud *c)
{
	const char *dir = hr_config_text(c->h->config, "core.workspace_mount_path_in_sandbox");

	return dir != NULL ? dir : "/workspace";
}

char *
hr_cloud_absolute(const struct hr_cloud *c, const char *path, struct hr_err *err)
{
	char *all = path[0] == '/' ? strdup(path) : hr_path_join(hr_cloud_workspace(c), path);

	return all != NULL ? all : hr_err_null(err);
}

int
hr_cloud_keep(struct hr_cloud *c, double seconds, struct hr_err *err)
{
	int64_t now = hr_now_ms();
	double want = seconds + KEEP_MORE_S;

	if (c->ops->keep == NULL ||
	    (c->kept != 0 && now - c->kept < KEEP_EVERY_MS && want <= KEEP_LEAST_S))
		return 0;
	c->kept = now;
	want = want > KEEP_LEAST_S ? want : KEEP_LEAST_S;
	return c->ops->keep(c, want < 86400 ? (unsigned)want : 86400, err);
}

int
hr_cloud_mirror(struct hr_cloud *c, struct hr_err *err)
{
	const char *tmp = hr_cloud_env(c, "TMPDIR", "/tmp");

	if (c->mirror != NULL)
		return 0;
	hr_detect_from(hr_module_dir());
	if (hr_text_setf(&c->mirror, err, "%s/handrail-mirror-XXXXXX", tmp) != 0)
		return -1;
	if (mkdtemp(c->mirror) != NULL)
		return 0;
	(void)hr_err_sys(err, errno, "create %s", c->mirror);
	free(c->mirror);
	c->mirror = NULL;
	return -1;
}

void
hr_cloud_mirror_drop(struct hr_cloud *c)
{
	if (c->mirror != NULL)
		(void)hr_path_remove(c->mirror, NULL);
	free(c->mirror);
	c->mirror = NULL;
}

int
hr_cloud_save(const char *file, const char *p, size_t len, struct hr_err *err)
{
	struct hr_err e = {0};
	HR_FREE char *dir = strdup(file);
	int r;

	if (dir == NULL)
		return hr_err_nomem(err);
	*strrchr(dir, '/') = '\0';
	r = hr_path_mkdirs(dir, 0700, NULL, &e);
	if (r == 0)
		r = hr_path_write(file, p, len, 0600, &e);
	return r == 0 ? 0 : hr_err_from(err, HR_E_SYS, &e);
}
