/* Tracks tabs, processes, frames and documents from Chromium's events. Nothing here blocks. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/browser/browser.h"
#include "plugins/browser/browser_int.h"
#include "plugins/browser/scripts.h"

#define WORLD "handrail"

/* ---- targets ---- */

static struct br_session *
session_add(struct br_tab *tab, const char *id, const char *target)
{
	struct br_session *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	TAILQ_INIT(&s->frames);
	memcpy(s->id, id, strlen(id) + 1);
	memcpy(s->target, target, strlen(target) + 1);
	/* the top frame of a page or process has its target's id */
	if (br_frame_put(s, target, "") == NULL) {
		free(s);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&tab->sessions, s, entry);
	return s;
}

static void
set_up(struct browser *b, struct br_session *s, const struct br_tab *page)
{
	const char *id = s->id;

	br_tell(b, id, "Page.enable", "{}");
	/* existing frames cause no event */
	s->tree = br_tell(b, id, "Page.getFrameTree", "{}");
	br_tell(b, id, "Page.setLifecycleEventsEnabled", "{\"enabled\":true}");
	/* must come before the world is made: an existing one gets no binding */
	br_tell(b, id, "Runtime.enable", "{}");
	br_tell(b, id, "Runtime.addBinding",
	    "{\"name\":\"handrail_active\",\"executionContextName\":\"" WORLD "\"}");
	br_tell(b, id, "Page.addScriptToEvaluateOnNewDocument",
	    "{\"source\":$s,\"runImmediately\":true}", br_world_js);
	/* a frame that waits for its debugger has no document: Chromium 140 ends its process if a
	 * world is made then */
	br_tell(b, id, "Page.addScriptToEvaluateOnNewDocument",
	    "{\"source\":$s,\"worldName\":\"" WORLD "\",\"runImmediately\":$r}", br_page_js,
	    page != NULL ? "true" : "false");
	br_tell(b, id, "DOM.enable", "{}");
	br_tell(b, id, "Network.enable",
	    "{\"maxTotalBufferSize\":0,\"maxResourceBufferSize\":0,\"maxPostDataSize\":0}");
	br_tell(b, id, "Target.setAutoAttach",
	    "{\"autoAttach\":true,\"waitForDebuggerOnStart\":true,\"flatten\":true,"
	    "\"filter\":[{\"type\":\"iframe\"},{\"exclude\":true}]}");
	if (page != NULL) {
		br_tell(b, id, "Emulation.setFocusEmulationEnabled", "{\"enabled\":true}");
		br_tell(b, id, "Emulation.setDeviceMetricsOverride",
		    "{\"width\":$d,\"height\":$d,\"deviceScaleFactor\":1,\"mobile\":false,"
		    "\"screenWidth\":$d,\"screenHeight\":$d}",
		    page->width, page->height, page->width, page->height);
		br_tell(b, id, "Emulation.setLocaleOverride", "{\"locale\":\"en-US\"}");
	}
	br_tell(b, id, "Runtime.runIfWaitingForDebugger", "{}");
}

static struct br_tab *
tab_add(struct browser *b, const char *session, const char *target)
{
	struct br_tab *tab = calloc(1, sizeof(*tab));

	if (tab == NULL)
		return NULL;
	TAILQ_INIT(&tab->sessions);
	memcpy(tab->target, target, strlen(target) + 1);
	if (session_add(tab, session, target) == NULL) {
		free(tab);
		return NULL;
	}
	tab->fresh = true;
	tab->width = b->wanted_width > 0 ? b->wanted_width : BR_WIDTH;
	tab->height = b->wanted_height > 0 ? b->wanted_height : BR_HEIGHT;
	b->wanted_width = b->wanted_height = 0;
	TAILQ_INSERT_TAIL(&b->tabs, tab, entry);
	b->ntabs++;
	if (b->wanted > 0)
		b->wanted--;
	return tab;
}

/* Adds the session of an out-of-process frame. Chromium 140 reports its parent frame only while the
 * frame is still in the process of `outer`. */
