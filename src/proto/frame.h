/* hr_frame: defines the messages between a worker and the keeper of a shell, over a Unix stream
 * socket. A frame is a 12-byte header (magic, type, payload length; all in the machine's byte
 * order: both ends are programs of one build on one machine) and a payload of fields. A field is a
 * 32-bit tag, a 32-bit length and that many bytes. Unknown tags are skipped; an unknown type, a
 * wrong version, a length over the limit or a field that exceeds the payload closes the
 * connection. */
#ifndef HR_PROTO_FRAME_H
#define HR_PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#define HR_FRAME_MAGIC 0x48523031u /* "HR01": name and version */
#define HR_FRAME_HEADER 12
#define HR_FRAME_MAX (256u << 20) /* maximum payload: a hidden observation is not cut */

enum hr_frame_type {
	HR_FRAME_RUN = 1,    /* worker -> keeper: hr_run_request with a run or an input */
	HR_FRAME_RESULT = 2, /* keeper -> worker: hr_run_result; the keeper then closes, unless
				the connection stays */
	HR_FRAME_STATUS = 3, /* worker -> keeper: empty */
	HR_FRAME_STATE = 4,  /* keeper -> worker: hr_session_state */
	HR_FRAME_FOLLOW = 5, /* worker -> keeper: hr_follow_request */
	HR_FRAME_OUTPUT = 6, /* keeper -> worker: hr_output_piece, until the connection ends */
	HR_FRAME_PRESS = 7,  /* worker -> keeper: hr_press_request; answered with a STATE */
	/* keeper -> worker: no fields; answers an `again` RUN that is not known */
	HR_FRAME_UNKNOWN = 8,
	HR_FRAME_COMMANDS = 9, /* worker -> keeper: empty */
	HR_FRAME_LIST = 10,    /* keeper -> worker: hr_command_state, oldest first */
	HR_FRAME_EXEC = 14, /* worker -> keeper: hr_exec_request; answered with OUTPUT frames, whose
			       offset is the number of the stream, and a RESULT */
	HR_FRAME_RETURNED = 15, /* worker -> keeper: hr_follow_request with an offset: a client has
				   the output before it; answered with a STATE */
	HR_FRAME_ACT = 16,      /* worker -> plugin: hr_act_request */
	HR_FRAME_ANSWER = 17,   /* plugin -> worker: hr_act_answer; the plugin then closes */
	HR_FRAME_REFUSED = 18,  /* supervisor -> worker, for a plugin that cannot start: reason */
};

/* The limit that ended the waiting for a command. */
enum hr_clock { HR_CLOCK_NONE, HR_CLOCK_NO_OUTPUT, HR_CLOCK_HARD, HR_CLOCKS };

/* One `run` action as the keeper needs it. Borrowed. */
struct hr_run_request {
	struct hr_span command; /* not stripped; may contain any byte but NUL */
	bool is_input;
	bool blocking;
	bool hidden;        /* truth of the action's flag: the observation is not truncated */
	double timeout;     /* seconds; 0 and nan: no hard limit; may be negative, huge or inf */
	double ready_s;     /* limit for the shell to become ready for the command; then the timeout
			       counts from there; 0: the timeout is the limit of both */
	struct hr_span key; /* client's at-most-once key, "" if none */
	uint32_t attempt;   /* attempt of the key's journal entry; 0: there is no entry */
	bool again; /* started before: join the command or report it, never start it again */
	bool stays; /* another RUN may follow on this connection */
	bool whole; /* the client follows the output and must not miss any */
	bool exact; /* true: the output is exact, as printed; false: it follows the rules of V0 */
};

/* The result of a run: an observation, or an error observation (is_error: content only). */
struct hr_run_result {
	bool is_error;
	bool hidden;       /* echoed in extras.hidden */
	bool has_metadata; /* false: username, hostname, working_dir, py path are null */
	/* working_dir is known although has_metadata is false; not sent in frames */
	bool has_directory;
	int64_t exit_code, pid;      /* -1 without metadata; pid: that of a background job */
	enum hr_clock clock;         /* the limit that ended the waiting; the command still runs */
	int64_t id;                  /* number of the completed command in the list; 0: unknown */
	uint64_t log_start, log_end; /* offsets of its output, if the number is known */
	struct hr_span content, command, username, hostname, working_dir, py_path, prefix, suffix;
};

