/* Reads reports. Invariant: in.p[0 .. used) was returned and is dropped at the next call. */
#include "config.h"

#include "session/prompt/report.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void
hr_report_reader_init(struct hr_report_reader *r)
{
	hr_buf_init(&r->in, HR_REPORT_MAX);
	r->used = 0;
}

void
hr_report_reader_done(struct hr_report_reader *r)
{
	hr_buf_done(&r->in);
}

void
hr_report_feed(struct hr_report_reader *r, const void *p, size_t len)
{
	hr_buf_drop_front(&r->in, r->used);
	r->used = 0;
	hr_buf_add(&r->in, p, len);
	if (r->in.fail != HR_OK)
		hr_buf_reset(&r->in);
}

/* Parses a whole decimal number in [min, max], as the shell writes it. */
static bool
take_number(const char *s, long long min, long long max, long long *ret)
{
	char *end;

	if (!isdigit((unsigned char)s[0]))
		return false;
	errno = 0;
	*ret = strtoll(s, &end, 10);
	return *end == '\0' && errno == 0 && *ret >= min && *ret <= max;
}

/* Splits the first n NUL-ended fields. Returns their bytes, or 0 if some fields are missing yet. */
static size_t
take_fields(const char *p, size_t len, const char **ret, size_t n)
{
	const char *nul;
	size_t i, off = 0;

	for (i = 0; i < n; i++) {
		nul = memchr(p + off, '\0', len - off);
		if (nul == NULL)
			return 0;
		ret[i] = p + off;
		off = (size_t)(nul - p) + 1;
	}
	return off;
}

/* Returns true if a field is the word, or ends in it: another program may have written text without
 * a NUL before it. */
static bool
field_is(const char *f, const char *word)
{
	size_t n = strlen(f), w = strlen(word);

	return n >= w && memcmp(f + n - w, word, w) == 0;
}

static int
is_option(int c)
{
	return islower(c) || c == '-' || c == ':';
}

static bool
all(const char *s, int (*is)(int))
{
	for (; *s != '\0'; s++) {
		if (!is((unsigned char)*s))
			return false;
	}
	return true;
}

/* Returns the value of a field that starts with '='; NULL if the field is empty. */
static const char *
seen(const char *f)
{
	return f[REPORT_KIND] == '=' ? f + 1 : NULL;
}

/* Fills the report. Returns false if the fields cannot come from the hook; a report may start among
 * them. */
static bool
fill(const char **f, struct hr_report *ret)
{
	long long pid, exit_code, euid, job = -1;

	/* the nonce may be any text: a command can change it */
	if (!take_number(f[REPORT_PID], 1, INT_MAX, &pid) ||
	    !take_number(f[REPORT_STATUS], 0, 255, &exit_code) ||
	    (f[REPORT_JOB][0] != '\0' && !take_number(f[REPORT_JOB], 1, INT_MAX, &job)) ||
	    !take_number(f[REPORT_EUID], 0, UINT_MAX, &euid) ||
	    (f[REPORT_PWD][0] != '/' && f[REPORT_PWD][0] != '\0') ||
	    !all(f[REPORT_FLAGS], isalpha) || !all(f[REPORT_OPTIONS], is_option))
		return false;
	ret->nonce = f[REPORT_NONCE];
	ret->pid = (pid_t)pid;
	ret->exit_code = (int)exit_code;
	ret->job = (pid_t)job;
	ret->euid = (uid_t)euid;
	ret->pwd = f[REPORT_PWD];
	ret->path = f[REPORT_PATH];
	ret->hook = f[REPORT_HOOK];
	ret->flags = f[REPORT_FLAGS];
	ret->options = f[REPORT_OPTIONS];
	ret->taken = -1;
	return true;
}

/* Parses a report at p. Returns 1 with *ret filled and *ret_len bytes long; 0: incomplete; -1: not
 * a report. The longer kind is judged by its common fields first: garbage that starts like one must
 * not hide a whole report after it. */
static int
take_report(const char *p, size_t len, bool looked, struct hr_report *ret, size_t *ret_len)
{
	const char *f[REPORT_FIELDS_LOOKED];
	size_t n = take_fields(p, len, f, REPORT_FIELDS);
	long long taken, hides;

	if (n == 0)
		return 0;
	if (!fill(f, ret))
		return -1;
	if (looked) {
		n = take_fields(p, len, f, REPORT_FIELDS_LOOKED);
		if (n == 0)
			return 0;
		if (!take_number(f[REPORT_TAKEN], 0, INT_MAX, &taken) ||
		    !take_number(f[REPORT_HIDES], 0, HR_HIDES_UNKNOWN, &hides))
			return -1;
		ret->pwd_right = seen(f[REPORT_PWD_SEEN]) != NULL;
		ret->python = seen(f[REPORT_PYTHON]);
		ret->taken = (int)taken;
		ret->hides = (unsigned)hides;
	}
	*ret_len = n;
	return 1;
}

void
hr_report_next(struct hr_report_reader *r, struct hr_report *ret)
{
	const char *f, *p, *end;
	size_t n;
	bool looked;
	int found;

	hr_buf_drop_front(&r->in, r->used);
	r->used = 0;
	p = hr_buf_str(&r->in);
	end = p + r->in.len;
	for (;;) {
		memset(ret, 0, sizeof(*ret));
		if (take_fields(p, (size_t)(end - p), &f, 1) == 0)
			break;
		looked = field_is(f, HR_REPORT_LOOKED);
		found = looked || field_is(f, HR_REPORT_PROMPT)
			    ? take_report(p, (size_t)(end - p), looked, ret, &n)
			    : -1;
		if (found > 0) {
			r->used = (size_t)(p - r->in.p) + n;
			return;
		}
		if (found == 0) {
			memset(ret, 0, sizeof(*ret));
			break;
		}
		p += strlen(f) + 1;
	}
	r->used = (size_t)(p - hr_buf_str(&r->in)); /* skip the garbage */
}
