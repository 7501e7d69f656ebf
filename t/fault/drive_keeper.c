/* The keeper of a shell as a whole: its loop, its sockets, its terminal and a true bash. The peer
 * is its client, and ends it. Whatever fails, the keeper ends when it is told to, and answers a
 * request or hangs up. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
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
	const struct hr_run_request q = {.command = hr_span_of(command), .stays = true};
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
	HR_BUF(b, TEXT_MAX);
	int fd = -1;

	(void)close(listener);
	ask_run(&b, "echo one; (exit 3)", &fd);
	ask_press(&b);
	ask_run(&b, "cat <<< 'two\ttwo'", &fd);
	ask_output(&b);
	for (;;) {
		(void)kill(getppid(), SIGTERM);
		(void)poll(NULL, 0, AGAIN_MS);
	}
}

/* A keeper that nobody asks anything, until it is ready: then it is killed. */
static int
leave_a_shell(const struct hr_keeper_config *like, struct hr_err *err)
{
	struct sockaddr_un any = {.sun_family = AF_UNIX};
	struct hr_keeper_config config = *like;
	int ready[2];
	char line[32];
	pid_t pid;
	bool ok;

	config.serve_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (pipe2(ready, O_CLOEXEC) < 0 || config.serve_fd < 0 ||
	    bind(config.serve_fd, (struct sockaddr *)&any, sizeof(sa_family_t)) < 0 ||
	    listen(config.serve_fd, 1) < 0)
		return hr_err_sys(err, errno, "a keeper before");
	config.notify_fd = ready[1];
	pid = fork();
	if (pid == 0) {
		(void)failcalls_disarm();
		(void)hr_keeper_run(&config, err);
		_exit(1);
	}
	(void)close(ready[1]);
	ok = pid > 0 && read(ready[0], line, sizeof(line)) > 0 && line[0] == 'r';
	(void)close(ready[0]);
	(void)close(config.serve_fd);
	if (pid > 0 && kill(pid, SIGKILL) == 0)
		(void)waitpid(pid, NULL, 0);
	return ok ? 0 : hr_err_set(err, HR_E_SYS, "there was no keeper before");
}

/* A shell that nobody went on with; orphans are our children here. */
static void
end_orphans(void)
{
	char path[64];
	FILE *f;
	int pid;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	while (f != NULL && fscanf(f, "%d", &pid) == 1)
		(void)kill(pid, SIGKILL);
	if (f != NULL)
		(void)fclose(f);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static int
keep(bool after_another, struct hr_err *err)
{
	char state[128], work[128];
	int store[2] = {-1, -1};
	struct hr_confine free_of_any = {0};
	struct hr_keeper_config config = {.name = "default",
	    .user = "sandbox",
	    .state_dir = state,
	    .work_dir = work,
	    .bash = HR_BASH_PATH,
	    .no_change_ms = 5000,
	    .output_log = 65536,
	    .confine = &free_of_any,
	    .notify_fd = -1,
	    .keep_in = -1,
	    .keep_out = -1};
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
	if (r == 0 && after_another) {
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, store) < 0)
			r = hr_err_sys(err, errno, "socketpair");
		config.keep_in = store[0];
		config.keep_out = store[1];
		if (r == 0)
			r = leave_a_shell(&config, err);
	}
	failcalls_spare(false);
	if (r != 0)
		return -1;
	pid = peer_start(SOCKET, client, &config.serve_fd);
	r = hr_keeper_run(&config, err);
	peer_stop(pid);
	hr_fd_close(&config.serve_fd);
	failcalls_spare(true);
	if (after_another)
		end_orphans();
	failcalls_spare(false);
	return r;
}

static int
first(struct hr_err *err)
{
	return keep(false, err);
}

/* Goes on with the shell of one that was killed. */
static int
second(struct hr_err *err)
{
	return keep(true, err);
}

const struct fault_scenario fault_scenarios[] = {
    {"keeper", first, FAULT_LOSSY}, {"successor", second, FAULT_LOSSY}, {NULL, NULL, 0}};
