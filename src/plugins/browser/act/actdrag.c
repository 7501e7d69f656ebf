/* Implements drag and drop, and files for a page's file chooser. */
#include "config.h"

#include "plugins/browser/act/act_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "plugins/browser/act/input.h"

#define CHOOSER_MS 100000
#define DRAG_MS 2000

/* ---- drag and drop ---- */

/* Sets *ret if the page started a drag. */
static int
drag_begun(struct br_run *run, struct br_tab *tab, bool *ret)
{
	struct br_session *s;
	struct br_frame *f;

	*ret = false;
	TAILQ_FOREACH(s, &tab->sessions, entry)
	{
		TAILQ_FOREACH(f, &s->frames, entry)
		{
			HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;

			if (f->ours == 0)
				continue;
			a = br_eval(run->b, s->id, f->ours, "handrail.dragging()", true);
			if (a == NULL)
				return -1;
			*ret = br_tape_type(&a->tape, br_value(a)) == BR_TAPE_TRUE;
			/* s and f may be freed after the call */
			return 0;
		}
	}
	return 0;
}

static int
drop(struct br_run *run, struct br_tab *tab)
{
	static const char *const steps[] = {"dragEnter", "dragOver", "drop"};
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (br_do(run->b, br_page(tab)->id, "Input.dispatchDragEvent",
			"{\"type\":$s,\"x\":$f,\"y\":$f,\"data\":$r,\"modifiers\":0}", steps[i],
			run->b->mouse_x, run->b->mouse_y, tab->drag) != 0)
			return -1;
		tab = br_tab_find(run->b, run->page);
		if (tab == NULL)
			return 0;
	}
	return 0;
}

/* Drags from the place where the mouse is pressed to the other element. */
static int
drag_to(struct br_run *run, const struct hr_span *to)
{
	struct br_tab *tab = br_tab_find(run->b, run->page);
	struct br_element el;
	uint64_t before = tab != NULL ? tab->dragged : 0;
	bool begun = false;
	int r = act_find(run, to, &el);

	if (r != 0)
		return r;
	tab = act_page(run);
	if (tab == NULL ||
	    br_do(run->b, br_page(tab)->id, "Input.setInterceptDrags", "{\"enabled\":true}") != 0)
		return act_broken(run, "Locator.hover");
	r = act_hover_element(run, &el, to, "left");
	tab = br_tab_find(run->b, run->page);
	if (r != 0 || tab == NULL)
		return r;
	if (drag_begun(run, tab, &begun) != 0)
		return act_broken(run, "Mouse.up");
	br_limit(run->b, DRAG_MS);
	while (begun && (tab = br_tab_find(run->b, run->page)) != NULL && tab->dragged == before)
		if (br_wait(run->b, run->b->until_ms) != 0)
			break;
	br_limit(run->b, BR_CALL_MS);
	tab = br_tab_find(run->b, run->page);
	if (tab == NULL)
		return 0;
	br_tell(run->b, br_page(tab)->id, "Input.setInterceptDrags", "{\"enabled\":false}");
	if (tab->dragged != before && tab->drag != NULL)
		r = drop(run, tab);
	else
		r = br_mouse_button(run->b, tab, false, "left", 0);
	return r < 0 ? act_broken(run, "Mouse.up") : r;
}

int
act_drag_and_drop(struct br_run *run, const struct br_call *c, const struct br_element *el)
{
	struct br_tab *tab;
	int r = act_hover_element(run, el, &c->bid, "none");

	if (r != 0)
		return r;
	tab = act_page(run);
	if (tab == NULL || br_mouse_button(run->b, tab, true, "left", 0) != 0)
		return act_broken(run, "Mouse.down");
	if (c->to_refused != NULL)
		return act_raises(run, c->to_refused);
	return drag_to(run, &c->to_bid);
}

/* ---- files ---- */

