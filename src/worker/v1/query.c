/* Parses numbers, times and truth values of a query. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text/text.h"
#include "base/text/utf8.h"
#include "worker/v1/v1.h"

#define DIGITS_MAX 4300 /* Python's limit */

/* Reads the parameter into `text`, which must outlive *ret. Returns false if there is none. */
static bool
read_input(
    const struct hr_rex_call *c, const char *name, struct hr_buf *text, struct hr_v1_input *ret)
{
	bool found = hr_request_query(c->r, name, text);

	*ret = (struct hr_v1_input){"query", name, {hr_buf_str(text), text->len}};
	return found;
}

/* Parses the parameter, if the query has it; *in is set then. */
static bool
take_int(struct hr_rex_call *c, const char *name, struct hr_buf *text, struct hr_v1_input *in,
    long long *io)
{
	if (!read_input(c, name, text, in))
		return true;
	if (text->len > DIGITS_MAX)
		return hr_v1_invalid(c, in, "int_parsing_size",
		    "Unable to parse input string as an integer, exceeded maximum size", NULL);
	return hr_rex_parse_int(in->text, io) ||
	       hr_v1_invalid(c, in, "int_parsing",
		   "Input should be a valid integer, unable to parse string as an integer", NULL);
}

bool
hr_v1_number(struct hr_rex_call *c, const char *name, long long *io)
{
	HR_BUF(text, HR_V1_TEXT_MAX);
	struct hr_v1_input in;

	return take_int(c, name, &text, &in, io);
}

bool
hr_v1_limit(struct hr_rex_call *c, bool above, long long most, long long *io)
{
	HR_BUF(text, HR_V1_TEXT_MAX);
	HR_BUF(msg, 128);
	HR_BUF(ctx, 64);
	struct hr_v1_input in;

	if (!take_int(c, "limit", &text, &in, io))
		return false;
	if (*io < 1)
		return above ? hr_v1_invalid(c, &in, "greater_than",
				   "Input should be greater than 0", "\"gt\":0")
			     : hr_v1_invalid(c, &in, "greater_than_equal",
				   "Input should be greater than or equal to 1", "\"ge\":1");
	if (*io <= most)
		return true;
	hr_buf_addf(&msg, "Input should be less than or equal to %lld", most);
	hr_buf_addf(&ctx, "\"le\":%lld", most);
	return hr_v1_invalid(c, &in, "less_than_equal", hr_buf_str(&msg), hr_buf_str(&ctx));
}

/* Takes a number of `n` digits, which must lie between `least` and `most`. */
static bool
take_digits(const char **p, int n, int least, int most, int *ret)
{
	int i;

	*ret = 0;
	for (i = 0; i < n; i++, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		*ret = *ret * 10 + (**p - '0');
	}
	return *ret >= least && *ret <= most;
}

/* Parses "Z", an offset such as +02:00 or +0200, or nothing, which means UTC. Returns false for any
 * other text. */
static bool
parse_zone(const char *p, int64_t *ret_s)
{
	int h = 0, m = 0, sign = *p == '-' ? -1 : 1;

	*ret_s = 0;
	if (*p == 'Z' || *p == 'z')
		return p[1] == '\0';
	if (*p == '\0')
		return true;
	if (*p != '+' && *p != '-')
		return false;
	p++;
	if (!take_digits(&p, 2, 0, 23, &h))
		return false;
	p += *p == ':';
	if (!take_digits(&p, 2, 0, 59, &m))
		return false;
	*ret_s = (int64_t)sign * (h * 3600 + m * 60);
	return *p == '\0';
}

/* Parses the time of the day after a date, as microseconds. */
static bool
parse_clock(const char *p, int64_t *ret)
{
	int h, m, s = 0;
	int64_t zone, micro = 0, unit = 100000;

	if (*p == '\0' || strchr("Tt _", *p) == NULL)
		return false;
	p++;
	if (!take_digits(&p, 2, 0, 23, &h) || *p++ != ':' || !take_digits(&p, 2, 0, 59, &m))
		return false;
	if (*p == ':') {
		p++;
		if (!take_digits(&p, 2, 0, 59, &s))
			return false;
		if (*p == '.' || *p == ',') {
			if (p[1] < '0' || p[1] > '9')
				return false;
			for (p++; *p >= '0' && *p <= '9'; p++, unit /= 10)
				micro += unit * (*p - '0');
		}
	}
	if (!parse_zone(p, &zone))
		return false;
	*ret = ((int64_t)h * 3600 + m * 60 + s - zone) * 1000000 + micro;
	return true;
}

