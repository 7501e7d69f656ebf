/* Makes snapshots of containers, which are images. A commit alone would keep all variables of the
 * container in its record of the image, with the session key and the user's tokens. Therefore the
 * image gets a second record over the same layers, with the variables of the first image alone, and
 * the commit is removed. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/text/text.h"
#include "host/common/lock.h"
#include "host/docker/docker_int.h"
#include "host/docker/progress.h"
#include "host/docker/snapshots.h"
#include "host/records/record.h"
#include "http/http.h"
#include "proto/json.h"

#define REPOSITORY "handrail-snapshot"
#define LABEL "handrail.snapshot"
#define UNFINISHED LABEL ".unfinished"
#define ANSWER_MAX (1u << 20)
#define LIST_MAX (16u << 20)
#define BLOCK 512        /* bytes of a tar file */
#define NUMBER_MAX 10000 /* snapshots of a sandbox whose names the Engine chooses */
#define PATIENCE_MS (5 * 60 * 1000)

/* ---- images ---- */

static int
check_tag(const char *tag, struct hr_err *err)
{
	return hr_sid_valid(tag) && *tag != '.' && *tag != '-' && strlen(tag) <= HR_DOCKER_TAG_MAX
		   ? 0
		   : hr_err_set(err, HR_E_INVAL,
			 "invalid name of a snapshot, \"%.200s\": use at most %d letters, digits, "
			 "'_', '.' and '-', and no dot and no '-' as the first character",
			 tag, HR_DOCKER_TAG_MAX);
}

/* Reads an image's description. Returns 1, 0 if there is no such image, or -1 with *err set. */
static int
look(struct hr_engine *e, const char *image, struct json_object **ret, struct hr_err *err)
{
	struct hr_err why = {0};
	HR_BUF(path, 8192);

	hr_docker_image_path(&path, image);
	hr_buf_adds(&path, "/json");
	if (hr_buf_check(&path, err) < 0)
		return -1;
	if (hr_engine_call(e, "GET", hr_buf_str(&path), NULL, ret, &why) == 0)
		return 1;
	return why.status == 404 ? 0 : hr_err_pass(err, &why);
}

static int
remove_image(struct hr_engine *e, const char *image, struct hr_err *err)
{
	HR_BUF(path, 8192);

	hr_docker_image_path(&path, image);
	hr_buf_adds(&path, "?noprune=true");
	return hr_buf_check(&path, err) == 0
		   ? hr_engine_call(e, "DELETE", hr_buf_str(&path), NULL, NULL, err)
		   : -1;
}

static bool
is_snapshot(struct json_object *labels)
{
	return hr_json_str_is(hr_json_at(labels, LABEL ".backend"), "docker") &&
	       hr_docker_is_users(hr_json_text_at(labels, HR_CONTAINER_LABEL));
}

/* Lists this user's images with a label. */
static int
list(struct hr_engine *e, const char *label, struct json_object **ret, struct hr_err *err)
{
	HR_BUF(path, 8192);
	HR_BUF(filter, 4096);

	hr_buf_addf(&filter, "{\"label\":[\"%s\"]}", label);
	hr_buf_adds(&path, "/images/json?filters=");
	hr_http_escape(&path, hr_buf_str(&filter));
	if (hr_buf_check(&filter, err) < 0 || hr_buf_check(&path, err) < 0)
		return -1;
	return hr_engine_call(e, "GET", hr_buf_str(&path), NULL, ret, err);
}

/* Removes the commits of killed commands. */
static int
remove_leftovers(struct hr_engine *e, const char *owner, struct hr_err *err)
{
	HR_PUT struct json_object *images = NULL;
	char label[512];
	size_t i;

	(void)snprintf(label, sizeof(label), UNFINISHED "=%s", owner);
	if (list(e, label, &images, err) < 0)
		return -1;
	for (i = 0; i < hr_json_count(images); i++)
		if (remove_image(e, hr_json_text_or(hr_json_entry(images, i), "Id", "-"), err) < 0)
			return -1;
	return 0;
}

