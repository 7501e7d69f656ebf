/* hr_core: runs one shell as a state machine. Its inputs are requests, terminal bytes, prompt
 * reports, the shell's end and the time; it acts only through struct hr_core_ops. It has no
 * descriptors and no clock, so every path can be tested. Times are milliseconds of one monotonic
 * clock. Results are passed from inside the hr_core_*() calls. */
#ifndef HR_SESSION_CORE_H
#define HR_SESSION_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/frame.h"
#include "session/view/view.h"

struct hr_buf;
struct hr_core;
struct hr_hook;

/* The shell's report at a prompt; borrowed for the call. */
struct hr_core_prompt {
	int exit_code;
	int job;
	const char *username, *working_dir, *py_path;
	const char *flags; /* value of $- */
	bool is_session;   /* sent by the session's own shell, not a child: it waits for an ack */
	bool is_past;      /* the shell took the ack of an earlier report and does not wait */
	bool has_readline; /* the shell reads its commands with readline */
	bool takes_lines;  /* the shell can take its next command from ops->give */
	bool line_pending; /* the shell had not taken the last command when it sent this */
};

/* The activity of a shell whose command has not ended. */
enum hr_core_seen {
	HR_SEEN_NOTHING,  /* cannot be distinguished from running the command */
	HR_SEEN_READLINE, /* readline waits for a command */
	HR_SEEN_LINE,     /* the terminal's own line editing waits for one, without readline */
};

struct hr_core_ops {
	/* Sends bytes to the terminal, as if typed; queued, never blocks. `literal`: control
	 * characters must reach readline unchanged. */
	void (*type)(void *arg, const char *p, size_t len, bool literal);
	/* The shell waits: set the terminal modes, drop unread input, then send the ack line.
	 * `careful`: the command may have changed line editing or the environment. */
	void (*ack)(void *arg, bool careful);
	/* Sends the next command to a shell that takes it from the keeper and leaves the terminal
	 * alone until then (hr_core_prompt.takes_lines, after an ack that was not careful); NULL:
	 * not supported. The text is sent whole; an empty one sends readline to the terminal, and
	 * is dropped at the next ack. Returns false if that is not possible. */
	bool (*give)(void *arg, const char *p, size_t len);
	bool (*take_back)(void *arg); /* Undoes give(). Returns false if the shell has the text. */
	/* Returns true if the shell must come back to its prompt before its next command, since the
	 * root of its mounts was exchanged: ops->ack has it enter its directory again. May be
	 * NULL. */
	bool (*strays)(void *arg);
	/* Returns true if another process of the shell has the terminal. May be NULL. */
	bool (*away)(void *arg);
	/* Returns the shell's processor time in ms if it runs, waits for a processor, or waits for
	 * the keeper to read its output; -1 if it waits for anything else. May be NULL. */
	int64_t (*works)(void *arg);
	/* Examines the shell's process when a command does not end; lets stopped output flow again.
	 * May be NULL. */
	enum hr_core_seen (*look)(void *arg);
	/* Returns true if bash itself has the terminal, in readline's mode. */
	bool (*in_readline)(void *arg);
	/* Returns true if readline's output does not reach the terminal: exec 2>file. */
	bool (*blind)(void *arg);
	/* Returns true if the terminal shows typed text (ECHO), or its program may do so itself. */
	bool (*echoes)(void *arg);
	/* Replaces a shell that ended or must end: kills the rest of it and starts another one in
	 * the old directory. Returns the new shell's directory (borrowed), or NULL with *err. */
	const char *(*restart)(void *arg, struct hr_err *err);
	/* Called with the request's result. */
	void (*result)(void *arg, const struct hr_run_result *r);
	void (*ready)(void *arg); /* Called at the first prompt of a shell. */
	/* `began` is called when the current command is typed, `over` when it is over, since the
	 * shell is back at a prompt or has ended. They serve the record of commands only; both may
	 * be NULL. */
	void (*began)(void *arg, const char *p, size_t len);
	void (*over)(void *arg, int exit_code, bool shell_ended);
	/* Appends lines with further facts about an ended command, or nothing. May be NULL. */
	void (*why)(void *arg, int exit_code, struct hr_buf *out);
};

struct hr_core_config {
	int64_t no_change_ms;       /* limit without output, > 0 */
	const char *hostname;       /* hostname up to the first dot */
	const struct hr_hook *hook; /* borrowed for ever */
};

struct hr_core *hr_core_new(const struct hr_core_config *config, const struct hr_core_ops *ops,
    void *arg, struct hr_err *err);
void hr_core_free(struct hr_core *c);
/* Reports that the first shell was started in dir; ops->restart starts later ones. */
void hr_core_started(struct hr_core *c, const char *dir, int64_t now);

/* Starts a request. Only one request runs at a time: call it after the result of the previous one.
 * The core copies all that it needs. */
void hr_core_request(struct hr_core *c, const struct hr_run_request *r, int64_t now);
bool hr_core_busy(const struct hr_core *c); /* Returns true while a request is pending. */
/* Returns true if a command was started and has not ended. */
bool hr_core_running(const struct hr_core *c);
/* Returns true if readline may still be reading a command. */
bool hr_core_typed(const struct hr_core *c);
/* Returns true if readline may still be reading a command and draws it on the terminal
 * meanwhile. */
