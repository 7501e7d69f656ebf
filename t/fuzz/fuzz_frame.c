/* Frames from a peer that went mad: no reading past the end, and what was decoded can be encoded
 * and decoded to the same. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "fuzz.h"

static bool
same(struct hr_span a, struct hr_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/* The payload of the one frame in b. */
static const char *
payload_of(const struct hr_buf *b, size_t *ret_len)
{
	const char *p = NULL;
	uint32_t type;
	size_t used, need;

	must(b->fail == HR_OK);
	must(hr_frame_get(b->p, b->len, &type, &p, ret_len, &used, &need, NULL) == 1);
	must(used == b->len);
	return p;
}

static void
run_again(const struct hr_run_request *r, struct hr_buf *b)
{
	struct hr_run_request again;
	const char *p;
	size_t len;

	hr_frame_put_run(b, r);
	p = payload_of(b, &len);
	must(hr_frame_get_run(p, len, &again, NULL) == 0);
	must(again.command.len == r->command.len && again.key.len == r->key.len);
	must(again.is_input == r->is_input &&
	     memcmp(&again.timeout, &r->timeout, sizeof(r->timeout)) == 0);
	must(memchr(r->command.p, '\0', r->command.len) == NULL);
}

static void
result_again(const struct hr_run_result *r, struct hr_buf *b)
{
	struct hr_run_result again;
	const char *p;
	size_t len;

	hr_frame_put_result(b, r);
	p = payload_of(b, &len);
	must(hr_frame_get_result(p, len, &again, NULL) == 0);
	must(same(r->content, again.content) && same(r->command, again.command));
	must(same(r->suffix, again.suffix) && same(r->working_dir, again.working_dir));
	must(r->exit_code == again.exit_code && r->pid == again.pid);
}

/* The keeper makes strings of both texts, and a timer of the limit. */
static void
exec_again(const struct hr_exec_request *r, struct hr_buf *b)
{
	struct hr_exec_request again;
	const char *p;
	size_t len;

	must(memchr(r->command.p, '\0', r->command.len) == NULL);
	must(memchr(r->working_dir.p, '\0', r->working_dir.len) == NULL);
	must(memchr(r->kept.p, '\0', r->kept.len) == NULL);
	must(memchr(r->minder.p, '\0', r->minder.len) == NULL);
	must(r->limit_s >= 0 && r->limit_s <= HR_EXEC_LIMIT_MAX);
	hr_frame_put_exec(b, r);
	p = payload_of(b, &len);
	must(hr_frame_get_exec(p, len, &again, NULL) == 0);
	must(same(r->command, again.command) && same(r->working_dir, again.working_dir));
	must(r->limit_s == again.limit_s);
	must(same(r->kept, again.kept) && same(r->minder, again.minder));
}

/* Each request, piece and press that a decoder took comes out of its encoder the same. */
static void
look_on_again(const char *p, size_t len, struct hr_buf *b)
{
	struct hr_follow_request follow, follow_2;
	struct hr_output_piece piece, piece_2;
	struct hr_press_request press, press_2;

	if (hr_frame_get_follow(p, len, &follow, NULL) == 0) {
		size_t n;
		const char *q;

		hr_frame_put_follow(b, &follow);
		q = payload_of(b, &n);
		must(hr_frame_get_follow(q, n, &follow_2, NULL) == 0);
		must(follow.offset == follow_2.offset && follow.stays == follow_2.stays);
		hr_buf_reset(b);
	}
	if (hr_frame_get_output(p, len, &piece, NULL) == 0) {
		size_t n;
		const char *q;

		hr_frame_put_output(b, &piece);
		q = payload_of(b, &n);
		must(hr_frame_get_output(q, n, &piece_2, NULL) == 0);
		must(piece.offset == piece_2.offset && same(piece.bytes, piece_2.bytes));
		hr_buf_reset(b);
	}
	if (hr_frame_get_press(p, len, &press, NULL) == 0) {
		size_t n;
		const char *q;

		hr_frame_put_press(b, &press);
		q = payload_of(b, &n);
		must(hr_frame_get_press(q, n, &press_2, NULL) == 0);
		must(press.what == press_2.what);
		must(press.what != HR_PRESS_SIZE || press.rows == press_2.rows);
		must(press.what != HR_PRESS_SIGNAL || press.signal == press_2.signal);
		must(press.what > HR_PRESS_KEYS || same(press.text, press_2.text));
	}
}

static void
list_again(const struct hr_command_state *list, size_t n, struct hr_buf *b)
{
	static struct hr_command_state again[HR_COMMANDS_MAX];
	size_t len, n_again, i;
	const char *p;

	hr_frame_put_list(b, list, n);
	p = payload_of(b, &len);
	must(hr_frame_get_list(p, len, again, &n_again, NULL) == 0 && n_again == n);
	for (i = 0; i < n; i++)
		must(list[i].id == again[i].id && same(list[i].text, again[i].text) &&
		     same(list[i].key, again[i].key) && list[i].silent == again[i].silent);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hr_command_state list[HR_COMMANDS_MAX];
	struct hr_run_request run;
	struct hr_run_result result;
	struct hr_exec_request exec;
	struct hr_session_state state;
	HR_BUF(b, 1u << 26);
	const char *p = (const char *)data;
	uint32_t type;
	size_t len = size, used, need, n;

	if (hr_frame_get(data, size, &type, &p, &len, &used, &need, NULL) != 1) {
		p = (const char *)data; /* as a payload, then */
		len = size;
	}
	if (hr_frame_get_run(p, len, &run, NULL) == 0)
		run_again(&run, &b);
	hr_buf_reset(&b);
	if (hr_frame_get_result(p, len, &result, NULL) == 0)
		result_again(&result, &b);
	hr_buf_reset(&b);
	if (hr_frame_get_exec(p, len, &exec, NULL) == 0)
		exec_again(&exec, &b);
	(void)hr_frame_get_state(p, len, &state, NULL); /* either way: no crash */
	hr_buf_reset(&b);
	look_on_again(p, len, &b);
	hr_buf_reset(&b);
	if (hr_frame_get_list(p, len, list, &n, NULL) == 0)
		list_again(list, n, &b);
	return 0;
}
