/* A service that answers anything to hr_rest: no crash, an error has a code and no secret in it, a
 * line is a line, and what is said to be JSON is JSON. The first byte chooses how it is asked, the
 * rest are the answers (fake_http.h). */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "fake_http.h"
#include "host/client/rest.h"
#include "fuzz.h"

#define SECRET "s3cret-of-ours"

static int
on_line(void *arg, const char *line, size_t len)
{
	unsigned *left = arg;

	must(memchr(line, '\n', len) == NULL);
	return --*left == 0;
}

static int
on_piece(void *arg, const char *p, size_t len)
{
	unsigned *left = arg;

	must(p != NULL && len > 0);
	return --*left == 0 ? -1 : 0;
}

/* These rules repeat every failure at once. */
static const struct hr_rest_rule rules[] = {
    {.failures = HR_REST_UNSENT | HR_REST_UNSURE | HR_REST_UNDONE, .attempts = 4},
    {0},
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_rest_options o = {.url = "http://127.0.0.1:1/",
	    .rules = rules,
	    .patience_ms = 1,
	    .should = "X-Should",
	    .watch_fd = -1};
	struct hr_rest_call c = {.path = "/x", .header = "X-Next"};
	struct hr_rest_answer a;
	struct hr_err err = {0};
	struct hr_rest *r;
	unsigned left = 100, how;
	int got;

	if (size < 1)
		return 0;
	how = data[0];
	fake_http_answers((const char *)data + 1, size - 1, false);
	o.answer_max = (how & 32) != 0 ? 64 : 0;
	r = hr_rest_new(&o, &err);
	must(r != NULL && hr_rest_header(r, "Authorization", SECRET, true, &err) == 0);
	c.method = (how & 1) != 0 ? "POST" : "GET";
	c.idempotent = (how & 2) != 0;
	c.raw = (how & 4) != 0;
	c.arg = &left;
	if ((how & 24) == 8)
		c.line = on_line;
	if ((how & 24) == 16)
		c.sink = on_piece;
	got = hr_rest_call(r, &c, &a, &err);
	must(got == 0 || (got == -1 && err.code != HR_OK && err.msg[0] != '\0'));
	must(strstr(err.msg, SECRET) == NULL);
	must(got != 0 || (a.status >= 200 && a.status < 300));
	must(!c.raw || got != 0 || a.json == NULL);
	hr_rest_answer_done(&a);
	hr_rest_free(r);
	return 0;
}
