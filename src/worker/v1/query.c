/* Parses numbers, times and truth values of a query. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text/text.h"
#include "worker/v1/v1.h"

static bool
refuse(struct hr_rex_call *c, const char *name, const char *what)
{
	HR_BUF(text, 256);

	hr_buf_addf(&text, "%s: %s", name, what);
	return hr_answer_detail(c->ret, 422, hr_buf_str(&text));
}

/* Cuts a fraction of zeros off the number, which the original accepts. */
static void
cut_zeros(struct hr_buf *text)
{
	size_t n = text->len;

	while (n > 0 && text->p[n - 1] == '0')
		n--;
	if (n > 1 && n < text->len && text->p[n - 1] == '.') {
		text->len = n - 1;
		text->p[n - 1] = '\0';
	}
}

bool
hr_v1_number(
    struct hr_rex_call *c, const char *name, long long least, long long most, long long *io)
{
	HR_BUF(text, 64);

	if (!hr_request_query(c->r, name, &text))
		return true;
	cut_zeros(&text);
	return (text.fail == HR_OK && strlen(hr_buf_str(&text)) == text.len &&
		   hr_text_python_int(hr_buf_str(&text), io) == 0 && *io >= least && *io <= most) ||
	       refuse(c, name, "must be an integer in the permitted range");
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

/* Parses as the original does: "2026-01-02", with a time of the day or without, or a number. */
static bool
parse_time(const char *text, int64_t *ret)
{
	static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	struct tm tm;
	const char *p = text;
	int64_t clock = 0;
	int year, month, day;
	bool leap;

	if (!take_digits(&p, 4, 0, 9999, &year) || *p != '-')
		return parse_stamp(text, ret);
	p++;
	if (year == 0 || !take_digits(&p, 2, 1, 12, &month) || *p++ != '-')
		return false;
	leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	if (!take_digits(&p, 2, 1, days[month - 1] + leap, &day) ||
	    (*p != '\0' && !parse_clock(p, &clock)))
		return false;
	tm = (struct tm){.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
	*ret = (int64_t)timegm(&tm) * 1000000 + clock;
	return true;
}

bool
hr_v1_time(struct hr_rex_call *c, const char *name, int64_t *io)
{
	HR_BUF(text, 64);

	if (!hr_request_query(c->r, name, &text))
		return true;
	return (text.fail == HR_OK && strlen(hr_buf_str(&text)) == text.len &&
		   parse_time(hr_buf_str(&text), io)) ||
	       refuse(c, name, "must be a date and time");
}

bool
hr_v1_truth(struct hr_rex_call *c, const char *name, bool *io)
{
	HR_BUF(text, 64);
	int truth;

	if (!hr_request_query(c->r, name, &text))
		return true;
	truth = hr_text_truth(hr_buf_str(&text), text.len);
	*io = truth == 1;
	return truth >= 0 || refuse(c, name, "must be true or false");
}
