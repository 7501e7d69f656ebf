#include "config.h"

#include "plugins/browser/step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include <json-c/json.h>

#include "base/log.h"
#include "base/path.h"
#include "plugins/browser/act/act.h"
#include "plugins/browser/browser_int.h"
#include "plugins/browser/observation.h"
#include "plugins/browser/page/pagetext.h"
#include "plugins/browser/page/picture.h"
#include "plugins/browser/view.h"
#include "proto/frame.h"
#include "proto/json.h"
#include "proto/python/repr.h"

#define PROGRAM_MAX (64u << 20)
#define RUN_MS 300000 /* the client has gone by then, but the next action waits for this one */
#define RESTORE_MS 10000
#define LOOKS 3
#define LATE "Browser environment took too long to respond."

struct step {
	struct browser *b;
	struct br_desk *d;
	bool interactive, whole_tree;
	struct json_object *asked; /* url, or browser_actions; borrowed */
	struct json_object *text;  /* text of the program that the observation echoes */
	struct hr_buf why;         /* text of the exception */
	struct hr_buf note;
	struct br_reply *reply;
};

static void
internal(struct br_reply *ret, const char *text)
{
	ret->status = 500;
	hr_buf_reset(&ret->body);
	br_json(&ret->body, "{\"detail\":$s}", text);
}

/* ---- replies without a page ---- */

/* Replies that the whole step failed; `why` has the reason. */
static void
put_failed(struct step *s)
{
	struct br_observation o = {.interactive = s->interactive,
	    .url = s->interactive ? "" : hr_json_text(s->asked),
	    .error = true,
	    .active = -1,
	    .no_action = true,
	    .why = &s->why,
	    .text = &s->why,
	    .note = hr_buf_str(&s->note)};
	HR_BUF(empty, 16);
	HR_BUF(nodes, 16);

	hr_buf_adds(&nodes, "'nodes'");
	o.png = o.marked = o.focused = &empty;
	o.no_tree = &nodes;
	if (o.url == NULL)
		o.url = "";
	hr_buf_reset(&s->reply->body);
	br_observation_put(&s->reply->body, &o);
	s->reply->status = 200;
}

/* Replies to a query for an evaluation's goal or rewards: there is no evaluation. */
static void
put_no_evaluation(struct step *s)
{
	struct br_observation o = {.interactive = true,
	    .url = "",
	    .active = -1,
	    .no_action = true,
	    .why = &s->why,
	    .note = ""};
	HR_BUF(nodes, 16);

	hr_buf_adds(&nodes, "'nodes'");
	o.no_tree = &nodes;
	br_observation_put(&s->reply->body, &o);
}

/* ---- restoring tabs ---- */

static void
note(struct step *s, const char *text)
{
	hr_buf_addf(&s->note, "%s%s", s->note.len > 0 ? " " : "", text);
}

/* Reopens the tabs of a lost browser at their addresses. */
static int
restore(struct step *s)
{
	struct browser *b = s->b;
	size_t i, n = hr_json_count(s->d->tabs);
	struct br_tab *tab, *active = NULL;
	int64_t end;
	bool wait = true;

	for (i = 0; i < n && i < BR_TABS_MAX - 1; i++) {
		const char *url = hr_json_text(hr_json_entry(s->d->tabs, i));

		tab = br_tab_open(b);
		if (tab == NULL)
			return -1;
		if ((int64_t)i == s->d->active)
			active = tab;
		if (url != NULL && strcmp(url, "about:blank") != 0)
			br_tell(b, br_page(tab)->id, "Page.navigate", "{\"url\":$s}", url);
	}
	end = hr_now_ms() + RESTORE_MS;
	while (wait && hr_now_ms() < end) {
		wait = false;
		TAILQ_FOREACH(tab, &b->tabs, entry)
		{
			if (br_top(tab) != NULL && br_top(tab)->moving)
				wait = true;
		}
		if (wait && br_wait(b, end) != 0 && b->err.code != HR_E_TIMEOUT)
			return -1;
	}
	if (active != NULL)
		br_use(b, active);
	return 0;
}

