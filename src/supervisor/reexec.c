/* Performs an upgrade. Invariant: until execve() nothing of the running server has changed. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"
#include "supervisor/server.h"

#define ASK_MS 10000
#define TURNS 2 /* number of iterations: one reads a signal's record, one acts */

extern char **environ;

static int
copy_words(struct hr_reexec *r, char *const *argv, struct hr_err *err)
{
	size_t n = 0, i;

	while (argv[n] != NULL)
		n++;
	r->argv = calloc(n + 1, sizeof(*r->argv));
	if (r->argv == NULL)
		return hr_err_nomem(err);
	for (i = 0; i < n; i++)
		r->argv[i] = argv[i];
	return 0;
}

static int
inherit_keys(struct hr_server *s, struct hr_handover *h, struct hr_err *err)
{
	HR_CLOSE int sums = hr_handover_take(h, "keys");

	return sums >= 0 ? hr_keys_inherit(&s->site.keys, sums, err) : 0;
}

int
hr_reexec_begin(struct hr_server *s, char *const *argv, struct hr_err *err)
{
	struct hr_handover *h = &s->ctx.handed;

	if (hr_handover_read(h, err) < 0)
		return -1;
	if (inherit_keys(s, h, err) != 0)
		return -1;
	/* the link is read at the start, since an upgrade replaces the file */
	if (hr_pid_link(s->reexec.program, sizeof(s->reexec.program), "/proc/self/exe") < 0)
		return hr_err_sys(err, errno, "/proc/self/exe");
	return copy_words(&s->reexec, argv, err);
}

bool
hr_reexec_directory(struct hr_server *s, char *path, size_t size)
{
	int fd = hr_handover_take(&s->ctx.handed, "directory");
	ssize_t n = fd >= 0 ? hr_pid_link(path, size, "/proc/self/fd/%d", fd) : -1;

	hr_fd_close(&fd);
	return n > 0 && (size_t)n < size - 1 && path[0] == '/';
}

