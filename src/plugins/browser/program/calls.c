/* Parses program texts by their grammar (plugins/browser/program/calls.h). The first character of
 * an item determines it, so nothing is read twice. NEST_MAX bounds the depth as Python's stack does
 * in the original. */
#include "config.h"

#include "plugins/browser/program/calls.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "plugins/browser/program/pyliterals.h"
#include "base/text/utf8.h"

/* The original's parser takes that many of Python's 1000 frames per bracket; the number available
 * was measured, and varies a little with the caller. */
#define NEST_FIRST 17
#define NEST_LATER 22
#define NEST_DICT 21
#define NEST_MAX 960

struct reader {
	const char *p, *end;
	struct hr_buf *why;
	int nest;
};

static int read_element(struct reader *r, struct br_value *ret, int cost);

static void
skip(struct reader *r)
{
	while (r->p < r->end) {
		if (*r->p == '#') {
			while (r->p < r->end && *r->p != '\n')
				r->p++;
		} else if (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t') {
			r->p++;
		} else {
			return;
		}
	}
}

static bool
take(struct reader *r, char c)
{
	skip(r);
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* Accepts letters of Latin-1 only; inside a name also digits and the middle dot. */
static bool
is_name(int32_t cp, bool inside)
{
	if (cp < 0x80)
		return cp == '_' || (cp >= 'A' && cp <= 'Z') || (cp >= 'a' && cp <= 'z') ||
		       (inside && cp >= '0' && cp <= '9');
	if (cp > 0xFF)
		return false;
	return cp == 0xAA || cp == 0xB5 || cp == 0xBA || (cp >= 0xC0 && cp != 0xD7 && cp != 0xF7) ||
	       (inside && cp == 0xB7);
}

static int
read_name(struct reader *r, char **ret)
{
	const char *from;
	size_t n;

	skip(r);
	from = r->p;
	while (r->p < r->end && is_name(hr_utf8_next(r->p, r->end, &n), r->p > from))
		r->p += n;
	if (r->p == from)
		return BR_NOT_THERE;
	*ret = strndup(from, (size_t)(r->p - from));
	return *ret != NULL ? BR_READ : BR_NOMEM;
}

/* ---- strings ---- */

/* Returns the end of a single-quoted string's content, or the place of the fault. */
static const char *
scan_line(const char *p, const char *end, char quote)
{
	size_t n;

	while (p < end && *p != quote && *p != '\n' && *p != '\r') {
		if (*p != '\\') {
			p++;
			continue;
		}
		if (end - p < 2)
			return p;
		if (p[1] != 'x') {
			(void)hr_utf8_next(p + 1, end, &n);
			p += 1 + n;
			continue;
		}
		for (n = 2; p + n < end && p[n] != '\0' && strchr("0123456789abcdefABCDEF", p[n]);)
			n++;
		if (n == 2)
			return p;
		p += n;
	}
	return p;
}

static const char *
scan_lines(const char *p, const char *end, char quote)
{
	size_t n;

	while (p < end) {
		if (*p == quote) {
			for (n = 1; n < 3 && p + n < end && p[n] == quote;)
				n++;
			if (n == 3)
				return p;
			p += n;
		} else if (*p == '\\') {
			if (end - p < 2 || p[1] == '\n')
				return p;
			(void)hr_utf8_next(p + 1, end, &n);
			p += 1 + n;
		} else {
			p++;
		}
	}
	return p;
}

static int
read_string(struct reader *r, struct br_value *ret)
{
	const char *from = r->p, *at;
	size_t quotes = 0;
	char quote = *from;

	if (r->end - from >= 6 && from[1] == quote && from[2] == quote) {
		at = scan_lines(from + 3, r->end, quote);
		if (r->end - at >= 3 && memcmp(at, from, 3) == 0)
			quotes = 3;
	}
	if (quotes == 0) {
		at = scan_line(from + 1, r->end, quote);
		if (at == r->end || *at != quote)
			return BR_NOT_THERE;
		quotes = 1;
	}
	r->p = at + quotes;
	return br_pystring(from, (size_t)(r->p - from), ret, r->why);
}

/* ---- lists, tuples, dictionaries ---- */

/* Removes repeated keys of a dictionary: the first one keeps its place and gets the last value. */
static int
merge_keys(struct br_value *dict)
{
	struct br_value *v = dict->items;
	size_t i, place, kept = 0, n = dict->n / 2;
	HR_FREE struct br_key *keys = calloc(n + 1, sizeof(*keys));

	if (keys == NULL)
		return BR_NOMEM;
	for (i = 0; i < n; i++)
		keys[i] = (struct br_key){.p = v[2 * i].text, .len = v[2 * i].len};
	br_keys_find_first(keys, n);
	for (i = 0; i < n; i++) {
		if (keys[i].first == i) {
			place = kept++;
			keys[i].first = place; /* the equal keys after this one look it up */
			v[2 * place] = v[2 * i];
		} else {
			place = keys[keys[i].first].first;
			br_value_done(&v[2 * i]);
			br_value_done(&v[2 * place + 1]);
		}
		v[2 * place + 1] = v[2 * i + 1];
	}
	dict->n = 2 * kept;
	return BR_READ;
}

static int
put_entry(struct br_value *dict, struct br_value *key, struct br_value *value)
{
	if (br_value_push(dict, key) < 0) {
		br_value_done(value);
		return BR_NOMEM;
	}
	return br_value_push(dict, value) < 0 ? BR_NOMEM : BR_READ;
}

static int
read_entry(struct reader *r, struct br_value *dict)
{
	struct br_value key = {0}, value = {0};
	const char *from = r->p;
	int done = BR_NOT_THERE;

	skip(r);
	if (r->p < r->end && (*r->p == '"' || *r->p == '\''))
		done = read_string(r, &key);
	if (done == BR_READ)
		done = take(r, ':') ? read_element(r, &value, NEST_DICT) : BR_NOT_THERE;
	if (done == BR_READ)
		return put_entry(dict, &key, &value);
	br_value_done(&key);
	r->p = from;
	return done;
}

static int
read_items(struct reader *r, struct br_value *into)
{
	struct br_value item = {0};
	int done = BR_READ;

	do {
		if (into->kind == BR_V_DICT)
			done = read_entry(r, into);
		else
			done = read_element(r, &item, into->n == 0 ? NEST_FIRST : NEST_LATER);
		if (done == BR_READ && into->kind != BR_V_DICT)
			done = br_value_push(into, &item);
	} while (done == BR_READ && take(r, ','));
	return done == BR_NOT_THERE ? BR_READ : done;
}

static int
read_brackets(struct reader *r, enum br_kind kind, struct br_value *ret)
{
	static const char close[] = {[BR_V_LIST] = ']', [BR_V_TUPLE] = ')', [BR_V_DICT] = '}'};
	struct br_value v = {.kind = kind};
	int done;

	r->p++;
	done = read_items(r, &v);
	if (done == BR_READ && !take(r, close[kind]))
		done = BR_NOT_THERE;
	if (done == BR_READ && kind == BR_V_DICT)
		done = merge_keys(&v);
	if (done == BR_READ)
		*ret = v;
	else
		br_value_done(&v);
	return done;
}

static bool
read_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	const char *behind = r->p + n;

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
		return false;
	if (behind < r->end && (unsigned char)*behind < 0x80 &&
	    (is_name(*behind, true) || *behind == '$'))
		return false;
	r->p = behind;
	return true;
}

