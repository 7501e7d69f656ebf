/* Reads elements and skips the rest. pdftohtml has the place and the width of each string, but
 * no places of characters: the standard fonts' own widths stand for them. */
#include "config.h"

#include "files/pdftext.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "files/pdfpage.h"
#include "files/pytext.h"

#define ZOOM 3.0
/* A view shows 16,000 characters, of four bytes at most. Pages after that stay in their own order,
 * so that a long text takes no longer than its length. */
#define SHOWN_MAX 64000
#define FONTS_MAX 4096

/* the widths of U+0020 to U+007E, in thousandths of the size */
static const uint16_t helvetica[] = {278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584,
    278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584,
    556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778,
    722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722,
    500, 500, 500, 334, 260, 334, 584};
static const uint16_t times[] = {250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250,
    333, 250, 278, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 278, 278, 564, 564, 564, 444,
    921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722, 611, 889, 722, 722, 556, 722, 667,
    556, 611, 722, 722, 944, 722, 722, 611, 333, 278, 333, 469, 500, 333, 444, 500, 444, 500, 444,
    333, 500, 500, 278, 278, 500, 278, 778, 500, 500, 500, 500, 333, 389, 278, 500, 500, 722, 500,
    500, 444, 480, 200, 480, 541};

struct font {
	double size;
	const uint16_t *widths; /* NULL: all characters are 600 wide */
	bool known;             /* the widths are exact for text that is neither bold nor italic */
};

struct reader {
	struct font *fonts; /* indexed by their id */
	size_t nfonts;
	struct hr_pdf_page page;
	size_t shown; /* bytes of the pages before, without white space */
};

static bool
starts(const char *p, const char *end, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(end - p) >= n && memcmp(p, with, n) == 0;
}

/* Finds an attribute in the tag from p to end. Returns NULL, or the text after its opening quote,
 * which strtod() can read, since a quote is before end. */
static const char *
attribute(const char *p, const char *end, const char *name)
{
	const char *at = memmem(p, (size_t)(end - p), name, strlen(name));

	if (at == NULL)
		return NULL;
	at += strlen(name);
	return memchr(at, '"', (size_t)(end - at)) != NULL ? at : NULL;
}

static double
number(const char *p, const char *end, const char *name)
{
	const char *at = attribute(p, end, name);
	double d = at != NULL ? strtod(at, NULL) : 0;

	return isfinite(d) ? d : 0;
}

/* Returns the half or the tenth of a point that pdftohtml enlarges and rounds to this whole number.
 */
static double
exact_size(double size)
{
	double half = round(size / ZOOM * 2) / 2, tenth = round(size / ZOOM * 10) / 10;

	if (fabs(half * ZOOM - size) <= 0.5)
		return half;
	return fabs(tenth * ZOOM - size) <= 0.5 ? tenth : size / ZOOM;
}

static void
read_font(struct reader *r, const char *p, const char *end)
{
	double id = number(p, end, " id=\"");
	const char *family = attribute(p, end, " family=\"");
	struct font f = {.size = exact_size(number(p, end, " size=\"")), .widths = helvetica};
	size_t n, len;

	if (family == NULL || !(id >= 0 && id < FONTS_MAX))
		return;
	len = (size_t)((const char *)memchr(family, '"', (size_t)(end - family)) - family);
	if (memmem(family, len, "Cour", 4) != NULL || memmem(family, len, "Mono", 4) != NULL)
		f.widths = NULL;
	else if (memmem(family, len, "Times", 5) != NULL)
		f.widths = times;
	f.known = starts(family, end, "Times") || starts(family, end, "Helvetica\"") ||
		  starts(family, end, "Courier");
	n = (size_t)id;
	if (n < r->nfonts)
		r->fonts[n] = f;
}

static double
width_of(const struct font *f, unsigned char c)
{
	if (f->widths == NULL)
		return 600;
	return c >= 0x20 && c < 0x7f ? f->widths[c - 0x20] : 556;
}

/* Appends the text of an element, without tags and references. Returns false if it contains
 * tags. */
static bool
put_plain(struct hr_buf *out, const char *p, const char *end)
{
	static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#34;", "&#160;"};
	static const char meant[] = "<>&\"\" ";
	const char *to;
	bool plain = true, tags = true; /* tags: a '>' may follow */
	size_t i;

	while (p < end) {
		if (*p == '<' && tags) {
			to = memchr(p, '>', (size_t)(end - p));
			tags = to != NULL;
			if (tags) {
				plain = false;
				p = to + 1;
				continue;
			}
		}
		for (i = 0; i < sizeof(names) / sizeof(names[0]) && !starts(p, end, names[i]); i++)
			;
		hr_buf_addc(out, i < sizeof(names) / sizeof(names[0]) ? meant[i] : *p);
		p += i < sizeof(names) / sizeof(names[0]) ? strlen(names[i]) : 1;
	}
	return plain;
}

/* Repeats each blank of a justified text: pdfminer adds one where the gap is wider than the blank.
 */
