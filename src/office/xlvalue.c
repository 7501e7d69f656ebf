/* Reads the values of cells, and prints them as Python and pandas print them. */
#include "config.h"

#include "office/xlvalue.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/span.h"
#include "base/text/floatrepr.h"
#include "base/text/utf8.h"
#include "office/office.h"

#define EPOCH 25569 /* day number that a sheet gives to 1 January 1970 */
#define EPOCH_1904 24107
#define LAST_DAY 2958465.0 /* day number of 31 December 9999 */

/* ---- the book ---- */

/* Returns true if a format shows a day or time; text quoted, escaped or in brackets is ignored. */
static bool
format_is_date(const char *f)
{
	for (; f != NULL && *f != '\0'; f++) {
		if (*f == '"' || *f == '[') {
			f = strchr(f + 1, *f == '"' ? '"' : ']');
			if (f == NULL)
				return false;
		} else if ((*f == '\\' || *f == '_' || *f == '*') && f[1] != '\0') {
			f++;
		} else if (*f == ';') {
			return false;
		} else if (strchr("dDmMhHyYsS", *f) != NULL) {
			return true;
		}
	}
	return false;
}

/* Returns true if a format counts hours, minutes or seconds beyond a day, as [h]:mm. */
static bool
format_is_span(const char *f)
{
	const char *end = strchrnul(f, ';'), *p = f;

	while ((p = memchr(p, '[', (size_t)(end - p))) != NULL) {
		p++;
		if (strchr("hHmMsS", *p) == NULL || p == end)
			continue;
		if (p[1] == ']' || ((p[0] | 0x20) == (p[1] | 0x20) && p[2] == ']'))
			return true;
	}
	return false;
}

/* Returns how a style shows numbers: NUMBER, DATE or SPAN. */
static enum kind
style_kind(const struct node *formats, const char *id)
{
	unsigned long number = id != NULL ? strtoul(id, NULL, 10) : 0;
	const struct node *n = formats != NULL ? formats->first : NULL;
	const char *own;

	for (; n != NULL && number >= 164; n = n->next) {
		own = node_attr(n, "numFmtId");
		if (own == NULL || strcmp(own, id) != 0)
			continue;
		own = node_attr(n, "formatCode");
		if (own != NULL && format_is_span(own))
			return SPAN;
		return format_is_date(own) ? DATE : NUMBER;
	}
	if (number == 46)
		return SPAN;
	return (number >= 14 && number <= 22) || number == 45 || number == 47 ? DATE : NUMBER;
}

static size_t
count_of(const struct node *top, const char *name)
{
	const struct node *n = top != NULL ? top->first : NULL;
	size_t count = 0;

	for (; n != NULL; n = n->next)
		count += node_is(n, name);
	return count;
}

int
book_open(struct book *b, const struct parts *ps, const struct rels *rels,
    const struct node *workbook, struct hr_err *err)
{
	const char *old = node_attr(node_child(workbook, "workbookPr"), "date1904");
	const struct node *root, *xfs, *n;

	b->epoch =
	    old != NULL && (strcmp(old, "1") == 0 || strcmp(old, "true") == 0) ? EPOCH_1904 : EPOCH;
	if (tree_maybe(ps, rels_of_type(rels, "sharedStrings"), &b->strings, err) < 0 ||
	    tree_maybe(ps, rels_of_type(rels, "styles"), &b->styles, err) < 0)
		return -1;
	root = b->strings != NULL ? tree_root(b->strings) : NULL;
	b->string = calloc(count_of(root, "si") + 1, sizeof(*b->string));
	xfs = node_child(b->styles != NULL ? tree_root(b->styles) : NULL, "cellXfs");
	b->kind = calloc(count_of(xfs, "xf") + 1, sizeof(*b->kind));
	if (b->string == NULL || b->kind == NULL)
		return hr_err_nomem(err);
	for (n = root != NULL ? root->first : NULL; n != NULL; n = n->next)
		if (node_is(n, "si"))
			b->string[b->nstrings++] = n;
	for (n = xfs != NULL ? xfs->first : NULL; n != NULL; n = n->next)
		if (node_is(n, "xf"))
			b->kind[b->nstyles++] = style_kind(
			    node_child(tree_root(b->styles), "numFmts"), node_attr(n, "numFmtId"));
	return 0;
}

void
book_close(struct book *b)
{
	free(b->string);
	free(b->kind);
	tree_done(&b->strings);
	tree_done(&b->styles);
}

/* ---- a cell ---- */

