/* Changes a text. `old` is searched in a flat copy, in which each line end is one LF; its offset is
 * then mapped back to the text itself. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "files/revise/revise.h"

#define FLAT_MAX (HR_PLAINTEXT_MAX * 4)
#define LINES_NAMED 20 /* maximum occurrences whose lines an error lists */

static void
flatten(struct hr_buf *b, struct hr_span s, bool cr)
{
	const char *end = s.p + s.len, *from = s.p, *p;

	for (; from < end && (p = memchr(from, '\r', (size_t)(end - from))) != NULL; from = p + 1) {
		hr_buf_add(b, from, (size_t)(p - from));
		if (p + 1 == end || p[1] != '\n')
			hr_buf_addc(b, cr ? '\n' : '\r');
	}
	if (from < end)
		hr_buf_add(b, from, (size_t)(end - from));
}

/* Maps an offset in the flat copy to one in the text. */
static size_t
unflatten(const struct hr_plaintext *t, size_t flat)
{
	const char *p = t->text.p, *end = p + t->text.len, *cr;

	if (t->cr)
		return flat;
	/* each CR LF before the place is one byte shorter in the copy */
	while (p < end && (cr = memchr(p, '\r', (size_t)(end - p))) != NULL &&
	       (size_t)(cr - p) < flat) {
		flat -= (size_t)(cr - p) + 1;
		p = cr + 1;
		if (p < end && *p == '\n')
			p++;
	}
	return (size_t)(p - t->text.p) + flat;
}

/* A range of the text, and the line end that a new line in it gets. */
struct place {
	size_t at, len;
	const char *end;
};

static const char *
end_name(const char *p, size_t len)
{
	return len == 2 ? "\r\n" : *p == '\r' ? "\r" : "\n";
}

/* Returns the first line end at or after `at`, or NULL if there is none. */
static const char *
next_end(const struct hr_plaintext *t, size_t at, size_t *ret_after)
{
	size_t end, n = hr_plaintext_line(t->text.p + at, t->text.len - at, t->cr, &end);

	*ret_after = at + n + end;
	return end > 0 ? end_name(t->text.p + at + n, end) : NULL;
}

/* Returns the line end before `at`, or else the one after it. */
static const char *
end_near(const struct hr_plaintext *t, size_t at)
{
	const char *p = t->text.p, *end;
	size_t unused;

	if (at > 0 && (p[at - 1] == '\n' || (t->cr && p[at - 1] == '\r')))
		return t->cr ? "\r" : at > 1 && p[at - 2] == '\r' ? "\r\n" : "\n";
	end = at < t->text.len ? next_end(t, at, &unused) : NULL;
	return end != NULL ? end : t->ends;
}

/* Replaces p by `new`. Its line ends become, one by one, those of the old range; further ones
 * repeat the last of these, or that of the place. */
static void
put_changed(const struct hr_plaintext *t, const struct place *p, struct hr_span new, bool exact,
    struct hr_buf *after)
{
	const char *s = new.p, *end = new.p + new.len, *lf, *last = p->end, *found;
	size_t at = p->at, stop = p->at + p->len;

	hr_buf_add(after, hr_buf_str(&t->text), p->at);
	while (!exact && *last != '\0' && s < end &&
	       (lf = memchr(s, '\n', (size_t)(end - s))) != NULL) {
		hr_buf_add(after, s, (size_t)(lf - s));
		found = at < stop ? next_end(t, at, &at) : NULL;
		if (found != NULL && at <= stop)
			last = found;
		hr_buf_adds(after, last);
		s = lf + 1;
	}
	hr_buf_add(after, s, (size_t)(end - s));
	hr_buf_add(after, hr_buf_str(&t->text) + stop, t->text.len - stop);
}

static size_t
count(const char *p, size_t len, char c)
{
	const char *end = p + len;
	size_t n = 0;

	while (p < end && (p = memchr(p, c, (size_t)(end - p))) != NULL) {
		n++;
		p++;
	}
	return n;
}

static int
fail(struct hr_buf *why, const char *text)
{
	hr_buf_adds(why, text);
	return -1;
}

/* ---- replace ---- */

#define SHOWN_MAX 60 /* bytes of `old` in an error */

static int
refuse_absent(struct hr_span old, struct hr_buf *why)
{
	const char *end = memchr(old.p, '\n', old.len);
	size_t n = end != NULL ? (size_t)(end - old.p) : old.len;

	if (n > SHOWN_MAX)
		/* cuts at a whole character */
		for (n = SHOWN_MAX; n > 0 && ((unsigned char)old.p[n] & 0xC0) == 0x80;)
			n--;
	hr_buf_addf(why,
	    "\"%.*s%s\" did not appear in it: read the place again, and copy it with its blanks "
	    "and "
	    "line ends",
	    (int)n, old.p, n < old.len ? "..." : "");
	return -1;
}

static const char *
find(const struct hr_buf *in, const char *from, struct hr_span what)
{
	return memmem(from, (size_t)(in->p + in->len - from), what.p, what.len);
}

static int
refuse_many(
    const struct hr_buf *in, const char *at, struct hr_span old, char end, struct hr_buf *why)
{
	const char *counted = in->p;
	size_t line = 1, last = 0, n = 0;

	hr_buf_adds(why, "Multiple occurrences of old, in lines [");
	for (; at != NULL; at = find(in, at + 1, old)) {
		line += count(counted, (size_t)(at - counted), end);
		counted = at;
		if (line == last)
			continue;
		if (n++ == LINES_NAMED) {
			hr_buf_adds(why, ", ...");
			break;
		}
		hr_buf_addf(why, "%s%zu", last > 0 ? ", " : "", line);
		last = line;
	}
	return fail(why,
	    "], some of which may overlap: take more of the lines around it, so that it is "
	    "unique");
}

