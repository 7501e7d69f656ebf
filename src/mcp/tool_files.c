/* read, write, edit, undo: the file actions under short names. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "files/readwrite.h"
#include "mcp/call.h"

static const struct hr_span no_key = {"", 0};

static struct json_object *
args_new(struct hr_span path, const char *command)
{
	return hr_json_object(
	    NULL, "path", hr_mcp_json_str(path), "command", hr_json_maybe(command), NULL);
}

/* False: o is put, all is said. */
static bool
args_add(struct hr_mcp_call *c, struct json_object *o, const char *name, struct json_object *v)
{
	if (hr_json_set(o, name, v, NULL) == 0)
		return true;
	json_object_put(o);
	hr_mcp_fail(c, "Out of memory; nothing was done. Try again.");
	return false;
}

/* The editor says of itself whether it could, in its text. */
static void
put_edited(struct hr_mcp_call *c, struct json_object *o)
{
	static const char failed[] = "ERROR:\n";
	struct hr_span s;

	if (o == NULL || hr_mcp_is_error(c, o))
		return;
	s = hr_json_span_or(o, "content", "");
	if (s.len >= sizeof(failed) - 1 && memcmp(s.p, failed, sizeof(failed) - 1) == 0) {
		hr_mcp_fail(c, "%s", "");
		s.p += sizeof(failed) - 1;
		s.len -= sizeof(failed) - 1;
	}
	hr_buf_add(&c->text, s.p, s.len);
}

/* ---- read ---- */

static const struct hr_mcp_param read_params[] = {
    {"path", HR_MCP_STR, true, "Absolute, or below the default shell's directory."},
    {"first", HR_MCP_INT, false, "Number of the first line, from 1."},
    {"last", HR_MCP_INT, false, "Number of the last line; left out: to the end."},
    {NULL, HR_MCP_STR, false, NULL},
};

static struct json_object *
range_of(const struct hr_mcp_call *c)
{
	struct json_object *range;

	if (hr_json_at(c->args, "first") == NULL && hr_json_at(c->args, "last") == NULL)
		return NULL;
	range = json_object_new_array();
	if (range != NULL) {
		(void)json_object_array_add(
		    range, json_object_new_int64(hr_mcp_arg_int(c, "first", 1, 1, INT32_MAX)));
		(void)json_object_array_add(
		    range, json_object_new_int64(hr_mcp_arg_int(c, "last", -1, -1, INT32_MAX)));
	}
	return range;
}

static void
read_file(struct hr_mcp_call *c, struct hr_span path)
{
	bool media = hr_rw_is_media(path);
	struct json_object *args = args_new(path, NULL), *range = media ? NULL : range_of(c);
	HR_PUT struct json_object *o = NULL;

	if (!media && !args_add(c, args, "impl_source", json_object_new_string("oh_aci"))) {
		json_object_put(range);
		return;
	}
	if (range != NULL && !args_add(c, args, "view_range", range))
		return;
	o = hr_mcp_perform(c, NULL, "read", args, 0, no_key);
	if (o != NULL && media && !hr_mcp_is_error(c, o)) {
		if (hr_mcp_put_data(c, hr_json_span_or(o, "content", ""), path))
			hr_mcp_say(c, "%.*s", path.len < 2000 ? (int)path.len : 2000, path.p);
		else
			put_edited(c, o);
	} else if (o != NULL && !media) {
		if (hr_json_text_at(o, "content") != NULL &&
		    strcmp(hr_json_text_at(o, "content"), "ERROR_BINARY_FILE") == 0)
			hr_mcp_fail(c,
			    "That is a binary file. Look at it with run, by file, xxd or "
			    "strings.");
		else
			put_edited(c, o);
	}
}

static void
call_read(struct hr_mcp_call *c)
{
	HR_FREE char *path = hr_mcp_path(c, "path");

	if (path != NULL)
		read_file(c, hr_span_of(path));
}

