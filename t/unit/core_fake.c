/* Shared by the tests of the core and its fuzz target. */
#include "config.h"

#include "core_fake.h"

#include <stdlib.h>
#include <string.h>

#ifdef FAKE_RESUMES
#define RESUMES true
#else
#define RESUMES false
#endif

static char *
copy(const struct hr_span *t)
{
	char *s = calloc(1, t->len + 1);

	hr_assert(s != NULL);
	if (t->len > 0)
		memcpy(s, t->p, t->len);
	return s;
}

static void
result_done(struct fake_result *r)
{
	free(r->content);
	free(r->command);
	free(r->username);
	free(r->hostname);
	free(r->working_dir);
	free(r->py_path);
	free(r->prefix);
	free(r->suffix);
	memset(r, 0, sizeof(*r));
}

static void
leave(const struct fake *f, bool on)
{
	if (f->outside != NULL)
		f->outside(on);
}

static void
op_type(void *arg, const char *p, size_t len, bool literal)
{
	struct fake *f = arg;

	leave(f, true);
	hr_buf_add(&f->typed, p, len);
	f->literal = literal;
	leave(f, false);
}

static void
op_ack(void *arg, bool careful)
{
	struct fake *f = arg;

	f->acks++;
	f->careful = careful;
}

static bool
op_give(void *arg, const char *p, size_t len)
{
	struct fake *f = arg;

	if (!f->takes_lines)
		return false;
	hr_buf_add(&f->given, p, len);
	hr_buf_addc(&f->given, '|');
	return true;
}

static bool
op_take_back(void *arg)
{
	struct fake *f = arg;
	bool any = f->given.len > 0;

	hr_buf_reset(&f->given);
	return any;
}

static bool
op_away(void *arg)
{
	return ((struct fake *)arg)->away;
}

static bool
op_strays(void *arg)
{
	return ((struct fake *)arg)->strays;
}

static int64_t
op_works(void *arg)
{
	int64_t ms = ((struct fake *)arg)->works;

	return ms > 0 ? ms : -1;
}

static enum hr_core_seen
op_look(void *arg)
{
	struct fake *f = arg;

	f->looks++;
	return f->seen;
}

static bool
op_in_readline(void *arg)
{
	return ((struct fake *)arg)->in_readline;
}

static bool
op_echoes(void *arg)
{
	return ((struct fake *)arg)->echoes;
}

static bool
op_blind(void *arg)
{
	return ((struct fake *)arg)->blind;
}

static const char *
op_restart(void *arg, struct hr_err *err)
{
	struct fake *f = arg;

	f->restarts++;
	/* the keeper gives up when two in a row show no prompt */
	if (f->restart_dir == NULL || f->barren >= 2) {
		f->barren = 0;
		(void)hr_err_set(err, HR_E_SYS, "no shell today");
		return NULL;
	}
	f->barren++;
	return f->restart_dir;
}

static void
op_result(void *arg, const struct hr_run_result *r)
{
	struct fake *f = arg;

	leave(f, true);
	result_done(&f->last);
	f->last.is_error = r->is_error;
	f->last.hidden = r->hidden;
	f->last.has_metadata = r->has_metadata;
	f->last.exit_code = r->exit_code;
	f->last.job = (int)r->pid;
	f->last.clock = r->clock;
	f->last.content = copy(&r->content);
	f->last.content_len = r->content.len;
	f->last.command = copy(&r->command);
	f->last.username = copy(&r->username);
	f->last.hostname = copy(&r->hostname);
	f->last.working_dir = copy(&r->working_dir);
	f->last.py_path = copy(&r->py_path);
	f->last.prefix = copy(&r->prefix);
	f->last.suffix = copy(&r->suffix);
	f->results++;
	/* one result for each request, never two, and not busy when it is given */
	hr_assert(f->results <= f->requests);
	hr_assert(!hr_core_busy(f->core));
	leave(f, false);
}

static void
op_ready(void *arg)
{
	((struct fake *)arg)->readies++;
}

static struct hr_core *
new_core(struct fake *f)
{
	struct hr_core_ops ops = {.type = op_type,
	    .ack = op_ack,
	    .give = op_give,
	    .take_back = op_take_back,
	    .strays = op_strays,
	    .away = op_away,
	    .works = op_works,
	    .in_readline = op_in_readline,
	    .blind = op_blind,
	    .echoes = op_echoes,
	    .restart = op_restart,
	    .result = op_result,
	    .ready = op_ready};
	struct hr_core_config config = {
	    .no_change_ms = FAKE_NO_CHANGE_MS, .hostname = "box", .hook = &f->hook};
	struct hr_core *core;

	if (f->sees)
		ops.look = op_look;
	core = hr_core_new(&config, &ops, f, NULL);
	hr_assert(core != NULL);
	return core;
}

static void
init(struct fake *f, bool seen)
{
	struct hr_err err = {0};

	memset(f, 0, sizeof(*f));
	f->sees = seen;
	hr_buf_init(&f->fed, 1u << 20);
	f->now = 1000000;
	f->echoes = true;
	f->restart_dir = "/w";
	hr_buf_init(&f->typed, 256u << 20);
	hr_buf_init(&f->given, 256u << 20);
	hr_assert(hr_hook_init(&f->hook, "/s", NULL, &err) == 0);
	f->core = new_core(f);
	hr_core_started(f->core, "/w", f->now);
}

