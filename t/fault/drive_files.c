/* files: read, write and the editor. Whatever fails, the user's file is the old one or the new one,
 * and nothing lies beside it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/path.h"
#include "failcalls.h"
#include "fault.h"
#include "files/place/atomic.h"
#include "files/diff.h"
#include "files/editor/editor.h"
#include "files/readwrite.h"
#include "files/revise/revise.h"
#include "tree.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT_MAX (1u << 20)

static struct hr_span
span(const char *text)
{
	return (struct hr_span){text, strlen(text)};
}

/* What an action has to say: the answer, or why there is none. */
static int
settle(bool done, const struct hr_buf *text, struct hr_err *err)
{
	if (hr_buf_check(text, err) != 0)
		return -1;
	if (!done)
		return hr_err_set(err, HR_E_SYS, "%s", hr_buf_str(text));
	tree_tell(hr_buf_str(text), text->len);
	return 0;
}

/* ---- read ---- */

static int
read_one(const char *name, int64_t start, int64_t end, struct hr_err *err)
{
	const struct hr_read q = {
	    .path = span(tree_path(name)), .cwd = span("/"), .start = start, .end = end};
	HR_BUF(text, TEXT_MAX);

	return settle(hr_rw_read(&q, &text) == HR_RW_DONE, &text, err);
}

static int
reading(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {.name = "ws/a.txt", .old = "one\r\ntwo\rthree\n"}, {.name = "ws/a.png", .old = "png"}};
	int r;

	tree_make(files, COUNT(files));
	r = read_one("ws/a.txt", 0, -1, err);
	if (r == 0)
		r = read_one("ws/a.txt", 1, 2, err);
	if (r == 0)
		r = read_one("ws/a.png", 0, -1, err);
	tree_check(files, COUNT(files));
	return r;
}

/* Its type comes from a table of the system; where that cannot be read it is the usual one. */
static int
reading_listed_media(struct hr_err *err)
{
	static const struct tree_file files[] = {{.name = "ws/a.ogg", .old = "Ogg"}};

	tree_make(files, 1);
	return read_one("ws/a.ogg", 0, -1, err);
}

/* ---- write ---- */

static int
write_one(const char *name, const char *content, int64_t start, int64_t end, struct hr_err *err)
{
	const struct hr_write q = {.path = span(tree_path(name)),
	    .content = span(content),
	    .start = start,
	    .end = end,
	    .owner = getuid()};
	HR_BUF(text, TEXT_MAX);

	return settle(hr_rw_write(&q, &text) == HR_RW_DONE, &text, err);
}

static int
writing(struct hr_err *err)
{
	static const struct tree_file files[] = {{.name = "ws/a/b/made", .new = "text\n"}};
	int r = write_one("ws/a/b/made", "text", 0, -1, err);

	tree_check(files, COUNT(files));
	return r;
}

static int
writing_over(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {"ws/f", "one\ntwo\nthree\n", "one\nTWO\nthree\n", 0751, 0}};
	int r;

	tree_make(files, COUNT(files));
	r = write_one("ws/f", "TWO", 1, 2, err);
	tree_check(files, COUNT(files));
	return r;
}

/* Over a hard link the bytes are copied: the one case in which half a file could be. */
static int
writing_linked(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {.name = "ws/f", .old = "old\n", .new = "a longer text\n"},
	    {.name = "ws/g", .old = "old\n", .new = "a longer text\n"}};
	struct hr_atomic a;
	int r;

	tree_make(files, 1);
	failcalls_spare(true);
	r = link(tree_path("ws/f"), tree_path("ws/g"));
	failcalls_spare(false);
	if (r != 0)
		return hr_err_sys(err, errno, "link");
	r = hr_atomic_open(&a, tree_path("ws/f"), 0666, err);
	if (r == 0)
		r = hr_fd_write_full(a.spool.fd, "a longer text\n", 14, err);
	/* the copy into it may break off: files/place/atomic.h says what is promised then */
	failcalls_spare(true);
	if (r == 0)
		r = hr_atomic_commit(&a, err);
	else
		hr_atomic_abort(&a);
	failcalls_spare(false);
	tree_check(files, COUNT(files));
	return r;
}

/* By a link, which stays one. */
static int
writing_through(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {"ws/d/f", "old\n", "new\n", 0600, 0}, {.name = "ws/l", .old = NULL, .new = "new\n"}};
	struct stat st;
	int r;

	tree_make(files, 1);
	failcalls_spare(true);
	r = symlink("d/f", tree_path("ws/l"));
	failcalls_spare(false);
	if (r != 0)
		return hr_err_sys(err, errno, "symlink");
	r = hr_atomic_write(tree_path("ws/l"), "new\n", 4, 0666, err);
	if (lstat(tree_path("ws/l"), &st) == 0 && !S_ISLNK(st.st_mode))
		fault_wrong("the link became a file");
	failcalls_spare(true);
	(void)unlink(tree_path("ws/l"));
	failcalls_spare(false);
	tree_check(files, 1);
	return r;
}

