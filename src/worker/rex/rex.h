/* hr_rex: serves the API of SWE-ReX, for SWE-agent and mini-swe-agent, with the same shells,
 * actions and files (doc/agents.md, "SWE-ReX"). Commands and file writes go through the existing
 * actions, and nothing is stored between requests. */
#ifndef HR_WORKER_REX_REX_H
#define HR_WORKER_REX_REX_H

#include <stdbool.h>
#include <stdint.h>

#include "actions/shell.h"
#include "proto/json.h"
#include "worker/worker.h"

#define HR_REX_SESSION 33                    /* bytes for a shell's name and its NUL */
#define HR_REX_SESSIONS "swerex"             /* prefix of all SWE-ReX shell names */
#define HR_REX_OUTPUT_MAX ((size_t)64 << 20) /* maximum bytes of output of `execute` */
#define HR_REX_PROMPT "SHELLPS1PREFIX"       /* prompt of the original's shells */

struct hr_rex_call {
	struct hr_worker *w;
	const struct hr_request *r;
	struct json_object
	    *body; /* checked against the route's model; NULL: the route takes no body */
	struct hr_answer *ret;
	struct hr_span rest; /* V1: the path after the route's and a slash; "": nothing */
};

/* ---- model.c: bodies ---- */

enum hr_rex_type {
	HR_REX_STR,
	HR_REX_NUMBER,
	HR_REX_INT,
	HR_REX_BOOL,
	HR_REX_STRS,
	HR_REX_MAP,     /* an object with string values */
	HR_REX_COMMAND, /* a string or a list of strings */
	HR_REX_ONE_OF,  /* a string from `values` */
};

struct hr_rex_field {
	const char *name;
	enum hr_rex_type type;
	bool required, null;       /* null: the value may be null */
	const char *const *values; /* values of HR_REX_ONE_OF; ends with NULL */
};

/* A model, or one of several among which a member of the body chooses. */
struct hr_rex_model {
	const char *tag;   /* name of the member that chooses; NULL: there is one model */
	const char *value; /* the member's value */
	const struct hr_rex_field *fields; /* the last entry's name is NULL */
	const struct hr_rex_model *other;  /* NULL: the last model */
};

extern const struct hr_rex_model hr_rex_create_model, hr_rex_run_model, hr_rex_close_model,
    hr_rex_execute_model, hr_rex_read_model, hr_rex_write_model;

/* Checks a body, which is NULL for null. Returns false after sending errors in FastAPI's format. */
bool hr_rex_check(const struct hr_rex_model *m, struct json_object *body, struct hr_answer *ret);
/* Checks a body that must be a list of strings; given: the request has one. Returns false after
 * sending errors. */
bool hr_rex_check_list(bool given, struct json_object *body, struct hr_answer *ret);
/* Sends a 422 with one entry for a missing or unreadable body. `where` follows "body" in loc.
 * Returns false. */
bool hr_rex_refuse(struct hr_answer *ret, const char *type, const char *where, const char *msg,
    const char *input, const char *ctx);

/* Appends the message and the context of a value that is none of these: 'a', 'b' or 'c'. */
void hr_rex_put_choices(struct hr_buf *msg, struct hr_buf *ctx, const char *const *values);

/* Parses an integer as pydantic does: blanks around it, underscores between digits and a fraction
 * of zeros are fine, and numbers beyond the type are its limits. */
bool hr_rex_parse_int(struct hr_span s, long long *ret);

/* Returns a member of a checked body. p is NULL if the member is missing or null. */
struct hr_span hr_rex_str(const struct hr_rex_call *c, const char *name);
double hr_rex_number(const struct hr_rex_call *c, const char *name, double otherwise);
bool hr_rex_true(const struct hr_rex_call *c, const char *name);

/* ---- rex.c ---- */

/* Reads and checks the body. Returns false after sending an error. */
bool hr_rex_take_body(struct hr_rex_call *c, const struct hr_rex_model *m);
bool hr_rex_take_list(struct hr_rex_call *c);
/* Sends an exception that the client raises: `class` with its module, the message, and extra_info
 * as JSON ("": none). Both functions return false. */
bool hr_rex_raise(
    struct hr_answer *ret, const char *class, const struct hr_buf *message, const char *extra);
