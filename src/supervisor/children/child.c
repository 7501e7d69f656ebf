/* Manages children. Invariant: a child is in the list exactly while its pid is not 0. */
#include "config.h"

#include "supervisor/children/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"

#define LOG_LINE_MAX 4096 /* maximum bytes; longer lines are split */
#define READS_A_TURN 16   /* maximum per event: one child's flood must not delay the others */
#define LAST_READS 64
/* score of the supervisor, which nothing restarts; only root may lower a score */
#define OOM_SELF (-500)
#define FDS_MAX 8
/* maximum bytes of a list in /proc, which needs up to 8 per child */
#define CHILDREN_MAX (1u << 20)
#define LONG_LIFE_MS 1000
#define BACKOFF_FIRST_MS 50
#define BACKOFF_LAST_MS 10000
#define BUDGET 20
#define BUDGET_REFILL_MS 500
#define BUDGET_DELAY_MS 500

static int
oom_score_read(void)
{
	HR_BUF(b, 64);
	int score = 0;

	if (hr_path_read("/proc/self/oom_score_adj", &b, NULL) == 0)
		score = (int)strtol(hr_buf_str(&b), NULL, 10);
	return score;
}

static void
child_log_line(struct hr_child *c)
{
	char *line = c->log_line.p;
	size_t len = c->log_line.len, skip = 0;
	enum hr_log_level level;

	if (len == 0)
		return;
	if (c->on_line != NULL)
		level = (enum hr_log_level)c->on_line(c->arg, line, len, &skip);
	else
		level = hr_log_child_level(line, len, &skip);
	if (len > skip)
		hr_log_from(c->name, c->pid, level, line + skip, len - skip);
}

static void
child_log_bytes(struct hr_child *c, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] != '\n')
			hr_buf_addc(&c->log_line, p[i]);
		if (p[i] == '\n' || c->log_line.len == LOG_LINE_MAX) {
			child_log_line(c);
			hr_buf_reset(&c->log_line);
		}
	}
}

static void
child_log_close(struct hr_child *c)
{
	hr_watch_drop(&c->log_watch);
	hr_fd_close(&c->log_fd);
	child_log_line(c);
	hr_buf_done(&c->log_line);
}

