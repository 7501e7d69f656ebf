/* Performs read, write and edit: arguments and answers; files/ does the work (doc/files.md). */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "actions/action.h"
#include "actions/shell.h"
#include "base/log.h"
#include "base/path.h"
#include "files/binary.h"
#include "files/diff.h"
#include "files/editor/editor.h"
#include "files/history.h"
#include "files/purepath.h"
#include "files/readwrite.h"
#include "files/revise/revise.h"
#include "proto/obs.h"
#include "proto/python/repr.h"

#define PATH_TEXT_MAX (64u << 20)

/* Returns true for an absolute path that a system call accepts. */
static bool
is_whole_path(const struct hr_arg *path)
{
	return path->type == HR_PY_STR && path->text.len > 0 && path->text.p[0] == '/' &&
	       memchr(path->text.p, '\0', path->text.len) == NULL;
}

/* ---- answers ---- */

/* Finishes the answer after hr_obs_put_*() has made the body. */
static void
put_done(struct hr_answer *ret, int put)
{
	if (put < 0)
		hr_answer_generic(ret);
	hr_answer_settle(ret);
}

/* Answers with an error text, whose buffer may have failed. */
static void
put_error(struct hr_answer *ret, const struct hr_buf *text)
{
	if (text->fail != HR_OK)
		hr_answer_generic(ret);
	else
		hr_action_error(ret, hr_buf_str(text), text->len);
}

static void
put_read(struct hr_answer *ret, struct hr_span path, const char *impl, const struct hr_buf *content)
{
	if (content->fail != HR_OK) {
		hr_answer_generic(ret);
		return;
	}
	hr_answer_reset(ret);
	put_done(
	    ret, hr_obs_put_read(&ret->body, path, impl, hr_span_of_buf(content), HR_JSON_REFUSE));
}

/* Raises "'int' object has no attribute 'endswith'". */
static void
raise_attribute(struct hr_answer *ret, enum hr_py_type t, const char *attribute)
{
	HR_BUF(why, 256);

	hr_buf_addf(&why, "'%s' object has no attribute '%s'", hr_py_type_name(t), attribute);
	hr_answer_internal(ret, &why);
}

static int64_t
arg_int(const struct hr_arg *a)
{
	return a->given != NULL && hr_json_type(a->given) == HR_PY_INT ? hr_json_int(a->given)
								       : a->number;
}

static bool
is_int(const struct hr_arg *a)
{
	return a->type == HR_PY_INT || a->type == HR_PY_BOOL;
}

/* Converts an index of lines. A float is accepted only if it equals `whole`, which asks for no
 * slice. Returns false if Python does not slice by the value. */
static bool
slice_index(const struct hr_arg *a, int64_t whole, int64_t *ret)
{
	if (is_int(a))
		*ret = arg_int(a);
	else if (a->type == HR_PY_FLOAT && json_object_get_double(a->given) == (double)whole)
		*ret = whole;
	else
		return false;
	return true;
}

/* Converts a bound of a read: *ret_float points to *room if the bound is a float. Returns false if
 * it is no number. */
static bool
read_bound(const struct hr_arg *a, int64_t *ret, double *room, const double **ret_float)
{
	if (a->type != HR_PY_FLOAT)
		return slice_index(a, 0, ret);
	*room = json_object_get_double(a->given);
	*ret_float = room;
	return true;
}

/* Raises Python's error for limiting such an argument to the lines of a file. */
static void
raise_not_index(struct hr_answer *ret, const struct hr_arg *start, const struct hr_arg *end)
{
	const struct hr_arg *a = is_int(start) || start->type == HR_PY_FLOAT ? end : start;
	HR_BUF(why, 256);

	hr_buf_addf(&why, "'>' not supported between instances of 'int' and '%s'",
	    hr_py_type_name(a->type));
	hr_answer_internal(ret, &why);
}

/* ---- paths ---- */

