/* Runs a program of the sandbox on this terminal by way of its server, for back-ends that cannot do
 * so themselves: in a session of its own, which ends with the program or with this process. The
 * output of its terminal is followed until there is a key, a new size or a signal: one epoll
 * descriptor has all of them, and aborts the request. A signal that ends this aborts each other
 * request, too. Ctrl-C is a key of the program, unless the server leaves a request unanswered: it
 * is a signal then. */
#include "config.h"

#include "cli/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "cli/cli.h"
#include "cli/watched.h"
#include "proto/json.h"

#define WAIT_MS 200    /* before the next request after one that failed */
#define FAILURES_MAX 6 /* maximum consecutive failures, with doubling pauses: 13 s */
#define KEYS_MAX 4096  /* bytes that are read from the keyboard at once */
#define LINE_MAX_BYTES (1u << 20)
/* the shell's prompt would report the end of a command to the session */
#define WITHOUT_PROMPT "env -u PROMPT_COMMAND -u PS1 -u PS2"
#define STUCK_S 2    /* time of a request until Ctrl-C is a signal */
#define END_S 5      /* time for the request that ends the session */
#define ANSWER_S 0.1 /* the server's answer to the start of a longer command comes after this */

struct terminal {
	struct cli_watched of;
	struct termios before, raw;
	int sizes, ends, all; /* descriptors for SIGWINCH, for signals that end this, and for all */
	int out;              /* status of standard output */
	bool left, resized;   /* a signal or a closed terminal ends this; the size has changed */
	char keys[KEYS_MAX + 4];
	size_t held; /* bytes of a character that is not complete */
	unsigned failures;
	struct hr_err failed;
};

/* ---- the session ---- */

static int
post(struct terminal *t, const char *path, struct json_object *body, struct json_object **ret,
    struct hr_err *err)
{
	HR_FREE char *text = body != NULL ? hr_json_string(body, LINE_MAX_BYTES, err) : NULL;

	json_object_put(body);
	return text != NULL ? cli_watched_ask(&t->of, "POST", path, text, ret, err) : -1;
}

static int
make_session(struct terminal *t, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	unsigned n = 0;
	char name[24];
	int r;

	/* pages offer to end a session of such a name, if this process is killed */
	if (hr_random(&n, sizeof(n), err) != 0)
		return -1;
	(void)snprintf(name, sizeof(name), "page-%u", n);
	r = post(t, "/handrail/v1/create", hr_json_texts(err, "name", name, NULL), &o, err);
	/* a request without an answer may have made it, too */
	(void)snprintf(t->of.session, sizeof(t->of.session), "session=%s", name);
	return r;
}

/* Takes the signals that have come to end this. */
static void
take_ends(struct terminal *t)
{
	struct signalfd_siginfo info;

	while (hr_fd_read(t->ends, &info, sizeof(info)) == (ssize_t)sizeof(info))
		t->left = true;
}

/* Ends the session, unless a further signal comes. */
static void
end_session(struct terminal *t)
{
	take_ends(t);
	t->of.timeout_s = END_S;
	if (t->of.session[0] != '\0')
		cli_watched_post_once(&t->of, "/handrail/v1/kill", "{}");
}