static int
begin(struct step *s)
{
	struct browser *b = s->b;
	struct hr_err err = {0};

	b->step_ms = hr_now_ms() + RUN_MS;
	if (b->pid != 0 && !b->gone)
		return 0;
	if (b->pid != 0)
		br_stop(b);
	if (br_start(b, &err) != 0) {
		b->err = err;
		return -1;
	}
	br_limit(b, 60000);
	if (s->d->lost && s->d->restored < 2) {
		s->d->restored++;
		note(s,
		    "The browser had ended and was started again: its tabs were opened at their "
		    "addresses again, without what had been done in them");
		return restore(s);
	}
	if (s->d->lost)
		note(s, "The browser ended again and was started again with an empty tab");
	return br_tab_open(b) != NULL ? 0 : -1;
}

/* Records the tabs, in case the browser ends now. */
static void
write_down(struct step *s)
{
	struct json_object *tabs = json_object_new_array();
	struct br_tab *tab;
	int64_t i = 0;

	s->d->active = -1;
	TAILQ_FOREACH(tab, &s->b->tabs, entry)
	{
		if (tabs != NULL)
			(void)json_object_array_add(tabs,
			    json_object_new_string(tab->url != NULL ? tab->url : "about:blank"));
		if (tab == s->b->active)
			s->d->active = i;
		i++;
	}
	if (tabs != NULL) {
		json_object_put(s->d->tabs);
		s->d->tabs = tabs;
	}
	s->d->lost = true; /* becomes true when this browser ends */
	s->d->restored = 0;
	br_desk_save(s->d);
}

/* ---- the program ---- */

static int
run_calls(struct step *s, struct br_program *p, bool *ret_noted)
{
	struct br_run run = {.b = s->b, .dir = s->d->dir, .why = &s->why};
	struct br_call call;
	size_t i;
	int r = 0;

	memcpy(run.page, s->b->active->target, sizeof(run.page));
	for (i = 0; i < br_program_calls(p) && r == 0; i++) {
		if (br_program_bind(p, i, &call, &s->why) != 0)
			r = s->why.len > 0 ? 1 : hr_err_nomem(&s->b->err);
		else
			r = br_act(&run, &call);
	}
	*ret_noted = run.noted;
	return r < 0 ? -1 : 0;
}

/* Returns 0 if the program ran, or raised `why`; -1 if Chromium has ended, or without memory. */
static int
run_program(struct step *s, bool *ret_noted)
{
	bool text = hr_json_type(s->text) == HR_PY_STR;
	size_t len = 0;
	const char *words = text ? hr_json_str(s->text, &len) : "";
	struct br_program *p;
	int r;

	if (br_settle_tab(s->b) != 0)
		return -1;
	p = br_program_parse(words, len, &s->why);
	if (p == NULL)
		return s->why.len > 0 ? 0 : hr_err_nomem(&s->b->err);
	r = run_calls(s, p, ret_noted);
	br_program_free(p);
	return r;
}

/* ---- the result ---- */

/* Replaces a page that crashed or does not respond by an empty one. */
static int
replace_tab(struct step *s, const char *what)
{
	struct br_tab *tab = s->b->active;
	char target[BR_ID];

	if (s->why.len == 0)
		hr_buf_addf(&s->why, "Error: %s", what);
	hr_buf_addf(&s->note,
	    "%s%s: its tab was closed, an empty one is in its place. It was at %s",
	    s->note.len > 0 ? " " : "", what, tab->url != NULL ? tab->url : "");
	hr_log(HR_LOG_WARNING, "%s", what);
	memcpy(target, tab->target, sizeof(target));
	br_limit(s->b, 10000);
	if (br_tab_open(s->b) == NULL)
		return -1;
	tab = br_tab_find(s->b, target);
	if (tab != NULL && br_tab_close(s->b, tab) != 0 && s->b->err.code == HR_E_TIMEOUT) {
		tab = br_tab_find(s->b, target);
		if (tab != NULL)
			br_tab_gone(s->b, tab); /* later events of the tab are ignored */
	}
	return s->b->gone ? -1 : 0;
}

/* Examines the page until the whole view is of one page at one address: repeats if a page comes to
 * the front or a document arrives meanwhile. */