/* Appends the shell's directory as last reported. The query does not wait for a command. */
static void
put_shell_dir(const struct hr_action_env *env, struct hr_buf *dir)
{
	struct hr_err err = {.code = HR_OK};
	struct hr_session_state state;
	HR_BUF(frame, HR_FRAME_MAX + HR_FRAME_HEADER + (64u << 10));

	if (hr_shell_state(&(const struct hr_shell_place){.run_dir = env->run_dir}, &frame, &state,
		&err) == 0 &&
	    state.working_dir.len > 0) {
		hr_purepath_text(dir, state.working_dir.p, state.working_dir.len);
	} else {
		if (err.code != HR_OK)
			hr_log(HR_LOG_WARNING, "the shell's directory is not known: %s", err.msg);
		hr_purepath_text(dir, env->work_dir, strlen(env->work_dir));
	}
}

/* Makes the normalised absolute path, with the shell's directory if needed. */
static void
resolve(
    const struct hr_action_env *env, struct hr_span path, struct hr_buf *full, struct hr_buf *cwd)
{
	if (path.len == 0 || path.p[0] != '/')
		put_shell_dir(env, cwd);
	hr_purepath_join(full, hr_span_of_buf(cwd), path.p, path.len);
	if (cwd->fail != HR_OK)
		full->fail = cwd->fail;
}

static char *
undo_dir(const struct hr_action_env *env)
{
	return hr_path_join(env->run_dir, HR_HISTORY_UNDO);
}

/* Marks the action as started, right before a change. */
static void
mark(const void *arg)
{
	const struct hr_action_env *env = arg;

	if (env->entry != NULL)
		hr_journal_mark(env->journal, env->entry);
}

/* ---- read ---- */

static void
refuse_binary(struct hr_answer *ret)
{
	static const char text[] = "ERROR_BINARY_FILE";

	hr_action_error(ret, text, sizeof(text) - 1);
}

/* Decides by the content; path is relative to this process's directory. Returns false after it has
 * answered. */
static bool
is_text(struct hr_span path, struct hr_answer *ret)
{
	HR_BUF(why, 256);
	HR_FREE char *file = hr_purepath_bytes(path.p, path.len, &why);

	if (file == NULL)
		return hr_answer_internal(ret, &why);
	if (!hr_binary_file(file))
		return true;
	refuse_binary(ret);
	return false;
}

static void
answer_edit_text(struct hr_buf *content, enum hr_edit_result r, const struct hr_buf *text)
{
	if (r == HR_EDIT_ERROR)
		hr_buf_adds(content, "ERROR:\n");
	hr_buf_add(content, hr_buf_str(text), text->len);
	if (text->fail != HR_OK)
		content->fail = text->fail;
}

static enum hr_edit_result
run_editor(const struct hr_action_env *env, const struct hr_edit *q, struct hr_buf *text,
    struct hr_buf *diff)
{
	HR_FREE char *dir = undo_dir(env);
	const struct hr_editor editor = {.root = {env->work_dir, strlen(env->work_dir)},
	    .history_dir = dir,
	    .office = env->office};

	if (dir != NULL)
		return hr_editor_run(&editor, q, text, diff);
	text->fail = HR_E_NOMEM;
	return HR_EDIT_ERROR;
}

static void
read_by_editor(const struct hr_action_env *env, const struct hr_event *ev,
    const struct hr_arg *path, struct hr_answer *ret)
{
	struct hr_edit q = {.command = HR_OBS_SPAN("view"), .path = path->given};
	HR_BUF(text, HR_EDIT_TEXT_MAX);
	HR_BUF(diff, HR_EDIT_TEXT_MAX);
	HR_BUF(content, HR_EDIT_TEXT_MAX + 16);
	struct hr_arg range;
	enum hr_edit_result r;

	hr_event_arg(ev, "view_range", &range);
	q.view_range = range.given;
	r = run_editor(env, &q, &text, &diff);
	if (r == HR_EDIT_RAISED) {
		hr_answer_internal(ret, &text);
	} else {
		answer_edit_text(&content, r, &text);
		put_read(ret, path->text, "oh_aci", &content);
	}
}

