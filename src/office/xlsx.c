/* Converts sheets to pipe tables, with the column types of pandas: a column of numbers with a gap
 * or a fraction has floats, all printed with as many decimals as the longest needs. */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "office/office.h"
#include "office/xlvalue.h"

#define COLUMNS_MAX 16384
#define ROWS_MAX 1048576

struct column {
	size_t filled, of[KINDS];
	bool fraction, huge, tiny, clock, millis;
	int decimals;
	size_t name, name_len; /* place of the header's text */
	size_t next;           /* number to try for the next column of the same name */
};

static bool
is_long(double x, int decimals)
{
	return snprintf(NULL, 0, "%.*f", decimals, x) > DECIMALS + 6;
}

/* Returns true if the column has numbers only. Truth values are numbers if there is a gap. */
static bool
is_numeric(const struct column *c, size_t rows)
{
	return c->of[NUMBER] + c->of[TEXT_NUMBER] + c->of[BOOLEAN] == c->filled &&
	       (c->of[BOOLEAN] < c->filled || c->filled < rows);
}

static void
add_in_column(
    const struct book *b, const struct column *c, size_t rows, struct value v, struct hr_buf *out)
{
	bool dates = c->filled > 0 && c->of[DATE] == c->filled,
	     spans = c->filled > 0 && c->of[SPAN] == c->filled;

	if (v.kind == NOTHING || v.kind == GAP)
		hr_buf_adds(out, dates || spans ? "NaT" : "NaN");
	else if (dates)
		add_date(date_millis(b, v.number), c->clock, c->millis ? 3 : 0, out);
	else if (spans)
		add_span(v.number, false, c->clock, out);
	else if (c->of[BOOLEAN] + c->of[TEXT_TRUTH] == c->filled && !is_numeric(c, rows))
		hr_buf_adds(out, v.number != 0 ? "True" : "False");
	else if (!is_numeric(c, rows))
		add_value(b, v, false, out);
	else if (isinf(v.number))
		hr_buf_adds(out, v.number < 0 ? "-inf" : "inf");
	else if (c->filled == rows && !c->fraction)
		hr_buf_addf(out, "%.0f", v.number);
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
	*used = 0;
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
column_count(struct column *c, const struct book *b, struct value v)
{
	double ms = v.kind == DATE ? date_millis(b, v.number) : rint(v.number * DAY_MS);
	int d;

	c->filled++;
	c->of[v.kind]++;
	c->fraction = c->fraction || v.fraction;
	if (v.kind == DATE || v.kind == SPAN) {
		c->clock = c->clock || fmod(ms, DAY_MS) != 0;
		c->millis = c->millis || fmod(ms, 1000) != 0;
	} else if (!isinf(v.number)) {
		d = decimals_of(v.number);
		if (d > c->decimals)
			c->decimals = d;
		c->tiny = c->tiny || (v.number != 0 && fabs(v.number) < 1e-6);
		c->huge = c->huge || (fabs(v.number) > 1e6 && is_long(v.number, d));
	}
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
			if (s->values[i].kind > GAP)
				column_count(&s->column[i], b, s->values[i]);
		number++;
	}
}

static bool
has_name(const struct column *c, const struct hr_buf *names, const char *name, size_t len)
{
	return c->name_len == len && memcmp(hr_buf_str(names) + c->name, name, len) == 0;
}

/* Gives column i, if an earlier one has its name and type, a number that makes a name no column
 * has. */
static void
number_name(const struct sheet *s, size_t i, struct hr_buf *names)
{
	struct column *c = &s->column[i];
	size_t first = 0, j = 0, len;
	HR_BUF(name, HR_OFFICE_TEXT_MAX);

	hr_buf_add(&name, hr_buf_str(names) + c->name, c->name_len);
	len = name.len;
	while (first < i && (s->values[first].kind != s->values[i].kind ||
				!has_name(&s->column[first], names, hr_buf_str(&name), len)))
		first++;
	if (first == i)
		return;
	for (; j < s->columns && names->fail == HR_OK; j++) {
		if (j == 0) {
			name.len = len;
			hr_buf_addf(&name, ".%zu", ++s->column[first].next);
		}
		if (has_name(&s->column[j], names, hr_buf_str(&name), name.len))
			j = SIZE_MAX; /* try the next number from the first column */
	}
	c->name = names->len;
	c->name_len = name.len;
	hr_buf_add(names, hr_buf_str(&name), name.len);
}

static void
sheet_header(const struct sheet *s, const struct book *b, struct hr_buf *out)
{
	HR_BUF(names, HR_OFFICE_TEXT_MAX);
	struct column *c = s->column;
	size_t i;

	for (i = 0; i < s->columns; i++) {
		c[i].name = names.len;
		if (s->values[i].kind == NOTHING)
			hr_buf_addf(&names, "Unnamed: %zu", i);
		else
			add_value(b, s->values[i], true, &names);
		c[i].name_len = names.len - c[i].name;
	}
	hr_buf_addc(out, '|');
	for (i = 0; i < s->columns && names.fail == HR_OK; i++) {
		if (s->values[i].kind != NOTHING)
			number_name(s, i, &names);
		hr_buf_addc(out, ' ');
		hr_buf_add(out, hr_buf_str(&names) + c[i].name, c[i].name_len);
		hr_buf_adds(out, " |");
	}
	if (names.fail != HR_OK && out->fail == HR_OK)
		out->fail = names.fail;
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
	HR_CLEAN(book_close) struct book b = {.strings = NULL};
	int r = -1;

	if (t != NULL && rels_open(&rels, ps, part, err) == 0 &&
	    book_open(&b, ps, &rels, tree_root(t), err) == 0)
		r = sheets_read(ps, &rels, node_child(tree_root(t), "sheets"), &b, out, err);
	return r;
}
