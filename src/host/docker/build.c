/* Handles runtime images of a Docker Engine: search, build, names (doc/images.md, "Building"). */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "host/docker/docker_int.h"
#include "host/docker/progress.h"
#include "base/err.h"
#include "host/config/settings.h"
#include "host/transfer/tarfile.h"
#include "image/kit.h"
#include "image/plan.h"
#include "proto/json.h"

#define PATH_TEXT_MAX 16384

struct build {
	const struct hr_config *config;
	const struct hr_build_options *o;
	const char *kit;
	struct hr_engine engine;
	struct hr_image_tags tags;
	char *folder;
	struct hr_err *err; /* the detailed error, since struct hr_err is short */
};

static int
stream(struct build *b, const char *path, hr_http_source_fn *source, void *arg, struct hr_err *err)
{
	return hr_engine_progress(&b->engine, path, source, arg, b->o->progress, b->o->arg, err);
}

/* Returns true for handrail's runtime images: nothing can be built upon others of the same name. */
static bool
is_ours(struct json_object *image)
{
	struct json_object *labels = hr_json_at(hr_json_at(image, "Config"), "Labels");

	return strcmp(hr_json_text_or(labels, "org.openhands.runtime", ""), "c") == 0;
}

/* Returns 1 if the Engine has the image, 0 if not, -1 on an error. */
static int
local(struct build *b, const char *name, bool usable)
{
	HR_PUT struct json_object *image = NULL;
	struct hr_err why = {0};
	char path[PATH_TEXT_MAX];
	int r;

	(void)snprintf(path, sizeof(path), "/images/%s/json", name);
	r = hr_engine_call(&b->engine, "GET", path, NULL, &image, &why);
	if (r == 0)
		r = !usable || is_ours(image) ? 1 : 0;
	else if (why.status == 404)
		r = 0;
	else if (b->err != NULL)
		*b->err = why;
	return r;
}

static int
exists(void *arg, const char *name, bool pull, bool usable, bool *ret, struct hr_err *err)
{
	struct build *b = arg;
	int found = local(b, name, usable);
	HR_BUF(path, PATH_TEXT_MAX);

	if (found == 0 && pull && b->o->pull) {
		hr_buf_adds(&path, "/images/create?fromImage=");
		hr_http_escape(&path, name);
		/* any failure counts as missing: no such image, no registry, no network */
		if (stream(b, hr_buf_str(&path), NULL, NULL, NULL) == 0)
			found = local(b, name, usable);
	}
	if (found < 0)
		return hr_err_set(err, HR_E_GONE, "see the Engine's error");
	*ret = found == 1;
	return 0;
}

static int
prepare(void *arg, const char *from, enum hr_image_strategy s, const struct hr_image_request *req,
    struct hr_err *err)
{
	struct build *b = arg;
	char text[300];

	(void)snprintf(text, sizeof(text), "%s, on %.200s", hr_image_strategy_name(s), from);
	if (b->o->progress != NULL)
		b->o->progress(b->o->arg, text);
	return hr_kit_prepare(b->kit, b->folder, from, s, req, &b->tags, err);
}

static void
build_path(
    struct hr_buf *path, const char *const *names, size_t n, const struct hr_image_request *req)
{
	char now[HR_WALL_TEXT], args[256];
	size_t i;

	hr_buf_adds(path, "/build?dockerfile=Dockerfile&rm=1&forcerm=1");
	for (i = 0; i < n; i++) {
		hr_buf_adds(path, "&t=");
		hr_http_escape(path, names[i]);
	}
	if (req->platform != NULL) {
		hr_buf_adds(path, "&platform=");
		hr_http_escape(path, req->platform);
	}
	for (i = 0; i < req->build_args_n; i++) {
		if (strncmp(req->build_args[i], "--network=", 10) == 0) {
			hr_buf_adds(path, "&networkmode=");
			hr_http_escape(path, req->build_args[i] + 10);
		} else if (strncmp(req->build_args[i], "--add-host=", 11) == 0) {
			hr_buf_adds(path, "&extrahosts=");
			hr_http_escape(path, req->build_args[i] + 11);
		}
	}
	hr_wall_text_s(hr_wall_ms() / 1000, now);
	(void)snprintf(args, sizeof(args),
	    "{\"OPENHANDS_RUNTIME_VERSION\":\"%s\",\"OPENHANDS_RUNTIME_BUILD_TIME\":\"%s\"}",
	    PACKAGE_VERSION, now);
	hr_buf_adds(path, "&buildargs=");
	hr_http_escape(path, args);
}

static ssize_t
from_file(void *arg, char *p, size_t room)
{
	return hr_fd_read(*(int *)arg, p, room);
}

static int
build(void *arg, const char *const *names, size_t n, const struct hr_image_request *req,
    struct hr_err *err)
{
	struct build *b = arg;
	HR_BUF(path, PATH_TEXT_MAX);
	int r = -1;
	HR_CLOSE int fd = hr_tarfile_make(b->folder, false, false, b->err);

