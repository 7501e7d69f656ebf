/* Reads output back by offsets; nothing here changes any state. */
#include "config.h"

#include "actions/command.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "base/fd.h"

#define FRAME_MAX (2u << 20)

int
hr_command_find(const struct hr_shell_place *place, struct hr_span key, struct hr_buf *frame,
    struct hr_command_state *ret)
{
	struct hr_command_state list[HR_COMMANDS_MAX];
	size_t n = 0;

	if (key.len > HR_COMMAND_KEY_MAX)
		key.len = HR_COMMAND_KEY_MAX;
	hr_buf_reset(frame);
	if (hr_shell_commands(place, frame, list, &n, NULL) < 0)
		return -1;
	while (n-- > 0) {
		if (key.len > 0 ? !hr_span_equal(list[n].key, key)
				: list[n].end != HR_COMMAND_RUNNING)
			continue;
		*ret = list[n];
		return 1;
	}
	return 0;
}

int
hr_command_output(const struct hr_shell_place *place, uint64_t *io_from, uint64_t end, size_t max,
    struct hr_buf *ret, struct hr_err *err)
{
	const struct hr_follow_request req = {.offset = *io_from};
	struct hr_output_piece piece;
	HR_BUF(frame, FRAME_MAX);
	size_t used, n;
	bool first = true;
	int r = 1;
	HR_CLOSE int fd = hr_shell_follow(place, &req, err);

	if (fd < 0)
		return -1;
	while (ret->len < max && (r = hr_shell_piece(fd, &frame, &piece, &used, err)) > 0) {
		if (first)
			*io_from = piece.offset;
		first = false;
		n = piece.offset < end ? (size_t)(end - piece.offset) : 0;
		n = n < piece.bytes.len ? n : piece.bytes.len;
		n = n < max - ret->len ? n : max - ret->len;
		hr_buf_add(ret, piece.bytes.p, n);
		if (piece.offset + piece.bytes.len >= end)
			break;
		hr_buf_drop_front(&frame, used);
	}
	return r < 0 ? -1 : hr_buf_check(ret, err);
}

int
hr_command_signals(struct hr_err *err)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGUSR1);
	/* both signals are blocked; the accept loop still receives them later */
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd >= 0 ? fd : hr_err_sys(err, errno, "signalfd");
}
