/* Formats a cell's observation: its text, right-stripped, and two lines about the place where it
 * ran. */
#include "config.h"

#include "plugins/jupyter/answer.h"

#include <string.h>

#include "proto/frame.h"
#include "proto/httperr.h"
#include "proto/json.h"
#include "proto/obs.h"
#include "base/text/utf8.h"

#define CONTENT_MAX (HR_CELL_TEXT_MAX + (1u << 20))

/* Implements Python's rstrip(). */
static size_t
stripped_len(const struct hr_buf *b)
{
	const char *p = hr_buf_str(b);
	size_t len = b->len;

	hr_utf8_strip(&p, &len);
	return len > 0 ? (size_t)(p - hr_buf_str(b)) + len : 0;
}

static void
put_content(struct hr_buf *b, const struct hr_cell_answer *a)
{
	hr_buf_adds(b, a->first_words);
	if (a->cell->has_text || a->last_words[0] == '\0')
		hr_cell_put(b, a->cell);
	if (a->last_words[0] != '\0') {
		if (b->len > 0 && b->p[b->len - 1] != '\n')
			hr_buf_addc(b, '\n');
		hr_buf_adds(b, a->last_words);
	}
	if (b->fail == HR_OK)
		b->len = stripped_len(b);
	if (a->include_extra)
		hr_buf_addf(b,
		    "\n[Jupyter current working directory: %s]\n[Jupyter Python interpreter: %s]",
		    a->dir, a->path);
}

/* Returns the list of images, or NULL if there are none. */
static struct json_object *
image_list(const struct hr_cell *cell)
{
	struct json_object *list = NULL;
	HR_BUF(text, cell->images.len + 2);

	if (cell->images.len == 0)
		return NULL;
	hr_buf_addc(&text, '[');
	hr_buf_add(&text, cell->images.p, cell->images.len);
	hr_buf_addc(&text, ']');
	if (text.fail == HR_OK && hr_json_decode(text.p, text.len, &list, NULL) < 0)
		list = NULL;
	return list;
}

void
hr_answer_put_json(struct hr_buf *b, int status, const struct hr_buf *body)
{
	const struct hr_act_answer a = {.status = status, .body = {hr_buf_str(body), body->len}};

	if (body->fail != HR_OK)
		b->fail = body->fail;
	hr_frame_put_answer(b, &a);
}

void
hr_answer_put_cell(struct hr_buf *b, const struct hr_cell_answer *a)
{
	HR_PUT struct json_object *images = image_list(a->cell);
	const struct hr_obs_extra extras[] = {
	    {.name = "code", .kind = HR_OBS_STR, .str = {a->code, a->code_len}},
	    {.name = "image_urls", .kind = HR_OBS_JSON, .json = images}};
	struct hr_obs o = {.type = "run_ipython",
	    .message = {HR_OBS_SPAN("Code executed in IPython cell.")},
	    .extras = extras,
	    .extras_n = 2,
	    .has_success = true,
	    .success = true,
	    .bad = HR_JSON_REPLACE};
	HR_BUF(content, CONTENT_MAX);
	HR_BUF(body, HR_FRAME_MAX);

	put_content(&content, a);
	o.content = hr_span_of_buf(&content);
	if (hr_obs_put(&body, &o) != 0 || content.fail != HR_OK || body.fail != HR_OK)
		hr_answer_put_error(b, "The output of the cell is too large to be answered.");
	else
		hr_answer_put_json(b, 200, &body);
}

void
hr_answer_put_error(struct hr_buf *b, const char *why)
{
	HR_BUF(body, HR_FRAME_MAX);

	hr_obs_put_error(&body, why, strlen(why));
	hr_answer_put_json(b, 200, &body);
}

void
hr_answer_put_unknown(struct hr_buf *b)
{
	struct hr_answer a;

	hr_answer_init(&a);
	hr_answer_detail(&a, 500, hr_answer_unknown);
	hr_answer_put_json(b, a.status, &a.body);
	hr_answer_done(&a);
}
