/* A stream of frames of the Connect protocol, whole and cut: what is read does not depend on the
 * cuts. The first byte says where they are. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "e2b/connect.h"
#include "fuzz.h"

struct seen {
	struct hr_buf b;
	unsigned n;
};

static int
on_frame(void *arg, unsigned flags, const char *p, size_t len)
{
	struct seen *s = arg;

	hr_buf_addf(&s->b, "%u:%zu:", flags, len);
	hr_buf_add(&s->b, p, len);
	return ++s->n == 40;
}

/* What came, how it ended, and whether it was whole. */
static void
read_all(struct seen *s, const char *p, size_t len, size_t cut)
{
	struct hr_connect c;
	struct hr_err err = {0};
	size_t n;
	int r = 0;

	s->n = 0;
	hr_buf_init(&s->b, 1 << 20);
	hr_connect_init(&c, on_frame, s);
	for (; r == 0 && len > 0; p += n, len -= n) {
		n = cut < len ? cut : len;
		r = hr_connect_feed(&c, p, n, &err);
	}
	hr_buf_addf(&s->b, "|%d|%s|%d", r, err.msg, r == 0 && c.ended && c.part.len == 0);
	hr_connect_done(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole, cut;
	size_t step;

	if (size < 1)
		return 0;
	read_all(&whole, (const char *)data + 1, size - 1, size);
	for (step = 1; step < 8; step++) {
		read_all(&cut, (const char *)data + 1, size - 1, step + data[0] % 5);
		must(whole.b.len == cut.b.len);
		must(memcmp(whole.b.p, cut.b.p, whole.b.len) == 0);
		hr_buf_done(&cut.b);
	}
	hr_buf_done(&whole.b);
	return 0;
}