/* Parses a number of seconds since 1970 or, if that is large, milliseconds. */
static bool
parse_stamp(const char *text, int64_t *ret)
{
	double s;
	char *end;

	if (text[strspn(text, "+-.0123456789")] != '\0')
		return false;
	s = strtod(text, &end);
	if (end == text || *end != '\0')
		return false;
	if (s > 2e10 || s < -2e10)
		s /= 1000;
	if (s >= 253402300800.0 || s < -62135596800.0)
		return false;
	*ret = (int64_t)(s * 1e6);
	return true;
}

/* Parses the date that begins the text. Returns NULL, or the error of the original's parser. */
static const char *
parse_date(const char *text, struct tm *ret)
{
	static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	static const char separator[] = "invalid date separator, expected `-`";
	const char *p = text;
	int year, month, day;
	bool leap;

	if (strlen(text) < 10)
		return "input is too short";
	if (!take_digits(&p, 4, 0, 9999, &year))
		return "invalid character in year";
	if (*p++ != '-')
		return separator;
	if (!take_digits(&p, 2, 0, 99, &month))
		return "invalid character in month";
	if (*p++ != '-')
		return separator;
	if (!take_digits(&p, 2, 0, 99, &day))
		return "invalid character in day";
	if (month < 1 || month > 12)
		return "month value is outside expected range of 1-12";
	leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	if (day < 1 || day > days[month - 1] + leap)
		return "day value is outside expected range";
	*ret = (struct tm){.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
	return NULL;
}

/* Parses as the original does: "2026-01-02", with a time of the day or without, or a number.
 * Returns NULL, or the error. */
static const char *
parse_time(const char *text, int64_t *ret)
{
	const char *error;
	int64_t clock = 0;
	long long n;
	struct tm tm;

	if (parse_stamp(text, ret))
		return NULL;
	error = parse_date(text, &tm);
	if (error == NULL && (text[10] == '\0' || parse_clock(text + 10, &clock)))
		*ret = (int64_t)timegm(&tm) * 1000000 + clock;
	else if (error == NULL)
		error = "unexpected extra characters at the end of the input";
	else if (text[strspn(text, "+-0123456789")] == '\0' &&
		 hr_rex_parse_int(hr_span_of(text), &n) && n > -LLONG_MAX && n < LLONG_MAX)
		error = n > 0 ? "dates after 9999 are not supported as unix timestamps"
			      : "dates before 0000 are not supported as unix timestamps";
	return error;
}

bool
hr_v1_time(struct hr_rex_call *c, const char *name, int64_t *io)
{
	HR_BUF(text, HR_V1_TEXT_MAX);
	HR_BUF(error, 128);
	struct hr_v1_input in;
	const char *why;
	bool year_0;

	if (!read_input(c, name, &text, &in))
		return true;
	why = parse_time(in.text.p, io);
	if (why == NULL && strlen(in.text.p) < in.text.len)
		why = "unexpected extra characters at the end of the input";
	year_0 = why == NULL && strncmp(in.text.p, "0000-", 5) == 0;
	if (why == NULL && !year_0)
		return true;
	hr_buf_adds(&error, year_0 ? "year 0 is out of range" : why);
	return hr_v1_invalid_as(c, &in, year_0 ? "datetime_parsing" : "datetime_from_date_parsing",
	    year_0 ? "datetime" : "datetime or date", &error);
}

bool
hr_v1_truth(struct hr_rex_call *c, const char *name, bool *io)
{
	HR_BUF(text, HR_V1_TEXT_MAX);
	struct hr_v1_input in;
	int truth;

	if (!read_input(c, name, &text, &in))
		return true;
	truth = hr_text_truth(in.text.p, in.text.len);
	*io = truth == 1;
	return truth >= 0 ||
	       hr_v1_invalid(c, &in, "bool_parsing",
		   "Input should be a valid boolean, unable to interpret input", NULL);
}