static struct br_session *
frame_session_add(struct browser *b, const char *outer, const char *id, const char *target,
    const struct br_tape *t, uint32_t info)
{
	struct br_tab *tab = NULL;
	struct br_session *s = br_session_find(b, outer, &tab), *ret;
	const struct br_frame *f = s != NULL ? br_frame_find(s, target) : NULL;

	ret = s != NULL ? session_add(tab, id, target) : NULL;
	if (ret == NULL)
		return NULL;
	br_copy(t, br_tape_at(t, info, "parentFrameId"), ret->above, sizeof(ret->above));
	if (ret->above[0] == '\0' && f != NULL)
		memcpy(ret->above, f->parent, sizeof(ret->above));
	if (ret->above[0] == '\0' && !TAILQ_EMPTY(&s->frames))
		memcpy(ret->above, TAILQ_FIRST(&s->frames)->id, sizeof(ret->above));
	return ret;
}

static void
on_attached(struct browser *b, const char *session, const struct br_tape *t, uint32_t params)
{
	uint32_t info = br_tape_at(t, params, "targetInfo");
	char id[BR_ID], target[BR_ID];
	struct br_tab *tab = NULL;
	struct br_session *s;

	br_copy(t, br_tape_at(t, params, "sessionId"), id, sizeof(id));
	br_copy(t, br_tape_at(t, info, "targetId"), target, sizeof(target));
	if (id[0] == '\0' || target[0] == '\0')
		return;
	if (br_tape_is(t, br_tape_at(t, info, "type"), "page") && session[0] == '\0') {
		tab = b->ntabs < BR_TABS_MAX ? tab_add(b, id, target) : NULL;
		if (tab == NULL) {
			br_tell(b, "", "Target.closeTarget", "{\"targetId\":$s}", target);
			return;
		}
		set_up(b, br_page(tab), tab);
	} else if (br_tape_is(t, br_tape_at(t, info, "type"), "iframe") &&
		   (s = frame_session_add(b, session, id, target, t, info)) != NULL) {
		set_up(b, s, NULL);
	} else {
		br_tell(b, id, "Runtime.runIfWaitingForDebugger", "{}");
		br_tell(b, session, "Target.detachFromTarget", "{\"sessionId\":$s}", id);
	}
}

static void
on_detached(struct browser *b, const struct br_tape *t, uint32_t params)
{
	struct br_tab *tab = NULL;
	struct br_session *s;
	char id[BR_ID];

	br_copy(t, br_tape_at(t, params, "sessionId"), id, sizeof(id));
	s = br_session_find(b, id, &tab);
	if (s == NULL)
		return;
	if (s == br_page(tab))
		br_tab_gone(b, tab);
	else
		br_session_free(b, tab, s);
}

static void
crashed(struct browser *b, struct br_tab *tab)
{
	tab->crashed = true;
	br_unanswered(b, br_page(tab)->id, "Page crashed");
}

static void
on_target_crashed(struct browser *b, const struct br_tape *t, uint32_t params)
{
	char target[BR_ID];
	struct br_tab *tab;

	br_copy(t, br_tape_at(t, params, "targetId"), target, sizeof(target));
	tab = br_tab_find(b, target);
	if (tab != NULL)
		crashed(b, tab);
}

/* ---- frames ---- */

static struct br_frame *
frame_in(struct br_session *s, const struct br_tape *t, uint32_t params)
{
	char id[BR_ID];

	br_copy(t, br_tape_at(t, params, "frameId"), id, sizeof(id));
	return br_frame_find(s, id);
}

static void
on_frame_attached(struct br_session *s, const struct br_tape *t, uint32_t params)
{
	char id[BR_ID], parent[BR_ID];

	br_copy(t, br_tape_at(t, params, "frameId"), id, sizeof(id));
	br_copy(t, br_tape_at(t, params, "parentFrameId"), parent, sizeof(parent));
	if (parent[0] != '\0')
		(void)br_frame_put(s, id, parent);
}

static void
on_frame_detached(struct br_session *s, const struct br_tape *t, uint32_t params)
{
	struct br_frame *f = frame_in(s, t, params);

	if (f != NULL && f != TAILQ_FIRST(&s->frames))
		br_frame_remove(s, f);
}

static void
set_url(struct br_tab *tab, const struct br_tape *t, uint32_t url, uint32_t fragment)
{
	char *whole;
	HR_FREE char *a = br_tape_strdup(t, url);
	HR_FREE char *f = br_tape_strdup(t, fragment);

	if (a != NULL && asprintf(&whole, "%s%s", a, f != NULL ? f : "") >= 0) {
		free(tab->url);
		tab->url = whole;
	}
}

