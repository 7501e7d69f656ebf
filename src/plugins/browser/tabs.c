/* Finds, uses, opens and closes tabs, their processes and frames. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/browser/browser.h"
#include "plugins/browser/browser_int.h"

/* ---- finding ---- */

struct br_session *
br_page(struct br_tab *tab)
{
	return TAILQ_FIRST(&tab->sessions);
}

struct br_frame *
br_top(struct br_tab *tab)
{
	struct br_session *s = br_page(tab);

	return s != NULL ? TAILQ_FIRST(&s->frames) : NULL;
}

struct br_tab *
br_tab_find(struct browser *b, const char *target)
{
	struct br_tab *tab;

	TAILQ_FOREACH(tab, &b->tabs, entry)
	{
		if (strcmp(tab->target, target) == 0)
			return tab;
	}
	return NULL;
}

struct br_session *
br_session_find(struct browser *b, const char *id, struct br_tab **ret_tab)
{
	struct br_session *s;
	struct br_tab *tab;

	TAILQ_FOREACH(tab, &b->tabs, entry)
	{
		TAILQ_FOREACH(s, &tab->sessions, entry)
		{
			if (strcmp(s->id, id) == 0) {
				*ret_tab = tab;
				return s;
			}
		}
	}
	return NULL;
}

struct br_frame *
br_frame_find(struct br_session *s, const char *id)
{
	struct br_frame *f;

	TAILQ_FOREACH(f, &s->frames, entry)
	{
		if (strcmp(f->id, id) == 0)
			return f;
	}
	return NULL;
}

struct br_frame *
br_frame_of(struct br_tab *tab, const char *id, struct br_session **ret)
{
	struct br_session *s;
	struct br_frame *f;

	TAILQ_FOREACH(s, &tab->sessions, entry)
	{
		f = br_frame_find(s, id);
		if (f != NULL) {
			*ret = s;
			return f;
		}
	}
	return NULL;
}

struct br_frame *
br_frame_put(struct br_session *s, const char *id, const char *parent)
{
	struct br_frame *f = br_frame_find(s, id);

	if (f != NULL || id[0] == '\0')
		return f;
	if (s->nframes >= BR_FRAMES_MAX)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return NULL;
	memcpy(f->id, id, strlen(id) + 1);
	memcpy(f->parent, parent, strlen(parent) + 1);
	TAILQ_INSERT_TAIL(&s->frames, f, entry);
	s->nframes++;
	return f;
}

static void
frame_free(struct br_session *s, struct br_frame *f)
{
	TAILQ_REMOVE(&s->frames, f, entry);
	s->nframes--;
	free(f);
}

void
br_frame_remove(struct br_session *s, struct br_frame *f)
{
	struct br_frame *kid;

	f->parent[0] = '\0'; /* breaks a cycle of parents */
again:
	TAILQ_FOREACH(kid, &s->frames, entry)
	{
		if (kid != f && strcmp(kid->parent, f->id) == 0) {
			br_frame_remove(s, kid);
			goto again;
		}
	}
	frame_free(s, f);
}

void
br_session_free(struct browser *b, struct br_tab *tab, struct br_session *s)
{
	br_unanswered(b, s->id, "Target page, context or browser has been closed");
	while (!TAILQ_EMPTY(&s->frames))
		frame_free(s, TAILQ_FIRST(&s->frames));
	TAILQ_REMOVE(&tab->sessions, s, entry);
	free(s);
}

void
br_tab_gone(struct browser *b, struct br_tab *tab)
{
	while (!TAILQ_EMPTY(&tab->sessions))
		br_session_free(b, tab, TAILQ_FIRST(&tab->sessions));
	TAILQ_REMOVE(&b->tabs, tab, entry);
	b->ntabs--;
	if (b->active == tab)
		b->active = NULL;
	free(tab->url);
	free(tab->drag);
	free(tab);
}

void
br_use(struct browser *b, struct br_tab *tab)
{
	tab->used = ++b->uses;
	b->active = tab;
	br_cast_follow(b);
}

/* ---- opening and closing ---- */

struct br_tab *
br_tab_open(struct browser *b)
{
	HR_CLEAN(br_answer_clean)
	struct br_answer *a = br_ask(b, "", "Target.createTarget",
	    "{\"url\":\"about:blank\",\"browserContextId\":$s}", b->context);
	struct br_frame *top = NULL;
	struct br_tab *tab = NULL;
	char target[BR_ID];

	if (a == NULL)
		return NULL;
	br_text_at(a, "targetId", target, sizeof(target));
	for (;;) {
		tab = br_tab_find(b, target);
		top = tab != NULL ? br_top(tab) : NULL;
		if (top != NULL && top->ours != 0)
			break;
		if (br_wait(b, b->until_ms) != 0)
			return NULL;
	}
	if (tab->url == NULL)
		tab->url = strdup("about:blank");
	br_use(b, tab);
	return tab;
}

int
br_tab_close(struct browser *b, struct br_tab *tab)
{
	char target[BR_ID];

	memcpy(target, tab->target, sizeof(target));
	if (br_do(b, "", "Target.closeTarget", "{\"targetId\":$s}", target) != 0)
		return -1;
	while (br_tab_find(b, target) != NULL)
		if (br_wait(b, b->until_ms) != 0)
			return -1;
	return 0;
}

int
br_tab_front(struct browser *b, struct br_tab *tab)
{
	if (strcmp(b->front, tab->target) == 0)
		return 0;
	memcpy(b->front, tab->target, sizeof(b->front));
	if (br_do(b, "", "Target.activateTarget", "{\"targetId\":$s}", b->front) != 0)
		return -1;
	tab = br_tab_find(b, b->front);
	return tab == NULL ? 0 : br_do(b, br_page(tab)->id, "Page.bringToFront", "{}");
}
