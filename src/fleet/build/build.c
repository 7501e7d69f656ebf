/* Implements hr_fleet_builds: see its header. A build's state is stored before any action; memory
 * has a copy of it. */
#include "config.h"

#include "fleet/build/build.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/random.h"
#include "host/common/proc.h"
#include "fleet/build/buildform.h"
#include "fleet/build/build_int.h"
#include "proto/json.h"

#define AT_ONCE 2
#define WAITING_MAX 16 /* maximum builds, including the running ones */
#define OF_KEY_MAX 4
#define COMING_MAX 4 /* maximum forms being received */
#define COMING_OF_KEY 2
#define KEPT 100                 /* maximum finished builds per key */
#define DISK_RESERVE (64u << 20) /* bytes that builds leave free, for the store */
#define LOG_SHOWN 8192

struct coming {
	struct coming *next;
	int64_t key;
};

struct hr_fleet_builds {
	char *dir;
	int64_t upload_s;
	const struct hr_fleet_engine *engine;
	void *self;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct hr_build *list; /* list of builds, the oldest first */
	struct coming *coming;
};

static bool
is_over(const struct hr_build *b)
{
	return b->status >= HR_BUILD_SUCCESS;
}

/* ---- the list ---- */

static char *
dir_of(const struct hr_fleet_builds *b, const char *id)
{
	return hr_path_join(b->dir, id);
}

static void
insert(struct hr_fleet_builds *b, struct hr_build *one)
{
	struct hr_build **at = &b->list;

	while (*at != NULL && (*at)->created <= one->created)
		at = &(*at)->next;
	one->next = *at;
	*at = one;
}

static void
remove_dir(const struct hr_fleet_builds *b, const char *id, const char *what)
{
	HR_FREE char *dir = dir_of(b, id);
	HR_FREE char *path = NULL;
	struct hr_err err = {0};

	if (dir != NULL)
		path = what != NULL ? hr_path_join(dir, what) : strdup(dir);
	if (path == NULL || hr_path_remove(path, &err) != 0)
		hr_log(HR_LOG_ERROR, "build %s: cannot remove its files: %s", id,
		    path == NULL ? "out of memory" : err.msg);
}

/* Deletes a key's oldest finished builds. */
static void
forget_old(struct hr_fleet_builds *b, int64_t key)
{
	struct hr_build **at = &b->list, *old;
	size_t over = 0;
	struct hr_build *p;

	for (p = b->list; p != NULL; p = p->next)
		over += is_over(p) && p->key == key;
	while (over > KEPT && *at != NULL) {
		if (!is_over(*at) || (*at)->key != key) {
			at = &(*at)->next;
			continue;
		}
		old = *at;
		*at = old->next;
		over--;
		remove_dir(b, old->id, NULL);
		hr_build_free(old);
	}
}

/* Returns true if the build was not completely received, or is damaged. Other read errors may be
 * temporary. */
static bool
is_lost(const struct hr_err *why)
{
	return why->code == HR_E_INVAL || why->code == HR_E_TOOLARGE ||
	       (why->code == HR_E_SYS && (why->sys == ENOENT || why->sys == ENOTDIR));
}

static int
load(struct hr_fleet_builds *b, struct hr_err *err)
{
	HR_CLOSEDIR DIR *dir = opendir(b->dir);
	struct hr_err why;
	struct dirent *e;
	struct hr_build *one;

	if (dir == NULL)
		return hr_err_sys(err, errno, "%s", b->dir);
	while ((e = readdir(dir)) != NULL) {
		if (strspn(e->d_name, "0123456789abcdef") != HR_FLEET_BUILD_ID - 1 ||
		    e->d_name[HR_FLEET_BUILD_ID - 1] != '\0')
			continue;
		why = (struct hr_err){0};
		one = hr_build_load(b->dir, e->d_name, &why);
		if (one != NULL)
			insert(b, one);
		else if (is_lost(&why))
			remove_dir(b, e->d_name, NULL);
		else
			hr_log(HR_LOG_ERROR, "build %s: cannot continue: %s", e->d_name, why.msg);
	}
	return 0;
}

