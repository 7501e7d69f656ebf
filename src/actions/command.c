/* What was printed is read back by offsets; nothing here changes anything. */
#include "config.h"

#include "actions/command.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"

#define FRAME_MAX (2u << 20)
#define ECHO_MS 5000 /* so long the rest of an echo may take to come */

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

/* The next piece, until `end`. As hr_shell_piece(); 0: it does not come. */
static int
piece_until(
    int fd, int64_t end, struct hr_buf *frame, struct hr_output_piece *ret, size_t *ret_used)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct hr_err err = {0};
	int64_t left;
	int n = hr_shell_has_piece(frame) ? 1 : 0;

	while (n == 0 && (left = end - hr_now_ms()) > 0) {
		n = poll(&p, 1, (int)left);
		if (n < 0 && errno == EINTR)
			n = 0;
	}
	return n > 0 ? hr_shell_piece(fd, frame, ret, ret_used, &err) : 0;
}

uint64_t
hr_command_echo(const struct hr_shell_place *place, uint64_t from, struct hr_span text)
{
	const struct hr_follow_request req = {.offset = from};
	const int64_t end = hr_now_ms() + ECHO_MS;
	struct hr_output_piece piece;
	struct hr_buf frame, wanted;
	struct hr_err err = {0};
	size_t used, i, seen = 0, n;
	int fd = hr_shell_follow(place, &req, &err);

	if (fd < 0)
		return 0;
	hr_buf_init(&frame, FRAME_MAX);
	hr_buf_init(&wanted, 2u << 20);
	for (i = 0; i < text.len; i++) {
		if (text.p[i] == '\n')
			hr_buf_addc(&wanted, '\r');
		hr_buf_addc(&wanted, text.p[i]);
	}
	hr_buf_adds(&wanted, "\r\n");
	/* the terminal may show it in pieces, and later than the command is known of */
	while (wanted.fail == HR_OK && seen < wanted.len &&
	       piece_until(fd, end, &frame, &piece, &used) > 0) {
		n = wanted.len - seen < piece.bytes.len ? wanted.len - seen : piece.bytes.len;
		if (piece.offset != from + seen || memcmp(piece.bytes.p, wanted.p + seen, n) != 0)
			break;
		seen += n;
		hr_buf_drop_front(&frame, used);
	}
	i = wanted.len;
	hr_buf_done(&frame);
	hr_buf_done(&wanted);
	hr_fd_close(&fd);
	return seen == i ? i : 0;
}

int
hr_command_output(const struct hr_shell_place *place, uint64_t *io_from, uint64_t end, size_t max,
    struct hr_buf *ret, struct hr_err *err)
{
	const struct hr_follow_request req = {.offset = *io_from};
	struct hr_output_piece piece;
	struct hr_buf frame;
	size_t used, n;
	bool first = true;
	int fd = hr_shell_follow(place, &req, err), r = 1;

	if (fd < 0)
		return -1;
	hr_buf_init(&frame, FRAME_MAX);
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
	hr_buf_done(&frame);
	hr_fd_close(&fd);
	return r < 0 ? -1 : hr_buf_check(ret, err);
}
