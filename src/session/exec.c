/* Runs commands beside the shell: processes of the shell's account without a terminal, whose two
 * streams are sent to the client separately. They have the shell's limits and none of its state. A
 * client that leaves ends its command, unless the command is kept: then handrail-bound minds it,
 * its streams are files, and neither the client nor this process is needed any more. */
#include "config.h"

#include "session/exec_work.h"
#include "session/keeper_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/flush.h"
#include "base/log.h"
#include "proto/frame.h"

#define EXECS_MAX 64
#define PIECE_MAX (64u << 10)
#define ROUNDS 8 /* reads per iteration */
#define LATE_S 3 /* seconds after its limit by which mind() has ended the command */

struct exec {
	TAILQ_ENTRY(exec) link;
	struct hr_keeper *keeper;
	int fd; /* connection of the client */
	struct hr_watch *gone, *writable, *late;
	pid_t pid; /* leader of a session; 0: it has ended, with exit_code */
	int exit_code;
	bool told; /* the result is in `out` */
	bool kept;
	int status; /* the status file of a kept command, which the minder locks; -1: none */
	struct exec_stream {
		int fd; /* -1: the stream is at its end */
		struct hr_watch *readable;
		/* bytes printed before the leader's end and not yet read, once it has ended */
		size_t left;
	} streams[2];
	struct hr_buf out;
	size_t sent;
};

static void pump(struct exec *e);

/* Kills the process, which shell_on_child() reaps. */
static void
exec_kill(const struct exec *e)
{
	if (e->pid <= 0)
		return;
	(void)kill(e->pid, SIGKILL); /* the child may still be in this session */
	hr_shellproc_kill(e->pid);
}

static void
exec_free(struct exec *e)
{
	size_t i;

	TAILQ_REMOVE(&e->keeper->execs, e, link);
	if (!e->kept) {
		e->keeper->nexecs--;
		exec_kill(e);
	}
	hr_fd_close(&e->status);
	for (i = 0; i < 2; i++) {
		hr_watch_free(e->streams[i].readable);
		hr_fd_close(&e->streams[i].fd);
	}
	hr_watch_free(e->gone);
	hr_watch_free(e->writable);
	hr_watch_free(e->late);
	hr_fd_close(&e->fd);
	hr_buf_done(&e->out);
	free(e);
}

void
exec_free_all(struct hr_keeper *k)
{
	struct exec *e;

	while ((e = TAILQ_FIRST(&k->execs)) != NULL)
		exec_free(e);
}

static void
on_event(void *arg)
{
	pump(arg);
}

/* Ends the command even if it has stopped the process that minds it. The minder of a kept command
 * that has ended may still mind background processes. */
static void
on_late(void *arg)
{
	const struct exec *e = arg;

	if (!e->kept || flock(e->status, LOCK_SH | LOCK_NB) != 0)
		exec_kill(e);
	else
		(void)flock(e->status, LOCK_UN);
}

static void
on_gone(void *arg)
{
	exec_free(arg);
}

/* Reads from both streams. Returns true if it read bytes that precede the result. */
static bool
read_streams(struct exec *e)
{
	struct hr_output_piece piece;
	HR_BUF(raw, PIECE_MAX);
	bool any = false;
	size_t i, most = PIECE_MAX - 1;
	ssize_t n;
	char *room = hr_buf_reserve(&raw, most);

	for (i = 0; i < 2 && room != NULL; i++) {
		if (e->streams[i].fd < 0)
			continue;
		if (e->pid == 0)
			most =
			    e->streams[i].left < PIECE_MAX - 1 ? e->streams[i].left : PIECE_MAX - 1;
		if (most == 0)
			continue;
		n = hr_fd_read(e->streams[i].fd, room, most);
		e->streams[i].left -= n > 0 && e->pid == 0 ? (size_t)n : 0;
		if (n > 0) {
			piece =
			    (struct hr_output_piece){.offset = i + 1, .bytes = {room, (size_t)n}};
			hr_frame_put_output(&e->out, &piece);
			any = true;
		} else if (n == 0 || errno != EAGAIN) {
			hr_watch_drop(&e->streams[i].readable);
			hr_fd_close(&e->streams[i].fd);
		}
	}
	if (room == NULL)
		e->out.fail = HR_E_NOMEM;
	return any;
}

/* Returns 1 if all is sent; 0: the client is slow; -1: the client has gone. */
static int
flush(struct exec *e)
{
	int r = hr_flush(e->fd, &e->out, &e->sent);

	if (r <= 0)
		return r;
	hr_buf_reset(&e->out);
	e->sent = 0;
	return 1;
}

