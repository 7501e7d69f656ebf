/* Warm sandboxes: made, paused where their kind can, and handed over. */
#include "config.h"

#include "host/life/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/random.h"
#include "base/err.h"
#include "host/common/statedir.h"
#include "host/records/record.h"
#include "host/report.h"
#include "host/life/tokens.h"
#include "image/digest.h"
#include "proto/json.h"

#define RECORD ".json"
#define TAKEN ".taken"
#define RECORD_MAX (1u << 20)
#define NAME_ROOM 32

static char *
pool_directory(const char *state_dir)
{
	char *dir = NULL;

	return asprintf(&dir, "%s" HR_POOL_BELOW, state_dir) < 0 ? NULL : dir;
}

/* What a sandbox is made from: one that was made from the same can stand for it. */
static int
specify(struct hr_sandbox *s, char ret[HR_DIGEST_HEX], struct hr_err *err)
{
	const char *const *p;
	struct hr_err e = {0};
	HR_BUF(b, RECORD_MAX * 16);
	int r;

	hr_buf_addf(&b, "%s %s ", PACKAGE_VERSION, s->ops->name);
	/* secrets and all: only its digest is kept */
	(void)hr_json_put(&b, s->config->values);
	for (p = s->host.plugins; *p != NULL; p++)
		hr_buf_addf(&b, " %s", *p);
	r = hr_buf_check(&b, &e);
	if (r == 0)
		r = hr_digest_of(HR_DIGEST_MD5, b.p, b.len, ret, &e);
	return r == 0 ? 0 : hr_err_from(err, HR_E_RUNTIME, &e);
}

/* ---- what there is ---- */

typedef int pool_visit_fn(const char *dir, const char *file, void *arg, struct hr_err *err);

static bool
ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return n > s && strcmp(name + n - s, suffix) == 0;
}

/* Every record, or those that were taken and not finished; fn returns 0 to go on. */
static int
visit(const char *state_dir, const char *suffix, pool_visit_fn *fn, void *arg, struct hr_err *err)
{
	HR_FREE char *where = pool_directory(state_dir);
	DIR *dir = where != NULL ? opendir(where) : NULL;
	struct dirent *e;
	int r = 0;

	if (where == NULL)
		return hr_err_nomem(err);
	while (r == 0 && dir != NULL && (e = hr_dir_next(dir)) != NULL)
		if (e->d_name[0] != '.' && ends_in(e->d_name, suffix))
			r = fn(where, e->d_name, arg, err);
	/* without the directory there is nothing */
	if (r == 0 && errno != 0 && (dir != NULL || errno != ENOENT))
		r = hr_err_sys(err, errno, "read %s", where);
	if (dir != NULL)
		(void)closedir(dir);
	return r;
}

static bool
fits(const char *path, const char *spec, char **ret_sid, char **ret_backend)
{
	struct json_object *v;
	HR_PUT struct json_object *o = NULL;
	const char *name;
	HR_BUF(b, RECORD_MAX);
	bool fit = false;

	if (hr_path_read(path, &b, NULL) == 0 &&
	    hr_json_decode(hr_buf_str(&b), b.len, &o, NULL) == 0)
		fit = strcmp(hr_json_text_or(o, "spec", ""), spec) == 0 &&
		      hr_json_at(o, "taking") == NULL; /* it is not ready yet */
	name = hr_json_text_or(o, "sid", "");
	if (fit && ret_sid != NULL && hr_sid_valid(name))
		*ret_sid = strdup(name);
	if (fit && ret_backend != NULL && (v = hr_json_at(o, "backend")) != NULL)
		*ret_backend = hr_json_string(v, RECORD_MAX, NULL);
	return fit;
}

/* ---- having one ---- */

/* Whoever has the record locked has the sandbox, for as long as the descriptor is open; -1:
 * somebody else has it, or had it and it is gone. */
static int
claim(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat mine, there;

	if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &mine) != 0 ||
			   stat(path, &there) != 0 || mine.st_ino != there.st_ino))
		hr_fd_close(&fd);
	return fd;
}

/* One that is recorded. */
static int
end_recorded(const struct hr_config *c, struct hr_sandbox_options o, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;

	o.attach = true;
	s = hr_sandbox_open(c, &o, err);
	if (s == NULL)
		return -1;
	/* one that is dead, or not ready, is cleared away as well */
	(void)hr_sandbox_connect(s, NULL);
	return hr_sandbox_delete(s, err);
}

