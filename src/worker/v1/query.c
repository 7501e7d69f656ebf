/* Parses numbers, times and truth values of a query. */
#include "config.h"

#include <stdio.h>
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

bool
hr_v1_number(
    struct hr_rex_call *c, const char *name, long long least, long long most, long long *io)
{
	HR_BUF(text, 64);

	if (!hr_request_query(c->r, name, &text))
		return true;
	return (text.fail == HR_OK && strlen(hr_buf_str(&text)) == text.len &&
		   hr_text_python_int(hr_buf_str(&text), io) == 0 && *io >= least && *io <= most) ||
	       refuse(c, name, "must be an integer in the permitted range");
}

/* Parses "Z", an offset such as +02:00, or nothing, which means UTC. Returns false for any other
 * text. */
static bool
parse_zone(const char *p, int64_t *ret_s)
{
	int h = 0, m = 0, n = 0;

	*ret_s = 0;
	if (*p == 'Z' || *p == 'z')
		return p[1] == '\0';
	if (*p == '\0')
		return true;
	if ((*p != '+' && *p != '-') || sscanf(p + 1, "%2d:%2d%n", &h, &m, &n) != 2 || n != 5)
		return false;
	*ret_s = (*p == '-' ? -1 : 1) * (h * 3600 + m * 60);
	return p[6] == '\0';
}

static bool
parse_time(const char *text, int64_t *ret)
{
	struct tm tm = {0};
	const char *p = strptime(text, "%Y-%m-%d", &tm), *q;
	int64_t zone = 0, micro = 0, unit = 100000;
	char *end;
	double s;

	if (p == NULL) {
		s = strtod(text, &end);
		if (text[0] == '\0' || *end != '\0' || !(s > -1e11 && s < 1e11))
			return false;
		*ret = (int64_t)(s * 1e6);
		return true;
	}
	if (*p != '\0') {
		q = strchr("Tt ", *p) != NULL ? strptime(p + 1, "%H:%M", &tm) : NULL;
		if (q != NULL && *q == ':')
			q = strptime(q + 1, "%S", &tm);
		if (q != NULL && *q == '.')
			for (q++; *q >= '0' && *q <= '9'; q++, unit /= 10)
				micro += unit * (*q - '0');
		if (q == NULL || !parse_zone(q, &zone))
			return false;
	}
	*ret = ((int64_t)timegm(&tm) - zone) * 1000000 + micro;
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