/* ---- a record of an image ---- */

/* The tar file that "docker load" reads. */
struct load {
	struct hr_buf tar;
	size_t sent;
};

static void
load_done(struct load *l)
{
	hr_buf_done(&l->tar);
}

static void
add_file(struct hr_buf *b, const char *name, const char *text)
{
	const size_t len = strlen(text);
	char head[BLOCK] = "";
	unsigned sum = 0;
	size_t i;

	(void)snprintf(head, 100, "%s", name);
	(void)snprintf(head + 100, 8, "0000600");
	(void)snprintf(head + 108, 8, "0000000");
	(void)snprintf(head + 116, 8, "0000000");
	(void)snprintf(head + 124, 12, "%011o", (unsigned)len);
	(void)snprintf(head + 136, 12, "00000000000");
	memset(head + 148, ' ', 8);
	head[156] = '0';
	memcpy(head + 257, "ustar\00000", 8);
	for (i = 0; i < sizeof(head); i++)
		sum += (unsigned char)head[i];
	(void)snprintf(head + 148, 8, "%06o", sum);
	hr_buf_add(b, head, sizeof(head));
	hr_buf_add(b, text, len);
	memset(head, 0, sizeof(head));
	hr_buf_add(b, head, (BLOCK - len % BLOCK) % BLOCK);
}

static ssize_t
next_piece(void *arg, char *p, size_t room)
{
	struct load *l = arg;
	const size_t n = l->tar.len - l->sent < room ? l->tar.len - l->sent : room;

	memcpy(p, l->tar.p + l->sent, n);
	l->sent += n;
	return (ssize_t)n;
}

static struct json_object *
labels_of(const struct hr_docker *d, struct json_object *config, const char *tag, const char *owner,
    struct hr_err *err)
{
	struct json_object *labels = hr_json_at(config, "Labels");
	char created[24];

	labels = json_object_is_type(labels, json_type_object) ? json_object_get(labels)
							       : json_object_new_object();
	(void)snprintf(created, sizeof(created), "%lld", (long long)time(NULL));
	if (hr_json_set(labels, LABEL, json_object_new_string(tag), err) == 0 &&
	    hr_json_set(labels, LABEL ".backend", json_object_new_string("docker"), err) == 0 &&
	    hr_json_set(labels, LABEL ".sandbox", json_object_new_string(d->h->sid), err) == 0 &&
	    hr_json_set(labels, LABEL ".created", json_object_new_string(created), err) == 0 &&
	    hr_json_set(labels, HR_CONTAINER_LABEL, json_object_new_string(owner), err) == 0)
		return labels;
	json_object_put(labels);
	return NULL;
}

/* Composes the list of an image's steps, which has one for each layer. */
static struct json_object *
steps(const char *created, size_t layers, struct hr_err *err)
{
	struct json_object *list_of = json_object_new_array();
	size_t i;

	for (i = 0; i < layers; i++)
		if (hr_json_append(list_of,
			hr_json_texts(err, "created", created, "created_by",
			    i + 1 < layers ? "" : "handrail snapshot", NULL),
			err) < 0) {
			json_object_put(list_of);
			return NULL;
		}
	return list_of;
}

/* Composes the tar file: the settings are those of `base`, the layers those of `commit`. The
 * Engine has the layers, and looks for none in the file. */
