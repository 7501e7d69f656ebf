/* A plugin. Invariant: its sockets are watched exactly while it has no process and is not stopped:
 * the process accepts for itself. */
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
#include "base/path.h"
#include "proto/frame.h"
#include "supervisor/children/oldplugins.h"
#include "supervisor/children/pluginproc.h"
#include "supervisor/children/plugins.h"
#include "supervisor/server.h"

#define STOP_MS 5000    /* between SIGTERM and SIGKILL */
#define RETRY_MS 1000   /* at least, after a start that failed */
#define REFUSE_MAX 4096 /* connections in a turn: no more can wait */

static void plugin_used(void *arg);

static void
plugin_set(struct hr_plugin *p, enum hr_plugin_state state)
{
	p->state = state;
	hr_plugins_changed(p->all);
}

static void
set_reason(struct hr_plugin *p, const char *why)
{
	(void)snprintf(p->reason, sizeof(p->reason), "%s", why);
}

/* ---- who waits at the sockets ---- */

static void
watch_sockets(struct hr_plugin *p)
{
	struct hr_loop *loop = p->all->server->loop;
	struct hr_err err = {0};

	if (p->action >= 0 && p->action_use == NULL)
		p->action_use = hr_loop_readable(loop, p->action, plugin_used, p, &err);
	if (p->http >= 0 && p->http_use == NULL)
		p->http_use = hr_loop_readable(loop, p->http, plugin_used, p, &err);
	if (err.code != HR_OK)
		hr_log(HR_LOG_ERROR, "plugin %s: %s", p->m.name, err.msg);
}

static void
forget_sockets(struct hr_plugin *p)
{
	hr_watch_free(p->action_use);
	hr_watch_free(p->http_use);
	p->action_use = p->http_use = NULL;
}

/* A peer that does not read loses the text, nothing else. */
static void
refuse_one(int fd, const struct hr_buf *text)
{
	(void)send(fd, text->p, text->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	hr_fd_close(&fd);
}

/* The flag belongs to the socket, not to our descriptor: the plugin wants it as it was. */
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
	char why[sizeof(p->reason) + 128];
	struct hr_buf b;

	(void)snprintf(why, sizeof(why), "plugin %s is not available: %s", p->m.name, p->reason);
	hr_buf_init(&b, 4096);
	hr_frame_put_refused(&b, why);
	refuse_at(p->action, &b);
	hr_buf_reset(&b);
	hr_buf_adds(&b, head);
	refuse_at(p->http, &b);
	hr_buf_done(&b);
}

static void
plugin_used(void *arg)
{
	struct hr_plugin *p = arg;

	if (p->state == HR_PLUGIN_FAILED || p->state == HR_PLUGIN_UNAVAILABLE)
		refuse_all(p);
	else if (p->state == HR_PLUGIN_OFF)
		hr_plugin_start(p);
	else /* its start is decided elsewhere, and watches again if it fails */
		forget_sockets(p);
}

/* ---- start and end ---- */

/* For whoever comes after us, should we be killed now. keeps: as for hr_oldplugins_note(). */
static void
note(const struct hr_plugin *p, bool keeps)
{
	const struct hr_rundir *run = &p->all->server->run;
	struct hr_err err = {0};

	if (p->child.pid == 0 && !keeps)
		hr_oldplugins_forget(run, p->m.name);
	else if (hr_oldplugins_note(run, p->m.name, p->child.pid, keeps, &err) != 0)
		hr_log(HR_LOG_WARNING, "plugin %s is not noted: %s", p->m.name, err.msg);
}

static void
plugin_failed(struct hr_plugin *p, const char *why, int64_t delay)
{
	struct hr_server *s = p->all->server;

	if (why != p->reason)
		set_reason(p, why);
	hr_log(HR_LOG_ERROR, "plugin %s did not start: %s", p->m.name, why);
	hr_watch_disarm(p->patience);
	(void)hr_watch_arm(p->restart, delay > RETRY_MS ? delay : RETRY_MS, NULL);
	refuse_all(p);
	watch_sockets(p);
	plugin_set(p, HR_PLUGIN_FAILED);
	if (p->m.start == HR_MANIFEST_AT_START && !p->m.disables)
		hr_server_start_failed(s, HR_EXIT_START, why);
}

/* By its own word: for good. */
static void
plugin_unavailable(struct hr_plugin *p)
{
	hr_log(HR_LOG_WARNING, "plugin %s is not available: %s", p->m.name, p->reason);
	refuse_all(p);
	watch_sockets(p);
	plugin_set(p, HR_PLUGIN_UNAVAILABLE);
	if (p->m.start == HR_MANIFEST_AT_START && !p->m.disables)
		hr_server_start_failed(p->all->server, HR_EXIT_START, p->reason);
}

