/* Handles images that the service builds (doc/images.md, "Building"): this process makes the folder
 * and sends it as a form. The choice of images is the same as with an Engine. */
#include "config.h"

#include "host/remote/remote_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "base/err.h"
#include "base/text/text.h"
#include "host/config/settings.h"
#include "host/transfer/tarfile.h"
#include "image/kit.h"
#include "image/plan.h"
#include "proto/json.h"

#define CONTEXT_MAX (512u << 20)
#define BUILD_TIMEOUT_S 30
#define STATUS_TIMEOUT_S 60
#define STATUS_ROUND_MS 30000
#define BUILD_MINUTES 30
#define LIMITED_MS 30000
#define LIMITED_TIMES 20

struct build {
	struct hr_remote *remote;
	const struct hr_build_options *o;
	const char *kit;
	struct hr_image_tags tags;
	char folder[64];
	struct hr_err detail; /* the full error, as the caller's struct hr_err is short */
};

static int
see_detail(struct hr_err *err)
{
	return hr_err_set(err, HR_E_GONE, "see the service's error");
}

static int
exists(void *arg, const char *name, bool pull, bool usable, bool *ret, struct hr_err *err)
{
	struct build *b = arg;
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	HR_BUF(path, 8192);
	int r;

	(void)pull;
	(void)usable;
	hr_buf_adds(&path, "/image_exists?image=");
	hr_http_escape(&path, name);
	if (hr_buf_check(&path, NULL) != 0)
		r = hr_err_nomem(&why);
	else
		r = hr_rest_get(b->remote->api, path.p, &o, &why);
	if (r != 0)
		(void)hr_err_set(
		    &b->detail, HR_E_BUILD, "Failed to check image existence: %s", why.msg);
	else
		*ret = hr_json_true_at(o, "exists");
	return r == 0 ? 0 : see_detail(err);
}

static int
prepare(void *arg, const char *from, enum hr_image_strategy s, const struct hr_image_request *req,
    struct hr_err *err)
{
	struct build *b = arg;

	return hr_kit_prepare(b->kit, b->folder, from, s, req, &b->tags, err);
}

/* Appends the folder as a gzip-compressed tar in base64, like the original's clients. */
static int
put_context(struct build *b, struct hr_buf *to)
{
	unsigned char
	    chunk[3 * 16384]; /* a multiple of 3, so that padding occurs only at the end */
	HR_CLOSE int fd = hr_tarfile_make(b->folder, true, false, &b->detail);
	size_t n;
	ssize_t got;

	if (fd < 0)
		return -1;
	do {
		for (n = 0; n < sizeof(chunk); n += (size_t)got)
			if ((got = hr_fd_read(fd, (char *)chunk + n, sizeof(chunk) - n)) <= 0)
				break;
		hr_quote_base64(to, chunk, n);
	} while (n == sizeof(chunk));
	return 0;
}

/* Writes the form. The boundary cannot occur in the content, which is base64 and names. */
static int
put_form(
    struct build *b, struct hr_buf *body, const char *boundary, const char *const *names, size_t n)
{
	size_t i;

	hr_buf_addf(body,
	    "--%s\r\nContent-Disposition: form-data; name=\"target_image\"\r\n\r\n%s\r\n", boundary,
	    names[0]);
	for (i = 1; i < n; i++)
		hr_buf_addf(body,
		    "--%s\r\nContent-Disposition: form-data; name=\"tags\"\r\n\r\n%s\r\n", boundary,
		    names[i]);
	hr_buf_addf(body,
	    "--%s\r\nContent-Disposition: form-data; name=\"context\"; "
	    "filename=\"context.tar.gz\"\r\nContent-Type: application/x-tar\r\n\r\n",
	    boundary);
	if (put_context(b, body) != 0)
		return -1;
	hr_buf_addf(body, "\r\n--%s--\r\n", boundary);
	return hr_buf_check(body, NULL) == 0
		   ? 0
		   : hr_err_set(&b->detail, HR_E_BUILD, "the build folder is too large");
}

/* Starts the build; the caller frees *ret, its id. A busy service is asked again for ten
 * minutes. */
