/* The action is sent, once, by a thread. Beside it the terminal's output is followed from where the
 * command began (doc/live.md), and the signals of whoever looks on are heard. All that is waited
 * for is in one epoll descriptor, which a request gives up for. */
#include "config.h"

#include "cli/live.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/tame.h"
#include "cli/observation.h"
#include "host/action.h"
#include "proto/json.h"

#define QUICK_MS 100 /* what is over by then is shown as a whole */
#define LOOK_MS 200  /* between two looks at what a shell does that is busy with another's */
#define WAIT_S 600   /* one wait for a command that goes on; there may be many */
#define OUT_MAX (8u << 20)

/* A command as /handrail/v1/commands has it. */
struct command {
	bool found, running;
	int64_t number; /* 0: it was never found */
	int exit_code;  /* -1: it ended the shell, or it is not known */
	uint64_t start, end;
	size_t length; /* of its text, of which the beginning is kept */
	struct hr_buf text;
};

struct live {
	const struct cli *c;
	struct hr_sandbox *s;
	struct hr_client client; /* the thread has the sandbox's */
	char id[33];             /* of the request; "": the last command is meant */
	int signals, sizes, done, cancel, all;
	bool hears; /* interrupts end requests */
	sigset_t before;
	unsigned interrupts;
	bool detached, waits_only; /* the action is none but a wait for a command's end */
	int out;                   /* an exit status: output cannot be written */

	pthread_t thread;
	const char *action;
	char *observation; /* the thread's, until it has ended */
	struct hr_err err;
	int r;

	struct command of;
	uint64_t at; /* the next byte that is to be shown */
	bool begun, waits, sized;
	size_t echoed; /* bytes of the echo that have passed */
	bool echo;     /* they still do */
	struct hr_buf held;
	struct hr_tame tame;
};

/* ---- what came ---- */

static void
show(struct live *l, const char *p, size_t len, bool last)
{
	struct hr_buf b;

	if (l->c->json)
		return;
	hr_buf_init(&b, OUT_MAX);
	for (size_t n; len > 0; p += n, len -= n) {
		n = len < OUT_MAX / 8 ? len : OUT_MAX / 8;
		hr_tame_feed(&l->tame, &b, p, n);
		if (l->out == CLI_OK)
			l->out = cli_out(hr_buf_str(&b), b.len);
		hr_buf_reset(&b);
	}
	if (last)
		hr_tame_end(&l->tame, &b);
	if (l->out == CLI_OK)
		l->out = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
}

/* The command's text, as the terminal echoed it: how many bytes of it these are. What looks
 * otherwise (a shell where it has to be typed) is shown. */
static size_t
skip_echo(struct live *l, const char *p, size_t len)
{
	const struct command *k = &l->of;
	size_t i;

	for (i = 0; i < len && l->echo; i++) {
		hr_buf_addc(&l->held, p[i]);
		if (p[i] == '\r')
			continue;
		if (l->echoed == k->length ||
		    (l->echoed < k->text.len && p[i] != k->text.p[l->echoed])) {
			l->echo = false;
			if (l->echoed < k->length || p[i] != '\n')
				show(l, hr_buf_str(&l->held), l->held.len, false);
		}
		l->echoed++;
	}
	return i;
}

struct sink {
	struct live *l;
	const struct hr_http_answer *answer;
	uint64_t end; /* of what is wanted */
	bool placed, enough;
};

static int
on_bytes(void *arg, const char *p, size_t len)
{
	struct sink *k = arg;
	struct live *l = k->l;
	uint64_t from;
	size_t n;

	if (!l->begun) { /* something happens in the shell: the command may be there now */
		k->enough = true;
		return -1;
	}
	if (!k->placed) {
		from = strtoull(k->answer->header, NULL, 10);
		if (from > k->end)
			from = k->end;
		if (from > l->at) {
			cli_say("%" PRIu64 " bytes of the output are no longer kept", from - l->at);
			l->echo = false;
			l->at = from;
		}
		k->placed = true;
	}
	if (len > k->end - l->at)
		len = (size_t)(k->end - l->at);
	l->at += len;
	n = skip_echo(l, p, len);
	show(l, p + n, len - n, false);
	return l->out == CLI_OK ? 0 : -1;
}

/* ---- requests ---- */

