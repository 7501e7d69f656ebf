/* Waits for requests. libfcgi's accept() does not know the channel and cannot be stopped without a
 * race, so the worker waits here, and accept() finds a connection or returns at once: the socket is
 * non-blocking, and the kernel wakes one worker per request. */
#include "config.h"

#include "worker/request/fcgi.h"

#include <errno.h>
#include <fcntl.h>
#include <fcgiapp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "proto/channel.h"
#include "worker/hub.h"
#include "worker/metrics.h"
#include "worker/once.h"
#include "worker/repeat.h"
#include "worker/request/reply.h"
#include "worker/worker.h"

#define LISTEN_FD 0
#define ERROR_PAUSE_MS 100  /* ms to pause after an accept() error of this process */
#define AT_ONCE (64u << 10) /* bytes that the connection buffers even if nginx does not read */

#define DRAIN_MAX 256 /* maximum of requests: about the length of a socket's queue */

enum wait_result {
	WAIT_REQUEST,
	WAIT_STOP,
	WAIT_ORPHAN, /* the supervisor has exited */
};

static void
stop_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGTERM);
	(void)sigaddset(set, SIGUSR1);
}

int
hr_fcgi_setup(struct hr_err *err)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t set;

	/* A connection that sends nothing blocks a worker for this long (libfcgi's default is 2
	 * s). */
	if (setenv("LIBFCGI_IS_AF_UNIX_KEEPER_POLL_TIMEOUT", "100", 1) < 0)
		return hr_err_sys(err, errno, "setenv");
	if (FCGX_Init() != 0)
		return hr_err_set(err, HR_E_SYS, "libfcgi cannot be initialised");
	/* The signals stay blocked and are read from a descriptor: they interrupt nothing, and even
	 * a worker that always has a request waiting notices them. */
	stop_signals(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0)
		return hr_err_sys(err, errno, "signals");
	return 0;
}

static int
epoll_add(int ep, int fd, uint32_t events, struct hr_err *err)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) < 0)
		return hr_err_sys(err, errno, "epoll_ctl for descriptor %d", fd);
	return 0;
}

/* The descriptors for which a worker waits. */
struct waiting {
	int ep;
	int signals;
	int streams; /* the hub's descriptor; -1: the worker has no hub */
};

static void
wait_close(struct waiting *wt)
{
	hr_fd_close(&wt->ep);
	hr_fd_close(&wt->signals);
}

static int
wait_open(struct waiting *wt, int channel, int streams, struct hr_err *err)
{
	sigset_t set;

	wt->ep = wt->signals = -1;
	wt->streams = streams;
	if (hr_fd_nonblock(LISTEN_FD, true, err) < 0)
		return -1;
	stop_signals(&set);
	wt->ep = epoll_create1(EPOLL_CLOEXEC);
	wt->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (wt->ep < 0 || wt->signals < 0)
		(void)hr_err_sys(err, errno, "cannot wait for requests");
	else if (epoll_add(wt->ep, LISTEN_FD, EPOLLIN | EPOLLEXCLUSIVE, err) == 0 &&
		 epoll_add(wt->ep, channel, EPOLLRDHUP, err) == 0 &&
		 epoll_add(wt->ep, wt->signals, EPOLLIN, err) == 0 &&
		 (streams < 0 || epoll_add(wt->ep, streams, EPOLLIN, err) == 0))
		return 0;
	wait_close(wt);
	return -1;
}

/* Waits; *ret_connection is set if a request waits, *ret_streams if the hub has work. */
static enum wait_result
wait_next(const struct waiting *wt, bool *ret_connection, bool *ret_streams)
{
	enum wait_result result = WAIT_REQUEST;
	struct epoll_event e[4];
	bool streams = false;
	int n, i;

	*ret_connection = false;
	do
		n = epoll_wait(wt->ep, e, 4, -1);
	while (n < 0); /* the error can only be EINTR: the descriptors are valid */
	for (i = 0; i < n; i++) {
		if (e[i].data.fd == wt->signals)
			result = WAIT_STOP;
		else if (e[i].data.fd == LISTEN_FD)
			*ret_connection = true;
		else if (e[i].data.fd == wt->streams)
			streams = true;
		else if (result != WAIT_STOP)
			result = WAIT_ORPHAN;
	}
	*ret_streams = streams;
	return result;
}

/* Pauses after the process ran out of descriptors or memory: an immediate retry would only spin. */
static void
pause_after_error(int channel)
{
	struct pollfd p = {.fd = channel, .events = 0};

	(void)poll(&p, 1, ERROR_PAUSE_MS); /* wait_next() sees a hang-up, too */
}

/* Sets the stage before it reads the pool's size: when another worker ends, the supervisor stores
 * the size and then reads the stages, so one of the two notices that no worker is free. */
static void
count_busy(struct hr_worker *w)
{
	uint32_t pool = atomic_load(&w->slot->pool), busy = 0;

	if (pool < HR_SCOREBOARD_POOLS)
		busy = atomic_fetch_add(&w->board->pools[pool].busy, 1) + 1;
	hr_worker_stage(w, HR_STAGE_READING);
	if (busy > 0 && busy >= atomic_load(&w->board->pools[pool].size))
		hr_channel_tell(w->channel, HR_CHANNEL_FULL);
}

static void
count_idle(struct hr_worker *w)
{
	uint32_t pool = atomic_load(&w->slot->pool);

	atomic_fetch_add(&w->slot->requests, 1);
	hr_worker_stage(
	    w, w->hub != NULL && hr_hub_count(w->hub) > 0 ? HR_STAGE_RUNNING : HR_STAGE_IDLE);
	if (pool < HR_SCOREBOARD_POOLS)
		atomic_fetch_sub(&w->board->pools[pool].busy, 1);
}

