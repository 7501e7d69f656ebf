/* Collects the output of cells. The output follows the original's rules, but a cell ends only after
 * both the reply and the idle status, so that no late output is lost. */
#include "config.h"

#include "plugins/jupyter/cell.h"

#include <string.h>

#include <json-c/json.h>

#include "proto/json.h"

void
hr_cell_init(struct hr_cell *c)
{
	memset(c, 0, sizeof(*c));
	hr_buf_init(&c->text, HR_CELL_TEXT_MAX);
	hr_buf_init(&c->images, HR_CELL_TEXT_MAX);
}

void
hr_cell_done(struct hr_cell *c)
{
	hr_buf_done(&c->text);
	hr_buf_done(&c->images);
}

void
hr_cell_begin(struct hr_cell *c)
{
	hr_cell_done(c);
	hr_cell_init(c);
}

bool
hr_cell_over(const struct hr_cell *c)
{
	return c->replied && c->idle;
}

bool
hr_cell_owns(const struct hr_cell *c, const struct hr_wire_message *m)
{
	return c->id[0] != '\0' && strcmp(m->parent_id, c->id) == 0;
}

static void
add_text(struct hr_cell *c, const char *p, size_t len)
{
	c->has_text = true;
	if (c->dropped > 0 || len > c->text.cap - c->text.len) {
		c->dropped += len;
		return;
	}
	hr_buf_add(&c->text, p, len);
	if (c->text.fail != HR_OK) { /* keeps the text so far if there is no memory */
		c->text.fail = HR_OK;
		c->dropped += len;
	}
}

static void
add_string(struct hr_cell *c, struct json_object *v)
{
	const char *p;
	size_t len;

	if (v == NULL)
		return;
	p = hr_json_str(v, &len);
	add_text(c, p, len);
}

/* Adds a picture. Some kernels put line ends into the base64 text, which a data URL must not
 * contain. */
static void
add_image(struct hr_cell *c, struct json_object *v)
{
	size_t len, i, at = c->images.len;
	const char *p = hr_json_str(v, &len);
	HR_BUF(url, HR_CELL_TEXT_MAX);

	hr_buf_adds(&url, "data:image/png;base64,");
	for (i = 0; i < len; i++)
		if (strchr(" \t\r\n\f\v", p[i]) == NULL || p[i] == '\0')
			hr_buf_addc(&url, p[i]);
	if (url.fail == HR_OK) {
		if (at > 0)
			hr_buf_addc(&c->images, ',');
		(void)hr_json_put_str(&c->images, url.p, url.len, HR_JSON_REPLACE);
	}
	if (url.fail != HR_OK || c->images.fail != HR_OK) {
		c->images.fail = HR_OK;
		c->images.len = at;
		c->dropped += len;
	}
}

static void
add_display(struct hr_cell *c, struct json_object *content)
{
	struct json_object *data = hr_json_typed_at(content, "data", HR_PY_DICT), *image;

	image = hr_json_typed_at(data, "image/png", HR_PY_STR);
	add_string(c, hr_json_typed_at(data, "text/plain", HR_PY_STR));
	if (image != NULL) {
		c->has_text = true; /* a picture counts as output */
		add_image(c, image);
	}
}

static void
add_error(struct hr_cell *c, struct json_object *content)
{
	struct json_object *lines = hr_json_typed_at(content, "traceback", HR_PY_LIST), *line;
	size_t i;

	add_text(c, "", 0);
	for (i = 0; lines != NULL && i < json_object_array_length(lines); i++) {
		line = json_object_array_get_idx(lines, i);
		if (i > 0)
			add_text(c, "\n", 1);
		if (hr_json_type(line) == HR_PY_STR)
			add_string(c, line);
	}
	c->failed = true;
}

void
hr_cell_output(struct hr_cell *c, const struct hr_wire_message *m)
{
	if (!hr_cell_owns(c, m))
		return;
	if (strcmp(m->type, "status") == 0) {
		c->idle |= hr_json_str_is(hr_json_at(m->content, "execution_state"), "idle");
	} else if (c->failed) {
		return;
	} else if (strcmp(m->type, "stream") == 0) {
		add_string(c, hr_json_typed_at(m->content, "text", HR_PY_STR));
	} else if (strcmp(m->type, "execute_result") == 0 || strcmp(m->type, "display_data") == 0) {
		add_display(c, m->content);
	} else if (strcmp(m->type, "error") == 0) {
		add_error(c, m->content);
	}
}

/* Detects exit() and quit(), which end the kernel soon after their reply. */
static bool
asks_exit(struct json_object *content)
{
	struct json_object *payload = hr_json_typed_at(content, "payload", HR_PY_LIST), *p;
	size_t i;

	for (i = 0; payload != NULL && i < json_object_array_length(payload); i++) {
		p = json_object_array_get_idx(payload, i);
		if (hr_json_str_is(hr_json_at(p, "source"), "ask_exit") &&
		    !hr_json_true_at(p, "keepkernel"))
			return true;
	}
	return false;
}

void
hr_cell_reply(struct hr_cell *c, const struct hr_wire_message *m)
{
	if (!hr_cell_owns(c, m))
		return;
	c->aborted = hr_json_str_is(hr_json_at(m->content, "status"), "aborted");
	c->exiting = asks_exit(m->content);
	c->replied = true;
}

/* Returns the length of the colour sequence at p, or 0. */
static size_t
colour_len(const char *p, size_t len)
{
	size_t at = 2, numbers = 0, digits;

	if (len < 4 || p[0] != '\033' || p[1] != '[')
		return 0;
	for (;;) {
		for (digits = 0; at < len && p[at] >= '0' && p[at] <= '9'; at++)
			digits++;
		if (digits == 0 || ++numbers > 3 || at == len)
			return 0;
		if (p[at] == 'm')
			return at + 1;
		if (p[at++] != ';')
			return 0;
	}
}

void
hr_cell_strip_colours(struct hr_buf *b)
{
	size_t from = 0, to = 0, skip;

	while (from < b->len) {
		skip = b->p[from] == '\033' ? colour_len(b->p + from, b->len - from) : 0;
		if (skip > 0)
			from += skip;
		else
			b->p[to++] = b->p[from++];
	}
	if (b->p != NULL) {
		b->len = to;
		b->p[to] = '\0';
	}
}

void
hr_cell_put(struct hr_buf *b, const struct hr_cell *c)
{
	HR_BUF(text, HR_CELL_TEXT_MAX);

	if (!c->has_text) {
		hr_buf_adds(b, "[Code executed successfully with no output]");
		return;
	}
	hr_buf_add(&text, c->text.p, c->text.len);
	hr_cell_strip_colours(&text);
	hr_buf_add(b, text.p, text.len);
	if (text.fail != HR_OK)
		b->fail = text.fail;
	if (c->dropped > 0)
		hr_buf_addf(b, "\n[%zu more bytes of output were not kept]", c->dropped);
}
