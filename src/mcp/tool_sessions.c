/* Implements the tools sessions and end, which list and end shells. */
#include "config.h"

#include <string.h>

#include "actions/shell.h"
#include "base/buf.h"
#include "mcp/call.h"
#include "proto/channel.h"

bool
hr_mcp_session(struct hr_mcp_call *c, char ret[HR_MCP_SESSION])
{
	struct hr_span name = hr_mcp_arg(c, "session");

	ret[0] = '\0';
	if (name.p == NULL || name.len == 0 || (name.len == 7 && memcmp(name.p, "default", 7) == 0))
		return true;
	if (name.len >= HR_MCP_SESSION || !hr_session_name_fits(name.p, name.len))
		return hr_mcp_fail(c,
		    "A session's name has up to 32 letters, digits, _ . and - and begins "
		    "with a letter or a digit.");
	memcpy(ret, name.p, name.len);
	ret[name.len] = '\0';
	return true;
}

/* ---- sessions ---- */

static void
put_session(struct hr_mcp_call *c, const char *name)
{
	const struct hr_shell_place place = {
	    .run_dir = c->env->run_dir, .session = strcmp(name, "default") == 0 ? NULL : name};
	struct hr_session_state s = {.working_dir = {"", 0}};
	HR_BUF(frame, HR_FRAME_MAX);
	bool known = hr_shell_state(&place, &frame, &s, NULL) == 0;

	hr_buf_addc(&c->structured, c->text.len > 0 ? ',' : '[');
	hr_buf_addc(&c->structured, '{');
	hr_json_put_named(&c->structured, "name", name);
	hr_buf_addf(&c->structured, ",\"running\":%s",
	    !known      ? "null"
	    : s.running ? "true"
			: "false");
	if (known)
		hr_json_put_member(&c->structured, "working_dir", s.working_dir);
	else
		hr_buf_adds(&c->structured, ",\"working_dir\":null");
	hr_buf_addc(&c->structured, '}');
	hr_mcp_say(c, "%s: %s", name,
	    !known      ? "does not answer now"
	    : s.running ? "runs a command"
			: "is idle");
	if (known && s.working_dir.len < 1024)
		hr_mcp_say(c, ", in %.*s", (int)s.working_dir.len, s.working_dir.p);
	hr_mcp_say(c, "\n");
}

static void
call_sessions(struct hr_mcp_call *c)
{
	HR_CLEAN(hr_answer_done) struct hr_answer answer;
	HR_BUF(names, HR_CHANNEL_ANSWER_MAX);
	size_t at;

	hr_answer_init(&answer);
	if (!c->env->names(c->env->arg, &names, &answer)) {
		hr_mcp_fail(c, "The sessions cannot be listed now: %s", hr_buf_str(&answer.body));
		return;
	}
	hr_buf_adds(&c->structured, "{\"sessions\":");
	put_session(c, "default");
	for (at = 0; at < names.len; at += strlen(names.p + at) + 1)
		put_session(c, names.p + at);
	hr_buf_adds(&c->structured, "]}");
}

static const struct hr_mcp_param no_params[] = {{NULL, HR_MCP_STR, false, NULL}};

const struct hr_mcp_tool hr_mcp_sessions = {.name = "sessions",
    .title = "List sessions",
    .help = "The shells that run knows as sessions: whether a command runs in each, and its "
	    "directory.",
    .reads = true,
    .idempotent = true,
    .params = no_params,
    .output = "{\"type\":\"object\",\"properties\":{\"sessions\":{\"type\":\"array\",\"items\":{"
	      "\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"running\":{"
	      "\"type\":[\"boolean\",\"null\"]},\"working_dir\":{\"type\":[\"string\",\"null\"]}},"
	      "\"required\":[\"name\",\"running\"]}}},\"required\":[\"sessions\"]}",
    .call = call_sessions};

/* ---- end ---- */

static void
say_ended(struct hr_mcp_call *c, const char *name, const struct hr_answer *answer)
{
	if (answer->status == 200) {
		if (name[0] != '\0')
			hr_mcp_say(c, "The session %s has ended.", name);
		else
			hr_mcp_say(c, "The shell of the default session was ended; another one has "
				      "taken its place.");
	} else if (answer->status == 404) {
		hr_mcp_fail(c, "There is no session of that name; call sessions to see them.");
	} else {
		hr_mcp_fail(c, "The session was not ended: %s", hr_buf_str(&answer->body));
	}
}

static void
call_end(struct hr_mcp_call *c)
{
	HR_CLEAN(hr_answer_done) struct hr_answer answer;
	char name[HR_MCP_SESSION];

	hr_answer_init(&answer);
	if (!hr_mcp_session(c, name))
		return;
	if (c->env->enter(c->env->arg, &answer)) {
		hr_answer_reset(&answer);
		(void)c->env->end(c->env->arg, name[0] != '\0' ? name : NULL, &answer);
		c->env->leave(c->env->arg, &answer);
	}
	say_ended(c, name, &answer);
}

static const struct hr_mcp_param end_params[] = {
    {"session", HR_MCP_STR, true, "Name of the session, as run was given it."},
    {NULL, HR_MCP_STR, false, NULL},
};

const struct hr_mcp_tool hr_mcp_end = {.name = "end",
    .title = "End a session",
    .help = "Ends the shell of a session and what runs in it, which makes room for another "
	    "session. The default session gets a new shell.",
    .destroys = true,
    .params = end_params,
    .call = call_end};