static bool
to_number(const char *s, double *ret)
{
	char *end;

	*ret = s != NULL ? strtod(s, &end) : 0;
	return s != NULL && end != s && *end == '\0' && isfinite(*ret);
}

static const char *
first_text(const struct node *n)
{
	return n != NULL && n->first != NULL ? n->first->text : NULL;
}

/* Copies a text of fewer than `room` bytes. Returns false if it is longer. */
static bool
short_text(const struct node *top, char *to, size_t room)
{
	const struct node *n;
	size_t len = 0, more;

	for (n = top->first; n != NULL; n = node_next(n, top, !node_is(n, "rPh"))) {
		more = n->text != NULL ? strlen(n->text) : 0;
		if (more >= room - len)
			return false;
		if (more > 0)
			memcpy(to + len, n->text, more);
		len += more;
	}
	to[len] = '\0';
	return len > 0;
}

/* Finds what a text counts as, as pandas does. */
static enum kind
text_kind(struct value *v)
{
	static const char *const gaps[] = {"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN",
	    "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan",
	    "null", NULL},
				 *const truths[] = {"True", "TRUE", "true", NULL},
				 *const lies[] = {"False", "FALSE", "false", NULL};
	char s[64], *p = s;
	const char *digits;

	if (!short_text(v->text, s, sizeof(s)))
		return TEXT;
	if (hr_is_one_of(s, gaps))
		return GAP;
	v->number = hr_is_one_of(s, truths);
	if (v->number > 0 || hr_is_one_of(s, lies))
		return TEXT_TRUTH;
	p += strspn(p, " ");
	while (*p != '\0' && p[strlen(p) - 1] == ' ')
		p[strlen(p) - 1] = '\0';
	digits = p + (*p == '-' || *p == '+');
	if (strcasecmp(digits, "inf") == 0 || strcasecmp(digits, "infinity") == 0) {
		v->number = *p == '-' ? -INFINITY : INFINITY;
		v->fraction = true;
		return TEXT_NUMBER;
	}
	v->fraction = strpbrk(p, ".eE") != NULL;
	return p[strspn(p, "+-0123456789.eE")] == '\0' && to_number(p, &v->number) ? TEXT_NUMBER
										   : TEXT;
}

/* Returns true for the numbers that the original reads as integers of 64 bits. */
static bool
is_whole(double x)
{
	return floor(x) == x && fabs(x) < 0x1p63;
}

/* Sets the kind of a number, which depends on the style of its cell. */
static void
number_kind(struct value *r, const struct book *b, const char *style)
{
	const unsigned long i = style != NULL ? strtoul(style, NULL, 10) : 0;

	r->kind = i < b->nstyles && fabs(r->number) < LAST_DAY ? b->kind[i] : NUMBER;
	if (r->kind == DATE && r->number < 0)
		r->kind = NUMBER;
	else if (r->kind == DATE && r->number < 1)
		r->kind = CLOCK;
}

struct value
cell_value(const struct book *b, const struct node *c)
{
	const char *type = node_attr(c, "t");
	const struct node *v = node_child(c, "v");
	const char *s = first_text(v);
	struct value r = {.kind = NOTHING};
	unsigned long i;

	if (type != NULL && strcmp(type, "inlineStr") == 0) {
		r.text = node_child(c, "is");
	} else if (type != NULL && strcmp(type, "e") == 0) {
		r.kind = GAP;
		return r;
	} else if (type != NULL && (strcmp(type, "str") == 0 || strcmp(type, "d") == 0)) {
		r.text = v;
	} else if (type != NULL && strcmp(type, "s") == 0) {
		i = s != NULL ? strtoul(s, NULL, 10) : b->nstrings;
		r.text = i < b->nstrings ? b->string[i] : NULL;
	} else if (to_number(s, &r.number)) {
		r.fraction = !is_whole(r.number);
		if (type != NULL && strcmp(type, "b") == 0)
			r.kind = BOOLEAN;
		else
			number_kind(&r, b, node_attr(c, "s"));
		return r;
	} else {
		r.text = v;
	}
	if (r.text != NULL && (node_below(r.text, "t") != NULL || first_text(r.text) != NULL))
		r.kind = text_kind(&r);
	return r;
}

/* Appends text with its tabs and line ends as escapes. */
static void
add_escaped(struct hr_buf *b, const char *p)
{
	for (; *p != '\0'; p++)
		if (*p == '\n' || *p == '\t' || *p == '\r')
			hr_buf_adds(b, *p == '\n' ? "\\n" : *p == '\t' ? "\\t" : "\\r");
		else
			hr_buf_addc(b, *p);
}

