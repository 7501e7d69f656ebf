/* Manages warm sandboxes: creation, pause if the back-end can, and handover. */
#include "config.h"

#include "host/life/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
#define LOCK ".lock"
#define UNFINISHED RECORD HR_PATH_UNFINISHED
#define RECORD_MAX (1u << 20)
#define NAME_ROOM 32

static char *
pool_directory(const char *state_dir)
{
	char *dir = NULL;

	return asprintf(&dir, "%s" HR_POOL_BELOW, state_dir) < 0 ? NULL : dir;
}

/* Digests all that a sandbox is made from: those with equal digests are interchangeable. */
static int
specify(struct hr_sandbox *s, char ret[HR_DIGEST_HEX], struct hr_err *err)
{
	const char *const *p;
	struct hr_err e = {0};
	HR_BUF(b, RECORD_MAX * 16);
	int r;

	hr_buf_addf(&b, "%s %s ", PACKAGE_VERSION, s->ops->name);
	/* the values include secrets, so only the digest is kept */
	(void)hr_json_put(&b, s->config->values);
	for (p = s->host.plugins; *p != NULL; p++)
		hr_buf_addf(&b, " %s", *p);
	r = hr_buf_check(&b, &e);
	if (r == 0)
		r = hr_digest_of(HR_DIGEST_MD5, b.p, b.len, ret, &e);
	return r == 0 ? 0 : hr_err_from(err, HR_E_RUNTIME, &e);
}

/* ---- records ---- */

typedef int pool_visit_fn(const char *dir, const char *file, void *arg, struct hr_err *err);

static bool
is_record(const char *name)
{
	size_t n = strlen(name), s = strlen(RECORD);

	return *name != '.' && n > s && strcmp(name + n - s, RECORD) == 0;
}

static void
sid_of(const char *file, char sid[NAME_MAX + 1])
{
	(void)snprintf(sid, NAME_MAX + 1, "%.*s", (int)(strlen(file) - strlen(RECORD)), file);
}

/* Visits every record, as long as fn returns 0. */
static int
visit(const char *state_dir, pool_visit_fn *fn, void *arg, struct hr_err *err)
{
	HR_FREE char *where = pool_directory(state_dir);
	DIR *dir = where != NULL ? opendir(where) : NULL;
	struct dirent *e;
	int r = 0;

	if (where == NULL)
		return hr_err_nomem(err);
	while (r == 0 && dir != NULL && (e = hr_dir_next(dir)) != NULL)
		if (is_record(e->d_name))
			r = fn(where, e->d_name, arg, err);
	/* no directory means no records */
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
		      !hr_json_true_at(o, "begun");
	name = hr_json_text_or(o, "sid", "");
	if (fit && ret_sid != NULL && hr_sid_valid(name))
		*ret_sid = strdup(name);
	if (fit && ret_backend != NULL && (v = hr_json_at(o, "backend")) != NULL)
		*ret_backend = hr_json_string(v, RECORD_MAX, NULL);
	return fit;
}

/* ---- locks ---- */

/* Locks the record for as long as the descriptor is open. Returns -1 if another process has locked
 * it, or has removed it meanwhile. */
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

/* Ends the sandbox o.sid of the directory o.state_dir. */
static int
end_it(const struct hr_config *c, struct hr_sandbox_options o, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;

	o.attach = true;
	s = hr_sandbox_open(c, &o, err);
	if (s == NULL)
		return -1;
	/* errors are ignored: a dead or unready sandbox is removed, too */
	(void)hr_sandbox_connect(s, NULL);
	return hr_sandbox_delete(s, err);
}

int
hr_pool_end(struct hr_sandbox *s, const char *state_dir, const char *sid, struct hr_err *err)
{
	return end_it(s->config,
	    (struct hr_sandbox_options){.sid = sid,
		.environ = s->host.environ,
		.headless = true,
		.state_dir = state_dir,
		.log = s->log,
		.log_arg = s->log_arg},
	    err);
}

/* ---- taking one ---- */

struct taking {
	struct hr_sandbox *s;
	char spec[HR_DIGEST_HEX];
};

/* Moves the record, which only one process can do and which gives the sandbox its new name; then
 * the back-end adopts it. On failure the sandbox goes back, and is ended only if it is dead: a
 * fault of a service or a request would otherwise end the whole pool. */
static int
try_one(const char *dir, const char *file, void *arg, struct hr_err *err)
{
	struct taking *t = arg;
	struct hr_sandbox *s = t->s;
	HR_FREE char *path = hr_path_join(dir, file);
	HR_FREE char *mine = hr_record_path(s->state_dir, s->sid, RECORD);
	HR_FREE char *sid = NULL;
	HR_FREE char *backend = NULL;
	struct hr_err why = {0};
	HR_CLOSE int fd = -1;
	bool dead;

	if (path == NULL || mine == NULL)
		return hr_err_nomem(err);
	if (!fits(path, t->spec, &sid, &backend) || sid == NULL || backend == NULL ||
	    (fd = claim(path)) < 0 || rename(path, mine) != 0)
		return 0;
	if (s->ops->adopt(s->self, sid, backend, &why) == 0)
		return 1;
	hr_sandbox_log(s, "the waiting sandbox \"%s\" is not taken: %s", sid, why.msg);
	dead = why.code == HR_E_NO_SANDBOX || why.code == HR_E_DISCONNECTED;
	if (rename(mine, path) != 0)
		hr_sandbox_log(s, "%s cannot be moved back to %s: %m", mine, path);
	else if (dead && hr_pool_end(s, dir, sid, &why) != 0)
		hr_sandbox_log(s, "%s", why.msg);
	return why.code == HR_E_UNAVAILABLE && !dead ? hr_err_pass(err, &why) : 0;
}

