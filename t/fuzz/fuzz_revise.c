/* files/revise and files/picture: what is text is written back byte for byte, and a change touches
 * nothing before or after its place. The first byte says where `old` is cut from the text, the
 * second how long it is; a third is the line of an insertion. */
#include "config.h"

#include <string.h>

#include "files/picture.h"
#include "files/revise/revise.h"
#include "fuzz.h"

#define TEXT_MAX (1u << 22)

static void
check_same(const struct hr_plaintext *t, const void *p, size_t len)
{
	HR_BUF(bytes, TEXT_MAX);
	HR_BUF(why, TEXT_MAX);

	must(hr_plaintext_encode(t, hr_span_of_buf(&t->text), &bytes, &why) == 0);
	must(bytes.len == len && (len == 0 || memcmp(bytes.p, p, len) == 0));
}

static void
check_replace(const struct hr_plaintext *t, size_t from, size_t len)
{
	struct hr_revised done;
	HR_BUF(after, TEXT_MAX);
	HR_BUF(why, TEXT_MAX);

	from %= t->text.len;
	if (len > t->text.len - from)
		len = t->text.len - from;
	if (hr_revise_replace(t, (struct hr_span){t->text.p + from, len}, hr_span_of("\n<new>\n"),
		&after, &done, &why) < 0) {
		must(why.len > 0);
		return;
	}
	must(after.len >= t->text.len - len);
	must(len == 0 || memcmp(after.p, t->text.p, from) == 0);
	must(memmem(after.p, after.len, "<new>", 5) != NULL && done.line > 0 && done.lines > 0);
}

static void
check_insert(const struct hr_plaintext *t, size_t line)
{
	struct hr_revised done;
	HR_BUF(after, TEXT_MAX);
	HR_BUF(why, TEXT_MAX);
	size_t at;

	line %= hr_plaintext_lines(t) + 1;
	at = hr_plaintext_line_at(t, line + 1);
	must(hr_revise_insert(t, (int64_t)line, hr_span_of("<new>"), &after, &done, &why) == 0);
	must(after.len > t->text.len && done.line == line + 1 && done.lines == 1);
	must(at == 0 || memcmp(after.p, t->text.p, at) == 0);
	must(at == t->text.len || memcmp(after.p + after.len - (t->text.len - at), t->text.p + at,
				      t->text.len - at) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HR_CLEAN(hr_plaintext_done) struct hr_plaintext t;
	struct hr_picture picture;
	const char *p;

	hr_plaintext_init(&t);
	if (size < 3)
		return 0;
	p = (const char *)data + 3;
	size -= 3;
	if (hr_picture_look(p, size, &picture))
		must(picture.mime != NULL && (!picture.whole || picture.width > 0));
	if (!hr_plaintext_decode(&t, p, size))
		return 0;
	check_same(&t, p, size);
	check_insert(&t, data[2]);
	if (t.text.len > 0)
		check_replace(&t, data[0], data[1] % 32);
	return 0;
}
