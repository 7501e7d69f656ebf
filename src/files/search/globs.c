/* Matches names against patterns. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/path.h"
#include "base/text/utf8.h"
#include "files/search/search.h"

#define PATTERNS_MAX 256
#define SPECIAL "*?[{\\"

/* ---- one pattern ---- */

/* Returns the character at s, or an invalid number for a byte that is not UTF-8. */
static int32_t
char_at(const char *s, size_t *ret_len)
{
	int32_t c = hr_utf8_next(s, s + strnlen(s, 4), ret_len);

	if (c >= 0)
		return c;
	*ret_len = 1;
	return 0x110000 + (unsigned char)*s;
}

/* Returns a character of a class; a backslash quotes the next one. */
static int32_t
class_char(const char **io_p)
{
	size_t n;
	int32_t c;

	if (**io_p == '\\' && (*io_p)[1] != '\0')
		(*io_p)++;
	c = char_at(*io_p, &n);
	*io_p += n;
	return c;
}

/* Matches [:alpha:] and the like, for ASCII. Returns true if one is at *io_p, which is moved after
 * it. */
static bool
named_class(const char **io_p, int32_t c, bool *io_found)
{
	static const struct {
		const char *name;
		int (*is)(int c);
	} classes[] = {{"[:alnum:]", isalnum}, {"[:alpha:]", isalpha}, {"[:blank:]", isblank},
	    {"[:cntrl:]", iscntrl}, {"[:digit:]", isdigit}, {"[:graph:]", isgraph},
	    {"[:lower:]", islower}, {"[:print:]", isprint}, {"[:punct:]", ispunct},
	    {"[:space:]", isspace}, {"[:upper:]", isupper}, {"[:xdigit:]", isxdigit}};
	size_t i, n;

	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		n = strlen(classes[i].name);
		if (strncmp(*io_p, classes[i].name, n) != 0)
			continue;
		*io_found |= c < 0x80 && classes[i].is((int)c) != 0;
		*io_p += n;
		return true;
	}
	return false;
}

/* Matches [...], from after the bracket; *io_p is moved after it. Returns false if it has no
 * end. */
static bool
in_class(const char **io_p, int32_t c)
{
	const char *p = *io_p;
	bool not = *p == '!' || *p == '^', found = false, first = true;
	int32_t from, to;

	for (p += not ; *p != '\0' && (first || *p != ']'); first = false) {
		if (named_class(&p, c, &found))
			continue;
		from = to = class_char(&p);
		if (p[0] == '-' && p[1] != '\0' && p[1] != ']') {
			p++;
			to = class_char(&p);
		}
		found |= c >= from && c <= to;
	}
	if (*p != ']')
		return false;
	*io_p = p + 1;
	return c != '/' && found != not ;
}

/* Moves both after one character, if they match. dot: s is at a dot that only a dot matches. */
static bool
step(const char **p, const char **s, bool dot)
{
	const char *q = *p;
	size_t n, m;
	int32_t c = char_at(*s, &n);

	switch (*q) {
	case '?':
		if (c == '/' || dot)
			return false;
		m = 1;
		break;
	case '[':
		q++;
		if (!dot && in_class(&q, c)) {
			m = (size_t)(q - *p);
			break;
		}
		if (c != '[' || strchr(*p, ']') != NULL)
			return false;
		m = 1; /* there is no class here: match a literal bracket */
		break;
	case '\\':
		if (q[1] != '\0')
			q++;
		/* fall through */
	default:
		if (char_at(q, &m) != c)
			return false;
		m += (size_t)(q - *p);
	}
	*p += m;
	*s += n;
	return true;
}

struct text {
	const char *begin;
	bool period; /* a dot at the start of a name matches only a dot */
};

static bool
is_dot(const struct text *t, const char *s)
{
	return t->period && *s == '.' && (s == t->begin || s[-1] == '/');
}

/* Returns true if a ** can match the rest. */
static bool
is_open(const struct text *t, const char *s)
{
	return !t->period || (!is_dot(t, s) && strstr(s, "/.") == NULL);
}

/* Backtracks only to the last * and the last **: a later one can match whatever an earlier one
 * could. */