/* Of one that the caller has. o: state_dir is that of the pool. */
static int
end_it(const struct hr_config *c, struct hr_sandbox_options o, const char *file, struct hr_err *err)
{
	char sid[NAME_MAX + 1];

	(void)snprintf(sid, sizeof(sid), "%.*s", (int)strcspn(file, "."), file);
	o.sid = sid;
	return end_recorded(c, o, err);
}

/* What sandboxes beside s are opened with. */
static struct hr_sandbox_options
options_of(const struct hr_sandbox *s, const char *state_dir)
{
	return (struct hr_sandbox_options){.sid = s->sid,
	    .environ = s->host.environ,
	    .headless = true,
	    .state_dir = state_dir,
	    .log = s->log,
	    .log_arg = s->log_arg};
}

/* ---- taking one ---- */

struct taking {
	struct hr_sandbox *s;
	char spec[HR_DIGEST_HEX];
};

/* One that died while it waited is of no use to anybody. */
static void
clear_away(struct hr_sandbox *s, const char *dir, const char *file)
{
	struct hr_err e = {0};

	if (end_it(s->config, options_of(s, dir), file, &e) != 0)
		hr_sandbox_log(s, "%s", e.msg);
}

/* 1 it is the caller's, 0 it could not be taken, -1 *err: it waits on. */
static int
adopt(struct hr_sandbox *s, const char *sid, const char *backend, const char *mine,
    struct hr_err *err)
{
	HR_FREE char *record = hr_record_path(s->state_dir, s->sid, RECORD);
	int r;

	if (record == NULL)
		return hr_err_nomem(err);
	r = hr_record_save_taking(s, backend, hr_path_leaf(mine), err);
	if (r == 0 && (r = s->ops->adopt(s->self, sid, backend, NULL) == 0) == 0)
		(void)unlink(record);
	return r;
}

static int
try_one(const char *dir, const char *file, void *arg, struct hr_err *err)
{
	struct taking *t = arg;
	char *mine = NULL;
	HR_FREE char *path = hr_path_join(dir, file);
	HR_FREE char *sid = NULL;
	HR_FREE char *backend = NULL;
	int r = 0, fd = -1;

	if (path == NULL || asprintf(&mine, "%s" TAKEN, path) < 0) {
		mine = NULL;
		r = hr_err_nomem(err);
	} else if (fits(path, t->spec, &sid, &backend) && sid != NULL && backend != NULL &&
		   (fd = claim(path)) >= 0 && rename(path, mine) == 0) {
		r = adopt(t->s, sid, backend, mine, err);
		if (r == 1) {
			t->s->taken = mine;
			t->s->taken_fd = fd;
			mine = NULL;
			fd = -1;
		} else if (rename(mine, path) == 0 && r == 0) {
			clear_away(t->s, dir, file);
		}
	}
	hr_fd_close(&fd);
	free(mine);
	return r;
}

int
hr_pool_take(struct hr_sandbox *s, struct hr_err *err)
{
	struct taking t = {.s = s};

	/* a key or a workspace of one's own was not known when they were made */
	if (s->state_dir == NULL || s->ops->adopt == NULL ||
	    hr_env_get(s->host.environ, "SESSION_API_KEY") != NULL ||
	    hr_config_text(s->config, "core.workspace_base") != NULL)
		return 0;
	return specify(s, t.spec, err) == 0 ? visit(s->state_dir, RECORD, try_one, &t, err) : -1;
}

void
hr_pool_taken(struct hr_sandbox *s)
{
	if (s->taken == NULL)
		return;
	(void)unlink(s->taken);
	free(s->taken);
	s->taken = NULL;
	hr_fd_close(&s->taken_fd);
}

