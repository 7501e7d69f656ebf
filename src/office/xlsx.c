/* Converts sheets to pipe tables, with the column types of pandas: a column of numbers with a gap
 * or a fraction has floats, all printed with as many decimals as the longest needs. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "office/office.h"
#include "office/office_int.h"

#define COLUMNS_MAX 16384
#define ROWS_MAX 1048576
#define DECIMALS 6
#define DAY 86400
#define EPOCH 25569 /* day number that a sheet gives to 1 January 1970 */
#define EPOCH_1904 24107
#define LAST_DAY 2958465.0 /* day number of 31 December 9999 */

enum kind {
	NOTHING,
	TEXT,
	NUMBER,
	BOOLEAN,
	DATE,
};

struct value {
	enum kind kind;
	double number;
	const struct node *text; /* element with `t` children, or a `v` */
};

struct column {
	size_t filled, of[DATE + 1];
	bool fraction, huge, tiny, clock;
	int decimals;
	size_t name, name_len; /* place of the header's text in the output */
};

struct book {
	struct tree *strings, *styles;
	const struct node **string; /* the strings, indexed by number */
	size_t nstrings;
	bool *is_date; /* true for each style that shows dates */
	size_t nstyles;
	double epoch;
};

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

static bool
style_is_date(const struct node *formats, const char *id)
{
	unsigned long number = id != NULL ? strtoul(id, NULL, 10) : 0;
	const struct node *n = formats != NULL ? formats->first : NULL;
	const char *own;

	for (; n != NULL && number >= 164; n = n->next) {
		own = node_attr(n, "numFmtId");
		if (own != NULL && strcmp(own, id) == 0)
			return format_is_date(node_attr(n, "formatCode"));
	}
	return (number >= 14 && number <= 22) || (number >= 45 && number <= 47);
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

static int
side_part(const struct parts *ps, const struct rels *rels, const char *type, struct tree **ret,
    struct hr_err *err)
{
	const char *name = rels_of_type(rels, type);
	const struct hr_buf *part = name != NULL ? parts_find(ps, name) : NULL;

	*ret = NULL;
	return part == NULL || (*ret = tree_read(part, err)) != NULL ? 0 : -1;
}

static int
book_open(struct book *b, const struct parts *ps, const struct rels *rels, struct hr_err *err)
{
	const struct node *root, *xfs, *n;

	if (side_part(ps, rels, "sharedStrings", &b->strings, err) < 0 ||
	    side_part(ps, rels, "styles", &b->styles, err) < 0)
		return -1;
	root = b->strings != NULL ? tree_root(b->strings) : NULL;
	b->string = calloc(count_of(root, "si") + 1, sizeof(*b->string));
	xfs = node_child(b->styles != NULL ? tree_root(b->styles) : NULL, "cellXfs");
	b->is_date = calloc(count_of(xfs, "xf") + 1, sizeof(*b->is_date));
	if (b->string == NULL || b->is_date == NULL)
		return hr_err_nomem(err);
	for (n = root != NULL ? root->first : NULL; n != NULL; n = n->next)
		if (node_is(n, "si"))
			b->string[b->nstrings++] = n;
	for (n = xfs != NULL ? xfs->first : NULL; n != NULL; n = n->next)
		if (node_is(n, "xf"))
			b->is_date[b->nstyles++] = style_is_date(
			    node_child(tree_root(b->styles), "numFmts"), node_attr(n, "numFmtId"));
	return 0;
}

static void
book_close(struct book *b)
{
	free(b->string);
	free(b->is_date);
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

static struct value
cell_value(const struct book *b, const struct node *c)
{
	const char *type = node_attr(c, "t"), *style = node_attr(c, "s");
	const struct node *v = node_child(c, "v");
	const char *s = first_text(v);
	struct value r = {NOTHING, 0, NULL};
	unsigned long i;

	if (type != NULL && strcmp(type, "inlineStr") == 0) {
		r.text = node_child(c, "is");
	} else if (type != NULL && strcmp(type, "e") == 0) {
		return r; /* an error counts as an empty cell */
	} else if (type != NULL && (strcmp(type, "str") == 0 || strcmp(type, "d") == 0)) {
		r.text = v;
	} else if (type != NULL && strcmp(type, "s") == 0) {
		i = s != NULL ? strtoul(s, NULL, 10) : b->nstrings;
		r.text = i < b->nstrings ? b->string[i] : NULL;
	} else if (to_number(s, &r.number)) {
		i = style != NULL ? strtoul(style, NULL, 10) : 0;
		r.kind = type != NULL && strcmp(type, "b") == 0 ? BOOLEAN : NUMBER;
		if (r.kind == NUMBER && i < b->nstyles && b->is_date[i] && r.number >= 0 &&
		    r.number < LAST_DAY)
			r.kind = DATE;
		return r;
	} else {
		r.text = v;
	}
	if (r.text != NULL && (node_below(r.text, "t") != NULL || first_text(r.text) != NULL))
		r.kind = TEXT;
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
	size_t from = 0;

	for (n = top->first; n != NULL; n = node_next(n, top, !node_is(n, "rPh")))
		if (n->text != NULL && header)
			hr_buf_adds(&b, n->text);
		else if (n->text != NULL)
			add_escaped(&b, n->text);
	office_trim(&b);
	from = strspn(hr_buf_str(&b), " \t\r\n");
	if (from < b.len)
		office_add_flat(out, b.p + from, b.len - from, true);
	if (b.fail != HR_OK && out->fail == HR_OK)
		out->fail = b.fail;
}

/* Returns true for the numbers that the original reads as integers of 64 bits. */
static bool
is_whole(double x)
{
	return floor(x) == x && fabs(x) < 0x1p63;
}

/* Returns how many of DECIMALS decimals x needs, at least one. */
static int
decimals_of(double x)
{
	char text[400];
	int n = snprintf(text, sizeof(text), "%.*f", DECIMALS, x), d = DECIMALS;

	while (d > 1 && text[n - 1 - (DECIMALS - d)] == '0')
		d--;
	return d;
}

static bool
is_long(double x, int decimals)
{
	return snprintf(NULL, 0, "%.*f", decimals, x) > DECIMALS + 6;
}

static void
add_date(const struct book *b, double number, bool clock, struct hr_buf *out)
{
	double seconds = round((number - b->epoch) * DAY);
	time_t t = (time_t)seconds;
	struct tm tm;
	char text[48];

	if (number < 1)
		clock = true;
	if (gmtime_r(&t, &tm) == NULL)
		return;
	if (strftime(text, sizeof(text),
		number < 1 ? "%H:%M:%S"
		: clock    ? "%Y-%m-%d %H:%M:%S"
			   : "%Y-%m-%d",
		&tm) > 0)
		hr_buf_adds(out, text);
}

/* Prints a value alone, as in a column of mixed types. */
static void
add_value(const struct book *b, struct value v, bool header, struct hr_buf *out)
{
	if (v.kind == TEXT)
		add_text(v.text, header, out);
	else if (v.kind == BOOLEAN)
		hr_buf_adds(out, v.number != 0 ? "True" : "False");
	else if (v.kind == DATE)
		add_date(b, v.number, true, out);
	else if (v.kind == NUMBER && is_whole(v.number))
		hr_buf_addf(out, "%.0f", v.number);
	else if (v.kind == NUMBER)
		hr_buf_addf(out, "%.*f", decimals_of(v.number), v.number);
	else
		hr_buf_adds(out, "NaN");
}

static void
add_in_column(
    const struct book *b, const struct column *c, size_t rows, struct value v, struct hr_buf *out)
{
	bool numbers = c->of[NUMBER] == c->filled;

	if (v.kind == NOTHING)
		hr_buf_adds(out, c->filled > 0 && c->of[DATE] == c->filled ? "NaT" : "NaN");
	else if (v.kind == DATE && c->of[DATE] == c->filled)
		add_date(b, v.number, c->clock, out);
	else if (v.kind != NUMBER || !numbers || (c->filled == rows && !c->fraction))
		add_value(b, v, false, out);
	else if (c->tiny || c->huge)
		hr_buf_addf(out, "%.*e", DECIMALS, v.number);
	else
		hr_buf_addf(out, "%.*f", c->decimals, v.number);
}

/* ---- a sheet ---- */

/* Returns the column of a reference ("BC7": 54); without a reference, the next column. */
static size_t
cell_column(const struct node *c, size_t next)
{
	const char *ref = node_attr(c, "r");
	size_t column = 0;

	for (; ref != NULL && *ref >= 'A' && *ref <= 'Z' && column <= COLUMNS_MAX; ref++)
		column = column * 26 + (size_t)(*ref - 'A') + 1;
	return column > 0 ? column - 1 : next;
}

static size_t
row_number(const struct node *row, size_t next)
{
	const char *r = node_attr(row, "r");
	unsigned long n = r != NULL ? strtoul(r, NULL, 10) : 0;

	return n > next && n <= ROWS_MAX ? n - 1 : next;
}

/* Finds the next row with a cell that is not empty. */
static const struct node *
next_row(const struct node *n)
{
	while (n != NULL && !node_is(n, "row"))
		n = n->next;
	return n;
}

/* Puts a row's cells into values, of which *used may hold an earlier row. Returns the index of the
 * last one filled plus 1. */
static size_t
row_values(const struct book *b, const struct node *row, struct value *values, size_t *used)
{
	const struct node *c;
	size_t column = 0, width = 0;

	memset(values, 0, *used * sizeof(*values));
	for (c = row != NULL ? row->first : NULL; c != NULL; c = c->next) {
		if (!node_is(c, "c"))
			continue;
		column = cell_column(c, column);
		if (column >= COLUMNS_MAX)
			break;
		values[column] = cell_value(b, c);
		if (values[column].kind != NOTHING && column >= width)
			width = column + 1;
		column++;
		if (column > *used)
			*used = column;
	}
	return width;
}

static void
column_count(struct column *c, struct value v)
{
	int d;

	c->filled++;
	c->of[v.kind]++;
	if (v.kind == DATE && v.number != floor(v.number))
		c->clock = true;
	if (v.kind != NUMBER)
		return;
	d = decimals_of(v.number);
	if (d > c->decimals)
		c->decimals = d;
	c->fraction = c->fraction || !is_whole(v.number);
	c->tiny = c->tiny || (v.number != 0 && fabs(v.number) < 1e-6);
	c->huge = c->huge || (fabs(v.number) > 1e6 && is_long(v.number, d));
}

struct sheet {
	const struct node *data;
	struct column *column;
	struct value *values;
	size_t rows, columns;
	size_t used; /* length of values */
};

/* Measures the sheet, and finds the types of the columns below the header. */
static void
sheet_measure(struct sheet *s, const struct book *b)
{
	const struct node *row;
	size_t number = 0, width, i;

	for (row = next_row(s->data->first); row != NULL; row = next_row(row->next)) {
		number = row_number(row, number);
		width = row_values(b, row, s->values, &s->used);
		if (width > s->columns)
			s->columns = width;
		if (width > 0)
			s->rows = number + 1;
		for (i = 0; i < width && number > 0; i++)
			if (s->values[i].kind != NOTHING)
				column_count(&s->column[i], s->values[i]);
		number++;
	}
}

/* Counts the columns before column i whose header has the same type and text. */
static size_t
earlier(const struct sheet *s, size_t i, const struct hr_buf *out)
{
	const struct column *c = &s->column[i], *o;
	size_t n = 0, j;

	if (s->values[i].kind == NOTHING || out->fail != HR_OK)
		return 0;
	for (j = 0; j < i; j++) {
		o = &s->column[j];
		n += s->values[j].kind == s->values[i].kind && o->name_len == c->name_len &&
		     memcmp(hr_buf_str(out) + o->name, hr_buf_str(out) + c->name, c->name_len) == 0;
	}
	return n;
}

static void
sheet_header(const struct sheet *s, const struct book *b, struct hr_buf *out)
{
	size_t i, same;

	hr_buf_addc(out, '|');
	for (i = 0; i < s->columns && out->fail == HR_OK; i++) {
		hr_buf_addc(out, ' ');
		s->column[i].name = out->len;
		if (s->values[i].kind == NOTHING)
			hr_buf_addf(out, "Unnamed: %zu", i);
		else
			add_value(b, s->values[i], true, out);
		s->column[i].name_len = out->len - s->column[i].name;
		same = earlier(s, i, out);
		if (same > 0)
			hr_buf_addf(out, ".%zu", same);
		hr_buf_adds(out, " |");
	}
	hr_buf_addc(out, '\n');
	office_add_rule(out, s->columns);
}

static void
sheet_row(const struct sheet *s, const struct book *b, struct hr_buf *out)
{
	size_t i;

	hr_buf_addc(out, '|');
	for (i = 0; i < s->columns && out->fail == HR_OK; i++) {
		hr_buf_addc(out, ' ');
		add_in_column(b, &s->column[i], s->rows - 1, s->values[i], out);
		hr_buf_adds(out, " |");
	}
	hr_buf_addc(out, '\n');
}

static void
sheet_write(struct sheet *s, const struct book *b, struct hr_buf *out)
{
	const struct node *row = next_row(s->data->first);
	size_t at, number = 0;
	bool here;

	sheet_measure(s, b);
	if (s->rows == 0) {
		hr_buf_adds(out, "|\n|  |\n");
		return;
	}
	for (at = 0; at < s->rows && out->fail == HR_OK; at++) {
		if (row != NULL)
			number = row_number(row, at);
		here = row != NULL && number == at;
		(void)row_values(b, here ? row : NULL, s->values, &s->used);
		if (here)
			row = next_row(row->next);
		if (at == 0)
			sheet_header(s, b, out);
		else
			sheet_row(s, b, out);
	}
}

static int
sheet_read(const struct parts *ps, const char *part, const struct book *b, struct hr_buf *out,
    struct hr_err *err)
{
	HR_CLEAN(tree_done) struct tree *t = tree_of(ps, part, err);
	struct sheet s = {.data = node_child(t != NULL ? tree_root(t) : NULL, "sheetData")};
	int r = 0;

	if (t == NULL)
		return -1;
	s.column = calloc(COLUMNS_MAX, sizeof(*s.column));
	s.values = calloc(COLUMNS_MAX, sizeof(*s.values));
	if (s.column == NULL || s.values == NULL)
		r = hr_err_nomem(err);
	else if (s.data != NULL)
		sheet_write(&s, b, out);
	free(s.column);
	free(s.values);
	return r;
}

static int
sheets_read(const struct parts *ps, const struct rels *rels, const struct node *sheets,
    const struct book *b, struct hr_buf *out, struct hr_err *err)
{
	const struct node *n = sheets != NULL ? sheets->first : NULL;
	const char *part, *name;
	int r = 0;

	for (; n != NULL && r == 0 && out->fail == HR_OK; n = n->next) {
		part = rels_target(rels, node_attr(n, "r:id"));
		name = node_attr(n, "name");
		if (!node_is(n, "sheet") || part == NULL || strstr(part, "chartsheet") != NULL)
			continue;
		hr_buf_addf(out, "%s## ", out->len > 0 ? "\n" : "");
		hr_buf_adds(out, name != NULL ? name : "");
		hr_buf_addc(out, '\n');
		r = sheet_read(ps, part, b, out, err);
	}
	office_trim(out);
	return r;
}

int
xlsx_convert(const struct parts *ps, const char *part, struct hr_buf *out, struct hr_err *err)
{
	HR_CLEAN(tree_done) struct tree *t = tree_of(ps, part, err);
	HR_CLEAN(rels_done) struct rels rels = {NULL, NULL};
	HR_CLEAN(book_close) struct book b = {.epoch = EPOCH};
	const char *old;
	int r = -1;

	if (t != NULL && rels_open(&rels, ps, part, err) == 0 &&
	    book_open(&b, ps, &rels, err) == 0) {
		old = node_attr(node_child(tree_root(t), "workbookPr"), "date1904");
		if (old != NULL && (strcmp(old, "1") == 0 || strcmp(old, "true") == 0))
			b.epoch = EPOCH_1904;
		r = sheets_read(ps, &rels, node_child(tree_root(t), "sheets"), &b, out, err);
	}
	return r;
}
