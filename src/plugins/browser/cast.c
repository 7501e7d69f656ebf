/* Keeps pictures for viewers. Chromium sends only a few unacknowledged pictures and counts
 * acknowledgements, so this program sets the pace. Only the last picture is kept, however slowly a
 * viewer reads. */
#include "config.h"

#include "plugins/browser/cast.h"

#include <stdio.h>
#include <string.h>

#include "plugins/browser/browser.h"

#define PACE_MS 100 /* ms between a picture and its acknowledgement */
#define REST_MS 300 /* ms without pictures, after which the page counts as unchanging */
#define IN_FLIGHT 3 /* Chromium drops pictures while this many are encoded or unacknowledged */
#define PICTURE_MAX (8u << 20)
#define URL_MAX 4096 /* maximum bytes of an address; longer ones are cut */

void
br_cast_init(struct br_cast *c)
{
	memset(c, 0, sizeof(*c));
	hr_buf_init(&c->picture, PICTURE_MAX);
}

void
br_cast_done(struct br_cast *c)
{
	hr_watch_drop(&c->pace);
	hr_buf_done(&c->picture);
}

static void
begin(struct browser *b, struct br_tab *tab)
{
	b->cast.begun = br_tell(b, br_page(tab)->id, "Page.startScreencast",
	    "{\"format\":\"jpeg\",\"quality\":70,\"maxWidth\":$d,\"maxHeight\":$d}",
	    (int64_t)BR_WIDTH, (int64_t)BR_HEIGHT);
}

static void
end(struct browser *b, struct br_tab *tab)
{
	br_tell(b, br_page(tab)->id, "Page.stopScreencast", "{}");
}

/* Ends a burst of pictures. Chromium may have dropped the last one of a burst that was long enough,
 * and sends no other until the page changes or the cast starts again. */
static void
settle(struct browser *b)
{
	struct br_cast *c = &b->cast;
	struct br_tab *tab = c->burst >= IN_FLIGHT ? br_tab_find(b, c->target) : NULL;

	hr_watch_drop(&c->pace);
	c->burst = 0;
	if (tab != NULL) {
		end(b, tab);
		begin(b, tab);
	}
}

static void
acknowledge(void *arg)
{
	struct browser *b = arg;
	struct br_cast *c = &b->cast;
	struct hr_err err;

	if (c->unacked == 0) {
		settle(b);
		return;
	}
	for (; c->unacked > 0; c->unacked--)
		br_tell(b, c->ack_session, "Page.screencastFrameAck", "{\"sessionId\":$d}", c->ack);
	if (c->pace == NULL || hr_watch_arm(c->pace, REST_MS, &err) != 0)
		settle(b);
}

static void
stop(struct browser *b)
{
	struct br_cast *c = &b->cast;
	struct br_tab *tab = c->target[0] != '\0' ? br_tab_find(b, c->target) : NULL;

	if (tab != NULL)
		end(b, tab);
	c->target[0] = '\0';
	c->unacked = c->burst = 0;
	hr_watch_drop(&c->pace);
	hr_buf_done(&c->picture);
	hr_buf_init(&c->picture, PICTURE_MAX);
	c->number++;
}

void
br_cast_follow(struct browser *b)
{
	struct br_cast *c = &b->cast;
	struct br_tab *tab =
	    c->changed != NULL && b->active != NULL && !b->active->crashed ? b->active : NULL;

	if (c->changed == NULL && c->target[0] == '\0')
		return;
	if (strcmp(c->target, tab != NULL ? tab->target : "") != 0) {
		stop(b);
		if (tab != NULL) {
			memcpy(c->target, tab->target, sizeof(c->target));
			begin(b, tab);
		}
	}
	if (c->changed != NULL)
		c->changed(c->arg);
}

void
br_cast_refused(struct browser *b, int64_t id)
{
	if (id == b->cast.begun)
		b->cast.target[0] = '\0';
}

void
br_cast_to(struct browser *b, void (*changed)(void *arg), void *arg)
{
	b->cast.changed = changed;
	b->cast.arg = arg;
	br_cast_follow(b);
}

void
br_cast_frame(struct browser *b, const char *session, const struct br_tape *t, uint32_t params)
{
	struct br_cast *c = &b->cast;
	uint32_t about = br_tape_at(t, params, "metadata");
	struct hr_err err = {0};
	const char *p;
	size_t len = 0;

	if (c->changed == NULL)
		return;
	p = br_tape_raw(t, br_tape_at(t, params, "data"), &len);
	hr_buf_reset(&c->picture);
	hr_buf_add(&c->picture, p != NULL ? p : "", p != NULL ? len : 0);
	if (c->picture.fail != HR_OK)
		hr_buf_reset(&c->picture);
	c->width = (int64_t)br_tape_number(t, br_tape_at(t, about, "deviceWidth"), 0);
	c->height = (int64_t)br_tape_number(t, br_tape_at(t, about, "deviceHeight"), 0);
	c->number++;
	c->ack = br_tape_int(t, br_tape_at(t, params, "sessionId"), 0);
	(void)snprintf(c->ack_session, sizeof(c->ack_session), "%s", session);
	c->burst += c->burst < IN_FLIGHT;
	if (c->unacked++ > 0)
		return;
	if (c->pace == NULL)
		c->pace = hr_loop_timer(b->loop, acknowledge, b, &err);
	if (c->pace == NULL || hr_watch_arm(c->pace, PACE_MS, &err) != 0)
		acknowledge(b);
}

void
br_cast_put_state(const struct browser *b, bool busy, struct hr_buf *ret)
{
	const struct br_tab *tab;
	int64_t i = 0, active = -1;
	const char *url = NULL;

	TAILQ_FOREACH(tab, &b->tabs, entry)
	{
		if (tab == b->active) {
			active = i;
			url = tab->url != NULL ? tab->url : "about:blank";
		}
		i++;
	}
	br_json(ret, "\"open\":$r,\"busy\":$r,\"url\":", b->pid > 0 && !b->gone ? "true" : "false",
	    busy ? "true" : "false");
	if (url != NULL)
		br_json(ret, "$b", url, strnlen(url, URL_MAX));
	else
		hr_buf_adds(ret, "null");
	br_json(ret, ",\"active\":$d,\"crashed\":$r,\"tabs\":[", active,
	    b->active != NULL && b->active->crashed ? "true" : "false");
	TAILQ_FOREACH(tab, &b->tabs, entry)
	{
		url = tab->url != NULL ? tab->url : "about:blank";
		br_json(
		    ret, tab == TAILQ_FIRST(&b->tabs) ? "$b" : ",$b", url, strnlen(url, URL_MAX));
	}
	hr_buf_adds(ret, "]");
}

void
br_cast_put_picture(const struct br_cast *c, struct hr_buf *ret)
{
	if (c->picture.len == 0) {
		hr_buf_adds(ret, "\"picture\":null");
		return;
	}
	br_json(ret,
	    "\"picture\":{\"mime\":\"image/jpeg\",\"width\":$d,\"height\":$d,\"base64\":$b}",
	    c->width, c->height, c->picture.p, c->picture.len);
}