static int
ask(struct live *l, const char *method, const char *path, const char *body,
    struct json_object **ret)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct hr_http_request q = {.method = method,
	    .url = path,
	    .body = body,
	    .body_len = body != NULL ? strlen(body) : 0,
	    .headers = headers,
	    .timeout_s = 30,
	    .watch_fd = l->hears ? l->signals : -1};
	struct hr_json_error why;
	struct hr_http_answer a;
	struct hr_err e = {0};
	int r = hr_client_send(&l->client, &q, &a, &e);

	if (r == 0 && hr_json_decode(hr_buf_str(&a.body), a.body.len, ret, &why) < 0)
		r = -1;
	hr_http_answer_done(&a);
	return r;
}

static bool
is_ours(const struct live *l, struct json_object *o)
{
	const char *key = hr_json_text_or(o, "key", "");
	size_t n = strlen(l->id);

	if (n == 0 && l->of.number != 0) /* not one that came later */
		return hr_json_int_at(o, "id") == l->of.number;
	if (n == 0) /* what the sandbox is set up with is hidden */
		return hr_json_int_at(o, "length") > 0;
	return strncmp(key, "x:", 2) == 0 && strncmp(key + 2, l->id, n) == 0 && key[2 + n] == ':';
}

/* Looks for the command: -1: the server has no list of them. */
static int
look(struct live *l)
{
	struct json_object *all = NULL, *list, *o, *span;
	struct command *k = &l->of;
	const char *text;

	if (ask(l, "GET", "/handrail/v1/commands", NULL, &all) != 0)
		return -1;
	k->found = k->running = false;
	list = hr_json_at(all, "commands");
	for (size_t i = hr_json_count(list); i > 0; i--) {
		o = hr_json_entry(list, i - 1);
		if (!is_ours(l, o))
			continue;
		span = hr_json_at(o, "output");
		text = hr_json_text_or(o, "command", "");
		k->found = true;
		k->number = hr_json_int_at(o, "id");
		k->running = strcmp(hr_json_text_or(o, "state", ""), "running") == 0;
		k->exit_code = json_object_is_type(hr_json_at(o, "exit_code"), json_type_int)
				   ? (int)hr_json_int_at(o, "exit_code")
				   : -1;
		k->start = (uint64_t)hr_json_int_at(span, "start");
		k->end = (uint64_t)hr_json_int_at(span, "end");
		k->length = (size_t)hr_json_int_at(o, "length");
		hr_buf_reset(&k->text);
		hr_buf_adds(&k->text, text);
		break;
	}
	json_object_put(all);
	if (k->found && !l->begun) {
		l->begun = l->echo = true;
		l->at = k->start;
	}
	return 0;
}

/* Shows what is there from l->at on, or what comes. 0 at the end; 1: it was given up for something
 * else that is to be done; -1: it cannot be had. */
static int
output(struct live *l, bool follow, uint64_t end)
{
	struct hr_http_answer a;
	struct sink k = {.l = l, .answer = &a, .end = end};
	struct hr_http_request q = {.method = "GET",
	    .sink = on_bytes,
	    .sink_arg = &k,
	    .header = "X-Handrail-Offset",
	    .watch_fd = follow ? l->all : -1,
	    .timeout_s = follow ? 0 : 60};
	struct hr_err e = {0};
	char path[128];
	int r;

	(void)snprintf(path, sizeof(path),
	    "/handrail/v1/output?offset=%" PRIu64 "&command=%" PRId64 "%s", l->at,
	    l->begun ? l->of.number : 0, follow ? "&follow=true" : "");
	q.url = path;
	r = hr_client_send(&l->client, &q, &a, &e);
	if (r != 0 && (a.fault == HR_HTTP_CANCELLED || k.enough))
		r = 1;
	hr_http_answer_done(&a);
	return r;
}

/* ---- what whoever looks on does ---- */

/* Programs lay out what they print for a terminal of this size. It is the command's own, so only of
 * one that was begun here. */
static void
resize(struct live *l)
{
	struct json_object *o = NULL;
	struct winsize w = {0};
	char body[96];

	if (*l->id == '\0' || !l->of.running || !l->tame.terminal ||
	    ioctl(1, TIOCGWINSZ, &w) != 0 || w.ws_row == 0 || w.ws_col == 0)
		return;
	(void)snprintf(body, sizeof(body), "{\"rows\":%d,\"columns\":%d,\"command\":%" PRId64 "}",
	    w.ws_row < 1000 ? w.ws_row : 1000, w.ws_col < 1000 ? w.ws_col : 1000, l->of.number);
	/* one that has just ended has none */
	(void)ask(l, "POST", "/handrail/v1/resize", body, &o);
	json_object_put(o);
	l->sized = true;
}

