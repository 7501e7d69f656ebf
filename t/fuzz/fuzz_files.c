/* The editor's arguments and the diff. The first byte chooses the command, the rest is cut at NULs
 * into the file's content and the arguments. What must hold: no answer is empty or too long, a
 * change that is reported is in the file and can be undone, the diff turns the old text into the
 * new one. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/path.h"
#include "files/binary.h"
#include "files/diff.h"
#include "files/editor/editor.h"
#include "files/charset/encoding.h"
#include "files/pytext.h"
#include "files/textfile.h"
#include "base/text/utf8.h"
#include "fuzz.h"

#define ARGUMENTS 4

static char top[64], file[96], history[96];

static void
clean(void)
{
	(void)hr_path_remove(top, NULL);
}

static void
begin(void)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(top, sizeof(top), "%.40s/fuzz_files.XXXXXX", tmp != NULL ? tmp : "/tmp");
	must(mkdtemp(top) != NULL);
	(void)snprintf(file, sizeof(file), "%s/file", top);
	(void)snprintf(history, sizeof(history), "%s/undo", top);
	(void)atexit(clean);
}

static const struct hr_span *
cut(const char *p, size_t len, struct hr_span out[ARGUMENTS])
{
	const char *end = p + len, *next;
	size_t i;

	for (i = 0; i < ARGUMENTS; i++) {
		next = i + 1 < ARGUMENTS ? memchr(p, '\0', (size_t)(end - p)) : NULL;
		if (next == NULL)
			next = end;
		out[i] = (struct hr_span){p, (size_t)(next - p)};
		p = next < end ? next + 1 : end;
	}
	return out;
}

/* A string that JSON could have brought; NULL: null. */
static struct json_object *
text_arg(struct hr_span s)
{
	return s.len > 0 && hr_utf8_valid(s.p, s.len) ? json_object_new_string_len(s.p, (int)s.len)
						      : NULL;
}

static struct json_object *
range_arg(struct hr_span s)
{
	struct json_object *a = json_object_new_array();
	size_t i;

	for (i = 0; i < s.len && i < 3; i++)
		(void)json_object_array_add(
		    a, json_object_new_int((signed char)s.p[i] - (i == 0 ? '0' : 0)));
	return a;
}

static void
load(struct hr_buf *b)
{
	hr_buf_init(b, 64u << 20);
	if (access(file, F_OK) == 0)
		must(hr_textfile_read(file, b, NULL) == 0);
}

static enum hr_edit_result
edit(const struct hr_edit *q, struct hr_buf *text, struct hr_buf *diff)
{
	const struct hr_editor editor = {{top, strlen(top)}, history, NULL};
	enum hr_edit_result r;

	hr_buf_init(text, HR_EDIT_TEXT_MAX);
	hr_buf_init(diff, HR_EDIT_TEXT_MAX);
	r = hr_editor_run(&editor, q, text, diff);
	must(text->fail == HR_OK && diff->fail == HR_OK && text->len > 0);
	must(hr_utf8_valid(text->p, text->len) && hr_utf8_valid(hr_buf_str(diff), diff->len));
	must(r == HR_EDIT_DONE || diff->len == 0);
	return r;
}

/* One edit, and back. */
static void
check_editor(unsigned choice, const struct hr_span arg[ARGUMENTS])
{
	static const char *const commands[] = {
	    "str_replace", "insert", "view", "create", "undo_edit"};
	const char *command = commands[choice % 5];
	struct hr_edit q = {
	    .command = {command, strlen(command)}, .path = json_object_new_string(file)};
	struct hr_buf text, diff, before, after;
	enum hr_edit_result r;
	FILE *f;

	if (choice % 5 != 3) {
		f = fopen(file, "w");
		must(f != NULL && fwrite(arg[0].p, 1, arg[0].len, f) == arg[0].len);
		must(fclose(f) == 0);
	}
	q.file_text = q.old_str = text_arg(arg[1]);
	q.new_str = text_arg(arg[2]);
	q.insert_line = arg[3].len == 1 ? json_object_new_int((signed char)arg[3].p[0] - '0')
					: text_arg(arg[3]);
	q.view_range = arg[3].len > 0 ? range_arg(arg[3]) : NULL;
	load(&before);
	r = edit(&q, &text, &diff);
	load(&after);
	/* an edit that makes the file binary is kept, with an error */
	if (choice % 5 == 2 || (r != HR_EDIT_DONE && !(choice % 5 < 2 && hr_binary_file(file))))
		must(before.len == after.len &&
		     memcmp(hr_buf_str(&before), hr_buf_str(&after), before.len) == 0);
	if (r == HR_EDIT_DONE && choice % 5 < 2 && !hr_binary_file(file)) {
		hr_buf_done(&text);
		hr_buf_done(&diff);
		q.command = (struct hr_span){"undo_edit", 9};
		json_object_put(q.insert_line);
		q.insert_line = NULL;
		(void)edit(&q, &text, &diff);
	}
	hr_buf_done(&before);
	hr_buf_done(&after);
	hr_buf_done(&text);
	hr_buf_done(&diff);
	json_object_put(q.path);
	json_object_put(q.old_str);
	json_object_put(q.new_str);
	json_object_put(q.insert_line);
	json_object_put(q.view_range);
	(void)unlink(file);
}

/* Counts the lines that the diff takes away and adds: the rest is the same on both sides. */
static void
check_diff(struct hr_span old, struct hr_span new)
{
	const char *p, *end, *next;
	size_t minus = 0, plus = 0, a, b;
	HR_BUF(d, 64u << 20);

	must(hr_diff(&d, old, new, (struct hr_span){"/p", 2}, NULL) == 0 && d.fail == HR_OK);
	must((d.len == 0) == (old.len == new.len &&memcmp(old.p, new.p, old.len) == 0));
	for (p = hr_buf_str(&d), end = p + d.len; p < end; p = next + 1) {
		next = memchr(p, '\n', (size_t)(end - p));
		if (next == NULL)
			next = end;
		minus += *p == '-';
		plus += *p == '+';
	}
	a = hr_pytext_newlines(old.p, old.len) + 1;
	b = hr_pytext_newlines(new.p, new.len) + 1;
	if (d.len > 0)
		must(a - (minus - 1) == b - (plus - 1));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_span arg[ARGUMENTS];
	struct hr_encoding e;

	if (top[0] == '\0')
		begin();
	if (size == 0)
		return 0;
	(void)cut((const char *)data + 1, size - 1, arg);
	hr_encoding_detect((const char *)data + 1, size - 1, &e);
	must(e.charset != NULL);
	(void)hr_binary_head(data + 1, size - 1 < HR_BINARY_HEAD ? size - 1 : HR_BINARY_HEAD);
	check_diff(arg[0], arg[1]);
	check_editor(data[0], arg);
	return 0;
}