	build_path(&path, names, n, req);
	if (fd >= 0 && hr_buf_check(&path, NULL) == 0)
		r = stream(b, path.p, from_file, &fd, b->err);
	return r == 0 ? 0 : hr_err_set(err, HR_E_GONE, "see the Engine's error");
}

/* Refuses options that the Engine's API cannot express. */
static int
check_args(
    struct json_object *list, const char **ret, size_t room, size_t *ret_n, struct hr_err *err)
{
	size_t n = hr_json_count(list);
	size_t i;

	*ret_n = 0;
	if (n > room)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.runtime_extra_build_args: at most %zu entries are possible", room);
	for (i = 0; i < n; i++) {
		const char *a = hr_json_text(hr_json_entry(list, i));

		if (a == NULL)
			return hr_err_set(err, HR_E_INVAL,
			    "sandbox.runtime_extra_build_args: entry %zu must be a string", i + 1);
		if (strncmp(a, "--network=", 10) != 0 && strncmp(a, "--add-host=", 11) != 0)
			return hr_err_set(err, HR_E_INVAL,
			    "runtime_extra_build_args: only --network= and --add-host= are "
			    "possible: %s",
			    a);
		ret[(*ret_n)++] = a;
	}
	return 0;
}

static int
run_plan(struct build *b, struct hr_err *err)
{
	struct hr_image_builder ops = {b, exists, prepare, build};
	const char *args[32];
	struct hr_image_request req = {
	    .base = b->o->base,
	    .platform = hr_config_text(b->config, "sandbox.platform"),
	    .extra_deps = hr_config_text(b->config, "sandbox.runtime_extra_deps"),
	    .build_args = args,
	    .browser = hr_config_bool(b->config, "core.enable_browser"),
	    .force = b->o->force || hr_config_bool(b->config, "sandbox.force_rebuild_runtime"),
	    .retag = b->o->retag,
	    .v1 = b->o->openhands_v1,
	    .dry_run = b->o->dry_run,
	};
	struct hr_err detail = {0};
	struct hr_err e = {0};

	if (check_args(hr_config_value(b->config, "sandbox.runtime_extra_build_args"), args, 32,
		&req.build_args_n, err) != 0)
		return -1;
	b->err = &detail;
	if (hr_image_build(&ops, &b->tags, &req, &e) == 0)
		return 0;
	if (detail.code == HR_OK)
		return hr_err_from(err, HR_E_BUILD, &e);
	return hr_err_pass(err, &detail);
}

static int
with_folder(struct build *b, struct hr_err *err)
{
	char temporary[] = "/tmp/handrail-build-XXXXXX";
	struct hr_err e = {0};
	int r;

	if (b->o->folder != NULL) {
		if (hr_path_mkdirs_own(b->o->folder, 0755, NULL, &e) < 0)
			return hr_err_from(err, HR_E_SYS, &e);
		b->folder = strdup(b->o->folder);
		return b->folder != NULL ? run_plan(b, err) : hr_err_nomem(err);
	}
	if (mkdtemp(temporary) == NULL)
		return hr_err_sys(err, errno, "create %s", temporary);
	b->folder = strdup(temporary);
	r = b->folder != NULL ? run_plan(b, err) : hr_err_nomem(err);
	if (hr_path_remove(temporary, &e) < 0 && r == 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	return r;
}

int
hr_docker_build(void *self, const struct hr_build_options *o, char **ret_name, struct hr_err *err)
{
	const struct hr_config *c = ((struct hr_docker *)self)->h->config;
	const char *kit = hr_env_get(o->environ, "HANDRAIL_IMAGE_KIT");
	const char *repo = hr_env_get(o->environ, "OH_RUNTIME_RUNTIME_IMAGE_REPO");
	struct build b = {.config = c, .o = o, .kit = kit != NULL ? kit : HR_IMAGE_KIT};
	struct hr_build_options own = *o;
	struct hr_err e = {0};
	int r;

	if (own.base == NULL)
		own.base = hr_config_text(c, "sandbox.base_container_image");
	if (own.base == NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "Neither runtime container image nor base container image is set");
	b.o = &own;
	if (hr_kit_tags(b.kit, own.base, repo, hr_config_bool(c, "core.enable_browser"),
		own.registry_port, own.openhands_v1, &b.tags, &e) < 0)
		return hr_err_from(err, HR_E_INVAL, &e);
	r = hr_engine_init(&b.engine, o->environ, err);
	if (r == 0)
		r = with_folder(&b, err);
	if (r == 0)
		r = (*ret_name = strdup(b.tags.source)) != NULL ? 0 : hr_err_nomem(err);
	hr_engine_done(&b.engine);
	hr_image_tags_done(&b.tags);
	free(b.folder);
	return r;
}