static int
begin(struct build *b, const char *const *names, size_t n, char **ret)
{
	char boundary[48] = "handrail-", type[96];
	const char *const headers[] = {type, NULL};
	struct hr_rest_call c = {
	    .method = "POST", .path = "/build", .headers = headers, .timeout_s = BUILD_TIMEOUT_S};
	struct hr_rest_answer a = {0};
	unsigned char random[12] = {0};
	HR_BUF(body, CONTEXT_MAX);
	size_t i;
	int r;

	(void)!getrandom(random, sizeof(random), 0); /* getrandom() cannot fail for so few bytes */
	hr_quote_hex(boundary + 9, random, sizeof(random));
	(void)snprintf(
	    type, sizeof(type), "Content-Type: multipart/form-data; boundary=%s", boundary);
	r = put_form(b, &body, boundary, names, n);
	c.body = hr_buf_str(&body);
	c.body_len = body.len;
	for (i = 0; r == 0 && i < LIMITED_TIMES; i++) {
		hr_rest_answer_done(&a);
		r = hr_rest_call(b->remote->api, &c, &a, &b->detail);
		if (r == 0 || b->detail.status != 429)
			break;
		if (i + 1 < LIMITED_TIMES) {
			(void)hr_rest_wait(-1, LIMITED_MS);
			r = 0;
		}
	}
	if (r == 0 && hr_json_text_at(a.json, "build_id") == NULL)
		r = hr_err_set(&b->detail, HR_E_BUILD, "the service's answer has no build_id");
	if (r == 0 && (*ret = strdup(hr_json_text_at(a.json, "build_id"))) == NULL)
		r = hr_err_nomem(&b->detail);
	hr_rest_answer_done(&a);
	return r;
}

/* Returns 1 if the image is built, 0 if not yet, or -1 if the build failed. */
static int
look(struct build *b, const char *path, const char *id)
{
	static const char *const ends[] = {
	    "FAILURE", "INTERNAL_ERROR", "TIMEOUT", "CANCELLED", "EXPIRED"};
	struct hr_rest_call c = {.method = "GET", .path = path, .timeout_s = STATUS_TIMEOUT_S};
	HR_CLEAN(hr_rest_answer_done) struct hr_rest_answer a = {0};
	struct hr_err why = {0};
	const char *status, *error;
	int r = 0;

	if (hr_rest_call(b->remote->api, &c, &a, &why) != 0) {
		r = hr_err_set(&b->detail, HR_E_BUILD, "Failed to get build status: %s", why.msg);
	} else {
		size_t i;

		status = hr_json_text_or(a.json, "status", "");
		error = hr_json_text_at(a.json, "error");
		r = strcmp(status, "SUCCESS") == 0;
		for (i = 0; i < sizeof(ends) / sizeof(*ends); i++)
			if (strcmp(status, ends[i]) == 0)
				r = error != NULL
					? hr_err_set(&b->detail, HR_E_BUILD, "%s", error)
					: hr_err_set(&b->detail, HR_E_BUILD,
					      "Build failed with status: %s. Build ID: %.100s",
					      status, id);
	}
	return r;
}

static int
build(void *arg, const char *const *names, size_t n, const struct hr_image_request *req,
    struct hr_err *err)
{
	struct build *b = arg;
	struct timespec from, now;
	HR_BUF(path, 8192);
	HR_FREE char *id = NULL;
	int r = 0;

	(void)req;
	if (begin(b, names, n, &id) != 0)
		return see_detail(err);
	hr_buf_adds(&path, "/build_status?build_id=");
	hr_http_escape(&path, id);
	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	if (hr_buf_check(&path, NULL) != 0)
		r = hr_err_nomem(&b->detail);
	while (r == 0 && (r = look(b, path.p, id)) == 0) {
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - from.tv_sec >= BUILD_MINUTES * 60)
			r = hr_err_set(&b->detail, HR_E_BUILD, "Build timed out after %d minutes",
			    BUILD_MINUTES);
		else
			(void)hr_rest_wait(-1, STATUS_ROUND_MS);
	}
	return r == 1 ? 0 : see_detail(err);
}

