/* Reads a worker's request step by step. */
#include "config.h"

#include "proto/actin.h"

#include <errno.h>

#include "base/fd.h"

#define READS_A_TURN 16 /* limit per event, so that other connections are served, too */

static int
whole(const struct hr_buf *b, struct hr_act_request *ret, struct hr_err *err)
{
	const char *payload = NULL;
	size_t len = 0, used, need;
	uint32_t type = 0;
	int r = hr_frame_get(hr_buf_str(b), b->len, &type, &payload, &len, &used, &need, err);

	if (r <= 0)
		return r;
	if (type != HR_FRAME_ACT)
		return hr_err_set(err, HR_E_PROTO, "unexpected frame of type %u", type);
	return hr_frame_get_act(payload, len, ret, err) < 0 ? -1 : 1;
}

int
hr_actin_read(int fd, struct hr_buf *b, struct hr_act_request *ret, struct hr_err *err)
{
	int i, r = 0;

	for (i = 0; i < READS_A_TURN && r == 0; i++) {
		char *p = hr_buf_reserve(b, HR_ACTIN_STEP);
		ssize_t n;

		if (p == NULL)
			return hr_buf_check(b, err);
		n = hr_fd_read(fd, p, HR_ACTIN_STEP);
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return hr_err_set(err, HR_E_GONE, "the worker closed the connection");
		hr_buf_grew(b, (size_t)n);
		r = whole(b, ret, err);
	}
	return r;
}
