/* Runs a plugin. Invariant: its sockets are watched exactly while it has no process and is not
 * stopped: the process itself accepts. */
#include "config.h"

#include "supervisor/children/plugin.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "proto/frame.h"
#include "supervisor/children/oldplugins.h"
#include "supervisor/children/pluginproc.h"
#include "supervisor/run/context.h"

#define STOP_MS 5000    /* ms to pause before SIGKILL */
#define RETRY_MS 1000   /* minimum ms after a failed start */
#define REFUSE_MAX 4096 /* maximum connections per iteration: the backlog is no longer */

static void plugin_used(void *arg);

static struct hr_plugin *
plugin_of(const struct hr_service *svc)
{
	return svc->owner;
}

static void
plugin_changed(struct hr_service *svc)
{
	plugin_of(svc)->all->changed(plugin_of(svc)->all);
}

/* ---- clients waiting at the sockets ---- */

static void
watch_sockets(struct hr_plugin *p)
{
	struct hr_loop *loop = p->all->ctx->loop;
	struct hr_err err = {0};

	if (p->action >= 0 && p->action_use == NULL)
		p->action_use = hr_loop_readable(loop, p->action, plugin_used, p, &err);
	if (p->http >= 0 && p->http_use == NULL)
		p->http_use = hr_loop_readable(loop, p->http, plugin_used, p, &err);
	if (p->direct >= 0 && p->direct_use == NULL)
		p->direct_use = hr_loop_readable(loop, p->direct, plugin_used, p, &err);
	if (err.code != HR_OK)
		hr_log(HR_LOG_ERROR, "plugin %s: %s", p->m.name, err.msg);
}

static void
forget_sockets(struct hr_plugin *p)
{
	hr_watch_drop(&p->action_use);
	hr_watch_drop(&p->http_use);
	hr_watch_drop(&p->direct_use);
}

/* Sends the refusal. A peer that does not read loses the text, nothing else. */
static void
refuse_one(int fd, const struct hr_buf *text)
{
	(void)send(fd, text->p, text->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	hr_fd_close(&fd);
}

/* Refuses all pending connections. O_NONBLOCK belongs to the socket, not to the descriptor: it is
 * restored for the plugin. */
static void
refuse_at(int listener, const struct hr_buf *text)
{
	int fd, n;

	if (listener < 0 || text->fail != HR_OK || hr_fd_nonblock(listener, true, NULL) != 0)
		return;
	for (n = 0; n < REFUSE_MAX; n++) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
			break;
		if (fd >= 0)
			refuse_one(fd, text);
	}
	(void)hr_fd_nonblock(listener, false, NULL);
}

static void
refuse_all(struct hr_plugin *p)
{
	static const char head[] = "HTTP/1.1 503 Service Unavailable\r\n"
				   "Content-Type: application/json\r\nConnection: close\r\n"
				   "Retry-After: 1\r\nContent-Length: 32\r\n\r\n"
				   "{\"detail\":\"Service Unavailable\"}";
	char why[sizeof(p->svc.reason) + 128];
	HR_BUF(b, 4096);

	(void)snprintf(
	    why, sizeof(why), "plugin %s is not available: %s", p->m.name, p->svc.reason);
	hr_frame_put_refused(&b, why);
	refuse_at(p->action, &b);
	hr_buf_reset(&b);
	hr_buf_adds(&b, head);
	refuse_at(p->http, &b);
	refuse_at(p->direct, &b);
}

static void
plugin_used(void *arg)
{
	struct hr_plugin *p = arg;

	if (p->svc.state == HR_SERVICE_FAILED || p->svc.state == HR_SERVICE_UNAVAILABLE)
		refuse_all(p);
	else if (p->svc.state == HR_SERVICE_OFF)
		hr_plugin_start(p);
	else /* the start is decided elsewhere, and a failure watches again */
		forget_sockets(p);
}

/* ---- start and end ---- */

/* Records the plugin for a successor, in case this process is killed. `keeps`: it was ready
 * once. */
static void
note(const struct hr_plugin *p, bool keeps)
{
	const struct hr_rundir *run = &p->all->ctx->run;
	struct hr_err err = {0};

	if (p->svc.child.pid == 0 && !keeps)
		hr_oldplugins_forget(run, p->m.name);
	else if (hr_oldplugins_note(run, p->m.name, p->svc.child.pid,
		     (keeps ? HR_OLDPLUGIN_KEEPS : 0u) |
			 (p->m.outlives ? HR_OLDPLUGIN_OUTLIVES : 0u),
		     &err) < 0)
		hr_log(HR_LOG_WARNING, "cannot record plugin %s: %s", p->m.name, err.msg);
}