/* Starts the program and finds it in the list of commands. */
static int
start(struct terminal *t, const char *const *argv, struct hr_err *err)
{
	const char *term = getenv("TERM");
	HR_PUT struct json_object *o = NULL;
	struct json_object *action;
	HR_BUF(line, LINE_MAX_BYTES);
	int rows, columns;

	/* the server can set the size only once the program runs */
	if (cli_watched_size(&rows, &columns))
		hr_buf_addf(&line, "stty rows %d columns %d 2>/dev/null; ", rows, columns);
	hr_buf_adds(&line, WITHOUT_PROMPT " TERM=");
	hr_quote_shell(&line, term != NULL ? term : "dumb", strlen(term != NULL ? term : "dumb"));
	/* the session's own bash, which need not be on PATH */
	if (strcmp(*argv, "bash") == 0) {
		hr_buf_adds(&line, " \"$BASH\"");
		argv++;
	}
	for (; *argv != NULL; argv++) {
		hr_buf_addc(&line, ' ');
		hr_quote_shell(&line, *argv, strlen(*argv));
	}
	if (hr_buf_check(&line, err) != 0)
		return -1;
	action = hr_json_object(err, "action", json_object_new_string("run"), "args",
	    hr_json_texts(err, "command", hr_buf_str(&line), NULL), "timeout",
	    json_object_new_double(ANSWER_S), "ready_s", json_object_new_int(30), NULL);
	if (action == NULL ||
	    post(t, "/handrail/v1/run", hr_json_object(err, "action", action, NULL), &o, err) !=
		0 ||
	    cli_watched_look(&t->of, err) != 0)
		return -1;
	return t->of.listed
		   ? 0
		   : hr_err_set(err, HR_E_RUNTIME, "the server did not run the program: %s",
			 hr_json_text_or(o, "content", "no reason was given"));
}

/* ---- the terminal ---- */

static struct termios stuck_mode; /* raw, but for Ctrl-C and Ctrl-\ */
static volatile sig_atomic_t is_stuck;

static void
on_alarm(int number)
{
	int sys = errno;

	(void)number;
	(void)tcsetattr(0, TCSANOW, &stuck_mode);
	is_stuck = true;
	errno = sys;
}

/* Surrounds requests that keys do not abort. */
static void
begin_request(void)
{
	(void)alarm(STUCK_S);
}

static void
end_request(const struct terminal *t)
{
	(void)alarm(0);
	if (is_stuck)
		(void)tcsetattr(0, TCSANOW, &t->raw);
	is_stuck = false;
}

static void
resize(struct terminal *t)
{
	int rows, columns;

	t->resized = false;
	begin_request();
	if (cli_watched_size(&rows, &columns))
		cli_watched_resize(&t->of, rows, columns);
	end_request(t);
}

/* Returns the length without a character at the end that is not complete. */
static size_t
whole(const char *p, size_t len)
{
	size_t n;

	for (n = 1; n <= 3 && n <= len; n++)
		if ((p[len - n] & 0xC0) == 0xC0)
			return hr_utf8_len(p + len - n, n) == 0 ? len - n : len;
	return len;
}

/* Sends the keys to the program. */
static void
type_keys(struct terminal *t)
{
	ssize_t n = hr_fd_read(0, t->keys + t->held, KEYS_MAX);
	HR_BUF(body, (size_t)8 * KEYS_MAX);
	size_t len, all;

	if (n <= 0) {
		t->left = true;
		return;
	}
	all = t->held + (size_t)n;
	len = whole(t->keys, all);
	hr_buf_adds(&body, "{\"text\":");
	hr_quote_json(&body, t->keys, len);
	hr_buf_addc(&body, '}');
	t->held = all - len;
	memmove(t->keys, t->keys + len, t->held);
	begin_request();
	if (len > 0 && hr_buf_check(&body, NULL) == 0)
		cli_watched_post_once(&t->of, "/handrail/v1/input", hr_buf_str(&body));
	end_request(t);
}

static void
handle(struct terminal *t, int wait_ms)
{
	struct signalfd_siginfo info;
	struct epoll_event e[3];
	int i, n;

	do {
		n = epoll_wait(t->all, e, 3, wait_ms);
	} while (n < 0 && errno == EINTR);
	for (i = 0; i < n; i++) {
		if (e[i].data.fd == 0)
			type_keys(t);
		else if (e[i].data.fd == t->ends)
			take_ends(t);
		else if (hr_fd_read(t->sizes, &info, sizeof(info)) == (ssize_t)sizeof(info))
			t->resized = true;
	}
	if (t->resized)
		resize(t);
}

