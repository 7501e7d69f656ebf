/* A filter around the file actions, for t/unit/test_files_corpus.py: a JSON object a line in, one
 * out. "do" is what:
 *   edit    one step of the editor: root, history, office, args -> result, text, diff
 *   action  a whole action: run_dir, work_dir, user_id, action -> status, body
 *   binary  path -> is
 *   guess   bytes of a file: path -> charset, mark
 *   diff    old, new, path -> diff
 *   read_lines    text, start, end -> text
 *   insert_lines  content, original, start, end -> text
 * Whatever is not given is null. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "actions/action.h"
#include "files/binary.h"
#include "files/charset/charset.h"
#include "files/diff.h"
#include "files/editor/editor.h"
#include "files/charset/encoding.h"
#include "files/purepath.h"
#include "files/readwrite.h"
#include "files/textfile.h"
#include "proto/json.h"

static struct json_object *
member(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	(void)json_object_object_get_ex(o, name, &v);
	return v;
}

static struct hr_span
text(struct json_object *o, const char *name)
{
	struct json_object *v = member(o, name);
	struct hr_span s = {"", 0};

	if (hr_json_type(v) == HR_PY_STR)
		s.p = hr_json_str(v, &s.len);
	return s;
}

static const char *
c_text(struct json_object *o, const char *name)
{
	return text(o, name).p; /* json-c ends its strings with a NUL */
}

static void
put_text(struct hr_buf *out, const char *name, const char *p, size_t len)
{
	hr_buf_addf(out, "%s\"%s\":", out->len > 1 ? "," : "", name);
	(void)hr_json_put_str(out, p, len, HR_JSON_REPLACE);
}

static void
do_edit(struct json_object *in, struct hr_buf *out)
{
	static const char *const results[] = {"done", "error", "raised"};
	struct json_object *args = member(in, "args");
	const struct hr_editor editor = {
	    text(in, "root"), c_text(in, "history"), c_text(in, "office")};
	const struct hr_edit q = {.command = text(args, "command"),
	    .path = member(args, "path"),
	    .file_text = member(args, "file_text"),
	    .old_str = member(args, "old_str"),
	    .new_str = member(args, "new_str"),
	    .insert_line = member(args, "insert_line"),
	    .view_range = member(args, "view_range")};
	HR_BUF(t, HR_EDIT_TEXT_MAX);
	HR_BUF(diff, HR_EDIT_TEXT_MAX);
	const char *r;

	r = results[hr_editor_run(&editor, &q, &t, &diff)];
	put_text(out, "result", r, strlen(r));
	put_text(out, "text", hr_buf_str(&t), t.len);
	put_text(out, "diff", hr_buf_str(&diff), diff.len);
	if (t.fail != HR_OK || diff.fail != HR_OK)
		exit(1);
}

static void
do_action(struct json_object *in, struct hr_buf *out)
{
	const struct hr_action_env env = {.run_dir = c_text(in, "run_dir"),
	    .work_dir = c_text(in, "work_dir"),
	    .channel = -1,
	    .user_id = (uid_t)json_object_get_int64(member(in, "user_id"))};
	struct hr_answer answer;
	struct hr_event ev;
	HR_BUF(why, 1 << 20);

	hr_answer_init(&answer);
	if (hr_event_decode(member(in, "action"), &ev, &why) < 0)
		hr_answer_internal(&answer, &why);
	else
		hr_action_perform(&env, &ev, &answer);
	hr_buf_addf(out, "\"status\":%d", answer.status);
	put_text(out, "body", hr_buf_str(&answer.body), answer.body.len);
	hr_answer_done(&answer);
}

static void
do_binary(struct json_object *in, struct hr_buf *out)
{
	struct hr_span path = text(in, "path");

	hr_buf_addf(out, "\"is\":%s",
	    hr_binary_name(path.p, path.len) || hr_binary_file(path.p) ? "true" : "false");
}

static void
do_guess(struct json_object *in, struct hr_buf *out)
{
	struct hr_encoding e;
	HR_BUF(bytes, 64u << 20);

	if (hr_textfile_read(c_text(in, "path"), &bytes, NULL) < 0)
		exit(1);
	hr_encoding_detect(hr_buf_str(&bytes), bytes.len, &e);
	put_text(out, "charset", e.charset->name, strlen(e.charset->name));
	hr_buf_addf(out, ",\"mark\":%s", e.mark ? "true" : "false");
}

static void
do_diff(struct json_object *in, struct hr_buf *out)
{
	HR_BUF(diff, 256u << 20);

	if (hr_diff(&diff, text(in, "old"), text(in, "new"), text(in, "path"), NULL) < 0)
		exit(1);
	put_text(out, "diff", hr_buf_str(&diff), diff.len);
}

static void
do_read_lines(struct json_object *in, struct hr_buf *out)
{
	struct hr_span t = text(in, "text");
	size_t from, to;

	hr_rw_slice(t.p, t.len, json_object_get_int64(member(in, "start")),
	    json_object_get_int64(member(in, "end")), &from, &to);
	put_text(out, "text", t.p + from, to - from);
}

static void
do_insert_lines(struct json_object *in, struct hr_buf *out)
{
	struct hr_span old = text(in, "original");
	HR_BUF(t, 64u << 20);

	hr_rw_insert(&t, &old, text(in, "content"), json_object_get_int64(member(in, "start")),
	    json_object_get_int64(member(in, "end")));
	put_text(out, "text", hr_buf_str(&t), t.len);
}

static const struct {
	const char *name;
	void (*f)(struct json_object *in, struct hr_buf *out);
} parts[] = {
    {"edit", do_edit},
    {"action", do_action},
    {"binary", do_binary},
    {"guess", do_guess},
    {"diff", do_diff},
    {"read_lines", do_read_lines},
    {"insert_lines", do_insert_lines},
};

static int
play(const char *line, size_t len)
{
	struct hr_json_error e;
	HR_BUF(out, (size_t)1 << 30);
	HR_PUT struct json_object *in = NULL;
	size_t i;
	int r = -1;

	if (hr_json_decode(line, len, &in, &e) < 0)
		return -1;
	hr_buf_addc(&out, '{');
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(parts[i].name, c_text(in, "do")) == 0) {
			parts[i].f(in, &out);
			r = 0;
		}
	}
	hr_buf_adds(&out, "}\n");
	if (out.fail != HR_OK || fwrite(out.p, 1, out.len, stdout) != out.len ||
	    fflush(stdout) != 0)
		r = -1;
	return r;
}

int
main(void)
{
	HR_FREE char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getline(&line, &cap, stdin)) > 0)
		r = play(line, (size_t)n);
	return r == 0 ? 0 : 1;
}