/* Sends waiting clients the reason why the plugin did not start, or never will. */
static void
plugin_refuses(struct hr_plugin *p, enum hr_service_state state, int64_t delay)
{
	bool never = state == HR_SERVICE_UNAVAILABLE;

	hr_log(never ? HR_LOG_WARNING : HR_LOG_ERROR, "plugin %s %s: %s", p->m.name,
	    never ? "is not available" : "did not start", p->svc.reason);
	refuse_all(p);
	watch_sockets(p);
	if (never)
		hr_service_set(&p->svc, state);
	else
		hr_service_down(&p->svc, state, delay > RETRY_MS ? delay : RETRY_MS);
	if (p->m.start == HR_MANIFEST_AT_START && !p->m.disables)
		p->all->ctx->start_failed(p->all->ctx, p->svc.reason);
}

static void
plugin_ready(struct hr_service *svc)
{
	struct hr_plugin *p = plugin_of(svc);

	p->lost = false;
	p->ran = p->m.outlives;
	hr_log(HR_LOG_INFO, "plugin %s is ready (process %ld, %lld ms)", p->m.name,
	    (long)svc->child.pid, (long long)(hr_now_ms() - svc->child.since_ms));
	note(p, true);
}

static void
plugin_ended(struct hr_service *svc, const struct hr_exit *how)
{
	struct hr_plugin *p = plugin_of(svc);

	/* kills its children: the number is still its own */
	(void)kill(-how->pid, SIGKILL);
	if (svc->state == HR_SERVICE_STOPPING)
		hr_oldplugins_forget(&p->all->ctx->run, p->m.name);
}

static void
plugin_lost(struct hr_service *svc, const struct hr_exit *how, bool worked, int64_t delay)
{
	struct hr_plugin *p = plugin_of(svc);

	p->lost = p->lost || worked;
	note(p, p->lost);
	p->ends++;
	if (worked || (svc->reason[0] == '\0' && !svc->never))
		(void)snprintf(svc->reason, sizeof(svc->reason), "%s (%s)",
		    worked ? "it ended" : HR_READYLINE_ENDED, hr_exit_text(how));
	if (!worked) {
		plugin_refuses(p, svc->never ? HR_SERVICE_UNAVAILABLE : HR_SERVICE_FAILED, delay);
		return;
	}
	hr_log(HR_LOG_WARNING, "plugin %s ended (%s) after %lld ms", p->m.name, hr_exit_text(how),
	    (long long)how->age_ms);
	hr_service_down(svc, HR_SERVICE_DOWN, delay);
}

static void
plugin_again(struct hr_service *svc)
{
	struct hr_plugin *p = plugin_of(svc);

	hr_service_move(svc, HR_SERVICE_OFF);
	if (p->m.start != HR_MANIFEST_FIRST_USE || p->ran)
		hr_plugin_start(p);
	else
		watch_sockets(p);
	p->all->changed(p->all);
}

static int
plugin_spawn(struct hr_service *svc, int ready, struct hr_err *err)
{
	struct hr_plugin *p = plugin_of(svc);

	if (hr_plugin_spawn(p, ready, err) < 0)
		return -1;
	note(p, p->lost);
	return 0;
}

static const struct hr_service_ops plugin_ops = {
    .spawn = plugin_spawn,
    .changed = plugin_changed,
    .ready = plugin_ready,
    .ended = plugin_ended,
    .lost = plugin_lost,
    .again = plugin_again,
    .says_ready = true,
    .leads = true,
};

static void
plugin_launch(struct hr_plugin *p)
{
	struct hr_err err = {0};

	forget_sockets(p);
	p->svc.reason[0] = '\0';
	if (hr_service_start(&p->svc, hr_plugin_patience_s(p) * 1000, &err) == 0)
		return;
	hr_service_because(&p->svc, err.msg);
	plugin_refuses(
	    p, HR_SERVICE_FAILED, hr_backoff_next(&p->svc.backoff, false, 0, hr_now_ms()));
}