static int
compose(struct load *l, struct hr_docker *d, struct json_object *base, struct json_object *commit,
    const char *tag, const char *owner, struct hr_err *err)
{
	struct json_object *config = hr_json_at(base, "Config");
	struct json_object *layers = hr_json_at(hr_json_at(commit, "RootFS"), "Layers");
	char created[HR_WALL_TEXT], name[sizeof(REPOSITORY) + HR_DOCKER_TAG_MAX + 2];
	HR_PUT struct json_object *record = NULL;
	HR_PUT struct json_object *index = NULL;
	HR_FREE char *record_text = NULL;
	HR_FREE char *index_text = NULL;

	if (!json_object_is_type(config, json_type_object) || hr_json_count(layers) == 0)
		return hr_err_set(err, HR_E_RUNTIME, "the Engine did not describe its images");
	hr_wall_text_s(hr_wall_ms() / 1000, created);
	(void)snprintf(name, sizeof(name), REPOSITORY ":%s", tag);
	if (hr_json_set(config, "Labels", labels_of(d, config, tag, owner, err), err) < 0)
		return -1;
	record = hr_json_object(err, "created", json_object_new_string(created), "architecture",
	    hr_json_maybe(hr_json_text_at(commit, "Architecture")), "os",
	    hr_json_maybe(hr_json_text_at(commit, "Os")), "config", json_object_get(config),
	    "rootfs",
	    hr_json_object(err, "type", json_object_new_string("layers"), "diff_ids",
		json_object_get(layers), NULL),
	    "history", steps(created, hr_json_count(layers), err), NULL);
	index = json_object_new_array();
	if (record == NULL ||
	    hr_json_append(index,
		hr_json_object(err, "Config", json_object_new_string("config.json"), "RepoTags",
		    hr_json_list(err, (const char *const[]){name, NULL}), "Layers",
		    json_object_get(layers), NULL),
		err) < 0 ||
	    (record_text = hr_json_string(record, ANSWER_MAX, err)) == NULL ||
	    (index_text = hr_json_string(index, ANSWER_MAX, err)) == NULL)
		return -1;
	add_file(&l->tar, "config.json", record_text);
	add_file(&l->tar, "manifest.json", index_text);
	hr_buf_add(&l->tar, (const char[2 * BLOCK]){0}, (size_t)2 * BLOCK);
	return hr_buf_check(&l->tar, err);
}

/* ---- making ---- */

/* Commits the container; no limit holds for the time. *ret_id is the image's. */
static int
commit(struct hr_docker *d, const char *owner, char **ret_id, struct hr_err *err)
{
	HR_PUT struct json_object *changes =
	    hr_json_object(err, "Labels", hr_json_texts(err, UNFINISHED, owner, NULL), NULL);
	const unsigned limit = d->engine.timeout_s;
	HR_PUT struct json_object *o = NULL;
	char path[512];
	int r;

	if (changes == NULL)
		return -1;
	(void)snprintf(path, sizeof(path), "/commit?container=%s&pause=true", hr_docker_ref(d));
	d->engine.timeout_s = 0;
	r = hr_engine_call(&d->engine, "POST", path, changes, &o, err);
	d->engine.timeout_s = limit;
	if (r < 0)
		return -1;
	if (hr_json_text_at(o, "Id") == NULL)
		return hr_err_set(err, HR_E_RUNTIME, "the Engine did not report its commit");
	return hr_text_set(ret_id, hr_json_text_at(o, "Id"), err);
}

static int
load(struct hr_docker *d, struct json_object *base, struct json_object *made, const char *tag,
    const char *owner, struct hr_err *err)
{
	HR_CLEAN(load_done) struct load l = {.tar = {.cap = 4 * ANSWER_MAX}};

	return compose(&l, d, base, made, tag, owner, err) == 0
		   ? hr_engine_progress(
			 &d->engine, "/images/load?quiet=1", next_piece, &l, NULL, NULL, err)
		   : -1;
}

