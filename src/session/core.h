/* hr_core: one shell as a state machine.
 *
 * Fed with requests, terminal bytes, prompt reports, the shell's end and the time; acts only
 * through struct hr_core_ops. Knows no descriptors and no clock, so every path can be tested. Times
 * are milliseconds of one monotonic clock. Results are given from inside the hr_core_*() calls. */
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

/* What the shell said at a prompt; borrowed for the call. */
struct hr_core_prompt {
	int exit_code;
	int job;
	const char *username, *working_dir, *py_path;
	const char *flags; /* $- */
	bool is_session;   /* the session's own shell, not a child of it: it waits for an ack */
	bool has_readline; /* it reads its commands with readline */
	bool takes_lines;  /* ... and can take the next one from ops->give */
	bool line_pending; /* ... and had not taken the last one when it said this */
};

/* What the shell does that goes on with a command. */
enum hr_core_seen {
	HR_SEEN_NOTHING,  /* that can be told from running it */
	HR_SEEN_READLINE, /* waits for a command, in readline */
	HR_SEEN_LINE,     /* ... without it, in the terminal's own line editing */
};

struct hr_core_ops {
	/* Bytes to the terminal, as if typed; queued, never blocks. `literal`: control characters
	 * in them must reach readline as they are. */
	void (*type)(void *arg, const char *p, size_t len, bool literal);
	/* The shell waits: put the terminal modes right, drop unread input, then send the line.
	 * `careful`: the command may have changed line editing or the environment. */
	void (*ack)(void *arg, bool careful);
	/* For a shell that takes its next command from us and leaves the terminal alone until it
	 * has one (hr_core_prompt.takes_lines, after an ack that was not careful); NULL: none does.
	 * The text is given whole; an empty one sends readline to the terminal, and is forgotten at
	 * the next ack. False: that cannot be.
	 */
	bool (*give)(void *arg, const char *p, size_t len);
	bool (*take_back)(void *arg); /* what was given; false: the shell has it */
	/* Whether something that the shell runs has the terminal. May be NULL. */
	bool (*away)(void *arg);
	/* The processor time in ms that the shell has had, if it works or waits for a processor, or
	 * for us to read what it prints; -1: it waits for something else. May be NULL. */
	int64_t (*works)(void *arg);
	/* A look at the shell's process, where a command does not end; output that was stopped
	 * flows again. May be NULL. */
	enum hr_core_seen (*look)(void *arg);
	/* Whether bash itself has the terminal, in readline's mode. */
	bool (*in_readline)(void *arg);
	/* Whether what readline prints does not come to the terminal: exec 2>file. */
	bool (*blind)(void *arg);
	/* Whether the terminal shows what is typed (ECHO), or its program may do so itself. */
	bool (*echoes)(void *arg);
	/* The shell ended or must go: end what is left of it and start another in the old
	 * directory. The directory it was started in (borrowed), or NULL with *err. */
	const char *(*restart)(void *arg, struct hr_err *err);
	void (*result)(void *arg, const struct hr_run_result *r); /* of the one request in hand */
	void (*ready)(void *arg);                                 /* first prompt of a shell */
	/* The command in hand is typed; and it is over: the shell is back at a prompt, or has ended
	 * itself. For the record alone; both may be NULL. */
	void (*began)(void *arg, const char *p, size_t len);
	void (*over)(void *arg, int exit_code, bool shell_ended);
	/* What else there is to say about a command that ended: lines, or nothing. May be NULL. */
	void (*why)(void *arg, int exit_code, struct hr_buf *out);
};

struct hr_core_config {
	int64_t no_change_ms;       /* no-output clock, > 0 */
	const char *hostname;       /* up to the first dot */
	const struct hr_hook *hook; /* borrowed for good */
};

struct hr_core *hr_core_new(const struct hr_core_config *config, const struct hr_core_ops *ops,
    void *arg, struct hr_err *err);
void hr_core_free(struct hr_core *c);
/* The first shell was started in dir; later ones are by ops->restart. */
void hr_core_started(struct hr_core *c, const char *dir, int64_t now);

/* One at a time: only when the result of the one before was given. The core copies what it keeps.
 */
