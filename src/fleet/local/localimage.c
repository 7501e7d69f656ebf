/* Implements hr_local_image and hr_local_build: see the header. */
#include "config.h"

#include "fleet/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "fleet/build/build.h"
#include "base/strv.h"
#include "host/docker/engine.h"
#include "host/docker/progress.h"
#include "proto/json.h"

#define LOG_MAX (1u << 20)
#define CPU_PERIOD_US 100000

static int
image_json(struct json_object *image, char **ret_json, struct hr_err *err)
{
	HR_BUF(b, 4096);

	if (image == NULL) {
		hr_buf_adds(&b, "{\"exists\":false}");
	} else {
		hr_buf_adds(&b, "{\"exists\":true,\"image\":{");
		hr_json_put_named(&b, "upload_time", hr_json_text_or(image, "Created", ""));
		hr_buf_addf(
		    &b, ",\"image_size_bytes\":%lld}}", (long long)hr_json_int_at(image, "Size"));
	}
	return (*ret_json = hr_buf_end(&b, err)) != NULL ? 0 : -1;
}

int
hr_local_image(
    const struct hr_fleet_options *o, const char *name, char **ret_json, struct hr_err *err)
{
	HR_BUF(path, 4096);
	HR_CLEAN(hr_engine_done) struct hr_engine docker = {0};
	HR_PUT struct json_object *image = NULL;
	struct hr_err why = {0};

	if (strcmp(hr_config_text(o->config, "core.runtime"), "docker") != 0)
		return image_json(NULL, ret_json, err);
	hr_buf_adds(&path, "/images/");
	hr_http_escape(&path, name);
	hr_buf_adds(&path, "/json");
	if (hr_engine_init(&docker, o->environ, err) != 0)
		return -1;
	if (hr_buf_check(&path, NULL) != 0)
		return hr_err_nomem(err);
	if (hr_engine_call(&docker, "GET", path.p, NULL, &image, &why) != 0 && why.status != 404)
		return hr_err_pass(err, &why);
	return image_json(image, ret_json, err);
}

/* ---- a build ---- */

struct log {
	int fd;
	size_t len;
};

/* Adds a line to the log, which is bounded: an error repeats its end. */
static void
add_line(void *arg, const char *text)
{
	struct log *l = arg;
	size_t n = strlen(text);

	if (l->len > LOG_MAX)
		return;
	l->len += n + 1;
	if (l->len > LOG_MAX)
		text = "... the rest is not kept";
	if (hr_fd_write_full(l->fd, text, strlen(text), NULL) != 0 ||
	    hr_fd_write_full(l->fd, "\n", 1, NULL) != 0)
		l->len = LOG_MAX + 1; /* stops the log, not the build: the disk is full */
}

static ssize_t
from_file(void *arg, char *p, size_t room)
{
	return hr_fd_read(*(int *)arg, p, room);
}

static int
build_it(const struct hr_fleet_options *o, const struct hr_strv *names, int *context,
    struct log *log, struct hr_err *err)
{
	HR_BUF(path, 16384);
	HR_CLEAN(hr_engine_done) struct hr_engine docker = {0};
	size_t i;

	hr_buf_adds(&path, "/build?dockerfile=Dockerfile&rm=1&forcerm=1");
	for (i = 0; i < names->n; i++) {
		hr_buf_adds(&path, "&t=");
		hr_http_escape(&path, names->v[i]);
	}
	/* the limits are those of a sandbox with the factor 1 */
	if (o->memory_mb > 0)
		hr_buf_addf(&path, "&memory=%lld", (long long)o->memory_mb << 20);
	if (o->cpu_percent > 0)
		hr_buf_addf(&path, "&cpuperiod=%d&cpuquota=%lld", CPU_PERIOD_US,
		    (long long)o->cpu_percent * CPU_PERIOD_US / 100);
	if (hr_buf_check(&path, err) != 0 || hr_engine_init(&docker, o->environ, err) != 0)
		return -1;
	return hr_engine_progress(&docker, path.p, from_file, context, add_line, log, err);
}

/* Runs a build, in its own process, which ends with the time limit of a build. */
int
hr_local_build(const struct hr_fleet_options *o, const char *id, struct hr_err *err)
{
	HR_FREE char *dir = NULL;
	HR_FREE char *context = NULL;
	HR_FREE char *said = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	HR_CLOSE int fd = -1;
	HR_CLOSE int out = -1;

	(void)alarm(HR_FLEET_BUILD_S);
	if (asprintf(&dir, "%s/builds/%s", o->dir, id) < 0 ||
	    asprintf(&context, "%s/" HR_FLEET_BUILD_CONTEXT, dir) < 0 ||
	    asprintf(&said, "%s/" HR_FLEET_BUILD_LOG, dir) < 0)
		return hr_err_nomem(err);
	if (hr_fleet_build_names(dir, &names, err) != 0)
		return -1;
	fd = open(context, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	out = open(said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || out < 0)
		return hr_err_sys(err, errno, "%s", fd < 0 ? context : said);
	return build_it(o, &names, &fd, &(struct log){.fd = out}, err);
}
