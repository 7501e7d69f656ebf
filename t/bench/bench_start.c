/* bench_start: from starting a server to its first answer, as a client sees it.
 *
 *   bench_start --port N [options] PATH -- PROGRAM [ARGUMENT...]
 *
 * Starts PROGRAM, tries to connect every 0.1 ms, sends one request at once and waits for the
 * answer; then stops the program by SIGTERM. One line of JSON: milliseconds from before the fork to
 * the connection, to the answer, and from SIGTERM to its end. */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "lat.h"

#define PAUSE_NS 100000
#define GIVE_UP_NS (120u * UINT64_C(1000000000))

struct start {
	struct bench_target target;
	const char *host, *log;
	int port;
	char **argv;
};

static const struct argp_option options[] = {
    {"host", 'h', "ADDRESS", 0, "IPv4 address [127.0.0.1]", 0},
    {"port", 'p', "PORT", 0, "TCP port", 0},
    {"body", 'b', "FILE", 0, "the body, sent as application/json", 0},
    {"expect", 'x', "TEXT", 0, "text that the answer must hold", 0},
    {"log", 'l', "FILE", 0, "where the program's output goes [/dev/null]", 0},
    {0},
};

static error_t
parse(int key, char *arg, struct argp_state *state)
{
	struct start *s = state->input;

	switch (key) {
	case 'h': s->host = arg; break;
	case 'p': s->port = (int)strtol(arg, NULL, 10); break;
	case 'b': s->target.body_file = arg; break;
	case 'x': s->target.expect = arg; break;
	case 'l': s->log = arg; break;
	case ARGP_KEY_ARG:
		s->target.path = arg;
		s->argv = state->argv + state->next;
		state->next = state->argc;
		break;
	case ARGP_KEY_END:
		if (s->argv == NULL || s->port < 1 || s->port > 65535)
			argp_usage(state);
		if (s->argv[0] != NULL && strcmp(s->argv[0], "--") == 0)
			s->argv++;
		if (s->argv[0] == NULL)
			argp_usage(state);
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static pid_t
spawn(const struct start *s)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int out = open(s->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	pid_t pid = fork();

	if (pid != 0) {
		(void)close(null);
		(void)close(out);
		return pid;
	}
	if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(127);
	execvp(s->argv[0], s->argv);
	_exit(127);
}

/* -1: the program ended or time is up. */
static int
wait_port(const struct start *s, pid_t pid, uint64_t begun)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int fd, status;

	for (;;) {
		fd = bench_connect(&s->target, false);
		if (fd >= 0)
			return fd;
		if (errno != ECONNREFUSED) {
			perror("bench_start: connect");
			return -1;
		}
		if (waitpid(pid, &status, WNOHANG) != 0) {
			(void)fprintf(stderr, "bench_start: %s ended, status %#x\n", s->argv[0],
			    (unsigned)status);
			return -1;
		}
		if (bench_now() - begun > GIVE_UP_NS) {
			(void)fputs("bench_start: the port does not open\n", stderr);
			return -1;
		}
		(void)nanosleep(&pause, NULL);
	}
}

static int
ask(const struct start *s, int fd)
{
	struct bench_answer a;
	size_t at = 0, room;
	ssize_t n;
	char *p;
	int r = 0;

	while (at < s->target.request_len) {
		n = write(fd, s->target.request + at, s->target.request_len - at);
		if (n < 0 && errno != EINTR)
			return -1;
		at += n > 0 ? (size_t)n : 0;
	}
	bench_answer_init(&a);
	while (r == 0) {
		p = bench_answer_room(&a, &room);
		n = read(fd, p, room);
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -1 : bench_answer_add(&a, (size_t)n, n == 0);
	}
	if (r > 0 && !bench_answer_good(&a, &s->target))
		r = -1;
	if (r < 0)
		(void)fprintf(stderr, "bench_start: not the answer that was expected:\n%.*s\n",
		    (int)(a.len < 600 ? a.len : 600), a.len > 0 ? a.p : "");
	bench_answer_done(&a);
	return r;
}

int
main(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "PATH -- PROGRAM [ARGUMENT...]",
	    "Times a server's start.", NULL, NULL, NULL};
	struct start s = {.host = "127.0.0.1", .log = "/dev/null"};
	uint64_t begun, connected = 0, answered = 0, stopping;
	int fd, status, r = -1;
	pid_t pid;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &s);
	(void)signal(SIGPIPE, SIG_IGN);
	bench_target_make(&s.target, s.host, s.port);
	begun = bench_now();
	pid = spawn(&s);
	if (pid < 0) {
		perror("fork");
		return 1;
	}
	fd = wait_port(&s, pid, begun);
	if (fd >= 0) {
		connected = bench_now();
		r = ask(&s, fd);
		answered = bench_now();
		(void)close(fd);
	}
	stopping = bench_now();
	(void)kill(pid, SIGTERM); /* an unreaped child: the number is still its own */
	if (waitpid(pid, &status, 0) == pid && r > 0)
		(void)printf("{\"connect_ms\":%.3f,\"answer_ms\":%.3f,\"stop_ms\":%.3f}\n",
		    (double)(connected - begun) / 1e6, (double)(answered - begun) / 1e6,
		    (double)(bench_now() - stopping) / 1e6);
	bench_target_done(&s.target);
	return r > 0 ? 0 : 1;
}
