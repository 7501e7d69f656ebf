/* Manages named sessions. Invariant: an entry is in the list as long as its files are in the run
 * directory. Only the timer frees an entry, since its keeper's callbacks use it. */
#include "config.h"

#include "supervisor/children/sessions.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "proto/channel.h"
#include "supervisor/children/adopt.h"
#include "supervisor/children/pool.h"
#include "supervisor/children/session.h"
#include "supervisor/run/context.h"

#define DIR_MAX 8192
#define DIR_SUFFIX ".dir"

/* A worker that waits for an answer; another process may have its slot by now. */
struct waiter {
	bool waits;
	int slot;
	pid_t pid;
};

struct hr_named {
	LIST_ENTRY(hr_named) entry;
	struct hr_sessions *all;
	struct hr_session session;
	char *dir;
	bool was_ready; /* the session was ready; since then a dead keeper is replaced */
	struct waiter maker, killer;
};

static void
answer_worker(struct hr_pool_worker *w, enum hr_session_verdict verdict, const char *reason)
{
	HR_BUF(text, HR_CHANNEL_ANSWER_MAX);

	hr_buf_addc(&text, (char)verdict);
	hr_buf_adds(&text, reason);
	hr_channel_give(&w->channel, HR_CHANNEL_SESSION_ANSWER, &text, -1);
}

static void
wait_for(struct waiter *t, const struct hr_pool_worker *w)
{
	*t = (struct waiter){.waits = true, .slot = w->slot, .pid = w->child.pid};
}

static void
answer_waiter(
    const struct hr_named *n, struct waiter *t, enum hr_session_verdict verdict, const char *reason)
{
	struct hr_pool_worker *w = t->waits ? hr_pools_find(n->all->pools, t->slot, t->pid) : NULL;

	if (w != NULL)
		answer_worker(w, verdict, reason);
	t->waits = false;
}

/* ---- files ---- */

static void
remove_files(const struct hr_sessions *all, const char *name)
{
	hr_rundir_remove(&all->ctx->run, "session/%s.sock", name);
	hr_rundir_remove(&all->ctx->run, "session/%s.keeper", name);
	hr_rundir_remove(&all->ctx->run, "session/%s" DIR_SUFFIX, name);
}

/* Writes the directory's name, or an empty file until the session is ready: a successor ends a
 * session that never was ready, as no client knows it. */
static int
write_dir(const struct hr_named *n, struct hr_err *err)
{
	HR_FREE char *path =
	    hr_rundir_file(&n->all->ctx->run, "session/%s" DIR_SUFFIX, n->session.name);
	size_t len = n->was_ready ? strlen(n->dir) : 0;

	return path != NULL ? hr_path_write(path, n->dir, len, 0600, err) : hr_err_nomem(err);
}

/* ---- the end of a session ---- */

static void
count(struct hr_sessions *all, unsigned n)
{
	all->count = n;
	if (all->ctx->board != NULL)
		atomic_store(&all->ctx->board->named_sessions, n);
}

static void
named_free(struct hr_named *n)
{
	LIST_REMOVE(n, entry);
	count(n->all, n->all->count - 1);
	hr_session_done(&n->session);
	free(n->dir);
	free(n);
}

static void
named_end(struct hr_named *n)
{
	remove_files(n->all, n->session.name);
	hr_rundir_remove(&n->all->ctx->run, "shell/%s", n->session.name);
	answer_waiter(n, &n->maker, HR_SESSION_FAILED,
	    n->session.svc.reason[0] != '\0' ? n->session.svc.reason
					     : "it was ended before it was ready");
	answer_waiter(n, &n->killer, HR_SESSION_OK, "");
	named_free(n);
}

static void
reap(void *arg)
{
	struct hr_sessions *all = arg;
	struct hr_named *n, *next;

	for (n = LIST_FIRST(&all->list); n != NULL; n = next) {
		next = LIST_NEXT(n, entry);
		if (n->session.svc.state == HR_SERVICE_STOPPED)
			named_end(n);
	}
	all->ctx->changed(all->ctx);
}

static void
reap_soon(struct hr_sessions *all)
{
	if (all->reap == NULL || hr_watch_arm(all->reap, 0, NULL) != 0)
		hr_log(HR_LOG_ERROR, "no memory for a timer: a session stays in the list");
}

static void
named_stop(struct hr_named *n, bool fast)
{
	hr_session_stop(&n->session, fast);
	if (n->session.svc.state == HR_SERVICE_STOPPED)
		reap_soon(n->all);
}

/* ---- callbacks of the keeper ---- */

static struct hr_named *
named_of(struct hr_session *k)
{
	return (struct hr_named *)((char *)k - offsetof(struct hr_named, session));
}

static void
became_ready(struct hr_named *n)
{
	struct hr_err err = {0};

	if (n->was_ready)
		return;
	n->was_ready = true;
	if (write_dir(n, &err) < 0) /* a session without a file ends with this supervisor */
		hr_log(HR_LOG_WARNING, "%s: %s", n->session.svc.child.name, err.msg);
}

