/* bench_pty: what a bare pseudo-terminal allows: the floors of a shell and of its output.
 *
 *   bench_pty [options]      reads orders, answers each with one line of JSON
 *
 *   loop N COMMAND   types COMMAND N times at one interactive bash, each time as soon as the prompt
 *                    has come back: from the write to the prompt's mark
 *   read COMMAND     bash -c COMMAND on a new terminal, read to its end: bytes and seconds
 *   start N          starts an interactive bash N times: from fork to its first prompt
 *
 * The prompt marks itself in the terminal's stream, by a builtin in PROMPT_COMMAND. */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/clean.h"
#include "lat.h"

#define MARK "@@bench-prompt@@"
#define WAIT_MS 60000 /* a shell that says nothing for so long is a failed benchmark */

enum { BUF = 64 << 10 };

struct pty {
	const char *bash;
	bool noediting;
	struct winsize size;
	struct termios modes;
	bool has_modes;
	/* the shell of `loop` */
	pid_t pid;
	int master;
	char buf[BUF];
};

static const struct argp_option options[] = {
    {"bash", 'b', "PATH", 0, "the shell [/bin/bash]", 0},
    {"noediting", 'n', NULL, 0, "no readline, and a terminal that does not echo", 0},
    {"columns", 'c', "N", 0, "width of the terminal [1000]", 0},
    {"rows", 'r', "N", 0, "its height [1000]", 0},
    {"termios", 't', "MODES", 0, "its modes, as `stty -g` prints them", 0},
    {0},
};

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

/* iflag:oflag:cflag:lflag:cc..., all hexadecimal; the speed is part of cflag. */
static bool
modes_parse(struct termios *t, const char *text)
{
	tcflag_t *const flags[] = {&t->c_iflag, &t->c_oflag, &t->c_cflag, &t->c_lflag};
	const char *at = text;
	char *end;
	size_t i;

	for (i = 0; i < 4 + NCCS; i++) {
		unsigned long v = strtoul(at, &end, 16);

		if (end == at)
			return false;
		if (i < 4)
			*flags[i] = (tcflag_t)v;
		else
			t->c_cc[i - 4] = (cc_t)v;
		if (*end == '\0')
			return i >= 4;
		if (*end != ':')
			return false;
		at = end + 1;
	}
	return true;
}

static error_t
parse(int key, char *arg, struct argp_state *state)
{
	struct pty *p = state->input;

	switch (key) {
	case 'b': p->bash = arg; break;
	case 'n': p->noediting = true; break;
	case 'c': p->size.ws_col = (unsigned short)strtoul(arg, NULL, 10); break;
	case 'r': p->size.ws_row = (unsigned short)strtoul(arg, NULL, 10); break;
	case 't':
		p->has_modes = modes_parse(&p->modes, arg);
		if (!p->has_modes)
			argp_error(state, "not what `stty -g` prints: %s", arg);
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* What a new terminal has, read from one: the kernel's defaults. */
static void
modes_default(struct pty *p)
{
	int master, slave;

	if (p->has_modes)
		return;
	if (openpty(&master, &slave, NULL, NULL, NULL) < 0 || tcgetattr(slave, &p->modes) < 0)
		fail("terminal");
	(void)close(master);
	(void)close(slave);
	p->modes.c_iflag |= IUTF8;
	if (p->noediting)
		p->modes.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK);
}

/* argv NULL: an interactive shell that marks its prompts. */
static pid_t
spawn(struct pty *p, char *const *argv, int *ret_master)
{
	/* bash wants its long options first */
	char *const editing[] = {
	    (char *)"bash", (char *)"--norc", (char *)"--noprofile", (char *)"-i", NULL};
	char *const plain[] = {(char *)"bash", (char *)"--norc", (char *)"--noprofile",
	    (char *)"--noediting", (char *)"-i", NULL};
	pid_t pid = forkpty(ret_master, NULL, &p->modes, &p->size);

	if (pid < 0)
		fail("forkpty");
	if (pid > 0)
		return pid;
	(void)setenv("TERM", "screen", 1);
	if (argv == NULL) {
		(void)setenv("PS1", "", 1);
		(void)setenv("PS2", "", 1);
		(void)setenv("PROMPT_COMMAND", "builtin printf '\\n%d" MARK "\\n' \"$?\"", 1);
		argv = p->noediting ? plain : editing;
	}
	execv(p->bash, argv);
	_exit(127);
}

/* One piece of output; 0: the end. */
static size_t
read_some(int fd, char *buf, size_t cap)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};
	ssize_t n;

	for (;;) {
		n = read(fd, buf, cap);
		if (n > 0)
			return (size_t)n;
		if (n == 0 || errno == EIO)
			return 0;
		if (errno == EAGAIN) {
			if (poll(&in, 1, WAIT_MS) == 0) {
				(void)fprintf(stderr, "bench_pty: no output for %d ms\n", WAIT_MS);
				exit(1);
			}
		} else if (errno != EINTR) {
			fail("read");
		}
	}
}

