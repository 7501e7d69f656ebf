/* Reads the shell's reports at its prompts: every report is checked against the process table and
 * the terminal before the core gets it, and trusted only as far as claims.c allows. */
#include "config.h"

#include "session/keeper_int.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/fd.h"
#include "base/clock.h"

/* number of reads per iteration, so that a process that floods the FIFO does not block the loop */
#define READS 32
#define REPORT_ROOM 8192
/* milliseconds to wait before a shell is ended: a requested report may be on its way */
#define LAST_MS 500

/* Returns true if the list "a:b:c" contains the word. */
static bool
has_option(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *p = list;

	while ((p = strstr(p, word)) != NULL) {
		if ((p == list || p[-1] == ':') && (p[len] == ':' || p[len] == '\0'))
			return true;
		p += len;
	}
	return false;
}

/* Sets p->is_past, and drops what was typed before the report. A shell that a signal interrupts
 * while it waits reports again, and may take the ack of the first report for that of the second:
 * what was typed then is for readline. */
static void
drop_before(struct hr_keeper *k, struct hr_core_prompt *p)
{
	p->is_past = p->is_session && hr_core_sees_readline(k->core) && !shell_waits(k);
	if (p->is_past)
		return;
	shell_unanswer(k);
	shell_drop_input(k, p->is_session);
}

static void
at_prompt(struct hr_keeper *k, const struct hr_report *r)
{
	struct hr_core_prompt p = {.exit_code = r->exit_code, .job = r->job, .flags = r->flags};
	bool known = r->pid == k->shell.pid && strcmp(r->nonce, k->hook.nonce) == 0;
	char link[8192];

	if (!known && !hr_shellproc_foreground(&k->shell, r->pid))
		/* the process has another terminal, is in the background, or is not a descendant of
		 * the shell */
		return;
	/* A shell with a nonce waits for an ack, even if the nonce is wrong. */
	p.is_session = r->pid == k->shell.pid && r->nonce[0] != '\0';
	k->renonce = p.is_session && !known;
	k->rehook = strcmp(r->hook, k->hook.expected) != 0;
	k->allexport = strchr(r->flags, 'a') != NULL;
	p.has_readline = has_option(r->options, "emacs") || has_option(r->options, "vi");
	if (p.is_session)
		files_forget(k);
	if (known && k->starts > 0)
		k->has_line = shell_take_back(k);
	/* Code after the hook may run for ever, or read the terminal by itself. */
	p.takes_lines =
	    known && k->has_line && !k->rehook && !k->suspicious && has_option(r->options, "emacs");
	k->from_us = p.takes_lines;
	p.line_pending = known && r->taken >= 0 && r->taken != k->given;
	p.username = claims_name(k, r);
	p.working_dir = known && r->pwd_right ? r->pwd : claims_directory(k, r, link, sizeof(link));
	p.py_path = known && r->python != NULL ? r->python : claims_python(k, r, p.working_dir);
	k->tells_hides = known && r->taken >= 0 && r->hides != HR_HIDES_UNKNOWN;
	if (k->tells_hides)
		k->hides = r->hides;
	k->said_pid = r->pid;
	k->place_looked = false;
	k->starts = 0;
	shell_unsize(k);
	drop_before(k, &p);
	hr_core_prompt(k->core, &p, hr_now_ms());
}

void
prompt_take(struct hr_keeper *k)
{
	struct hr_report r;

	for (;;) {
		hr_report_next(&k->reports, &r);
		if (r.nonce == NULL)
			return;
		/* All output written before the report is in the terminal by now. */
		shell_drain(k);
		at_prompt(k, &r);
	}
}

void
prompt_read(struct hr_keeper *k)
{
	struct hr_kept *p = k->kept;
	int turns = READS;
	ssize_t n;

	while (turns-- > 0) {
		resume_note_report(k);
		n = hr_fd_read(k->report_fd, p->report, sizeof(p->report));
		if (n <= 0)
			break;
		p->report_len = (size_t)n;
		hr_report_feed(&k->reports, p->report, (size_t)n);
		prompt_take(k);
		if ((size_t)n < sizeof(p->report))
			break;
	}
}

static void
on_report(void *arg)
{
	prompt_read(arg);
	keeper_arm(arg);
}

/* Reads the exported variables, each set ended by a NUL. A set that is too long is dropped. */
static void
on_exports(void *arg)
{
	struct hr_keeper *k = arg;
	char bytes[8192];
	const char *p, *nul;
	ssize_t n;
	int turns = READS;

	resume_unsure(k);
	while (turns-- > 0 && (n = hr_fd_read(k->exports_fd, bytes, sizeof(bytes))) > 0) {
		for (p = bytes; (nul = memchr(p, '\0', (size_t)(bytes + n - p))) != NULL;
		     p = nul + 1) {
			hr_buf_add(&k->exports_in, p, (size_t)(nul - p));
			if (k->exports_in.fail == HR_OK) {
				struct hr_buf old = k->exports;

				k->exports = k->exports_in;
				k->exports_in = old;
				resume_note_exports(k);
			}
			k->exports_due -= k->exports_due > 0;
			hr_buf_reset(&k->exports_in);
		}
		hr_buf_add(&k->exports_in, p, (size_t)(bytes + n - p));
	}
	resume_note(k);
}

int
prompt_open(struct hr_keeper *k, struct hr_err *err)
{
	/* A shell whose report was dropped waits for ever: reserve the room for most reports
	 * first. */
	if (hr_buf_reserve(&k->reports.in, REPORT_ROOM) == NULL)
		return hr_buf_check(&k->reports.in, err);
	k->report_readable = hr_loop_readable(k->loop, k->report_fd, on_report, k, err);
	k->exports_readable = hr_loop_readable(k->loop, k->exports_fd, on_exports, k, err);
	return k->report_readable != NULL && k->exports_readable != NULL ? 0 : -1;
}

void
prompt_close(struct hr_keeper *k)
{
	hr_watch_drop(&k->report_readable);
	hr_watch_drop(&k->exports_readable);
}

void
prompt_last(struct hr_keeper *k)
{
	int64_t end = hr_now_ms() + LAST_MS, left;
	struct pollfd in = {.fd = k->exports_fd, .events = POLLIN};

	while (k->exports_due > 0 && (left = end - hr_now_ms()) > 0 &&
	       (poll(&in, 1, (int)left) > 0 || errno == EINTR))
		on_exports(k);
	prompt_read(k);
}

int
prompt_renew(struct hr_keeper *k, struct hr_err *err)
{
	on_exports(k);                /* read the last output of the former shell */
	hr_buf_reset(&k->exports_in); /* drop an incomplete set */
	k->exports_due = 0;
	prompt_close(k);
	return files_share(k, err) == 0 ? prompt_open(k, err) : -1;
}
