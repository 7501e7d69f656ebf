/* Exchanges frames over a blocking Unix socket. */
#include "config.h"

#include "actions/shell.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

#define STATE_LIMIT_S 5
#define LATE_S 30 /* seconds after a request's limit until the keeper is asked */
#define LIMIT_MAX_S 1e9

static int
limit_of(const struct hr_shell_place *at)
{
	return at->limit_s > 0 ? at->limit_s : STATE_LIMIT_S;
}

/* Returns -1. An error of a time limit gets this code and a reason. */
static int
shell_silent(struct hr_err *err, enum hr_errc code)
{
	if (err != NULL && err->sys == EAGAIN)
		return hr_err_set(err, code, "the shell's keeper does not answer");
	return -1;
}

int
hr_shell_connect(const struct hr_shell_place *at, struct hr_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, n;

	if (at->session == NULL)
		n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/session.sock", at->run_dir);
	else
		n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/session/%s.sock", at->run_dir,
		    at->session);
	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return hr_err_set(err, HR_E_INVAL, "the run directory's name is too long");
	fd = hr_fd_connect(&sa, limit_of(at));
	if (fd >= 0)
		return fd;
	if (errno == ENOENT && at->session != NULL)
		return hr_err_set(err, HR_E_NOTFOUND, "there is no session of that name");
	(void)hr_err_sys(err, errno, "the shell cannot be reached");
	return shell_silent(err, HR_E_TIMEOUT);
}

/* Reports that the keeper died, before or after reading the request. */
static int
shell_gone(struct hr_err *err)
{
	return hr_err_set(err, HR_E_GONE, "the shell's keeper went away");
}

/* Sends the first bytes on a reused connection. Returns their number, or -1 with errno if none were
 * accepted. A stream fails only if it has accepted nothing. */
