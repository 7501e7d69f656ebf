/* Expands a template line by line. Pure. */
#include "config.h"

#include "image/dockerfile.h"

#include <string.h>

struct named {
	const char *name;
	const char *value;
};

static bool
word_holds(const struct hr_dockerfile *d, const char *w, size_t len, bool *ret_known)
{
	const struct {
		const char *word;
		bool holds;
	} words[] = {
	    {"scratch", d->strategy == HR_IMAGE_SCRATCH},
	    {"versioned", d->strategy == HR_IMAGE_VERSIONED},
	    {"lock", d->strategy == HR_IMAGE_LOCK},
	    {"browser", d->browser},
	    {"extra_deps", d->extra_deps != NULL && d->extra_deps[0] != '\0'},
	    {"openhands_v1", d->v1},
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i].word) == len && memcmp(words[i].word, w, len) == 0)
			return words[i].holds;
	}
	*ret_known = false;
	return false;
}

static int
condition(const struct hr_dockerfile *d, const char *p, const char *end, unsigned number, bool *ret,
    struct hr_err *err)
{
	bool known = true;
	const char *word;

	*ret = false;
	while (p < end) {
		while (p < end && *p == ' ')
			p++;
		for (word = p; p < end && *p != ' '; p++)
			;
		if (p > word && word_holds(d, word, (size_t)(p - word), &known))
			*ret = true;
	}
	if (!known)
		return hr_err_set(err, HR_E_INVAL, "Dockerfile.in:%u: unknown condition", number);
	return 0;
}

static int
put_line(struct hr_buf *b, const char *p, const char *end, const struct named *values, size_t n,
    unsigned number, struct hr_err *err)
{
	const char *close;
	size_t len, i;

	while (p < end) {
		if (*p != '@') {
			hr_buf_addc(b, *p++);
			continue;
		}
		close = memchr(p + 1, '@', (size_t)(end - p - 1));
		len = close != NULL ? (size_t)(close - p - 1) : 0;
		for (i = 0; i < n; i++)
			if (close != NULL && strlen(values[i].name) == len &&
			    memcmp(values[i].name, p + 1, len) == 0)
				break;
		if (i == n)
			return hr_err_set(
			    err, HR_E_INVAL, "Dockerfile.in:%u: unknown place", number);
		hr_buf_adds(b, values[i].value);
		p = close + 1;
	}
	hr_buf_addc(b, '\n');
	return 0;
}

static bool
starts(const char *p, const char *end, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(end - p) >= n && memcmp(p, text, n) == 0;
}

int
hr_dockerfile_put(struct hr_buf *b, const char *text, size_t len, const struct hr_dockerfile *d,
    struct hr_err *err)
{
	const struct named values[] = {
	    {"from", d->from},
	    {"version", d->version},
	    {"lock", d->lock},
	    {"source", d->source},
	    {"sets", d->v1 ? "agent" : "jupyter"},
	    {"with_browser", d->browser ? " --with-browser" : ""},
	    {"extra_deps", d->extra_deps != NULL ? d->extra_deps : ""},
	};
	const char *end = text + len, *next, *stop;
	bool inside = false, keep = true;
	unsigned number = 1;
	size_t i;

	for (i = 0; i < 4; i++)
		if (strpbrk(values[i].value, "\r\n") != NULL)
			return hr_err_set(
			    err, HR_E_INVAL, "the %s has a line feed in it", values[i].name);
	for (; text < end; text = next, number++) {
		stop = memchr(text, '\n', (size_t)(end - text));
		next = stop != NULL ? stop + 1 : end;
		stop = stop != NULL ? stop : end;
		if (starts(text, stop, "@if ")) {
			if (inside)
				return hr_err_set(
				    err, HR_E_INVAL, "Dockerfile.in:%u: @if inside @if", number);
			inside = true;
			if (condition(d, text + 4, stop, number, &keep, err) < 0)
				return -1;
		} else if (starts(text, stop, "@end")) {
			if (!inside)
				return hr_err_set(
				    err, HR_E_INVAL, "Dockerfile.in:%u: @end without @if", number);
			inside = false;
			keep = true;
		} else if (starts(text, stop, "@#")) {
			continue; /* a comment of the template is dropped */
		} else if (keep && put_line(b, text, stop, values, sizeof(values) / sizeof(*values),
				       number, err) < 0) {
			return -1;
		}
	}
	if (inside)
		return hr_err_set(err, HR_E_INVAL, "Dockerfile.in: @if without @end");
	return hr_buf_check(b, err);
}
