/* Checks what an image provides for a sandbox. Nothing in the image runs: a container is created,
 * inspected through the Engine, and removed. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "base/random.h"
#include "host/common/exam.h"
#include "host/docker/docker_int.h"
#include "host/common/payload.h"
#include "proto/json.h"

#define PATHS_MAX 5
#define ASK_S 70
#define PATH_TEXT_MAX 16384

struct preflight {
	struct hr_engine *engine;
	const char *image;
	const char *id; /* id of the container */
	hr_finding_fn *fn;
	void *arg;
	bool bad;
	struct hr_err err; /* error of the first failed question; further questions are skipped */
};

static void
found(struct preflight *p, bool ok, const char *what, const char *text)
{
	p->bad |= !ok;
	p->fn(p->arg, ok, what, text);
}

/* ---- inspection ---- */

static int
on_bytes(void *arg, const char *s, size_t len)
{
	(void)arg;
	(void)s;
	(void)len;
	return -1; /* the first byte proves that the file exists */
}

static bool
has(struct preflight *p, const char *path)
{
	struct hr_err e = {0};
	HR_BUF(b, PATH_TEXT_MAX);
	int r;

	if (p->err.code != HR_OK)
		return false;
	hr_buf_addf(&b, "/containers/%s/archive?path=", p->id);
	hr_http_escape(&b, path);
	r = hr_engine_stream(
	    p->engine, "GET", hr_buf_str(&b), NULL, NULL, on_bytes, NULL, ASK_S, &e);
	if (r != 0 && e.status != 404)
		p->err = e;
	return r == 0;
}

/* Returns the first existing path, or NULL. */
static const char *
first_of(struct preflight *p, const char *const paths[PATHS_MAX])
{
	size_t i;

	for (i = 0; i < PATHS_MAX && paths[i] != NULL; i++)
		if (has(p, paths[i]))
			return paths[i];
	return NULL;
}

/* ---- findings ---- */

/* Reports on the programs; `own`: the image has handrail's programs, or compatible ones. */
static void
programs(struct preflight *p, bool own, const char *version, const char *payload)
{
	static const char *const managers[PATHS_MAX] = {
	    "/usr/bin/apt-get", "/sbin/apk", "/usr/bin/dnf", "/usr/bin/microdnf", "/usr/bin/yum"};
	const bool builds = first_of(p, managers) != NULL;

	if (p->err.code != HR_OK)
		return;
	p->bad |= !own && payload == NULL;
	if (own && version != NULL)
		hr_exam_say(p->fn, p->arg, true, "programs", "built by handrail %.40s", version);
	else if (own)
		hr_exam_say(p->fn, p->arg, true, "programs", "%s of its own", HR_PAYLOAD_START);
	else if (payload != NULL)
		hr_exam_say(p->fn, p->arg, true, "programs",
		    "none of handrail's; those of %.400s are mounted", payload);
	else
		hr_exam_say(p->fn, p->arg, false, "programs",
		    "none of handrail's: \"handrail up -i %.100s --payload DIR\" mounts those that "
		    "\"packaging/payload DIR\" makes, in a source tree%s%.100s%s",
		    p->image, builds ? "; \"handrail image build -b " : "", builds ? p->image : "",
		    builds ? "\" makes an image of it that has them" : "");
}

static void
shell(struct preflight *p, bool own)
{
	static const char *const paths[PATHS_MAX] = {
	    "/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"};
	const char *path = first_of(p, paths);

	if (p->err.code != HR_OK)
		return;
	if (path != NULL)
		found(p, true, "bash", path);
	else if (!own)
		found(p, true, "bash", "none; the sandbox uses the payload's");
	else
		found(p, false, "bash", "none: a sandbox needs a shell; install one in the image");
}

static void
libc(struct preflight *p, bool own)
{
	static const char *const gnu[PATHS_MAX] = {
	    "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};
	static const char *const musl[PATHS_MAX] = {
	    "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"};
	const char *path = first_of(p, gnu);
	const bool is_gnu = path != NULL;

	if (path == NULL)
		path = first_of(p, musl);
	if (p->err.code != HR_OK)
		return;
	if (path == NULL)
		found(p, true, "libc", "none; only static programs of the image run");
	else
		hr_exam_say(p->fn, p->arg, true, "libc", "%s (%s)%s", is_gnu ? "glibc" : "musl",
		    path, own ? "" : "; the payload has its own");
}

static void
accounts(struct preflight *p)
{
	static const char *const useradd[PATHS_MAX] = {"/usr/sbin/useradd", "/sbin/useradd"};
	static const char *const sudo[PATHS_MAX] = {"/usr/bin/sudo"};
	const bool makes = first_of(p, useradd) != NULL, rises = first_of(p, sudo) != NULL;

	if (p->err.code == HR_OK)
		hr_exam_say(p->fn, p->arg, true, "accounts", "%s%s",
		    makes ? "useradd makes the sandbox's"
			  : "no useradd; the sandbox's is written to /etc/passwd",
		    rises ? "" : "; no sudo, so it cannot become root");
}

/* Checks optional programs. */
static void
tools(struct preflight *p)
{
	size_t i;

	static const struct {
		const char *what, *paths[PATHS_MAX], *without;
	} all[] = {
	    {"git", {"/usr/bin/git", "/usr/local/bin/git"}, "clone, changes and diff need it"},
	    {"python", {"/usr/bin/python3", "/usr/local/bin/python3"}, "handrail py needs it"},
	};
	const char *path;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		path = first_of(p, all[i].paths);
		if (p->err.code != HR_OK)
			return;
		if (path != NULL)
			found(p, true, all[i].what, path);
		else
			hr_exam_say(p->fn, p->arg, true, all[i].what,
			    "none; %s: install it in the image", all[i].without);
	}
}