const struct hr_mcp_tool hr_mcp_read = {.name = "read",
    .title = "Read a file",
    .help = "Shows a file with numbers before its lines, or the names in a directory. Images, and "
	    "PDF and office documents as text, are shown, too. Waits for no command.",
    .reads = true,
    .idempotent = true,
    .params = read_params,
    .call = call_read};

/* ---- write ---- */

static const struct hr_mcp_param write_params[] = {
    {"path", HR_MCP_STR, true, "Absolute, or below the default shell's directory."},
    {"content", HR_MCP_STR, true,
	"All that the file holds then; its last line is ended where it is not."},
    {NULL, HR_MCP_STR, false, NULL},
};

static void
call_write(struct hr_mcp_call *c)
{
	HR_FREE char *path = hr_mcp_path(c, "path");
	struct hr_span content = hr_mcp_arg(c, "content");
	HR_PUT struct json_object *o = NULL;
	struct json_object *args;

	if (path == NULL)
		return;
	/* the action ends the last line by itself */
	if (content.len > 0 && content.p[content.len - 1] == '\n')
		content.len--;
	args = args_new(hr_span_of(path), NULL);
	if (!args_add(c, args, "content", hr_mcp_json_str(content)))
		return;
	o = hr_mcp_perform(c, NULL, "write", args, 0, no_key);
	if (o != NULL && !hr_mcp_is_error(c, o))
		hr_mcp_say(c, "Wrote %zu bytes to %.2000s.", content.len + 1, path);
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
	"it."},
    {"new", HR_MCP_STR, true, "Text in its place."},
    {"after_line", HR_MCP_INT, false, "Instead of old: put new behind this line; 0: before all."},
    {NULL, HR_MCP_STR, false, NULL},
};

static void
call_edit(struct hr_mcp_call *c)
{
	struct hr_span old = hr_mcp_arg(c, "old");
	bool insert = hr_json_at(c->args, "after_line") != NULL;
	struct json_object *args;
	HR_PUT struct json_object *o = NULL;
	HR_FREE char *path = NULL;

	if (insert == (old.p != NULL)) {
		hr_mcp_fail(c, "edit takes either old or after_line.");
		return;
	}
	path = hr_mcp_path(c, "path");
	if (path == NULL)
		return;
	args = args_new(hr_span_of(path), insert ? "insert" : "str_replace");
	if (args_add(c, args, "new_str", hr_mcp_json_str(hr_mcp_arg(c, "new"))) &&
	    (insert ? args_add(c, args, "insert_line",
			  json_object_new_int64(
			      hr_mcp_arg_int(c, "after_line", 0, INT32_MIN, INT32_MAX)))
		    : args_add(c, args, "old_str", hr_mcp_json_str(old)))) {
		o = hr_mcp_perform(c, NULL, "edit", args, 0, no_key);
		put_edited(c, o);
	}
}

const struct hr_mcp_tool hr_mcp_edit = {.name = "edit",
    .title = "Change a file",
    .help =
	"Replaces a text that occurs once in a file by another one, or inserts lines, and shows "
	"the place. A file is changed whole or not at all.",
    .destroys = true,
    .params = edit_params,
    .call = call_edit};

static const struct hr_mcp_param undo_params[] = {
    {"path", HR_MCP_STR, true, "Absolute, or below the default shell's directory."},
    {NULL, HR_MCP_STR, false, NULL},
};

static void
call_undo(struct hr_mcp_call *c)
{
	HR_FREE char *path = hr_mcp_path(c, "path");
	HR_PUT struct json_object *o = NULL;

	if (path == NULL)
		return;
	o = hr_mcp_perform(c, NULL, "edit", args_new(hr_span_of(path), "undo_edit"), 0, no_key);
	put_edited(c, o);
}

const struct hr_mcp_tool hr_mcp_undo = {.name = "undo",
    .title = "Undo a change",
    .help = "Takes the last edit of a file back.",
    .destroys = true,
    .params = undo_params,
    .call = call_undo};