static void
answer_read(const struct hr_action_env *env, const struct hr_event *ev, struct hr_span path,
    struct hr_buf *full, struct hr_buf *cwd, struct hr_answer *ret)
{
	struct hr_arg start, end;
	double floats[2];
	struct hr_read q = {.end = -1};
	enum hr_rw_result r;
	HR_BUF(text, HR_ANSWER_MAX);
	bool numbers;

	hr_event_arg(ev, "start", &start);
	hr_event_arg(ev, "end", &end);
	numbers = read_bound(&start, &q.start, &floats[0], &q.float_start) &&
		  read_bound(&end, &q.end, &floats[1], &q.float_end);
	q.path = hr_span_of_buf(full);
	if (cwd->len > 0)
		q.cwd = hr_span_of_buf(cwd);
	/* the same file is opened once for both */
	q.text_only = full->len == path.len && memcmp(hr_buf_str(full), path.p, path.len) == 0;
	if (!q.text_only && !is_text(path, ret))
		return;
	r = hr_rw_read(&q, &text);
	if (r == HR_RW_CWD) {
		put_shell_dir(env, cwd);
		q.cwd = hr_span_of_buf(cwd);
		r = hr_rw_read(&q, &text);
	}
	if (full->fail != HR_OK || cwd->fail != HR_OK)
		hr_answer_generic(ret);
	else if (r == HR_RW_RAISED)
		hr_answer_internal(ret, &text);
	else if (r == HR_RW_BINARY)
		refuse_binary(ret);
	else if (r == HR_RW_ERROR)
		put_error(ret, &text);
	else if (!numbers && !hr_rw_is_media(q.path))
		raise_not_index(ret, &start, &end);
	else
		put_read(ret, q.path, "default", &text);
}

static void
read_plainly(const struct hr_action_env *env, const struct hr_event *ev, struct hr_span path,
    struct hr_answer *ret)
{
	HR_BUF(full, PATH_TEXT_MAX);
	HR_BUF(cwd, PATH_TEXT_MAX);

	resolve(env, path, &full, &cwd);
	answer_read(env, ev, path, &full, &cwd, ret);
}

/* Reads a whole text with its line ends, for handrail's own interfaces. Returns false if it is not
 * such a text. */
static bool
read_exactly(const struct hr_action_env *env, const struct hr_event *ev, const struct hr_arg *path,
    struct hr_answer *ret)
{
	HR_CLEAN(hr_plaintext_done) struct hr_plaintext t;
	HR_BUF(bytes, HR_PLAINTEXT_MAX);
	HR_BUF(why, PATH_TEXT_MAX);
	struct hr_arg start, end;

	hr_plaintext_init(&t);
	hr_event_arg(ev, "start", &start);
	hr_event_arg(ev, "end", &end);
	if ((!ev->exact && env->rules != HR_RULES_OWN) || !is_whole_path(path) ||
	    start.given != NULL || end.given != NULL || hr_rw_is_media(path->text) ||
	    hr_revise_load(path->text.p, &bytes, &why) < 0 ||
	    !hr_plaintext_decode(&t, hr_buf_str(&bytes), bytes.len))
		return false;
	hr_answer_reset(ret);
	put_done(ret, hr_obs_put_read(&ret->body, path->text, "default", hr_span_of_buf(&t.text),
			  HR_JSON_REPLACE));
	return true;
}

static void
perform_read(const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret)
{
	struct hr_arg path, impl;

	hr_event_arg(ev, "path", &path);
	hr_event_arg(ev, "impl_source", &impl);
	if (read_exactly(env, ev, &path, ret))
		return;
	if (path.type != HR_PY_STR)
		raise_attribute(ret, path.type, "endswith");
	else if (hr_binary_name(path.text.p, path.text.len))
		refuse_binary(ret);
	else if (!hr_json_str_is(impl.given, "oh_aci"))
		read_plainly(env, ev, path.text, ret);
	else if (is_text(path.text, ret))
		read_by_editor(env, ev, &path, ret);
}

