/* bench_frame: asks a shell's keeper directly, as a worker does: what remains of a `run` when
 * nginx, FastCGI and JSON are taken away.
 *
 *   bench_frame SOCKET SECONDS COMMAND
 *
 * One connection and one frame for each command (src/proto/frame.h). One line of JSON as
 * bench_load. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lat.h"
#include "proto/frame.h"

enum { ANSWER_MAX = 1 << 20, WARM = 5, AT_LEAST = 5 };

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static int
keeper_connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		fail(path);
	}
	memcpy(addr.sun_path, path, strlen(path));
	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		fail(path);
	return fd;
}

static size_t
read_all(int fd, char *buf, size_t cap)
{
	size_t len = 0;
	ssize_t n;

	while (len < cap) {
		n = read(fd, buf + len, cap - len);
		if (n == 0)
			break;
		if (n < 0 && errno != EINTR)
			fail("read");
		len += n > 0 ? (size_t)n : 0;
	}
	return len;
}

/* An answer that is not a command completed is a failed benchmark. */
static void
check(const char *p, size_t len)
{
	struct hr_run_result result;
	size_t payload_len, used, need;
	const char *payload;
	struct hr_err err = {0};
	uint32_t type;

	if (hr_frame_get(p, len, &type, &payload, &payload_len, &used, &need, &err) == 1 &&
	    type == HR_FRAME_RESULT &&
	    hr_frame_get_result(payload, payload_len, &result, &err) == 0 && !result.is_error &&
	    result.exit_code >= 0)
		return;
	(void)fprintf(stderr, "bench_frame: the command did not complete: %s\n", err.msg);
	exit(1);
}

static void
ask(const char *path, const struct hr_buf *request, char *answer)
{
	int fd = keeper_connect(path);
	ssize_t n;

	/* far below what a socket takes at once */
	n = send(fd, request->p, request->len, MSG_NOSIGNAL);
	if (n < 0 || (size_t)n != request->len)
		fail("send");
	check(answer, read_all(fd, answer, ANSWER_MAX));
	(void)close(fd);
}

int
main(int argc, char **argv)
{
	struct hr_run_request request = {.key = {"", 0}};
	uint64_t begun, at, now, end;
	struct bench_lat lat;
	HR_BUF(frame, 1 << 20);
	HR_FREE char *answer = NULL;
	int i;

	if (argc != 4) {
		(void)fputs("usage: bench_frame SOCKET SECONDS COMMAND\n", stderr);
		return 2;
	}
	request.command = hr_span_of(argv[3]);
	hr_frame_put_run(&frame, &request);
	answer = malloc(ANSWER_MAX);
	if (answer == NULL || hr_buf_check(&frame, NULL) < 0)
		fail("bench_frame");
	bench_lat_init(&lat);
	for (i = 0; i < WARM; i++)
		ask(argv[1], &frame, answer);
	at = begun = bench_now();
	end = begun + (uint64_t)(strtod(argv[2], NULL) * 1e9);
	while (at < end || lat.n < AT_LEAST) {
		ask(argv[1], &frame, answer);
		now = bench_now();
		bench_lat_add(&lat, now - at);
		at = now;
	}
	bench_lat_print(&lat, (double)(at - begun) / 1e9, ",\"errors\":0");
	bench_lat_done(&lat);
	return 0;
}
