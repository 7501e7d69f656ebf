/* All plugins. Invariant: once loaded, the list neither grows nor shrinks, and whom a plugin
 * requires or follows never leads back to it. */
#include "config.h"

#include "supervisor/plugins.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/quote.h"
#include "supervisor/plugin.h"
#include "supervisor/server.h"

void
hr_plugins_init(struct hr_plugins *ps, struct hr_server *server)
{
	ps->server = server;
	TAILQ_INIT(&ps->list);
}

void
hr_plugins_done(struct hr_plugins *ps)
{
	struct hr_plugin *p;

	while ((p = TAILQ_FIRST(&ps->list)) != NULL) {
		TAILQ_REMOVE(&ps->list, p, entry);
		hr_plugin_free(p);
	}
}

struct hr_plugin *
hr_plugins_find(const struct hr_plugins *ps, const char *name)
{
	struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (strcmp(p->m.name, name) == 0)
			return p;
	}
	return NULL;
}

/* ---- the search path ---- */

/* 1: fn wants no more; 0: it was the last; -1: error. */
typedef int dir_fn(struct hr_plugins *ps, const char *dir, void *arg, struct hr_err *err);

static int
each_in_list(struct hr_plugins *ps, const char *list, dir_fn *fn, void *arg, struct hr_err *err)
{
	const char *end;
	char *dir;
	int r = 0;

	for (; r == 0 && *list != '\0'; list = *end == ':' ? end + 1 : end) {
		end = strchrnul(list, ':');
		if (end == list)
			continue;
		dir = strndup(list, (size_t)(end - list));
		if (dir == NULL)
			return hr_err_nomem(err);
		r = fn(ps, dir, arg, err);
		free(dir);
	}
	return r;
}

static int
each_dir(struct hr_plugins *ps, dir_fn *fn, void *arg, struct hr_err *err)
{
	const struct hr_server *s = ps->server;
	char *ours = hr_path_join(s->datadir, "plugins");
	int r;

	if (ours == NULL)
		return hr_err_nomem(err);
	r = each_in_list(ps, s->settings.plugin_path, fn, arg, err);
	if (r == 0)
		r = fn(ps, HR_SYSCONFDIR "/handrail/plugins.d", arg, err);
	if (r == 0)
		r = fn(ps, ours, arg, err);
	free(ours);
	return r;
}

static bool
has_manifest(const char *dir)
{
	char *path = hr_path_join(dir, "plugin.json");
	bool has = path != NULL && access(path, F_OK) == 0;

	free(path);
	return has;
}

static int
plugins_add(struct hr_plugins *ps, const char *dir, bool implied_only, struct hr_err *err)
{
	/* its program starts elsewhere */
	char *whole = hr_path_absolute(dir, err);
	struct hr_manifest m;
	struct hr_plugin *p;
	int r;

	if (whole == NULL)
		return -1;
	r = hr_manifest_read(&m, whole, err);
	free(whole);
	if (r != 0)
		return -1;
	if ((implied_only && !m.implied) || hr_plugins_find(ps, m.name) != NULL) {
		hr_manifest_done(&m);
		return 0;
	}
	p = hr_plugin_new(ps, &m, err);
	hr_manifest_done(&m); /* empty, if it was taken over */
	if (p == NULL)
		return -1;
	TAILQ_INSERT_TAIL(&ps->list, p, entry);
	return 0;
}

static int
load_named(struct hr_plugins *ps, const char *dir, void *arg, struct hr_err *err)
{
	char *path = hr_path_join(dir, arg);
	int r = 0;

	if (path == NULL)
		return hr_err_nomem(err);
	if (has_manifest(path))
		r = plugins_add(ps, path, false, err) == 0 ? 1 : -1;
	free(path);
	return r;
}

/* A manifest that nobody named and that is wrong does no harm. */
static int
load_implied(struct hr_plugins *ps, const char *dir, void *arg, struct hr_err *err)
{
	struct hr_err why = {0};
	struct dirent *e;
	DIR *d = opendir(dir);
	char *path;

	(void)arg;
	(void)err;
	while (d != NULL && (e = readdir(d)) != NULL) {
		path = hr_manifest_name_ok(e->d_name) ? hr_path_join(dir, e->d_name) : NULL;
		if (path != NULL && has_manifest(path) && plugins_add(ps, path, true, &why) != 0)
			hr_log(HR_LOG_WARNING, "%s", why.msg);
		free(path);
	}
	if (d != NULL)
		(void)closedir(d);
	return 0;
}