/* Reads until a prompt has shown its mark. */
static void
wait_mark(struct pty *p)
{
	size_t keep = 0, n;

	for (;;) {
		n = read_some(p->master, p->buf + keep, BUF - keep);
		if (n == 0) {
			(void)fputs("bench_pty: the shell has ended\n", stderr);
			exit(1);
		}
		n += keep;
		if (memmem(p->buf, n, MARK, sizeof(MARK) - 1) != NULL)
			return;
		keep = n < sizeof(MARK) - 2 ? n : sizeof(MARK) - 2;
		memmove(p->buf, p->buf + n - keep, keep);
	}
}

static void
shell_start(struct pty *p)
{
	p->pid = spawn(p, NULL, &p->master);
	if (fcntl(p->master, F_SETFL, O_NONBLOCK) < 0)
		fail("terminal");
	wait_mark(p);
}

static void
shell_end(struct pty *p)
{
	if (p->pid <= 0)
		return;
	(void)close(p->master);
	(void)kill(p->pid, SIGKILL);
	(void)waitpid(p->pid, NULL, 0);
	p->pid = 0;
}

static void
type(struct pty *p, const char *line, size_t len)
{
	struct pollfd out = {.fd = p->master, .events = POLLOUT};
	ssize_t n;

	while (len > 0) {
		n = write(p->master, line, len);
		if (n > 0) {
			line += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			(void)poll(&out, 1, WAIT_MS);
		} else if (n < 0 && errno != EINTR) {
			fail("write");
		}
	}
}

/* ---- the orders ---- */

static void
order_loop(struct pty *p, unsigned long n, char *command)
{
	size_t len = strlen(command);
	struct bench_lat lat;
	uint64_t begun, at, now;

	if (p->pid == 0)
		shell_start(p);
	command[len++] = '\n'; /* in place of the NUL */
	bench_lat_init(&lat);
	at = begun = bench_now();
	for (; n > 0; n--) {
		type(p, command, len);
		wait_mark(p);
		now = bench_now();
		bench_lat_add(&lat, now - at);
		at = now;
	}
	bench_lat_print(&lat, (double)(at - begun) / 1e9, "");
	bench_lat_done(&lat);
}

static double
cpu_us(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e6 +
	       (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

static void
order_read(struct pty *p, char *command)
{
	char *const argv[] = {(char *)"bash", (char *)"-c", command, NULL};
	struct rusage before, after, child;
	unsigned long long total = 0;
	uint64_t begun;
	int master, status;
	size_t n;
	pid_t pid;

	(void)getrusage(RUSAGE_SELF, &before);
	begun = bench_now();
	pid = spawn(p, argv, &master);
	if (fcntl(master, F_SETFL, O_NONBLOCK) < 0)
		fail("terminal");
	while ((n = read_some(master, p->buf, BUF)) > 0)
		total += n;
	if (wait4(pid, &status, 0, &child) < 0)
		fail("wait4");
	(void)printf("{\"seconds\":%.6f,\"bytes\":%llu,\"status\":%d",
	    (double)(bench_now() - begun) / 1e9, total,
	    WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	(void)getrusage(RUSAGE_SELF, &after);
	(void)printf(",\"cpu_reader_us\":%.0f,\"cpu_command_us\":%.0f}\n",
	    cpu_us(&after) - cpu_us(&before), cpu_us(&child));
	(void)fflush(stdout);
	(void)close(master);
}

static void
order_start(struct pty *p, unsigned long n)
{
	uint64_t begun = bench_now(), at;
	struct bench_lat lat;

	bench_lat_init(&lat);
	for (; n > 0; n--) {
		shell_end(p);
		at = bench_now();
		shell_start(p);
		bench_lat_add(&lat, bench_now() - at);
	}
	bench_lat_print(&lat, (double)(bench_now() - begun) / 1e9, "");
	bench_lat_done(&lat);
}

static bool
obey(struct pty *p, char *line)
{
	char *rest;
	unsigned long n;

	if (strncmp(line, "read ", 5) == 0) {
		order_read(p, line + 5);
		return true;
	}
	if (strncmp(line, "loop ", 5) == 0) {
		n = strtoul(line + 5, &rest, 10);
		if (n == 0 || *rest != ' ')
			return false;
		order_loop(p, n, rest + 1);
		return true;
	}
	if (strncmp(line, "start ", 6) == 0) {
		n = strtoul(line + 6, NULL, 10);
		if (n == 0)
			return false;
		order_start(p, n);
		return true;
	}
	return false;
}

int
main(int argc, char **argv)
{
	static const struct argp argp = {
	    options, parse, NULL, "The floors of a pseudo-terminal.", NULL, NULL, NULL};
	static struct pty p = {.bash = "/bin/bash", .size = {.ws_row = 1000, .ws_col = 1000}};
	HR_FREE char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int r = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &p);
	modes_default(&p);
	while (r == 0 && (n = getline(&line, &cap, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (!obey(&p, line)) {
			(void)fprintf(stderr, "bench_pty: what is \"%s\"?\n", line);
			r = 2;
		}
	}
	shell_end(&p);
	return r;
}
