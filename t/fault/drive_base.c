/* base: files, descriptors, programs, the loop. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/grow.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "base/process/spawn.h"
#include "fault.h"

static int
count_one(int dirfd, const char *name, const struct stat *st, void *arg)
{
	(void)dirfd;
	(void)name;
	(void)st;
	++*(unsigned *)arg;
	return 0;
}

static int
write_and_read(const char *path, struct hr_err *err)
{
	HR_BUF(b, 4096);
	int r;

	r = hr_path_write(path, "some text\n", 10, 0640, err);
	if (r == 0)
		r = hr_path_read(path, &b, err);
	if (r == 0)
		fault_tell_bytes(b.p, b.len);
	return r;
}

static int
files(struct hr_err *err)
{
	char path[128];
	unsigned made = 0;

	(void)snprintf(path, sizeof(path), "%s/a/b/c", fault_dir());
	if (hr_path_mkdirs(path, 0755, &made, err) != 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/a/b/file", fault_dir());
	return write_and_read(path, err);
}

static int
removal(struct hr_err *err)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/a/b", fault_dir());
	if (hr_path_mkdirs(path, 0755, NULL, err) != 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/a", fault_dir());
	if (hr_path_remove(path, err) != 0)
		return -1;
	fault_tell("%d", access(path, F_OK));
	return 0;
}

/* What cannot be entered is counted, not an error. */
static int
walk(struct hr_err *err)
{
	char path[128];
	unsigned seen = 0, skipped = 0;
	int r;

	(void)snprintf(path, sizeof(path), "%s/a/b/c", fault_dir());
	if (hr_path_mkdirs(path, 0755, NULL, err) != 0)
		return -1;
	r = hr_path_walk(fault_dir(), count_one, &seen, &skipped);
	fault_tell("%d %u", r, seen);
	if (skipped > 0)
		return hr_err_set(err, HR_E_SYS, "%u directories were skipped", skipped);
	return r;
}

static int
names(struct hr_err *err)
{
	HR_BUF(b, 1000);
	HR_FREE char *joined = hr_path_join("/a", "b");
	HR_FREE char *absolute = hr_path_absolute("x/y", err);
	int r = joined != NULL && absolute != NULL ? 0 : -1;

	if (joined == NULL)
		(void)hr_err_nomem(err);
	hr_quote_text(&b, "a\033b\xff", 4);
	hr_quote_json(&b, "\"\n", 2);
	if (r == 0)
		r = hr_buf_check(&b, err);
	if (r == 0)
		fault_tell("%s %d %s", joined, absolute[0] == '/', hr_buf_str(&b));
	return r;
}

/* 3000 bytes fit a pipe: nobody needs to read meanwhile. */
static int
whole_reads(struct hr_err *err)
{
	char out[3000], in[3001];
	int p[2];
	ssize_t n = -1;

	memset(out, 'x', sizeof(out));
	if (pipe2(p, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "pipe");
	if (hr_fd_write_full(p[1], out, sizeof(out), err) == 0) {
		hr_fd_close(&p[1]);
		n = hr_fd_read_full(p[0], in, sizeof(in), err);
		fault_tell("%zd", n);
	}
	hr_fd_close(&p[0]);
	hr_fd_close(&p[1]);
	return n < 0 ? -1 : 0;
}

static int
passing(struct hr_err *err)
{
	char text[16] = "";
	int s[2], got = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	ssize_t n = -1;

	if (null < 0)
		return hr_err_sys(err, errno, "/dev/null");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) != 0) {
		(void)hr_err_sys(err, errno, "socketpair");
		hr_fd_close(&null);
		return -1;
	}
	if (hr_fd_nonblock(s[1], true, err) == 0 && hr_fd_send(s[0], "hi", 2, null, err) == 0)
		n = hr_fd_recv(s[1], text, sizeof(text), &got, err);
	fault_tell("%zd %s %d", n, text, got >= 0);
	hr_fd_close(&got);
	hr_fd_close(&null);
	hr_fd_close(&s[0]);
	hr_fd_close(&s[1]);
	return n < 0 ? -1 : 0;
}

static int
program(struct hr_err *err)
{
	const char *argv[] = {"sh", "-c", "echo said >&2; exit 3", NULL};
	char text[32];
	int status = hr_spawn_wait(argv, text, sizeof(text), err);

	if (status < 0)
		return -1;
	fault_tell("%d %s", WEXITSTATUS(status), text);
	return 0;
}

static int
missing_program(struct hr_err *err)
{
	const char *argv[] = {"/nonexistent/program", NULL};
	struct hr_err why = {0};

	if (hr_spawn_wait(argv, NULL, 0, &why) != -1)
		return 0;
	if (why.sys != ENOENT) {
		*err = why;
		return -1;
	}
	fault_tell("%s", why.msg);
	return 0;
}

struct turn {
	struct hr_loop *loop;
	int fd;
	unsigned read, rung;
};

static void
on_readable(void *arg)
{
	struct turn *t = arg;
	char c;

	t->read += hr_fd_read(t->fd, &c, 1) == 1;
}

static void
on_timer(void *arg)
{
	struct turn *t = arg;

	t->rung++;
	hr_loop_stop(t->loop);
}

static int
turn_loop(struct turn *t, struct hr_err *err)
{
	struct hr_watch *timer = hr_loop_timer(t->loop, on_timer, t, err), *readable;
	int r = -1;

	if (timer == NULL)
		return -1;
	readable = hr_loop_readable(t->loop, t->fd, on_readable, t, err);
	if (readable != NULL && hr_watch_arm(timer, 5, err) == 0)
		r = hr_loop_run(t->loop, err);
	hr_watch_free(readable);
	hr_watch_free(timer);
	return r;
}

static int
loop(struct hr_err *err)
{
	struct turn t = {0};
	int p[2], r = -1;

	if (pipe2(p, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "pipe");
	t.fd = p[0];
	t.loop = hr_loop_new(err);
	if (t.loop != NULL && hr_fd_write_full(p[1], "x", 1, err) == 0)
		r = turn_loop(&t, err);
	hr_loop_free(t.loop);
	hr_fd_close(&p[0]);
	hr_fd_close(&p[1]);
	if (r == 0)
		fault_tell("%u", t.rung); /* a failed read is tried again at the next turn */
	return r;
}

/* What could not be had leaves the room as it was: who asks again writes behind nothing. */
static int
arrays(struct hr_err *err)
{
	size_t n = 0, room = 0, was = 0;
	HR_FREE long *v = NULL;

	while (n < 100 && hr_grow(&v, n, &room, sizeof(*v)) == 0) {
		v[n++] = 1;
		was = room;
	}
	if (room != was)
		abort();
	return n == 100 ? 0 : hr_err_nomem(err);
}

const struct fault_scenario fault_scenarios[] = {{"files", files, 0}, {"removal", removal, 0},
    {"walk", walk, 0}, {"names", names, 0}, {"whole reads", whole_reads, 0},
    {"passing a descriptor", passing, 0}, {"program", program, 0},
    {"missing program", missing_program, 0}, {"loop", loop, 0}, {"arrays", arrays, 0},
    {NULL, NULL, 0}};