bool hr_rex_raisef(struct hr_answer *ret, const char *class, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Sends an OSError; path NULL: without a path. `text` is made by hr_oserror_put(), which also
 * determines the class. */
bool hr_rex_raise_os(struct hr_answer *ret, int sys, const char *path);
bool hr_rex_raise_os_text(struct hr_answer *ret, struct hr_buf *text);
/* Converts a status other than 200 of an inner request: 503 is passed on, others become
 * exceptions. */
bool hr_rex_pass(struct hr_answer *ret, const struct hr_answer *inner);

/* Runs the work at most once, by the client's name for the request: enter, work, leave. Returns
 * false after sending an error. hr_rex_run() under the request's own name must not be called in
 * between. A 503 "try again" in between must mean that nothing was done. */
bool hr_rex_enter(struct hr_rex_call *c);
void hr_rex_leave(struct hr_rex_call *c);

/* ---- session.c ---- */

/* Finds the shell that the body names; `name` has HR_REX_SESSION bytes. Returns false after raising
 * an exception. */
bool hr_rex_place(struct hr_rex_call *c, char *name, struct hr_shell_place *ret_place);
void hr_rex_create(struct hr_rex_call *c);
void hr_rex_close_one(struct hr_rex_call *c);
void hr_rex_close_all(struct hr_rex_call *c);

/* ---- run.c ---- */

/* The result of a `run` action; hr_rex_result_done() puts the observation. */
struct hr_rex_result {
	int64_t exit_code;      /* -1: the command still runs or was not started */
	bool refused;           /* the command was not started, because another one runs */
	struct json_object *o;  /* the observation */
	struct hr_span content; /* the observation's content */
};
void hr_rex_result_done(struct hr_rex_result *r);
/* Runs `text` in that shell (NULL: a new one only for this command, in dir). ready_s: see struct
 * hr_run_request. With key "" it uses the journal under the request's name; otherwise it bypasses
 * the journal. Returns false after raising an exception. */
bool hr_rex_run(struct hr_rex_call *c, const char *session, const char *dir, struct hr_span text,
    double timeout_s, double ready_s, struct hr_span key, struct hr_rex_result *ret);
/* Reads a command's output from the log in the original's form, without escape sequences. */
int hr_rex_output(const struct hr_shell_place *place, uint64_t from, uint64_t end,
    struct hr_buf *out, struct hr_err *err);
void hr_rex_clean(struct hr_buf *out, const char *p, size_t len);
/* Appends UTF-8, with other bytes as \xNN. */
void hr_rex_decode(struct hr_buf *out, const char *p, size_t len);
/* Appends the object {"output":...} of an observation. */
void hr_rex_observe(
    struct hr_rex_call *c, struct hr_span output, const int64_t *exit_code, struct hr_span expect);
/* Appends "Command '…' failed with exit code N. " after the request's error message. */
void hr_rex_put_failed(struct hr_buf *b, const struct hr_rex_call *c, int64_t exit_code);
void hr_rex_run_in_session(struct hr_rex_call *c);
double hr_rex_limit_s(const struct hr_rex_call *c); /* Returns the request's timeout; 0: none. */
/* Answers for a command that has completed; hr_rex_late() and hr_rex_busy() do so for one that
 * still runs or was not started. */
void hr_rex_completed(struct hr_rex_call *c, struct hr_span output, int64_t exit_code);
void hr_rex_late(struct hr_rex_call *c, struct hr_span output);
void hr_rex_busy(struct hr_rex_call *c);

/* ---- talk.c ---- */

/* Handles interactive programs, expected output and interrupts. `text` is the command for bash. */
void hr_rex_talk(struct hr_rex_call *c, const struct hr_shell_place *place, struct hr_span text);
void hr_rex_interrupt(struct hr_rex_call *c, const struct hr_shell_place *place);
/* the command by which an interrupt kills a program that does not end otherwise */
extern const char hr_rex_kill_text[];

/* ---- syntax.c, execute.c, files.c ---- */

/* Checks bash's syntax. Returns false after raising an exception. */
bool hr_rex_syntax(struct hr_rex_call *c, struct hr_span command);
void hr_rex_execute(struct hr_rex_call *c);
void hr_rex_read_file(struct hr_rex_call *c);
void hr_rex_write_file(struct hr_rex_call *c);
void hr_rex_upload(struct hr_rex_call *c); /* Handles an upload; reads the body itself. */

#endif
