/* Runs commands of the MCP endpoint as commands of the V1 API. Such a command sends stderr to
 * stdout, so `err` has only what others wrote: an error of the start, or the minder's note at the
 * end. It is the last part of the output of an ended command. */
#include "config.h"

#include "worker/beside.h"

#include <errno.h>
#include <poll.h>

#include "base/fd.h"
#include "worker/once.h"
#include "worker/request/key.h"
#include "worker/v1/bound.h"
#include "worker/v1/command.h"

/* Returns a call for functions that use its worker alone. */
static struct hr_rex_call
call_of(void *server)
{
	return (struct hr_rex_call){.w = server};
}

void
hr_beside_start(struct hr_worker *w, const struct hr_request *r, struct hr_span command,
    struct hr_span directory, struct hr_span key, struct hr_answer *ret)
{
	HR_PUT struct json_object *body =
	    hr_json_object(NULL, "command", json_object_new_string_len(command.p, (int)command.len),
		"cwd", json_object_new_string_len(directory.p, (int)directory.len), NULL);
	struct hr_rex_call c = {.w = w, .r = r, .body = body, .ret = ret};
	struct hr_v1_command m;
	HR_BUF(name, HR_KEY_MAX);

	hr_buf_add(&name, key.p, key.len);
	if (body == NULL)
		hr_answer_generic(ret);
	else if (hr_once_join(w, r, NULL, &name, ret)) {
		if (hr_v1_begin_named(&c, hr_span_of_buf(&name), &m))
			hr_buf_adds(&ret->body, m.id);
		hr_once_leave(w, ret);
	}
}

static int
look(void *server, const char *id, struct hr_mcp_process *ret)
{
	const struct hr_rex_call c = call_of(server);
	HR_CLEAN(hr_v1_streams_close) struct hr_v1_streams s = {.out = -1, .err = -1};
	struct hr_v1_state state = {0};
	struct hr_v1_command m;
	int found;

	if (!hr_v1_parse_id(&m, hr_span_of(id)))
		return 0;
	found = hr_v1_look(&c, m.id, &state);
	if (found <= 0)
		return found;
	hr_v1_streams_open(&c, m.id, &s);
	*ret = (struct hr_mcp_process){.over = state.over,
	    .left = !state.over || hr_v1_is_minded(&c, m.id),
	    .exit_code = state.code == HR_BOUND_NO_CODE ? -1
			 : state.code < 0               ? 128 - state.code /* a signal */
							: state.code,
	    .bytes = s.out_size + (state.over ? s.err_size : 0)};
	return 1;
}

static int
read_output(
    void *server, const char *id, uint64_t from, size_t len, struct hr_buf *raw, struct hr_err *err)
{
	const struct hr_rex_call c = call_of(server);
	HR_CLEAN(hr_v1_streams_close) struct hr_v1_streams s = {.out = -1, .err = -1};
	struct hr_v1_command m;
	uint64_t size;
	size_t i, n;
	char *room;

	if (hr_v1_parse_id(&m, hr_span_of(id)))
		hr_v1_streams_open(&c, m.id, &s);
	for (i = 0; i < 2; i++) {
		size = i == 0 ? s.out_size : s.err_size;
		n = from >= size ? 0 : len < size - from ? len : (size_t)(size - from);
		room = hr_buf_reserve(raw, n + 1);
		if (room == NULL)
			return hr_err_nomem(err);
		if (hr_fd_pread_full(i == 0 ? s.out : s.err, room, n, (off_t)from) < 0)
			return hr_err_sys(err, errno, "the output of a command");
		hr_buf_grew(raw, n);
		len -= n;
		from = from + n > size ? from + n - size : 0; /* counted in the next file */
	}
	return 0;
}

static int
stop(void *server, const char *id)
{
	const struct hr_rex_call c = call_of(server);
	struct hr_v1_command m;

	errno = ENOENT;
	return hr_v1_parse_id(&m, hr_span_of(id)) ? hr_v1_stop_file(&c, m.id) : -1;
}

static bool
wait_end(void *server, const char *id, int64_t until_ms, int client, int signals)
{
	const struct hr_rex_call c = call_of(server);
	struct pollfd fds[] = {{.fd = -1}, {.fd = client, .events = POLLIN | POLLRDHUP},
	    {.fd = signals, .events = POLLIN}};
	struct hr_v1_state state = {0};
	struct hr_v1_command m;

	if (hr_v1_parse_id(&m, hr_span_of(id)))
		(void)hr_v1_wait(&c, m.id, until_ms, fds, 3, &state);
	return fds[1].revents != 0 || fds[2].revents != 0;
}

const struct hr_mcp_beside hr_beside = {look, read_output, stop, wait_end};