static void
on_frame_navigated(
    struct br_tab *tab, struct br_session *s, const struct br_tape *t, uint32_t params)
{
	uint32_t frame = br_tape_at(t, params, "frame");
	struct br_frame *f, *top = TAILQ_FIRST(&s->frames);
	char id[BR_ID], parent[BR_ID];

	br_copy(t, br_tape_at(t, frame, "id"), id, sizeof(id));
	br_copy(t, br_tape_at(t, frame, "parentId"), parent, sizeof(parent));
	f = br_frame_put(s, id, parent);
	if (f == NULL)
		return;
	br_copy(t, br_tape_at(t, frame, "loaderId"), f->loader, sizeof(f->loader));
	f->moving = f->dom = f->load = false;
	f->due_ms = 0;
	if (f == top && s == br_page(tab)) {
		tab->commits++;
		tab->moves++;
		tab->requests = 0;
		set_url(tab, t, br_tape_at(t, frame, "url"), br_tape_at(t, frame, "urlFragment"));
	}
}

/* Adds a frame that existed before its page was observed, and its children. */
static void
learn_frame(struct br_tab *tab, struct br_session *s, const struct br_tape *t, uint32_t tree)
{
	uint32_t frame = br_tape_at(t, tree, "frame"), kids = br_tape_at(t, tree, "childFrames"), i;
	char id[BR_ID], parent[BR_ID];
	struct br_frame *f;

	br_copy(t, br_tape_at(t, frame, "id"), id, sizeof(id));
	br_copy(t, br_tape_at(t, frame, "parentId"), parent, sizeof(parent));
	f = br_frame_put(s, id, parent);
	if (f != NULL && f == br_top(tab) && tab->url == NULL)
		set_url(tab, t, br_tape_at(t, frame, "url"), br_tape_at(t, frame, "urlFragment"));
	for (i = br_tape_first(t, kids); f != NULL && i != BR_TAPE_NONE;
	     i = br_tape_next(t, kids, i))
		learn_frame(tab, s, t, i);
}

void
br_told(struct browser *b, int64_t id, const struct br_tape *t, uint32_t result)
{
	struct br_session *s;
	struct br_tab *tab;

	if (result == BR_TAPE_NONE)
		br_cast_refused(b, id);
	TAILQ_FOREACH(tab, &b->tabs, entry)
	{
		TAILQ_FOREACH(s, &tab->sessions, entry)
		{
			if (s->tree != id || id <= 0)
				continue;
			s->tree = 0;
			learn_frame(tab, s, t, br_tape_at(t, result, "frameTree"));
			br_cast_follow(b);
			return;
		}
	}
}

static void
on_lifecycle(struct br_tab *tab, struct br_session *s, const struct br_tape *t, uint32_t params)
{
	struct br_frame *f = frame_in(s, t, params);
	uint32_t name = br_tape_at(t, params, "name");

	if (f == NULL)
		return;
	if (f == br_top(tab) && br_tape_is(t, name, "load"))
		tab->fresh = false;
	if (br_tape_is(t, name, "DOMContentLoaded"))
		f->dom = true;
	else if (br_tape_is(t, name, "load"))
		f->dom = f->load = true;
}

static void
on_moving(struct br_frame *f, const struct br_tape *t, uint32_t params)
{
	uint32_t type = br_tape_at(t, params, "navigationType");

	f->due_ms = 0;
	f->moving =
	    !br_tape_is(t, type, "sameDocument") && !br_tape_is(t, type, "historySameDocument");
}

static void
on_wish(struct browser *b, struct br_frame *f, const struct br_tape *t, uint32_t params)
{
	uint32_t disposition = br_tape_at(t, params, "disposition");

	if (br_tape_is(t, disposition, "currentTab"))
		f->due_ms = hr_now_ms();
	else if (!br_tape_is(t, disposition, "download"))
		b->wanted++;
}

/* Returns a number from window.open()'s third argument; 0: none. */
static int64_t
feature(const char *text, const char *name)
{
	size_t len = strlen(name);
	const char *p;

	for (p = text; (p = strstr(p, name)) != NULL; p += len) {
		if ((p == text || p[-1] == ',') && p[len] == '=') {
			long n = strtol(p + len + 1, NULL, 10);

			return n >= 1 && n <= 4096 ? n : 0;
		}
	}
	return 0;
}