/* One action as sent to a plugin (PROTOCOL). Borrowed. */
struct hr_act_request {
	struct hr_span type;        /* type of the action: "run_ipython" */
	struct hr_span action;      /* JSON text: {"action": type, "args": {...}, "timeout": ...} */
	struct hr_span working_dir; /* current directory of the shell; "": unknown */
	struct hr_span key;         /* client's at-most-once key, "" if none */
	bool again; /* started before: join the action or report it, never start it again */
};

/* The plugin's answer, or the reason why there is no answer. */
struct hr_act_answer {
	int64_t status;        /* HTTP status; 200 if omitted */
	struct hr_span body;   /* JSON text, sent as it is */
	struct hr_span reason; /* HR_FRAME_REFUSED only */
};

struct hr_session_state {
	bool ready;                  /* the first prompt was seen */
	bool running;                /* a command has not completed */
	struct hr_span working_dir;  /* current directory of the shell as last reported */
	struct hr_span reason;       /* why not ready, or why a PRESS was refused; "" otherwise */
	uint64_t log_start, log_end; /* offsets of the retained output */
	int64_t rows, columns;       /* the terminal's size as programs see it */
};

enum hr_command_end {
	HR_COMMAND_RUNNING,
	HR_COMMAND_COMPLETED,
	HR_COMMAND_SHELL_ENDED, /* the command ended the shell, or died with it */
};

#define HR_COMMANDS_MAX 64 /* maximum of commands in one LIST */

/* One command of a shell. Times in milliseconds. */
struct hr_command_state {
	int64_t id;                  /* counts from 1; unique while the keeper lives */
	struct hr_span key, text;    /* text: the beginning of the command */
	int64_t length;              /* bytes of the whole text */
	int64_t end;                 /* enum hr_command_end */
	int64_t exit_code;           /* -1 while the command runs */
	uint64_t log_start, log_end; /* offsets of its output; the echo lies before them */
	int64_t started;             /* wall clock, since 1970 */
	int64_t elapsed;
	int64_t silent; /* ms since its last output; 0 when it has ended */
};

struct hr_follow_request {
	uint64_t offset;
	bool stays;      /* follow until one side closes; otherwise send the existing output only */
	int64_t command; /* if `stays`: the command at whose end to stop; 0: none */
};

#define HR_EXEC_LIMIT_MAX 2000000000 /* seconds */

/* A command outside the shell, in a process of its own. */
struct hr_exec_request {
	struct hr_span command;     /* bash text; must not contain NUL */
	struct hr_span working_dir; /* "": the keeper's; without NUL */
	int64_t limit_s; /* seconds, 0 to HR_EXEC_LIMIT_MAX; then the command is ended: 124, or 137
			    if it had to be killed */
	/* "": none; the directory for the files of a command that outlives its client and its
	 * keeper. It must exist as KEPT~ with the files out, err and status; the keeper removes
	 * the ~ and starts the command, or does neither. */
	struct hr_span kept;
	struct hr_span minder; /* the whole path of handrail-bound, for `kept` */
};

/* Bytes of output. Bytes missing between two pieces were too old to be retained. */
struct hr_output_piece {
	uint64_t offset;
	struct hr_span bytes;
};

enum hr_press_what {
	HR_PRESS_TEXT,   /* types `text` */
	HR_PRESS_KEYS,   /* text: names of keys (shell/keys.h), each ended by a NUL */
	HR_PRESS_SIGNAL, /* sends `signal` to the foreground */
	HR_PRESS_SIZE,   /* sets rows and columns of the terminal for the running command */
	HR_PRESS_END,    /* ends the shell and its foreground; another shell takes its place */
};

/* maximum of rows and of columns, as of the keeper's own screen */
#define HR_TERMINAL_MAX 1000