void hr_core_request(struct hr_core *c, const struct hr_run_request *r, int64_t now);
bool hr_core_busy(const struct hr_core *c);    /* a request is in hand */
bool hr_core_running(const struct hr_core *c); /* a command was started and has not ended */
bool
hr_core_typed(const struct hr_core *c); /* readline was given a command and may still read it */
bool hr_core_edits(const struct hr_core *c); /* ... and draws it on the terminal meanwhile */
/* To interrupt or end a command that the shell was given and has not taken: a signal would come to
 * the shell at rest, and the command run after it. It is over, with this exit code, and was never
 * run. *ret_busy, where true is returned: the shell has not taken it since it works, or since what
 * it runs has the terminal (a trap), and the signal is for that, too. False: the shell has it, or
 * there is none. */
bool hr_core_withdraw(struct hr_core *c, int exit_code, bool *ret_busy);
const char *hr_core_working_dir(const struct hr_core *c);
bool hr_core_application_cursor(const struct hr_core *c); /* how arrows are to be typed */

/* Makes `at` the offset of the next byte of output. */
void hr_core_place(struct hr_core *c, uint64_t at);
/* See hr_view_echo_bytes(). */
size_t hr_core_echo_bytes(const struct hr_core *c, const char *p, size_t len, bool *ret_over);

void hr_core_output(struct hr_core *c, const char *p, size_t len, int64_t now);
void hr_core_prompt(struct hr_core *c, const struct hr_core_prompt *p, int64_t now);
/* The shell's process ended: its exit code, or 128 + signal. All its output was given before. */
void hr_core_exited(struct hr_core *c, int exit_code, int64_t now);
void hr_core_timer(struct hr_core *c, int64_t now);
int64_t
hr_core_deadline(const struct hr_core *c); /* when hr_core_timer() is due; INT64_MAX: never */

/* What a successor must know of it, without pointers; and what it said, in log offsets or not, is
 * the caller's: see struct hr_view_points. */
#define HR_CORE_KEPT_TEXT 12288
#define HR_CORE_KEPT_COMMAND 32768
struct hr_core_kept {
	int phase;
	bool running, ended, begun, active, hidden, blocking, exact, special, echoed, reads_line,
	    is_session, marked, traced, takes_lines, whole, tracing;
	unsigned observations;
	int exit_code, job;
	double timeout, ready_s;
	int64_t start, last_change, hard_at, phase_deadline, suspect_at, look_ms, watch_at,
	    watch_ms, had_ms;
	unsigned again;
	struct hr_view_points points;
	uint32_t requests, texts;
	char text[HR_CORE_KEPT_TEXT]; /* four, each ended by a NUL */
	size_t command_len, typed_len;
	char command[HR_CORE_KEPT_COMMAND], typed[HR_CORE_KEPT_COMMAND];
};

/* Copies what has changed. False: it is in the middle of something, or too long, and nobody could
 * go on with it. */
bool hr_core_keep(const struct hr_core *c, struct hr_core_kept *to);
/* To a new core what it was fed: `feed` gives the view all from where it stands, at first
 * points.reset, up to points.fed being so much, HR_CORE_ALL: and what has come since. Where its
 * beginning is gone it says so by hr_view_lose() first. */
#define HR_CORE_ALL UINT64_MAX
void hr_core_replay(struct hr_core *c, const struct hr_core_kept *from,
    void (*feed)(void *arg, struct hr_view *v, uint64_t fed), void *arg);
/* A client has been given, by another way than a result, the output before byte `at`, as
 * hr_core_place() counts them: no result will have it again. Only of a command that goes on after
 * its result. `feed` and `arg` as for hr_core_replay(), where more has come since. */
void hr_core_returned(struct hr_core *c, uint64_t at,
    void (*feed)(void *arg, struct hr_view *v, uint64_t fed), void *arg);
/* After hr_core_replay(). */
void hr_core_resume(struct hr_core *c, const struct hr_core_kept *from);
/* As far as it can be where the shell had to be replaced: hr_core_started() comes next. */
void hr_core_succeed(struct hr_core *c, const struct hr_core_kept *from);
const char *hr_core_kept_dir(const struct hr_core_kept *k);
struct hr_view *hr_core_view(struct hr_core *c);

/* Answers of the terminal to queries of the running program, to be typed. 0: none. */
size_t hr_core_replies(struct hr_core *c, char *buf, size_t cap);

#endif