/* Hands over a descriptor: the path may contain characters that a handover's names must not. */
static int
hand_over_directory(const struct hr_server *s, struct hr_handover *h, struct hr_err *err)
{
	HR_CLOSE int fd = open(s->ctx.run.path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return hr_err_sys(err, errno, "%s", s->ctx.run.path);
	return hr_handover_add(h, fd, err, "directory");
}

static int
hand_over_keys(const struct hr_keys *k, struct hr_handover *h, struct hr_err *err)
{
	HR_CLOSE int fd = -1;

	if (!k->from_environment)
		return 0;
	fd = hr_keys_hand_over(k, err);
	return fd >= 0 ? hr_handover_add(h, fd, err, "keys") : -1;
}

/* Collects everything that clients, and the workers that serve them, would miss. */
static int
collect_handover(const struct hr_server *s, struct hr_handover *h, struct hr_err *err)
{
	unsigned i;

	if (hr_handover_add(h, s->site.listener, err, "listener") != 0 ||
	    hr_handover_add(h, s->site.viewer.fd, err, "viewer") != 0 ||
	    hand_over_directory(s, h, err) < 0 || hand_over_keys(&s->site.keys, h, err) < 0 ||
	    hr_handover_add(h, s->ctx.board_fd, err, "board") != 0 ||
	    hr_session_hand_over(&s->session, h, err) < 0 ||
	    hr_sessions_hand_over(&s->sessions, h, err) < 0 ||
	    hr_plugins_hand_over(&s->plugins, h, err) < 0 ||
	    hr_nginx_hand_over(&s->nginx, h, err) < 0)
		return -1;
	for (i = 0; i < HR_POOLS; i++) {
		if (hr_pool_hand_over(&s->pools.v[i], h, err) < 0)
			return -1;
	}
	return hr_handover_show(h, err);
}

/* Runs the new program with the same settings in check mode. */
static int
check_new_program(const struct hr_server *s, struct hr_err *err)
{
	size_t n = 0, i;
	HR_FREE const char **words = NULL;
	char said[1024], *last;
	int status;

	while (s->reexec.argv[n] != NULL)
		n++;
	words = calloc(n + 2, sizeof(*words));
	if (words == NULL)
		return hr_err_nomem(err);
	words[0] = s->reexec.program;
	words[1] = "--check";
	for (i = 1; i < n; i++)
		words[i + 1] = s->reexec.argv[i];
	status = hr_spawn_wait_for(words, ASK_MS, said, sizeof(said), err);
	if (status < 0)
		return -1;
	n = strlen(said);
	while (n > 0 && said[n - 1] == '\n')
		said[--n] = '\0';
	last = strrchr(said, '\n'); /* the usage may precede the error */
	return status == 0 ? 0 : hr_err_set(err, HR_E_INVAL, "%s", last != NULL ? last + 1 : said);
}

/* Restores the process as it was started: the next image changes it again. */
static void
restore_process(const struct hr_server *s)
{
	(void)umask((mode_t)s->ctx.umask_given);
	(void)setrlimit(RLIMIT_NOFILE, &s->ctx.nofile_given);
	hr_children_protect(&s->kids, false);
}

bool
hr_reexec_may(const struct hr_server *s)
{
	return (!s->ctx.settings.start_nginx || s->nginx.svc.state == HR_SERVICE_READY) &&
	       s->session.svc.state != HR_SERVICE_STARTING && !s->session.renewed &&
	       s->alerts.command.pid == 0 && !hr_static_sessions_asked(&s->static_sessions) &&
	       !hr_sessions_asked(&s->sessions);
}

/* Runs the new image; returns only if the server continues as before. */
static void
execute_new_program(struct hr_server *s, struct hr_err *err)
{
	struct rlimit lim = s->ctx.nofile_given;
	HR_CLEAN(hr_handover_done) struct hr_handover h = {NULL, 0};

	(void)getrlimit(RLIMIT_NOFILE, &lim);
	if (collect_handover(s, &h, err) == 0 && check_new_program(s, err) == 0) {
		hr_notify_send(&s->notify, "RELOADING=1\nMONOTONIC_USEC=%lld\n",
		    (long long)hr_now_ms() * 1000);
		hr_log(HR_LOG_NOTICE, "continuing as %s", s->reexec.program);
		restore_process(s);
		(void)execve(s->reexec.program, s->reexec.argv, environ);
		(void)hr_err_sys(err, errno, "%s", s->reexec.program);
		hr_children_protect(&s->kids, true);
		(void)setrlimit(RLIMIT_NOFILE, &lim);
		(void)umask(022);
		hr_notify_send(&s->notify, "READY=1\n");
	}
	hr_handover_hide();
}

static void
refused(struct hr_server *s, const struct hr_err *err)
{
	s->upgrade = false;
	hr_log(HR_LOG_ERROR, "upgrade refused, nothing has changed: %s", err->msg);
	hr_alerts_hold(&s->alerts, false);
}

static void
turn_over(void *arg)
{
	struct hr_server *s = arg;
	struct hr_reexec *r = &s->reexec;
	struct hr_err err = {0};

	if (s->stage == HR_SERVER_RUNNING && --r->turns > 0 && hr_watch_arm(r->turn, 0, NULL) == 0)
		return;
	r->turns = 0;
	if (s->stage == HR_SERVER_RUNNING && hr_reexec_may(s)) {
		execute_new_program(s, &err);
		refused(s, &err);
	}
	(void)sigprocmask(SIG_SETMASK, &r->mask, NULL);
}

void
hr_reexec_soon(struct hr_server *s)
{
	struct hr_reexec *r = &s->reexec;
	struct hr_err err = {0};
	sigset_t all;

	if (r->turns > 0)
		return;
	if (r->turn == NULL)
		r->turn = hr_loop_timer(s->ctx.loop, turn_over, s, &err);
	if (r->turn == NULL || hr_watch_arm(r->turn, 0, &err) < 0) {
		refused(s, &err);
		return;
	}
	/* the mask is inherited: signals from now on are pending for the next image */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &r->mask);
	r->turns = TURNS;
}

void
hr_reexec_done(struct hr_reexec *r)
{
	hr_watch_drop(&r->turn);
	free(r->argv);
	r->argv = NULL;
}