void
fake_init(struct fake *f)
{
	init(f, false);
}

void
fake_init_seen(struct fake *f)
{
	init(f, true);
}

void
fake_done(struct fake *f)
{
	hr_core_free(f->core);
	hr_hook_done(&f->hook);
	hr_buf_done(&f->typed);
	hr_buf_done(&f->given);
	hr_buf_done(&f->fed);
	result_done(&f->last);
}

void
fake_forget(struct fake *f)
{
	hr_buf_reset(&f->typed);
}

/* ---- another core ---- */

static void
feed(void *arg, struct hr_view *v, uint64_t fed)
{
	struct fake *f = arg;
	uint64_t end = f->fed_from + f->fed.len, to = fed < end ? fed : end;

	hr_assert(f->replayed <= to);
	if (f->replayed < to)
		hr_view_feed(v, f->fed.p + (f->replayed - f->fed_from), (size_t)(to - f->replayed));
	f->replayed = to;
}

void
fake_resume(struct fake *f)
{
	struct hr_core *next;

	if (!RESUMES || f->fed.fail != HR_OK || f->fed.len > (64u << 10) ||
	    !hr_core_keep(f->core, &f->kept))
		return;
	next = new_core(f);
	hr_assert(f->kept.points.reset >= f->fed_from);
	f->replayed = f->kept.points.reset;
	hr_buf_drop_front(&f->fed, (size_t)(f->replayed - f->fed_from));
	f->fed_from = f->replayed;
	hr_core_replay(next, &f->kept, feed, f);
	hr_core_resume(next, &f->kept);
	hr_core_free(f->core);
	f->core = next;
	f->fed_from = 0;
	f->resumed++;
}

void
fake_bytes(struct fake *f, const char *p, size_t len)
{
	struct hr_view_points before, after;

	hr_view_points(hr_core_view(f->core), &before);
	hr_core_output(f->core, p, len, f->now);
	hr_view_points(hr_core_view(f->core), &after);
	if (RESUMES && after.fed > before.fed) {
		hr_buf_add(&f->fed, p, len);
	}
	/* the keeper takes the terminal's answers before it ends a turn */
	if (memmem(p, len, "\033[6n", 4) == NULL && memmem(p, len, "\033[c", 3) == NULL)
		fake_resume(f);
}

void
fake_out(struct fake *f, const char *text)
{
	HR_BUF(b, 64u << 20);

	leave(f, true);
	for (; *text != '\0'; text++) {
		if (*text == '\n')
			hr_buf_addc(&b, '\r');
		hr_buf_addc(&b, *text);
	}
	hr_assert(b.fail == HR_OK);
	leave(f, false);
	fake_bytes(f, hr_buf_str(&b), b.len);
}

void
fake_take(struct fake *f)
{
	fake_out(f, "some echo\nof it ");
	fake_out(f, "\033[?2004l\r");
	fake_forget(f);
	f->in_readline = false;
}

void
fake_take_given(struct fake *f)
{
	hr_assert(f->given.len > 1);
	hr_buf_reset(&f->given);
}

void
fake_begin(struct fake *f)
{
	fake_take(f);
	fake_out(f, HR_HOOK_STARTED);
}

void
fake_interrupted(struct fake *f)
{
	fake_out(f, "^C\033[?2004l\r\033[?2004h\033[?2004l\r\r\n");
	f->in_readline = false;
}

void
fake_report(struct fake *f, int exit_code)
{
	const struct hr_core_prompt p = {.exit_code = exit_code,
	    .job = -1,
	    .username = "me",
	    .working_dir = "/w",
	    .py_path = "/usr/bin/python",
	    .flags = f->tracing ? "himxBs" : "himBs",
	    .has_readline = !f->no_editing,
	    .is_session = true,
	    .is_past = f->in_readline && hr_core_sees_readline(f->core),
	    .takes_lines = f->takes_lines,
	    .line_pending = f->given.len > 1};

	f->barren = 0;
	hr_core_prompt(f->core, &p, f->now);
	fake_resume(f);
}

void
fake_readline(struct fake *f)
{
	f->in_readline = true;
	fake_out(f, "\033[?2004h");
}

void
fake_prompt(struct fake *f, int exit_code)
{
	fake_report(f, exit_code);
	fake_readline(f);
}

void
fake_start(struct fake *f)
{
	fake_prompt(f, 0);
}

void
fake_ask(struct fake *f, const struct fake_ask *a)
{
	struct hr_run_request r = {.command = hr_span_of(a->command),
	    .is_input = a->is_input,
	    .blocking = a->blocking,
	    .hidden = a->hidden,
	    .timeout = a->timeout,
	    .ready_s = a->ready_s};

	f->requests++;
	hr_core_request(f->core, &r, f->now);
	fake_resume(f);
}

void
fake_wait(struct fake *f, int64_t ms)
{
	int64_t until = f->now + ms, at;

	while ((at = hr_core_deadline(f->core)) <= until) {
		if (at > f->now)
			f->now = at;
		hr_core_timer(f->core, f->now);
		fake_resume(f);
		/* a deadline that was served does not come back at once */
		hr_assert(hr_core_deadline(f->core) > f->now);
	}
	f->now = until;
}
