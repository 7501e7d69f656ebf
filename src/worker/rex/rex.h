/* hr_rex: the server of SWE-ReX, which SWE-agent and mini-swe-agent speak, as one more door to the
 * same shells, actions and files (doc/agents.md, "SWE-ReX"). Nothing here runs a command or writes
 * a file in a way of its own, and nothing is remembered between two requests. */
#ifndef HR_WORKER_REX_REX_H
#define HR_WORKER_REX_REX_H

#include <stdbool.h>
#include <stdint.h>

#include "actions/shell.h"
#include "proto/json.h"
#include "worker/worker.h"

#define HR_REX_SESSION 33                    /* a shell's name */
#define HR_REX_SESSIONS "swerex"             /* with which all of ours begin */
#define HR_REX_OUTPUT_MAX ((size_t)64 << 20) /* of a command that is executed */
#define HR_REX_PROMPT "SHELLPS1PREFIX"       /* what the original's shells print at their prompt */

struct hr_rex_call {
	struct hr_worker *w;
	const struct hr_request *r;
	struct json_object *body; /* checked by the route's model; NULL: it takes none */
	struct hr_answer *ret;
};

/* ---- model.c: what a body holds ---- */

enum hr_rex_type {
	HR_REX_STR,
	HR_REX_NUMBER,
	HR_REX_INT,
	HR_REX_BOOL,
	HR_REX_STRS,
	HR_REX_MAP,     /* of strings */
	HR_REX_COMMAND, /* a string, or a list of them */
	HR_REX_ONE_OF,  /* of `values` */
};

struct hr_rex_field {
	const char *name;
	enum hr_rex_type type;
	bool required, null;       /* null: may be null */
	const char *const *values; /* of HR_REX_ONE_OF; ends with NULL */
};

/* One model, or several of which a member of the body says which one it is. */
struct hr_rex_model {
	const char *tag;                   /* that member; NULL: there is one model */
	const char *value;                 /* of it */
	const struct hr_rex_field *fields; /* ends with a name of NULL */
	const struct hr_rex_model *other;  /* NULL: the last one */
};

extern const struct hr_rex_model hr_rex_create_model, hr_rex_run_model, hr_rex_close_model,
    hr_rex_execute_model, hr_rex_read_model, hr_rex_write_model;

/* False: answered, in FastAPI's words. body NULL: null. */
bool hr_rex_check(const struct hr_rex_model *m, struct json_object *body, struct hr_answer *ret);
/* No body, or none that can be read: a 422 of one entry. `where` is behind "body" in loc. False. */
bool hr_rex_refuse(struct hr_answer *ret, const char *type, const char *where, const char *msg,
    const char *input, const char *ctx);

/* Of a body that was checked. p is NULL where it was left out or null. */
struct hr_span hr_rex_str(const struct hr_rex_call *c, const char *name);
double hr_rex_number(const struct hr_rex_call *c, const char *name, double otherwise);
bool hr_rex_true(const struct hr_rex_call *c, const char *name);

/* ---- rex.c ---- */

/* The body, checked; false: answered. */
bool hr_rex_take_body(struct hr_rex_call *c, const struct hr_rex_model *m);
/* An exception that the client raises again: `class` with its module, message, and extra_info as
 * JSON ("" for none). These return false. */
bool hr_rex_raise(
    struct hr_answer *ret, const char *class, const struct hr_buf *message, const char *extra);
bool hr_rex_raisef(struct hr_answer *ret, const char *class, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* An OSError; path NULL: without one. text: of hr_oserror_put(), from which the class is taken. */
bool hr_rex_raise_os(struct hr_answer *ret, int sys, const char *path);
bool hr_rex_raise_os_text(struct hr_answer *ret, struct hr_buf *text);
/* A status other than 200 of what was asked for inside: 503 as it is, all else is an exception. */
bool hr_rex_pass(struct hr_answer *ret, const struct hr_answer *inner);

/* At most once, by the name that the client gave its request: enter, work, leave. False: answered.
 * What is done by hr_rex_run() under the request's own name must stand outside of the two. A 503
 * between them that says "try again" must mean that nothing was done. */
bool hr_rex_enter(struct hr_rex_call *c);
void hr_rex_leave(struct hr_rex_call *c);

/* ---- session.c ---- */

/* The shell that the body names; name: HR_REX_SESSION bytes. False: raised. */
bool hr_rex_place(struct hr_rex_call *c, char *name, struct hr_shell_place *ret_place);
void hr_rex_create(struct hr_rex_call *c);
void hr_rex_close_one(struct hr_rex_call *c);
void hr_rex_close_all(struct hr_rex_call *c);

/* ---- run.c ---- */

/* What came of a `run` action; hr_rex_result_done() puts the observation. */
struct hr_rex_result {
	int64_t exit_code;      /* -1: it goes on, or was not begun */
	bool refused;           /* it was not begun, since another one runs */
	struct json_object *o;  /* the observation */
	struct hr_span content; /* of it */
};
void hr_rex_result_done(struct hr_rex_result *r);
/* Runs `text` in that shell (NULL: a new one for this alone, in dir). ready_s: as that of struct
 * hr_run_request. key "": by the request's name, in the journal; else outside of it. False: raised.
 */
bool hr_rex_run(struct hr_rex_call *c, const char *session, const char *dir, struct hr_span text,
    double timeout_s, double ready_s, struct hr_span key, struct hr_rex_result *ret);
/* Its output from the log, as the original would give it: without escape sequences. */
int hr_rex_output(const struct hr_shell_place *place, uint64_t from, uint64_t end,
    struct hr_buf *out, struct hr_err *err);
void hr_rex_clean(struct hr_buf *out, const char *p, size_t len);
/* UTF-8, with other bytes as \xNN. */
void hr_rex_decode(struct hr_buf *out, const char *p, size_t len);
/* {"output":...} of an observation. */
void hr_rex_observe(
    struct hr_rex_call *c, struct hr_span output, const int64_t *exit_code, struct hr_span expect);
/* "Command '…' failed with exit code N. ", behind what the request says of an error. */
void hr_rex_put_failed(struct hr_buf *b, const struct hr_rex_call *c, int64_t exit_code);
void hr_rex_run_in_session(struct hr_rex_call *c);
double hr_rex_limit_s(const struct hr_rex_call *c); /* of the request; 0: none */
/* The answers to a command that has completed, still runs, was not begun. */
void hr_rex_completed(struct hr_rex_call *c, struct hr_span output, int64_t exit_code);
void hr_rex_late(struct hr_rex_call *c, struct hr_span output);
void hr_rex_busy(struct hr_rex_call *c);

/* ---- talk.c ---- */

/* Programs that talk, what is expected of them, and interrupts. text: as it was given to bash. */
void hr_rex_talk(struct hr_rex_call *c, const struct hr_shell_place *place, struct hr_span text);
void hr_rex_interrupt(struct hr_rex_call *c, const struct hr_shell_place *place);
/* What the interrupt has bash do for a program that does not end otherwise. */
extern const char hr_rex_kill_text[];

/* ---- syntax.c, execute.c, files.c ---- */

/* Whether bash would read it. False: raised. */
bool hr_rex_syntax(struct hr_rex_call *c, struct hr_span command);
void hr_rex_execute(struct hr_rex_call *c);
void hr_rex_read_file(struct hr_rex_call *c);
void hr_rex_write_file(struct hr_rex_call *c);
void hr_rex_upload(struct hr_rex_call *c); /* reads the body itself */

#endif
