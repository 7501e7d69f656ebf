/* Keeps records of sandboxes: a file for each, by which other processes find it. A record holds the
 * session key, so only the user can read it. */
#include "config.h"

#include "host/records/record.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json_object.h>

#include "base/dir.h"
#include "base/path.h"
#include "base/err.h"
#include "base/strv.h"
#include "host/common/statedir.h"
#include "host/records/namelock.h"
#include "proto/json.h"

#define RECORD_MAX (1u << 20)
#define SUFFIX ".json"

char *
hr_record_path(const char *state_dir, const char *sid, const char *suffix)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s%s", state_dir, sid, suffix) < 0 ? NULL : path;
}

static int
save(struct hr_sandbox *s, bool begun, struct hr_err *err)
{
	HR_FREE char *backend = s->ops->record != NULL ? s->ops->record(s->self, err) : NULL;
	HR_FREE char *path = hr_record_path(s->state_dir, s->sid, SUFFIX);
	struct hr_err e = {0};
	const char *image;
	HR_BUF(b, RECORD_MAX);
	int r;

	if (backend == NULL)
		return s->ops->record != NULL ? -1 : 0;
	hr_buf_addc(&b, '{');
	hr_json_put_named(&b, "sid", s->sid);
	hr_json_put_named(&b, "runtime", s->ops->name);
	hr_json_put_named(&b, "url", s->endpoint.url);
	image = hr_config_text(s->config, "sandbox.runtime_container_image");
	if ((s->ops->flags & (HR_KIND_HERE | HR_KIND_NO_IMAGE)) == 0 && image != NULL)
		hr_json_put_named(&b, "image", image);
	if (s->spec[0] != '\0')
		hr_buf_addf(&b, ",\"spec\":\"%s\"", s->spec);
	hr_buf_adds(&b, begun ? ",\"begun\":true" : "");
	hr_buf_addf(&b, ",\"created\":%lld,\"backend\":%s}\n", (long long)time(NULL), backend);
	r = path == NULL ? hr_err_nomem(&e) : hr_buf_check(&b, &e);
	if (r == 0 && hr_state_directory(s->state_dir, true, err) < 0)
		return -1;
	if (r == 0)
		r = hr_path_write(path, b.p, b.len, 0600, &e);
	return r == 0 ? 0 : hr_err_from(err, HR_E_SYS, &e);
}

int
hr_record_save(struct hr_sandbox *s, struct hr_err *err)
{
	return save(s, false, err);
}

int
hr_record_save_begun(struct hr_sandbox *s, struct hr_err *err)
{
	return save(s, true, err);
}

static char *
copy_text(struct json_object *o, const char *name)
{
	const char *text = hr_json_text_at(o, name);

	return text != NULL ? strdup(text) : NULL;
}

/* Returns NULL with *err set for a damaged record; NULL without an error if there is none. */
static struct json_object *
read_record(const char *path, struct hr_err *err)
{
	struct json_object *o = NULL;
	struct hr_err e = {0};
	HR_BUF(b, RECORD_MAX);

	if (err != NULL)
		err->code = HR_OK;
	if (hr_path_read(path, &b, &e) != 0) {
		if (e.sys != ENOENT)
			(void)hr_err_from(err, HR_E_SYS, &e);
	} else if (hr_json_decode(hr_buf_str(&b), b.len, &o, NULL) < 0 ||
		   !json_object_is_type(o, json_type_object)) {
		hr_json_drop(&o);
		(void)hr_err_set(err, HR_E_INVAL, "%s is damaged; remove it", path);
	}
	return o;
}

int
hr_record_renew(struct hr_sandbox *s, const char *before, struct hr_err *err)
{
	HR_FREE char *path = hr_record_path(s->state_dir, s->sid, SUFFIX);
	HR_FREE char *backend = NULL;
	HR_PUT struct json_object *o = NULL;
	HR_PUT struct json_object *now = NULL;
	HR_PUT struct json_object *old = NULL;
	struct hr_err e = {0};
	HR_BUF(b, RECORD_MAX);
	int r = path != NULL ? 0 : hr_err_nomem(&e);

	if (r == 0 && s->ops->record != NULL && (o = read_record(path, &e)) != NULL) {
		backend = s->ops->record(s->self, &e);
		if (backend == NULL || hr_json_decode(backend, strlen(backend), &now, NULL) != 0)
			r = e.code != HR_OK ? -1 : hr_err_nomem(&e);
		/* another process has its own sandbox of this name, or has renewed it already */
		if (r == 0 && before != NULL &&
		    (hr_json_decode(before, strlen(before), &old, NULL) != 0 ||
			json_object_equal(old, now) ||
			!json_object_equal(old, hr_json_at(o, "backend"))))
			return 0;
		if (r == 0 && s->endpoint.url != NULL)
			r = hr_json_set(o, "url", json_object_new_string(s->endpoint.url), &e);
		if (r == 0)
			r = hr_json_set(o, "backend", json_object_get(now), &e);
		if (r == 0 && hr_json_put(&b, o) != 0)
			r = hr_err_nomem(&e);
		hr_buf_addc(&b, '\n');
		if (r == 0 && (r = hr_buf_check(&b, &e)) == 0)
			r = hr_path_write(path, b.p, b.len, 0600, &e);
	}
	return e.code == HR_OK ? 0 : hr_err_from(err, e.code, &e);
}