/* Returns 1 if all that the plugin follows are in the required state; 0 to wait; -1 if one never
 * will be. */
static int
follows_ready(struct hr_plugin *p)
{
	const struct hr_strv *const lists[] = {&p->m.requires, &p->m.after};
	struct hr_plugin *other;
	size_t i, k;
	int r = 1;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < lists[k]->n; i++) {
			bool must = lists[k] == &p->m.requires;

			other = hr_plugins_find(p->all, lists[k]->v[i]);
			if (other == NULL && must) {
				(void)snprintf(p->svc.reason, sizeof(p->svc.reason),
				    "it requires plugin %.64s, which was not named",
				    lists[k]->v[i]);
				return -1;
			}
			if (other == NULL || other->svc.state == HR_SERVICE_READY)
				continue;
			if (other->svc.state == HR_SERVICE_OFF && must)
				hr_plugin_start(other);
			if (other->svc.state == HR_SERVICE_WAITING ||
			    other->svc.state == HR_SERVICE_STARTING) {
				r = 0;
			} else if (must && other->svc.state != HR_SERVICE_READY) {
				(void)snprintf(p->svc.reason, sizeof(p->svc.reason),
				    "it requires plugin %.64s: %.100s", other->m.name,
				    other->svc.reason);
				return -1;
			}
		}
	}
	return r;
}

void
hr_plugin_advance(struct hr_plugin *p)
{
	int r;

	if (p->svc.state != HR_SERVICE_WAITING)
		return;
	r = follows_ready(p);
	if (p->svc.state != HR_SERVICE_WAITING || r == 0) /* decided in the calls above */
		return;
	if (r > 0)
		plugin_launch(p);
	else
		plugin_refuses(p, HR_SERVICE_FAILED, RETRY_MS);
}

void
hr_plugin_want(struct hr_plugin *p)
{
	if (p->svc.state != HR_SERVICE_OFF)
		return;
	forget_sockets(p);
	hr_service_move(&p->svc, HR_SERVICE_WAITING);
}

void
hr_plugin_start(struct hr_plugin *p)
{
	hr_plugin_want(p);
	hr_plugin_advance(p);
}

void
hr_plugin_stop(struct hr_plugin *p, bool fast)
{
	forget_sockets(p);
	hr_fd_close(&p->action); /* clients must not wait for a stopped plugin */
	hr_fd_close(&p->http);
	if (p->direct >= 0)
		(void)unlink(p->direct_path);
	hr_fd_close(&p->direct);
	hr_service_stop(&p->svc, fast ? SIGKILL : SIGTERM, STOP_MS);
}

/* ---- making and freeing ---- */

struct hr_plugin *
hr_plugin_new(struct hr_plugins *all, struct hr_manifest *m, struct hr_err *err)
{
	struct hr_plugin *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return hr_err_null(err);
	p->all = all;
	p->action = p->http = p->direct = p->sums = -1;
	hr_service_init(&p->svc, &plugin_ops, p, all->ctx->kids);
	(void)snprintf(p->svc.child.name, sizeof(p->svc.child.name), "%.40s", m->name);
	p->m = *m;
	memset(m, 0, sizeof(*m));
	return p;
}

void
hr_plugin_free(struct hr_plugin *p)
{
	if (p == NULL)
		return;
	forget_sockets(p);
	hr_service_done(&p->svc);
	hr_fd_close(&p->action);
	hr_fd_close(&p->http);
	hr_fd_close(&p->direct);
	hr_fd_close(&p->sums);
	free(p->direct_path);
	free(p->state_dir);
	hr_manifest_done(&p->m);
	free(p);
}

int
hr_plugin_open(struct hr_plugin *p, struct hr_err *err)
{
	struct hr_err why = {0};

	if (hr_service_open(&p->svc, err) < 0)
		return -1;
	if (hr_plugin_prepare(p, &why) < 0) {
		hr_service_move(&p->svc, HR_SERVICE_UNAVAILABLE);
		hr_service_because(&p->svc, why.msg);
		hr_log(HR_LOG_WARNING, "plugin %s is not available: %s", p->m.name, why.msg);
	} else if (p->m.exec.n == 0) {
		hr_service_move(&p->svc, HR_SERVICE_READY);
	}
	if (p->lost)
		note(p, true); /* records it again, since the directory is new */
	watch_sockets(p);
	return 0;
}
