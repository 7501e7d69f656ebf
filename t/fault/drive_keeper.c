/* The keeper of a shell as a whole: its loop, its sockets, its terminal and a true bash. The peer
 * is its client, and ends it. Whatever fails, the keeper ends when it is told to, and answers a
 * request or hangs up. */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "failcalls.h"
#include "fault.h"
#include "peer.h"
#include "proto/frame.h"
#include "session/confine.h"
#include "session/keeper.h"

#define SOCKET "session.sock"
#define TEXT_MAX (1u << 20)
#define AGAIN_MS 100 /* a signal may be what fails */

/* Sends a frame, on a new connection where *io_fd is -1, and waits for the answer, or the end. */
static uint32_t
ask(struct hr_buf *frame, const char **payload, size_t *len, int *io_fd)
{
	int fd = *io_fd >= 0 ? *io_fd : peer_connect(SOCKET);
	uint32_t type = 0;

	if (fd >= 0) {
		peer_send(fd, frame);
		type = peer_frame(fd, frame, payload, len);
	}
	*io_fd = fd;
	return type;
}

/* io_fd: a connection that stays. */
static void
ask_run(struct hr_buf *b, const char *command, int *io_fd)
{
	const struct hr_run_request q = {
	    .command = command, .command_len = strlen(command), .stays = true};
	struct hr_run_result r;
	const char *payload;
	size_t len;

	hr_buf_reset(b);
	hr_frame_put_run(b, &q);
	if (ask(b, &payload, &len, io_fd) == HR_FRAME_RESULT &&
	    hr_frame_get_result(payload, len, &r, NULL) == 0)
		fault_tell(
		    "%d %d [%.*s] ", r.is_error, (int)r.exit_code, (int)r.content.len, r.content.p);
	else
		hr_fd_close(io_fd);
}

static void
ask_press(struct hr_buf *b)
{
	const struct hr_press_request q = {.text = {"y\n", 2}};
	struct hr_session_state s;
	const char *payload;
	size_t len;
	int fd = -1;

	hr_buf_reset(b);
	hr_frame_put_press(b, &q);
	if (ask(b, &payload, &len, &fd) == HR_FRAME_STATE &&
	    hr_frame_get_state(payload, len, &s, NULL) == 0)
		fault_tell("(%.*s) ", (int)s.reason.len, s.reason.p);
	hr_fd_close(&fd);
}

/* What the terminal showed is not the same each time; that it ends is. */
static void
ask_output(struct hr_buf *b)
{
	const struct hr_follow_request q = {.offset = 0};
	const char *payload;
	uint32_t type;
	size_t len;
	int fd = -1;

	hr_buf_reset(b);
	hr_frame_put_follow(b, &q);
	type = ask(b, &payload, &len, &fd);
	if (type == HR_FRAME_OUTPUT)
		fault_tell("output ");
	while (type != 0)
		type = peer_frame(fd, b, &payload, &len);
	hr_fd_close(&fd);
}

static void
client(int listener)
{
	struct hr_buf b;
	int fd = -1;

	(void)close(listener);
	hr_buf_init(&b, TEXT_MAX);
	ask_run(&b, "echo one; (exit 3)", &fd);
	ask_press(&b);
	ask_run(&b, "cat <<< 'two\ttwo'", &fd);
	ask_output(&b);
	for (;;) {
		(void)kill(getppid(), SIGTERM);
		(void)poll(NULL, 0, AGAIN_MS);
	}
}

static int
keep(struct hr_err *err)
{
	char state[128], work[128];
	struct hr_confine free_of_any = {0};
	struct hr_keeper_config config = {.name = "default",
	    .user = "sandbox",
	    .state_dir = state,
	    .work_dir = work,
	    .bash = HR_BASH_PATH,
	    .no_change_ms = 5000,
	    .output_log = 65536,
	    .confine = &free_of_any,
	    .notify_fd = -1};
	pid_t pid;
	int r;

	(void)snprintf(state, sizeof(state), "%s/state", fault_dir());
	(void)snprintf(work, sizeof(work), "%s/work", fault_dir());
	failcalls_spare(true);
	(void)signal(SIGTERM, SIG_IGN);          /* it comes before and after, too */
	(void)setenv("HOME", "/nonexistent", 1); /* nobody's start-up files */
	r = hr_path_mkdirs(state, 0700, NULL, err);
	if (r == 0)
		r = hr_path_mkdirs(work, 0755, NULL, err);
	failcalls_spare(false);
	if (r != 0)
		return -1;
	pid = peer_start(SOCKET, client, &config.serve_fd);
	r = hr_keeper_run(&config, err);
	peer_stop(pid);
	hr_fd_close(&config.serve_fd);
	return r;
}

const struct fault_scenario fault_scenarios[] = {{"keeper", keep, FAULT_LOSSY}, {NULL, NULL, 0}};