int
hr_pool_settle(struct hr_sandbox *s, const char *taking, struct hr_err *err)
{
	HR_FREE char *dir = pool_directory(s->state_dir);
	HR_FREE char *path = dir != NULL ? hr_path_join(dir, hr_path_leaf(taking)) : NULL;
	HR_CLEAN(hr_record_done) struct hr_record now = {0};
	HR_CLOSE int fd = -1;

	if (path == NULL)
		return hr_err_nomem(err);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0 && errno != ENOENT)
		return hr_err_sys(err, errno, "open %s", path);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0)
		return hr_err_set(err, HR_E_RUNTIME,
		    "sandbox \"%s\" is being started, or ended, by another process", s->sid);
	/* without the file: whoever took it is done, or it was ended with the pool */
	if (hr_record_load(s->state_dir, s->sid, &now, err) != 0)
		return -1;
	if (now.taking == NULL || strcmp(now.taking, taking) != 0)
		return 0;
	if (end_recorded(s->config, options_of(s, s->state_dir), err) != 0)
		return -1;
	(void)unlink(path);
	return 0;
}

/* ---- making and ending them ---- */

struct filling {
	char spec[HR_DIGEST_HEX];
	unsigned n;
};

static int
count_one(const char *dir, const char *file, void *arg, struct hr_err *err)
{
	struct filling *f = arg;
	HR_FREE char *path = hr_path_join(dir, file);

	if (path == NULL)
		return hr_err_nomem(err);
	f->n += fits(path, f->spec, NULL, NULL);
	return 0;
}

static int
random_name(char name[NAME_ROOM], struct hr_err *err)
{
	char hex[13];

	if (hr_random_hex(hex, sizeof(hex) - 1, err) < 0)
		return -1;
	(void)snprintf(name, NAME_ROOM, "warm-%s", hex);
	return 0;
}

static int
make_one(const struct hr_config *c, const struct hr_sandbox_options *o, const char *spec,
    struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	char name[NAME_ROOM];
	struct hr_sandbox_options mine = *o;

	mine.sid = name;
	if (random_name(name, err) != 0 || (s = hr_sandbox_open(c, &mine, err)) == NULL)
		return -1;
	(void)snprintf(s->spec, sizeof(s->spec), "%s", spec);
	s->fresh = true;
	if (hr_sandbox_connect(s, err) != 0)
		return -1;
	/* a kind that cannot pause uses nothing while nobody asks */
	if (s->ops->freeze != NULL && s->ops->freeze(s->self, err) != 0) {
		(void)hr_sandbox_delete(s, NULL);
		return -1;
	}
	return 0;
}

/* Variables for sandboxes are given to one when it is taken. */
static void
plain_environment(struct hr_strv *v, const char *const *env)
{
	size_t i;

	for (; env != NULL && *env != NULL; env++)
		if (strncmp(*env, "SANDBOX_ENV_", 12) != 0 &&
		    strncmp(*env, "SESSION_API_KEY=", 16) != 0)
			hr_strv_add(v, *env);
	for (i = 0; i < HR_PROVIDERS; i++)
		hr_strv_unset_env(v, hr_token_names[i]);
}

/* One fills at a time, or two would make as many each. */
static int
my_turn(const char *dir, struct hr_err *err)
{
	HR_FREE char *path = NULL;
	int fd;

	if (hr_state_directory(dir, true, err) < 0)
		return -1;
	path = hr_path_join(dir, ".lock");
	if (path == NULL)
		return hr_err_nomem(err);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) != 0) {
		(void)hr_err_sys(err, errno, "lock %s", path);
		hr_fd_close(&fd);
	}
	return fd;
}

/* Nobody asks for a next one after the last. */
static bool
wanted(const struct hr_sandbox_options *o)
{
	HR_FREE char *list = o->while_used ? hr_sandbox_list(o->state_dir, NULL) : NULL;

	return !o->while_used || (list != NULL && strcmp(list, "[]") != 0);
}

struct draining {
	const struct hr_config *config;
	const struct hr_sandbox_options *o;
	unsigned n;
	bool failed;
	struct hr_err why; /* the first failure */
};

static int
put_back(const char *dir, const char *path, const char *record, struct hr_err *err)
{
	HR_FREE char *to = hr_path_join(dir, record);
	int r = to == NULL ? hr_err_nomem(err) : rename(path, to);

	if (to != NULL && r != 0)
		r = hr_err_sys(err, errno, "rename %s", path);
	return r;
}

