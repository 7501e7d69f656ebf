#include "config.h"

#include "egress/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process/handover.h"
#include "base/process/pid.h"
#include "egress/broker.h"
#include "egress/listen.h"
#include "egress/policy.h"

#define CONTROL "control"
#define HANDOVER_MS 2000
#define AGAIN_MS 1000 /* time between two starts of a broker that ends at once */

struct keeper {
	struct egress_held *h;
	const char *dir;
	char program[PATH_MAX];
	int signals;
	pid_t broker; /* -1: none */
	int64_t started;
	bool retiring; /* the upgrade waits for the broker */
};

extern char **environ;

/* ---- descriptors ---- */

static bool
is_there(const struct egress_held *h, const struct egress_place *p)
{
	struct sockaddr_in a;
	size_t i;

	for (i = 0; i < h->n; i++) {
		a = egress_local(h->listeners[i]);
		if (ntohs(a.sin_port) == p->port && egress_is_tcp(h->listeners[i]) == !p->udp)
			return true;
	}
	return false;
}

/* Makes those listeners that are not there yet. */
static int
listen_all(struct egress_held *h, const struct egress_policy *p, struct hr_err *err)
{
	struct egress_place v[EGRESS_PORTS_MAX + 8] = {{.port = EGRESS_PORT_DNS, .udp = true},
	    {.port = EGRESS_PORT_DNS}, {.port = EGRESS_PORT_PROXY}, {.port = EGRESS_PORT_SOCKS}};
	int ports[EGRESS_PORTS_MAX + 2];
	size_t n = 4, i, missing = 0, nports = egress_policy_ports(p, ports);

	for (i = 0; i < nports; i++)
		if (ports[i] != EGRESS_PORT_PROXY && ports[i] != EGRESS_PORT_SOCKS)
			v[n++].port = ports[i];
	for (i = 0; i < n; i++)
		if (!is_there(h, &v[i]))
			v[missing++] = v[i];
	if (h->n + missing > EGRESS_LISTENERS_MAX)
		return hr_err_set(err, HR_E_INVAL, "the rules name too many ports");
	if (missing > 0 && egress_listen(h->box, v, missing, h->listeners + h->n, err) < 0)
		return -1;
	h->n += missing;
	return 0;
}

static int
listen_control(struct egress_held *h, struct hr_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = CONTROL};

	(void)unlink(CONTROL);
	h->control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->control < 0 || bind(h->control, (struct sockaddr *)&a, sizeof(a)) != 0 ||
	    chmod(CONTROL, 0600) != 0 || listen(h->control, SOMAXCONN) != 0)
		return hr_err_sys(err, errno, "the control socket");
	return 0;
}

/* Asks a broker that an ended keeper has left for its listeners. No broker is no error. */
static void
take_over(struct egress_held *h)
{
	static const char ask[] = "{\"op\":\"handover\"}\n";
	const struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = CONTROL};
	const struct timeval patience = {.tv_sec = HANDOVER_MS / 1000};
	HR_CLOSE int s = hr_fd_connect(&a, HANDOVER_MS / 1000);
	char text[512];
	int fd;

	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
	    hr_fd_send(s, ask, sizeof(ask) - 1, -1, NULL) < 0)
		return;
	while (h->n < EGRESS_LISTENERS_MAX && hr_fd_recv(s, text, sizeof(text), &fd, NULL) > 0)
		if (fd >= 0)
			h->listeners[h->n++] = fd;
}

int
egress_keeper_open(struct egress_held *h, const struct egress_policy *p, struct hr_err *err)
{
	take_over(h);
	return listen_all(h, p, err) < 0 ? -1 : listen_control(h, err);
}

int
egress_keeper_inherit(struct egress_held *h, struct hr_err *err)
{
	struct hr_handover from = {0};
	const char *name;
	size_t at = 0;

	if (hr_handover_read(&from, err) < 0)
		return -1;
	h->box = hr_handover_take(&from, "box");
	h->control = hr_handover_take(&from, "control");
	while (h->n < EGRESS_LISTENERS_MAX &&
	       (name = hr_handover_next(&from, &at, "listener/")) != NULL) {
		h->listeners[h->n] = hr_handover_take(&from, name);
		if (h->listeners[h->n] >= 0)
			h->n++;
	}
	hr_handover_done(&from);
	return h->box >= 0 && h->control >= 0
		   ? 0
		   : hr_err_set(
			 err, HR_E_INVAL, "the process before the upgrade has left no sockets");
}

/* ---- the broker ---- */

static int
start_broker(struct keeper *k, struct hr_err *err)
{
	struct hr_err e = {0};
	sigset_t none;
	int pair[2];

	k->started = hr_now_ms();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return hr_err_sys(err, errno, "a socket pair");
	k->broker = fork();
	if (k->broker == 0) {
		hr_fd_close(&pair[0]);
		hr_fd_close(&k->signals);
		(void)signal(SIGHUP, SIG_IGN); /* the signal is for the keeper alone */
		(void)signal(SIGPIPE, SIG_IGN);
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		k->h->peer = pair[1];
		_exit(egress_broker_run(k->h, &e) < 0);
	}
	hr_fd_close(&pair[1]);
	k->h->peer = pair[0];
	if (k->broker < 0)
		return hr_err_sys(err, errno, "fork");
	return 0;
}