static void
double_blanks(struct reader *r, struct hr_pdf_run *run)
{
	struct hr_buf *text = &r->page.text;
	HR_BUF(old, run->len);
	size_t i;

	hr_buf_add(&old, text->p + run->text, run->len);
	text->len = run->text;
	for (i = 0; i < old.len; i++)
		hr_buf_adds(text, old.p[i] == ' ' ? "  " : (const char[]){old.p[i], '\0'});
	run->len = text->len - run->text;
	if (old.fail != HR_OK)
		text->fail = old.fail;
}

/* Fills in the widths of the first and last character, from the width of the text. */
static void
measure(struct reader *r, const struct font *f, bool plain, struct hr_pdf_run *run)
{
	const char *s = r->page.text.p + run->text;
	double sum = 0, width = run->at.x1 - run->at.x0;
	size_t i, blanks = 0, chars = 0;

	for (i = 0; i < run->len; i++) {
		if (((unsigned char)s[i] & 0xc0) == 0x80)
			continue; /* counted at the character's first byte */
		chars++;
		sum += width_of(f, (unsigned char)s[i]);
		blanks += s[i] == ' ';
	}
	run->blank = hr_pytext_rstrip(s, run->len) == 0;
	if (sum <= 0)
		return;
	run->first = width_of(f, (unsigned char)s[0]) * width / sum;
	run->last = width_of(f, (unsigned char)s[run->len - 1]) * width / sum;
	if (plain && f->known && chars == run->len && blanks > 0 &&
	    (width - sum * f->size / 1000) / (double)blanks > 0.1 * f->size)
		double_blanks(r, run);
}

/* Reads an element, whose tag ends at `tag` and whose text at `end`. */
static void
read_text(struct reader *r, const char *p, const char *tag, const char *end)
{
	struct hr_pdf_page *page = &r->page;
	double id = number(p, tag, " font=\""), low;
	struct font unknown = {.widths = helvetica};
	const struct font *f = &unknown;
	struct hr_pdf_run run = {.text = page->text.len};
	bool plain;

	if (hr_grow(&page->runs, page->n, &page->room, sizeof(run)) < 0) {
		page->text.fail = HR_E_NOMEM;
		return;
	}
	if (id >= 0 && id < (double)r->nfonts && r->fonts[(size_t)id].size > 0)
		f = &r->fonts[(size_t)id];
	else
		unknown.size = number(p, tag, " height=\"") / ZOOM;
	low = (number(p, tag, " top=\"") + number(p, tag, " height=\"")) / ZOOM;
	run.at.x0 = number(p, tag, " left=\"") / ZOOM;
	run.at.x1 = run.at.x0 + number(p, tag, " width=\"") / ZOOM;
	run.at.y0 = page->height - low;
	run.at.y1 = run.at.y0 + f->size;
	plain = put_plain(&page->text, tag + 1, end);
	run.len = page->text.len - run.text;
	if (page->text.fail != HR_OK || run.len == 0)
		return;
	measure(r, f, plain, &run);
	page->runs[page->n++] = run;
}

static size_t
not_blank(const struct hr_buf *b, size_t from)
{
	size_t n = 0;

	for (; from < b->len; from++)
		n += (unsigned char)b->p[from] > ' ';
	return n;
}

/* Ends the page and appends its text. */
static void
put_page(struct reader *r, struct hr_buf *out)
{
	struct hr_pdf_page *page = &r->page;
	size_t from = out->len;

	if (page->text.fail != HR_OK)
		out->fail = page->text.fail;
	else
		hr_pdf_page_put(page, out);
	r->shown += not_blank(out, from);
	page->ordered = r->shown >= SHOWN_MAX;
	page->n = 0;
	hr_buf_reset(&page->text);
}

static void
read_pages(struct reader *r, const char *p, const char *end, struct hr_buf *out)
{
	struct hr_pdf_page *page = &r->page;
	const char *tag, *close;

	while (out->fail == HR_OK && (p = memchr(p, '<', (size_t)(end - p))) != NULL &&
	       (tag = memchr(p, '>', (size_t)(end - p))) != NULL) {
		if (starts(p, tag, "<page ")) {
			page->width = number(p, tag, " width=\"") / ZOOM;
			page->height = number(p, tag, " height=\"") / ZOOM;
			page->n = 0;
			hr_buf_reset(&page->text);
		} else if (starts(p, tag, "<fontspec ")) {
			read_font(r, p, tag);
		} else if (starts(p, tag, "<text ")) {
			close = memmem(tag, (size_t)(end - tag), "</text>", 7);
			if (close == NULL)
				break;
			read_text(r, p, tag, close);
			tag = close;
		} else if (starts(p, tag, "</page")) {
			put_page(r, out);
		}
		p = tag + 1;
	}
	if (out->fail == HR_OK && page->n > 0)
		put_page(r, out); /* the XML is cut */
}

void
hr_pdftext(const char *xml, size_t len, struct hr_buf *out)
{
	HR_FREE struct font *fonts = calloc(FONTS_MAX, sizeof(*fonts));
	struct reader r = {.fonts = fonts, .nfonts = FONTS_MAX};

	if (fonts == NULL) {
		out->fail = HR_E_NOMEM;
		return;
	}
	hr_buf_init(&r.page.text, out->cap);
	read_pages(&r, xml, xml + len, out);
	hr_buf_done(&r.page.text);
	free(r.page.runs);
}