static int
end_one(const char *dir, const char *file, void *arg, struct hr_err *err)
{
	struct draining *d = arg;
	struct hr_err why = {0};
	struct hr_sandbox_options o = *d->o;
	HR_FREE char *path = hr_path_join(dir, file);
	HR_FREE char *record = NULL;
	int r = 0;
	HR_CLOSE int fd = -1;

	if (path == NULL || asprintf(&record, "%.*s" RECORD, (int)strcspn(file, "."), file) < 0)
		return hr_err_nomem(err);
	o.state_dir = dir;
	fd = claim(path);
	/* whoever took it has ended without having it */
	if (fd >= 0 && ends_in(file, TAKEN))
		r = put_back(dir, path, record, &why);
	if (fd >= 0 && r == 0) {
		r = end_it(d->config, o, record, &why);
		d->n += r == 0;
	}
	/* one that cannot be reached keeps no other one running */
	if (r != 0 && !d->failed) {
		d->failed = true;
		d->why = why;
	}
	return 0;
}

/* Of one that was never ready: whoever makes them has died, or this would not be our turn. */
static int
end_begun(const char *dir, const char *file, void *arg, struct hr_err *err)
{
	char sid[NAME_MAX + 1];
	HR_CLEAN(hr_record_done) struct hr_record rec = {0};
	int r = 0;

	(void)snprintf(sid, sizeof(sid), "%.*s", (int)strcspn(file, "."), file);
	if (hr_record_load(dir, sid, &rec, NULL) == 0 && rec.taking != NULL)
		r = end_one(dir, file, arg, err);
	return r;
}

static int
fill(const struct hr_config *c, const struct hr_sandbox_options *o, unsigned n, unsigned *ret_n,
    struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = hr_sandbox_open(c, o, err);
	struct filling f = {.n = 0};
	HR_FREE char *dir = pool_directory(o->state_dir);
	struct hr_sandbox_options mine = *o;
	struct draining begun = {.config = c, .o = o};
	HR_CLOSE int turn = -1;

	*ret_n = 0;
	if (s == NULL)
		return -1;
	if (dir == NULL)
		return hr_err_nomem(err);
	if (s->ops->adopt == NULL)
		return hr_err_set(
		    err, HR_E_RUNTIME, "%s runtime does not support a pool", s->ops->name);
	if (hr_config_text(s->config, "core.workspace_base") != NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "a pool is of no use with a workspace of your own (core.workspace_base)");
	if (specify(s, f.spec, err) != 0 || (turn = my_turn(dir, err)) < 0 ||
	    visit(o->state_dir, RECORD, end_begun, &begun, err) != 0 ||
	    visit(o->state_dir, RECORD, count_one, &f, err) != 0)
		return -1;
	mine.state_dir = dir;
	for (; f.n < n && wanted(o); f.n++)
		if (make_one(c, &mine, f.spec, err) != 0)
			return -1;
	*ret_n = f.n;
	return 0;
}

int
hr_pool_fill(const struct hr_config *c, const struct hr_sandbox_options *o, unsigned n,
    unsigned *ret_n, struct hr_err *err)
{
	struct hr_sandbox_options mine = *o;
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};

	if (o->state_dir == NULL)
		return hr_err_set(err, HR_E_INVAL, "a pool needs a state directory");
	plain_environment(&env, o->environ);
	mine.environ = hr_strv_list(&env);
	mine.env = NULL;
	mine.sid = "warm";
	mine.attach = false;
	mine.detach = true;
	return env.failed ? hr_err_nomem(err) : fill(c, &mine, n, ret_n, err);
}

int
hr_pool_drain(const struct hr_config *c, const struct hr_sandbox_options *o, unsigned *ret_n,
    struct hr_err *err)
{
	struct draining d = {.config = c, .o = o};
	HR_FREE char *dir = o->state_dir != NULL ? pool_directory(o->state_dir) : NULL;
	HR_CLOSE int turn = -1;
	int r;

	*ret_n = 0;
	if (o->state_dir == NULL)
		return 0;
	if (dir == NULL)
		return hr_err_nomem(err);
	if (hr_state_directory(o->state_dir, false, err) < 0)
		return -1;
	/* after whoever fills it, who would make more */
	if (access(dir, F_OK) == 0 && (turn = my_turn(dir, err)) < 0)
		return -1;
	r = visit(o->state_dir, TAKEN, end_one, &d, err);
	if (r == 0)
		r = visit(o->state_dir, RECORD, end_one, &d, err);
	*ret_n = d.n;
	return r == 0 && d.failed ? hr_err_pass(err, &d.why) : r;
}