static bool
match(const char *p, const struct text *t)
{
	const char *s = t->begin, *star = NULL, *star_s = NULL, *deep = NULL, *deep_s = NULL;
	size_t n;

	for (;;) {
		if (p[0] == '*' && p[1] == '*') {
			for (p += 2; *p == '*'; p++)
				;
			if (*p == '/')
				p++; /* ** matches no directory, or several whole ones */
			else if (*p == '\0' && is_open(t, s))
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
		if (*s != '\0' && *p != '\0' && step(&p, &s, is_dot(t, s)))
			continue;
		if (star != NULL && *star_s != '\0' && *star_s != '/' && !is_dot(t, star_s)) {
			(void)char_at(star_s, &n);
			p = star;
			s = star_s += n;
			continue;
		}
		if (deep == NULL || *deep_s == '\0' || is_dot(t, deep_s))
			return false;
		star = NULL;
		p = deep;
		if (deep[-1] == '/') { /* continue with the next directory */
			deep_s = strchr(deep_s, '/');
			if (deep_s == NULL)
				return false;
		}
		(void)char_at(deep_s, &n);
		s = deep_s += n;
	}
}

bool
hr_glob_match(const char *pattern, const char *text)
{
	return match(pattern, &(const struct text){text, false});
}

/* ---- several patterns ---- */

struct glob {
	char *text;
	bool whole; /* matches the whole name, not only its last part */
};

struct hr_globs {
	struct glob *v;
	size_t n, room;
	bool hidden, dots;
};

void
hr_globs_free(struct hr_globs *g)
{
	size_t i;

	for (i = 0; g != NULL && i < g->n; i++)
		free(g->v[i].text);
	if (g != NULL)
		free(g->v);
	free(g);
}

/* Removes empty parts and ".", and a trailing slash; a leading one stays. */
static void
tidy(char *text)
{
	char *in = text, *out = text;
	size_t n;

	if (*in == '/')
		*out++ = *in++;
	while (*in != '\0') {
		n = strcspn(in, "/");
		if (n > 0 && !(n == 1 && *in == '.')) {
			if (out > text && out[-1] != '/')
				*out++ = '/';
			memmove(out, in, n);
			out += n;
		}
		in += n + (in[n] == '/');
	}
	*out = '\0';
}

/* Adds one pattern. Takes text. */
static int
add_one(struct hr_globs *g, char *text, const char *top, struct hr_err *err)
{
	size_t n = strlen(top);
	struct glob one = {.text = text};
	const char *p;

	tidy(text);
	if (g->n == PATTERNS_MAX || hr_grow(&g->v, g->n, &g->room, sizeof(*g->v)) < 0) {
		free(text);
		return g->n == PATTERNS_MAX
			   ? hr_err_set(err, HR_E_INVAL, "the pattern stands for more than %d",
				 PATTERNS_MAX)
			   : hr_err_nomem(err);
	}
	while (n > 0 && top[n - 1] == '/')
		n--;
	if (n > 0 && strncmp(text, top, n) == 0 && text[n] == '/')
		memmove(text, text + n, strlen(text + n) + 1);
	one.whole = strchr(text, '/') != NULL;
	if (text[0] == '/')
		memmove(text, text + 1, strlen(text));
	for (p = text; p != NULL; p = strchr(p, '/') != NULL ? strchr(p, '/') + 1 : NULL)
		g->dots |= *p == '.';
	g->v[g->n++] = one;
	return 0;
}

/* Returns the closing brace of open, and whether a comma is between them. NULL: there is none. */
static char *
closing(char *open, bool *ret_comma)
{
	unsigned depth = 0;
	char *p;

	*ret_comma = false;
	for (p = open; *p != '\0'; p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		else if (*p == '{')
			depth++;
		else if (*p == '}' && --depth == 0)
			return p;
		else if (*p == ',' && depth == 1)
			*ret_comma = true;
	}
	return NULL;
}

/* Returns the length of an alternative, up to its comma or brace. */
static size_t
alternative(const char *p)
{
	const char *from = p;
	unsigned depth = 0;

	for (; depth > 0 || (*p != ',' && *p != '}'); p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		else if (*p == '{')
			depth++;
		else if (*p == '}')
			depth--;
	}
	return (size_t)(p - from);
}

/* Expands the first {a,b} from text + from on into one pattern each, and so on. Takes text. */
static int
expand(struct hr_globs *g, char *text, size_t from, const char *top, struct hr_err *err)
{
	char *open = text + from, *close = NULL, *part;
	bool comma = false;
	size_t len;
	int r = 0;

	for (; *open != '\0' && !comma; open++) {
		if (*open == '\\' && open[1] != '\0')
			open++;
		else if (*open == '{')
			close = closing(open, &comma);
		if (comma)
			break;
	}
	if (!comma || close == NULL)
		return add_one(g, text, top, err);
	for (part = open + 1; r == 0 && part <= close; part += len + 1) {
		HR_BUF(b, 1 << 16);

		len = alternative(part);
		hr_buf_add(&b, text, (size_t)(open - text));
		hr_buf_add(&b, part, len);
		hr_buf_adds(&b, close + 1);
		r = hr_buf_check(&b, err);
		if (r == 0)
			r = expand(g, hr_buf_take(&b), (size_t)(open - text), top, err);
	}
	free(text);
	return r;
}

struct hr_globs *
hr_globs_new(struct hr_span pattern, const char *top, bool hidden, struct hr_err *err)
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
	g->hidden = hidden;
	if (expand(g, text, 0, top, err) < 0) {
		hr_globs_free(g);
		return NULL;
	}
	return g;
}