/* ---- write ---- */

/* Writes under the lock of edits. */
static enum hr_rw_result
write_in_turn(const struct hr_action_env *env, const struct hr_write *q, struct hr_buf *text)
{
	struct hr_err err = {.code = HR_OK};
	enum hr_rw_result r = HR_RW_RAISED;
	struct hr_history turn;
	HR_FREE char *dir = undo_dir(env);

	if (dir == NULL) {
		text->fail = HR_E_NOMEM;
		return r;
	}
	if (hr_history_open(&turn, dir, &err) < 0) {
		hr_buf_adds(text, err.msg);
	} else {
		r = hr_rw_write(q, text);
		hr_history_close(&turn);
	}
	return r;
}

static void
perform_write(const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret)
{
	struct hr_arg path, content, start, end;
	HR_BUF(full, PATH_TEXT_MAX);
	HR_BUF(cwd, PATH_TEXT_MAX);
	HR_BUF(text, PATH_TEXT_MAX);
	const struct hr_commit commit = {mark, env};
	/* the bounds that None stands for */
	struct hr_write q = {
	    .start = INT64_MAX, .end = 0, .owner = env->user_id, .commit = &commit};
	enum hr_rw_result r;

	hr_event_arg(ev, "path", &path);
	hr_event_arg(ev, "content", &content);
	hr_event_arg(ev, "start", &start);
	hr_event_arg(ev, "end", &end);
	if (path.type != HR_PY_STR) {
		hr_buf_addf(&text, "expected str, bytes or os.PathLike object, not %s",
		    hr_py_type_name(path.type));
		hr_answer_internal(ret, &text);
		return;
	}
	if (content.type != HR_PY_STR) {
		raise_attribute(ret, content.type, "split");
		return;
	}
	resolve(env, path.text, &full, &cwd);
	q.path = hr_span_of_buf(&full);
	q.content = content.text;
	q.unsliced = (start.type != HR_PY_NONE && !slice_index(&start, 0, &q.start)) ||
		     (end.type != HR_PY_NONE && !slice_index(&end, -1, &q.end));
	r = full.fail == HR_OK ? write_in_turn(env, &q, &text) : HR_RW_RAISED;
	if (full.fail != HR_OK)
		hr_answer_generic(ret);
	else if (r == HR_RW_RAISED)
		hr_answer_internal(ret, &text);
	else if (r == HR_RW_ERROR)
		put_error(ret, &text);
	else {
		hr_answer_reset(ret);
		put_done(ret, hr_obs_put_write(&ret->body, q.path, HR_JSON_REFUSE));
	}
}

/* ---- edit ---- */

static void
answer_edit(struct hr_answer *ret, struct hr_span path, const struct hr_edit *q,
    const struct hr_buf *content, const struct hr_buf *diff)
{
	const struct hr_obs_edit e = {
	    path, q->old_str, q->new_str, hr_span_of_buf(content), hr_span_of_buf(diff)};

	if (content->fail != HR_OK || diff->fail != HR_OK) {
		hr_answer_generic(ret);
		return;
	}
	hr_answer_reset(ret);
	put_done(ret, hr_obs_put_edit(&ret->body, &e, HR_JSON_REFUSE));
}

static void
edit(const struct hr_action_env *env, const struct hr_arg *path, const struct hr_edit *q,
    struct hr_answer *ret)
{
	HR_BUF(text, HR_EDIT_TEXT_MAX);
	HR_BUF(diff, HR_EDIT_TEXT_MAX);
	HR_BUF(content, HR_EDIT_TEXT_MAX + 16);
	enum hr_edit_result r;

	if (path->type != HR_PY_STR) { /* the text of the diff's error */
		hr_buf_adds(&text, "all arguments must be str, not: ");
		hr_pyrepr(&text, path->given);
		hr_answer_internal(ret, &text);
		return;
	}
	r = run_editor(env, q, &text, &diff);
	if (r == HR_EDIT_RAISED) {
		hr_answer_internal(ret, &text);
	} else {
		answer_edit_text(&content, r, &text);
		answer_edit(ret, path->text, q, &content, &diff);
	}
}

