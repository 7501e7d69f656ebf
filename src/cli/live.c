/* Runs an interactive command. A thread sends the action, once. Meanwhile the main thread follows
 * the output of its command and handles the user's signals: one epoll descriptor has all events and
 * aborts a request. Once the action is answered and the command continues, and for another client's
 * command, there is no thread: the output ends when the command does. */
#include "config.h"

#include "cli/live.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/random.h"
#include "cli/observation.h"
#include "cli/stdin.h"
#include "cli/shown.h"
#include "cli/watched.h"
#include "host/life/action.h"

#define QUICK_MS 100   /* output of faster commands is printed as a whole */
#define LOOK_MS 200    /* ms between polls of a shell that is busy with another command */
#define FAILURES_MAX 6 /* maximum consecutive failures, with doubling pauses: 13 s */

struct live {
	const struct cli *c;
	struct hr_sandbox *s; /* the thread uses the client of this object */
	struct cli_shown shown;
	struct cli_watched of;

	int signals, sizes, done, cancel, all;
	sigset_t before;
	unsigned interrupts;
	bool left;  /* the user has left */
	bool given; /* standard input has data for the command */
	bool lost;  /* a part of the output is lost */
	bool own;   /* this process has started the command, which is fitted to this terminal */
	/* true once the terminal was fitted; true once the other command was reported */
	bool sized, told;
	unsigned failures;    /* number of consecutive failures of requests */
	struct hr_err failed; /* error of the last failure */

	pthread_t thread;
	const char *action;
	bool limited;         /* the answer ends the wait, even if the command continues */
	atomic_bool streams;  /* the command's output is being received */
	atomic_bool answered; /* the action is answered */
	char *observation;    /* belongs to the thread until it has ended */
	struct hr_err err;
	int r;
};

/* ---- signals of the user ---- */

static void
resize(struct live *l)
{
	int rows, columns;

	if (!l->own || !l->of.running || !l->shown.tame.terminal ||
	    !cli_watched_size(&rows, &columns))
		return;
	cli_watched_resize(&l->of, rows, columns);
	l->sized = true;
}

static int
look(struct live *l)
{
	return cli_watched_look(&l->of, &l->failed);
}

static void
leave(struct live *l)
{
	l->left = true;
	if (l->of.id != 0 || (look(l) == 0 && l->of.id != 0))
		cli_watched_let_go(&l->of);
	(void)eventfd_write(l->cancel, 1); /* cannot fail here */
}

static void
interrupt(struct live *l)
{
	if (l->interrupts++ > 0) {
		leave(l);
	} else if (look(l) != 0) {
		/* the server cannot reach the command: end as any program does */
		(void)signal(SIGINT, SIG_DFL);
		(void)raise(SIGINT);
		(void)pthread_sigmask(SIG_SETMASK, &l->before, NULL);
	} else if (!l->of.listed) {
		cli_say("the command has not started; interrupt again to leave it");
	} else if (l->of.running) {
		l->shown.interrupted = true;
		cli_watched_interrupt(&l->of);
	}
}

/* Refuses standard input, for which the command would wait for ever. */
static void
refuse_input(struct live *l)
{
	(void)epoll_ctl(l->all, EPOLL_CTL_DEL, 0, NULL);
	if (!cli_stdin_has_data())
		return;
	cli_stdin_refuse();
	l->given = true;
	if (look(l) == 0 && l->of.running)
		cli_watched_interrupt(&l->of);
	else
		leave(l);
}