/* ---- building ---- */

/* Writes the end of a build. The folder is deleted first if the record does not fit on the disk: if
 * neither can be written, the next process finds a build without a folder, and reports that. */
static void
write_end(const struct hr_fleet_builds *b, const struct hr_build *one)
{
	struct hr_err err = {0};
	int r = hr_build_write(b->dir, one, &err);

	remove_dir(b, one->id, HR_FLEET_BUILD_CONTEXT);
	if (r != 0 && hr_build_write(b->dir, one, &err) != 0)
		hr_log(HR_LOG_ERROR, "build %s: %s", one->id, err.msg);
}

/* Runs a build. Called with the lock, which it releases during the build. */
static void
build_one(struct hr_fleet_builds *b, struct hr_build *one)
{
	struct hr_err why = {0};
	int64_t since = hr_now_ms();
	char id[HR_FLEET_BUILD_ID];
	int r;

	one->status = HR_BUILD_WORKING;
	(void)snprintf(id, sizeof(id), "%s", one->id);
	hr_log(HR_LOG_NOTICE, "build %s: %s is built", id, one->names.v[0]);
	(void)pthread_mutex_unlock(&b->lock);
	r = b->engine->build(b->self, id, &why);
	(void)pthread_mutex_lock(&b->lock);
	one->status = r == 0 ? HR_BUILD_SUCCESS : HR_BUILD_FAILURE;
	if (r != 0 && hr_now_ms() - since >= HR_FLEET_BUILD_S * 1000) {
		one->status = HR_BUILD_TIMEOUT;
		(void)hr_err_set(&why, HR_E_TIMEOUT, "the build took longer than %d minutes",
		    HR_FLEET_BUILD_S / 60);
	}
	(void)snprintf(one->error, sizeof(one->error), "%s", r != 0 ? why.msg : "");
	hr_log(HR_LOG_NOTICE, "build %s: %s%s%.400s", id, hr_build_words[one->status],
	    r != 0 ? ": " : "", one->error);
	write_end(b, one);
	forget_old(b, one->key);
}

static void *
build_thread(void *arg)
{
	struct hr_fleet_builds *b = arg;
	struct hr_build *one;

	(void)pthread_mutex_lock(&b->lock);
	for (;;) {
		for (one = b->list; one != NULL && one->status != HR_BUILD_QUEUED; one = one->next)
			;
		if (one != NULL)
			build_one(b, one);
		else
			(void)pthread_cond_wait(&b->work, &b->lock);
	}
	return NULL;
}

struct hr_fleet_builds *
hr_fleet_builds_open(const char *dir, int64_t upload_s, const struct hr_fleet_engine *engine,
    void *self, struct hr_err *err)
{
	struct hr_fleet_builds *b = calloc(1, sizeof(*b));
	int r, i;

	if (b == NULL || asprintf(&b->dir, "%s/builds", dir) < 0) {
		free(b);
		return hr_err_null(err);
	}
	b->upload_s = upload_s;
	b->engine = engine;
	b->self = self;
	(void)pthread_mutex_init(&b->lock, NULL);
	(void)pthread_cond_init(&b->work, NULL);
	r = hr_fleet_directory(b->dir, err);
	if (r == 0)
		r = load(b, err);
	for (i = 0; r == 0 && i < AT_ONCE; i++)
		r = hr_thread_detached(build_thread, b, err);
	return r == 0 ? b : NULL; /* never freed: the threads use it until the process ends */
}

/* ---- receiving ---- */

/* Returns true if the queue has room. Called with the lock. */
static bool
is_room(const struct hr_fleet_builds *b, int64_t key)
{
	unsigned all = 0, of_key = 0;
	const struct hr_build *p;

	for (p = b->list; p != NULL; p = p->next) {
		all += !is_over(p);
		of_key += !is_over(p) && p->key == key;
	}
	return all < WAITING_MAX && of_key < OF_KEY_MAX;
}