static void
answer_listen(struct keeper *k, int port)
{
	const struct egress_place p = {.port = port};
	struct egress_message m = {.op = EGRESS_LISTEN, .port = port};
	struct egress_held *h = k->h;
	struct hr_err e = {0};
	int fd = -1;

	if (h->n == EGRESS_LISTENERS_MAX)
		(void)hr_err_set(&e, HR_E_INVAL, "the rules name too many ports");
	else if (egress_listen(h->box, &p, 1, &fd, &e) == 0)
		h->listeners[h->n++] = fd;
	(void)snprintf(m.text, sizeof(m.text), "%.255s", e.msg);
	(void)hr_fd_send(h->peer, &m, sizeof(m), fd, NULL);
}

static void
unlisten(struct egress_held *h, int port)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		if (ntohs(egress_local(h->listeners[i]).sin_port) == port) {
			hr_fd_close(&h->listeners[i]);
			h->listeners[i--] = h->listeners[--h->n];
		}
}

/* Continues as the program that is installed now, with the same descriptors. Returns only if that
 * fails. */
static void
upgrade(struct keeper *k)
{
	const char *const argv[] = {"handrail-egress", EGRESS_UPGRADED, k->dir, NULL};
	struct hr_handover v = {0};
	size_t i;
	int r = hr_handover_add(&v, k->h->box, NULL, "box") |
		hr_handover_add(&v, k->h->control, NULL, "control");

	for (i = 0; i < k->h->n; i++)
		r |= hr_handover_add(&v, k->h->listeners[i], NULL, "listener/%zu", i);
	if (r == 0 && hr_handover_show(&v, NULL) == 0)
		(void)execve(k->program, (char *const *)argv, environ);
	hr_handover_hide();
	hr_handover_done(&v);
}

/* Starts the next broker after the end of one, or beside one that has retired. */
static void
replace(struct keeper *k)
{
	hr_fd_close(&k->h->peer);
	k->broker = -1;
	if (k->retiring) {
		k->retiring = false;
		k->started = 0;
		upgrade(k);
	}
}

static void
on_message(struct keeper *k)
{
	struct egress_message m;
	int fd;
	ssize_t n = hr_fd_recv(k->h->peer, &m, sizeof(m), &fd, NULL);

	hr_fd_close(&fd);
	if (n != (ssize_t)sizeof(m))
		hr_fd_close(&k->h->peer); /* the signal follows */
	else if (m.op == EGRESS_LISTEN)
		answer_listen(k, m.port);
	else if (m.op == EGRESS_UNLISTEN)
		unlisten(k->h, m.port);
	else if (m.op == EGRESS_RETIRE)
		replace(k);
}

/* ---- the process ---- */

/* Ends all processes of the session, which are brokers and their nginx, and this one. */
static void __attribute__((noreturn)) end_all(void)
{
	(void)unlink(CONTROL);
	(void)kill(0, SIGKILL);
	_exit(0);
}

static void
on_signal(struct keeper *k)
{
	static const struct egress_message retire = {.op = EGRESS_RETIRE};
	struct signalfd_siginfo s;
	pid_t pid;

	if (hr_fd_read(k->signals, &s, sizeof(s)) != (ssize_t)sizeof(s))
		return;
	if (s.ssi_signo == SIGTERM)
		end_all();
	if (s.ssi_signo == SIGHUP && k->retiring) {
		(void)kill(k->broker, SIGKILL); /* the broker has not answered the first one */
	} else if (s.ssi_signo == SIGHUP) {
		k->retiring = true;
		if (k->broker < 0)
			replace(k);
		else
			(void)hr_fd_send(k->h->peer, &retire, sizeof(retire), -1, NULL);
	}
	while (s.ssi_signo == SIGCHLD && (pid = waitpid(-1, NULL, WNOHANG)) > 0)
		if (pid == k->broker)
			replace(k);
}

int
egress_keeper_run(struct egress_held *h, const char *dir, struct hr_err *err)
{
	struct keeper k = {.h = h, .dir = dir, .broker = -1};
	sigset_t set;
	int64_t now;

	/* the link is read at the start, since an upgrade replaces the file */
	if (hr_pid_link(k.program, sizeof(k.program), "/proc/self/exe") < 0)
		return hr_err_sys(err, errno, "/proc/self/exe");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	k.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k.signals < 0)
		return hr_err_sys(err, errno, "signalfd");
	for (;;) {
		struct pollfd p[] = {
		    {h->box, POLLIN, 0}, {k.signals, POLLIN, 0}, {h->peer, POLLIN, 0}};

		now = hr_now_ms();
		if (k.broker < 0 && (k.started == 0 || now - k.started >= AGAIN_MS)) {
			(void)start_broker(&k, NULL);
			continue;
		}
		if (poll(p, 3, k.broker < 0 ? (int)(k.started + AGAIN_MS - now) : -1) < 0)
			continue;
		if (p[0].revents != 0)
			end_all();
		if (p[1].revents != 0)
			on_signal(&k);
		else if (p[2].revents != 0 && h->peer >= 0)
			on_message(&k);
	}
}