static int
look(struct step *s, struct br_view *v)
{
	char target[BR_ID];
	uint64_t moves;
	bool hangs;
	int i;

	for (i = 0; i < LOOKS; i++) {
		if (i > 0 && br_settle(s->b, false) != 0)
			return -1;
		if (br_settle_tab(s->b) != 0)
			return -1;
		memcpy(target, s->b->active->target, sizeof(target));
		moves = s->b->active->moves;
		if (s->b->active->crashed) {
			if (replace_tab(s, "Page crashed") != 0)
				return -1;
			continue;
		}
		if (br_view_take(s->b, v, !s->interactive) != 0)
			return -1;
		if (!v->hangs && s->b->active != NULL && moves == s->b->active->moves &&
		    strcmp(target, s->b->active->target) == 0)
			return 0;
		if (!v->hangs && i == LOOKS - 1)
			return br_settle_tab(s->b); /* the page never comes to rest */
		hangs = v->hangs;
		br_view_done(v);
		br_view_init(v);
		if (hangs && replace_tab(s, "The page does not answer") != 0)
			return -1;
	}
	return 0;
}

/* Writes the picture to a file named by the time. Returns its name, or NULL if it is not
 * writable. */
static char *
write_picture(const struct step *s, const struct hr_buf *png)
{
	char name[96], *path = NULL;
	HR_FREE char *dir = hr_path_join(s->d->dir, ".browser_screenshots");
	struct hr_err err = {0};
	struct timeval now;
	struct tm tm;
	size_t n;

	if (png->len == 0 || dir == NULL)
		return NULL;
	(void)gettimeofday(&now, NULL);
	(void)localtime_r(&now.tv_sec, &tm);
	n = strftime(name, sizeof(name), "screenshot_%Y%m%d_%H%M%S_", &tm);
	(void)snprintf(name + n, sizeof(name) - n, "%06ld.png", (long)now.tv_usec);
	if (mkdir(dir, 0755) != 0 && errno != EEXIST)
		(void)hr_err_sys(&err, errno, "%s", dir);
	else
		path = hr_path_join(dir, name);
	if (path == NULL || hr_path_write(path, png->p, png->len, 0644, &err) != 0) {
		hr_log(HR_LOG_WARNING, "cannot save a screenshot: %s", err.msg);
		free(path);
		path = NULL;
	}
	return path;
}

static void
draw_marks(const struct br_view *v, struct hr_buf *ret)
{
	struct br_picture p;
	struct hr_err err = {0};

	if (v->png.len == 0)
		return;
	if (!br_picture_has_marks(&v->props)) {
		hr_buf_add(ret, v->png.p, v->png.len);
		return;
	}
	if (br_picture_read(&p, v->png.p, v->png.len, &err) != 0) {
		hr_log(HR_LOG_WARNING, "cannot read Chromium's screenshot: %s", err.msg);
		return;
	}
	br_picture_mark(&p, &v->props);
	if (br_picture_write(&p, ret, &err) != 0)
		hr_log(HR_LOG_WARNING, "cannot write a screenshot: %s", err.msg);
	br_picture_done(&p);
}

static void
put_page(struct step *s, const struct br_view *v)
{
	struct br_observation o = {.interactive = s->interactive,
	    .url = s->b->active->url != NULL ? s->b->active->url : "about:blank",
	    .error = s->why.len > 0,
	    .open_urls = s->d->tabs,
	    .active = s->d->active,
	    .whole_tree = s->whole_tree,
	    .ax = v->ax,
	    .props = &v->props,
	    .action = s->text,
	    .why = &s->why,
	    .focused = v->has_focus ? &v->focused : NULL,
	    .no_tree = &v->why_no_tree,
	    .png = &v->png,
	    .note = hr_buf_str(&s->note)};
	HR_BUF(marked, 64u << 20);
	HR_BUF(text, 192u << 20);
	HR_FREE char *path = write_picture(s, &v->png);

	draw_marks(v, &marked);
	o.marked = &marked;
	o.png_path = path;
	o.text = &text;
	if (!s->interactive)
		br_page_text(&text, hr_buf_str(&v->html), v->html.len);
	hr_buf_reset(&s->reply->body);
	br_observation_put(&s->reply->body, &o);
}

