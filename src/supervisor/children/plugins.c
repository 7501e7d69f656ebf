/* Manages all plugins. Invariants: once loaded, the list does not change; the graph of requires and
 * after has no cycle. */
#include "config.h"

#include "supervisor/children/plugins.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "supervisor/children/oldplugins.h"
#include "supervisor/children/plugin.h"
#include "supervisor/children/pluginproc.h"
#include "supervisor/run/context.h"
#include "supervisor/run/keys.h"

#define NAMES_MAX 65536
#define SUMS_MAX (2u << 20) /* more than the sums of the largest file of keys */

void
hr_plugins_done(struct hr_plugins *ps)
{
	struct hr_plugin *p;

	while ((p = TAILQ_FIRST(&ps->list)) != NULL) {
		TAILQ_REMOVE(&ps->list, p, entry);
		hr_plugin_free(p);
	}
}

/* ---- the search path ---- */

/* Returns 1 to stop, 0 to continue, -1 on an error. */
typedef int dir_fn(struct hr_plugins *ps, const char *dir, void *arg, struct hr_err *err);

static int
each_in_list(struct hr_plugins *ps, const char *list, dir_fn *fn, void *arg, struct hr_err *err)
{
	const char *end;
	int r = 0;

	for (; r == 0 && *list != '\0'; list = *end == ':' ? end + 1 : end) {
		HR_FREE char *dir = NULL;

		end = strchrnul(list, ':');
		if (end == list)
			continue;
		dir = strndup(list, (size_t)(end - list));
		if (dir == NULL)
			return hr_err_nomem(err);
		r = fn(ps, dir, arg, err);
	}
	return r;
}

static int
each_dir(struct hr_plugins *ps, dir_fn *fn, void *arg, struct hr_err *err)
{
	const struct hr_context *ctx = ps->ctx;
	HR_FREE char *ours = hr_path_join(ctx->datadir, "plugins");
	int r;

	if (ours == NULL)
		return hr_err_nomem(err);
	r = each_in_list(ps, ctx->settings.plugin_path, fn, arg, err);
	if (r == 0)
		r = fn(ps, HR_SYSCONFDIR "/handrail/plugins.d", arg, err);
	if (r == 0)
		r = fn(ps, ours, arg, err);
	return r;
}

static bool
has_manifest(const char *dir)
{
	HR_FREE char *path = hr_path_join(dir, "plugin.json");

	return path != NULL && access(path, F_OK) == 0;
}

static int
plugins_add(struct hr_plugins *ps, const char *dir, bool implied_only, struct hr_err *err)
{
	/* absolute, since its program starts in another directory */
	HR_FREE char *whole = hr_path_absolute(dir, err);
	struct hr_manifest m;
	struct hr_plugin *p;
	int r;

	if (whole == NULL)
		return -1;
	r = hr_manifest_read(&m, whole, err);
	if (r != 0)
		return -1;
	if ((implied_only && !m.implied) || hr_plugins_find(ps, m.name) != NULL) {
		hr_manifest_done(&m);
		return 0;
	}
	/* an administrator who names an implied plugin expects it to be used soon */
	if (!implied_only && m.implied && m.start == HR_MANIFEST_FIRST_USE)
		m.start = HR_MANIFEST_BACKGROUND;
	p = hr_plugin_new(ps, &m, err);
	hr_manifest_done(&m); /* m is empty if hr_plugin_new() took it */
	if (p == NULL)
		return -1;
	TAILQ_INSERT_TAIL(&ps->list, p, entry);
	return 0;
}

static int
load_named(struct hr_plugins *ps, const char *dir, void *arg, struct hr_err *err)
{
	HR_FREE char *path = hr_path_join(dir, arg);
	int r = 0;

	if (path == NULL)
		return hr_err_nomem(err);
	if (has_manifest(path))
		r = plugins_add(ps, path, false, err) == 0 ? 1 : -1;
	return r;
}

/* Appends the names of the directory's plugins to the list `arg`. */
static int
add_names(struct hr_plugins *ps, const char *dir, void *arg, struct hr_err *err)
{
	struct dirent *e;
	HR_CLOSEDIR DIR *d = opendir(dir);

	(void)ps;
	(void)err;
	while (d != NULL && (e = readdir(d)) != NULL) {
		HR_FREE char *path =
		    hr_manifest_name_ok(e->d_name) ? hr_path_join(dir, e->d_name) : NULL;

		if (path != NULL && has_manifest(path))
			hr_strv_add(arg, e->d_name);
	}
	return 0;
}

