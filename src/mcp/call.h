/* hr_mcp_call: one tools/call, from its arguments to its result. For the tools. */
#ifndef HR_MCP_CALL_H
#define HR_MCP_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "mcp/env.h"
#include "mcp/rpc.h"
#include "proto/json.h"

#define HR_MCP_SESSION 33 /* a shell's name */

/* A command of a shell that is waited for, by the number that its keeper gave it. */
struct hr_mcp_wait {
	char session[HR_MCP_SESSION]; /* "": the default one */
	int64_t id, started;          /* of the command; started: tells those of another server */
	uint64_t from;                /* offset of the first byte that was not shown */
	int64_t until_ms;             /* hr_now_ms() */
	bool sequential;              /* what is too long is shown from its beginning on */
};

struct hr_mcp_call {
	const struct hr_mcp_env *env;
	struct hr_mcp_env own; /* env, while it is streamed */
	struct hr_rpc rpc;
	struct json_object *args;  /* NULL: none */
	struct json_object *token; /* of progress; NULL: nobody asks */
	bool modern;               /* 2026-07-28 */
	bool events;               /* the answer may be a stream */
	bool is_error;
	bool waits; /* `wait` is to be waited for: the result comes then */
	struct hr_mcp_wait wait;
	struct hr_buf text;       /* the text block */
	struct hr_buf blocks;     /* further ones, each behind a comma */
	struct hr_buf structured; /* "": none */
	/* the action that was performed, for the log */
	struct hr_note note;
	struct hr_buf key;
};

enum hr_mcp_type { HR_MCP_STR, HR_MCP_INT, HR_MCP_NUM, HR_MCP_BOOL, HR_MCP_MAP, HR_MCP_LIST };

struct hr_mcp_param {
	const char *name;
	enum hr_mcp_type type; /* MAP: of strings; LIST: of strings */
	bool required;
	const char *help;
};

struct hr_mcp_tool {
	const char *name, *title, *help;
	bool reads, destroys, idempotent, open_world;
	const char *plugin; /* the type of action that a plugin has to take; NULL: always there */
	const struct hr_mcp_param *params; /* ends with a name of NULL */
	const char *output;                /* JSON schema of the structured part; NULL: none */
	void (*call)(struct hr_mcp_call *c);
};

extern const struct hr_mcp_tool *const hr_mcp_tools[];
extern const size_t hr_mcp_tools_n;

extern const struct hr_mcp_tool hr_mcp_run, hr_mcp_wait, hr_mcp_input, hr_mcp_interrupt;
extern const struct hr_mcp_tool hr_mcp_sessions, hr_mcp_end;
extern const struct hr_mcp_tool hr_mcp_read, hr_mcp_write, hr_mcp_edit, hr_mcp_undo;
extern const struct hr_mcp_tool hr_mcp_list, hr_mcp_glob, hr_mcp_grep;
extern const struct hr_mcp_tool hr_mcp_ipython, hr_mcp_browse, hr_mcp_ports;

/* The text block; an error that the model can act on replaces what is there. */
void hr_mcp_say(struct hr_mcp_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hr_mcp_fail(struct hr_mcp_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Arguments, whose types were checked. */
struct hr_span hr_mcp_arg(const struct hr_mcp_call *c, const char *name); /* p NULL: not given */
double hr_mcp_wait_s(const struct hr_mcp_call *c, double least); /* "wait_s", 300 at most */
int64_t hr_mcp_arg_int(
    const struct hr_mcp_call *c, const char *name, int64_t otherwise, int64_t min, int64_t max);
bool hr_mcp_arg_true(const struct hr_mcp_call *c, const char *name);

/* A path as it was given, or below the directory of the default shell. NULL: failed, all is said.
 * The caller frees. */
char *hr_mcp_path(struct hr_mcp_call *c, const char *name);
/* A path for JSON. */
struct json_object *hr_mcp_json_str(struct hr_span s);

/* Performs {"action": type, "args": args, "timeout": timeout_s unless it is 0, "ready_s": of a
 * run}; takes args. NULL: it has failed and all is said; else the observation, which the caller
 * puts. */
struct json_object *hr_mcp_perform(struct hr_mcp_call *c, const char *session, const char *type,
    struct json_object *args, double timeout_s, double ready_s, struct hr_span key);
/* Returns true for an error observation, whose text becomes the failure. */
bool hr_mcp_is_error(struct hr_mcp_call *c, struct json_object *observation);

/* A data URL as an image, or as a document. False: it is none. */
bool hr_mcp_put_data(struct hr_mcp_call *c, struct hr_span url, struct hr_span path);

/* The failure of an answer whose status is not 200. */
void hr_mcp_fail_status(struct hr_mcp_call *c, const struct hr_answer *a);

/* Logs and counts a change that was made without an action as the action of that type: "edit". */
void hr_mcp_count_as(struct hr_mcp_call *c, const char *type);

/* ---- tool_read.c ---- */

/* Appends the lines from `first` to `last` (from 1; those that are there) with their numbers, until
 * b has more than `max` bytes. Returns the number of the last line that was put; 0: none. */
struct hr_plaintext;
size_t hr_mcp_put_lines(
    struct hr_buf *b, const struct hr_plaintext *t, size_t first, size_t last, size_t max);

/* ---- tool_search.c ---- */

/* The names in that directory, as the tool `list` has them. */
void hr_mcp_list_names(struct hr_mcp_call *c, const char *path);

/* The session that an argument names, "" for the default one, into a room of HR_MCP_SESSION bytes.
 * Returns false after hr_mcp_fail(). */
bool hr_mcp_session(struct hr_mcp_call *c, char ret[HR_MCP_SESSION]);

/* ---- wait.c ---- */

/* Reads a handle, as the tools give it out. Returns false after hr_mcp_fail(). */
bool hr_mcp_handle_read(struct hr_mcp_call *c, struct hr_mcp_wait *ret);
struct hr_shell_place;
struct hr_shell_place hr_mcp_place(const struct hr_mcp_call *c, const struct hr_mcp_wait *w);
/* Finds the command of that handle. Returns false after hr_mcp_fail(). */
struct hr_command_state;
bool hr_mcp_look(struct hr_mcp_call *c, const struct hr_shell_place *place,
    const struct hr_mcp_wait *w, struct hr_command_state *ret);
/* Waits for c->wait while sink's reader is there, and makes the result. */
void hr_mcp_wait_now(struct hr_mcp_call *c, struct hr_sink *sink);
/* The result of a command that has completed, `handle` "" unless there is more of it. */
void hr_mcp_put_done(struct hr_mcp_call *c, struct hr_span output, int64_t exit_code,
    struct hr_span directory, const char *handle);
/* Appends the output from w->from to `end` as text, of a long one the head and the tail, and moves
 * w->from after it. over: the command has ended. Returns 0, or -1 with *err set. */
int hr_mcp_put_output(const struct hr_shell_place *place, struct hr_mcp_wait *w, uint64_t end,
    bool over, struct hr_buf *out, struct hr_err *err);
void hr_mcp_handle_put(struct hr_buf *b, const struct hr_mcp_wait *w);

#endif
