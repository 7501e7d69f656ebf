/* What a browser that a page took over might answer. The first byte chooses what it is read as:
 * frames, a tree, markup, a snapshot, a picture. Whatever it is, it returns, and what it makes of
 * it is JSON and text that can be sent. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/browser/page/axtree.h"
#include "plugins/browser/page/html.h"
#include "plugins/browser/page/pagetext.h"
#include "plugins/browser/page/picture.h"
#include "plugins/browser/page/props.h"
#include "plugins/browser/page/snapshot.h"
#include "plugins/browser/page/tape.h"
#include "fuzz.h"

static void
must_be_json(const struct hr_buf *b)
{
	struct hr_err err;
	struct br_tape t;

	if (b->fail == HR_OK) {
		hr_assert(br_tape_parse(&t, hr_buf_str(b), b->len, &err) == 0);
		br_tape_done(&t);
	}
}

static void
frames(const char *p, size_t len)
{
	struct hr_err err;
	HR_FREE char **list = NULL;
	size_t n;

	if (br_ax_frames(p, len, &list, &n, &err) < 0)
		return;
	hr_assert(n > 0);
	while (n > 0)
		free(list[--n]);
}

static void
tree(const char *p, size_t len, const char *frame, const struct br_props *props)
{
	struct br_ax *ax = br_ax_new();
	HR_BUF(b, 1u << 22);
	HR_BUF(why, 1u << 16);
	struct hr_err err;
	char *copy = malloc(len + 1);
	size_t i;
	int done;

	hr_assert(ax != NULL && copy != NULL);
	memcpy(copy, p, len);
	if (br_ax_add_take(ax, frame, copy, len, &err) == 0) {
		for (i = 0; br_ax_iframe(ax, i) >= 0; i++)
			br_ax_join(ax, i, frame); /* a frame in itself */
		done = br_ax_text(ax, props, &b, &why);
		hr_assert(done != 1 || why.len > 0);
		hr_buf_reset(&b);
		br_ax_json(ax, &b);
		must_be_json(&b);
	}
	br_ax_free(ax);
}

static void
page_text(const char *p, size_t len)
{
	HR_BUF(b, 1u << 22);

	br_page_text(&b, p, len);
}

static void
markup(const char *p, size_t len)
{
	HR_BUF(b, 1u << 22);
	struct hr_err err;

	if (br_html_tidy(p, len, &b, &err) == 0)
		page_text(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	page_text(p, len);
}

static void
picture(const char *p, size_t len)
{
	struct br_picture image;
	struct br_props props;
	struct br_prop *v;
	struct hr_err err;

	if (br_picture_read(&image, p, len, &err) < 0)
		return;
	hr_assert(image.width * image.height <= BR_PICTURE_PIXELS_MAX);
	br_props_init(&props);
	v = br_props_put(&props, "aB12");
	hr_assert(v != NULL);
	v->marked = 1;
	v->has_bbox = true;
	v->bbox[2] = v->bbox[3] = 50;
	br_picture_mark(&image, &props);
	br_props_done(&props);
	br_picture_done(&image);
}

static void
snapshot(const char *p, size_t len)
{
	struct br_snapshot *s;
	struct br_props props;
	HR_BUF(b, 1u << 22);
	struct hr_err err;

	s = br_snapshot_new(p, len, &err);
	if (s == NULL)
		return;
	br_props_init(&props);
	if (br_snapshot_props(s, &props, &err) == 0) {
		br_props_json(&b, &props);
		must_be_json(&b);
	}
	hr_buf_reset(&b);
	if (br_snapshot_html(s, &b, &err) == 0)
		page_text(hr_buf_str(&b), b.len);
	br_props_done(&props);
	br_snapshot_free(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct br_props none;
	const char *p = (const char *)data + 1;

	if (size == 0)
		return 0;
	br_props_init(&none);
	switch (data[0] % 6) {
	case 0: frames(p, size - 1); break;
	case 1: tree(p, size - 1, NULL, &none); break;
	case 2: tree(p, size - 1, "F", &none); break;
	case 3: markup(p, size - 1); break;
	case 4: snapshot(p, size - 1); break;
	default: picture(p, size - 1); break;
	}
	return 0;
}
