/* hr_mcp_call: holds one tools/call from its arguments to its result, with the helpers that the
 * tools share. */
#ifndef HR_MCP_CALL_H
#define HR_MCP_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "mcp/env.h"
#include "mcp/rpc.h"
#include "proto/json.h"

#define HR_MCP_SESSION 33 /* bytes for a shell's name and its NUL */
#define HR_MCP_PROCESS 37 /* bytes for a process's id, a UUID, and its NUL */

/* A shell command to wait for, identified by the number that the shell's keeper gave it, or a
 * process beside the shells. */
struct hr_mcp_wait {
	char process[HR_MCP_PROCESS]; /* the process's id; "": a shell command */
	char session[HR_MCP_SESSION]; /* "": the default shell */
	/* the command's id and start; an earlier server's handle has another start */
	int64_t id, started;
	uint64_t from;    /* offset of the first byte that was not shown yet */
	int64_t until_ms; /* deadline on the clock of hr_now_ms() */
	bool sequential; /* long output is returned from its start in parts, not as head and tail */
};

struct hr_mcp_call {
	const struct hr_mcp_env *env;
	struct hr_mcp_env own; /* copy of *env for a streamed answer */
	struct hr_rpc rpc;
	struct json_object *args;  /* NULL: there are no arguments */
	struct json_object *token; /* progress token; NULL: the client asked for no progress */
	bool modern;               /* the client uses revision 2026-07-28 */
	bool events;               /* the answer may be a stream */
	bool is_error;
	bool waits; /* the result comes later, after waiting for `wait` */
	struct hr_mcp_wait wait;
	struct hr_buf text;       /* the text block */
	struct hr_buf blocks;     /* more content blocks, each after a comma */
	struct hr_buf structured; /* JSON of the structured result; "": none */
	/* the performed action, for the log */
	struct hr_note note;
	struct hr_buf key;
};

enum hr_mcp_type { HR_MCP_STR, HR_MCP_INT, HR_MCP_NUM, HR_MCP_BOOL, HR_MCP_MAP, HR_MCP_LIST };

struct hr_mcp_param {
	const char *name;
	enum hr_mcp_type type; /* MAP and LIST contain strings */
	bool required;
	const char *help;
};

struct hr_mcp_tool {
	const char *name, *title, *help;
	bool reads, destroys, idempotent, open_world;
	const char *plugin; /* action type of the required plugin; NULL: none is required */
	const struct hr_mcp_param *params; /* ends with a name of NULL */
	const char *output; /* JSON schema of the structured result; NULL: there is none */
	void (*call)(struct hr_mcp_call *c);
};

extern const struct hr_mcp_tool *const hr_mcp_tools[];
extern const size_t hr_mcp_tools_n;

extern const struct hr_mcp_tool hr_mcp_run, hr_mcp_wait, hr_mcp_input, hr_mcp_interrupt;
extern const struct hr_mcp_tool hr_mcp_sessions, hr_mcp_end;
extern const struct hr_mcp_tool hr_mcp_read, hr_mcp_write, hr_mcp_edit, hr_mcp_undo;
extern const struct hr_mcp_tool hr_mcp_list, hr_mcp_glob, hr_mcp_grep;
extern const struct hr_mcp_tool hr_mcp_ipython, hr_mcp_browse, hr_mcp_ports;

/* Appends to the text block; hr_mcp_fail() replaces it by an error for the model and returns
 * false. */