/* Returns true while there may be more output. */
static bool
child_log_read(struct hr_child *c)
{
	char chunk[4096];
	ssize_t n = hr_fd_read(c->log_fd, chunk, sizeof(chunk));

	if (n > 0)
		child_log_bytes(c, chunk, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		child_log_close(c);
	return n > 0;
}

static void
child_log_ready(void *arg)
{
	struct hr_child *c = arg;
	int i;

	for (i = 0; i < READS_A_TURN && child_log_read(c); i++)
		;
}

/* Sets the score after exec: the program is then dumpable, so no privilege is needed, unless it has
 * changed its user or hidden itself; in that case the score stays. */
static void
oom_score_write(pid_t pid, int score)
{
	char path[48], text[16];
	int n;
	HR_CLOSE int fd = -1;

	if (score > 1000)
		score = 1000;
	if (score < -1000)
		score = -1000;
	(void)snprintf(path, sizeof(path), "/proc/%ld/oom_score_adj", (long)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = snprintf(text, sizeof(text), "%d", score);
	/* a failure is ignored: the score then stays */
	(void)hr_fd_write_full(fd, text, (size_t)n, NULL);
}

void
hr_children_init(struct hr_children *kids, struct hr_loop *loop)
{
	kids->loop = loop;
	kids->oom_base = oom_score_read();
	TAILQ_INIT(&kids->list);
	hr_children_protect(kids, true);
}

void
hr_children_protect(const struct hr_children *kids, bool on)
{
	oom_score_write(getpid(), kids->oom_base + (on ? OOM_SELF : 0));
}

int
hr_child_start(struct hr_child *c, const struct hr_spawn *what, int oom, struct hr_err *err)
{
	struct hr_spawn s = *what;
	struct hr_spawn_fd fds[FDS_MAX];
	int p[2];

	hr_assert(c->pid == 0 && what->nfds < FDS_MAX);
	if (pipe2(p, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "%s: pipe", c->name);
	if (what->nfds > 0)
		memcpy(fds, what->fds, what->nfds * sizeof(fds[0]));
	fds[what->nfds] = (struct hr_spawn_fd){p[1], STDERR_FILENO};
	s.fds = fds;
	s.nfds = what->nfds + 1;
	c->log_fd = p[0];
	hr_buf_init(&c->log_line, LOG_LINE_MAX);
	if (hr_fd_nonblock(p[0], true, err) == 0)
		c->log_watch = hr_loop_readable(c->kids->loop, p[0], child_log_ready, c, err);
	if (c->log_watch != NULL) {
		pid_t pid = hr_spawn(&s, err);

		c->pid = pid > 0 ? pid : 0;
	}
	hr_fd_close(&p[1]);
	if (c->pid == 0) {
		child_log_close(c);
		return hr_err_prefix(err, "%s", c->name);
	}
	oom_score_write(c->pid, c->kids->oom_base + oom);
	c->since_ms = hr_now_ms();
	TAILQ_INSERT_TAIL(&c->kids->list, c, entry);
	hr_log(HR_LOG_DEBUG, "%s started as process %ld", c->name, (long)c->pid);
	return 0;
}

int
hr_child_adopt(struct hr_child *c, pid_t pid, int log_fd, struct hr_err *err)
{
	siginfo_t si;

	hr_assert(c->pid == 0);
	/* the number of a child that was not waited for is not reused */
	if (pid <= 1 || waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) != 0)
		return hr_err_set(err, HR_E_NOTFOUND, "%s: process %ld is not a child of handraild",
		    c->name, (long)pid);
	if (log_fd >= 0) {
		c->log_watch = hr_loop_readable(c->kids->loop, log_fd, child_log_ready, c, err);
		if (c->log_watch == NULL)
			return -1;
	}
	hr_buf_init(&c->log_line, LOG_LINE_MAX);
	c->log_fd = log_fd;
	c->pid = pid;
	c->since_ms = hr_now_ms();
	TAILQ_INSERT_TAIL(&c->kids->list, c, entry);
	return 0;
}

void
hr_child_signal(const struct hr_child *c, int sig)
{
	if (c->pid > 1)
		/* the process is at worst a zombie that is about to be reaped */
		(void)kill(c->pid, sig);
}

void
hr_child_signal_group(const struct hr_child *c, int sig)
{
	if (c->pid > 1)
		(void)kill(-c->pid, sig);
}

static void
child_ended(struct hr_child *c, const siginfo_t *si)
{
	struct hr_exit how = {.pid = c->pid,
	    .killed = si->si_code != CLD_EXITED,
	    .code = si->si_status,
	    .age_ms = hr_now_ms() - c->since_ms};
	int reads = 0;

	/* descendants may hold the pipe and keep writing: read the child's output, do not wait for
	 * theirs */
	while (c->log_fd >= 0 && reads++ < LAST_READS && child_log_read(c))
		;
	if (c->log_fd >= 0)
		child_log_close(c);
	TAILQ_REMOVE(&c->kids->list, c, entry);
	c->pid = 0;
	c->on_exit(c->arg, &how);
	(void)hr_spawn_end(how.pid, NULL);
}

void
hr_children_reap(struct hr_children *kids)
{
	for (;;) {
		siginfo_t si = {0};
		struct hr_child *c;

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == EINTR)
			continue;
		if (si.si_pid == 0)
			return;
		TAILQ_FOREACH(c, &kids->list, entry)
		{
			if (c->pid == si.si_pid)
				break;
		}
		if (c != NULL)
			child_ended(c, &si);
		else /* this was an adopted orphan */
			(void)waitpid(si.si_pid, NULL, 0);
	}
}

static pid_t
parent_of(pid_t pid)
{
	char stat[HR_PID_STAT];

	return (pid_t)hr_pid_field(hr_pid_stat(pid, stat), HR_PID_PARENT);
}

static bool
signal_one(pid_t pid, int sig)
{
	if (pid <= 1)
		return false;
	(void)kill(pid, sig); /* EPERM: the process is a setuid program of another user */
	return true;
}

/* Uses the kernel's list of children if available: no child leaves it before it is waited for. */
static int
signal_known(int sig, unsigned *ret_n)
{
	HR_BUF(b, CHILDREN_MAX);
	const char *at;
	char *end;
	unsigned n = 0;
	long pid;
	int r;

	r = hr_path_read("/proc/thread-self/children", &b, NULL);
	if (r == 0) {
		for (at = hr_buf_str(&b); (pid = strtol(at, &end, 10)) > 0; at = end)
			n += signal_one((pid_t)pid, sig);
	}
	if (r == 0)
		*ret_n = n;
	return r;
}

unsigned
hr_children_signal_all(int sig)
{
	pid_t self = getpid(), pid;
	unsigned n = 0;
	HR_CLOSEDIR DIR *d = NULL;

	if (signal_known(sig, &n) == 0)
		return n;
	d = opendir("/proc");
	while ((pid = hr_pid_next(d)) > 0)
		if (parent_of(pid) == self)
			n += signal_one(pid, sig);
	return n;
}

const char *
hr_exit_text(const struct hr_exit *how)
{
	return hr_exit_words(how->killed ? W_EXITCODE(0, how->code) : W_EXITCODE(how->code, 0));
}

void
hr_child_tell_killed(const char *name, const struct hr_exit *how)
{
	if (how->killed)
		hr_log(HR_LOG_INFO, "%s ended by %s", name, hr_exit_text(how));
}

static int64_t
backoff_budget(struct hr_backoff *b, int64_t now_ms)
{
	int64_t back = (now_ms - b->at_ms) / BUDGET_REFILL_MS;

	b->spent = back >= (int64_t)b->spent ? 0 : b->spent - (unsigned)back;
	b->at_ms = now_ms;
	if (b->spent >= BUDGET)
		return BUDGET_DELAY_MS;
	b->spent++;
	return 0;
}

int64_t
hr_backoff_next(struct hr_backoff *b, bool worked, int64_t age_ms, int64_t now_ms)
{
	int64_t delay = BACKOFF_FIRST_MS;
	unsigned i;

	if (worked || age_ms >= LONG_LIFE_MS)
		b->short_lives = 0;
	if (age_ms >= LONG_LIFE_MS)
		return 0;
	if (worked)
		return backoff_budget(b, now_ms);
	if (b->short_lives < 1000)
		b->short_lives++;
	if (b->short_lives == 1)
		return 0;
	for (i = 2; i < b->short_lives && delay < BACKOFF_LAST_MS; i++)
		delay *= 2;
	return delay < BACKOFF_LAST_MS ? delay : BACKOFF_LAST_MS;
}
