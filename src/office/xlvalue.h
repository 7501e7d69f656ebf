/* Defines the values of cells (xlvalue.c) that sheets (xlsx.c) print in columns. */
#ifndef HR_OFFICE_XLVALUE_H
#define HR_OFFICE_XLVALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "office/office_int.h"

#define DECIMALS 6
#define DAY_MS 86400000.0

enum kind {
	NOTHING,
	GAP, /* an error, or one of the texts that mean no value */
	TEXT,
	TEXT_NUMBER, /* a text that is a number in a column of numbers */
	TEXT_TRUTH,  /* a text that is a truth value in a column of truth values */
	NUMBER,
	BOOLEAN,
	DATE,
	CLOCK, /* a time of day */
	SPAN,  /* a duration */
	KINDS,
};

struct value {
	enum kind kind;
	double number;           /* days for DATE, CLOCK and SPAN */
	bool fraction;           /* a number that is not an integer */
	const struct node *text; /* element with `t` children, or a `v` */
};

struct book {
	struct tree *strings, *styles;
	const struct node **string; /* the strings, indexed by number */
	size_t nstrings;
	enum kind *kind; /* how each style shows numbers: NUMBER, DATE or SPAN */
	size_t nstyles;
	double epoch;
};

/* Reads the strings and styles of a book. book_close() frees them, after a failure, too. */
int book_open(struct book *b, const struct parts *ps, const struct rels *rels,
    const struct node *workbook, struct hr_err *err);
void book_close(struct book *b);

struct value cell_value(const struct book *b, const struct node *c);
/* Returns the milliseconds since 1970 of a date. */
double date_millis(const struct book *b, double number);
/* Returns how many of DECIMALS decimals x needs, at least one. */
int decimals_of(double x);

/* Appends a date, with the time of the day if `clock`, its fraction with that many digits. */
void add_date(double ms, bool clock, int digits, struct hr_buf *out);
/* Appends a duration as pandas, or as Python if it is alone. */
void add_span(double number, bool alone, bool clock, struct hr_buf *out);
/* Appends a value alone, as in a header or a column of mixed types. */
void add_value(const struct book *b, struct value v, bool header, struct hr_buf *out);

#endif