/* Sets the error of a plugin that does not exist, with the names of those that do. */
static int
not_found(struct hr_plugins *ps, const char *name, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	HR_BUF(b, NAMES_MAX);
	size_t i;

	if (each_dir(ps, add_names, &names, err) < 0)
		return -1;
	if (names.failed)
		return hr_err_nomem(err);
	if (names.n > 1)
		qsort(names.v, names.n, sizeof(*names.v), hr_strv_compare);
	for (i = 0; i < names.n; i++)
		if (i == 0 || strcmp(names.v[i], names.v[i - 1]) != 0)
			hr_buf_addf(&b, "%s%s", b.len == 0 ? "; there are " : ", ", names.v[i]);
	return hr_err_set(err, HR_E_NOTFOUND, "Plugin %.64s not found%.700s", name, hr_buf_str(&b));
}

/* Loads implied manifests. A faulty one that nobody named is skipped. */
static int
load_implied(struct hr_plugins *ps, const char *dir, void *arg, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	struct hr_err why = {0};
	size_t i;

	(void)arg;
	(void)add_names(ps, dir, &names, err);
	for (i = 0; i < names.n; i++) {
		HR_FREE char *path = hr_path_join(dir, names.v[i]);

		if (path != NULL && plugins_add(ps, path, true, &why) != 0)
			hr_log(HR_LOG_WARNING, "%s", why.msg);
	}
	return names.failed ? hr_err_nomem(err) : 0;
}

/* Searches depth first: mark 1 is on the path, 2 is done. */
static int
check_circle(struct hr_plugins *ps, struct hr_plugin *p, struct hr_err *err)
{
	const struct hr_strv *const lists[] = {&p->m.requires, &p->m.after};
	struct hr_plugin *other;
	size_t i, k;

	if (p->mark == 2)
		return 0;
	if (p->mark == 1)
		return hr_err_set(
		    err, HR_E_INVAL, "plugin %s requires itself, by way of others", p->m.name);
	p->mark = 1;
	for (k = 0; k < 2; k++)
		for (i = 0; i < lists[k]->n; i++) {
			other = hr_plugins_find(ps, lists[k]->v[i]);
			if (other != NULL && check_circle(ps, other, err) != 0)
				return -1;
		}
	p->mark = 2;
	return 0;
}

int
hr_plugins_load(struct hr_plugins *ps, struct hr_err *err)
{
	const struct hr_strv *names = &ps->ctx->settings.plugins;
	struct hr_plugin *p;
	size_t i;
	int r;

	for (i = 0; i < names->n; i++) {
		r = 0;
		if (hr_plugins_find(ps, names->v[i]) != NULL)
			continue; /* the plugin was named twice */
		if (hr_manifest_name_ok(names->v[i]))
			r = each_dir(ps, load_named, names->v[i], err);
		if (r < 0)
			return -1;
		if (r == 0)
			return not_found(ps, names->v[i], err);
	}
	if (each_dir(ps, load_implied, NULL, err) < 0)
		return -1;
	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (check_circle(ps, p, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- starting and stopping ---- */

/* Publishes the token only once the plugin is ready: before, another server may use its port. */
static void
update_token(struct hr_plugins *ps)
{
	const struct hr_plugin *p;
	struct hr_err err = {0};
	bool shown = false;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		shown |= p->m.token && p->svc.state == HR_SERVICE_READY;
	}
	if (shown != ps->token.shown && hr_token_show(&ps->token, &ps->ctx->run, shown, &err) != 0)
		hr_log(HR_LOG_ERROR, "%s", err.msg);
}

/* Publishes the states for /metrics. */
static void
publish(const struct hr_plugins *ps, bool names)
{
	struct hr_scoreboard *board = ps->ctx->board;
	const struct hr_plugin *p;
	size_t i = 0;

	if (board == NULL) /* the server does not run yet */
		return;
	TAILQ_FOREACH(p, &ps->list, entry)
	{
		struct hr_plugin_metrics *m = &board->metrics.plugins[i++];

		if (names)
			(void)snprintf(m->name, sizeof(m->name), "%s", p->m.name);
		atomic_store(&m->state, p->svc.state);
		atomic_store(&m->pid, p->svc.child.pid);
		atomic_store(&m->ends, p->ends);
		if (i == HR_METRICS_PLUGINS)
			break;
	}
}

void
hr_plugins_succeed(struct hr_plugins *ps)
{
	const struct hr_rundir *run = &ps->ctx->run;
	struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		unsigned what = hr_oldplugins_known(run, p->m.name);

		p->lost = (what & HR_OLDPLUGIN_KEEPS) != 0;
		p->ran = p->m.outlives && what != 0;
	}
	hr_oldplugins_end(run);
}

/* Removes the previous image's links, except those that a present plugin makes too. */
static int
remove_old_links(const struct hr_plugins *ps, struct hr_err *err)
{
	HR_FREE char *path = hr_rundir_file(&ps->ctx->run, "action");
	HR_CLOSEDIR DIR *d = path != NULL ? opendir(path) : NULL;
	const struct dirent *e;
	int r = 0;

	if (d == NULL)
		return hr_err_sys(err, errno, "the directory of actions");
	while (r == 0 && (e = readdir(d)) != NULL) {
		if (e->d_type != DT_DIR && !hr_plugin_owns_link(ps, dirfd(d), e->d_name) &&
		    unlinkat(dirfd(d), e->d_name, 0) != 0)
			r = hr_err_sys(err, errno, "the link of action %s", e->d_name);
	}
	return r;
}

int
hr_plugins_open(struct hr_plugins *ps, struct hr_err *err)
{
	struct hr_plugin *p;

	if (remove_old_links(ps, err) != 0)
		return -1;
	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (hr_plugin_open(p, err) != 0)
			return -1;
	}
	update_token(ps);
	publish(ps, true);
	return 0;
}