bool hr_core_edits(const struct hr_core *c);
/* Withdraws a command that the shell was given and has not taken: a signal would reach the idle
 * shell, and the command would run after it. The command then counts as over, with this exit code,
 * and never ran. When it returns true, *ret_busy is set if the shell has not taken the command
 * because it works, or because its process has the terminal (a trap); the signal is for that, too.
 * Returns false if the shell has the command, or there is none. */
bool hr_core_withdraw(struct hr_core *c, int exit_code, bool *ret_busy);
/* Returns true if readline has the terminal according to the output: a shell that waits for an ack
 * prints the end of readline first. */
bool hr_core_sees_readline(const struct hr_core *c);
const char *hr_core_working_dir(const struct hr_core *c);
/* Returns true in the mode in which arrows must be typed as ESC O A. */
bool hr_core_application_cursor(const struct hr_core *c);

/* Makes `at` the offset of the next byte of output. */
void hr_core_place(struct hr_core *c, uint64_t at);
/* Does the same as hr_view_echo_bytes(). */
size_t hr_core_echo_bytes(const struct hr_core *c, const char *p, size_t len, bool *ret_over);

void hr_core_output(struct hr_core *c, const char *p, size_t len, int64_t now);
void hr_core_prompt(struct hr_core *c, const struct hr_core_prompt *p, int64_t now);
/* Reports the end of the shell's process, after all its output: its exit code, or 128 + signal. */
void hr_core_exited(struct hr_core *c, int exit_code, int64_t now);
void hr_core_timer(struct hr_core *c, int64_t now);
/* Returns the time for hr_core_timer(); INT64_MAX: never. */
int64_t hr_core_deadline(const struct hr_core *c);

/* The part of a core's state that a successor continues from as it is, besides texts and phase. */
struct hr_core_state {
	int64_t phase_deadline, suspect_at, look_ms;
	int64_t watch_at, watch_ms; /* time and interval of the next look at a running command */

	bool running;          /* the client knows that a command still runs */
	bool ended;            /* the client knows that a command runs which has ended since */
	bool begun;            /* ops.over() is due at the command's end */
	unsigned observations; /* number of observations for the running command */

	/* the current request */
	bool active, hidden, blocking, exact;
	bool special;    /* the text is a special key: C-x */
	bool echoed;     /* the terminal may show the input */
	bool reads_line; /* the command uses readline itself */
	bool whole;      /* bash does not expect more of the command */
	unsigned again;  /* number of repeated C-c */
	int64_t had_ms;  /* processor time of the shell when first late in this phase; or -1 */
	double timeout, ready_s;
	int64_t start, last_change, hard_at;

	/* as reported at the last prompt */
	int exit_code, job;
	bool is_session;  /* sent by the session's own shell, which waited for the ack */
	bool marked;      /* readline marks taking the terminal and the end of the echo */
	bool traced;      /* the shell has `set -v` */
	bool tracing;     /* the shell has `set -x` */
	bool takes_lines; /* readline waits for ops.give, or was given a command by it */
};

/* State for a successor, without pointers. The caller keeps the output: see struct
 * hr_view_points. */
#define HR_CORE_KEPT_TEXT 12288
#define HR_CORE_KEPT_COMMAND 32768
struct hr_core_kept {
	int phase;
	struct hr_core_state state;
	struct hr_view_points points;
	uint32_t requests, texts;
	char text[HR_CORE_KEPT_TEXT]; /* four strings, each with its NUL */
	size_t command_len, typed_len;
	char command[HR_CORE_KEPT_COMMAND], typed[HR_CORE_KEPT_COMMAND];
};

/* Copies the changed state. Returns false if the core is in the middle of a step, or the state is
 * too long, so that no process could continue from it. */
bool hr_core_keep(const struct hr_core *c, struct hr_core_kept *to);
/* Replays a predecessor's output to a new core: `feed` passes to the view everything from its
 * position, at first points.reset, up to points.fed of that value, or with HR_CORE_ALL also the
 * newer output. If the start is lost, `feed` calls hr_view_lose() first. */
#define HR_CORE_ALL UINT64_MAX
void hr_core_replay(struct hr_core *c, const struct hr_core_kept *from,
    void (*feed)(void *arg, struct hr_view *v, uint64_t fed), void *arg);
/* Notes that a client has got the output before byte `at`, as hr_core_place() counts bytes, by
 * another way than a result: no result repeats it. Use it only for a command that outlasts its
 * result. `feed` and `arg` are as for hr_core_replay(), if newer output exists. */
void hr_core_returned(struct hr_core *c, uint64_t at,
    void (*feed)(void *arg, struct hr_view *v, uint64_t fed), void *arg);
/* Continues from a predecessor's state, after hr_core_replay(). */
void hr_core_resume(struct hr_core *c, const struct hr_core_kept *from);
/* Continues as far as possible if the shell had to be replaced: hr_core_started() comes next. */
void hr_core_succeed(struct hr_core *c, const struct hr_core_kept *from);
const char *hr_core_kept_dir(const struct hr_core_kept *k);
struct hr_view *hr_core_view(struct hr_core *c);

/* Moves the terminal's answers to the running program's queries to buf, to be typed. Returns their
 * length. */
size_t hr_core_replies(struct hr_core *c, char *buf, size_t cap);

#endif
