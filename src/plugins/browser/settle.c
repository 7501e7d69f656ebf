/* The original sleeps for half a second and then waits for documents. This file finds what could
 * happen in that half second: timers due within it, requests, animations, navigations, new tabs,
 * downloads. Without any of these it does not wait. */
#include "config.h"

#include "plugins/browser/browser_int.h"

#define QUIET_MS 500
#define FRAMES_MS 1000
#define DOCUMENT_MS 3000
#define MOVE_MS 10000 /* ms for a navigation */
#define ASK_MS 2000
#define VIEWER_MS 4000 /* the page itself waits at most 2.5 s */

static double
number_of(struct browser *b, struct br_asking *asking)
{
	HR_CLEAN(br_answer_clean) struct br_answer *a = br_eval_end(b, asking);

	return a != NULL ? br_tape_number(&a->tape, br_value(a), 0) : 0;
}

/* Waits for a PDF viewer in the active tab. */
static void
wait_viewer(struct browser *b)
{
	const struct br_frame *top = b->active != NULL ? br_top(b->active) : NULL;

	if (top == NULL || top->ours == 0)
		return;
	br_limit(b, VIEWER_MS);
	br_answer_free(br_eval(b, br_page(b->active)->id, top->ours, "handrail.viewer()", true));
}

int64_t
br_busy_ms(double ms, int64_t limit_ms)
{
	if (!(ms > 0))
		return 0;
	return (ms < (double)limit_ms ? (int64_t)ms : limit_ms) + 1;
}

/* Returns for how many ms the active page's script keeps it busy. */
static int64_t
page_is_busy(struct browser *b, int64_t limit_ms)
{
	const struct br_frame *top =
	    b->active != NULL && !b->active->crashed ? br_top(b->active) : NULL;
	struct br_asking timers, players;
	bool ours = top != NULL && top->ours != 0;
	double ms, more;
	HR_BUF(code, 256);

	if (top == NULL || top->main == 0)
		return 0;
	br_limit(b, ASK_MS);
	br_json(&code, "(h => h && h.due ? h.due($d) : 0)(globalThis[Symbol.for('handrail')])",
	    limit_ms);
	br_eval_begin(b, &timers, br_page(b->active)->id, top->main, hr_buf_str(&code), true);
	if (ours)
		br_eval_begin(
		    b, &players, br_page(b->active)->id, top->ours, "handrail.busy()", true);
	ms = number_of(b, &timers);
	more = ours ? number_of(b, &players) : 0;
	if (more < 0)
		wait_viewer(b);
	if (more > ms && more <= (double)limit_ms)
		ms = more;
	return br_busy_ms(ms, limit_ms);
}

/* Returns true if something is in progress whose end an event will report. */
static bool
under_way(const struct browser *b, int64_t end_ms)
{
	const struct br_tab *tab;
	const struct br_session *s;
	const struct br_frame *f;

	if (b->downloads_begun > b->downloads_ended)
		return true;
	TAILQ_FOREACH(tab, &b->tabs, entry)
	{
		if (tab == b->active && tab->requests > 0)
			return true;
		TAILQ_FOREACH(s, &tab->sessions, entry)
		{
			TAILQ_FOREACH(f, &s->frames, entry)
			{
				if (f->moving || (f->due_ms != 0 && f->due_ms <= end_ms))
					return true;
			}
		}
	}
	return b->wanted > 0;
}

/* Returns true while a document is incomplete. */
static bool
coming(const struct browser *b, bool *ret_moves)
{
	const struct br_tab *tab;
	const struct br_session *s;
	const struct br_frame *f;
	bool found = false;

	*ret_moves = false;
	TAILQ_FOREACH(tab, &b->tabs, entry)
	{
		if (tab->crashed)
			continue;
		if (tab->fresh)
			found = true;
		TAILQ_FOREACH(s, &tab->sessions, entry)
		{
			TAILQ_FOREACH(f, &s->frames, entry)
			{
				bool top = f == TAILQ_FIRST(&s->frames);

				if ((top && f->moving) || (f->loader[0] != '\0' && !f->dom))
					found = true;
				/* a frame has just moved to another process */
				if (top && s != TAILQ_FIRST(&tab->sessions) && !f->dom)
					found = true;
				if (top && f->moving && tab == b->active &&
				    s == TAILQ_FIRST(&tab->sessions))
					*ret_moves = true;
			}
		}
	}
	return found;
}

static void
two_frames(struct browser *b)
{
	struct br_frame *top = b->active != NULL && !b->active->crashed ? br_top(b->active) : NULL;

	if (top == NULL || top->ours == 0)
		return;
	br_limit(b, FRAMES_MS);
	/* a background page paints no frames */
	br_answer_free(br_eval(b, br_page(b->active)->id, top->ours,
	    "document.visibilityState === 'visible' ? handrail.frames2() : 0", true));
}

/* Waits once. Returns -1 if Chromium has ended. */
static int
one_wait(struct browser *b, int64_t until_ms)
{
	return br_wait(b, until_ms) != 0 && b->err.code != HR_E_TIMEOUT ? -1 : 0;
}

int
br_settle(struct browser *b, bool noted)
{
	int64_t end = hr_now_ms() + QUIET_MS, start, ms;
	bool moves;

	if (noted)
		two_frames(b);
	for (;;) {
		int64_t now = hr_now_ms();

		if (b->gone)
			return hr_err_set(&b->err, HR_E_GONE, "%s", b->why);
		if (now >= end)
			break;
		ms = page_is_busy(b, end - now);
		if (ms > 0) {
			if (br_pause(b, hr_now_ms() + ms < end ? hr_now_ms() + ms : end) != 0)
				return -1;
		} else if (!under_way(b, end)) {
			break;
		} else if (one_wait(b, end) != 0) {
			return -1;
		}
	}
	b->wanted = 0; /* requested tabs that are still missing will not open */
	start = hr_now_ms();
	while (coming(b, &moves) && hr_now_ms() < start + (moves ? MOVE_MS : DOCUMENT_MS))
		if (one_wait(b, start + (moves ? MOVE_MS : DOCUMENT_MS)) != 0)
			return -1;
	return 0;
}

int
br_settle_tab(struct browser *b)
{
	struct br_tab *tab, *best = NULL;

	if (b->active != NULL)
		return 0;
	TAILQ_FOREACH(tab, &b->tabs, entry)
	{
		if (best == NULL || tab->used > best->used)
			best = tab;
	}
	br_limit(b, 20000);
	if (best == NULL)
		return br_tab_open(b) != NULL ? 0 : -1;
	br_use(b, best);
	return 0;
}