static ssize_t
send_first(int fd, const struct hr_buf *b)
{
	ssize_t n;

	do
		n = send(fd, b->p, b->len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n;
}

/* Returns 1 if the keeper had closed a kept connection; nothing was sent. */
static int
shell_send(int fd, bool kept, const struct hr_run_request *req, struct hr_err *err)
{
	ssize_t first = 0;
	HR_BUF(b, HR_FRAME_MAX + HR_FRAME_HEADER);
	int r;

	hr_frame_put_run(&b, req);
	r = hr_buf_check(&b, err);
	if (r == 0 && kept) {
		first = send_first(fd, &b);
		if (first < 0 && (errno == EPIPE || errno == ECONNRESET))
			r = 1;
		else if (first < 0)
			r = hr_err_sys(err, errno, "send");
	}
	if (r == 0 && (size_t)first < b.len)
		r = hr_fd_write_full(fd, b.p + first, b.len - (size_t)first, err);
	if (r < 0 && (err->sys == EPIPE || err->sys == ECONNRESET))
		return shell_gone(err);
	/* the keeper does nothing with a part of a frame */
	return r < 0 ? shell_silent(err, HR_E_BUSY) : r;
}

/* Receives the payload of the answer into frame. */
static int
shell_receive(int fd, struct hr_buf *frame, uint32_t want, const char **ret_payload,
    size_t *ret_len, struct hr_err *err)
{
	size_t used;
	uint32_t type = 0;
	int r = hr_frame_read(fd, frame, &type, ret_payload, ret_len, &used, err);

	if (r <= 0)
		return r < 0 ? -1 : shell_gone(err);
	if (type == HR_FRAME_UNKNOWN)
		return hr_err_set(err, HR_E_NOTFOUND, "the shell's keeper knows nothing of it");
	if (type != want)
		return hr_err_set(
		    err, HR_E_PROTO, "the shell's keeper sent a frame of type %u", type);
	return 0;
}

/* Asks a question that is answered at once. Fills frame with the answer. */
static int
shell_ask(const struct hr_shell_place *at, const struct hr_buf *ask, struct hr_buf *frame,
    uint32_t want, const char **ret_payload, size_t *ret_len, struct hr_err *err)
{
	const struct timeval limit = {.tv_sec = limit_of(at)};
	HR_CLOSE int fd = hr_shell_connect(at, err);

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (hr_buf_check(ask, err) < 0 || hr_fd_write_full(fd, ask->p, ask->len, err) < 0 ||
	    shell_receive(fd, frame, want, ret_payload, ret_len, err) < 0)
		return shell_silent(err, HR_E_TIMEOUT);
	return 0;
}

static int
shell_ask_state(const struct hr_shell_place *at, const struct hr_buf *ask, struct hr_buf *frame,
    struct hr_session_state *ret, struct hr_err *err)
{
	const char *payload = NULL;
	size_t len = 0;

	if (shell_ask(at, ask, frame, HR_FRAME_STATE, &payload, &len, err) < 0)
		return -1;
	return hr_frame_get_state(payload, len, ret, err);
}

int
hr_shell_state(const struct hr_shell_place *at, struct hr_buf *frame, struct hr_session_state *ret,
    struct hr_err *err)
{
	HR_BUF(ask, HR_FRAME_HEADER);

	hr_frame_put_empty(&ask, HR_FRAME_STATUS);
	return shell_ask_state(at, &ask, frame, ret, err);
}

/* Waits for the result. The limit of a request is the keeper's to keep, and does not count the time
 * for which earlier requests run; a keeper that is stopped keeps none. */
static int
shell_await(int fd, const struct hr_shell_place *at, const struct hr_run_request *req,
    struct hr_buf *frame, const char **ret_payload, size_t *ret_len, struct hr_err *err)
{
	struct timeval limit = {0};
	struct hr_session_state state;
	struct hr_err cause = {0}, why;
	HR_BUF(asked, HR_FRAME_MAX);
	int r;

	if (at != NULL && req->timeout > 0 && req->timeout <= LIMIT_MAX_S) {
		limit.tv_sec = (time_t)(req->timeout + req->ready_s) + LATE_S;
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	}
	/* a kept connection may have the limit of an earlier request, which only asks too often */
	do {
		cause = why = (struct hr_err){0};
		hr_buf_reset(&asked);
		r = shell_receive(fd, frame, HR_FRAME_RESULT, ret_payload, ret_len, &cause);
		/* only silence ends the wait: the end of a keeper shows on this connection */
	} while (r < 0 && cause.sys == EAGAIN && at != NULL &&
		 (hr_shell_state(at, &asked, &state, &why) == 0 || why.code != HR_E_TIMEOUT));
	*err = cause;
	return r < 0 ? shell_silent(err, HR_E_TIMEOUT) : 0;
}

int
hr_shell_run(int fd, const struct hr_shell_place *at, bool kept, const struct hr_run_request *req,
    struct hr_buf *frame, struct hr_run_result *ret, struct hr_err *err)
{
	const char *payload = NULL;
	size_t len = 0;
	int r = shell_send(fd, kept, req, err);

	if (r != 0)
		return r;
	if (shell_await(fd, at, req, frame, &payload, &len, err) < 0)
		return -1;
	return hr_frame_get_result(payload, len, ret, err);
}

int
hr_shell_commands(const struct hr_shell_place *at, struct hr_buf *frame,
    struct hr_command_state ret[HR_COMMANDS_MAX], size_t *ret_n, struct hr_err *err)
{
	const char *payload = NULL;
	HR_BUF(ask, HR_FRAME_HEADER);
	size_t len = 0;

	hr_frame_put_empty(&ask, HR_FRAME_COMMANDS);
	if (shell_ask(at, &ask, frame, HR_FRAME_LIST, &payload, &len, err) < 0)
		return -1;
	return hr_frame_get_list(payload, len, ret, ret_n, err);
}

int
hr_shell_press(const struct hr_shell_place *at, const struct hr_press_request *req,
    struct hr_buf *frame, struct hr_session_state *ret, struct hr_err *err)
{
	HR_BUF(ask, HR_FRAME_MAX + HR_FRAME_HEADER);

	hr_frame_put_press(&ask, req);
	return shell_ask_state(at, &ask, frame, ret, err);
}

int
hr_shell_exec_open(
    const struct hr_shell_place *at, const struct hr_exec_request *req, struct hr_err *err)
{
	const struct timeval limit = {.tv_sec = STATE_LIMIT_S};
	int fd = hr_shell_connect(at, err);
	HR_BUF(ask, HR_FRAME_MAX);

	if (fd < 0)
		return -1;
	if (req->kept.len > 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	hr_frame_put_exec(&ask, req);
	if (hr_buf_check(&ask, err) < 0 || hr_fd_write_full(fd, ask.p, ask.len, err) < 0)
		hr_fd_close(&fd);
	return fd;
}

int
hr_shell_exec_take(int fd, struct hr_buf *frame, struct hr_buf *const streams[2], int64_t *ret_code,
    bool *ret_begun, struct hr_err *err)
{
	struct hr_output_piece piece;
	struct hr_run_result result;
	const char *payload;
	struct hr_buf *to;
	uint32_t type;
	size_t len, used;
	int r = hr_frame_read(fd, frame, &type, &payload, &len, &used, err);

	if (r <= 0)
		return r < 0 ? -1 : shell_gone(err);
	if (type == HR_FRAME_RESULT) {
		if (hr_frame_get_result(payload, len, &result, err) < 0)
			return -1;
		if (result.is_error) {
			*ret_begun = false;
			return hr_err_set(err, HR_E_BUSY, "the command was not run: %.*s",
			    (int)result.content.len, result.content.p);
		}
		*ret_code = result.exit_code;
		return 0;
	}
	if (type != HR_FRAME_OUTPUT)
		return hr_err_set(err, HR_E_PROTO, "a frame of type %u", type);
	if (hr_frame_get_output(payload, len, &piece, err) < 0)
		return -1;
	to = streams[piece.offset == 2];
	hr_buf_add(to, piece.bytes.p, piece.bytes.len);
	hr_buf_drop_front(frame, used);
	return hr_buf_check(to, err) < 0 ? -1 : 1;
}

int
hr_shell_exec(const struct hr_shell_place *at, const struct hr_exec_request *req,
    struct hr_buf *out, struct hr_buf *errors, int64_t *ret_code, bool *ret_begun,
    struct hr_err *err)
{
	struct hr_buf *const streams[2] = {out, errors};
	HR_BUF(frame, HR_SHELL_FRAME);
	HR_CLOSE int fd = hr_shell_exec_open(at, req, err);
	int r;

	*ret_begun = fd >= 0;
	if (fd < 0)
		return -1;
	do
		r = hr_shell_exec_take(fd, &frame, streams, ret_code, ret_begun, err);
	while (r > 0);
	return r;
}

int
hr_shell_returned(const struct hr_shell_place *at, uint64_t offset)
{
	struct hr_session_state state;
	struct hr_err err = {0};
	HR_BUF(ask, 256);
	HR_BUF(frame, HR_FRAME_MAX);

	hr_frame_put_returned(&ask, offset);
	return shell_ask_state(at, &ask, &frame, &state, &err);
}

int
hr_shell_follow(
    const struct hr_shell_place *at, const struct hr_follow_request *req, struct hr_err *err)
{
	int fd = hr_shell_connect(at, err);
	HR_BUF(ask, 256);

	if (fd < 0)
		return -1;
	hr_frame_put_follow(&ask, req);
	if (hr_buf_check(&ask, err) < 0 || hr_fd_write_full(fd, ask.p, ask.len, err) < 0)
		hr_fd_close(&fd);
	return fd;
}

int
hr_shell_piece(
    int fd, struct hr_buf *frame, struct hr_output_piece *ret, size_t *ret_used, struct hr_err *err)
{
	const char *payload;
	uint32_t type;
	size_t len;
	int r = hr_frame_read(fd, frame, &type, &payload, &len, ret_used, err);

	if (r <= 0)
		return r;
	if (type != HR_FRAME_OUTPUT)
		return hr_err_set(err, HR_E_PROTO, "a frame of type %u", type);
	return hr_frame_get_output(payload, len, ret, err) == 0 ? 1 : -1;
}

bool
hr_shell_is_there(const struct hr_shell_place *at)
{
	struct hr_err err = {0};
	int fd = hr_shell_connect(at, &err);

	hr_fd_close(&fd);
	return err.code != HR_E_NOTFOUND;
}