struct hr_press_request {
	int64_t what; /* enum hr_press_what, checked by the decoder */
	int64_t signal;
	int64_t rows, columns;
	int64_t command; /* refused unless that command runs; 0: any */
	bool spares;     /* refuse a signal while the shell itself is in the foreground */
	struct hr_span text;
};

/* Appends one whole frame to b, as all encoders do (check b afterwards). */
/* Appends a frame without fields. */
void hr_frame_put_empty(struct hr_buf *b, enum hr_frame_type type);
void hr_frame_put_run(struct hr_buf *b, const struct hr_run_request *r);
void hr_frame_put_result(struct hr_buf *b, const struct hr_run_result *r);
void hr_frame_put_follow(struct hr_buf *b, const struct hr_follow_request *r);
void hr_frame_put_exec(struct hr_buf *b, const struct hr_exec_request *r);
void hr_frame_put_returned(struct hr_buf *b, uint64_t offset);
void hr_frame_put_output(struct hr_buf *b, const struct hr_output_piece *o);
void hr_frame_put_press(struct hr_buf *b, const struct hr_press_request *r);
void hr_frame_put_state(struct hr_buf *b, const struct hr_session_state *s);
void hr_frame_put_list(struct hr_buf *b, const struct hr_command_state *v, size_t n);
void hr_frame_put_act(struct hr_buf *b, const struct hr_act_request *r);
void hr_frame_put_answer(struct hr_buf *b, const struct hr_act_answer *a);
void hr_frame_put_refused(struct hr_buf *b, const char *reason);

/* Parses the start of a stream. Returns 1 for a whole frame, with *ret_type, *ret_payload, *ret_len
 * set and *ret_used bytes of input consumed; 0 if more bytes are needed, *ret_need in all; -1 for
 * another protocol (HR_E_PROTO or HR_E_TOOLARGE). Pure. */
int hr_frame_get(const void *p, size_t len, uint32_t *ret_type, const char **ret_payload,
    size_t *ret_len, size_t *ret_used, size_t *ret_need, struct hr_err *err);

/* Reads from a blocking descriptor into b, which starts with a frame or a part of it, until the
 * frame is whole. Returns 1 as hr_frame_get(), with any following bytes in b, too; 0: the peer has
 * gone; -1: another protocol, no memory, or reading failed (err->sys EAGAIN: the descriptor's time
 * limit). */
int hr_frame_read(int fd, struct hr_buf *b, uint32_t *ret_type, const char **ret_payload,
    size_t *ret_len, size_t *ret_used, struct hr_err *err);

/* Returns true if b starts with a whole frame or with garbage: hr_frame_read() would not wait. */
bool hr_frame_waits(const struct hr_buf *b);

/* Decodes a payload, as the functions below; results borrow from it. Missing numbers are 0 and
 * missing texts "". After -1 nothing in *ret may be used. */
int hr_frame_get_run(const void *p, size_t len, struct hr_run_request *ret, struct hr_err *err);
int hr_frame_get_result(const void *p, size_t len, struct hr_run_result *ret, struct hr_err *err);
int
hr_frame_get_follow(const void *p, size_t len, struct hr_follow_request *ret, struct hr_err *err);
int hr_frame_get_exec(const void *p, size_t len, struct hr_exec_request *ret, struct hr_err *err);
int hr_frame_get_output(const void *p, size_t len, struct hr_output_piece *ret, struct hr_err *err);
int hr_frame_get_press(const void *p, size_t len, struct hr_press_request *ret, struct hr_err *err);
int hr_frame_get_state(const void *p, size_t len, struct hr_session_state *ret, struct hr_err *err);
int hr_frame_get_list(const void *p, size_t len, struct hr_command_state ret[HR_COMMANDS_MAX],
    size_t *ret_n, struct hr_err *err);
int hr_frame_get_act(const void *p, size_t len, struct hr_act_request *ret, struct hr_err *err);
int hr_frame_get_answer(const void *p, size_t len, struct hr_act_answer *ret, struct hr_err *err);

#endif