/* ---- the editor ---- */

struct step {
	const char *command, *name, *text, *old, *new;
	int64_t line;
};

static struct json_object *
string(const char *text)
{
	return text != NULL ? json_object_new_string(text) : NULL;
}

/* The arguments came from a request: making them is not looked at. */
static int
edit(const struct step *s, struct hr_err *err)
{
	const struct hr_editor editor = {span(fault_dir()), tree_path("history"), NULL};
	struct hr_edit q = {.command = span(s->command)};
	HR_BUF(text, HR_EDIT_TEXT_MAX);
	HR_BUF(diff, HR_EDIT_TEXT_MAX);
	int r;

	failcalls_spare(true);
	q.path = string(tree_path(s->name));
	q.file_text = string(s->text);
	q.old_str = string(s->old);
	q.new_str = string(s->new);
	q.insert_line = strcmp(s->command, "insert") == 0 ? json_object_new_int64(s->line) : NULL;
	failcalls_spare(false);
	r = settle(hr_editor_run(&editor, &q, &text, &diff) == HR_EDIT_DONE, &text, err);
	if (r == 0)
		r = settle(true, &diff, err);
	hr_buf_done(&text);
	hr_buf_done(&diff);
	failcalls_spare(true);
	(void)json_object_put(q.path);
	(void)json_object_put(q.file_text);
	(void)json_object_put(q.old_str);
	(void)json_object_put(q.new_str);
	(void)json_object_put(q.insert_line);
	failcalls_spare(false);
	return r;
}

static int
edit_in(const struct tree_file *files, size_t n, const struct step *s, struct hr_err *err)
{
	int r;

	tree_make(files, n);
	r = edit(s, err);
	tree_check(files, n);
	return r;
}

static int
viewing(struct hr_err *err)
{
	static const struct tree_file files[] = {{.name = "ws/f", .old = "one\ntwo\n"}};

	return edit_in(files, 1, &(struct step){.command = "view", .name = "ws/f"}, err);
}

/* As in the original: what cannot be looked at is shown as if it were no directory. */
static int
viewing_directory(struct hr_err *err)
{
	static const struct tree_file files[] = {{.name = "ws/a", .old = "x"},
	    {.name = "ws/.hidden", .old = "x"}, {.name = "ws/d/b", .old = "x"},
	    {.name = "ws/d/e/c", .old = "x"}};

	return edit_in(files, COUNT(files), &(struct step){.command = "view", .name = "ws"}, err);
}

static int
creating(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {.name = "ws/other", .old = "x"}, {.name = "ws/f", .new = "a\nb\n"}};
	const struct step s = {.command = "create", .name = "ws/f", .text = "a\nb\n"};

	return edit_in(files, COUNT(files), &s, err);
}

static int
replacing(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {"ws/f", "one\ntwo\nthree\n", "one\n2\nthree\n", 0750, 0}};
	const struct step s = {.command = "str_replace", .name = "ws/f", .old = "two", .new = "2"};

	return edit_in(files, COUNT(files), &s, err);
}

static int
inserting(struct hr_err *err)
{
	static const struct tree_file files[] = {{"ws/f", "one\n", "one\ntwo\n", 0, 0}};
	const struct step s = {.command = "insert", .name = "ws/f", .new = "two", .line = 1};

	return edit_in(files, COUNT(files), &s, err);
}

#define WIDE_OLD "\xff\xfeo\0n\0e\0\n\0"
#define WIDE_NEW "\xff\xfet\0w\0o\0\n\0"

static int
replacing_wide(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {"ws/f", WIDE_OLD, WIDE_NEW, 0, sizeof(WIDE_OLD) - 1}};
	const struct step s = {
	    .command = "str_replace", .name = "ws/f", .old = "one", .new = "two"};

	return edit_in(files, COUNT(files), &s, err);
}

/* Windows-1251: guessed. */
#define CYRILLIC_A                                                                                 \
	"\xcf\xf0\xe8\xe2\xe5\xf2, \xfd\xf2\xee \xef\xf0\xee\xf1\xf2\xee\xe9 "                     \
	"\xf2\xe5\xea\xf1\xf2 "                                                                    \
	"\xed\xe0 \xf0\xf3\xf1\xf1\xea\xee\xec \xff\xe7\xfb\xea\xe5.\n"