/* Holds the stream of a page. A worker with a stream counts as busy, so that the supervisor does
 * not retire it. */
static void
hold(struct hr_worker *w, FCGX_Request *fcgi, struct hr_answer *answer)
{
	bool first = hr_hub_count(w->hub) == 1;
	int request_id = fcgi->requestId;

	hr_hub_connect(w->hub, hr_reply_hold(fcgi, answer), request_id);
	hr_answer_reset(answer);
	if (!first || hr_hub_count(w->hub) == 0)
		count_idle(w);
	if (hr_hub_count(w->hub) > 0)
		hr_worker_stage(w, HR_STAGE_RUNNING);
}

static void
turn_streams(struct hr_worker *w)
{
	bool some = hr_hub_count(w->hub) > 0;

	hr_hub_turn(w->hub);
	if (some && hr_hub_count(w->hub) == 0)
		count_idle(w);
}

static void
serve(struct hr_worker *w, FCGX_Request *fcgi, struct hr_answer *answer)
{
	struct hr_request r;
	bool at_once, whole, sent;
	int64_t began;

	/* libfcgi leaves the flag out: a document converter would inherit the client's
	 * connection */
	(void)fcntl(fcgi->ipcFd, F_SETFD, FD_CLOEXEC); /* cannot fail for an open descriptor */
	count_busy(w);
	hr_reply_request(fcgi, &r);
	began = hr_now_ns();
	hr_handle(w, &r, answer);
	hr_metrics_count(w->board, answer, hr_now_ns() - began);
	hr_worker_stage(w, HR_STAGE_WRITING);
	hr_reply_drain(fcgi);
	if (answer->held) {
		hold(w, fcgi, answer);
		return;
	}
	/* The client's next request may reach another worker before this one is idle again, and a
	 * pool must not grow for a single client. */
	at_once = answer->stream.send == NULL && answer->body.len <= AT_ONCE;
	if (at_once)
		count_idle(w);
	hr_repeat_answering(w);
	whole = hr_reply_send(fcgi, answer, &sent);
	if (whole && answer->status >= 500)
		hr_log(HR_LOG_INFO, "%s %s %s: %d", r.request_id, r.method, hr_buf_str(r.path),
		    answer->status);
	/* The whole request was read, so a plain close loses nothing. Without this call libfcgi
	 * shuts down its half and waits until nginx has closed, which costs each request one more
	 * switch between both processes. */
	if (whole)
		(void)FCGX_Detach(fcgi);
	FCGX_Finish_r(fcgi);
	hr_once_sent(w, sent);
	hr_answer_reset(answer); /* closes its open files now, not at the next request */
	if (!at_once)
		count_idle(w);
}

/* Drains the queue after the supervisor's end: only workers that are about to end have the socket
 * open, and when the last one exits, the kernel drops all connections in the queue. */
static void
drain(struct hr_worker *w, FCGX_Request *fcgi, struct hr_answer *answer)
{
	unsigned turns = DRAIN_MAX;
	int r = 0;

	while (turns-- > 0 && r != -EAGAIN) {
		r = FCGX_Accept_r(fcgi);
		if (r == 0)
			serve(w, fcgi, answer);
	}
}

/* Takes one last request: the kernel may have woken only this worker for it, and no other worker
 * would look for it before the next request comes. */
static void
serve_last(struct hr_worker *w, FCGX_Request *fcgi, struct hr_answer *answer)
{
	if (FCGX_Accept_r(fcgi) == 0)
		serve(w, fcgi, answer);
}

int
hr_fcgi_loop(struct hr_worker *w, unsigned long max_requests, struct hr_err *err)
{
	enum wait_result next = WAIT_REQUEST;
	unsigned long served = 0;
	struct hr_answer answer;
	FCGX_Request fcgi;
	struct waiting wt;
	int r, sys, failing = 0;
	bool connection = false, streams = false;

	if (FCGX_InitRequest(&fcgi, LISTEN_FD, 0) != 0)
		return hr_err_set(err, HR_E_SYS, "libfcgi refuses the listening socket");
	if (wait_open(&wt, w->channel, w->hub != NULL ? hr_hub_fd(w->hub) : -1, err) < 0)
		return -1;
	hr_answer_init(&answer);
	hr_worker_stage(w, HR_STAGE_IDLE);
	while ((max_requests == 0 || served < max_requests) &&
	       (next = wait_next(&wt, &connection, &streams)) == WAIT_REQUEST) {
		if (streams)
			turn_streams(w);
		if (!connection)
			continue;
		errno = 0;
		r = FCGX_Accept_r(&fcgi);
		if (r == 0) {
			serve(w, &fcgi, &answer);
			served++;
			failing = 0;
			continue;
		}
		sys = r > -9999 ? -r : errno; /* accept returns -errno, or -9999 without an errno */
		if (sys == EAGAIN || sys == EINTR || sys == 0)
			continue; /* another worker took the connection, or the peer left */
		if (sys != failing)
			hr_log(HR_LOG_ERROR, "cannot accept a connection: %s", strerror(sys));
		failing = sys; /* log one line per series of equal errors */
		pause_after_error(w->channel);
	}
	if (next == WAIT_ORPHAN)
		drain(w, &fcgi, &answer);
	else if (next == WAIT_STOP && connection)
		serve_last(w, &fcgi, &answer);
	FCGX_Free(&fcgi, 1);
	hr_answer_done(&answer);
	wait_close(&wt);
	return 0;
}
