/* Office documents as text. The first byte chooses the kind and whether the rest is an archive or,
 * cut at NULs, the parts of one. What must hold: what is shown is UTF-8 within its limit, and what
 * is refused has a reason. */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "office/office.h"
#include "base/text/utf8.h"
#include "../unit/office_pack.h"
#include "fuzz.h"

#define PARTS 5
#define KINDS 3

static const char *const kinds[KINDS] = {"docx", "pptx", "xlsx"};
static const char *const names[KINDS][PARTS] = {
    {"word/document.xml", "word/_rels/document.xml.rels", "word/styles.xml", "word/numbering.xml",
	"_rels/.rels"},
    {"ppt/presentation.xml", "ppt/_rels/presentation.xml.rels", "ppt/s.xml", "ppt/_rels/s.xml.rels",
	"ppt/n.xml"},
    {"xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/s.xml", "xl/strings.xml",
	"xl/styles.xml"},
};

static void
check(const char *kind, const void *bytes, size_t len)
{
	struct hr_err err = {.code = HR_OK};
	HR_BUF(text, HR_OFFICE_TEXT_MAX);
	int r;

	r = hr_office_text(kind, bytes, len, &text, &err);
	must(r == 0 ? text.fail == HR_OK && hr_utf8_valid(hr_buf_str(&text), text.len)
		    : r == -1 && err.msg[0] != '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct office_part part[PARTS];
	const char *p, *end, *next;
	unsigned kind;
	size_t n = 0, room = size + 4096, len;
	HR_FREE char *archive_bytes = NULL;

	if (size == 0)
		return 0;
	kind = data[0] % KINDS;
	p = (const char *)data + 1;
	if (data[0] / KINDS % 2 == 1) {
		check(kinds[kind], p, size - 1);
		return 0;
	}
	for (end = p + size - 1; n < PARTS && p < end; p = next < end ? next + 1 : end) {
		next = memchr(p, '\0', (size_t)(end - p));
		if (next == NULL)
			next = end;
		part[n] = (struct office_part){names[kind][n], p, (size_t)(next - p)};
		n++;
	}
	archive_bytes = malloc(room);
	must(archive_bytes != NULL);
	len = office_pack(part, n, archive_bytes, room);
	must(len > 0);
	check(kinds[kind], archive_bytes, len);
	return 0;
}