bool
hr_globs_hidden(const struct hr_globs *g)
{
	return g->hidden || g->dots;
}

/* Returns true for a file in a directory whose name begins with a dot. */
static bool
is_below_dot(const char *rel, const char *last)
{
	for (; rel != last; rel = strchr(rel, '/') + 1)
		if (*rel == '.')
			return true;
	return false;
}

unsigned
hr_globs_depth(const struct hr_globs *g)
{
	unsigned depth = 0, n;
	const char *p;
	size_t i;

	for (i = 0; i < g->n; i++) {
		if (!g->v[i].whole || strstr(g->v[i].text, "**") != NULL)
			return 0;
		for (n = 1, p = g->v[i].text; *p != '\0'; p++)
			n += *p == '/';
		depth = n > depth ? n : depth;
	}
	return depth;
}

bool
hr_globs_match(const struct hr_globs *g, const char *rel)
{
	const char *last = hr_path_leaf(rel);
	size_t i;

	for (i = 0; i < g->n; i++) {
		const struct text t = {g->v[i].whole ? rel : last, !g->hidden};

		if (match(g->v[i].text, &t) &&
		    (g->hidden || g->v[i].whole || !is_below_dot(rel, last)))
			return true;
	}
	return false;
}

/* ---- the place to search ---- */

/* Returns the length of a tidy pattern's literal part, including its last slash. */
static size_t
literal_part(const char *p)
{
	size_t n = strcspn(p, SPECIAL);

	while (n > 0 && p[n - 1] != '/')
		n--;
	return n;
}

int
hr_glob_plan(const char *top, struct hr_span pattern, struct hr_glob_plan *ret, struct hr_err *err)
{
	size_t n = strlen(top), len;
	HR_BUF(text, 8192);
	char *p;

	hr_buf_add(&text, pattern.p, pattern.len);
	hr_buf_init(&ret->top, 65536);
	hr_buf_init(&ret->shown, 65536);
	hr_buf_init(&ret->pattern, 8192);
	if (hr_buf_check(&text, err) < 0)
		return -1;
	if (pattern.len == 0 || strlen(hr_buf_str(&text)) != pattern.len)
		return hr_err_set(err, HR_E_INVAL, "the pattern is empty, or no text");
	p = text.p;
	tidy(p);
	while (n > 0 && top[n - 1] == '/')
		n--;
	/* a pattern with only a leading slash before special characters is relative to the top, as
	 * in .gitignore */
	ret->anchored =
	    *p == '/' && ((strncmp(p, top, n) == 0 && p[n] == '/') || literal_part(p) == 1);
	if (ret->anchored)
		p += strncmp(p, top, n) == 0 && p[n] == '/' ? n + 1 : 1;
	len = literal_part(p);
	ret->absolute = *p == '/';
	if (!ret->absolute) {
		hr_buf_adds(&ret->top, top);
		hr_buf_addc(&ret->top, '/');
	}
	hr_buf_add(&ret->top, p, len);
	hr_buf_add(&ret->shown, p, len);
	if (len > 0 || ret->anchored)
		hr_buf_addc(&ret->pattern, '/');
	hr_buf_adds(&ret->pattern, p + len);
	ret->exact = p[len + strcspn(p + len, SPECIAL)] == '\0';
	if (hr_buf_check(&ret->top, err) < 0 || hr_buf_check(&ret->shown, err) < 0)
		return -1;
	return hr_buf_check(&ret->pattern, err);
}

void
hr_glob_plan_done(struct hr_glob_plan *p)
{
	hr_buf_done(&p->top);
	hr_buf_done(&p->shown);
	hr_buf_done(&p->pattern);
}