static void
plugin_ready(void *arg, bool ready, const char *reason)
{
	struct hr_plugin *p = arg;

	if (p->state != HR_PLUGIN_STARTING)
		return;
	if (!ready) {
		p->never = p->line.never;
		if (strcmp(reason, HR_READYLINE_ENDED) != 0)
			set_reason(p, reason); /* else its end says more */
		hr_child_signal(&p->child, SIGTERM);
		(void)hr_watch_arm(p->patience, STOP_MS, NULL);
		return;
	}
	hr_watch_disarm(p->patience);
	p->reason[0] = '\0';
	p->lost = false;
	hr_log(HR_LOG_INFO, "plugin %s is ready (process %ld, %lld ms)", p->m.name,
	    (long)p->child.pid, (long long)(hr_now_ms() - p->child.since_ms));
	note(p, true);
	plugin_set(p, HR_PLUGIN_READY);
}

static void
plugin_ended(void *arg, const struct hr_exit *how)
{
	struct hr_plugin *p = arg;
	char why[sizeof(p->reason)];
	int64_t delay;
	bool worked;

	/* its end may be seen before what it said */
	if (p->state == HR_PLUGIN_STARTING)
		hr_readyline_look(&p->line);
	worked = p->state == HR_PLUGIN_READY;
	/* what it started ends with it: the number is still its own */
	(void)kill(-how->pid, SIGKILL);
	hr_readyline_close(&p->line);
	hr_watch_disarm(p->patience);
	if (p->state == HR_PLUGIN_STOPPING) {
		hr_child_tell_killed(p->m.name, how);
		hr_oldplugins_forget(&p->all->server->run, p->m.name);
		plugin_set(p, HR_PLUGIN_STOPPED);
		return;
	}
	p->lost = p->lost || worked;
	note(p, p->lost);
	p->ends++;
	if (p->never) {
		plugin_unavailable(p);
		return;
	}
	delay = hr_backoff_next(&p->backoff, worked, how->age_ms, hr_now_ms());
	if (!worked) {
		(void)snprintf(why, sizeof(why), HR_READYLINE_ENDED " (%s)", hr_exit_text(how));
		plugin_failed(p, p->reason[0] != '\0' ? p->reason : why, delay);
		return;
	}
	(void)snprintf(why, sizeof(why), "it ended (%s)", hr_exit_text(how));
	set_reason(p, why);
	hr_log(HR_LOG_WARNING, "plugin %s ended (%s) after %lld ms", p->m.name, hr_exit_text(how),
	    (long long)how->age_ms);
	if (hr_watch_arm(p->restart, delay, NULL) != 0)
		hr_log(HR_LOG_ERROR, "no memory for a timer: plugin %s stays down", p->m.name);
	plugin_set(p, HR_PLUGIN_DOWN);
}

static void
plugin_restart(void *arg)
{
	struct hr_plugin *p = arg;

	if (p->state != HR_PLUGIN_DOWN && p->state != HR_PLUGIN_FAILED)
		return;
	p->state = HR_PLUGIN_OFF;
	if (p->m.start != HR_MANIFEST_FIRST_USE)
		hr_plugin_start(p);
	else
		watch_sockets(p);
	hr_plugins_changed(p->all);
}

static void
plugin_patience_over(void *arg)
{
	struct hr_plugin *p = arg;

	if (p->state == HR_PLUGIN_STARTING && p->reason[0] == '\0')
		(void)snprintf(p->reason, sizeof(p->reason), "it was not ready after %lld s",
		    hr_plugin_patience_s(p));
	hr_log(HR_LOG_WARNING, "plugin %s is killed: %s", p->m.name,
	    p->state == HR_PLUGIN_STARTING ? p->reason : "it does not end");
	hr_child_signal_group(&p->child, SIGKILL);
}

static void
plugin_launch(struct hr_plugin *p)
{
	struct hr_err err = {0};
	int ready = -1, ok = -1;

	forget_sockets(p);
	p->reason[0] = '\0';
	if (hr_readyline_open(&p->line, p->all->server->loop, plugin_ready, p, &ready, &err) == 0) {
		ok = hr_plugin_spawn(p, ready, &err);
		hr_fd_close(&ready);
	}
	if (ok != 0) {
		hr_readyline_close(&p->line);
		plugin_failed(p, err.msg, hr_backoff_next(&p->backoff, false, 0, hr_now_ms()));
		return;
	}
	note(p, p->lost);
	(void)hr_watch_arm(p->patience, hr_plugin_patience_s(p) * 1000, NULL);
	plugin_set(p, HR_PLUGIN_STARTING);
}

