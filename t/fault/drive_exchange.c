/* The exchange of a worker with the keeper of a shell: questions, commands, output. The keeper is a
 * peer with ready answers. */
#include "config.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actions/shell.h"
#include "base/fd.h"
#include "fault.h"
#include "peer.h"

#define SOCKET "session.sock"
#define TEXT_MAX (1u << 20)

static struct hr_span
span(const char *text)
{
	return (struct hr_span){text, strlen(text)};
}

static void
answer(struct hr_buf *out, uint32_t type)
{
	const struct hr_session_state state = {
	    .ready = true, .working_dir = span("/w"), .reason = span("nothing runs")};
	const struct hr_run_result result = {.has_metadata = true,
	    .exit_code = 3,
	    .pid = -1,
	    .content = span("what it said"),
	    .working_dir = span("/w")};
	const struct hr_output_piece piece = {.offset = 5, .bytes = span("printed")};

	if (type == HR_FRAME_RUN)
		hr_frame_put_result(out, &result);
	else if (type == HR_FRAME_FOLLOW)
		hr_frame_put_output(out, &piece);
	else
		hr_frame_put_state(out, &state);
}

static void
keeper(int fd)
{
	HR_BUF(in, TEXT_MAX);
	HR_BUF(out, TEXT_MAX);
	const char *payload;
	uint32_t type;
	size_t len;
	int c;

	while ((c = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		type = peer_frame(c, &in, &payload, &len);
		hr_buf_reset(&out);
		answer(&out, type);
		if (type != 0)
			peer_send(c, &out);
		(void)close(c);
	}
}

static int
with_keeper(int (*ask)(struct hr_buf *frame, struct hr_err *err), struct hr_err *err)
{
	pid_t pid = peer_start(SOCKET, keeper, NULL);
	HR_BUF(frame, TEXT_MAX);
	int r;

	r = ask(&frame, err);
	hr_buf_done(&frame);
	peer_stop(pid);
	return r;
}

static int
ask_state(struct hr_buf *frame, struct hr_err *err)
{
	const struct hr_shell_place at = {.run_dir = fault_dir(), .session = NULL};
	struct hr_session_state state;
	int r = hr_shell_state(&at, frame, &state, err);

	if (r == 0)
		fault_tell("%d %.*s", state.ready, (int)state.working_dir.len, state.working_dir.p);
	return r;
}

static int
press(struct hr_buf *frame, struct hr_err *err)
{
	const struct hr_press_request q = {.text = span("y\n")};
	const struct hr_shell_place at = {.run_dir = fault_dir(), .session = NULL};
	struct hr_session_state state;
	int r = hr_shell_press(&at, &q, frame, &state, err);

	if (r == 0)
		fault_tell("%.*s", (int)state.reason.len, state.reason.p);
	return r;
}

static int
run_on(bool kept, struct hr_buf *frame, struct hr_err *err)
{
	const struct hr_run_request q = {.command = {"make", 4}, .key = {"k", 1}, .stays = kept};
	const struct hr_shell_place at = {.run_dir = fault_dir(), .session = NULL};
	struct hr_run_result result;
	int fd = hr_shell_connect(&at, err), r = -1;

	if (fd >= 0)
		r = hr_shell_run(fd, &at, kept, &q, frame, &result, err);
	if (r > 0) { /* nothing was sent */
		hr_fd_close(&fd);
		fd = hr_shell_connect(&at, err);
		r = fd >= 0 ? hr_shell_run(fd, &at, false, &q, frame, &result, err) : -1;
	}
	if (r == 0)
		fault_tell(
		    "%d %.*s", (int)result.exit_code, (int)result.content.len, result.content.p);
	hr_fd_close(&fd);
	return r;
}

static int
run_command(struct hr_buf *frame, struct hr_err *err)
{
	return run_on(false, frame, err);
}

static int
run_kept(struct hr_buf *frame, struct hr_err *err)
{
	return run_on(true, frame, err);
}

/* The caller reads; here, with nothing failing but what it does itself. */
static int
follow(struct hr_buf *frame, struct hr_err *err)
{
	const struct hr_follow_request q = {.offset = 0};
	const struct hr_shell_place at = {.run_dir = fault_dir(), .session = NULL};
	int fd = hr_shell_follow(&at, &q, err);
	char *room = fd >= 0 ? hr_buf_reserve(frame, 4096) : NULL;
	ssize_t n = -1;

	if (fd >= 0 && room == NULL)
		(void)hr_buf_check(frame, err);
	if (room != NULL)
		n = hr_fd_read_full(fd, room, 4096, err);
	if (n >= 0)
		fault_tell("%zd", n);
	hr_fd_close(&fd);
	return n < 0 ? -1 : 0;
}

static int
state(struct hr_err *err)
{
	return with_keeper(ask_state, err);
}

static int
press_keys(struct hr_err *err)
{
	return with_keeper(press, err);
}

static int
command(struct hr_err *err)
{
	return with_keeper(run_command, err);
}

static int
kept(struct hr_err *err)
{
	return with_keeper(run_kept, err);
}

static int
output(struct hr_err *err)
{
	return with_keeper(follow, err);
}

const struct fault_scenario fault_scenarios[] = {{"state", state, 0}, {"press", press_keys, 0},
    {"command", command, 0}, {"kept", kept, 0}, {"output", output, 0}, {NULL, NULL, 0}};