static int
on_output(void *arg, uint64_t lost, const char *p, size_t len)
{
	struct terminal *t = arg;

	(void)lost;
	t->out = cli_out(p, len);
	return t->out == CLI_OK ? 0 : -1;
}

/* Prints the program's output until it ends or the user has left. */
static void
follow(struct terminal *t)
{
	int r, wait;

	while (t->of.running && !t->left && t->out == CLI_OK && t->failures < FAILURES_MAX) {
		r = cli_watched_output(&t->of, t->all, on_output, t, &t->failed);
		begin_request();
		if (r <= 0 && cli_watched_look(&t->of, &t->failed) != 0)
			r = -1;
		end_request(t);
		wait = r == 1 ? 0 : WAIT_MS << t->failures;
		t->failures = r < 0 ? t->failures + 1 : 0;
		if (t->of.running || r < 0)
			handle(t, wait);
	}
}

/* Returns a descriptor for these signals, which are blocked from here on. */
static int
signals(const int *numbers, size_t n)
{
	sigset_t set;
	size_t i;

	(void)sigemptyset(&set);
	for (i = 0; i < n; i++)
		(void)sigaddset(&set, numbers[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
add(const struct terminal *t, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(t->all, EPOLL_CTL_ADD, fd, &e);
}

/* Takes signals from here on, since each of them ends the session. */
static int
watch(struct terminal *t)
{
	static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	const struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

	t->ends = signals(ends, sizeof(ends) / sizeof(*ends));
	t->sizes = signals(&(const int){SIGWINCH}, 1);
	t->all = epoll_create1(EPOLL_CLOEXEC);
	if (t->ends < 0 || t->sizes < 0 || t->all < 0 || tcgetattr(0, &t->before) != 0 ||
	    add(t, t->ends) != 0 || add(t, t->sizes) != 0 || add(t, 0) != 0)
		return -1;
	t->raw = t->before;
	cfmakeraw(&t->raw);
	stuck_mode = t->raw;
	stuck_mode.c_lflag |= ISIG;
	stuck_mode.c_cc[VSUSP] = _POSIX_VDISABLE;
	return sigaction(SIGALRM, &act, NULL);
}

static int
run(struct terminal *t)
{
	(void)tcsetattr(0, TCSADRAIN, &t->raw);
	resize(t);
	follow(t);
	if (t->out == CLI_OK && !t->of.running && t->of.at < t->of.end)
		(void)cli_watched_output(&t->of, -1, on_output, t, NULL);
	(void)tcsetattr(0, TCSADRAIN, &t->before);
	end_session(t);
	if (t->failures == FAILURES_MAX)
		return cli_fail(&t->failed);
	if (t->left || t->out != CLI_OK)
		return CLI_ERROR;
	return t->of.exit_code >= 0 ? t->of.exit_code & 0xFF
				    : cli_error("the program ended with its shell");
}

int
cli_terminal(struct hr_sandbox *s, const char *const *argv)
{
	struct terminal t = {.sizes = -1, .ends = -1, .all = -1};
	struct hr_err err = {0};
	int r;

	if (isatty(0) != 1 || isatty(1) != 1)
		return cli_usage("a terminal of the back-end %s needs one here, too: its standard "
				 "input and output; \"handrail run\" needs none",
		    s->ops->name);
	if (watch(&t) != 0)
		return cli_error("the terminal: %s", strerror(errno));
	r = cli_watched_open(&t.of, &s->endpoint, &err);
	t.of.given_up_fd = t.ends;
	if (r != 0 || make_session(&t, &err) != 0 || start(&t, argv, &err) != 0) {
		end_session(&t);
		r = t.left ? CLI_ERROR
		    : err.status == 404
			? cli_error("the server of this sandbox has no terminals: it "
				    "makes no sessions")
			: cli_fail(&err);
	} else {
		r = run(&t);
	}
	hr_fd_close(&t.all);
	hr_fd_close(&t.ends);
	hr_fd_close(&t.sizes);
	cli_watched_close(&t.of);
	return r;
}