int
hr_pool_take(struct hr_sandbox *s, struct hr_err *err)
{
	struct taking t = {.s = s};

	/* warm sandboxes were made without the caller's key or workspace */
	if (s->state_dir == NULL || s->ops->adopt == NULL ||
	    hr_env_get(s->host.environ, "SESSION_API_KEY") != NULL ||
	    hr_config_text(s->config, "core.workspace_base") != NULL)
		return 0;
	return specify(s, t.spec, err) == 0 ? visit(s->state_dir, try_one, &t, err) : -1;
}

/* ---- filling and draining ---- */

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
	/* a back-end that cannot pause uses nothing while the sandbox is idle */
	if (s->ops->freeze != NULL && s->ops->freeze(s->self, err) != 0) {
		(void)hr_sandbox_delete(s, NULL);
		return -1;
	}
	return 0;
}

/* Removes variables for sandboxes: a sandbox gets them when it is taken. */
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

/* Takes the lock of the pool: if two processes filled it at a time, each would make the whole
 * number. */
static int
my_turn(const char *dir, struct hr_err *err)
{
	HR_FREE char *path = NULL;
	int fd;

	if (hr_state_directory(dir, true, err) < 0)
		return -1;
	path = hr_path_join(dir, LOCK);
	if (path == NULL)
		return hr_err_nomem(err);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) != 0) {
		(void)hr_err_sys(err, errno, "lock %s", path);
		hr_fd_close(&fd);
	}
	return fd;
}

/* Returns false if the pool is kept only while it is used, and no sandbox is left. */
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
end_one(const char *dir, const char *file, void *arg, struct hr_err *err)
{
	struct draining *d = arg;
	struct hr_err why = {0};
	struct hr_sandbox_options o = *d->o;
	HR_FREE char *path = hr_path_join(dir, file);
	char sid[NAME_MAX + 1];
	HR_CLOSE int fd = -1;

	if (path == NULL)
		return hr_err_nomem(err);
	sid_of(file, sid);
	o.sid = sid;
	o.state_dir = dir;
	fd = claim(path);
	if (fd >= 0 && end_it(d->config, o, &why) == 0) {
		d->n++;
	} else if (fd >= 0 && !d->failed) {
		/* one unreachable sandbox must not keep the others running */
		d->failed = true;
		d->why = why;
	}
	return 0;
}

/* Ends a sandbox that was never ready: its maker has died, since this process has the lock. */
static int
end_begun(const char *dir, const char *file, void *arg, struct hr_err *err)
{
	char sid[NAME_MAX + 1];
	HR_CLEAN(hr_record_done) struct hr_record rec = {0};
	int r = 0;

	sid_of(file, sid);
	if (hr_record_load(dir, sid, &rec, NULL) == 0 && rec.unready)
		r = end_one(dir, file, arg, err);
	return r;
}

/* Removes the files of starts that were killed before their records had their names. Nobody else
 * would find them, as the names of the sandboxes are random. */
static void
remove_starts(const char *where)
{
	DIR *dir = opendir(where);
	struct dirent *e;

	while (dir != NULL && (e = hr_dir_next(dir)) != NULL) {
		size_t n = strlen(e->d_name), s = strlen(LOCK), u = strlen(UNFINISHED);
		HR_FREE char *record = NULL;

		if (n > u && strcmp(e->d_name + n - u, UNFINISHED) == 0) {
			e->d_name[n - u] = '\0';
			hr_record_clean(where, e->d_name);
			continue;
		}
		if (*e->d_name != '.' || n <= s || strcmp(e->d_name + n - s, LOCK) != 0)
			continue;
		e->d_name[n - s] = '\0';
		if (!hr_sid_valid(e->d_name + 1))
			continue;
		record = hr_record_path(where, e->d_name + 1, RECORD);
		if (record != NULL && access(record, F_OK) != 0)
			hr_record_remove_start(where, e->d_name + 1);
	}
	if (dir != NULL)
		(void)closedir(dir);
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
		return hr_err_set(
		    err, HR_E_INVAL, "a pool cannot be used with core.workspace_base: unset it");
	if (specify(s, f.spec, err) != 0 || (turn = my_turn(dir, err)) < 0)
		return -1;
	remove_starts(dir);
	if (visit(o->state_dir, end_begun, &begun, err) != 0 ||
	    visit(o->state_dir, count_one, &f, err) != 0)
		return -1;
	mine.state_dir = dir;
	for (; f.n < n && wanted(o); f.n++)
		if (make_one(c, &mine, f.spec, err) != 0)
			return -1;
	*ret_n = f.n;
	return begun.failed ? hr_err_pass(err, &begun.why) : 0;
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
	/* waits for a filling process, which would make more */
	if (access(dir, F_OK) == 0 && (turn = my_turn(dir, err)) < 0)
		return -1;
	if (turn >= 0)
		remove_starts(dir);
	r = visit(o->state_dir, end_one, &d, err);
	*ret_n = d.n;
	return r == 0 && d.failed ? hr_err_pass(err, &d.why) : r;
}
