/* Implements the tools write, edit and undo: they change files through files/revise, once per
 * call. */
#include "config.h"

#include <json-c/json_object.h>

#include "files/history.h"
#include "files/revise/revise.h"
#include "base/path.h"
#include "mcp/call.h"

#define AROUND 4 /* number of lines shown before and after a change */
#define SHOWN (16u << 10)

/* ---- common code ---- */

/* The arguments of one change. */
struct change {
	struct hr_mcp_call *c;
	const char *path;
	struct hr_buf text; /* text for the client */
	bool failed;
};

typedef void change_fn(struct change *ch, const struct hr_revise *r);

static void
mark(const void *arg)
{
	const struct hr_mcp_env *env = arg;

	env->mark(env->arg);
}

/* Stores the client's text as the journal's answer, so that a repeated call returns the same. */
static void
perform(struct change *ch, change_fn *fn, struct hr_answer *answer)
{
	const struct hr_mcp_env *env = ch->c->env;
	const struct hr_commit commit = {mark, env};
	HR_FREE char *history = hr_path_join(env->run_dir, HR_HISTORY_UNDO);
	const struct hr_revise r = {
	    .path = ch->path, .history_dir = history, .owner = env->user_id, .commit = &commit};

	if (history == NULL)
		ch->text.fail = HR_E_NOMEM;
	else
		fn(ch, &r);
	hr_answer_reset(answer);
	hr_buf_addf(&answer->body, "{\"failed\":%s,\"text\":", ch->failed ? "true" : "false");
	(void)hr_json_put_str(&answer->body, hr_buf_str(&ch->text), ch->text.len, HR_JSON_REPLACE);
	hr_buf_addc(&answer->body, '}');
	if (ch->text.fail != HR_OK)
		hr_answer_generic(answer);
	hr_answer_settle(answer);
}

static void
tell(struct hr_mcp_call *c, const struct hr_answer *a)
{
	HR_PUT struct json_object *body = NULL;
	struct hr_span text;

	if (a->status != 200) {
		hr_mcp_fail_status(c, a);
		return;
	}
	if (hr_json_decode(hr_buf_str(&a->body), a->body.len, &body, NULL) < 0) {
		hr_mcp_fail(c, "The sandbox's answer cannot be read.");
		return;
	}
	if (hr_json_true_at(body, "failed"))
		hr_mcp_fail(c, "%s", "");
	text = hr_json_span_or(body, "text", "");
	hr_buf_add(&c->text, text.p, text.len);
}

static void
change(struct hr_mcp_call *c, const char *type, change_fn *fn)
{
	HR_FREE char *path = hr_mcp_path(c, "path");
	struct change ch = {.c = c, .path = path};
	struct hr_answer answer;

	if (path == NULL)
		return;
	hr_buf_init(&ch.text, HR_MCP_BODY_MAX);
	hr_answer_init(&answer);
	if (c->env->begin(c->env->arg, &answer)) {
		perform(&ch, fn, &answer);
		c->env->leave(c->env->arg, &answer);
	}
	tell(c, &answer);
	if (!answer.replayed)
		hr_mcp_count_as(c, type);
	hr_answer_done(&answer);
	hr_buf_done(&ch.text);
}

static void
fail(struct change *ch, const struct hr_buf *why)
{
	ch->failed = true;
	hr_buf_addf(&ch->text, "%s was not changed: ", ch->path);
	hr_buf_add(&ch->text, hr_buf_str(why), why->len);
	hr_buf_addc(&ch->text, '.');
}

/* ---- write ---- */

static const struct hr_mcp_param write_params[] = {
    {"path", HR_MCP_STR, true, "Absolute, or below the default shell's directory."},
    {"content", HR_MCP_STR, true,
	"All that the file holds then, byte for byte: end the last line with a line feed."},
    {NULL, HR_MCP_STR, false, NULL},
};