/* Returns the length of the common prefix, and in *ret_suffix of the common suffix. */
static size_t
common(struct hr_span a, struct hr_span b, size_t *ret_suffix)
{
	size_t least = a.len < b.len ? a.len : b.len, n = 0, m = 0;

	while (n < least && a.p[n] == b.p[n])
		n++;
	while (m < least - n && a.p[a.len - 1 - m] == b.p[b.len - 1 - m])
		m++;
	*ret_suffix = m;
	return n;
}

/* Replaces `old` in the text; `in` is the text or its flat copy. */
static int
replace_in(const struct hr_plaintext *t, const struct hr_buf *in, bool exact, struct hr_span old,
    struct hr_span new, struct hr_buf *after, struct hr_revised *ret, struct hr_buf *why)
{
	const char *found = in->len >= old.len && in->len > 0 ? find(in, in->p, old) : NULL;
	const char end = exact && t->cr ? '\r' : '\n';
	struct place place;
	size_t prefix, suffix, unused;

	if (found == NULL)
		return refuse_absent(old, why);
	if (find(in, found + 1, old) != NULL)
		return refuse_many(in, found, old, end, why);
	ret->line = 1 + count(in->p, (size_t)(found - in->p), end);
	ret->lines = new.len > 0 ? count(new.p, new.len, end) + 1 : 0;
	prefix = common(old, new, &suffix);
	place.at = (size_t)(found - in->p) + prefix;
	place.len = place.at + old.len - prefix - suffix;
	if (!exact) {
		place.at = unflatten(t, place.at);
		place.len = unflatten(t, place.len);
	}
	place.len -= place.at;
	/* the end of the line with the place, or, between two lines, the end of the line before
	 * it */
	place.end = place.len > 0 ? next_end(t, place.at, &unused) : end_near(t, place.at);
	if (place.end == NULL)
		place.end = t->ends;
	new.p += prefix;
	new.len -= prefix + suffix;
	put_changed(t, &place, new, exact, after);
	return 0;
}

/* Handles an empty `old`, which fits an empty file alone. */
static int
fill(const struct hr_plaintext *t, struct hr_span new, struct hr_buf *after, struct hr_revised *ret,
    struct hr_buf *why)
{
	if (t->text.len > 0)
		return fail(why, "old is empty, which fits an empty file alone: give a text that "
				 "occurs in it, or after_line");
	hr_buf_add(after, new.p, new.len);
	*ret = (struct hr_revised){1, count(new.p, new.len, '\n') + 1};
	return 0;
}

int
hr_revise_replace(const struct hr_plaintext *t, struct hr_span old, struct hr_span new,
    struct hr_buf *after, struct hr_revised *ret, struct hr_buf *why)
{
	bool exact = old.len > 0 && t->text.len > 0 && memchr(old.p, '\r', old.len) != NULL &&
		     find(&t->text, t->text.p, old) != NULL;
	HR_BUF(in, FLAT_MAX);
	HR_BUF(flat_old, FLAT_MAX);
	HR_BUF(flat_new, FLAT_MAX);

	if (hr_span_equal(old, new))
		return fail(why, "old and new are the same");
	if (old.len == 0)
		return fill(t, new, after, ret, why);
	if (exact)
		return replace_in(t, &t->text, true, old, new, after, ret, why);
	flatten(&in, hr_span_of_buf(&t->text), t->cr);
	flatten(&flat_old, old, t->cr);
	flatten(&flat_new, new, t->cr);
	if (in.fail != HR_OK || flat_old.fail != HR_OK || flat_new.fail != HR_OK)
		return fail(why, "there is no memory for it");
	return replace_in(t, &in, false, hr_span_of_buf(&flat_old),
	    *t->ends != '\0' ? hr_span_of_buf(&flat_new) : new, after, ret, why);
}

/* ---- insert ---- */

int
hr_revise_insert(const struct hr_plaintext *t, int64_t after_line, struct hr_span new,
    struct hr_buf *after, struct hr_revised *ret, struct hr_buf *why)
{
	size_t lines = hr_plaintext_lines(t);
	struct place place = {0};
	HR_BUF(text, FLAT_MAX);
	const char *own;
	bool unended, ended;

	if (after_line < 0 || (uint64_t)after_line > lines) {
		hr_buf_addf(why,
		    "after_line is %" PRId64 "; the file has %zu lines, so it must be "
		    "from 0 to %zu",
		    after_line, lines, lines);
		return -1;
	}
	place.at = hr_plaintext_line_at(t, (size_t)after_line + 1);
	place.end = end_near(t, place.at);
	/* if the file has no line end, those of `new` decide */
	own = *t->ends == '\0' && new.len > 1 && memmem(new.p, new.len, "\r\n", 2) != NULL ? "\r\n"
											   : "\n";
	/* a last line without an end gets one */
	unended = place.at > 0 && place.at == t->text.len &&
		  t->text.p[place.at - 1] != (t->cr ? '\r' : '\n');
	ended =
	    new.len > 0 && (new.p[new.len - 1] == '\n' || (t->cr && new.p[new.len - 1] == '\r'));
	if (unended)
		hr_buf_adds(&text, own);
	if (*t->ends != '\0')
		flatten(&text, new, t->cr);
	else
		hr_buf_add(&text, new.p, new.len);
	if (!ended && !unended)
		hr_buf_adds(&text, own);
	if (text.fail != HR_OK)
		return fail(why, "there is no memory for it");
	*ret = (struct hr_revised){(size_t)after_line + 1, count(text.p, text.len, '\n')};
	ret->lines += unended ? (size_t)!ended - 1 : 0; /* the first end is the old line's */
	put_changed(t, &place, hr_span_of_buf(&text), false, after);
	return 0;
}