static void
named_changed(struct hr_session *k)
{
	struct hr_named *n = named_of(k);

	if (k->svc.state == HR_SERVICE_STOPPED) {
		reap_soon(n->all);
	} else if (k->svc.state == HR_SERVICE_READY) {
		became_ready(n);
		answer_waiter(n, &n->maker, HR_SESSION_OK, "");
		n->all->ctx->changed(n->all->ctx);
	}
}

/* Gives up a session that was never ready; any other session gets a new shell later. */
static void
named_failed(struct hr_session *k, const char *why)
{
	struct hr_named *n = named_of(k);

	(void)why;
	if (!n->was_ready)
		named_stop(n, true);
}

/* ---- making a session ---- */

static struct hr_named *
named_new(struct hr_sessions *all, const char *name, const char *dir)
{
	struct hr_named *n = calloc(1, sizeof(*n));
	struct hr_session *k;

	if (n == NULL)
		return NULL;
	n->all = all;
	k = &n->session;
	hr_session_init(k, all->ctx);
	(void)snprintf(k->name, sizeof(k->name), "%s", name);
	(void)snprintf(k->socket, sizeof(k->socket), "session/%s.sock", k->name);
	(void)snprintf(k->record, sizeof(k->record), "session/%s.keeper", k->name);
	(void)snprintf(k->svc.child.name, sizeof(k->svc.child.name), "session %s", k->name);
	k->changed = named_changed;
	k->failed = named_failed;
	n->dir = strdup(dir);
	if (n->dir == NULL) {
		free(n);
		return NULL;
	}
	k->dir = n->dir;
	LIST_INSERT_HEAD(&all->list, n, entry);
	count(all, all->count + 1);
	return n;
}

static struct hr_named *
named_find(const struct hr_sessions *all, const char *name)
{
	struct hr_named *n;

	LIST_FOREACH(n, &all->list, entry)
	{
		if (strcmp(n->session.name, name) == 0)
			return n;
	}
	return NULL;
}

/* Parses "NAME" or "NAME DIR". Returns false for another form. */
static bool
take_words(const char *text, size_t len, char name[HR_SESSION_NAME_MAX + 1], char *dir)
{
	const char *blank = memchr(text, ' ', len);
	size_t n = blank != NULL ? (size_t)(blank - text) : len;

	if (!hr_session_name_fits(text, n) || memchr(text, '\0', len) != NULL)
		return false;
	memcpy(name, text, n);
	name[n] = '\0';
	n += blank != NULL;
	memcpy(dir, text + n, len - n);
	dir[len - n] = '\0';
	return true;
}

void
hr_sessions_new(struct hr_sessions *all, struct hr_pool_worker *w, const char *text, size_t len)
{
	char name[HR_SESSION_NAME_MAX + 1], dir[HR_CHANNEL_MAX];
	struct hr_context *ctx = all->ctx;
	struct hr_err err = {0};
	struct hr_named *n;

	if (!take_words(text, len, name, dir)) {
		answer_worker(w, HR_SESSION_FAILED, "no name for a session");
		return;
	}
	if (all->stopping || ctx->ending) {
		answer_worker(w, HR_SESSION_LATER, "the server is ending");
		return;
	}
	if (named_find(all, name) != NULL) {
		answer_worker(w, HR_SESSION_EXISTS, "there is a session of that name");
		return;
	}
	if (all->count >= ctx->settings.named_sessions_max) {
		answer_worker(
		    w, HR_SESSION_FULL, "too many sessions: named_sessions_max is reached");
		return;
	}
	n = named_new(all, name, dir[0] != '\0' ? dir : ctx->settings.working_dir);
	if (n == NULL) {
		answer_worker(w, HR_SESSION_FAILED, "out of memory");
		return;
	}
	if (write_dir(n, &err) < 0 || hr_session_open(&n->session, &err) < 0 ||
	    hr_session_start(&n->session, &err) < 0) {
		hr_log(HR_LOG_ERROR, "%s: %s", n->session.svc.child.name, err.msg);
		answer_worker(w, HR_SESSION_FAILED, err.msg);
		named_stop(n, true);
		return;
	}
	wait_for(&n->maker, w);
}

void
hr_sessions_kill(struct hr_sessions *all, struct hr_pool_worker *w, const char *text, size_t len)
{
	char name[HR_SESSION_NAME_MAX + 1], dir[HR_CHANNEL_MAX];
	struct hr_named *n = take_words(text, len, name, dir) ? named_find(all, name) : NULL;

	if (n == NULL) {
		answer_worker(w, HR_SESSION_UNKNOWN, "there is no session of that name");
		return;
	}
	if (n->killer.waits || n->session.svc.state == HR_SERVICE_STOPPING) {
		answer_worker(w, HR_SESSION_EXISTS, "it is being ended");
		return;
	}
	wait_for(&n->killer, w);
	named_stop(n, false);
}

void
hr_sessions_list(const struct hr_sessions *all, struct hr_buf *ret)
{
	const struct hr_named *n;

	LIST_FOREACH(n, &all->list, entry)
	{
		hr_buf_addf(
		    ret, "%s %s\n", n->session.name, hr_service_state_text(&n->session.svc));
	}
}

/* ---- sessions of a predecessor ---- */