static void
leave(struct live *l)
{
	static const uint64_t one = 1;

	l->detached = true;
	(void)hr_fd_write_full(l->cancel, &one, sizeof(one), NULL); /* cannot fail */
}

static void
interrupt(struct live *l)
{
	struct json_object *o = NULL;
	char body[64];

	if (l->interrupts++ > 0) {
		leave(l);
	} else if (look(l) != 0) {
		/* the server knows no way to it: as without us */
		(void)signal(SIGINT, SIG_DFL);
		(void)raise(SIGINT);
		(void)pthread_sigmask(SIG_SETMASK, &l->before, NULL);
	} else if (!l->of.found) {
		cli_say("it has not begun; interrupt once more to leave it");
	} else if (l->of.running) {
		(void)snprintf(body, sizeof(body), "{\"signal\":\"INT\",\"command\":%" PRId64 "}",
		    l->of.number);
		(void)ask(l, "POST", "/handrail/v1/signal", body, &o);
		json_object_put(o);
	}
}

/* Waits until something is to be done: true: the thread has ended, or is not waited for. */
static bool
over(struct live *l, int timeout_ms)
{
	struct signalfd_siginfo info;
	struct epoll_event e[4];
	bool over = false;
	int n;

	do {
		n = epoll_wait(l->all, e, 4, timeout_ms);
	} while (n < 0 && errno == EINTR);
	for (int i = 0; i < n; i++) {
		if (e[i].data.fd == l->done)
			over = true;
		else if (e[i].data.fd == 1) /* nobody reads what would be shown */
			l->out = CLI_ERROR;
		else if (hr_fd_read(e[i].data.fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
			continue;
		else if (e[i].data.fd == l->signals)
			interrupt(l);
		else
			resize(l);
	}
	if (l->out != CLI_OK && !l->detached)
		leave(l);
	return over || l->detached;
}

/* Where the output ends now. */
static int
place(struct live *l)
{
	struct json_object *o = NULL;

	if (ask(l, "GET", "/handrail/v1/session", NULL, &o) != 0)
		return -1;
	l->at = (uint64_t)hr_json_int_at(hr_json_at(o, "output"), "end");
	json_object_put(o);
	return 0;
}

/* Shows what comes. How long to wait before the next step, for the end of all or a signal; -1: as
 * long as it takes, there is nothing to be seen before. */
static int
step(struct live *l)
{
	int r;

	/* while another's command runs: from here on the beginning of ours is seen */
	if (l->out != CLI_OK)
		return 0;
	if ((!l->begun && place(l) != 0) || look(l) != 0)
		return -1;
	if (l->begun && !l->of.running) {
		if (l->waits_only) /* for another one's end, by now */
			leave(l);
		return l->waits_only ? 0 : -1;
	}
	if (!l->of.found && !l->waits && !l->c->quiet)
		cli_say("another command runs in this shell; this one is next, or later");
	l->waits = !l->of.found;
	if (l->of.found && !l->sized)
		resize(l);
	r = output(l, true, UINT64_MAX);
	if (r < 0)
		return -1;
	/* a reload ends streams, and what another prints is not looked at for each byte */
	return r == 0 || !l->begun ? LOOK_MS : 0;
}

/* Until the thread has ended, or whoever looks on leaves. */
static void
watch(struct live *l, bool shows)
{
	int wait = shows ? QUICK_MS : -1;

	l->hears = true;
	while (!over(l, wait))
		wait = shows ? step(l) : -1;
	l->hears = false;
}

/* ---- the action ---- */

static void *
act(void *arg)
{
	static const uint64_t one = 1;
	struct live *l = arg;
	char id[33] = "";
	const struct hr_action_way way = {
	    .id = *l->id != '\0' ? l->id : id, .cancel_fd = l->cancel};

	if (*l->id == '\0')
		(void)hr_random_hex(id, sizeof(id) - 1, NULL);
	l->r = hr_sandbox_action_as(l->s, l->action, &way, &l->observation, &l->err);
	(void)hr_fd_write_full(l->done, &one, sizeof(one), NULL);
	return NULL;
}

static int
open_live(struct live *l, struct cli *c, struct hr_sandbox *s, bool shows)
{
	struct epoll_event e = {.events = EPOLLIN}, gone = {.data.fd = 1};
	const char *no_color = getenv("NO_COLOR");
	struct hr_err err = {0};
	sigset_t set, sizes;

	l->c = c;
	l->s = s;
	l->tame.terminal = isatty(1) == 1;
	l->tame.colours = l->tame.terminal && (no_color == NULL || *no_color == '\0');
	hr_buf_init(&l->held, OUT_MAX);
	hr_buf_init(&l->of.text, OUT_MAX);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigemptyset(&sizes);
	if (shows)
		(void)sigaddset(&sizes, SIGWINCH);
	if (hr_client_init(&l->client, &s->endpoint, &err) != 0)
		return cli_fail(&err);
	l->done = eventfd(0, EFD_CLOEXEC);
	l->cancel = eventfd(0, EFD_CLOEXEC);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC);
	l->sizes = signalfd(-1, &sizes, SFD_CLOEXEC);
	l->all = epoll_create1(EPOLL_CLOEXEC);
	e.data.fd = l->done;
	if (l->done < 0 || l->cancel < 0 || l->signals < 0 || l->sizes < 0 || l->all < 0 ||
	    epoll_ctl(l->all, EPOLL_CTL_ADD, l->done, &e) != 0 ||
	    (e.data.fd = l->signals, epoll_ctl(l->all, EPOLL_CTL_ADD, l->signals, &e) != 0) ||
	    (e.data.fd = l->sizes, epoll_ctl(l->all, EPOLL_CTL_ADD, l->sizes, &e) != 0)) {
		cli_say("descriptors: %s", strerror(errno));
		return CLI_ERROR;
	}
	/* a file cannot go: an error is said by the pipe or the terminal that can */
	if (shows)
		(void)epoll_ctl(l->all, EPOLL_CTL_ADD, 1, &gone);
	(void)pthread_sigmask(SIG_BLOCK, &set, &l->before);
	(void)pthread_sigmask(SIG_BLOCK, &sizes, NULL);
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
	hr_client_done(&l->client);
	hr_buf_done(&l->held);
	hr_buf_done(&l->of.text);
	free(l->observation);
}

/* Sends an action and waits for its answer. */
static int
perform(struct live *l, const char *action, bool shows)
{
	uint64_t n;
	int e;

	l->action = action;
	free(l->observation);
	l->observation = NULL;
	e = pthread_create(&l->thread, NULL, act, l);
	if (e != 0) {
		cli_say("a thread: %s", strerror(e));
		return CLI_ERROR;
	}
	watch(l, shows);
	(void)pthread_join(l->thread, NULL);
	(void)hr_fd_read(l->done, &n, sizeof(n));
	return CLI_OK;
}

static int
detached(struct live *l)
{
	const struct cli *c = l->c;
	const bool other = strcmp(c->name, "default") != 0;

	show(l, "", 0, true);
	if (l->out != CLI_OK) /* nobody was left to see it */
		return l->out;
	cli_say("left; what runs goes on, and \"handrail attach%s%s\" comes back to it",
	    other ? " -n " : "", other ? c->name : "");
	return CLI_COMMAND_TIMEOUT;
}

/* Waits on for a command that goes on, as long as it takes. */
static int
wait_on(struct live *l, bool shows)
{
	char *action = cli_action_text("run", cli_run_args("", WAIT_S), WAIT_S);
	int r = action != NULL ? CLI_OK : CLI_USAGE;

	l->waits_only = true;
	do {
		if (r == CLI_OK)
			r = perform(l, action, shows);
		if (r == CLI_OK && l->detached && l->interrupts < 2 && l->out == CLI_OK)
			l->detached = false; /* it has ended, and was waited for no longer */
		else if (r == CLI_OK && !l->detached && l->r != 0) {
			show(l, "", 0, true);
			r = cli_fail(&l->err);
		}
		if (r == CLI_OK && !l->detached && look(l) != 0) {
			show(l, "", 0, true);
			cli_say("the sandbox's server does not say what runs");
			r = CLI_DISCONNECTED;
		}
	} while (r == CLI_OK && !l->detached && l->of.running);
	free(action);
	return r;
}

/* The rest of what an ended command printed, and its exit status. */
static int
finish(struct live *l)
{
	/* an interrupt has nothing to interrupt but us */
	(void)pthread_sigmask(SIG_SETMASK, &l->before, NULL);
	if (!l->of.found) {
		show(l, "", 0, true);
		cli_say("the command is gone with its shell, which was replaced");
		return CLI_ERROR;
	}
	if (l->out == CLI_OK && l->at < l->of.end && output(l, false, l->of.end) < 0)
		cli_say("the end of the output cannot be had; \"handrail attach\" tries again");
	show(l, "", 0, true);
	if (l->out != CLI_OK)
		return l->out;
	if (l->of.exit_code >= 0)
		return l->of.exit_code & 0xFF;
	if (l->observation != NULL && l->r == 0)
		return cli_observed(l->c, l->observation, false);
	cli_say("the command ended with its shell");
	return CLI_ERROR;
}

static int
run_shown(struct live *l, bool limited)
{
	int r;

	if (l->r != 0) {
		show(l, "", 0, true);
		return cli_fail(&l->err);
	}
	/* refused, or of a server that has no list; what was shown is not shown again */
	if (look(l) != 0 || !l->of.found) {
		show(l, "", 0, true);
		return cli_observed(l->c, l->observation, !l->begun);
	}
	if (l->of.running && limited) {
		show(l, "", 0, true);
		return cli_observed(l->c, l->observation, false);
	}
	if (l->of.running) {
		if (!l->c->quiet)
			cli_say("it goes on; ^C interrupts it, ^C twice leaves it, "
				"\"handrail run -i TEXT\" is input for it");
		r = wait_on(l, true);
		if (r != CLI_OK)
			return r;
		if (l->detached)
			return detached(l);
	}
	return finish(l);
}

int
cli_live_run(struct cli *c, struct hr_sandbox *s, const char *action, bool limited)
{
	struct live l = {.signals = -1, .sizes = -1, .done = -1, .cancel = -1, .all = -1};
	const bool shows = isatty(1) == 1 && !c->json;
	struct hr_err err = {0};
	char *text = NULL;
	int r;

	/* a kind without a server */
	if (s->endpoint.url == NULL || (s->ops->action != NULL && !s->endpoint.serves)) {
		r = hr_sandbox_action(s, action, &text, &err) == 0 ? cli_observed(c, text, true)
								   : cli_fail(&err);
		free(text);
		return r;
	}
	r = open_live(&l, c, s, shows);
	if (r == CLI_OK && hr_random_hex(l.id, sizeof(l.id) - 1, &err) != 0)
		r = cli_fail(&err);
	if (r == CLI_OK)
		r = perform(&l, action, shows);
	if (r == CLI_OK && l.detached)
		r = detached(&l);
	else if (r == CLI_OK && shows)
		r = run_shown(&l, limited);
	else if (r == CLI_OK)
		r = l.r == 0 ? cli_observed(c, l.observation, true) : cli_fail(&l.err);
	close_live(&l);
	return r;
}

static int
told(struct live *l)
{
	char status[16];
	int code = l->of.exit_code >= 0 ? l->of.exit_code & 0xFF : CLI_ERROR, r;

	(void)snprintf(status, sizeof(status), "%d", code);
	r = cli_done(
	    l->c, "sid", l->c->name, "command", hr_buf_str(&l->of.text), "status", status, NULL);
	return r == CLI_OK ? code : r;
}

int
cli_live_attach(struct cli *c, struct hr_sandbox *s)
{
	struct live l = {.signals = -1, .sizes = -1, .done = -1, .cancel = -1, .all = -1};
	int r;

	if (s->endpoint.url == NULL || (s->ops->action != NULL && !s->endpoint.serves)) {
		cli_say(
		    "a sandbox of the kind %s has no shell to come back to: each \"handrail run\" "
		    "is one of its own",
		    s->ops->name);
		return CLI_ERROR;
	}
	r = open_live(&l, c, s, !c->json);
	if (r == CLI_OK && look(&l) != 0) {
		cli_say("the sandbox's server does not say what runs");
		r = CLI_DISCONNECTED;
	} else if (r == CLI_OK && !l.of.found) {
		cli_say("nothing was run in \"%s\" yet: \"handrail run COMMAND\"", c->name);
		r = CLI_NOT_FOUND;
	} else if (r == CLI_OK && l.of.running) {
		r = wait_on(&l, !c->json);
	}
	if (r == CLI_OK && !l.detached && c->json && l.of.found)
		r = told(&l);
	else if (r == CLI_OK)
		r = l.detached ? detached(&l) : finish(&l);
	close_live(&l);
	return r;
}