/* Depth first: mark 1 is on the way down, 2 is done. */
static int
check_circle(struct hr_plugins *ps, struct hr_plugin *p, struct hr_err *err)
{
	const struct hr_manifest_list *const lists[] = {&p->m.requires, &p->m.after};
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
	const struct hr_words *names = &ps->server->settings.plugins;
	struct hr_plugin *p;
	size_t i;
	int r;

	for (i = 0; i < names->n; i++) {
		r = 0;
		if (hr_plugins_find(ps, names->v[i]) != NULL)
			continue; /* named twice */
		if (hr_manifest_name_ok(names->v[i]))
			r = each_dir(ps, load_named, names->v[i], err);
		if (r < 0)
			return -1;
		if (r == 0)
			return hr_err_set(
			    err, HR_E_NOTFOUND, "Plugin %.64s not found", names->v[i]);
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

/* ---- their lives ---- */

int
hr_plugins_open(struct hr_plugins *ps, struct hr_err *err)
{
	struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (hr_plugin_open(p, err) != 0)
			return -1;
	}
	return 0;
}

void
hr_plugins_start(struct hr_plugins *ps)
{
	struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (p->m.at_start)
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
		if (p->m.at_start && (p->state == HR_PLUGIN_OFF || p->state == HR_PLUGIN_WAITING ||
					 p->state == HR_PLUGIN_STARTING))
			return false;
	}
	return true;
}

void
hr_plugins_changed(struct hr_plugins *ps)
{
	struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		hr_plugin_advance(p);
	}
	hr_server_changed(ps->server);
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
		if (hr_plugin_has_process(p))
			return false;
	}
	return true;
}

/* ---- what others read ---- */

void
hr_plugins_nginx(struct hr_buf *b, const struct hr_plugins *ps, const char *run_dir)
{
	static const char *const uris[] = {"/-/auth", "/-/bearer"};
	const struct hr_plugin *p;
	size_t i;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		for (i = 0; i < p->m.nhttp; i++) {
			const struct hr_manifest_http *h = &p->m.http[i];
			size_t len = strlen(h->prefix);

			hr_buf_addf(b, "# plugin %s\nlocation %s%s {\n", p->m.name,
			    h->prefix[len - 1] == '/' ? "" : "= ", h->prefix);
			if (h->auth != HR_MANIFEST_NONE)
				hr_buf_addf(b, "\tauth_request %s;\n", uris[h->auth]);
			hr_buf_addf(b,
			    "\terror_page 401 = @handrail_unauthorized;\n"
			    "\terror_page 403 = @handrail_forbidden;\n"
			    "\terror_page 413 = @handrail_too_large;\n"
			    "\terror_page 429 = @handrail_too_many;\n"
			    "\terror_page 500 = @handrail_failed;\n"
			    "\terror_page 502 503 504 = @handrail_unavailable;\n"
			    "\tproxy_pass http://unix:%s/plugin/%s.http:;\n"
			    "}\n",
			    run_dir, p->m.name);
		}
	}
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
		hr_buf_addf(b, ":{\"state\":\"%s\"", hr_plugin_state_text(p));
		if (p->reason[0] != '\0') {
			hr_buf_adds(b, ",\"reason\":");
			hr_quote_json(b, p->reason, strlen(p->reason));
		}
		hr_buf_addc(b, '}');
		comma = ",";
	}
	hr_buf_addc(b, '}');
}

int
hr_plugins_write_token(const struct hr_rundir *r, const char *token, struct hr_err *err)
{
	char *path = hr_rundir_file(r, "www/connection_token");
	struct hr_buf b;
	int ok = -1;

	if (path == NULL)
		return hr_err_nomem(err);
	hr_buf_init(&b, 1024);
	hr_buf_adds(&b, "{\"token\":");
	if (token != NULL)
		hr_quote_json(&b, token, strlen(token));
	else
		hr_buf_adds(&b, "null");
	hr_buf_adds(&b, "}");
	if (hr_buf_check(&b, err) == 0 &&
	    hr_path_write(path, hr_buf_str(&b), b.len, S_IRUSR, err) == 0) {
		ok = 0;
		if (r->privileged && chown(path, r->nginx_uid, 0) != 0)
			ok = hr_err_sys(err, errno, "%s", path);
	}
	hr_buf_done(&b);
	free(path);
	return ok;
}
