/* Runs commands of the back-end "cli": each runs in a bash of its own, the leader of its process
 * group. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process/spawn.h"
#include "host/direct/direct_int.h"
#include "base/err.h"
#include "proto/json.h"

#define KILL_AFTER_MS 5000 /* milliseconds after SIGTERM */
#define LINGER_MS 1000     /* milliseconds to wait for output of background processes */
#define TIMEOUT_MAX_S 1e12 /* maximum seconds that still fit a count of milliseconds */
#define PIECE 65536

#define NO_INPUT                                                                                   \
	"CLIRuntime does not support interactive input from the agent (e.g., 'C-c'). The command " \
	"'%s' was not sent to any process."

struct job {
	struct hr_direct *c;
	const char *dir; /* working directory */
	pid_t pid;
	int out, watch; /* -1: closed, or the process has ended */
	struct hr_direct_said said;
	bool timed_out, unread;
	int lost; /* errno if the exit status is unknown */
	int status;
};

static int64_t
in_ms(double s)
{
	if (!(s > 0))
		return 0;
	return s < TIMEOUT_MAX_S ? (int64_t)(s * 1000) : (int64_t)TIMEOUT_MAX_S * 1000;
}

/* ---- output ---- */

/* Reads available output. */
static int
take(struct job *j)
{
	char piece[PIECE];
	ssize_t n = hr_fd_read(j->out, piece, sizeof(piece));

	if (n > 0) {
		hr_direct_said_add(&j->said, piece, (size_t)n);
	} else if (n == 0) {
		hr_fd_close(&j->out);
	} else if (errno != EAGAIN) {
		return -1;
	}
	return 0;
}

/* ---- the process ---- */

int
hr_direct_interrupt(void *self, int number, bool *ret, struct hr_err *err)
{
	struct hr_direct *c = self;
	int r = 0;

	(void)pthread_mutex_lock(&c->lock);
	*ret = c->running > 0 && kill(-c->running, number) == 0;
	if (c->running > 0 && !*ret && errno != ESRCH)
		r = hr_err_sys(err, errno, "kill");
	(void)pthread_mutex_unlock(&c->lock);
	return r;
}

static void
reap(struct job *j)
{
	(void)pthread_mutex_lock(&j->c->lock);
	j->c->running = 0; /* the number may belong to another process from now on */
	(void)pthread_mutex_unlock(&j->c->lock);
	hr_fd_close(&j->watch);
	j->lost = hr_spawn_end(j->pid, &j->status) != 0 ? errno : 0;
}

static int
start(struct job *j, const char *command, struct hr_err *e)
{
	const char *const argv[] = {"bash", "-c", command, NULL};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	struct hr_spawn_fd fds[3];
	struct hr_spawn sp = {.path = "bash",
	    .argv = argv,
	    .fds = fds,
	    .nfds = 3,
	    .alone = true,
	    .setsid = true,
	    .umask = -1,
	    .dir = j->dir};
	int ends[2];
	size_t i;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return hr_err_sys(e, errno, "pipe");
	fds[0] = (struct hr_spawn_fd){0, 0};
	fds[1] = (struct hr_spawn_fd){ends[1], 1};
	fds[2] = (struct hr_spawn_fd){ends[1], 2};
	hr_strv_add_all(&env, j->c->h->environ);
	hr_strv_unset_env(&env, "SESSION_API_KEY");
	for (i = 0; i < j->c->env.n; i++)
		hr_strv_set_env(&env, j->c->env.v[i]);
	hr_strv_unset_env(&env, "PWD");
	sp.envp = env.v;
	/* makes an interrupt wait until the number is known: the command may run before hr_spawn()
	 * returns */
	(void)pthread_mutex_lock(&j->c->lock);
	j->pid = env.failed ? hr_err_nomem(e) : hr_spawn(&sp, e);
	j->c->running = j->pid > 0 ? j->pid : 0;
	(void)pthread_mutex_unlock(&j->c->lock);
	hr_fd_close(&ends[1]);
	j->out = ends[0];
	if (j->pid < 0)
		return -1;
	/* the number is stable because nothing else waits for this child */
	j->watch = hr_pidfd_open(j->pid);
	if (j->watch >= 0 && hr_fd_nonblock(j->out, true, e) == 0)
		return 0;
	if (j->watch < 0)
		(void)hr_err_sys(e, errno, "watch it");
	(void)kill(-j->pid, SIGKILL);
	reap(j);
	return -1;
}

