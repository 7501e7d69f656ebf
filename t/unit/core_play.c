/* No shell is as mad as this one: prompts without commands, ends at any moment, garbage. */
#include "config.h"

#include "core_play.h"

#include <math.h>
#include <string.h>

#include "core_fake.h"

#define FOR_EVER INT64_C(1000000) /* ms: longer than any clock in a play */

struct play {
	struct fake f;
	const uint8_t *p, *end;
	bool endless; /* the request in hand has no clock */
	unsigned checked;
};

static uint8_t
next(struct play *y)
{
	return y->p < y->end ? *y->p++ : 0;
}

/* What a result must look like, whatever led to it. */
static void
check_last(struct play *y)
{
	const struct fake_result *r = &y->f.last;
	bool completed;

	if (y->checked == y->f.results)
		return;
	completed = strncmp(r->suffix, "\n[The command completed with", 28) == 0;
	hr_assert(y->f.results == y->checked + 1);
	y->checked = y->f.results;
	hr_assert(r->has_metadata == completed);
	if (r->is_error) {
		hr_assert(r->content_len > 0 && r->suffix[0] == '\0' && r->prefix[0] == '\0');
	} else if (r->suffix[0] == '\0') {
		hr_assert(strncmp(r->content, "ERROR: No previous", 18) == 0);
	} else if (!completed) {
		hr_assert(strstr(r->suffix, FAKE_ADVICE) != NULL && r->exit_code == -1);
	}
	hr_assert(r->hidden || r->content_len <= 4 * 30047);
	if (r->content_len > 0 && !r->is_error) {
		hr_assert(strchr(" \n\t\r", r->content[0]) == NULL);
		hr_assert(strchr(" \n\t\r", r->content[r->content_len - 1]) == NULL);
	}
}

static void
request(struct play *y, struct hr_run_request *r, uint8_t how)
{
	static const double timeouts[] = {0, 0.5, 30, -1, INFINITY, NAN, 1e300, 10};

	r->is_input = (how & 1) != 0;
	r->blocking = (how & 2) != 0;
	r->hidden = (how & 4) != 0;
	r->timeout = (how & 8) != 0 ? timeouts[how >> 5] : 0;
	if (hr_core_busy(y->f.core))
		return;
	y->endless = r->blocking && !(r->timeout == 0.5 || r->timeout == 30 || r->timeout == -1 ||
					r->timeout == 10);
	y->f.requests++;
	hr_core_request(y->f.core, r, y->f.now);
}

static void
ask_known(struct play *y)
{
	static const char *const texts[] = {"", "ls", "ls\npwd", "C-c", "C-d", "C-z", "C-1", "Up",
	    "exit 3", "echo \"x", "read -e x", "cat <<E\nx\nE", "a\rb\x1b[201~", "# c", "C-p", "y"};
	uint8_t which = next(y), how = next(y);
	const char *text = texts[which % (sizeof(texts) / sizeof(texts[0]))];
	struct hr_run_request r = {.command = hr_span_of(text)};

	request(y, &r, how);
}

static void
ask_any(struct play *y)
{
	uint8_t how = next(y);
	size_t n = next(y) % 64, left = (size_t)(y->end - y->p);
	const uint8_t *nul;
	struct hr_run_request r = {.command = {(const char *)y->p, 0}};

	n = n < left ? n : left;
	nul = memchr(y->p, '\0', n); /* refused before */
	r.command.len = nul != NULL ? (size_t)(nul - y->p) : n;
	y->p += n;
	request(y, &r, how);
}

static void
print_known(struct play *y)
{
	static const char *const texts[] = {"\033[?2004h", "\033[?2004l\r", "\033[?2004l", "\r",
	    HR_HOOK_STARTED, HR_HOOK_MORE, "\033[?1049h", "\033[?1049l", "\033[2J\033[3J", "text\n",
	    "text", "\n", "\rprogress", "\033c", "\033[6n", "   \n", "\033[5A\033[J"};
	HR_BUF(many, 1u << 20);
	uint8_t which = next(y);
	unsigned i;

	if ((which & 0xf0) != 0xf0) {
		fake_out(&y->f, texts[which & 15]);
		return;
	}
	for (i = 0; i < 300; i++)
		hr_buf_addf(&many, "line %u\r\n", i);
	hr_assert(many.fail == HR_OK);
	for (i = 0; i <= (which & 15u); i++)
		fake_bytes(&y->f, many.p, many.len);
}

static void
print_any(struct play *y)
{
	size_t n = next(y), left = (size_t)(y->end - y->p);

	n = n < left ? n : left;
	fake_bytes(&y->f, (const char *)y->p, n);
	y->p += n;
}

static void
report(struct play *y, bool own)
{
	uint8_t code = next(y);
	struct hr_core_prompt p = {.exit_code = code,
	    .job = code % 7 - 1,
	    .username = "me",
	    .working_dir = code % 5 == 0 ? "" : "/w",
	    .py_path = "",
	    .flags = code % 3 == 0 ? "hv" : "h",
	    .is_session = own};

	y->f.barren = 0;
	hr_core_prompt(y->f.core, &p, y->f.now);
}

/* As bash does where all goes well: takes the line, runs it, shows a prompt. */
static void
behave(struct play *y)
{
	if (y->f.typed.len == 0)
		return;
	fake_begin(&y->f);
	fake_out(&y->f, "out\n");
	fake_prompt(&y->f, next(y));
}

static void
step(struct play *y)
{
	struct fake *f = &y->f;
	uint8_t what = next(y);
	char reply[64];

	switch (what % 16) {
	case 0:
	case 1: ask_known(y); break;
	case 2: ask_any(y); break;
	case 3:
	case 4: print_known(y); break;
	case 5: print_any(y); break;
	case 6: report(y, true); break;
	case 7: report(y, false); break;
	case 8: fake_wait(f, what); break;
	case 9: fake_wait(f, 100 * what); break;
	case 10:
		f->now += 40 * what; /* late: several things are due at once */
		hr_core_timer(f->core, f->now);
		break;
	case 11:
		f->in_readline = (what & 0x10) != 0;
		f->echoes = (what & 0x20) != 0;
		f->restart_dir = (what & 0xc0) != 0 ? "/w" : NULL;
		break;
	case 12: (void)hr_core_replies(f->core, reply, sizeof(reply)); break;
	case 13: hr_core_exited(f->core, next(y), f->now); break;
	default: behave(y); break;
	}
	hr_assert(hr_core_busy(f->core) == (f->results < f->requests));
	check_last(y);
	if (f->typed.len > (1u << 20))
		fake_forget(f);
}

/* Whatever is in hand is answered if time passes, or, without a clock, if the shell ends. */
static void
finish(struct play *y)
{
	struct fake *f = &y->f;
	unsigned i;

	if (!y->endless && hr_core_busy(f->core)) {
		fake_wait(f, FOR_EVER);
		hr_assert(!hr_core_busy(f->core));
		check_last(y);
	}
	f->restart_dir = "/w";
	for (i = 0; i < 2 && hr_core_busy(f->core); i++) {
		f->barren = 0;
		hr_core_exited(f->core, 1, f->now);
		fake_report(f, 0);
		fake_readline(f);
	}
	if (hr_core_busy(f->core))
		hr_core_exited(f->core, 1, f->now);
	hr_assert(!hr_core_busy(f->core));
	check_last(y);
}

void
core_play(const uint8_t *p, size_t len)
{
	struct play y = {.p = p, .end = p + len};

	fake_init(&y.f);
	while (y.p < y.end)
		step(&y);
	finish(&y);
	fake_done(&y.f);
}
