/* Waiting for requests. libfcgi's accept() knows neither the channel nor a race-free way to be
 * stopped, so the waiting is done here, and accept() finds a connection or returns at once: the
 * socket is non-blocking and every worker is woken exclusively. */
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
#define ERROR_PAUSE_MS 100  /* after an accept() error that is not a matter of this connection */
#define AT_ONCE (64u << 10) /* bytes that the connection takes, whether nginx reads or not */

#define DRAIN_MAX 256 /* turns: as much as may wait in the queue of a listening socket */

enum wait_result {
	WAIT_REQUEST,
	WAIT_STOP,
	WAIT_ORPHAN, /* the supervisor is gone */
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

	/* A connection that sends nothing holds a worker for this long (2 s if not set). */
	if (setenv("LIBFCGI_IS_AF_UNIX_KEEPER_POLL_TIMEOUT", "100", 1) < 0)
		return hr_err_sys(err, errno, "setenv");
	if (FCGX_Init() != 0)
		return hr_err_set(err, HR_E_SYS, "libfcgi cannot be initialised");
	/* Blocked for good, and looked at by descriptor: they interrupt nothing, and a worker that
	 * always has a request waiting sees them all the same. */
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

/* What a worker waits for. */
struct waiting {
	int ep;
	int signals;
	int streams; /* the hub's, -1: it holds none */
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

/* *ret_connection: a request waits, too; *ret_streams: the hub has something to do. */
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
	while (n < 0); /* only EINTR: the descriptors are ours */
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

/* Descriptors or memory ran out: trying again at once would only spin. */
static void
pause_after_error(int channel)
{
	struct pollfd p = {.fd = channel, .events = 0};

	(void)poll(&p, 1, ERROR_PAUSE_MS); /* a hang-up is seen by wait_next(), too */
}

/* The stage comes before the look at the size: when another worker ends, the supervisor stores the
 * size and then looks at the stages, so that one of the two sees that nobody is free. */
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

/* While there is a stream the worker counts as busy: it is not retired. */
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

	/* libfcgi does not: a converter of documents would have the client's connection */
	(void)fcntl(fcgi->ipcFd, F_SETFD, FD_CLOEXEC); /* fails for no open descriptor */
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
	/* The client's next request may be at the next worker before we are back: a pool must not
	 * grow for one client. */
	at_once = answer->stream.send == NULL && answer->body.len <= AT_ONCE;
	if (at_once)
		count_idle(w);
	hr_repeat_answering(w);
	whole = hr_reply_send(fcgi, answer, &sent);
	if (whole && answer->status >= 500)
		hr_log(HR_LOG_INFO, "%s %s %s: %d", r.request_id, r.method, hr_buf_str(r.path),
		    answer->status);
	/* All was read, so a plain close loses nothing; without this libfcgi shuts down its half
	 * and waits until nginx has closed, another turn of both processes for every request. */
	if (whole)
		(void)FCGX_Detach(fcgi);
	FCGX_Finish_r(fcgi);
	hr_once_sent(w, sent);
	hr_answer_reset(answer); /* what it holds open is closed now, not at the next request */
	if (!at_once)
		count_idle(w);
}

/* The supervisor is gone, and only workers that end, too, have the socket open: with the last of
 * them all that waits in its queue is cut off. */
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

/* The kernel may have woken this worker alone for it: nobody else would look for it before another
 * one came. */
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
		sys = r > -9999 ? -r : errno; /* it returns -errno, or -9999 for none */
		if (sys == EAGAIN || sys == EINTR || sys == 0)
			continue; /* another worker had it, or the peer went away */
		if (sys != failing)
			hr_log(HR_LOG_ERROR, "accept: %s", strerror(sys));
		failing = sys; /* one line for as long as it lasts */
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