/* Ends a late command: SIGTERM first, then SIGKILL. */
static int64_t
end_group(struct job *j)
{
	if (j->timed_out) {
		(void)kill(-j->pid, SIGKILL);
		return INT64_MAX;
	}
	j->timed_out = true;
	(void)kill(-j->pid, SIGTERM);
	return hr_now_ms() + KILL_AFTER_MS;
}

static int
left_ms(int64_t end)
{
	int64_t left = end - hr_now_ms();

	if (end == INT64_MAX)
		return -1;
	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* Follows the command until it has ended and its output is read. Returns -1 with errno set if the
 * output cannot be read. */
static int
follow(struct job *j, int64_t end)
{
	struct pollfd p[2];
	int n;

	while (j->watch >= 0 || j->out >= 0) {
		p[0] = (struct pollfd){.fd = j->out, .events = POLLIN};
		p[1] = (struct pollfd){.fd = j->watch, .events = POLLIN};
		n = poll(p, 2, left_ms(end));
		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0 && p[0].revents != 0 && take(j) != 0)
			return -1;
		if (n > 0 && p[1].revents != 0) {
			reap(j);
			end = hr_now_ms() + LINGER_MS;
		} else if (n == 0 && j->watch < 0) {
			hr_fd_close(&j->out); /* background processes hold the pipe open */
		} else if (n == 0) {
			end = end_group(j);
		}
	}
	return 0;
}

/* ---- the observation ---- */

static char *
observe(struct job *j, const char *command, double timeout_s, bool hidden, struct hr_err *err)
{
	int code = j->timed_out || j->unread || j->lost != 0 ? -1 : hr_exit_code(j->status);

	return hr_direct_observe(
	    &j->said, command, j->dir, code, j->timed_out ? timeout_s : -1, hidden, err);
}

char *
hr_direct_run(struct hr_direct *c, struct json_object *action, struct hr_err *err)
{
	struct json_object *args = hr_json_at(action, "args");
	struct job j = {.c = c, .out = -1, .watch = -1};
	const char *dir = hr_json_text_at(args, "cwd");
	const char *command;
	struct hr_err e = {0};
	struct stat st;
	double timeout_s;
	char *text;

	timeout_s = hr_json_number_at(action, "timeout");
	command = hr_json_text_or(args, "command", "");
	if (hr_direct_is_true(args, "is_input"))
		return hr_direct_error("AGENT_ERROR$BAD_ACTION", err, NO_INPUT, command);
	/* a command must not run in another directory instead */
	if (stat(c->workspace, &st) != 0 || !S_ISDIR(st.st_mode))
		return hr_direct_error("", err, "Error running command \"%s\": %s: %s", command,
		    c->workspace, strerror(ENOTDIR));
	/* the server allows another directory only in a shell of its own, too */
	j.dir =
	    hr_direct_is_true(args, "is_static") && dir != NULL && *dir == '/' ? dir : c->workspace;
	hr_direct_said_init(&j.said, c->h);
	if (start(&j, command, &e) != 0)
		text = hr_direct_error("", err, "Error running command \"%s\": %s", command, e.msg);
	else {
		if (follow(&j, hr_now_ms() + in_ms(timeout_s)) != 0) {
			(void)kill(-j.pid, SIGKILL);
			hr_buf_addf(&j.said.text, "\nError during execution: %s", strerror(errno));
			j.unread = true;
		}
		if (j.watch >= 0)
			reap(&j);
		if (j.lost != 0)
			hr_buf_addf(&j.said.text,
			    "\nError during execution: its exit code is unknown: %s",
			    strerror(j.lost));
		text = observe(&j, command, timeout_s, hr_direct_is_true(args, "hidden"), err);
	}
	hr_fd_close(&j.out);
	hr_direct_said_done(&j.said);
	return text;
}
