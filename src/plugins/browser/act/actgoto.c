/* Functions that navigate: they wait until the page has loaded. */
#include "config.h"

#include "plugins/browser/act/act_int.h"

static void
navigation_log(struct br_run *run, const struct hr_span *url)
{
	hr_buf_adds(run->why, "\nCall log:\n  - navigating to \"");
	hr_buf_add(run->why, url->p, url->len);
	hr_buf_adds(run->why, "\", waiting until \"load\"\n");
}

/* Waits until a later document than number `commits` has loaded. Returns 0; 1 on timeout; -1 on an
 * error. */
static int
wait_load(struct br_run *run, uint64_t commits)
{
	for (;;) {
		struct br_tab *tab = br_tab_find(run->b, run->page);
		struct br_frame *top = tab != NULL ? br_top(tab) : NULL;

		if (tab == NULL || tab->crashed) {
			(void)act_page(run);
			return -1;
		}
		/* an answer shows that the page's load handlers have run */
		if (top != NULL && top->load && tab->commits != commits)
			return br_do(run->b, br_page(tab)->id, "Runtime.evaluate",
				   "{\"expression\":\"0\"}") != 0 &&
				       run->b->gone
				   ? -1
				   : 0;
		if (br_wait(run->b, run->b->until_ms) != 0)
			return run->b->err.code == HR_E_TIMEOUT ? 1 : -1;
	}
}

/* Stops a navigation that has committed no document, since no later one would wait for it. A
 * committed document continues to load. */
static void
stop_loading(struct br_run *run, uint64_t commits)
{
	struct br_tab *tab = br_tab_find(run->b, run->page);

	if (tab != NULL && tab->commits == commits)
		br_tell(run->b, br_page(tab)->id, "Page.stopLoading", "{}");
}

/* Reads Chromium's reply to a navigation. Returns 0: wait; 2: no need to wait; 1: an exception was
 * raised. */
static int
navigation_begun(struct br_run *run, const struct br_answer *a, const struct hr_span *url)
{
	char text[128];

	br_text_at(a, "errorText", text, sizeof(text));
	if (text[0] == '\0')
		return br_at(a, "loaderId") == BR_TAPE_NONE ? 2 : 0;
	if (br_tape_type(&a->tape, br_at(a, "isDownload")) == BR_TAPE_TRUE) {
		hr_buf_adds(run->why, "Error: Page.goto: Download is starting");
	} else {
		hr_buf_addf(run->why, "Error: Page.goto: %s at ", text);
		hr_buf_add(run->why, url->p, url->len);
	}
	navigation_log(run, url);
	return 1;
}

static int
timed_out(struct br_run *run, const char *api, uint64_t commits)
{
	hr_buf_addf(run->why, "TimeoutError: %s: Timeout %dms exceeded.", api, BR_GOTO_MS);
	stop_loading(run, commits);
	return 1;
}

int
act_goto(struct br_run *run, const struct br_call *c)
{
	static const char api[] = "Page.goto";
	const struct hr_span *url = &c->text;
	struct br_tab *tab = act_page(run);
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;
	uint64_t commits;
	int r;

	if (tab == NULL)
		return act_broken(run, api);
	br_limit(run->b, BR_GOTO_MS);
	run->noted = true;
	commits = tab->commits;
	a = br_ask(run->b, br_page(tab)->id, "Page.navigate", "{\"url\":$b,\"frameId\":$s}", url->p,
	    url->len, tab->target);
	if (a == NULL && run->b->err.code == HR_E_PROTO) {
		hr_buf_addf(run->why, "Error: Page.goto: Protocol error (Page.navigate): %s",
		    run->b->err.msg);
		navigation_log(run, url);
		return 1;
	}
	if (a != NULL) {
		r = navigation_begun(run, a, url);
		if (r != 0)
			return r == 2 ? 0 : r;
		r = wait_load(run, commits);
	} else {
		r = run->b->err.code == HR_E_TIMEOUT ? 1 : -1;
	}
	if (r > 0) {
		(void)timed_out(run, api, commits);
		navigation_log(run, url);
	}
	return r < 0 ? act_broken(run, api) : r;
}

int
act_history(struct br_run *run, const struct br_call *c)
{
	const bool back = c->fn == BR_GO_BACK;
	const char *api = back ? "Page.go_back" : "Page.go_forward";
	struct br_tab *tab = act_page(run);
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;
	uint32_t list, i;
	int64_t at, entry = -1;
	uint64_t moves, commits;
	int r;

	if (tab == NULL)
		return act_broken(run, api);
	br_limit(run->b, BR_GOTO_MS);
	a = br_ask(run->b, br_page(tab)->id, "Page.getNavigationHistory", "{}");
	if (a == NULL)
		return act_broken(run, api);
	at = br_tape_int(&a->tape, br_at(a, "currentIndex"), 0) + (back ? -1 : 1);
	list = br_at(a, "entries");
	for (i = br_tape_first(&a->tape, list); i != BR_TAPE_NONE && at >= 0;
	     i = br_tape_next(&a->tape, list, i))
		if (at-- == 0)
			entry = br_tape_int(&a->tape, br_tape_at(&a->tape, i, "id"), -1);
	if (entry < 0)
		return 0;
	tab = act_page(run);
	if (tab == NULL)
		return act_broken(run, api);
	moves = tab->moves;
	commits = tab->commits;
	run->noted = true;
	if (br_do(run->b, br_page(tab)->id, "Page.navigateToHistoryEntry", "{\"entryId\":$d}",
		entry) != 0)
		return act_broken(run, api);
	while ((tab = br_tab_find(run->b, run->page)) != NULL && tab->moves == moves) {
		r = br_wait(run->b, run->b->until_ms);
		if (r != 0)
			return run->b->err.code == HR_E_TIMEOUT ? timed_out(run, api, commits)
								: act_broken(run, api);
	}
	/* an unchanged document has loaded already */
	r = wait_load(run, UINT64_MAX);
	return r < 0 ? act_broken(run, api) : r > 0 ? timed_out(run, api, commits) : 0;
}
