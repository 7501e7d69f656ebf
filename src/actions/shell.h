/* hr_shell: makes a worker's exchange with the keeper of a shell: one request frame, one answer
 * frame. */
#ifndef HR_ACTIONS_SHELL_H
#define HR_ACTIONS_SHELL_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/frame.h"

/* The address of a session: the run directory, and the session's name; NULL: the default
 * session. */
struct hr_shell_place {
	const char *run_dir;
	const char *session; /* a name for which hr_session_name_fits() is true */
	int limit_s;         /* seconds that questions and sends wait for a stopped keeper; 0: 5 */
};

/* seconds (hr_run_request.ready_s) for a shell to become ready for a command that must start,
 * however short its caller waits for the end: more than a shell's start-up files may take */
#define HR_SHELL_READY_S 30

/* Connects to the session's keeper. Returns a descriptor that the caller closes, or -1;
 * HR_E_NOTFOUND: no such session, HR_E_TIMEOUT: the keeper does not answer. */
int hr_shell_connect(const struct hr_shell_place *at, struct hr_err *err);

/* Sends the request and waits for its result, for as long as the command takes, even if the client
 * leaves. Fills frame, from which *ret borrows. `at`: if the request has a time limit, the keeper
 * there must still answer questions after that; NULL: it is not asked. `kept`: a request with
 * `stays` was answered on this connection before. Returns 1 if so and the keeper has closed it
 * meanwhile; nothing was sent. Returns -1 with HR_E_GONE if the keeper closed without an answer,
 * HR_E_NOTFOUND if it does not know a repeated request, HR_E_BUSY if it did not read the request
 * and does nothing, HR_E_TIMEOUT if it does not answer, HR_E_PROTO, HR_E_SYS, HR_E_NOMEM or
 * HR_E_TOOLARGE. */
int
hr_shell_run(int fd, const struct hr_shell_place *at, bool kept, const struct hr_run_request *req,
    struct hr_buf *frame, struct hr_run_result *ret, struct hr_err *err);

/* Asks the session's keeper for the state of its shell; the keeper answers at once, even during a
 * command. Fills frame, from which *ret borrows. Returns -1 also after some seconds. */
int hr_shell_state(const struct hr_shell_place *at, struct hr_buf *frame,
    struct hr_session_state *ret, struct hr_err *err);

/* Gets the last commands, oldest first; otherwise as hr_shell_state(). */
int hr_shell_commands(const struct hr_shell_place *at, struct hr_buf *frame,
    struct hr_command_state ret[HR_COMMANDS_MAX], size_t *ret_n, struct hr_err *err);

/* Types for, sends a signal to, or resizes the terminal of, the running command of the default
 * session. The state's reason explains a refusal. Otherwise as hr_shell_state(). */
int hr_shell_press(const struct hr_shell_place *at, const struct hr_press_request *req,
    struct hr_buf *frame, struct hr_session_state *ret, struct hr_err *err);

/* Reports to the keeper that a client has the output before that offset: the results of later
 * actions do not repeat it. Returns 0, or -1 if the results may repeat it. */
int hr_shell_returned(const struct hr_shell_place *at, uint64_t offset);

/* Runs a command beside the shell, to its end, or only starts it if it is kept. out and errors get
 * its two streams; if one has no room the command is ended, and the call returns -1 with
 * HR_E_TOOLARGE. *ret_begun is set, on failure too, if the command may have run. */
int hr_shell_exec(const struct hr_shell_place *at, const struct hr_exec_request *req,
    struct hr_buf *out, struct hr_buf *errors, int64_t *ret_code, bool *ret_begun,
    struct hr_err *err);

/* Starts such a command for output of any length. Returns a descriptor, or -1; the caller closes
 * it, which ends the command. */
int hr_shell_exec_open(
    const struct hr_shell_place *at, const struct hr_exec_request *req, struct hr_err *err);
/* Appends the next piece of output to one of the streams, stdout and stderr. Returns 1 if more will
 * come; 0 after the end, with *ret_code; -1 on an error, with *ret_begun false if the command was
 * not run. `frame` is of HR_SHELL_FRAME bytes and the same in all calls. */
int hr_shell_exec_take(int fd, struct hr_buf *frame, struct hr_buf *const streams[2],
    int64_t *ret_code, bool *ret_begun, struct hr_err *err);
#define HR_SHELL_FRAME (1u << 20)

/* Opens a connection on which OUTPUT frames come. Returns a descriptor that the caller reads and
 * closes, or -1. */
int hr_shell_follow(
    const struct hr_shell_place *at, const struct hr_follow_request *req, struct hr_err *err);

/* Returns the next piece of output, borrowed from `frame`, of which the caller then drops *ret_used
 * bytes. Returns 1 for a piece; 0 at the end; -1 on an error. */
int hr_shell_piece(int fd, struct hr_buf *frame, struct hr_output_piece *ret, size_t *ret_used,
    struct hr_err *err);

/* Returns true if there is a shell, or one is being replaced. */
bool hr_shell_is_there(const struct hr_shell_place *at);

#endif