void
hr_plugins_keys(const struct hr_plugins *ps, const struct hr_keys *keys)
{
	const struct hr_plugin *p;
	struct hr_err err = {0};
	HR_BUF(b, SUMS_MAX);

	hr_keys_tell(keys, 0, SUMS_MAX, &b);
	TAILQ_FOREACH(p, &ps->list, entry)
	{
		/* a reader accepts no key while the file is incomplete */
		if (p->sums >= 0 &&
		    (ftruncate(p->sums, 0) != 0 || lseek(p->sums, 0, SEEK_SET) != 0 ||
			hr_fd_write_full(p->sums, b.p, b.len, &err) < 0))
			hr_log(HR_LOG_ERROR, "plugin %s gets no keys: %s", p->m.name, err.msg);
	}
}

void
hr_plugins_start(struct hr_plugins *ps)
{
	struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (p->m.start != HR_MANIFEST_FIRST_USE || p->ran)
			hr_plugin_want(p);
	}
	TAILQ_FOREACH(p, &ps->list, entry)
	{
		hr_plugin_advance(p);
	}
}

bool
hr_plugins_settled(const struct hr_plugins *ps)
{
	const struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (p->m.start == HR_MANIFEST_AT_START &&
		    (p->svc.state == HR_SERVICE_OFF || p->svc.state == HR_SERVICE_WAITING ||
			p->svc.state == HR_SERVICE_STARTING))
			return false;
	}
	return true;
}

int
hr_plugins_hand_over(const struct hr_plugins *ps, struct hr_handover *h, struct hr_err *err)
{
	const struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (p->action >= 0 &&
		    hr_handover_add(h, p->action, err, "plugin/%s.sock", p->m.name) != 0)
			return -1;
		if (p->http >= 0 &&
		    hr_handover_add(h, p->http, err, "plugin/%s.http", p->m.name) != 0)
			return -1;
		if (p->direct >= 0 && hr_handover_add(h, p->direct, err, "%s", p->direct_path) != 0)
			return -1;
	}
	return 0;
}

static void
plugins_changed(struct hr_plugins *ps)
{
	struct hr_plugin *p;

	update_token(ps);
	publish(ps, false);

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		hr_plugin_advance(p);
	}
	ps->ctx->changed(ps->ctx);
}

void
hr_plugins_init(struct hr_plugins *ps, struct hr_context *ctx)
{
	ps->ctx = ctx;
	ps->changed = plugins_changed;
	memset(&ps->token, 0, sizeof(ps->token));
	TAILQ_INIT(&ps->list);
}

void
hr_plugins_stop_http(struct hr_plugins *ps)
{
	struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (p->m.nhttp > 0)
			hr_plugin_stop(p, false);
	}
}

void
hr_plugins_stop(struct hr_plugins *ps, bool fast)
{
	struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		hr_plugin_stop(p, fast);
	}
}

bool
hr_plugins_gone(const struct hr_plugins *ps)
{
	const struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (hr_service_runs(&p->svc))
			return false;
	}
	return true;
}

void
hr_plugins_json(struct hr_buf *b, const struct hr_plugins *ps)
{
	const struct hr_plugin *p;
	const char *comma = "";

	hr_buf_addc(b, '{');
	TAILQ_FOREACH(p, &ps->list, entry)
	{
		hr_buf_adds(b, comma);
		hr_quote_json(b, p->m.name, strlen(p->m.name));
		hr_buf_addf(b, ":{\"state\":\"%s\"", hr_plugin_states[p->svc.state]);
		if (p->svc.reason[0] != '\0') {
			hr_buf_adds(b, ",\"reason\":");
			hr_quote_json(b, p->svc.reason, strlen(p->svc.reason));
		}
		hr_buf_addc(b, '}');
		comma = ",";
	}
	hr_buf_addc(b, '}');
}
