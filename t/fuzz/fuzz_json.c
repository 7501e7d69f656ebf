/* A request's body to its answer: decoder, events, error texts, serialiser. The first byte chooses
 * the request. What must hold for any input: the answer is complete, is JSON, and has a status that
 * means what it says; a value that was read and written reads back the same. Files may be read, but
 * none is changed: there is no run directory, and without it no action takes its turn. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "proto/json.h"
#include "proto/python/literal.h"
#include "proto/python/repr.h"
#include "../unit/request.h"
#include "base/text/utf8.h"
#include "worker/worker.h"
#include "fuzz.h"

struct body {
	const char *p;
	size_t len;
};

static ssize_t
body_read(void *ctx, char *p, size_t len)
{
	struct body *b = ctx;
	size_t n = b->len < len ? b->len : len;

	if (n > 0)
		memcpy(p, b->p, n);
	b->p += n;
	b->len -= n;
	return (ssize_t)n;
}

static void
check_answer(const struct hr_answer *a)
{
	struct hr_json_facts facts;
	struct hr_json_error e;

	must(a->body.fail == HR_OK && a->content_type != NULL);
	must(hr_utf8_valid(hr_buf_str(&a->body), a->body.len));
	must(hr_json_scan(hr_buf_str(&a->body), a->body.len, &facts, &e) == 0);
	must(a->status == 200 || a->status == 400 || a->status == 413 || a->status == 422 ||
	     a->status == 500 || a->status == 501 ||
	     (a->status == 503 && a->retry_after_s > 0)); /* there is no shell */
}

static void
check_round_trip(const char *p, size_t len)
{
	struct json_object *again = NULL;
	HR_BUF(one, 1u << 26);
	HR_BUF(two, 1u << 26);
	HR_PUT struct json_object *v = NULL;
	struct hr_json_error e;

	if (hr_json_decode(p, len, &v, &e) < 0)
		return;
	hr_pyrepr(&one, v);
	must(one.fail == HR_OK);
	hr_buf_reset(&one);
	if (hr_json_put(&one, v) == 0) {
		must(hr_json_decode(hr_buf_str(&one), one.len, &again, &e) == 0);
		must(hr_json_put(&two, again) == 0);
		must(one.len == two.len && memcmp(one.p, two.p, one.len) == 0);
		json_object_put(again);
	}
}

static void
check_literal(const char *p, size_t len)
{
	HR_BUF(b, 1u << 26);
	HR_PUT struct json_object *v = NULL;

	if (hr_pyliteral(p, len, &v) < 0)
		return;
	hr_pyrepr(&b, v);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const uris[] = {"/execute_action", "/update_mcp_server"};
	static const char *const types[] = {"application/json", "text/plain"};
	static struct hr_scoreboard board;
	static struct hr_worker w;
	static struct hr_answer answer;
	static bool begun;
	struct hr_request r = request_blank("POST", "");
	struct body body;

	if (!begun) {
		hr_worker_init(&w, "/nonexistent", "/nonexistent", &board, &board.slots[0]);
		hr_answer_init(&answer);
		begun = true;
	}
	if (size == 0)
		return 0;
	body.p = (const char *)data + 1;
	body.len = size - 1;
	check_round_trip(body.p, body.len);
	check_literal(body.p, body.len);
	r.uri = uris[data[0] % 8 == 1];
	r.content_type = types[data[0] % 8 == 2];
	r.body.read = body_read;
	r.body.ctx = &body;
	hr_handle(&w, &r, &answer);
	check_answer(&answer);
	return 0;
}