/* Returns the record of an image, as snapshots of boxes have it. */
static struct json_object *
describe(const char *image, struct json_object *labels, int64_t bytes, struct hr_err *err)
{
	const char *created = hr_json_text_or(labels, LABEL ".created", "0");

	return hr_json_object(err, "tag", hr_json_maybe(hr_json_text_at(labels, LABEL)), "sandbox",
	    hr_json_maybe(hr_json_text_at(labels, LABEL ".sandbox")), "backend",
	    json_object_new_string("docker"), "image", json_object_new_string(image), "created",
	    json_object_new_int64(strtoll(created, NULL, 10)), "bytes",
	    json_object_new_int64(bytes), "still", json_object_new_boolean(true), NULL);
}

static int
make(struct hr_docker *d, const char *tag, const char *owner, char **ret_json, struct hr_err *err)
{
	HR_PUT struct json_object *container = NULL;
	HR_PUT struct json_object *base = NULL;
	HR_PUT struct json_object *made = NULL;
	HR_PUT struct json_object *whole = NULL;
	HR_PUT struct json_object *record = NULL;
	char name[sizeof(REPOSITORY) + HR_DOCKER_TAG_MAX + 2];
	HR_FREE char *id = NULL;
	int r;

	if (hr_docker_call(d, "GET", "/json", &container, err) < 0)
		return -1;
	r = look(&d->engine, hr_json_text_or(container, "Image", "-"), &base, err);
	if (r <= 0)
		return r < 0 ? -1
			     : hr_err_set(err, HR_E_NOTFOUND,
				   "the image of the container is gone, and with it the list of "
				   "variables that are no secrets");
	if (commit(d, owner, &id, err) < 0)
		return -1;
	r = look(&d->engine, id, &made, err);
	if (r == 0)
		r = hr_err_set(err, HR_E_RUNTIME, "the commit %.20s is gone", id);
	if (r > 0)
		r = load(d, base, made, tag, owner, err);
	/* the commit must go in any case: it has the secrets */
	if (remove_image(&d->engine, id, r == 0 ? err : NULL) < 0 || r < 0)
		return -1;
	(void)snprintf(name, sizeof(name), REPOSITORY ":%s", tag);
	if (look(&d->engine, name, &whole, err) <= 0)
		return hr_err_set(err, HR_E_RUNTIME, "the Engine did not keep the image %s", name);
	record = describe(name, hr_json_at(hr_json_at(whole, "Config"), "Labels"),
	    hr_json_int_at(whole, "Size"), err);
	*ret_json = record != NULL ? hr_json_string(record, ANSWER_MAX, err) : NULL;
	return *ret_json != NULL ? 0 : -1;
}

/* Sets *ret to the name of the new snapshot. */
static int
choose_tag(struct hr_docker *d, const char *tag, char **ret, struct hr_err *err)
{
	int n, r;

	for (n = 1; n < NUMBER_MAX; n++) {
		HR_PUT struct json_object *o = NULL;
		HR_FREE char *image = NULL;

		if ((tag != NULL ? hr_text_set(ret, tag, err)
				 : hr_text_setf(ret, err, "%s-%d", d->h->sid, n)) < 0 ||
		    check_tag(*ret, err) < 0 ||
		    hr_text_setf(&image, err, REPOSITORY ":%s", *ret) < 0 ||
		    (r = look(&d->engine, image, &o, err)) < 0)
			return -1;
		if (r == 0)
			return 0;
		if (tag != NULL)
			return hr_err_set(err, HR_E_INVAL,
			    "there is a snapshot \"%s\" already: \"handrail snapshot rm %s\" "
			    "removes it",
			    tag, tag);
	}
	return hr_err_set(err, HR_E_TOOLARGE, "the sandbox has %d snapshots: give a name", n - 1);
}

