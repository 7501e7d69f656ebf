/* Messages of a kernel, as it or who knows its key may send them. The input is frames, cut by
 * lines; the first byte of it chooses: 0, as they are, otherwise with the delimiter and the right
 * signature in front. What must hold: only what is signed is taken; a cell's text has its bounds,
 * its pictures are JSON, and its observation is one whole frame. Each message is at most one line
 * of JSON for the code interpreter's clients. 2: the body of such a client, which has the fields of
 * its table with their types, or is refused with JSON. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "plugins/jupyter/answer.h"
#include "plugins/jupyter/ask.h"
#include "plugins/jupyter/cell.h"
#include "plugins/jupyter/line.h"
#include "plugins/jupyter/wire.h"
#include "proto/frame.h"
#include "proto/json.h"
#include "fuzz.h"

#define FRAMES 40
#define SIGNED 4 /* parts: header, parent, metadata, content */

static const struct hr_wire wire = {.key = "0123456789abcdef0123456789abcdef", .session = "s"};

static size_t
cut(const uint8_t *p, size_t size, struct hr_wire_part *frames)
{
	const uint8_t *end = p + size, *eol;
	size_t n = 0;

	for (; p < end && n < FRAMES; p = eol + 1) {
		eol = memchr(p, '\n', (size_t)(end - p));
		if (eol == NULL)
			eol = end;
		frames[n++] = (struct hr_wire_part){p, (size_t)(eol - p)};
	}
	return n;
}

/* The text is generalised UTF-8, as Python's strings are: only its length is looked at. */
static void
check_cell(const struct hr_cell *cell)
{
	const struct hr_cell_answer a = {.code = "c",
	    .code_len = 1,
	    .cell = cell,
	    .first_words = "",
	    .last_words = "",
	    .include_extra = true,
	    .dir = "/",
	    .path = "/p"};
	HR_PUT struct json_object *list = NULL;
	struct hr_json_error e;
	HR_BUF(b, HR_FRAME_MAX);
	const char *payload;
	size_t len, used, need;
	uint32_t type;

	hr_buf_addc(&b, '[');
	hr_buf_add(&b, cell->images.p, cell->images.len);
	hr_buf_addc(&b, ']');
	must(hr_json_decode(hr_buf_str(&b), b.len, &list, &e) == 0);
	hr_buf_reset(&b);
	hr_cell_put(&b, cell);
	must(b.fail == HR_OK && (b.len > 0 || cell->has_text));
	hr_buf_reset(&b);
	hr_answer_put_cell(&b, &a);
	must(b.fail == HR_OK);
	must(hr_frame_get(b.p, b.len, &type, &payload, &len, &used, &need, NULL) == 1);
	must(used == b.len);
}

static void
check_json(const char *p, size_t len)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_json_error e;

	must(hr_json_decode(p, len, &o, &e) == 0 && hr_json_type(o) == HR_PY_DICT);
}

static void
check_line(const struct hr_wire_message *m)
{
	HR_BUF(b, HR_LINE_MAX);

	if (hr_line_put(&b, m) == HR_LINE_NONE) {
		must(b.len == 0);
		return;
	}
	must(b.fail == HR_OK && b.len > 1);
	must(memchr(b.p, '\n', b.len) == b.p + b.len - 1);
	check_json(b.p, b.len - 1);
}

static void
check_ask(struct hr_span text, const struct hr_ask_field *f)
{
	HR_PUT struct json_object *o = NULL;
	HR_BUF(why, 1u << 20);
	int status = hr_ask_read(text, f, &o, &why);
	char *language;

	must(why.fail == HR_OK);
	if (status != 0) {
		must(status == 400 || status == 422);
		must(o == NULL);
		check_json(hr_buf_str(&why), why.len);
		return;
	}
	for (; f->name != NULL; f++) {
		struct json_object *v = hr_json_at(o, f->name);

		must(v == NULL ? !f->required
			       : hr_json_type(v) == (f->map ? HR_PY_DICT : HR_PY_STR));
	}
	language = hr_ask_language(hr_json_at(o, "language"));
	must(language != NULL && *language != '\0');
	free(language);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_wire_part frames[FRAMES + 2] = {{"<IDS|MSG>", 9}};
	struct hr_wire_message m = {NULL, NULL, NULL, "", ""};
	char mac[HR_WIRE_MAC] = "";
	struct hr_cell cell;
	struct hr_err err = {0};
	size_t n, at = 0;

	if (size == 0)
		return 0;
	if (data[0] == 2) {
		struct hr_span body = {(const char *)data + 1, size - 1};

		check_ask(body, hr_ask_execute);
		check_ask(body, hr_ask_create);
		return 0;
	}
	hr_cell_init(&cell);
	memcpy(cell.id, "me", 3);
	/* a message in all four lines that follow it; what is left are buffers */
	if (data[0] != 0)
		at = 2;
	n = cut(data + 1, size - 1, frames + at);
	while (at > 0 ? n >= SIGNED : n > 0) {
		if (at > 0) {
			must(hr_wire_sign(wire.key, frames + at, SIGNED, mac, &err) == 0);
			frames[1] = (struct hr_wire_part){mac, sizeof(mac) - 1};
		}
		if (hr_wire_take(&wire, frames, n + at, &m, &err) == 0) {
			must(at > 0 && hr_json_type(m.content) == HR_PY_DICT);
			check_line(&m);
			if (strcmp(m.type, "execute_reply") == 0)
				hr_cell_reply(&cell, &m);
			else
				hr_cell_output(&cell, &m);
			hr_wire_message_done(&m);
		} else {
			must(err.code == HR_E_PROTO && m.header == NULL);
		}
		if (at == 0)
			break;
		memmove(frames + at, frames + at + SIGNED, (n - SIGNED) * sizeof(frames[0]));
		n -= SIGNED;
	}
	check_cell(&cell);
	hr_cell_done(&cell);
	return 0;
}