static int
replacing_legacy(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {"ws/f", CYRILLIC_A CYRILLIC_A "one\n", CYRILLIC_A CYRILLIC_A "two\n", 0, 0}};
	const struct step s = {
	    .command = "str_replace", .name = "ws/f", .old = "one", .new = "two"};

	return edit_in(files, COUNT(files), &s, err);
}

/* What an edit left is undone, or nothing is: never an older text than the last. */
static int
undoing(struct hr_err *err)
{
	static const struct tree_file files[] = {{"ws/f", "second\n", "third\n", 0, 0}};
	static const struct tree_file before[] = {{.name = "ws/f", .old = "first\n"}};
	static const struct step steps[] = {
	    {.command = "str_replace", .name = "ws/f", .old = "first", .new = "second"},
	    {.command = "str_replace", .name = "ws/f", .old = "second", .new = "third"},
	    {.command = "undo_edit", .name = "ws/f"}};
	struct hr_err why;
	HR_BUF(b, TEXT_MAX);
	bool changed;
	int r;

	tree_make(before, 1);
	failcalls_spare(true);
	r = edit(&steps[0], err);
	failcalls_spare(false);
	if (r != 0)
		return -1;
	r = edit(&steps[1], err);
	failcalls_spare(true);
	changed = hr_path_read(tree_path("ws/f"), &b, NULL) == 0 &&
		  strcmp(hr_buf_str(&b), "third\n") == 0;
	hr_buf_done(&b);
	failcalls_spare(false);
	/* also where there was no memory left to say that it is changed */
	if (changed && edit(&steps[2], r == 0 ? err : &why) != 0)
		r = -1;
	tree_check(files, 1);
	return r;
}

/* ---- files/revise ---- */

static int
revise_to(const char *old, const char *new, struct hr_err *err)
{
	const struct hr_revise r = {
	    .path = tree_path("ws/f"), .history_dir = tree_path("history"), .owner = getuid()};
	HR_CLEAN(hr_plaintext_done) struct hr_plaintext now;
	struct hr_revised done;
	HR_BUF(why, TEXT_MAX);
	int ret;

	hr_plaintext_init(&now);
	ret = old == NULL ? hr_revise_file_undo(&r, &why)
			  : hr_revise_file_replace(&r, span(old), span(new), &now, &done, &why);
	return settle(ret == 0, &why, err);
}

static int
revising(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {"ws/f", "one\r\ntwo\r\n", "one\r\n2\r\nx\r\n", 0750, 0}};
	int r;

	tree_make(files, 1);
	r = revise_to("two", "2\nx", err);
	tree_check(files, 1);
	return r;
}

static int
revising_wide(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {"ws/f", WIDE_OLD, WIDE_NEW, 0, sizeof(WIDE_OLD) - 1}};
	int r;

	tree_make(files, 1);
	r = revise_to("one", "two", err);
	tree_check(files, 1);
	return r;
}

/* The text is the old one again, or the new one where the undo failed. */
static int
revising_back(struct hr_err *err)
{
	static const struct tree_file files[] = {{"ws/f", "two\n", "one\n", 0, 0}},
				      before[] = {{"ws/f", "one\n", "two\n", 0, 0}};
	int r;

	tree_make(before, 1);
	failcalls_spare(true);
	r = revise_to("one", "two", err);
	failcalls_spare(false);
	if (r != 0)
		return -1;
	r = revise_to(NULL, NULL, err);
	tree_check(files, 1);
	return r;
}

static int
differing(struct hr_err *err)
{
	HR_BUF(b, TEXT_MAX);
	int r;

	r = hr_diff(&b, span("a\nb\nc\nd\ne\n"), span("a\nB\nc\ne\nf\n"), span("/f"), err);
	if (r == 0)
		r = settle(true, &b, err);
	return r;
}

const struct fault_scenario fault_scenarios[] = {{"read", reading, 0},
    {"read of listed media", reading_listed_media, FAULT_LOSSY}, {"write", writing, 0},
    {"write over", writing_over, 0}, {"write over a hard link", writing_linked, 0},
    {"write through a link", writing_through, 0}, {"view", viewing, 0},
    {"view of a directory", viewing_directory, FAULT_MEMORY_ONLY},
    {"view of a directory on a bad disk", viewing_directory, FAULT_LOSSY}, {"create", creating, 0},
    {"str_replace", replacing, 0}, {"insert", inserting, 0}, {"UTF-16", replacing_wide, 0},
    {"Windows-1251", replacing_legacy, 0}, {"undo_edit", undoing, 0}, {"diff", differing, 0},
    {"revise", revising, 0}, {"revise UTF-16", revising_wide, 0}, {"revise back", revising_back, 0},
    {NULL, NULL, 0}};