static int
read_one(struct reader *r, struct br_value *ret)
{
	switch (*r->p) {
	case '"':
	case '\'': return read_string(r, ret);
	case '[': return read_brackets(r, BR_V_LIST, ret);
	case '(': return read_brackets(r, BR_V_TUPLE, ret);
	case '{': return read_brackets(r, BR_V_DICT, ret);
	case 'T': ret->kind = BR_V_TRUE; return read_word(r, "True") ? BR_READ : BR_NOT_THERE;
	case 'F': ret->kind = BR_V_FALSE; return read_word(r, "False") ? BR_READ : BR_NOT_THERE;
	case 'N': ret->kind = BR_V_NONE; return read_word(r, "None") ? BR_READ : BR_NOT_THERE;
	default: return br_pynumber(&r->p, r->end, ret, r->why);
	}
}

/* Reads an element; if there is none it consumes nothing. `cost` is its share of NEST_MAX. */
static int
read_element(struct reader *r, struct br_value *ret, int cost)
{
	const char *from = r->p;
	int done;

	*ret = (struct br_value){0};
	if (r->nest + cost > NEST_MAX) {
		hr_buf_addf(r->why, "RecursionError: maximum recursion depth exceeded%s",
		    cost == NEST_FIRST ? "" : " while calling a Python object");
		return BR_RAISED;
	}
	skip(r);
	if (r->p == r->end)
		return BR_NOT_THERE;
	r->nest += cost;
	done = read_one(r, ret);
	r->nest -= cost;
	if (done == BR_NOT_THERE)
		r->p = from;
	return done;
}

/* ---- calls ---- */

static void
found_done(struct br_found *f)
{
	size_t i;

	for (i = 0; i < f->n; i++) {
		free(f->args[i].name);
		free(f->args[i].key);
		br_value_done(&f->args[i].value);
	}
	free(f->args);
	free(f->name);
	*f = (struct br_found){0};
}

/* Converts a name as Python does before comparing: three letters of Latin-1 change. */
static char *
key_of(const char *name)
{
	static const char *const from[] = {"\xC2\xAA", "\xC2\xBA", "\xC2\xB5"};
	static const char *const to[] = {"a", "o", "\xCE\xBC"};
	HR_BUF(b, strlen(name));
	size_t i;

	while (*name != '\0') {
		for (i = 0; i < 3 && strncmp(name, from[i], 2) != 0;)
			i++;
		hr_buf_add(&b, i < 3 ? to[i] : name, i < 3 ? strlen(to[i]) : 1);
		name += i < 3 ? 2 : 1;
	}
	return hr_buf_take(&b);
}