static char *
repository(struct build *b)
{
	HR_PUT struct json_object *o = NULL;
	const char *prefix;
	char *repo = NULL;
	size_t n;

	if (hr_rest_get(b->remote->api, "/registry_prefix", &o, &b->detail) != 0)
		return NULL;
	prefix = hr_json_text_at(o, "registry_prefix");
	n = prefix != NULL ? strlen(prefix) : 0;
	while (n > 0 && prefix[n - 1] == '/')
		n--;
	if (n == 0)
		(void)hr_err_set(&b->detail, HR_E_BUILD,
		    "the service has no registry_prefix, so it builds no images; name one in "
		    "sandbox.runtime_container_image");
	else
		(void)hr_text_setf(&repo, &b->detail, "%.*s/runtime", (int)n, prefix);
	return repo;
}

static int
run_plan(struct build *b, const char *base, struct hr_err *err)
{
	const struct hr_config *c = b->remote->h->config;
	struct hr_image_builder ops = {b, exists, prepare, build};
	struct hr_image_request req = {
	    .base = base,
	    .platform = hr_config_text(c, "sandbox.platform"),
	    .extra_deps = hr_config_text(c, "sandbox.runtime_extra_deps"),
	    .browser = hr_config_bool(c, "core.enable_browser"),
	    .force = b->o->force || hr_config_bool(c, "sandbox.force_rebuild_runtime"),
	    .retag = b->o->retag,
	    .v1 = b->o->openhands_v1,
	    .dry_run = b->o->dry_run,
	};
	bool there = false;

	if (hr_image_build(&ops, &b->tags, &req, err) != 0)
		return -1;
	if (req.dry_run)
		return 0;
	if (exists(b, b->tags.source, false, false, &there, err) != 0)
		return -1;
	if (there)
		return 0;
	(void)hr_err_set(
	    &b->detail, HR_E_RUNTIME, "Container image %s does not exist", b->tags.source);
	return see_detail(err);
}

char *
hr_remote_build(struct hr_remote *remote, const struct hr_build_options *o, struct hr_err *err)
{
	const struct hr_config *c = remote->h->config;
	const char *kit = hr_env_get(o->environ, "HANDRAIL_IMAGE_KIT");
	const char *base =
	    o->base != NULL ? o->base : hr_config_text(c, "sandbox.base_container_image");
	struct build b = {.remote = remote, .o = o, .kit = kit != NULL ? kit : HR_IMAGE_KIT};
	char *name = NULL;
	HR_FREE char *repo = NULL;
	struct hr_err e = {0};
	bool made = false;
	int r = -1;

	if (base == NULL) {
		(void)hr_err_set(err, HR_E_INVAL,
		    "base_container_image is required to build the runtime image.");
		return NULL;
	}
	remote->h->status(remote->h->arg, "STATUS$BUILDING_RUNTIME");
	(void)snprintf(b.folder, sizeof(b.folder), "/tmp/handrail-build-XXXXXX");
	repo = repository(&b);
	if (repo == NULL)
		goto out;
	r = hr_kit_tags(b.kit, base, repo, hr_config_bool(c, "core.enable_browser"), true,
	    o->openhands_v1, &b.tags, &e);
	if (r == 0) {
		made = mkdtemp(b.folder) != NULL;
		r = made ? run_plan(&b, base, &e)
			 : hr_err_set(&e, HR_E_SYS,
			       "no folder for the build could be made in /tmp: check its space and "
			       "mode");
	}
	if (made && hr_path_remove(b.folder, NULL) != 0)
		remote->h->log(remote->h->arg, "a build folder in /tmp could not be removed");
	if (r == 0 && (name = strdup(b.tags.source)) == NULL)
		r = hr_err_nomem(&b.detail);
out:
	if (r != 0 && b.detail.code == HR_OK)
		(void)hr_err_from(err, HR_E_BUILD, &e);
	else if (r != 0 && err != NULL)
		*err = b.detail;
	hr_image_tags_done(&b.tags);
	return name;
}