/* Handles a page's request for a window, which opens next. */
static void
on_open(struct browser *b, const struct br_tape *t, uint32_t params)
{
	uint32_t list = br_tape_at(t, params, "windowFeatures"), i;

	b->wanted++;
	b->wanted_width = b->wanted_height = 0;
	for (i = br_tape_first(t, list); i != BR_TAPE_NONE; i = br_tape_next(t, list, i)) {
		char text[64];

		br_copy(t, i, text, sizeof(text));
		if (feature(text, "width") > 0)
			b->wanted_width = feature(text, "width");
		if (feature(text, "height") > 0)
			b->wanted_height = feature(text, "height");
	}
}

/* ---- documents ---- */

static void
on_context(struct br_session *s, const struct br_tape *t, uint32_t params)
{
	uint32_t context = br_tape_at(t, params, "context"),
		 aux = br_tape_at(t, context, "auxData");
	struct br_frame *f = frame_in(s, t, aux);
	int64_t id = br_tape_int(t, br_tape_at(t, context, "id"), 0);

	if (f == NULL)
		return;
	if (br_tape_is(t, br_tape_at(t, context, "name"), WORLD)) {
		/* Chromium 140 makes the worlds of earlier documents again after this one's, and
		 * runs no script in them */
		if (f->ours == 0)
			f->ours = id;
	} else if (br_tape_type(t, br_tape_at(t, aux, "isDefault")) == BR_TAPE_TRUE)
		f->main = id;
}

/* Forgets the context of that id; 0: all contexts of the session. */
static void
contexts_gone(struct br_session *s, int64_t id)
{
	struct br_frame *f;

	TAILQ_FOREACH(f, &s->frames, entry)
	{
		if (id == 0 || f->ours == id)
			f->ours = 0;
		if (id == 0 || f->main == id)
			f->main = 0;
	}
}

/* Answers a dialog, which blocks the page. Leaving the page is always permitted. */
static void
on_dialog(struct browser *b, struct br_session *s, const struct br_tape *t, uint32_t params)
{
	bool leaves = br_tape_is(t, br_tape_at(t, params, "type"), "beforeunload");

	br_tell(
	    b, s->id, "Page.handleJavaScriptDialog", "{\"accept\":$r}", leaves ? "true" : "false");
}

static void
on_chooser(struct br_tab *tab, struct br_session *s, const struct br_tape *t, uint32_t params)
{
	tab->chooser++;
	tab->chooser_node = br_tape_int(t, br_tape_at(t, params, "backendNodeId"), 0);
	memcpy(tab->chooser_session, s->id, sizeof(tab->chooser_session));
}

static void
on_drag(struct br_tab *tab, const struct br_tape *t, uint32_t params)
{
	size_t len = 0;
	const char *p = br_tape_raw(t, br_tape_at(t, params, "data"), &len);

	free(tab->drag);
	tab->drag = p != NULL ? strndup(p, len) : NULL;
	tab->dragged++;
}

static void
on_request(struct br_tab *tab, const struct br_tape *t, uint32_t params)
{
	uint32_t type = br_tape_at(t, params, "type");

	/* endless requests are not waited for */
	if (br_tape_at(t, params, "redirectResponse") == BR_TAPE_NONE &&
	    !br_tape_is(t, type, "EventSource") && !br_tape_is(t, type, "Ping") &&
	    !br_tape_is(t, type, "WebSocket"))
		tab->requests++;
}

static void
request_ended(struct br_tab *tab)
{
	if (tab->requests > 0)
		tab->requests--;
}

/* ---- the table of events ---- */