static void
examine(struct preflight *p, struct json_object *image, const char *given)
{
	struct json_object *labels = hr_json_at(hr_json_at(image, "Config"), "Labels");
	const char *ours = hr_json_text_or(labels, "org.openhands.runtime", "");
	const char *version = strcmp(ours, "c") == 0
				  ? hr_json_text_or(labels, "org.openhands.version", "unknown")
				  : NULL;
	const bool own = has(p, HR_PAYLOAD_START);

	programs(p, own, version, given != NULL || own ? given : hr_payload_installed());
	shell(p, own && given == NULL);
	libc(p, own && given == NULL);
	accounts(p);
	tools(p);
}

/* Checks whether this machine can run the image at all. */
static void
machine(struct preflight *p, struct json_object *image)
{
	const char *os = hr_json_text_or(image, "Os", ""),
		   *arch = hr_json_text_or(image, "Architecture", ""), *here;
	HR_PUT struct json_object *version = NULL;
	long long bytes = (long long)hr_json_int_at(image, "Size");

	if (hr_engine_call(p->engine, "GET", "/version", NULL, &version, &p->err) != 0)
		return;
	here = hr_json_text_or(version, "Arch", "");
	if (strcmp(os, "linux") == 0 && strcmp(arch, here) == 0) {
		hr_exam_say(p->fn, p->arg, true, "image", "%.200s, %.20s/%.20s, %lld MB", p->image,
		    os, arch, bytes / 1000000);
	} else {
		p->bad = true;
		hr_exam_say(p->fn, p->arg, false, "image",
		    "%.200s is for %.20s/%.20s, the Engine for linux/%.20s: \"docker pull "
		    "--platform linux/%.20s %.100s\"",
		    p->image, os, arch, here, here, p->image);
	}
}

/* ---- the container ---- */

#define NAME "handrail-preflight-"

static int
look_into(struct preflight *p, struct json_object *image, const char *payload, struct hr_err *err)
{
	static const char *const command[] = {"never", NULL};
	HR_PUT struct json_object *made = NULL;
	HR_PUT struct json_object *body =
	    hr_json_object(err, "Image", json_object_new_string(p->image), "Entrypoint",
		json_object_new_array(), "Cmd", hr_json_list(err, command), NULL);
	char path[200], name[17];
	struct hr_err e = {0};
	int r;

	if (body == NULL || hr_random_hex(name, sizeof(name) - 1, err) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/containers/create?name=" NAME "%s", name);
	r = hr_engine_call(p->engine, "POST", path, body, &made, err);
	p->id = hr_docker_id(made, "Id");
	if (r == 0 && *p->id == '\0')
		r = hr_err_set(err, HR_E_RUNTIME, "the Engine's container has no id");
	if (r == 0)
		examine(p, image, payload);
	/* the name is known even if the answer with the id was lost or not understood */
	(void)snprintf(path, sizeof(path), "/containers/" NAME "%s?v=true&force=true", name);
	if (hr_engine_call(p->engine, "DELETE", path, NULL, NULL, &e) != 0 && r == 0)
		r = hr_err_pass(err, &e);
	if (r == 0 && p->err.code != HR_OK) {
		r = -1;
		if (err != NULL)
			*err = p->err;
	}
	return r;
}

/* Inspects the image; pulls it if it is missing. */
static int
image_of(struct preflight *p, const char *path, struct json_object **ret, struct hr_err *err)
{
	struct hr_err why = {0};

	if (hr_engine_call(p->engine, "GET", path, NULL, ret, err) == 0)
		return 0;
	if (err->status != 404)
		return -1;
	if (hr_docker_pull(p->engine, p->image, NULL, NULL, &why) != 0)
		return hr_err_set(err, why.code,
		    "%.200s is not on this machine and cannot be pulled: %.300s", p->image,
		    why.msg);
	return hr_engine_call(p->engine, "GET", path, NULL, ret, err);
}

int
hr_image_preflight(const struct hr_config *c, const char *const *env, const char *image,
    hr_finding_fn *fn, void *arg, bool *ret_well, struct hr_err *err)
{
	HR_CLEAN(hr_engine_done) struct hr_engine e = {0};
	struct preflight p = {.engine = &e, .image = image, .fn = fn, .arg = arg};
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	const char *payload;
	HR_BUF(path, PATH_TEXT_MAX);
	int r;

	*ret_well = false;
	hr_docker_image_path(&path, image);
	hr_buf_adds(&path, "/json");
	r = hr_payload_given(c, &payload, &why);
	if (r == 0 && (*image == '\0' || hr_buf_check(&path, NULL) != 0))
		r = hr_err_set(&why, HR_E_INVAL, "the name of the image is empty, or too long");
	if (r == 0)
		r = hr_engine_init(&e, env, &why);
	if (r == 0)
		r = image_of(&p, path.p, &o, &why);
	if (r == 0)
		machine(&p, o);
	if (r == 0)
		r = look_into(&p, o, payload, &why);
	*ret_well = r == 0 && !p.bad;
	if (r != 0 && err != NULL)
		*err = why;
	return r;
}