/* Waits for the client, or for the command. Returns 0 or -1. */
static int
wait_for(struct exec *e, bool client)
{
	struct hr_loop *loop = e->keeper->loop;
	size_t i;

	if (!client) {
		hr_watch_drop(&e->writable);
	} else if (e->writable == NULL) {
		e->writable = hr_loop_writable(loop, e->fd, on_event, e, NULL);
		if (e->writable == NULL)
			return -1;
	}
	for (i = 0; i < 2; i++) {
		if (client) {
			hr_watch_drop(&e->streams[i].readable);
		} else if (e->streams[i].fd >= 0 && e->streams[i].readable == NULL) {
			e->streams[i].readable =
			    hr_loop_readable(loop, e->streams[i].fd, on_event, e, NULL);
			if (e->streams[i].readable == NULL)
				return -1;
		}
	}
	return 0;
}

static void
put_result(struct exec *e)
{
	const struct hr_run_result r = {.has_metadata = true, .exit_code = e->exit_code, .pid = -1};

	hr_frame_put_result(&e->out, &r);
	e->told = true;
}

/* Sends the output printed before the command's end, then its result; later output of background
 * processes is dropped. Leaves the loop to others if a command prints without end. */
static void
pump(struct exec *e)
{
	int r, rounds = ROUNDS;

	while ((r = flush(e)) > 0) {
		if (e->told || (e->pid > 0 && rounds-- == 0))
			break;
		if (!read_streams(e)) {
			if (e->pid > 0)
				break;
			put_result(e);
		}
		if (e->out.fail != HR_OK)
			r = -1;
		if (r < 0)
			break;
	}
	if (r < 0 || (r > 0 && e->told) || wait_for(e, r == 0) < 0)
		exec_free(e);
}

bool
exec_ended(struct hr_keeper *k, pid_t pid, int exit_code)
{
	struct exec *e;
	size_t i;
	int n;

	TAILQ_FOREACH(e, &k->execs, link)
	{
		if (e->pid != pid)
			continue;
		e->pid = 0;
		if (e->kept) {
			exec_free(e);
			return true;
		}
		e->exit_code = exit_code;
		for (i = 0; i < 2; i++) {
			if (e->streams[i].fd >= 0 && ioctl(e->streams[i].fd, FIONREAD, &n) == 0)
				e->streams[i].left = (size_t)n;
		}
		pump(e);
		return true;
	}
	return false;
}

