/* hr_shell: a worker's talk with the keeper of a shell: one request frame, one answer frame. */
#ifndef HR_ACTIONS_SHELL_H
#define HR_ACTIONS_SHELL_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/frame.h"

/* Where sessions are found: the run directory, and the name of one; NULL: the default session. */
struct hr_shell_place {
	const char *run_dir;
	const char *session; /* hr_session_name_fits() */
	int limit_s;         /* how long a question waits for a keeper that is stopped; 0: 5 */
};

/* hr_run_request.ready_s of a command that must be begun, however short its caller waits for its
 * end: more than a shell is given for its start-up files. */
#define HR_SHELL_READY_S 30

/* A connection to the session's keeper; -1 on failure, HR_E_NOTFOUND if there is no such session.
 * The caller closes it. */
int hr_shell_connect(const struct hr_shell_place *at, struct hr_err *err);

/* Sends the request and waits for its result, for as long as the command takes: the client's
 * going away ends nothing. frame is filled with the answer, *ret borrows from it. `kept`: a request
 * with `stays` was answered on this connection before. 1: it was, and the keeper has closed it
 * meanwhile; nothing was sent. -1: HR_E_GONE if the keeper closed without an answer, HR_E_NOTFOUND
 * if it does not know of a request that came again, HR_E_PROTO, HR_E_SYS, HR_E_NOMEM,
 * HR_E_TOOLARGE. */
int hr_shell_run(int fd, bool kept, const struct hr_run_request *req, struct hr_buf *frame,
    struct hr_run_result *ret, struct hr_err *err);

/* Asks the session's keeper how its shell is; it answers at once, whatever runs. frame is
 * filled, *ret borrows from it. -1 also when it takes longer than some seconds. */
int hr_shell_state(const struct hr_shell_place *at, struct hr_buf *frame,
    struct hr_session_state *ret, struct hr_err *err);

/* The last commands, oldest first; otherwise as hr_shell_state(). */
int hr_shell_commands(const struct hr_shell_place *at, struct hr_buf *frame,
    struct hr_command_state ret[HR_COMMANDS_MAX], size_t *ret_n, struct hr_err *err);

/* Types for, sends a signal to, or resizes the terminal of, the command that runs in the default
 * session. The state's reason says why it was refused. As hr_shell_state(). */
int hr_shell_press(const struct hr_shell_place *at, const struct hr_press_request *req,
    struct hr_buf *frame, struct hr_session_state *ret, struct hr_err *err);

/* Tells the keeper that a client has been given the output before that offset: the result of no
 * later action repeats it. Returns 0 or -1; then it may be repeated. */
int hr_shell_returned(const struct hr_shell_place *at, uint64_t offset);

/* Runs a command beside the shell, to its end. out, errors: what it wrote to its two streams; where
 * one has no room for it the command is ended, -1 with HR_E_TOOLARGE. *ret_begun, on failure too:
 * the command may have been run. */
int hr_shell_exec(const struct hr_shell_place *at, const struct hr_exec_request *req,
    struct hr_buf *out, struct hr_buf *errors, int64_t *ret_code, bool *ret_begun,
    struct hr_err *err);

/* A connection on which OUTPUT frames come; -1 on failure. The caller reads and closes it. */
int hr_shell_follow(
    const struct hr_shell_place *at, const struct hr_follow_request *req, struct hr_err *err);

/* The next of them, borrowed from `frame`, of which *ret_used bytes are to be dropped afterwards.
 * 1: a piece; 0: the end; -1: an error. */
int hr_shell_piece(int fd, struct hr_buf *frame, struct hr_output_piece *ret, size_t *ret_used,
    struct hr_err *err);

/* There is a shell, or it is being replaced. */
bool hr_shell_is_there(const struct hr_shell_place *at);

#endif