/* Edits under the history's lock, by the rules of handrail's own interfaces: a concurrent change is
 * kept. */
static void
edit_exactly(const struct hr_action_env *env, const struct hr_arg *path, const struct hr_edit *q,
    struct hr_answer *ret)
{
	HR_CLEAN(hr_plaintext_done) struct hr_plaintext now;
	HR_BUF(before, HR_EDIT_TEXT_MAX);
	HR_BUF(diff, HR_EDIT_TEXT_MAX);
	HR_BUF(why, PATH_TEXT_MAX);
	HR_BUF(content, PATH_TEXT_MAX);
	HR_FREE char *dir = undo_dir(env);
	const struct hr_revise r = {.path = path->text.p,
	    .history_dir = dir,
	    .owner = env->user_id,
	    .commit = q->commit,
	    .before = &before};
	struct hr_revised done;
	struct hr_span old, new;

	hr_plaintext_init(&now);
	old.p = hr_json_str(q->old_str, &old.len);
	new.p = hr_json_str(q->new_str, &new.len);
	if (dir == NULL) {
		content.fail = HR_E_NOMEM;
	} else if (hr_revise_file_replace(&r, old, new, &now, &done, &why) < 0) {
		hr_buf_addf(&content, "ERROR:\nNo replacement was performed in %s: ", r.path);
		hr_buf_add(&content, hr_buf_str(&why), why.len);
		hr_buf_addc(&content, '.');
	} else {
		hr_buf_addf(&content, "The file %s has been edited.", r.path);
		if (hr_diff(&diff, hr_span_of_buf(&before), hr_span_of_buf(&now.text), path->text,
			NULL) < 0)
			diff.fail = HR_E_NOMEM;
	}
	answer_edit(ret, path->text, q, &content, &diff);
}

static struct json_object *
given(const struct hr_event *ev, const char *name)
{
	struct hr_arg a;

	hr_event_arg(ev, name, &a);
	return a.given;
}

static void
perform_edit(const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret)
{
	const struct hr_commit commit = {mark, env};
	struct hr_edit q = {.path = given(ev, "path"),
	    .file_text = given(ev, "file_text"),
	    .old_str = given(ev, "old_str"),
	    .new_str = given(ev, "new_str"),
	    .insert_line = given(ev, "insert_line"),
	    .commit = &commit};
	struct hr_arg path, command, impl;
	static const char exact_edits[] =
	    "An exact edit is the command str_replace with an absolute path, old_str and new_str.";
	HR_BUF(name, PATH_TEXT_MAX);

	hr_event_arg(ev, "path", &path);
	hr_event_arg(ev, "command", &command);
	hr_event_arg(ev, "impl_source", &impl);
	if (impl.type != HR_PY_STR || impl.text.len != 6 || memcmp(impl.text.p, "oh_aci", 6) != 0) {
		hr_answer_internal(ret, &name); /* the error has no text */
		return;
	}
	q.command = command.text;
	if (command.type != HR_PY_STR) {
		hr_pyrepr(&name, command.given);
		q.command = hr_span_of_buf(&name);
	}
	if (!ev->exact && env->rules != HR_RULES_OWN)
		edit(env, &path, &q, ret);
	else if (is_whole_path(&path) && hr_json_type(q.old_str) == HR_PY_STR &&
		 hr_json_type(q.new_str) == HR_PY_STR &&
		 hr_span_equal(q.command, hr_span_of("str_replace")))
		edit_exactly(env, &path, &q, ret);
	else
		hr_action_error(ret, exact_edits, sizeof(exact_edits) - 1);
}

const struct hr_action_ops hr_act_read = {"read", perform_read};
const struct hr_action_ops hr_act_write = {"write", perform_write};
const struct hr_action_ops hr_act_edit = {"edit", perform_edit};