/* Sends a result with the reason why nothing was run. It fits into the socket's buffer. */
static void
refuse(int fd, const char *why)
{
	struct hr_run_result r = {.is_error = true, .exit_code = -1, .pid = -1};
	HR_BUF(frame, 4096);

	hr_log(HR_LOG_ERROR, "a command beside the shell cannot be started: %s", why);
	r.content = hr_span_of(why);
	hr_frame_put_result(&frame, &r);
	if (frame.fail == HR_OK)
		(void)send(fd, frame.p, frame.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- the start ---- */

/* Opens the files of a kept command, and locks its directory and the status for the minder. Returns
 * 0, or -1 with errno. */
static int
open_kept(const char *path, struct exec_work *w)
{
	const int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC;

	w->kept = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->kept < 0 || flock(w->kept, LOCK_EX | LOCK_NB) < 0)
		return -1;
	w->fds[0] = openat(w->kept, "out", flags);
	w->fds[1] = openat(w->kept, "err", flags);
	w->status = openat(w->kept, "status", flags | O_APPEND);
	return w->fds[0] < 0 || w->fds[1] < 0 || w->status < 0
		   ? -1
		   : flock(w->status, LOCK_EX | LOCK_NB);
}

/* Starts a kept command once its directory has lost the ~, which the client removes otherwise.
 * Returns 0, or -1 with errno; then no process was started. */
static int
start_kept(struct exec *e, struct exec_work *w, const struct hr_exec_request *r)
{
	HR_FREE char *path = strndup(r->kept.p, r->kept.len);
	HR_FREE char *minder = strndup(r->minder.p, r->minder.len);
	HR_FREE char *fresh = NULL;

	w->minder = minder;
	if (path == NULL || minder == NULL || asprintf(&fresh, "%s~", path) < 0 ||
	    open_kept(fresh, w) < 0)
		return -1;
	/* not the locked description, which must close when the minder ends */
	e->status = openat(w->kept, "status", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (e->status < 0 || rename(fresh, path) < 0)
		return -1;
	e->pid = exec_fork(w);
	if (e->pid > 0)
		return 0;
	(void)rename(path, fresh);
	return -1;
}

/* Starts a command whose streams are sent to the client. Returns 0, or -1 with errno. */
static int
start_sent(struct exec *e, struct exec_work *w)
{
	struct hr_loop *loop = e->keeper->loop;
	int out[2] = {-1, -1}, err[2] = {-1, -1}, failed;
	struct hr_err why = {0};

	e->gone = hr_loop_readable(loop, e->fd, on_gone, e, &why);
	if (e->gone == NULL) {
		errno = why.sys != 0 ? why.sys : ENOMEM;
		return -1;
	}
	if (pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 &&
	    hr_fd_nonblock(out[0], true, NULL) == 0 && hr_fd_nonblock(err[0], true, NULL) == 0) {
		w->fds[0] = out[1];
		w->fds[1] = err[1];
		e->pid = exec_fork(w);
	}
	failed = errno;
	e->streams[0].fd = out[0];
	e->streams[1].fd = err[0];
	w->fds[0] = out[1];
	w->fds[1] = err[1];
	errno = failed;
	return e->pid > 0 ? 0 : -1;
}

/* Opens the command as standard input, from which bash reads it: an argument can have only 32
 * pages. Returns 0, or -1 with errno. */
static int
open_long(struct exec_work *w, struct hr_span command)
{
	w->input = memfd_create("command", MFD_CLOEXEC);
	if (w->input < 0 || hr_fd_write_full(w->input, command.p, command.len, NULL) < 0)
		return -1;
	w->argv[2] = "__handrail_command=$(</dev/fd/0) || exit 126; exec </dev/null; "
		     "eval \"unset __handrail_command; $__handrail_command\"$'\\n'";
	return 0;
}

/* Returns 0, or -1 with errno set; then no process was started. */
static int
exec_start(struct exec *e, const struct hr_exec_request *r)
{
	struct hr_keeper *k = e->keeper;
	HR_FREE char *text = strndup(r->command.p, r->command.len);
	HR_FREE char *dir = r->working_dir.len > 0 ? strndup(r->working_dir.p, r->working_dir.len)
						   : strdup(k->config->work_dir);
	struct exec_work w = {.keeper = k,
	    .argv = {k->config->bash, "-c", text, NULL},
	    .dir = dir,
	    .given = r->working_dir.len > 0,
	    .limit_s = r->limit_s,
	    .fds = {-1, -1},
	    .kept = -1,
	    .status = -1,
	    .input = -1};
	struct hr_err why = {0};
	int started = -1, failed;

	e->late = hr_loop_timer(k->loop, on_late, e, &why);
	if (text == NULL || dir == NULL || e->late == NULL ||
	    hr_watch_arm(e->late, (r->limit_s + LATE_S) * 1000, &why) < 0)
		errno = why.sys != 0 ? why.sys : ENOMEM;
	else if (r->command.len < (size_t)sysconf(_SC_PAGESIZE) * 32 ||
		 open_long(&w, r->command) == 0)
		started = r->kept.len > 0 ? start_kept(e, &w, r) : start_sent(e, &w);
	failed = errno;
	hr_fd_close(&w.fds[0]);
	hr_fd_close(&w.fds[1]);
	hr_fd_close(&w.kept);
	hr_fd_close(&w.status);
	hr_fd_close(&w.input);
	errno = failed;
	return started;
}

/* Reports to the client that its command runs, and leaves the client. */
static void
report_start(struct exec *e)
{
	const struct hr_run_result r = {.has_metadata = true, .pid = -1};
	HR_BUF(frame, 4096);

	hr_frame_put_result(&frame, &r);
	if (frame.fail == HR_OK)
		(void)send(e->fd, frame.p, frame.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	hr_fd_close(&e->fd);
}

void
exec_add(struct hr_keeper *k, int fd, const struct hr_exec_request *r)
{
	/* the client limits the number of kept commands */
	bool room = r->kept.len > 0 || k->nexecs < EXECS_MAX;
	struct exec *e = room ? calloc(1, sizeof(*e)) : NULL;

	if (e == NULL) {
		refuse(fd, room ? "no memory is left" : "too many of them run: try again later");
		hr_fd_close(&fd);
		return;
	}
	e->keeper = k;
	e->fd = fd;
	e->kept = r->kept.len > 0;
	hr_buf_init(&e->out, HR_FRAME_MAX);
	e->streams[0].fd = e->streams[1].fd = e->status = -1;
	TAILQ_INSERT_TAIL(&k->execs, e, link);
	k->nexecs += !e->kept;
	if (exec_start(e, r) < 0) {
		refuse(fd, strerror(errno));
		exec_free(e);
		return;
	}
	if (e->kept)
		report_start(e);
	else
		pump(e);
}