/* Prints one line without blanks at its ends. Phonetic guides (rPh) are left out. The header joins
 * lines with blanks; cells below it show line ends as escapes, as the original's tables. */
static void
add_text(const struct node *top, bool header, struct hr_buf *out)
{
	const struct node *n;
	HR_BUF(b, HR_OFFICE_TEXT_MAX);
	const char *p;
	size_t len;

	for (n = top->first; n != NULL; n = node_next(n, top, !node_is(n, "rPh")))
		if (n->text != NULL && header)
			hr_buf_adds(&b, n->text);
		else if (n->text != NULL)
			add_escaped(&b, n->text);
	p = hr_buf_str(&b);
	len = b.len;
	hr_utf8_strip(&p, &len);
	office_add_flat(out, p, len, true);
	if (b.fail != HR_OK && out->fail == HR_OK)
		out->fail = b.fail;
}

int
decimals_of(double x)
{
	char text[400];
	int n = snprintf(text, sizeof(text), "%.*f", DECIMALS, x), d = DECIMALS;

	while (d > 1 && text[n - 1 - (DECIMALS - d)] == '0')
		d--;
	return d;
}

/* Dates before March 1900 are a day off in sheets. */
double
date_millis(const struct book *b, double number)
{
	double day = floor(number);

	if (number < 60 && b->epoch == EPOCH)
		day++;
	return (day - b->epoch) * DAY_MS + rint((number - floor(number)) * DAY_MS);
}

/* Appends the time of a day, its fraction with that many digits. */
static void
add_clock(double ms, const char *format, int digits, struct hr_buf *out)
{
	unsigned long t = (unsigned long)ms;

	hr_buf_addf(out, format, t / 3600000, t / 60000 % 60, t / 1000 % 60);
	if (digits > 0)
		hr_buf_addf(out, ".%0*lu", digits, digits == 6 ? t % 1000 * 1000 : t % 1000);
}

void
add_date(double ms, bool clock, int digits, struct hr_buf *out)
{
	double day = floor(ms / DAY_MS);
	time_t t = (time_t)(day * (DAY_MS / 1000));
	struct tm tm;
	char text[48];

	if (gmtime_r(&t, &tm) == NULL || strftime(text, sizeof(text), "%Y-%m-%d", &tm) == 0)
		return;
	hr_buf_adds(out, text);
	if (clock)
		add_clock(ms - day * DAY_MS, " %02lu:%02lu:%02lu", digits, out);
}

void
add_span(double number, bool alone, bool clock, struct hr_buf *out)
{
	double ms = rint(number * DAY_MS), day = floor(ms / DAY_MS), rest = ms - day * DAY_MS;
	int digits = fmod(ms, 1000) != 0 ? 6 : 0;

	if (!alone)
		hr_buf_addf(out, "%.0f days%s", day, clock && day < 0 ? " +" : clock ? " " : "");
	else if (day != 0)
		hr_buf_addf(out, "%.0f day%s, ", day, fabs(day) == 1 ? "" : "s");
	if (alone || clock)
		add_clock(rest, alone ? "%lu:%02lu:%02lu" : "%02lu:%02lu:%02lu", digits, out);
}

void
add_value(const struct book *b, struct value v, bool header, struct hr_buf *out)
{
	double ms;

	if (v.text != NULL && (header || v.kind != GAP)) {
		add_text(v.text, header, out);
	} else if (v.kind == BOOLEAN) {
		hr_buf_adds(out, v.number != 0 ? "True" : "False");
	} else if (v.kind == DATE) {
		ms = date_millis(b, v.number);
		add_date(ms, true, fmod(ms, 1000) != 0 ? 6 : 0, out);
	} else if (v.kind == CLOCK) {
		ms = rint(v.number * DAY_MS);
		add_clock(ms, "%02lu:%02lu:%02lu", fmod(ms, 1000) != 0 ? 6 : 0, out);
	} else if (v.kind == SPAN) {
		add_span(v.number, true, true, out);
	} else if (v.kind == NUMBER && is_whole(v.number)) {
		hr_buf_addf(out, "%.0f", v.number);
	} else if (v.kind == NUMBER && header) {
		hr_float_repr(out, v.number);
	} else if (v.kind == NUMBER) {
		hr_buf_addf(out, "%.*f", decimals_of(v.number), v.number);
	} else {
		hr_buf_adds(out, "NaN");
	}
}