/* Replies with the download that a failed action ended in. Returns true if there was one. */
static bool
put_download(struct step *s)
{
	struct hr_err err = {0};
	HR_FREE char *path = NULL;

	if (!s->interactive || s->why.len == 0)
		return false;
	if (br_desk_download(s->d, &path, &err) != 0) {
		internal(s->reply, err.msg);
		return true;
	}
	if (path == NULL)
		return false;
	br_download_put(&s->reply->body, s->text, path);
	return true;
}

static int
perform(struct step *s)
{
	HR_CLEAN(br_view_done) struct br_view v;
	bool noted = false;
	int r;

	br_view_init(&v);
	if (begin(s) != 0)
		return -1;
	r = run_program(s, &noted);
	if (r == 0)
		r = br_settle(s->b, noted);
	if (r == 0)
		r = look(s, &v);
	if (s->b->download_cut)
		note(s, "A download was broken off: it was too large, or one of too many");
	s->b->download_cut = false;
	if (r != 0)
		return r;
	write_down(s);
	if (!put_download(s))
		put_page(s, &v);
	br_desk_save(s->d);
	if (br_page(s->b->active) != NULL)
		br_tell(s->b, br_page(s->b->active)->id, "Runtime.releaseObjectGroup",
		    "{\"objectGroup\":\"handrail\"}");
	return 0;
}

/* ---- the action ---- */

static int
take_action(struct step *s, const char *type, struct json_object *action)
{
	struct json_object *args = hr_json_at(action, "args");
	HR_BUF(text, PROGRAM_MAX);
	size_t len = 0;
	const char *url;

	s->interactive = strcmp(type, "browse_interactive") == 0;
	s->whole_tree = hr_py_truthy(hr_json_at(args, "return_axtree"));
	s->asked = hr_json_at(args, s->interactive ? "browser_actions" : "url");
	if (s->interactive) {
		s->text = json_object_get(s->asked);
		return 0;
	}
	if (hr_json_type(s->asked) != HR_PY_STR) {
		char said[128];

		(void)snprintf(said, sizeof(said),
		    "Internal server error: '%s' object has no attribute 'startswith'",
		    hr_py_type_name(hr_json_type(s->asked)));
		internal(s->reply, said);
		return -1;
	}
	url = hr_json_str(s->asked, &len);
	hr_buf_adds(&text, "goto(\"");
	if (strncmp(url, "http", 4) != 0)
		hr_buf_adds(&text, s->d != NULL ? s->d->dir : "");
	hr_buf_add(&text, url, len);
	hr_buf_adds(&text, "\")");
	s->text = json_object_new_string_len(hr_buf_str(&text), (int)text.len);
	return 0;
}

static void
step_init(struct step *s, struct br_reply *ret)
{
	memset(s, 0, sizeof(*s));
	s->reply = ret;
	hr_buf_init(&s->why, 1u << 20);
	hr_buf_init(&s->note, 4096);
	hr_buf_init(&ret->body, HR_FRAME_MAX - 65536);
	ret->status = 200;
}

static void
step_done(struct step *s)
{
	json_object_put(s->text);
	hr_buf_done(&s->why);
	hr_buf_done(&s->note);
}

void
br_step(struct browser *b, struct br_desk *d, const char *type, struct json_object *action,
    struct br_reply *ret)
{
	HR_CLEAN(step_done) struct step s;

	step_init(&s, ret);
	s.b = b;
	s.d = d;
	b->err = (struct hr_err){.code = HR_OK};
	if (take_action(&s, type, action) != 0)
		return;
	if (s.interactive && (hr_json_str_is(s.text, "GET_EVAL_GOAL") ||
				 hr_json_str_is(s.text, "GET_EVAL_REWARDS"))) {
		put_no_evaluation(&s);
	} else if (perform(&s) != 0) {
		hr_log(HR_LOG_ERROR, "an action in the browser failed: %s", b->err.msg);
		hr_buf_reset(&s.why);
		hr_buf_addf(&s.why, "Error: %s", b->err.msg);
		put_failed(&s);
	}
}

void
br_step_late(const char *type, struct json_object *action, struct br_reply *ret)
{
	HR_CLEAN(step_done) struct step s;

	step_init(&s, ret);
	if (take_action(&s, type, action) == 0) {
		hr_buf_adds(&s.why, LATE);
		put_failed(&s);
	}
}