static void
page_event(struct browser *b, struct br_tab *tab, struct br_session *s, const char *what,
    const struct br_tape *t, uint32_t params)
{
	struct br_frame *f = frame_in(s, t, params);

	if (strcmp(what, "frameAttached") == 0)
		on_frame_attached(s, t, params);
	else if (strcmp(what, "frameDetached") == 0)
		on_frame_detached(s, t, params);
	else if (strcmp(what, "frameNavigated") == 0)
		on_frame_navigated(tab, s, t, params);
	else if (strcmp(what, "lifecycleEvent") == 0)
		on_lifecycle(tab, s, t, params);
	else if (strcmp(what, "javascriptDialogOpening") == 0)
		on_dialog(b, s, t, params);
	else if (strcmp(what, "windowOpen") == 0)
		on_open(b, t, params);
	else if (strcmp(what, "fileChooserOpened") == 0)
		on_chooser(tab, s, t, params);
	else if (strcmp(what, "screencastFrame") == 0 && s == br_page(tab)) {
		/* otherwise a late picture of the tab that was active before would be shown */
		if (strcmp(tab->target, b->cast.target) == 0)
			br_cast_frame(b, s->id, t, params);
	} else if (f == NULL)
		return;
	else if (strcmp(what, "frameStartedNavigating") == 0)
		on_moving(f, t, params);
	else if (strcmp(what, "frameRequestedNavigation") == 0)
		on_wish(b, f, t, params);
	else if (strcmp(what, "frameStoppedLoading") == 0)
		f->moving = false;
	else if (strcmp(what, "frameScheduledNavigation") == 0)
		f->due_ms = hr_now_ms() +
			    (int64_t)(br_tape_number(t, br_tape_at(t, params, "delay"), 0) * 1000);
	else if (strcmp(what, "frameClearedScheduledNavigation") == 0)
		f->due_ms = 0;
	else if (strcmp(what, "navigatedWithinDocument") == 0) {
		f->moving = false;
		f->due_ms = 0;
		if (f != br_top(tab))
			return;
		tab->moves++;
		set_url(tab, t, br_tape_at(t, params, "url"), BR_TAPE_NONE);
	}
}

static void
session_event(struct browser *b, struct br_tab *tab, struct br_session *s, const char *method,
    const struct br_tape *t, uint32_t params)
{
	if (strncmp(method, "Page.", 5) == 0)
		page_event(b, tab, s, method + 5, t, params);
	else if (strcmp(method, "Runtime.executionContextCreated") == 0)
		on_context(s, t, params);
	else if (strcmp(method, "Runtime.executionContextDestroyed") == 0)
		contexts_gone(s, br_tape_int(t, br_tape_at(t, params, "executionContextId"), -1));
	else if (strcmp(method, "Runtime.executionContextsCleared") == 0)
		contexts_gone(s, 0);
	else if (strcmp(method, "Runtime.bindingCalled") == 0)
		br_use(b, tab);
	else if (strcmp(method, "Network.requestWillBeSent") == 0)
		on_request(tab, t, params);
	else if (strcmp(method, "Network.loadingFinished") == 0 ||
		 strcmp(method, "Network.loadingFailed") == 0)
		request_ended(tab);
	else if (strcmp(method, "Input.dragIntercepted") == 0)
		on_drag(tab, t, params);
	else if (strcmp(method, "Inspector.targetCrashed") == 0 && s == br_page(tab))
		crashed(b, tab);
}

enum { DOWNLOADS_MAX = 16 }; /* maximum of downloads in progress */

static void
cut_download(struct browser *b, const struct br_tape *t, uint32_t params)
{
	char guid[BR_ID];

	br_copy(t, br_tape_at(t, params, "guid"), guid, sizeof(guid));
	br_tell(b, "", "Browser.cancelDownload", "{\"guid\":$s,\"browserContextId\":$s}", guid,
	    b->context);
	b->download_cut = true;
}

static void
download_begins(struct browser *b, const struct br_tape *t, uint32_t params)
{
	b->downloads_begun++;
	if (b->downloads_begun - b->downloads_ended > DOWNLOADS_MAX)
		cut_download(b, t, params);
}

/* Bounds a download, which a page may continue for ever. */
static void
download_goes_on(struct browser *b, const struct br_tape *t, uint32_t params)
{
	if (!br_tape_is(t, br_tape_at(t, params, "state"), "inProgress"))
		b->downloads_ended++;
	else if (br_tape_number(t, br_tape_at(t, params, "receivedBytes"), 0) > b->download_max)
		cut_download(b, t, params);
}

void
br_event(struct browser *b, const char *session, const char *method, const struct br_tape *t,
    uint32_t params)
{
	struct br_tab *tab = NULL;
	struct br_session *s;

	if (strcmp(method, "Target.attachedToTarget") == 0)
		on_attached(b, session, t, params);
	else if (strcmp(method, "Target.detachedFromTarget") == 0)
		on_detached(b, t, params);
	else if (strcmp(method, "Target.targetCrashed") == 0)
		on_target_crashed(b, t, params);
	else if (strcmp(method, "Browser.downloadWillBegin") == 0)
		download_begins(b, t, params);
	else if (strcmp(method, "Browser.downloadProgress") == 0)
		download_goes_on(b, t, params);
	else if (session[0] != '\0' && (s = br_session_find(b, session, &tab)) != NULL)
		session_event(b, tab, s, method, t, params);
	br_cast_follow(b);
}