int
hr_docker_snapshot(void *self, const char *tag, char **ret_json, struct hr_err *err)
{
	struct hr_docker *d = self;
	HR_FREE char *owner = NULL;
	HR_FREE char *name = NULL;
	HR_CLOSE int lock = -1;
	int sys;

	*ret_json = NULL;
	if (d->h->state_dir == NULL)
		return hr_err_set(err, HR_E_UNSUPPORTED, "snapshots need a state directory");
	if ((tag != NULL && check_tag(tag, err) < 0) || hr_docker_owner(d->h, &owner, err) < 0 ||
	    hr_docker_engine(d, err) < 0)
		return -1;
	/* the commit of another command is no leftover */
	lock = open(d->h->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sys = lock >= 0 ? hr_lock_in_time(lock, LOCK_EX, PATIENCE_MS) : errno;
	if (sys != 0)
		return hr_err_sys(err, sys, "lock %s", d->h->state_dir);
	if (remove_leftovers(&d->engine, owner, err) < 0 || choose_tag(d, tag, &name, err) < 0)
		return -1;
	if (make(d, name, owner, ret_json, err) == 0)
		return 0;
	/* the Engine may have committed without an answer, and the commit has the secrets */
	(void)remove_leftovers(&d->engine, owner, NULL);
	return -1;
}

/* ---- use ---- */

/* Returns true if the image has that name, perhaps among others. */
static bool
is_named(struct json_object *image, const char *name)
{
	struct json_object *names = hr_json_at(image, "RepoTags");
	size_t i = 0;

	while (i < hr_json_count(names) && !hr_json_str_is(hr_json_entry(names, i), name))
		i++;
	return i < hr_json_count(names);
}

int
hr_docker_snapshots(const char *const *env, struct json_object *ret, struct hr_err *err)
{
	HR_CLEAN(hr_engine_done) struct hr_engine e = {0};
	HR_PUT struct json_object *images = NULL;
	size_t i;

	if (hr_engine_init(&e, env, err) < 0 || list(&e, LABEL ".backend=docker", &images, err) < 0)
		return -1;
	for (i = 0; i < hr_json_count(images); i++) {
		struct json_object *o = hr_json_entry(images, i), *labels = hr_json_at(o, "Labels");
		const char *tag = hr_json_text_at(labels, LABEL);
		char name[sizeof(REPOSITORY) + HR_DOCKER_TAG_MAX + 2];

		/* an image of another name is a copy, which is the user's own */
		if (tag == NULL || !is_snapshot(labels) || check_tag(tag, NULL) < 0)
			continue;
		(void)snprintf(name, sizeof(name), REPOSITORY ":%s", tag);
		if (is_named(o, name) &&
		    hr_json_append(
			ret, describe(name, labels, hr_json_int_at(o, "Size"), err), err) < 0)
			return -1;
	}
	return 0;
}

/* Connects, and finds the image of a snapshot. */
static int
find(struct hr_engine *e, const char *const *env, const char *tag, char **ret, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	int r;

	if (check_tag(tag, err) < 0 || hr_text_setf(ret, err, REPOSITORY ":%s", tag) < 0 ||
	    hr_engine_init(e, env, err) < 0)
		return -1;
	r = look(e, *ret, &o, err);
	if (r > 0 && is_snapshot(hr_json_at(hr_json_at(o, "Config"), "Labels")))
		return 0;
	return r < 0 ? -1
		     : hr_err_set(err, HR_E_NOTFOUND,
			   r == 0 ? "there is no snapshot \"%s\" of a container; \"handrail "
				    "snapshot ls\" lists "
				    "them"
				  : "the image " REPOSITORY
				    ":%s was not made by your \"handrail snapshot\"",
			   tag);
}

int
hr_docker_snapshot_image(const char *const *env, const char *tag, char **ret, struct hr_err *err)
{
	HR_CLEAN(hr_engine_done) struct hr_engine e = {0};

	return find(&e, env, tag, ret, err);
}

int
hr_docker_snapshot_remove(const char *const *env, const char *tag, struct hr_err *err)
{
	HR_CLEAN(hr_engine_done) struct hr_engine e = {0};
	HR_FREE char *image = NULL;

	return find(&e, env, tag, &image, err) == 0 ? remove_image(&e, image, err) : -1;
}
