/* Performs an action in one thread, and an interrupt in another: the back-end signals the command's
 * processes. A second interrupt kills them, a third one leaves them. */
#include "config.h"

#include "cli/live.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "base/fd.h"
#include "cli/observation.h"
#include "cli/shown.h"
#include "host/life/action.h"

/* A thread and its result; `done` is readable once the thread has ended. */
struct task {
	pthread_t thread;
	bool runs;
	int done, r;
	struct hr_err err;
};

struct direct {
	struct hr_sandbox *s;
	int signals;
	sigset_t before;
	unsigned interrupts;

	struct task run;
	const char *action;
	char *observation;

	struct task interrupt;
	int number; /* number of the signal */
	bool sent;
};

/* ---- the threads ---- */

static void
tell(struct task *t)
{
	(void)eventfd_write(t->done, 1); /* cannot fail here */
}

static void *
run(void *arg)
{
	struct direct *d = arg;

	d->run.r = hr_sandbox_action(d->s, d->action, &d->observation, &d->run.err);
	tell(&d->run);
	return NULL;
}

static void *
interrupt(void *arg)
{
	struct direct *d = arg;

	d->interrupt.err = (struct hr_err){0};
	d->interrupt.r = d->s->ops->interrupt(d->s->self, d->number, &d->sent, &d->interrupt.err);
	tell(&d->interrupt);
	return NULL;
}

static int
begin(struct direct *d, struct task *t, void *(*fn)(void *arg))
{
	int e = pthread_create(&t->thread, NULL, fn, d);

	t->runs = e == 0;
	if (e == 0)
		return CLI_OK;
	return cli_error("cannot start a thread: %s", strerror(e));
}

static void
join(struct task *t)
{
	uint64_t n;

	if (t->runs)
		(void)pthread_join(t->thread, NULL);
	if (t->runs)
		(void)hr_fd_read(t->done, &n, sizeof(n));
	t->runs = false;
}

/* ---- signals of the user ---- */

/* Leaves without notice to the sandbox, like any program that an interrupt ends. */
static void
leave(struct direct *d, const char *why)
{
	cli_say("%s; the command may still run in the sandbox", why);
	(void)signal(SIGINT, SIG_DFL);
	(void)raise(SIGINT);
	(void)pthread_sigmask(SIG_SETMASK, &d->before, NULL);
}

static void
on_signal(struct direct *d)
{
	struct signalfd_siginfo info;

	if (hr_fd_read(d->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	d->interrupts++;
	if (d->s->ops->interrupt == NULL)
		leave(d, "left: this back-end cannot interrupt a command");
	else if (d->interrupts > 2)
		leave(d, "left");
	else if (!d->interrupt.runs) {
		d->number = d->interrupts == 1 ? SIGINT : SIGKILL;
		(void)begin(d, &d->interrupt, interrupt);
	}
}

static void
on_interrupted(struct direct *d)
{
	join(&d->interrupt);
	if (d->interrupt.r != 0)
		cli_say("the command was not interrupted: %s; ^C again tries to kill it",
		    d->interrupt.err.msg);
	else if (!d->sent)
		cli_say("no process of the command was found; interrupt again if the command still "
			"runs");
	/* another interrupt came meanwhile */
	if (d->interrupts > 1 && d->number != SIGKILL) {
		d->number = SIGKILL;
		(void)begin(d, &d->interrupt, interrupt);
	}
}

static void
wait_for_it(struct direct *d)
{
	struct pollfd p[3] = {{.fd = d->run.done, .events = POLLIN},
	    {.fd = d->signals, .events = POLLIN}, {.fd = d->interrupt.done, .events = POLLIN}};

	do {
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents != 0 && p[0].revents == 0)
			on_signal(d);
		if (p[2].revents != 0)
			on_interrupted(d);
	} while (p[0].revents == 0);
}

/* ---- the whole action ---- */

static int
perform(struct direct *d)
{
	sigset_t set;
	int r;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	d->run.done = eventfd(0, EFD_CLOEXEC);
	d->interrupt.done = eventfd(0, EFD_CLOEXEC);
	d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d->run.done < 0 || d->interrupt.done < 0 || d->signals < 0)
		return cli_error("descriptors: %s", strerror(errno));
	(void)pthread_sigmask(SIG_BLOCK, &set, &d->before);
	r = begin(d, &d->run, run);
	if (r == CLI_OK)
		wait_for_it(d);
	/* an interrupt now ends only this process */
	(void)pthread_sigmask(SIG_SETMASK, &d->before, NULL);
	join(&d->run);
	join(&d->interrupt);
	return r;
}

static void
on_line(void *arg, const char *line, size_t len)
{
	cli_shown_put(arg, line, len);
}

bool
cli_is_direct(const struct hr_sandbox *s)
{
	return s->endpoint.url == NULL || (s->ops->action != NULL && !s->endpoint.serves);
}

int
cli_direct_run(struct cli *c, struct hr_sandbox *s, const char *action)
{
	struct direct d = {.s = s,
	    .signals = -1,
	    .action = action,
	    .run = {.done = -1},
	    .interrupt = {.done = -1}};
	struct cli_shown shown;
	bool streams;
	int r;

	cli_shown_init(&shown, c->json);
	streams = !c->json && hr_sandbox_subscribe_output(s, on_line, &shown);
	r = perform(&d);
	cli_shown_end(&shown);
	if (r == CLI_OK)
		r = d.run.r == 0 ? cli_observed(c, d.observation, !streams) : cli_fail(&d.run.err);
	if (shown.out != CLI_OK)
		r = shown.out;
	if (streams)
		(void)hr_sandbox_subscribe_output(s, NULL, NULL);
	hr_fd_close(&d.signals);
	hr_fd_close(&d.run.done);
	hr_fd_close(&d.interrupt.done);
	free(d.observation);
	return r;
}
