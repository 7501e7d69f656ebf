/* Finds, starts and ends the programs that serve a box from outside: the forwarders and the broker
 * of its network. The record of each is a file below the box's directory. A process that starts a
 * program locks its record, and the program keeps the lock until it has written the record: so two
 * processes never start the same one, and what a killed one has started is found by the next. */
#include "config.h"

#include "host/sidecar/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/process/spawn.h"
#include "host/common/lock.h"
#include "host/common/module.h"
#include "host/common/proc.h"
#include "proto/json.h"

#define RECORD_MAX 4096
#define END_PATIENCE_MS 5000
/* A holder of a record's lock starts a program, or has been stopped by a signal. */
#define START_PATIENCE_MS 30000
#define DOWN_PATIENCE_MS 2000

/* Opens and locks the record. Returns -1 with *err set; without `make` its sys is ENOENT if there
 * is none. */
static int
open_record(const struct hr_sidecars *b, const char *name, bool make, struct hr_err *err)
{
	HR_FREE char *path = hr_sidecar_path(b, name);
	int fd, sys;

	if (path == NULL)
		return hr_err_nomem(err);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
	if (fd < 0)
		return hr_err_sys(err, errno, "open %s", path);
	sys = hr_lock_in_time(fd, LOCK_EX, make ? START_PATIENCE_MS : DOWN_PATIENCE_MS);
	if (sys == EWOULDBLOCK)
		(void)hr_err_set(err, HR_E_BUSY,
		    "another process of this account holds the lock of %s: end that process", path);
	else if (sys != 0)
		(void)hr_err_sys(err, sys, "lock %s", path);
	if (sys != 0)
		hr_fd_close(&fd);
	return fd;
}

struct served {
	pid_t pid;
	int port;
	bool same; /* the record's second line names the first process of this box */
};

/* Returns a pidfd of the recorded process; -1 if it has ended. */
static int
read_record(const struct hr_sidecars *b, int file, struct served *ret)
{
	char text[RECORD_MAX];
	HR_PUT struct json_object *o = NULL;
	ssize_t n = pread(file, text, sizeof(text) - 1, 0);
	char *rest = text, *line;

	text[n > 0 ? n : 0] = '\0';
	line = strsep(&rest, "\n");
	if (hr_json_decode(line, strlen(line), &o, NULL) < 0)
		return -1;
	*ret = (struct served){.pid = (pid_t)hr_json_int_at(o, "pid"),
	    .port = (int)hr_json_int_at(o, "port"),
	    .same = rest != NULL && strcmp(rest, b->first) == 0};
	return hr_proc_watch(ret->pid, (unsigned long long)hr_json_int_at(o, "started"));
}

/* Starts the program and waits until it serves: it then closes its standard error. */
static int
start(const struct hr_sidecars *b, const struct hr_sidecar *h, int file, struct hr_err *err)
{
	HR_FREE char *path = hr_module_path(h->argv[0], err);
	HR_BUF(said, 1u << 16);
	int back[2], status = -1;
	ssize_t n = 0;
	char *room;
	pid_t pid;

	if (path == NULL)
		return -1;
	if (ftruncate(file, 0) != 0 || pipe2(back, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "start %s", h->argv[0]);
	pid = hr_spawn(&(const struct hr_spawn){.path = path,
			   .argv = h->argv,
			   .umask = -1,
			   .alone = true,
			   .fds = (const struct hr_spawn_fd[]){{file, 1}, {back[1], 2},
			       {b->watch, 3}, {b->socket, 4}},
			   .nfds = h->socket ? 4 : 3},
	    err);
	hr_fd_close(&back[1]);
	while (pid > 0 && (room = hr_buf_reserve(&said, 1024)) != NULL &&
	       (n = hr_fd_read(back[0], room, 1024)) > 0)
		hr_buf_grew(&said, (size_t)n);
	hr_fd_close(&back[0]);
	if (pid < 0)
		return -1;
	if (hr_spawn_end(pid, &status) == 0 && status == 0 && said.len == 0)
		return hr_fd_write_full(file, b->first, strlen(b->first), err);
	return hr_err_set(err, HR_E_RUNTIME, "%s: %.*s", h->what,
	    (int)strcspn(hr_buf_str(&said), "\n"),
	    said.len > 0 ? hr_buf_str(&said) : hr_exit_words(status));
}

int
hr_sidecar_watch(struct hr_sidecars *b, pid_t pid, unsigned long long started)
{
	hr_fd_close(&b->watch);
	(void)snprintf(b->first, sizeof(b->first), "%ld-%llu", (long)pid, started);
	b->watch = hr_proc_watch(pid, started);
	return b->watch;
}

int
hr_sidecar_find(const struct hr_sidecars *b, const struct hr_sidecar *h, struct hr_err *err)
{
	HR_CLOSE int file = -1;
	HR_CLOSE int watch = -1;
	struct served s;

	file = open_record(b, h->record, true, err);
	if (file < 0)
		return -1;
	watch = read_record(b, file, &s);
	if (watch >= 0 && s.same)
		return s.port;
	if (watch >= 0)
		hr_proc_end(s.pid, watch, END_PATIENCE_MS);
	hr_fd_close(&watch);
	if (start(b, h, file, err) < 0)
		return -1;
	watch = read_record(b, file, &s);
	return watch >= 0 ? s.port
			  : hr_err_set(err, HR_E_DISCONNECTED,
				"%s: the process has ended, as it does with the sandbox", h->what);
}

void
hr_sidecar_end(const struct hr_sidecars *b, const char *record)
{
	HR_FREE char *path = b->dir != NULL ? hr_sidecar_path(b, record) : NULL;
	struct hr_err e = {0};
	HR_CLOSE int file = path != NULL ? open_record(b, record, false, &e) : -1;
	HR_CLOSE int watch = -1;
	struct served s;

	if (file < 0) {
		/* such a program ends with its box anyway */
		if (e.msg[0] != '\0' && e.sys != ENOENT)
			b->h->log(b->h->arg, e.msg);
		return;
	}
	watch = read_record(b, file, &s);
	if (watch >= 0)
		hr_proc_end(s.pid, watch, END_PATIENCE_MS);
	(void)unlink(path);
}

/* ---- the forwarders of a box, processes of handrail-forward ---- */

static const char *const forwards[] = {"forward", "forward.editor"};

int
hr_sidecar_forward(const struct hr_sidecars *b, bool editor, int port, struct hr_err *err)
{
	char text[16];
	const char *const argv[] = {"handrail-forward", editor ? "editor" : "server", text, NULL};

	(void)snprintf(text, sizeof(text), "%d", port);
	return hr_sidecar_find(b,
	    &(const struct hr_sidecar){.argv = argv,
		.socket = true,
		.record = forwards[editor],
		.what =
		    editor ? "the way to the sandbox's editor" : "the way to the sandbox's server"},
	    err);
}

void
hr_sidecar_end_forwards(const struct hr_sidecars *b)
{
	hr_sidecar_end(b, forwards[false]);
	hr_sidecar_end(b, forwards[true]);
}
