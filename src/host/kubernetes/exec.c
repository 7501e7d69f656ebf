/* Runs a program in the pod with this process's terminal or descriptors: channels 0 to 2 are its
 * descriptors, 3 its exit status, 4 the terminal's size, 255 the end of input. */
#include "config.h"

#include "host/kubernetes/kubernetes_int.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/err.h"
#include "proto/json.h"

#define PROTOCOLS "v5.channel.k8s.io,v4.channel.k8s.io"
#define PIECE 16384
#define BACKLOG (1u << 20)
enum channel { IN, OUT, ERR, ENDED, SIZE, CLOSE = 255 };

struct session {
	struct hr_ws *ws;
	struct hr_buf ended; /* the Status object received at the end */
	bool in_open, lost;  /* in_open: the input is not at its end; lost: our output is closed */
};

static int
on_message(void *arg, enum hr_ws_op op, const char *p, size_t len)
{
	struct session *s = arg;

	(void)op;
	if (len < 1)
		return 0;
	switch ((unsigned char)*p) {
	case OUT:
	case ERR:
		s->lost |= hr_fd_write_full(*p == OUT ? 1 : 2, p + 1, len - 1, NULL) != 0;
		return s->lost;
	case ENDED: hr_buf_add(&s->ended, p + 1, len - 1); return 0;
	default: return 0;
	}
}

static int
send_size(struct session *s)
{
	struct winsize w;
	HR_BUF(b, 128);

	if (ioctl(0, TIOCGWINSZ, &w) != 0)
		return 0;
	hr_buf_addf(&b, "%c{\"Width\":%u,\"Height\":%u}", SIZE, w.ws_col, w.ws_row);
	return hr_ws_send(s->ws, HR_WS_BINARY, hr_buf_str(&b), b.len, NULL);
}

/* Forwards the input. Protocol v4 cannot signal its end except by closing the connection: otherwise
 * the program keeps waiting. */
static int
from_input(struct session *s, bool v5)
{
	static const char ends[2] = {(char)CLOSE, IN};
	char piece[PIECE + 1];
	ssize_t n = hr_fd_read(0, piece + 1, PIECE);

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n > 0) {
		piece[0] = IN;
		return hr_ws_send(s->ws, HR_WS_BINARY, piece, (size_t)n + 1, NULL);
	}
	s->in_open = false;
	return v5 ? hr_ws_send(s->ws, HR_WS_BINARY, ends, sizeof(ends), NULL) : 0;
}

static int
status_of(const struct session *s, int *ret_status, struct hr_err *err)
{
	struct json_object *cause;
	HR_PUT struct json_object *o = NULL;
	int r = 0, status = 0;

	if (s->ended.len == 0)
		return hr_err_set(err, HR_E_DISCONNECTED,
		    "the connection to the program was cut; it may still run");
	if (hr_json_decode_foreign(s->ended.p, s->ended.len, &o, NULL) != 0)
		return hr_err_set(err, HR_E_RUNTIME,
		    "the program ended, but the API server reported no exit status");
	cause = hr_json_find(hr_json_at(hr_json_at(o, "details"), "causes"), "reason", "ExitCode");
	if (strcmp(hr_json_text_or(o, "status", ""), "Success") != 0) {
		status = (int)strtol(hr_json_text_or(cause, "message", "0"), NULL, 10);
		if (status == 0)
			r = hr_err_set(err, HR_E_RUNTIME, "it cannot be run: %s",
			    hr_json_text_or(o, "message", "no reason was given"));
	}
	if (r == 0)
		*ret_status = status;
	return r;
}

static int
talk(struct session *s, bool tty, bool v5, struct hr_err *err)
{
	struct pollfd p[3];
	sigset_t winch, before;
	int r = 0, sizes = -1;

	(void)sigemptyset(&winch);
	(void)sigaddset(&winch, SIGWINCH);
	(void)pthread_sigmask(SIG_BLOCK, &winch, &before);
	if (tty) {
		sizes = signalfd(-1, &winch, SFD_CLOEXEC | SFD_NONBLOCK);
		r = send_size(s);
	}
	if (r == 0)
		r = hr_ws_receive(s->ws, on_message, s, NULL);
	while (r == 0) {
		struct signalfd_siginfo info;

		p[0] = (struct pollfd){.fd = hr_ws_fd(s->ws), .events = hr_ws_events(s->ws)};
		p[1] = (struct pollfd){
		    .fd = s->in_open && hr_ws_backlog(s->ws) < BACKLOG ? 0 : -1, .events = POLLIN};
		p[2] = (struct pollfd){.fd = sizes, .events = POLLIN};
		if (poll(p, 3, -1) < 0) {
			if (errno == EINTR)
				continue;
			r = hr_err_sys(err, errno, "wait for the program");
			break;
		}
		if (p[0].revents != 0)
			r = hr_ws_flush(s->ws, NULL) == 0
				? hr_ws_receive(s->ws, on_message, s, NULL)
				: 1;
		if (r == 0 && p[1].revents != 0)
			r = from_input(s, v5) == 0 ? 0 : 1;
		if (r == 0 && p[2].revents != 0) {
			/* the number of signals does not matter */
			(void)!read(sizes, &info, sizeof(info));
			r = send_size(s) == 0 ? 0 : 1;
		}
	}
	hr_fd_close(&sizes);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return 0;
}

int
hr_kubernetes_exec(
    struct hr_kubernetes *d, const char *const *argv, int *ret_status, struct hr_err *err)
{
	bool tty = isatty(0) && isatty(1), raw = false;
	struct session s = {.in_open = true};
	struct termios was, now;
	HR_BUF(url, 1u << 20);
	char path[512];
	int r = -1;

	hr_kubernetes_path(d, HR_POD, true, path);
	hr_buf_addf(&url,
	    "%s/exec?container=" HR_KUBERNETES_CONTAINER "&stdin=true&stdout=true&stderr=%s&tty=%s",
	    path, tty ? "false" : "true", tty ? "true" : "false");
	for (; *argv != NULL; argv++) {
		hr_buf_adds(&url, "&command=");
		hr_http_escape(&url, *argv);
	}
	hr_buf_init(&s.ended, 1u << 20);
	if (hr_buf_check(&url, NULL) != 0)
		(void)hr_err_nomem(err);
	else
		s.ws = hr_kube_socket(&d->kube, hr_buf_str(&url), PROTOCOLS, err);
	if (s.ws != NULL) {
		if (tty && tcgetattr(0, &was) == 0) {
			now = was;
			cfmakeraw(&now);
			raw = tcsetattr(0, TCSADRAIN, &now) == 0;
		}
		r = talk(&s, tty, strcmp(hr_ws_protocol(s.ws), "v5.channel.k8s.io") == 0, err);
		if (raw)
			(void)tcsetattr(0, TCSADRAIN, &was);
		if (r == 0 && s.lost)
			*ret_status = 128 + SIGPIPE;
		else if (r == 0)
			r = status_of(&s, ret_status, err);
	}
	hr_ws_free(s.ws);
	hr_buf_done(&s.ended);
	return r;
}
