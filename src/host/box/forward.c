/* Describes the forwarders of a box, processes of handrail-forward. */
#include "config.h"

#include "host/box/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "host/common/module.h"
#include "host/common/proc.h"
#include "proto/json.h"

#define PROGRAM "handrail-forward"
#define RECORD_MAX 4096
#define END_PATIENCE_MS 5000
/* A holder of a record's lock starts a forwarder, or has been stopped by a signal. */
#define URL_PATIENCE_MS 30000
#define DOWN_PATIENCE_MS 2000
#define LOCK_PAUSE_MS 20

static const char *const records[] = {"forward", "forward.editor"};

/* Locks an open file. Returns 0, or an error number: EWOULDBLOCK after patience_ms. */
static int
lock_in_time(int fd, int patience_ms)
{
	int64_t until = hr_now_ms() + patience_ms;

	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EINTR && (errno != EWOULDBLOCK || hr_now_ms() >= until))
			return errno;
		(void)poll(NULL, 0, LOCK_PAUSE_MS);
	}
	return 0;
}

/* Opens and locks the record. Returns -1 with *err set; without `make` its sys is ENOENT if there
 * is none. */
static int
open_record(const struct hr_box *b, bool editor, bool make, struct hr_err *err)
{
	HR_FREE char *path = hr_box_path(b, records[editor]);
	int fd, sys;

	if (path == NULL)
		return hr_err_nomem(err);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
	if (fd < 0)
		return hr_err_sys(err, errno, "open %s", path);
	sys = lock_in_time(fd, make ? URL_PATIENCE_MS : DOWN_PATIENCE_MS);
	if (sys == EWOULDBLOCK)
		(void)hr_err_set(err, HR_E_BUSY,
		    "another process of this account holds the lock of %s: end that process", path);
	else if (sys != 0)
		(void)hr_err_sys(err, sys, "lock %s", path);
	if (sys != 0)
		hr_fd_close(&fd);
	return fd;
}

/* Returns a pidfd of the recorded process, with its number and port; -1 if it has ended. */
static int
read_record(int file, pid_t *ret_pid, int *ret_port)
{
	char text[RECORD_MAX];
	HR_PUT struct json_object *o = NULL;
	ssize_t n = pread(file, text, sizeof(text), 0);

	if (n <= 0 || hr_json_decode(text, (size_t)n, &o, NULL) < 0)
		return -1;
	*ret_pid = (pid_t)hr_json_int_at(o, "pid");
	*ret_port = (int)hr_json_int_at(o, "port");
	return hr_proc_watch(*ret_pid, (unsigned long long)hr_json_int_at(o, "started"));
}

/* Starts a forwarder and waits until it serves: it then closes its standard error. */
static int
start(const struct hr_box *b, bool editor, int file, struct hr_err *err)
{
	HR_FREE char *path = hr_module_path(PROGRAM, err);
	HR_BUF(said, 1u << 16);
	char port[16], *room;
	const char *const argv[] = {PROGRAM, editor ? "editor" : "server", port, NULL};
	int back[2], status = -1;
	ssize_t n = 0;
	pid_t pid;

	(void)snprintf(port, sizeof(port), "%lld",
	    editor ? b->ports[HR_BOX_VSCODE] : hr_config_int(b->h->config, "box.port"));
	if (path == NULL)
		return -1;
	if (ftruncate(file, 0) != 0 || pipe2(back, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "start the forwarder of the box");
	pid = hr_spawn(&(const struct hr_spawn){.path = path,
			   .argv = argv,
			   .umask = -1,
			   .alone = true,
			   .fds = (const struct hr_spawn_fd[]){{file, 1}, {back[1], 2},
			       {b->watch, 3}, {b->socket, 4}},
			   .nfds = 4},
	    err);
	hr_fd_close(&back[1]);
	while (pid > 0 && (room = hr_buf_reserve(&said, 1024)) != NULL &&
	       (n = hr_fd_read(back[0], room, 1024)) > 0)
		hr_buf_grew(&said, (size_t)n);
	hr_fd_close(&back[0]);
	if (pid < 0)
		return -1;
	if (hr_spawn_end(pid, &status) == 0 && status == 0 && said.len == 0)
		return 0;
	return hr_err_set(err, HR_E_RUNTIME, "the way to the box's %s: %.*s",
	    editor ? "editor" : "server", (int)strcspn(hr_buf_str(&said), "\n"),
	    said.len > 0 ? hr_buf_str(&said) : hr_exit_words(status));
}

int
hr_box_forward(const struct hr_box *b, bool editor, struct hr_err *err)
{
	char port[16];
	const char *const argv[] = {"handrail-forward", editor ? "editor" : "server", port, NULL};

	file = open_record(b, editor, true, err);
	if (file < 0)
		return -1;
	watch = read_record(file, &pid, &port);
	if (watch >= 0)
		return port;
	if (start(b, editor, file, err) < 0)
		return -1;
	watch = read_record(file, &pid, &port);
	return watch >= 0 ? port
			  : hr_err_set(err, HR_E_DISCONNECTED,
				"the forwarder of the box has ended, as it does with the box");
}

static void
end_one(const struct hr_box *b, bool editor)
{
	HR_FREE char *path = hr_box_path(b, records[editor]);
	struct hr_err e = {0};
	HR_CLOSE int file = open_record(b, editor, false, &e);
	HR_CLOSE int watch = -1;
	pid_t pid;
	int port;

	if (file < 0) {
		/* a forwarder ends with its box anyway */
		if (e.sys != ENOENT)
			b->h->log(b->h->arg, e.msg);
		return;
	}
	watch = read_record(file, &pid, &port);
	if (watch >= 0)
		hr_proc_end(pid, watch, END_PATIENCE_MS);
	if (path != NULL)
		(void)unlink(path);
}

void
hr_box_end_forwards(const struct hr_box *b)
{
	hr_box_helper_end(b, records[false]);
	hr_box_helper_end(b, records[true]);
}