void
hr_record_done(struct hr_record *r)
{
	free(r->runtime);
	free(r->backend);
	memset(r, 0, sizeof(*r));
}

int
hr_record_load(const char *state_dir, const char *sid, struct hr_record *ret, struct hr_err *err)
{
	HR_FREE char *path = hr_record_path(state_dir, sid, SUFFIX);
	struct json_object *inner;
	HR_PUT struct json_object *o = NULL;
	struct hr_err mine = {0};

	memset(ret, 0, sizeof(*ret));
	if (path == NULL)
		return hr_err_nomem(err);
	o = read_record(path, &mine);
	if (o == NULL) {
		if (mine.code != HR_OK && err != NULL)
			*err = mine;
		return mine.code != HR_OK ? -1 : 0;
	}
	ret->runtime = copy_text(o, "runtime");
	ret->unready =
	    hr_json_true_at(o, "begun") || strcmp(hr_json_text_or(o, "sid", sid), sid) != 0;
	ret->created = hr_json_int_at(o, "created");
	inner = hr_json_at(o, "backend");
	if (inner != NULL)
		ret->backend = hr_json_string(inner, RECORD_MAX, NULL);
	return 0;
}

void
hr_record_clean(const char *state_dir, const char *sid)
{
	HR_FREE char *path = hr_record_path(state_dir, sid, SUFFIX);

	if (path != NULL)
		(void)hr_path_clean(path);
}

void
hr_record_remove_start(const char *state_dir, const char *sid)
{
	struct hr_namelock lock;

	if (!hr_namelock_take_left(&lock, state_dir, sid))
		return;
	hr_record_clean(state_dir, sid);
	hr_namelock_drop(&lock);
}

void
hr_record_remove(struct hr_sandbox *s)
{
	/* removes the record last: it leads to the others */
	static const char *const suffixes[] = {".log", HR_RECORD_NEW_LOG, SUFFIX};
	HR_FREE char *home = hr_record_path(s->state_dir, s->sid, HR_RECORD_HOME);
	size_t i;

	/* the directory is left over if the process that ended the sandbox died */
	if (home != NULL)
		(void)hr_path_remove(home, NULL);

	for (i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		HR_FREE char *path = hr_record_path(s->state_dir, s->sid, suffixes[i]);

		if (path != NULL)
			(void)hr_path_unlink(path); /* the file may be missing */
	}
	hr_record_remove_start(s->state_dir, s->sid);
}

/* Appends {"sid":...,"runtime":...,"url":...,"image":...,"created":...}. */
static void
put_record(struct hr_buf *b, const char *dir, const char *file)
{
	static const char *const names[] = {"sid", "runtime", "url", "image", "created"};
	struct json_object *v;
	HR_FREE char *path = hr_path_join(dir, file);
	bool first = true;
	size_t i;
	HR_PUT struct json_object *o = path != NULL ? read_record(path, NULL) : NULL;

	if (o == NULL)
		return;
	/* a sandbox from the pool has its former name in its record */
	(void)hr_json_set(
	    o, "sid", json_object_new_string_len(file, (int)(strlen(file) - strlen(SUFFIX))), NULL);
	hr_buf_adds(b, b->len > 1 ? ",{" : "{");
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!json_object_object_get_ex(o, names[i], &v))
			continue;
		hr_buf_addf(b, "%s\"%s\":", first ? "" : ",", names[i]);
		(void)hr_json_put(b, v);
		first = false;
	}
	hr_buf_addc(b, '}');
}

char *
hr_sandbox_list(const char *state_dir, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv files = {0};
	struct dirent *e;
	HR_BUF(b, RECORD_MAX * 16);
	int r = 0;
	DIR *dir;
	size_t i;

	if (hr_state_directory(state_dir, false, err) < 0)
		return NULL;
	dir = opendir(state_dir);
	while (dir != NULL && (e = hr_dir_next(dir)) != NULL) {
		size_t n = strlen(e->d_name), s = strlen(SUFFIX);

		if (e->d_name[0] != '.' && n > s && strcmp(e->d_name + n - s, SUFFIX) == 0)
			hr_strv_add(&files, e->d_name);
	}
	if (errno != 0 && (dir != NULL || errno != ENOENT))
		r = hr_err_sys(err, errno, "read %s", state_dir);
	if (dir != NULL)
		(void)closedir(dir);
	if (r != 0)
		return NULL;
	if (files.n > 1)
		qsort(files.v, files.n, sizeof(*files.v), hr_strv_compare);
	hr_buf_addc(&b, '[');
	for (i = 0; i < files.n; i++)
		put_record(&b, state_dir, files.v[i]);
	hr_buf_addc(&b, ']');
	return hr_buf_end(&b, err);
}

bool
hr_sid_valid(const char *sid)
{
	size_t n = strlen(sid);
	size_t i;

	if (n == 0 || n > HR_SID_MAX || !isalnum((unsigned char)sid[0]))
		return false;
	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)sid[i]) && strchr("_.-", sid[i]) == NULL)
			return false;
	return true;
}