/* Ends the remains of a session that cannot be continued; the others continue. */
static void
give_up(struct hr_sessions *all, const char *name, const char *why)
{
	char record[HR_SESSION_NAME_MAX + 24];
	struct hr_adopt keeper;

	hr_log(HR_LOG_ERROR, "session %s of a predecessor is given up: %s", name, why);
	(void)snprintf(record, sizeof(record), "session/%s.keeper", name);
	hr_adopt_find(&keeper, &all->ctx->run, record, 0); /* digest 0 matches no command line */
	hr_adopt_done(&keeper);
	remove_files(all, name);
}

static void
find_one(struct hr_sessions *all, const char *file)
{
	size_t len = strlen(file), suffix = sizeof(DIR_SUFFIX) - 1;
	char name[HR_SESSION_NAME_MAX + 1];
	HR_FREE char *path = NULL;
	struct hr_named *n = NULL;
	struct hr_err err = {0};
	HR_BUF(dir, DIR_MAX);

	if (len <= suffix || strcmp(file + len - suffix, DIR_SUFFIX) != 0 ||
	    !hr_session_name_fits(file, len - suffix))
		return; /* the record is removed with its session */
	memcpy(name, file, len - suffix);
	name[len - suffix] = '\0';
	path = hr_rundir_file(&all->ctx->run, "session/%s" DIR_SUFFIX, name);
	if (path == NULL) {
		(void)hr_err_nomem(&err);
	} else if (hr_path_read(path, &dir, &err) == 0) {
		if (dir.len == 0)
			(void)hr_err_set(&err, HR_E_INVAL, "it was never ready");
		else if ((n = named_new(all, name, hr_buf_str(&dir))) == NULL)
			(void)hr_err_nomem(&err);
	}
	if (n == NULL) {
		give_up(all, name, err.msg);
		return;
	}
	n->was_ready = true;
	(void)hr_session_find(&n->session); /* otherwise the session gets a new shell */
}

int
hr_sessions_find(struct hr_sessions *all, struct hr_err *err)
{
	HR_FREE char *path = hr_rundir_file(&all->ctx->run, "session");
	HR_CLOSEDIR DIR *d = path != NULL ? opendir(path) : NULL;
	const struct dirent *e;

	if (d == NULL)
		return hr_err_sys(err, errno, "the directory of sessions");
	while ((e = readdir(d)) != NULL)
		find_one(all, e->d_name);
	return 0;
}

int
hr_sessions_open(struct hr_sessions *all, struct hr_err *err)
{
	struct hr_err why = {0};
	struct hr_named *n;

	all->reap = hr_loop_timer(all->ctx->loop, reap, all, err);
	if (all->reap == NULL)
		return -1;
	LIST_FOREACH(n, &all->list, entry)
	{
		if (hr_session_open(&n->session, &why) == 0 &&
		    hr_session_start(&n->session, &why) == 0)
			continue;
		hr_log(HR_LOG_ERROR, "%s: given up: %s", n->session.svc.child.name, why.msg);
		/* otherwise the keeper would run unsupervised */
		hr_adopt_signal(&n->session.adopted, SIGKILL);
		hr_adopt_done(&n->session.adopted);
		named_stop(n, true);
	}
	count(all, all->count); /* the scoreboard may be newer than the sessions */
	return 0;
}

/* ---- all sessions ---- */

void
hr_sessions_renew(struct hr_sessions *all)
{
	struct hr_err err = {0};
	struct hr_named *n;

	LIST_FOREACH(n, &all->list, entry)
	{
		if (hr_session_renew(&n->session, &err) < 0)
			hr_log(HR_LOG_ERROR, "%s: %s", n->session.svc.child.name, err.msg);
	}
}

void
hr_sessions_init(struct hr_sessions *all, struct hr_context *ctx, const struct hr_pools *pools)
{
	memset(all, 0, sizeof(*all));
	all->ctx = ctx;
	all->pools = pools;
	LIST_INIT(&all->list);
}

void
hr_sessions_stop(struct hr_sessions *all, bool fast)
{
	struct hr_named *n;

	all->stopping = true;
	LIST_FOREACH(n, &all->list, entry)
	{
		named_stop(n, fast);
	}
}

bool
hr_sessions_asked(const struct hr_sessions *all)
{
	const struct hr_named *n;

	LIST_FOREACH(n, &all->list, entry)
	{
		if (n->maker.waits || n->killer.waits || n->session.renewed)
			return true;
	}
	return false;
}

int
hr_sessions_hand_over(const struct hr_sessions *all, struct hr_handover *h, struct hr_err *err)
{
	const struct hr_named *n;

	LIST_FOREACH(n, &all->list, entry)
	{
		if (hr_session_hand_over(&n->session, h, err) < 0)
			return -1;
	}
	return 0;
}

bool
hr_sessions_gone(const struct hr_sessions *all)
{
	return LIST_EMPTY(&all->list);
}

void
hr_sessions_done(struct hr_sessions *all)
{
	struct hr_named *n;

	while ((n = LIST_FIRST(&all->list)) != NULL)
		named_free(n);
	hr_watch_drop(&all->reap);
}
