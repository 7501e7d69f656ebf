/* Patterns of names. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "files/search/search.h"
#include "base/path.h"

#define PATTERNS_MAX 64

/* [...], from behind the bracket. *io_p is moved behind it; false as well: there is no end. */
static bool
in_class(const char **io_p, char c)
{
	const char *p = *io_p;
	bool not = *p == '!' || *p == '^', found = false, first = true;
	unsigned char from, to, x = (unsigned char)c;

	for (p += not ; *p != '\0' && (first || *p != ']'); first = false) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		from = to = (unsigned char)*p++;
		if (p[0] == '-' && p[1] != '\0' && p[1] != ']') {
			p++;
			if (*p == '\\' && p[1] != '\0')
				p++;
			to = (unsigned char)*p++;
		}
		found |= x >= from && x <= to;
	}
	if (*p != ']')
		return false;
	*io_p = p + 1;
	return c != '/' && found != not ;
}

/* One character of each. Moves p behind what stands for it. */
static bool
step(const char **p, char c)
{
	const char *q = *p;

	switch (*q) {
	case '?': (*p)++; return c != '/';
	case '[':
		q++;
		if (!in_class(&q, c)) {
			if (c != '[' || strchr(*p, ']') != NULL)
				return false;
			q = *p + 1; /* no class: the character */
		}
		*p = q;
		return true;
	case '\\':
		if (q[1] != '\0')
			q++;
		/* fall through */
	default: *p = q + 1; return *q == c && c != '\0';
	}
}

/* Only the last * and the last ** need be gone back to: what an earlier one could take more, the
 * later one can. */
bool
hr_glob_match(const char *p, const char *s)
{
	const char *star = NULL, *star_s = NULL, *deep = NULL, *deep_s = NULL;

	for (;;) {
		if (p[0] == '*' && p[1] == '*') {
			for (p += 2; *p == '*'; p++)
				;
			if (*p == '/') {
				p++; /* no directory, or some whole ones */
				deep = p;
				deep_s = s;
				star = NULL;
				continue;
			}
			if (*p == '\0')
				return true;
			deep = p;
			deep_s = s;
			star = NULL;
			continue;
		}
		if (*p == '*') {
			star = ++p;
			star_s = s;
			continue;
		}
		if (*s == '\0' && *p == '\0')
			return true;
		if (*s != '\0' && *p != '\0' && step(&p, *s)) {
			s++;
			continue;
		}
		if (star != NULL && *star_s != '\0' && *star_s != '/') {
			p = star;
			s = ++star_s;
			continue;
		}
		if (deep == NULL || *deep_s == '\0')
			return false;
		star = NULL;
		p = deep;
		if (deep[-1] == '/') { /* on to the next directory */
			deep_s = strchr(deep_s, '/');
			if (deep_s == NULL)
				return false;
		}
		s = ++deep_s;
	}
}

struct hr_globs {
	size_t n;
	char *v[PATTERNS_MAX];
	bool whole[PATTERNS_MAX]; /* for the whole name, not its last part alone */
};

void
hr_globs_free(struct hr_globs *g)
{
	size_t i;

	for (i = 0; g != NULL && i < g->n; i++)
		free(g->v[i]);
	free(g);
}

/* The first {a,b} of a pattern becomes one pattern each, and so on. Takes text. */
static int
expand(struct hr_globs *g, char *text, struct hr_err *err)
{
	char *open = strchr(text, '{'), *close = open != NULL ? strchr(open, '}') : NULL, *part;
	size_t len;
	int r = 0;

	if (close == NULL || memchr(open, ',', (size_t)(close - open)) == NULL) {
		if (g->n == PATTERNS_MAX) {
			free(text);
			return hr_err_set(
			    err, HR_E_INVAL, "the pattern stands for more than %d", PATTERNS_MAX);
		}
		g->whole[g->n] = strchr(text, '/') != NULL;
		if (text[0] == '/')
			memmove(text, text + 1, strlen(text));
		g->v[g->n++] = text;
		return 0;
	}
	for (part = open + 1; r == 0 && part <= close; part += len + 1) {
		HR_BUF(b, 1 << 16);

		len = strcspn(part, ",}");
		hr_buf_add(&b, text, (size_t)(open - text));
		hr_buf_add(&b, part, len);
		hr_buf_adds(&b, close + 1);
		r = hr_buf_check(&b, err);
		if (r == 0)
			r = expand(g, hr_buf_take(&b), err);
	}
	free(text);
	return r;
}

struct hr_globs *
hr_globs_new(struct hr_span pattern, struct hr_err *err)
{
	struct hr_globs *g;
	char *text;

	if (pattern.len == 0 || pattern.len > 4096 ||
	    memchr(pattern.p, '\0', pattern.len) != NULL) {
		(void)hr_err_set(err, HR_E_INVAL, "the pattern is empty, too long, or no text");
		return NULL;
	}
	g = calloc(1, sizeof(*g));
	text = g != NULL ? strndup(pattern.p, pattern.len) : NULL;
	if (text == NULL) {
		(void)hr_err_nomem(err);
		free(g);
		return NULL;
	}
	if (expand(g, text, err) < 0) {
		hr_globs_free(g);
		return NULL;
	}
	return g;
}

bool
hr_globs_match(const struct hr_globs *g, const char *rel)
{
	const char *last = hr_path_leaf(rel);
	size_t i;

	for (i = 0; i < g->n; i++)
		if (hr_glob_match(g->v[i], g->whole[i] ? rel : last))
			return true;
	return false;
}