/* Waits for something to do. Returns true if the action is answered or the user has left. */
static bool
over(struct live *l, int timeout_ms)
{
	struct signalfd_siginfo info;
	struct epoll_event e[5];
	bool over = false;
	int n, i;

	do {
		n = epoll_wait(l->all, e, 5, timeout_ms);
	} while (n < 0 && errno == EINTR);
	for (i = 0; i < n; i++) {
		if (e[i].data.fd == l->done)
			over = true;
		else if (e[i].data.fd == 0)
			refuse_input(l);
		else if (e[i].data.fd == 1) /* the reader of the output has ended */
			l->shown.out = CLI_ERROR;
		else if (hr_fd_read(e[i].data.fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
			continue;
		else if (e[i].data.fd == l->signals)
			interrupt(l);
		else
			resize(l);
	}
	if (l->shown.out != CLI_OK && !l->left)
		leave(l);
	return over || l->left;
}

/* ---- output ---- */

static int
on_output(void *arg, uint64_t lost, const char *p, size_t len)
{
	struct live *l = arg;

	if (lost > 0) {
		cli_say("%" PRIu64 " bytes of the output are no longer kept", lost);
		l->lost = true;
	}
	cli_shown_put(&l->shown, p, len);
	return l->shown.out == CLI_OK ? 0 : -1;
}

/* Prints output until there is something else to do. Returns how long to wait for that in ms; -1:
 * as long as necessary, as there is no output. */
static int
step(struct live *l)
{
	int r = look(l);

	if (r == 0 && l->of.id != 0 && !l->of.running)
		return -1;
	if (r == 0 && l->of.id == 0 && l->of.behind && !l->told) {
		l->told = true;
		if (!l->c->quiet)
			cli_say("another command runs in this shell; waiting for its end");
	}
	if (r == 0 && l->of.id != 0 && !l->sized)
		resize(l);
	atomic_store(&l->streams, l->of.id != 0);
	if (r == 0)
		r = cli_watched_output(&l->of, l->all, on_output, l, &l->failed);
	atomic_store(&l->streams, false);
	if (l->shown.out != CLI_OK)
		return 0;
	/* the shell is replaced, there are too many viewers, or the server has ended */
	if (r < 0) {
		l->failures = l->failed.status == 404 ? FAILURES_MAX : l->failures + 1;
		return l->failures < FAILURES_MAX ? LOOK_MS << l->failures : -1;
	}
	l->failures = 0;
	/* a reload ends streams; another client's output is polled, not read byte by byte */
	return r == 0 || l->of.id == 0 ? LOOK_MS : 0;
}

/* Waits until the command has ended or the user leaves. */
static int
wait_for_it(struct live *l)
{
	int wait;

	l->failures = 0;
	l->of.given_up_fd = l->signals;
	for (wait = 0; l->of.running && l->failures < FAILURES_MAX && !over(l, wait);)
		wait = step(l);
	l->of.given_up_fd = -1;
	if (l->failures < FAILURES_MAX)
		return CLI_OK;
	cli_shown_end(&l->shown);
	return cli_fail(&l->failed);
}

/* ---- the action ---- */

static void
say_goes_on(const struct live *l)
{
	if (!l->c->quiet && l->shown.tame.terminal)
		cli_say("the command still runs; ^C interrupts it, ^C twice leaves it, \"handrail "
			"run -i TEXT\" sends input to it");
}

/* Returns true if the output being received soon ends by itself. Aborting the request would lose
 * data in transit, perhaps more than the server keeps. */
static bool
comes_to_its_end(struct live *l)
{
	struct cli_watched of;
	bool comes = false;

	if (cli_watched_open(&of, &l->s->endpoint, NULL) == 0) {
		memcpy(of.request, l->of.request, sizeof(of.request));
		of.answered = true;
		comes = l->r == 0 && cli_watched_look(&of, NULL) == 0 && of.listed &&
			(!of.running || !l->limited);
		if (comes && of.running)
			say_goes_on(l);
	}
	cli_watched_close(&of);
	return comes;
}

static void *
act(void *arg)
{
	struct live *l = arg;
	const struct hr_action_way way = {.id = l->of.request, .cancel_fd = l->cancel};

	l->r = hr_sandbox_action_as(l->s, l->action, &way, &l->observation, &l->err);
	atomic_store(&l->answered, true);
	if (!atomic_load(&l->streams) || !comes_to_its_end(l))
		(void)eventfd_write(l->done, 1);
	return NULL;
}

/* Sends the action and waits for its answer. */
static int
perform(struct live *l, const char *action, bool shows)
{
	struct epoll_event given = {.events = EPOLLIN, .data.fd = 0};
	int wait = shows ? QUICK_MS : -1, e;
	uint64_t n;

	if (hr_random_hex(l->of.request, sizeof(l->of.request) - 1, &l->err) != 0)
		return cli_fail(&l->err);
	l->action = action;
	l->own = true;
	/* a file was checked before; a terminal's input is ignored */
	if (isatty(0) != 1)
		(void)epoll_ctl(l->all, EPOLL_CTL_ADD, 0, &given);
	e = pthread_create(&l->thread, NULL, act, l);
	if (e != 0)
		return cli_error("cannot start a thread: %s", strerror(e));
	l->of.given_up_fd = l->signals;
	while (!over(l, wait)) {
		wait = shows ? step(l) : -1;
		if (atomic_load(&l->answered))
			break;
	}
	l->of.given_up_fd = -1;
	(void)pthread_join(l->thread, NULL);
	(void)hr_fd_read(l->done, &n, sizeof(n));
	l->of.answered = true;
	return CLI_OK;
}

/* ---- start and end ---- */

static int
open_live(struct live *l, struct cli *c, struct hr_sandbox *s, bool shows)
{
	struct epoll_event e = {.events = EPOLLIN}, gone = {.data.fd = 1};
	struct hr_err err = {0};
	sigset_t set, sizes;

	l->c = c;
	l->s = s;
	cli_shown_init(&l->shown, c->json);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigemptyset(&sizes);
	if (shows)
		(void)sigaddset(&sizes, SIGWINCH);
	l->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->cancel = eventfd(0, EFD_CLOEXEC);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC);
	l->sizes = signalfd(-1, &sizes, SFD_CLOEXEC);
	l->all = epoll_create1(EPOLL_CLOEXEC);
	(void)pthread_sigmask(SIG_BLOCK, &set, &l->before);
	(void)pthread_sigmask(SIG_BLOCK, &sizes, NULL);
	if (cli_watched_open(&l->of, &s->endpoint, &err) != 0)
		return cli_fail(&err);
	e.data.fd = l->done;
	if (l->done < 0 || l->cancel < 0 || l->signals < 0 || l->sizes < 0 || l->all < 0 ||
	    epoll_ctl(l->all, EPOLL_CTL_ADD, l->done, &e) != 0 ||
	    (e.data.fd = l->signals, epoll_ctl(l->all, EPOLL_CTL_ADD, l->signals, &e) != 0) ||
	    (e.data.fd = l->sizes, epoll_ctl(l->all, EPOLL_CTL_ADD, l->sizes, &e) != 0))
		return cli_error("descriptors: %s", strerror(errno));
	/* a pipe or a terminal reports an error when it closes; a file cannot */
	if (shows)
		(void)epoll_ctl(l->all, EPOLL_CTL_ADD, 1, &gone);
	return CLI_OK;
}

static void
close_live(struct live *l)
{
	(void)pthread_sigmask(SIG_SETMASK, &l->before, NULL);
	hr_fd_close(&l->all);
	hr_fd_close(&l->signals);
	hr_fd_close(&l->sizes);
	hr_fd_close(&l->done);
	hr_fd_close(&l->cancel);
	cli_watched_close(&l->of);
	free(l->observation);
}

static int
left(struct live *l)
{
	const struct cli *c = l->c;
	const bool other = strcmp(c->name, "default") != 0;

	cli_shown_end(&l->shown);
	if (l->shown.out != CLI_OK) /* the reader had ended */
		return l->shown.out;
	cli_say("left; the command continues, and \"handrail attach%s%s\" returns to it",
	    other ? " -n " : "", other ? c->name : "");
	return CLI_COMMAND_TIMEOUT;
}

/* Returns the exit status of a command that has ended. */
static int
status_of(struct live *l)
{
	if (l->of.exit_code >= 0) {
		if (l->observation != NULL && l->r == 0)
			cli_observed_facts(l->c, l->observation);
		return l->of.exit_code & 0xFF;
	}
	if (l->observation != NULL && l->r == 0)
		return cli_observed(l->c, l->observation, false);
	return cli_error("the command ended with its shell");
}

/* Prints the rest of an ended command's output, and returns its exit status. */
static int
finish(struct live *l)
{
	/* an interrupt now ends only this process */
	(void)pthread_sigmask(SIG_SETMASK, &l->before, NULL);
	if (!l->of.listed) {
		cli_shown_end(&l->shown);
		return cli_error("the command's result is lost: the server was restarted, or many "
				 "other commands ran since");
	}
	if (l->shown.out == CLI_OK && l->of.at < l->of.end &&
	    cli_watched_output(&l->of, -1, on_output, l, NULL) < 0)
		cli_say("the end of the output is not available; \"handrail attach\" tries again");
	cli_shown_end(&l->shown);
	return l->shown.out != CLI_OK ? l->shown.out : status_of(l);
}

static int
run_shown(struct live *l)
{
	int r = CLI_OK;

	if (l->r != 0) {
		cli_shown_end(&l->shown);
		return cli_fail(&l->err);
	}
	/* most commands have ended before any output was requested */
	if (cli_watched_take(&l->of, l->observation))
		return finish(l);
	/* the command was refused, or the server has no list; printed output is not repeated */
	if (look(l) != 0 || !l->of.listed || (l->of.running && l->limited)) {
		if (l->of.running && l->shown.out != CLI_OK)
			cli_watched_let_go(&l->of);
		cli_shown_end(&l->shown);
		return cli_observed(l->c, l->observation, l->of.id == 0);
	}
	if (l->of.running) {
		say_goes_on(l);
		r = wait_for_it(l);
	}
	if (r != CLI_OK)
		return r;
	return l->left ? left(l) : finish(l);
}

int
cli_live_run(struct cli *c, struct hr_sandbox *s, const char *action, bool limited)
{
	struct live l = {
	    .signals = -1, .sizes = -1, .done = -1, .cancel = -1, .all = -1, .limited = limited};
	const bool shows = !c->json;
	HR_FREE char *whole = NULL;
	int r;

	if (cli_is_direct(s))
		return cli_direct_run(c, s, action);
	if (cli_stdin_has_data())
		return cli_stdin_refuse();
	if (shows && asprintf(&whole, "{\"whole_output\":true,%s", action + 1) < 0)
		return cli_no_memory();
	r = open_live(&l, c, s, shows);
	if (r == CLI_OK)
		r = perform(&l, shows ? whole : action, shows);
	if (r == CLI_OK && l.left)
		r = left(&l);
	else if (r == CLI_OK && shows)
		r = run_shown(&l);
	else if (r == CLI_OK)
		r = l.r == 0 ? cli_observed(c, l.observation, true) : cli_fail(&l.err);
	/* the command lacked its input, or a file would pass for the whole output */
	if (r == CLI_OK && (l.given || (l.lost && !l.shown.tame.terminal)))
		r = CLI_ERROR;
	close_live(&l);
	return r;
}

static int
told(struct live *l)
{
	int code = l->of.exit_code >= 0 ? l->of.exit_code & 0xFF : CLI_ERROR, r;
	char status[16];

	(void)snprintf(status, sizeof(status), "%d", code);
	r = cli_done(
	    l->c, "sid", l->c->name, "command", hr_buf_str(&l->of.text), "status", status, NULL);
	return r == CLI_OK ? code : r;
}

/* Reports that the command has ended, since its output may be old. */
static void
say_ended(const struct live *l)
{
	if (!l->c->quiet && !l->c->json && l->of.exit_code >= 0)
		cli_say("the command has ended, with status %d", l->of.exit_code & 0xFF);
}

static int
come_back(struct live *l)
{
	int r = CLI_OK;

	if (look(l) != 0)
		return cli_fail(&l->failed);
	if (!l->of.listed) {
		cli_say("no command was run in \"%s\" yet: \"handrail run COMMAND\" runs one",
		    l->c->name);
		return CLI_NOT_FOUND;
	}
	if (l->of.running)
		r = wait_for_it(l);
	else
		say_ended(l);
	if (r != CLI_OK)
		return r;
	if (l->left)
		return left(l);
	return l->c->json && l->of.listed ? told(l) : finish(l);
}

int
cli_live_attach(struct cli *c, struct hr_sandbox *s)
{
	struct live l = {.signals = -1, .sizes = -1, .done = -1, .cancel = -1, .all = -1};
	int r;

	if (cli_is_direct(s))
		return cli_error("a sandbox of the back-end %s has no shell to return to: each "
				 "\"handrail run\" starts a new one",
		    s->ops->name);
	r = open_live(&l, c, s, !c->json);
	if (r == CLI_OK)
		r = come_back(&l);
	close_live(&l);
	return r;
}