/* 1: all of those it follows are as they should be; 0: wait; -1: one of them never will. */
static int
follows_ready(struct hr_plugin *p)
{
	const struct hr_manifest_list *const lists[] = {&p->m.requires, &p->m.after};
	struct hr_plugin *other;
	size_t i, k;
	int r = 1;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < lists[k]->n; i++) {
			bool must = lists[k] == &p->m.requires;

			other = hr_plugins_find(p->all, lists[k]->v[i]);
			if (other == NULL && must) {
				(void)snprintf(p->reason, sizeof(p->reason),
				    "it requires plugin %.64s, which was not named",
				    lists[k]->v[i]);
				return -1;
			}
			if (other == NULL || other->state == HR_PLUGIN_READY)
				continue;
			if (other->state == HR_PLUGIN_OFF && must)
				hr_plugin_start(other);
			if (other->state == HR_PLUGIN_WAITING ||
			    other->state == HR_PLUGIN_STARTING) {
				r = 0;
			} else if (must && other->state != HR_PLUGIN_READY) {
				(void)snprintf(p->reason, sizeof(p->reason),
				    "it requires plugin %.64s: %.100s", other->m.name,
				    other->reason);
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

	if (p->state != HR_PLUGIN_WAITING)
		return;
	r = follows_ready(p);
	if (p->state != HR_PLUGIN_WAITING || r == 0) /* decided below us */
		return;
	if (r > 0)
		plugin_launch(p);
	else
		plugin_failed(p, p->reason, RETRY_MS);
}

void
hr_plugin_want(struct hr_plugin *p)
{
	if (p->state != HR_PLUGIN_OFF)
		return;
	forget_sockets(p);
	p->state = HR_PLUGIN_WAITING;
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
	hr_watch_disarm(p->restart);
	forget_sockets(p);
	hr_fd_close(&p->action); /* nobody waits for one that does not come */
	hr_fd_close(&p->http);
	if (p->child.pid == 0) {
		p->state = HR_PLUGIN_STOPPED;
		return;
	}
	hr_readyline_close(&p->line);
	if (fast)
		hr_child_signal_group(&p->child, SIGKILL);
	else if (p->state != HR_PLUGIN_STOPPING)
		hr_child_signal(&p->child, SIGTERM);
	if (p->state != HR_PLUGIN_STOPPING)
		(void)hr_watch_arm(p->patience, STOP_MS, NULL);
	p->state = HR_PLUGIN_STOPPING;
}

bool
hr_plugin_has_process(const struct hr_plugin *p)
{
	return p->child.pid != 0;
}

const char *
hr_plugin_state_text(const struct hr_plugin *p)
{
	return hr_plugin_states[p->state];
}

/* ---- making and freeing ---- */

struct hr_plugin *
hr_plugin_new(struct hr_plugins *all, struct hr_manifest *m, struct hr_err *err)
{
	struct hr_plugin *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		(void)hr_err_nomem(err);
		return NULL;
	}
	p->all = all;
	p->action = p->http = p->line.fd = -1;
	p->child.kids = &all->server->kids;
	p->child.arg = p;
	p->child.on_exit = plugin_ended;
	(void)snprintf(p->child.name, sizeof(p->child.name), "%.40s", m->name);
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
	hr_watch_free(p->patience);
	hr_watch_free(p->restart);
	hr_readyline_close(&p->line);
	hr_fd_close(&p->action);
	hr_fd_close(&p->http);
	free(p->state_dir);
	hr_manifest_done(&p->m);
	free(p);
}

int
hr_plugin_open(struct hr_plugin *p, struct hr_err *err)
{
	struct hr_loop *loop = p->all->server->loop;
	struct hr_err why = {0};

	p->patience = hr_loop_timer(loop, plugin_patience_over, p, err);
	p->restart = hr_loop_timer(loop, plugin_restart, p, err);
	if (p->patience == NULL || p->restart == NULL)
		return -1;
	if (hr_plugin_prepare(p, &why) != 0) {
		p->state = HR_PLUGIN_UNAVAILABLE;
		set_reason(p, why.msg);
		hr_log(HR_LOG_WARNING, "plugin %s is not available: %s", p->m.name, why.msg);
	} else if (p->m.exec.n == 0) {
		p->state = HR_PLUGIN_READY;
	}
	if (p->lost)
		note(p, true); /* the directory is new */
	watch_sockets(p);
	return 0;
}
