/* Terminal output, as text and as it is shown to people. The first byte chooses the terminal and
 * how the rest is cut; what must hold: memory within its limit, text in UTF-8 within its bounds,
 * the same however the input is cut, no change of the text that the generation does not show, and
 * no sequence but colours and moves for a terminal of ours. */
#include "config.h"

#include "term/term.h"

#include "base/text/tame.h"
#include "fuzz.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void
fuzz_check(bool ok)
{
	if (!ok)
		abort();
}

static void
fuzz_utf8(const char *p, size_t len)
{
	const uint8_t *b = (const uint8_t *)p;
	size_t i, n;

	for (i = 0; i < len; i += n) {
		size_t k;

		n = b[i] < 0x80 ? 1 : b[i] < 0xc2 ? 0 : b[i] < 0xe0 ? 2 : b[i] < 0xf0 ? 3 : 4;
		fuzz_check(n > 0 && b[i] < 0xf5 && n <= len - i);
		for (k = 1; k < n; k++)
			fuzz_check((b[i + k] & 0xc0) == 0x80);
		fuzz_check(n > 1 || b[i] == '\n' || (b[i] >= 0x20 && b[i] < 0x7f));
	}
}

static size_t
fuzz_trimmed(const struct hr_buf *b)
{
	size_t n = b->len;

	while (n > 0 && (b->p[n - 1] == '\n' || b->p[n - 1] == ' '))
		n--;
	return n;
}

/* Feeds piece by piece; after each one looks at everything there is to see. */
static void
fuzz_watch(struct hr_term *t, const uint8_t *p, size_t size, size_t cut, size_t limit)
{
	HR_BUF(text, (size_t)1 << 28);
	HR_BUF(before, (size_t)1 << 28);
	uint64_t m = hr_term_cursor_row(t);
	char replies[64];
	size_t i, n;
	uint64_t g;
	unsigned col, row;

	for (i = 0; i < size; i += n) {
		n = size - i < cut ? size - i : cut;
		g = hr_term_generation(t);
		hr_buf_reset(&before);
		hr_term_text(t, &before);
		hr_term_feed(t, p + i, n);
		hr_buf_reset(&text);
		hr_term_text(t, &text);
		fuzz_utf8(hr_buf_str(&text), text.len);
		if (fuzz_trimmed(&text) != fuzz_trimmed(&before) ||
		    (text.len > 0 &&
			memcmp(hr_buf_str(&text), hr_buf_str(&before), fuzz_trimmed(&text)) != 0))
			fuzz_check(hr_term_generation(t) != g);
		fuzz_check(hr_term_memory(t) <= limit + 4096);
		hr_buf_reset(&text);
		hr_term_text_from(t, m, &text);
		fuzz_utf8(hr_buf_str(&text), text.len);
		hr_buf_reset(&text);
		hr_term_text_screen(t, &text);
		hr_term_cursor(t, &col, &row);
		m = hr_term_cursor_row(t);
		fuzz_check(m >= hr_term_first_row(t) + row);
		(void)hr_term_replies(t, replies, sizeof(replies));
	}
}

static void
fuzz_tame(const uint8_t *p, size_t size, size_t cut)
{
	struct hr_tame whole = {.terminal = true, .colours = true}, parts = whole;
	HR_BUF(a, (size_t)1 << 28);
	HR_BUF(b, (size_t)1 << 28);
	size_t n, i;

	hr_tame_feed(&whole, &a, (const char *)p, size);
	for (i = 0; i < size; i += n) {
		n = size - i < cut ? size - i : cut;
		hr_tame_feed(&parts, &b, (const char *)p + i, n);
	}
	hr_tame_end(&whole, &a);
	hr_tame_end(&parts, &b);
	fuzz_check(a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0));
	for (i = 0; i < a.len; i++) {
		if (a.p[i] == '\033') {
			fuzz_check(a.p[++i] == '[');
			i += 1 + strspn(a.p + i + 1, "0123456789;:");
			fuzz_check(i < a.len && strchr("mABCDEFGJK", a.p[i]) != NULL);
		} else {
			fuzz_check((uint8_t)a.p[i] >= ' ' || strchr("\r\n\t\b", a.p[i]) != NULL);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hr_term_config configs[] = {{20, 6, 12, 0, true}, {3, 2, 1, 0, false},
	    {0, 0, 0, 0, true}, {100, 30, 200, 65536, true}};
	struct hr_term_config config;
	struct hr_term *watched, *whole;
	HR_BUF(a, (size_t)1 << 28);
	HR_BUF(b, (size_t)1 << 28);
	size_t limit, cut;

	if (size < 2)
		return 0;
	config = configs[data[0] & 3];
	limit = config.max_bytes > 0 ? config.max_bytes : (size_t)64 << 20;
	watched = hr_term_new(&config);
	whole = hr_term_new(&config);
	fuzz_check(watched != NULL && whole != NULL);
	cut = 1u + (data[0] >> 2);
	if (config.rows == 0 && cut < size / 8) /* a look at a million cells takes its time */
		cut = size / 8;
	fuzz_watch(watched, data + 1, size - 1, cut, limit);
	hr_term_feed(whole, data + 1, size - 1);
	fuzz_tame(data + 1, size - 1, cut);
	hr_term_text(watched, &a);
	hr_term_text(whole, &b);
	fuzz_check(hr_term_rows_dropped(watched) == hr_term_rows_dropped(whole));
	fuzz_check(a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0));
	hr_term_reset(watched);
	fuzz_check(hr_term_memory(watched) < 4096);
	hr_term_free(watched);
	hr_term_free(whole);
	return 0;
}