/* Takes ownership of the name and of the content of value. */
static int
add_argument(struct br_found *f, char *name, struct br_value *value)
{
	struct br_argument *grown = f->args, a = {.name = name};

	if ((f->n & (f->n - 1)) == 0)
		grown = reallocarray(f->args, f->n == 0 ? 1 : f->n * 2, sizeof(*grown));
	if (grown != NULL)
		f->args = grown;
	a.key = grown != NULL && name != NULL ? key_of(name) : NULL;
	if (grown == NULL || (name != NULL && a.key == NULL)) {
		free(name);
		br_value_done(value);
		return BR_NOMEM;
	}
	a.value = *value;
	*value = (struct br_value){0};
	f->args[f->n++] = a;
	return BR_READ;
}

static int
read_positional(struct reader *r, struct br_found *f)
{
	struct br_value v = {0};
	int done = read_element(r, &v, f->n == 0 ? NEST_FIRST : NEST_LATER);

	return done == BR_READ ? add_argument(f, NULL, &v) : done;
}

static int
read_named(struct reader *r, struct br_found *f)
{
	struct br_value v = {0};
	char *name = NULL;
	int done = read_name(r, &name);

	if (done == BR_READ)
		done = take(r, '=') ? read_element(r, &v, NEST_LATER) : BR_NOT_THERE;
	if (done == BR_READ)
		return add_argument(f, name, &v);
	free(name);
	return done;
}

/* Reads parts with commas between them and perhaps one at the end; stops before anything else. */
static int
read_parts(struct reader *r, struct br_found *f, int (*part)(struct reader *, struct br_found *))
{
	const char *from = r->p;
	int done;

	while ((done = part(r, f)) == BR_READ) {
		from = r->p;
		if (!take(r, ','))
			break;
		from = r->p;
	}
	r->p = from;
	return done == BR_NOT_THERE ? BR_READ : done;
}

static int
read_call(struct reader *r, struct br_found *f)
{
	int done = read_name(r, &f->name);

	if (done == BR_READ)
		done = take(r, '(') ? BR_READ : BR_NOT_THERE;
	if (done == BR_READ)
		done = read_parts(r, f, read_positional);
	if (done == BR_READ)
		done = read_parts(r, f, read_named);
	if (done == BR_READ && !take(r, ')'))
		done = BR_NOT_THERE;
	return done;
}

static int
add_found(struct br_calls *c, struct br_found *f)
{
	struct br_found *grown = c->v;

	if ((c->n & (c->n - 1)) == 0)
		grown = reallocarray(c->v, c->n == 0 ? 1 : c->n * 2, sizeof(*grown));
	if (grown == NULL) {
		found_done(f);
		return BR_NOMEM;
	}
	c->v = grown;
	c->v[c->n++] = *f;
	*f = (struct br_found){0};
	return BR_READ;
}

static int
find_all(struct reader *r, struct br_calls *ret)
{
	struct br_found f = {0};
	const char *from;
	size_t n;
	int done;

	for (;;) {
		skip(r);
		if (r->p == r->end)
			return BR_READ;
		from = r->p;
		done = read_call(r, &f);
		n = f.name != NULL ? strlen(f.name) : 0;
		if (done == BR_READ)
			done = add_found(ret, &f);
		else
			found_done(&f);
		if (done == BR_NOT_THERE) {
			/* the end of a name is followed by the same text, and is no call either */
			if (n == 0)
				(void)hr_utf8_next(from, r->end, &n);
			r->p = from + n;
		} else if (done != BR_READ) {
			return done;
		}
	}
}

/* Implements Python's str.expandtabs(). */
static void
expand_tabs(struct hr_buf *b, const char *p, size_t len)
{
	size_t i, column = 0;

	for (i = 0; i < len && b->fail == HR_OK; i++) {
		if (p[i] == '\t') {
			hr_buf_add(b, "        ", 8 - column % 8);
			column = 0;
			continue;
		}
		hr_buf_addc(b, p[i]);
		if (p[i] == '\n' || p[i] == '\r')
			column = 0;
		else
			column += ((unsigned char)p[i] & 0xC0) != 0x80;
	}
}

int
br_calls_find(struct br_calls *ret, const char *text, size_t len, struct hr_buf *why)
{
	struct reader r = {.why = why};
	HR_BUF(b, len * 8 + 1);
	int done = BR_NOMEM;

	*ret = (struct br_calls){0};
	expand_tabs(&b, text, len);
	r.p = hr_buf_str(&b);
	r.end = r.p + b.len;
	if (b.fail == HR_OK)
		done = find_all(&r, ret);
	if (done != BR_READ)
		br_calls_done(ret);
	return why->fail != HR_OK ? BR_NOMEM : done;
}

void
br_calls_done(struct br_calls *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		found_done(&c->v[i]);
	free(c->v);
	*c = (struct br_calls){0};
}
