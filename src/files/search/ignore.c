/* Implements .gitignore, by gitignore(5). */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/path.h"
#include "files/search/search.h"

#define PATTERN_MAX 255 /* a longer pattern is ignored: matching costs pattern times name */
#define QUICK_MAX 32    /* patterns up to this length need no check of the clock */

struct rule {
	char *pattern;
	/* whole: the pattern matches the full name, not its last part */
	bool negated, dirs_only, whole;
};

struct hr_ignore {
	const struct hr_ignore *above;
	char *base; /* "" or "a/b/", the prefix of the names to be matched */
	struct rule *v;
	size_t n, room;
};

static int
add_rule(struct hr_ignore *g, const char *p, size_t len)
{
	struct rule r = {.pattern = NULL};

	if (len > 0 && p[len - 1] == '\r')
		len--;
	while (len > 0 && p[len - 1] == ' ' && (len < 2 || p[len - 2] != '\\'))
		len--;
	if (len == 0 || *p == '#' || memchr(p, '\0', len) != NULL)
		return 0;
	if (*p == '!') {
		r.negated = true;
		p++;
		len--;
	}
	if (len > 0 && p[len - 1] == '/') {
		r.dirs_only = true;
		len--;
	}
	r.whole = len > 0 && memchr(p, '/', len) != NULL;
	if (len > 0 && *p == '/') {
		p++;
		len--;
	}
	if (len == 0 || len > PATTERN_MAX)
		return 0;
	if (hr_grow(&g->v, g->n, &g->room, sizeof(*g->v)) < 0)
		return -1;
	r.pattern = strndup(p, len);
	if (r.pattern == NULL)
		return -1;
	g->v[g->n++] = r;
	return 0;
}

struct hr_ignore *
hr_ignore_new(const struct hr_ignore *above, const char *base, const char *text, size_t len)
{
	struct hr_ignore *g = calloc(1, sizeof(*g));
	size_t n = strlen(base), line;

	if (g == NULL)
		return NULL;
	g->above = above;
	g->base = calloc(1, n + 2);
	if (g->base == NULL) {
		free(g);
		return NULL;
	}
	memcpy(g->base, base, n);
	if (n > 0 && base[n - 1] != '/')
		g->base[n] = '/';
	if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
		text += 3;
		len -= 3;
	}
	while (len > 0) {
		const char *nl = memchr(text, '\n', len);

		line = nl != NULL ? (size_t)(nl - text) : len;
		if (add_rule(g, text, line) < 0) {
			hr_ignore_free(g);
			return NULL;
		}
		line += nl != NULL;
		text += line;
		len -= line;
	}
	return g;
}

void
hr_ignore_free(struct hr_ignore *i)
{
	size_t k;

	if (i == NULL)
		return;
	for (k = 0; k < i->n; k++)
		free(i->v[k].pattern);
	free(i->v);
	free(i->base);
	free(i);
}

/* Returns true if the name is ignored. The last matching rule decides; the deepest directory's
 * rules are tried first. */
bool
hr_ignore_matches(const struct hr_ignore *i, const char *rel, bool is_dir, int64_t until_ms)
{
	const char *last = hr_path_leaf(rel);
	size_t k, n;

	for (; i != NULL; i = i->above) {
		n = strlen(i->base);
		if (strncmp(rel, i->base, n) != 0)
			continue;
		for (k = i->n; k > 0; k--) {
			const struct rule *r = &i->v[k - 1];

			if ((k % 64 == 0 || strlen(r->pattern) > QUICK_MAX) &&
			    hr_now_ms() >= until_ms)
				return false;
			if ((is_dir || !r->dirs_only) &&
			    hr_glob_match(r->pattern, r->whole ? rel + n : last))
				return !r->negated;
		}
	}
	return false;
}