static int
come(struct hr_fleet_builds *b, struct coming *c, struct hr_err *err)
{
	unsigned all = 0, of_key = 0;
	int r = 0;
	struct coming *p;

	(void)pthread_mutex_lock(&b->lock);
	for (p = b->coming; p != NULL; p = p->next) {
		all++;
		of_key += p->key == c->key;
	}
	if (all >= COMING_MAX || of_key >= COMING_OF_KEY || !is_room(b, c->key)) {
		r = hr_err_set(err, HR_E_BUSY, "many images are being built; try again later");
	} else {
		c->next = b->coming;
		b->coming = c;
	}
	(void)pthread_mutex_unlock(&b->lock);
	return r;
}

static void
leave(struct hr_fleet_builds *b, struct coming *c)
{
	struct coming **at = &b->coming;

	(void)pthread_mutex_lock(&b->lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	(void)pthread_mutex_unlock(&b->lock);
}

static int
check_disk(int fd, struct hr_err *err)
{
	struct statvfs s;

	if (fstatvfs(fd, &s) != 0)
		return hr_err_sys(err, errno, "builds");
	if ((uint64_t)s.f_bavail * s.f_frsize < DISK_RESERVE)
		return hr_err_set(err, HR_E_SYS, "a build is refused: the disk has less than %u MB",
		    DISK_RESERVE >> 20);
	return 0;
}

static int
receive(const struct hr_fleet_builds *b, const struct hr_fleet_build_form *from,
    struct hr_fleet_form *form, struct hr_err *err)
{
	int64_t until = hr_now_ms() + b->upload_s * 1000;
	char part[65536];
	int n;

	while ((n = from->body(from->body_arg, part, sizeof(part))) > 0) {
		if (hr_now_ms() >= until)
			return hr_err_set(err, HR_E_TIMEOUT, "the form took longer than %lld s",
			    (long long)b->upload_s);
		if (check_disk(form->fd, err) != 0 ||
		    hr_fleet_form_feed(form, part, (size_t)n, err) != 0)
			return -1;
	}
	return n == 0 ? 0 : hr_err_set(err, HR_E_INVAL, "the body ended early");
}

static bool
same_names(const struct hr_strv *a, const struct hr_strv *b)
{
	bool same = a->n == b->n;
	size_t i;

	for (i = 0; same && i < a->n; i++)
		same = strcmp(a->v[i], b->v[i]) == 0;
	return same;
}

/* Joins a build of this key with the same names, or adds the new one, after storing it. Called with
 * the lock. */
static int
enqueue(struct hr_fleet_builds *b, struct hr_build *one, char ret_id[HR_FLEET_BUILD_ID],
    struct hr_err *err)
{
	struct hr_build *p;

	for (p = b->list; p != NULL; p = p->next)
		if (!is_over(p) && p->key == one->key && same_names(&p->names, &one->names)) {
			(void)snprintf(ret_id, HR_FLEET_BUILD_ID, "%s", p->id);
			return 0;
		}
	if (!is_room(b, one->key))
		return hr_err_set(err, HR_E_BUSY, "many images are being built; try again later");
	if (hr_build_write(b->dir, one, err) != 0)
		return -1;
	(void)snprintf(ret_id, HR_FLEET_BUILD_ID, "%s", one->id);
	insert(b, one);
	(void)pthread_cond_signal(&b->work);
	return 0;
}

static int
take_form(struct hr_fleet_builds *b, struct hr_build *one, int fd,
    const struct hr_fleet_build_form *from, char ret_id[HR_FLEET_BUILD_ID], struct hr_err *err)
{
	struct hr_fleet_form form;
	int r;

	r = hr_fleet_form_init(&form, from->type, fd, err);
	if (r == 0)
		r = receive(b, from, &form, err);
	if (r == 0)
		r = hr_fleet_form_check(&form, from->below, err);
	if (r == 0)
		r = from->allowed(from->arg, err);
	if (r == 0) {
		one->names = form.names;
		memset(&form.names, 0, sizeof(form.names));
		(void)pthread_mutex_lock(&b->lock);
		r = enqueue(b, one, ret_id, err);
		(void)pthread_mutex_unlock(&b->lock);
	}
	hr_fleet_form_done(&form);
	return r;
}

int
hr_fleet_build(struct hr_fleet_builds *b, const struct hr_fleet_build_form *form,
    char ret_id[HR_FLEET_BUILD_ID], struct hr_err *err)
{
	struct coming c = {.key = form->key};
	struct hr_build *one;
	HR_FREE char *dir = NULL;
	HR_FREE char *path = NULL;
	char id[HR_FLEET_BUILD_ID];
	int fd = -1, r = -1;

	if (hr_random_hex(id, HR_FLEET_BUILD_ID - 1, err) < 0 || come(b, &c, err) != 0)
		return -1;
	one = calloc(1, sizeof(*one));
	dir = dir_of(b, id);
	path = dir != NULL ? hr_path_join(dir, HR_FLEET_BUILD_CONTEXT) : NULL;
	if (one == NULL || path == NULL) {
		(void)hr_err_nomem(err);
	} else if (mkdir(dir, 0700) != 0 ||
		   (fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0) {
		(void)hr_err_sys(err, errno, "%s", path);
	} else {
		(void)snprintf(one->id, sizeof(one->id), "%s", id);
		one->key = form->key;
		one->created = (int64_t)time(NULL);
		r = take_form(b, one, fd, form, ret_id, err);
	}
	hr_fd_close(&fd);
	leave(b, &c);
	if (r != 0 || strcmp(ret_id, id) != 0) {
		hr_build_free(one);
		if (path != NULL)
			remove_dir(b, id, NULL);
	}
	return r;
}

/* ---- asking ---- */

static void
put_log(const struct hr_fleet_builds *b, const char *id, struct hr_buf *to)
{
	HR_FREE char *dir = dir_of(b, id);
	HR_FREE char *path = dir != NULL ? hr_path_join(dir, HR_FLEET_BUILD_LOG) : NULL;
	HR_CLOSE int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	char text[LOG_SHOWN];
	ssize_t n = 0;
	off_t len;

	if (fd >= 0 && (len = lseek(fd, 0, SEEK_END)) > LOG_SHOWN)
		(void)lseek(fd, len - LOG_SHOWN, SEEK_SET);
	else if (fd >= 0)
		(void)lseek(fd, 0, SEEK_SET);
	if (fd >= 0)
		n = hr_fd_read(fd, text, sizeof(text));
	hr_buf_adds(to, ",\"log\":");
	(void)hr_json_put_str(to, text, n > 0 ? (size_t)n : 0, HR_JSON_REPLACE);
}

int
hr_fleet_build_tell(struct hr_fleet_builds *b, int64_t key, const char *id, bool log,
    struct hr_buf *to, struct hr_err *err)
{
	struct hr_build *p;

	(void)pthread_mutex_lock(&b->lock);
	for (p = b->list; p != NULL && (p->key != key || strcmp(p->id, id) != 0); p = p->next)
		;
	if (p != NULL) {
		hr_buf_addc(to, '{');
		hr_json_put_named(to, "build_id", p->id);
		hr_json_put_named(to, "status", hr_build_words[p->status]);
		hr_json_put_named(to, "image", p->names.v[0]);
		hr_json_put_named(to, "error", p->error[0] != '\0' ? p->error : NULL);
		if (log)
			put_log(b, p->id, to);
		hr_buf_addc(to, '}');
	}
	(void)pthread_mutex_unlock(&b->lock);
	return p == NULL ? 0 : hr_buf_check(to, err) == 0 ? 1 : -1;
}