/* Appends absolute names as a JSON list. */
static int
files_of(struct br_run *run, const struct br_call *c, struct hr_buf *ret)
{
	size_t i;

	hr_buf_adds(ret, "[");
	for (i = 0; i < c->nlist; i++) {
		HR_FREE char *name = strndup(c->list[i].p, c->list[i].len);
		HR_FREE char *path = name != NULL ? hr_path_join(run->dir, name) : NULL;

		if (path == NULL)
			return hr_err_nomem(&run->b->err);
		if (access(path, F_OK) != 0) {
			hr_buf_addf(run->why, "Error: FileChooser.set_files: %s, access '%s'",
			    errno == EACCES ? "EACCES: permission denied"
					    : "ENOENT: no such file or directory",
			    path);
			return 1;
		}
		hr_buf_adds(ret, i > 0 ? "," : "");
		br_json(ret, "$s", path);
	}
	hr_buf_adds(ret, "]");
	return hr_buf_check(ret, &run->b->err);
}

static int
give_files(struct br_run *run, const struct br_call *c)
{
	static const char api[] = "FileChooser.set_files";
	struct br_tab *tab = act_page(run);
	struct br_element el = {.object = ""};
	struct br_session *s;
	int64_t node;
	HR_BUF(list, 64u << 20);
	char args[32];
	HR_FREE char *said = NULL;
	int r;

	if (c->refused != NULL)
		return act_raises(run, c->refused);
	if (tab == NULL)
		return act_broken(run, api);
	node = tab->chooser_node;
	s = br_session_find(run->b, tab->chooser_session, &tab);
	if (s == NULL || TAILQ_EMPTY(&s->frames))
		return act_raises(run, "Error: FileChooser.set_files: the element has gone");
	memcpy(el.session, s->id, sizeof(el.session));
	r = files_of(run, c, &list);
	if (r == 0)
		r = br_element_of_node(run->b, s, TAILQ_FIRST(&s->frames), node, el.object);
	(void)snprintf(args, sizeof(args), "%zu", c->nlist);
	if (r == 0 && (said = br_element_say(run->b, &el, "files", args)) == NULL)
		r = -1;
	if (r == 0 && said[0] == '!') {
		hr_buf_addf(run->why, "Error: %s: %s", api, said + 1);
		r = 1;
	} else if (r == 0 && c->nlist > 0) {
		r = br_do(run->b, el.session, "DOM.setFileInputFiles",
		    "{\"files\":$r,\"backendNodeId\":$d}", hr_buf_str(&list), node);
	}
	return r < 0 ? act_broken(run, api) : r;
}

int
act_upload_file(struct br_run *run, const struct br_call *c, const struct br_element *el)
{
	struct br_tab *tab = act_page(run);
	uint64_t before;
	int r;

	if (tab == NULL || br_do(run->b, el->session, "Page.setInterceptFileChooserDialog",
			       "{\"enabled\":true}") != 0)
		return act_broken(run, "Locator.click");
	before = (tab = br_tab_find(run->b, run->page)) != NULL ? tab->chooser : 0;
	r = act_click_element(run, el, &c->bid, "left", 0);
	br_limit(run->b, CHOOSER_MS);
	while (r == 0 && (tab = br_tab_find(run->b, run->page)) != NULL && tab->chooser == before)
		if (br_wait(run->b, run->b->until_ms) != 0) {
			if (run->b->err.code != HR_E_TIMEOUT)
				return act_broken(run, "Locator.click");
			r = act_raises(run,
			    "TimeoutError: Timeout 100000ms exceeded while waiting for event "
			    "\"filechooser\"\n=========================== logs "
			    "===========================\nwaiting for event \"filechooser\"\n"
			    "============================================================");
		}
	br_limit(run->b, BR_CALL_MS);
	br_tell(run->b, el->session, "Page.setInterceptFileChooserDialog", "{\"enabled\":false}");
	return r != 0 ? r : give_files(run, c);
}