static void
do_write(struct change *ch, const struct hr_revise *r)
{
	struct hr_span content = hr_mcp_arg(ch->c, "content");
	HR_BUF(why, SHOWN);

	if (hr_revise_file_write(r, content, &why) < 0)
		fail(ch, &why);
	else
		hr_buf_addf(&ch->text, "Wrote %zu bytes to %s.", content.len, ch->path);
}

static void
call_write(struct hr_mcp_call *c)
{
	change(c, "write", do_write);
}

const struct hr_mcp_tool hr_mcp_write = {.name = "write",
    .title = "Write a file",
    .help = "Makes a file, or replaces all of one, with the directories above it. To change a "
	    "part, use edit.",
    .destroys = true,
    .idempotent = true,
    .params = write_params,
    .call = call_write};

/* ---- edit, undo ---- */

static const struct hr_mcp_param edit_params[] = {
    {"path", HR_MCP_STR, true, "Absolute, or below the default shell's directory."},
    {"old", HR_MCP_STR, false,
	"Text that occurs exactly once, blanks and line ends among it; take enough lines around "
	"it. A line feed fits CR LF, too."},
    {"new", HR_MCP_STR, true, "Text in its place; its line ends become those of the file."},
    {"after_line", HR_MCP_INT, false,
	"Instead of old: put new as lines of its own after this line; 0: before all."},
    {NULL, HR_MCP_STR, false, NULL},
};

/* Shows the changed lines and a few around them. */
static void
show(struct change *ch, const struct hr_plaintext *now, const struct hr_revised *done)
{
	size_t first = done->line > AROUND ? done->line - AROUND : 1;

	hr_buf_addf(&ch->text, "Changed %s. Its lines from %zu on:\n", ch->path, first);
	(void)hr_mcp_put_lines(&ch->text, now, first,
	    done->line + (done->lines > 0 ? done->lines - 1 : 0) + AROUND, SHOWN);
}

static void
do_edit(struct change *ch, const struct hr_revise *r)
{
	struct hr_span old = hr_mcp_arg(ch->c, "old"), new = hr_mcp_arg(ch->c, "new");
	HR_CLEAN(hr_plaintext_done) struct hr_plaintext now;
	struct hr_revised done = {0};
	HR_BUF(why, SHOWN);
	int ret;

	hr_plaintext_init(&now);
	ret = old.p != NULL ? hr_revise_file_replace(r, old, new, &now, &done, &why)
			    : hr_revise_file_insert(r,
				  hr_mcp_arg_int(ch->c, "after_line", 0, INT32_MIN, INT32_MAX), new,
				  &now, &done, &why);
	if (ret < 0)
		fail(ch, &why);
	else
		show(ch, &now, &done);
}

static void
call_edit(struct hr_mcp_call *c)
{
	if ((hr_json_at(c->args, "after_line") != NULL) == (hr_mcp_arg(c, "old").p != NULL))
		hr_mcp_fail(c, "edit takes either old or after_line.");
	else
		change(c, "edit", do_edit);
}

const struct hr_mcp_tool hr_mcp_edit = {.name = "edit",
    .title = "Change a file",
    .help =
	"Replaces a text that occurs once in a file by another one, or inserts lines, and shows "
	"the place. Charset and line ends stay. A file is changed whole or not at all.",
    .destroys = true,
    .params = edit_params,
    .call = call_edit};

static const struct hr_mcp_param undo_params[] = {
    {"path", HR_MCP_STR, true, "Absolute, or below the default shell's directory."},
    {NULL, HR_MCP_STR, false, NULL},
};

static void
do_undo(struct change *ch, const struct hr_revise *r)
{
	HR_BUF(why, SHOWN);

	if (hr_revise_file_undo(r, &why) < 0)
		fail(ch, &why);
	else
		hr_buf_addf(&ch->text, "%s is as it was before its last edit.", ch->path);
}

static void
call_undo(struct hr_mcp_call *c)
{
	change(c, "edit", do_undo);
}

const struct hr_mcp_tool hr_mcp_undo = {.name = "undo",
    .title = "Undo a change",
    .help = "Takes the last edit of a file back, unless the file has changed since.",
    .destroys = true,
    .params = undo_params,
    .call = call_undo};
