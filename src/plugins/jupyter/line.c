/* Translates messages. Values of unexpected types are left out: any process with the kernel's key
 * can send messages. */
#include "config.h"

#include "plugins/jupyter/line.h"

#include <inttypes.h>
#include <string.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "plugins/jupyter/cell.h"
#include "proto/json.h"

/* Members of a result by MIME type; the clients accept no other members. */
static const struct {
	const char *mime, *member;
	enum hr_py_type type; /* HR_PY_NONE: any */
} members[] = {
    {"text/plain", "text", HR_PY_STR},
    {"text/html", "html", HR_PY_STR},
    {"text/markdown", "markdown", HR_PY_STR},
    {"image/svg+xml", "svg", HR_PY_STR},
    {"image/png", "png", HR_PY_STR},
    {"image/jpeg", "jpeg", HR_PY_STR},
    {"application/pdf", "pdf", HR_PY_STR},
    {"text/latex", "latex", HR_PY_STR},
    {"application/json", "json", HR_PY_NONE},
    {"application/javascript", "javascript", HR_PY_STR},
    {"e2b/data", "data", HR_PY_DICT},
    {"e2b/chart", "chart", HR_PY_DICT},
};
#define MEMBERS (sizeof(members) / sizeof(members[0]))

static void
put_stream(struct hr_buf *b, const struct hr_wire_message *m, const char *name)
{
	const char *date = hr_json_text_at(m->header, "date");
	char now[HR_WALL_TEXT];

	hr_wall_text(hr_wall_ms(), now);
	hr_buf_addf(b, "{\"type\":\"%s\"", name);
	hr_json_put_member(b, "text", hr_json_span_or(m->content, "text", ""));
	hr_json_put_named(b, "timestamp", date != NULL ? date : now);
	hr_buf_adds(b, "}\n");
}

/* Appends a string's repr without its quotes, which clients do not expect. */
static void
put_text(struct hr_buf *b, struct json_object *v)
{
	struct hr_span text;

	text.p = hr_json_str(v, &text.len);
	if (text.len > 1 && text.p[0] == '\'' && text.p[text.len - 1] == '\'')
		text = (struct hr_span){text.p + 1, text.len - 2};
	hr_json_put_member(b, "text", text);
}

static size_t
member_of(const char *mime, struct json_object *v)
{
	size_t i;

	for (i = 0; i < MEMBERS; i++)
		if (strcmp(mime, members[i].mime) == 0 && v != NULL &&
		    (members[i].type == HR_PY_NONE || hr_json_type(v) == members[i].type))
			return i;
	return MEMBERS;
}

static void
put_result(struct hr_buf *b, struct json_object *content, bool is_main)
{
	struct json_object *data = hr_json_typed_at(content, "data", HR_PY_DICT);
	HR_BUF(extra, HR_LINE_MAX);
	size_t i;

	hr_buf_addf(b, "{\"type\":\"result\",\"is_main_result\":%s", is_main ? "true" : "false");
	if (data != NULL) {
		json_object_object_foreach(data, mime, v)
		{
			i = member_of(mime, v);
			if (i == 0) {
				put_text(b, v);
				continue;
			}
			if (i < MEMBERS) {
				hr_buf_addf(b, ",\"%s\":", members[i].member);
				hr_json_put_whole(b, v);
				continue;
			}
			hr_buf_adds(&extra, extra.len > 0 ? "," : "");
			(void)hr_json_put_str(&extra, mime, strlen(mime), HR_JSON_REPLACE);
			hr_buf_addc(&extra, ':');
			hr_json_put_whole(&extra, v);
		}
	}
	hr_buf_adds(b, ",\"extra\":{");
	hr_buf_add(b, extra.p, extra.len);
	hr_buf_adds(b, "}}\n");
	if (extra.fail != HR_OK)
		b->fail = extra.fail;
}

static enum hr_line_kind
put_error(struct hr_buf *b, struct json_object *content)
{
	static const char *const syntax[] = {"SyntaxError", "IndentationError", "TabError"};
	struct hr_span name = hr_json_span_or(content, "ename", "");
	struct json_object *lines = hr_json_typed_at(content, "traceback", HR_PY_LIST);
	HR_BUF(traceback, HR_LINE_MAX);
	size_t i;

	for (i = 0; i < hr_json_count(lines); i++) {
		struct json_object *v = hr_json_entry(lines, i);
		size_t len = 0;
		const char *p = hr_json_type(v) == HR_PY_STR ? hr_json_str(v, &len) : "";

		hr_buf_add(&traceback, p, len);
	}
	hr_cell_strip_colours(&traceback);
	hr_buf_adds(b, "{\"type\":\"error\"");
	hr_json_put_member(b, "name", name);
	hr_json_put_member(b, "value", hr_json_span_or(content, "evalue", ""));
	hr_json_put_member(b, "traceback", (struct hr_span){hr_buf_str(&traceback), traceback.len});
	hr_buf_adds(b, "}\n");
	for (i = 0; i < sizeof(syntax) / sizeof(syntax[0]); i++)
		if (hr_span_equal(name, hr_span_of(syntax[i])))
			return HR_LINE_SYNTAX;
	return HR_LINE_ERROR;
}

void
hr_line_put_error(struct hr_buf *b, const char *name, const char *value)
{
	hr_buf_adds(b, "{\"type\":\"error\"");
	hr_json_put_named(b, "name", name);
	hr_json_put_named(b, "value", value);
	hr_buf_adds(b, ",\"traceback\":\"\"}\n");
}

static enum hr_line_kind
put(struct hr_buf *b, const struct hr_wire_message *m)
{
	const char *name = hr_json_text_or(m->content, "name", "");

	if (strcmp(m->type, "stream") == 0 &&
	    (strcmp(name, "stdout") == 0 || strcmp(name, "stderr") == 0)) {
		put_stream(b, m, name);
		return HR_LINE_OUTPUT;
	}
	if (strcmp(m->type, "display_data") == 0 || strcmp(m->type, "execute_result") == 0) {
		put_result(b, m->content, m->type[0] == 'e');
		return HR_LINE_OUTPUT;
	}
	if (strcmp(m->type, "execute_input") == 0) {
		hr_buf_addf(b,
		    "{\"type\":\"number_of_executions\",\"execution_count\":%" PRId64 "}\n",
		    hr_json_int_at(m->content, "execution_count"));
		return HR_LINE_COUNT;
	}
	if (strcmp(m->type, "error") == 0)
		return put_error(b, m->content);
	return HR_LINE_NONE;
}

enum hr_line_kind
hr_line_put(struct hr_buf *b, const struct hr_wire_message *m)
{
	size_t len = b->len;
	enum hr_line_kind kind = put(b, m);
	char now[HR_WALL_TEXT];

	if (b->fail == HR_OK)
		return kind;
	b->fail = HR_OK;
	b->len = len;
	hr_wall_text(hr_wall_ms(), now);
	hr_buf_addf(b,
	    "{\"type\":\"stderr\",\"text\":\"[an output of more than %u MiB was not kept]\\n\","
	    "\"timestamp\":\"%s\"}\n",
	    HR_LINE_MAX >> 20, now);
	return kind == HR_LINE_ERROR || kind == HR_LINE_SYNTAX ? HR_LINE_OUTPUT : kind;
}