void hr_mcp_say(struct hr_mcp_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool hr_mcp_fail(struct hr_mcp_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns an argument, whose type was checked before. */
/* Returns a string argument; p is NULL if it is missing. */
struct hr_span hr_mcp_arg(const struct hr_mcp_call *c, const char *name);
double hr_mcp_wait_s(const struct hr_mcp_call *c, double least); /* Reads "wait_s", at most 300. */
int64_t hr_mcp_arg_int(
    const struct hr_mcp_call *c, const char *name, int64_t otherwise, int64_t min, int64_t max);
bool hr_mcp_arg_true(const struct hr_mcp_call *c, const char *name);

/* Returns the path as given if it is absolute, or else below the directory of the default shell;
 * the caller frees it. Returns NULL after hr_mcp_fail(). */
char *hr_mcp_path(struct hr_mcp_call *c, const char *name);
/* Returns a path as a JSON string. */
struct json_object *hr_mcp_json_str(struct hr_span s);

/* Performs {"action": type, "args": args, "timeout": timeout_s unless it is 0, "ready_s": of a run}
 * and takes ownership of args. Returns the observation, which the caller puts, or NULL after
 * hr_mcp_fail(). */
struct json_object *hr_mcp_perform(struct hr_mcp_call *c, const char *session, const char *type,
    struct json_object *args, double timeout_s, double ready_s, struct hr_span key);
/* Returns true for an error observation, whose text becomes the failure. */
bool hr_mcp_is_error(struct hr_mcp_call *c, struct json_object *observation);

/* Appends the picture or document of a data URL. Returns false if `url` is not such a URL. */
bool hr_mcp_put_data(struct hr_mcp_call *c, struct hr_span url, struct hr_span path);

/* Reports an answer whose status is not 200 as the tool's failure. */
void hr_mcp_fail_status(struct hr_mcp_call *c, const struct hr_answer *a);

/* Logs and counts a change made without an action as an action of this type, such as "edit". */
void hr_mcp_count_as(struct hr_mcp_call *c, const char *type);

/* ---- tool_read.c ---- */

/* Appends the lines `first` to `last` (counted from 1; missing lines are ignored) with their
 * numbers, until b has more than `max` bytes. Returns the number of the last appended line; 0:
 * none. */
struct hr_plaintext;
size_t hr_mcp_put_lines(
    struct hr_buf *b, const struct hr_plaintext *t, size_t first, size_t last, size_t max);

/* ---- tool_search.c ---- */

/* Lists the names in a directory as the tool `list` does. */
void hr_mcp_list_names(struct hr_mcp_call *c, const char *path);

/* Copies the session name of the arguments to `ret`; "" for the default session. Returns false
 * after hr_mcp_fail(). */
bool hr_mcp_session(struct hr_mcp_call *c, char ret[HR_MCP_SESSION]);

/* ---- wait.c ---- */

/* Parses the argument "handle". Returns false after hr_mcp_fail(). */
bool hr_mcp_handle_read(struct hr_mcp_call *c, struct hr_mcp_wait *ret);
struct hr_shell_place;
struct hr_shell_place hr_mcp_place(const struct hr_mcp_call *c, const struct hr_mcp_wait *w);
/* Looks up the state of the handle's command. Returns false after hr_mcp_fail(). */
struct hr_command_state;
bool hr_mcp_look(struct hr_mcp_call *c, const struct hr_shell_place *place,
    const struct hr_mcp_wait *w, struct hr_command_state *ret);
/* Looks up the state of the handle's process. Returns false after hr_mcp_fail(). */
bool
hr_mcp_look_beside(struct hr_mcp_call *c, const struct hr_mcp_wait *w, struct hr_mcp_process *ret);
/* Waits for c->wait until the command ends, the time is up or sink's reader leaves; makes the
 * result. */
void hr_mcp_wait_now(struct hr_mcp_call *c, struct hr_sink *sink);
/* Puts the result of a completed command; `handle` is "" unless there is more output. */
void hr_mcp_put_done(struct hr_mcp_call *c, struct hr_span output, int64_t exit_code,
    struct hr_span directory, const char *handle);
/* Appends the output from w->from to `end` as text, only head and tail if it is long, and advances
 * w->from. over: the command has ended. Returns 0, or -1 with *err set. */
int hr_mcp_put_output(const struct hr_mcp_call *c, struct hr_mcp_wait *w, uint64_t end, bool over,
    struct hr_buf *out, struct hr_err *err);
void hr_mcp_handle_put(struct hr_buf *b, const struct hr_mcp_wait *w);

/* ---- list.c ---- */

/* Appends "tools":[...] without the tools whose plugin is missing. */
void hr_mcp_put_tools(struct hr_buf *b, const char *run_dir);
const struct hr_mcp_tool *hr_mcp_find(const char *run_dir, const char *name);
/* Returns false after hr_mcp_fail(). */
bool hr_mcp_check_args(struct hr_mcp_call *c, const struct hr_mcp_tool *t);

/* ---- tool_run.c and wait.c ---- */

/* the JSON schema of the results of run and wait */
#define HR_MCP_RUN_SCHEMA                                                                          \
	"{\"type\":\"object\",\"properties\":{\"output\":{\"type\":\"string\"},\"running\":{"      \
	"\"type\":\"boolean\"},\"exit_code\":{\"type\":[\"integer\",\"null\"]},\"working_dir\":{"  \
	"\"type\":[\"string\",\"null\"]},\"handle\":{\"type\":[\"string\",\"null\"]}},"            \
	"\"required\":[\"output\",\"running\",\"exit_code\"]}"

#endif
