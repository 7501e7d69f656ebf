/* files/multipart and files/params: a body cut anywhere makes the same calls as the whole of it.
 * The first byte is the length of the boundary (up to 15), the next of the pieces. */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/multipart.h"
#include "files/params.h"
#include "fuzz.h"

struct notes {
	struct hr_buf text; /* all calls */
	unsigned parts;
};

static int
on_begin(void *arg, const char *disposition, size_t len)
{
	struct notes *n = arg;
	HR_BUF(value, HR_MULTIPART_HEADERS_MAX);

	hr_buf_addc(&n->text, 'B');
	if (disposition == NULL)
		return 0;
	hr_buf_add(&n->text, disposition, len);
	if (hr_params_get(disposition, len, "filename", &value))
		must(value.len <= len);
	return 0;
}

static int
on_data(void *arg, const char *p, size_t len)
{
	struct notes *n = arg;

	must(len > 0);
	hr_buf_add(&n->text, p, len);
	return 0;
}

static int
on_end(void *arg)
{
	struct notes *n = arg;

	hr_buf_addc(&n->text, 'E');
	n->parts++;
	return 0;
}

static int
parse(struct notes *n, const char *boundary, size_t boundary_len, const char *p, size_t len,
    size_t step)
{
	static const struct hr_multipart_ops ops = {on_begin, on_data, on_end};
	struct hr_multipart m;
	int r;

	hr_buf_init(&n->text, 1u << 24);
	n->parts = 0;
	r = hr_multipart_init(&m, boundary, boundary_len, &ops, n);
	for (; r == 0 && len > 0; p += step, len -= step) {
		step = step < len ? step : len;
		r = hr_multipart_feed(&m, p, step, NULL);
	}
	hr_multipart_done(&m);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct notes whole, cut;
	size_t boundary_len, step;
	const char *boundary;
	int r;

	if (size < 2)
		return 0;
	boundary_len = data[0] % 16;
	step = data[1] % 64 + 1;
	data += 2;
	size -= 2;
	if (boundary_len > size)
		return 0;
	boundary = (const char *)data;
	data += boundary_len;
	size -= boundary_len;
	/* no header can carry these */
	if (memchr(boundary, '\r', boundary_len) != NULL)
		return 0;
	r = parse(&whole, boundary, boundary_len, (const char *)data, size, SIZE_MAX);
	must(parse(&cut, boundary, boundary_len, (const char *)data, size, step) == r);
	must(cut.parts == whole.parts && cut.text.len == whole.text.len);
	must(whole.text.len == 0 || memcmp(cut.text.p, whole.text.p, cut.text.len) == 0);
	must(whole.text.len <= size + 2 * (size_t)whole.parts + 1);
	hr_buf_done(&whole.text);
	hr_buf_done(&cut.text);
	return 0;
}
