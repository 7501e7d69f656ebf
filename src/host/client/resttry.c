/* Decides whether and when a failed attempt is repeated, for all clients of the host. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/err.h"
#include "host/client/rest.h"
#include "http/answer.h"

void
hr_rest_heed(struct hr_rest_failure *f, const char *should, const char *line, size_t len)
{
	(void)hr_http_field(line, len, "retry-after", f->after, sizeof(f->after));
	(void)hr_http_field(line, len, "retry-after-ms", f->after_ms, sizeof(f->after_ms));
	if (should != NULL)
		(void)hr_http_field(line, len, should, f->should, sizeof(f->should));
}

/* Returns a number of `unit` ms, or -1 if it is no number. */
static double
asked_ms(const char *text, double unit)
{
	char *end;
	double n = strtod(text, &end);

	return end != text && *end == '\0' && n >= 0 && n * unit <= UINT_MAX ? n * unit : -1;
}

static unsigned
back_off(const struct hr_rest_rule *rule, unsigned k)
{
	unsigned ms = rule->first_ms, random = 0;

	while (--k > 0 && ms < rule->most_ms)
		ms *= 2;
	ms = ms < rule->most_ms ? ms : rule->most_ms;
	ms = ms > rule->least_ms ? ms : rule->least_ms;
	if (rule->jitter_percent == 0 ||
	    getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		return ms;
	return ms - random % (unsigned)((unsigned long long)ms * rule->jitter_percent / 100 + 1);
}

unsigned long
hr_rest_wait_ms(const struct hr_rest_rule *rule, unsigned k, const struct hr_rest_failure *f)
{
	double ms = asked_ms(f->after_ms, 1);
	long seconds;

	if (ms < 0)
		ms = asked_ms(f->after, 1000);
	/* a date gives a wrong time if a clock is wrong */
	if (ms < 0 && (seconds = hr_http_seconds(f->after)) > 0)
		ms = (double)seconds * 1000;
	if (rule->after_max_s > 0 && ms > rule->after_max_s * 1000.0)
		ms = -1;
	return ms >= 0 ? (unsigned long)ms : back_off(rule, k);
}

/* Returns the index of the rule that decides, or -1. */
static int
rule_for(const struct hr_rest_tries *t, const struct hr_rest_failure *f)
{
	bool told = (f->bit & (HR_REST_UNSENT | HR_REST_LOST)) == 0;
	int i;

	if (told && strcasecmp(f->should, "false") == 0)
		return -1;
	for (i = 0; t->rules[i].failures != 0; i++)
		if ((t->rules[i].failures & f->bit) != 0)
			return i;
	return told && i > 0 && strcasecmp(f->should, "true") == 0 ? 0 : -1;
}

bool
hr_rest_again(struct hr_rest_tries *t, const struct hr_rest_failure *f, bool idempotent)
{
	int i = rule_for(t, f);
	const struct hr_rest_rule *rule = &t->rules[i];
	unsigned long ms;

	t->failed++;
	if (i < 0 || ((rule->always & f->bit) == 0 && !idempotent))
		return false;
	t->spent = ++t->used[i] >= rule->attempts;
	if (t->spent)
		return false;
	ms = hr_rest_wait_ms(rule, t->used[i], f);
	if (t->patience_ms > 0 && ms > t->patience_ms - t->waited_ms)
		return false;
	if (t->end_ms != 0 && hr_now_ms() + (int64_t)ms >= t->end_ms)
		return false;
	t->last_ms = (unsigned)ms;
	t->waited_ms += t->last_ms;
	return !hr_rest_wait(t->watch_fd, t->last_ms);
}

int
hr_rest_fault(const struct hr_http_answer *a, const struct hr_err *he, struct hr_err *err)
{
	enum hr_errc code = HR_E_RUNTIME;

	switch (a->fault) {
	case HR_HTTP_CONNECT:
	case HR_HTTP_READ:
	case HR_HTTP_WRITE: code = HR_E_HTTP_NETWORK; break;
	case HR_HTTP_CONNECT_TIMEOUT:
	case HR_HTTP_READ_TIMEOUT: code = HR_E_HTTP_TIMEOUT; break;
	case HR_HTTP_PROTOCOL: code = HR_E_PROTO; break;
	default: break;
	}
	(void)hr_err_from(err, code, he);
	if (err != NULL && code != HR_E_RUNTIME)
		err->cls = hr_http_fault_name(a->fault);
	return -1;
}
