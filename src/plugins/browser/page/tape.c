/* Parses JSON in place, in one pass; `next` of an open list or object holds the index of the one
 * around it. */
#include "config.h"

#include "plugins/browser/page/tape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/percent.h"
#include "base/text/utf8.h"

/* The tokens that the parser accepts next. */
enum state {
	WANT_VALUE,
	WANT_VALUE_OR_CLOSE, /* expects a value of a list or its end */
	WANT_KEY_OR_CLOSE,
	WANT_KEY,
	WANT_COLON,
	WANT_COMMA_OR_CLOSE,
	WANT_END,
};

struct parser {
	struct br_tape *t;
	uint32_t at, len;
	uint32_t open; /* innermost open list or object, or BR_TAPE_NONE */
	enum state state;
	struct hr_err *err;
};

static int
broken(struct parser *p, const char *what)
{
	return hr_err_set(p->err, HR_E_PROTO, "not JSON: %s at byte %u", what, p->at);
}

static int
push(struct parser *p, enum br_tape_type type, uint32_t at, uint32_t end)
{
	struct br_tape *t = p->t;
	struct br_tape_value *grown;
	uint32_t room;

	if (t->n == BR_TAPE_VALUES_MAX)
		return hr_err_set(p->err, HR_E_TOOLARGE, "more than %u values", BR_TAPE_VALUES_MAX);
	if (t->n == t->room) {
		room = t->room == 0 ? 64 : t->room + t->room / 2;
		grown = reallocarray(t->v, room, sizeof(*grown));
		if (grown == NULL)
			return hr_err_nomem(p->err);
		t->v = grown;
		t->room = room;
	}
	t->v[t->n] = (struct br_tape_value){at, end, (t->n + 1) & BR_TAPE_NONE, type};
	t->n++;
	return 0;
}

static int
read_string(struct parser *p)
{
	const char *s = p->t->text;
	uint32_t from = ++p->at;

	for (; p->at < p->len && s[p->at] != '"'; p->at++) {
		if ((unsigned char)s[p->at] < 0x20)
			return broken(p, "a control character");
		if (s[p->at] != '\\')
			continue;
		if (++p->at == p->len || strchr("\"\\/bfnrtu", s[p->at]) == NULL ||
		    s[p->at] == '\0')
			return broken(p, "an escape");
		if (s[p->at] != 'u')
			continue;
		if (p->len - p->at <= 4 || hr_hex4(s + p->at + 1) < 0)
			return broken(p, "an escape");
		p->at += 4;
	}
	if (p->at == p->len)
		return broken(p, "a string without an end");
	return push(p, BR_TAPE_STRING, from, p->at++);
}

static int
read_number(struct parser *p)
{
	const char *s = p->t->text;
	uint32_t from = p->at;

	while (p->at < p->len && s[p->at] != '\0' && strchr("+-.0123456789eE", s[p->at]) != NULL)
		p->at++;
	if (p->at == from)
		return broken(p, "no value");
	return push(p, BR_TAPE_NUMBER, from, p->at);
}

static int
read_word(struct parser *p, const char *word, enum br_tape_type type)
{
	uint32_t n = (uint32_t)strlen(word);

	if (p->len - p->at < n || memcmp(p->t->text + p->at, word, n) != 0)
		return broken(p, "no value");
	p->at += n;
	return push(p, type, p->at - n, p->at);
}

static int
open_one(struct parser *p, enum br_tape_type type)
{
	uint32_t i = p->t->n;

	if (push(p, type, p->at++, 0) < 0)
		return -1;
	p->t->v[i].next = p->open;
	p->open = i;
	p->state = type == BR_TAPE_LIST ? WANT_VALUE_OR_CLOSE : WANT_KEY_OR_CLOSE;
	return 0;
}

static void
settle(struct parser *p)
{
	p->state = p->open == BR_TAPE_NONE ? WANT_END : WANT_COMMA_OR_CLOSE;
}

static int
close_one(struct parser *p)
{
	struct br_tape_value *v = &p->t->v[p->open];

	v->end = ++p->at;
	p->open = v->next;
	v->next = p->t->n;
	settle(p);
	return 0;
}

static int
read_value(struct parser *p)
{
	char c = p->t->text[p->at];
	int done;

	if (c == '{' || c == '[')
		return open_one(p, c == '[' ? BR_TAPE_LIST : BR_TAPE_OBJECT);
	switch (c) {
	case '"': done = read_string(p); break;
	case 't': done = read_word(p, "true", BR_TAPE_TRUE); break;
	case 'f': done = read_word(p, "false", BR_TAPE_FALSE); break;
	case 'n': done = read_word(p, "null", BR_TAPE_NULL); break;
	default: done = read_number(p); break;
	}
	settle(p);
	return done;
}

static int
step(struct parser *p)
{
	char c = p->t->text[p->at];
	bool list = p->open != BR_TAPE_NONE && p->t->v[p->open].type == BR_TAPE_LIST;

	switch (p->state) {
	case WANT_KEY_OR_CLOSE:
		if (c == '}')
			return close_one(p);
		/* fall through */
	case WANT_KEY:
		if (c != '"')
			return broken(p, "no key");
		p->state = WANT_COLON;
		return read_string(p);
	case WANT_COLON:
		if (c != ':')
			return broken(p, "no colon");
		p->at++;
		p->state = WANT_VALUE;
		return 0;
	case WANT_VALUE_OR_CLOSE:
		if (c == ']')
			return close_one(p);
		/* fall through */
	case WANT_VALUE: return read_value(p);
	case WANT_COMMA_OR_CLOSE:
		if (c == (list ? ']' : '}'))
			return close_one(p);
		if (c != ',')
			return broken(p, "no comma");
		p->at++;
		p->state = list ? WANT_VALUE : WANT_KEY;
		return 0;
	case WANT_END: break;
	}
	return broken(p, "more than one value");
}

int
br_tape_parse(struct br_tape *t, const char *text, size_t len, struct hr_err *err)
{
	struct parser p = {.t = t, .open = BR_TAPE_NONE, .err = err};

	*t = (struct br_tape){.text = text};
	if (len > BR_TAPE_TEXT_MAX)
		return hr_err_set(
		    err, HR_E_TOOLARGE, "%zu bytes; at most %u", len, BR_TAPE_TEXT_MAX);
	if (!hr_utf8_valid(text, len))
		return hr_err_set(err, HR_E_PROTO, "not UTF-8");
	p.len = (uint32_t)len;
	for (;;) {
		while (p.at < p.len && strchr(" \t\r\n", text[p.at]) != NULL && text[p.at] != '\0')
			p.at++;
		if (p.at == p.len)
			break;
		if (step(&p) < 0) {
			br_tape_done(t);
			return -1;
		}
	}
	if (p.state == WANT_END)
		return 0;
	(void)broken(&p, "an end too early");
	br_tape_done(t);
	return -1;
}

void
br_tape_done(struct br_tape *t)
{
	free(t->v);
	*t = (struct br_tape){0};
}

enum br_tape_type
br_tape_type(const struct br_tape *t, uint32_t i)
{
	return i < t->n ? (enum br_tape_type)t->v[i].type : BR_TAPE_NOTHING;
}

uint32_t
br_tape_first(const struct br_tape *t, uint32_t in)
{
	if (br_tape_type(t, in) < BR_TAPE_LIST || t->v[in].next == in + 1)
		return BR_TAPE_NONE;
	return in + 1;
}

uint32_t
br_tape_next(const struct br_tape *t, uint32_t in, uint32_t i)
{
	return i < t->n && in < t->n && t->v[i].next < t->v[in].next ? t->v[i].next : BR_TAPE_NONE;
}

uint32_t
br_tape_at(const struct br_tape *t, uint32_t object, const char *name)
{
	uint32_t key, value, found = BR_TAPE_NONE;

	if (br_tape_type(t, object) != BR_TAPE_OBJECT)
		return BR_TAPE_NONE;
	for (key = br_tape_first(t, object); key != BR_TAPE_NONE;
	     key = br_tape_next(t, object, value)) {
		value = key + 1;
		if (br_tape_is(t, key, name))
			found = value;
	}
	return found;
}

size_t
br_tape_count(const struct br_tape *t, uint32_t list)
{
	uint32_t i;
	size_t n = 0;

	if (br_tape_type(t, list) != BR_TAPE_LIST)
		return 0;
	for (i = br_tape_first(t, list); i != BR_TAPE_NONE; i = br_tape_next(t, list, i))
		n++;
	return n;
}

const char *
br_tape_raw(const struct br_tape *t, uint32_t i, size_t *ret_len)
{
	*ret_len = i < t->n ? t->v[i].end - t->v[i].at : 0;
	return i < t->n ? t->text + t->v[i].at : "";
}

/* Decodes an escape at p, after its backslash; joins two surrogates. Returns its end. */
static const char *
put_escape(struct hr_buf *b, const char *p, const char *end)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at = strchr(from, *p);
	uint32_t cp, low;

	if (*p != 'u') {
		hr_buf_addc(b, at != NULL ? to[at - from] : *p);
		return p + 1;
	}
	cp = (uint32_t)hr_hex4(p + 1);
	p += 5;
	if (cp >= 0xD800 && cp < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
		low = (uint32_t)hr_hex4(p + 2);
		if (low >= 0xDC00 && low < 0xE000) {
			cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
			p += 6;
		}
	}
	hr_utf8_add(b, cp);
	return p;
}

void
br_tape_str(const struct br_tape *t, uint32_t i, struct hr_buf *b)
{
	const char *p, *end, *slash;
	size_t len;

	if (br_tape_type(t, i) != BR_TAPE_STRING)
		return;
	p = br_tape_raw(t, i, &len);
	end = p + len;
	while (p < end) {
		slash = memchr(p, '\\', (size_t)(end - p));
		hr_buf_add(b, p, (size_t)((slash != NULL ? slash : end) - p));
		p = slash != NULL ? put_escape(b, slash + 1, end) : end;
	}
}

bool
br_tape_is(const struct br_tape *t, uint32_t i, const char *text)
{
	size_t len, want = strlen(text);
	const char *p = br_tape_raw(t, i, &len);
	struct hr_buf b;
	bool same;

	/* an escape has at most six bytes per byte of its character */
	if (br_tape_type(t, i) != BR_TAPE_STRING || len < want || len > 6 * want)
		return false;
	if (memchr(p, '\\', len) == NULL)
		return len == want && memcmp(p, text, len) == 0;
	hr_buf_init(&b, len);
	br_tape_str(t, i, &b);
	same = b.fail == HR_OK && b.len == want && memcmp(hr_buf_str(&b), text, want) == 0;
	hr_buf_done(&b);
	return same;
}

char *
br_tape_strdup(const struct br_tape *t, uint32_t i)
{
	HR_BUF(b, BR_TAPE_TEXT_MAX);

	if (br_tape_type(t, i) != BR_TAPE_STRING)
		return NULL;
	br_tape_str(t, i, &b);
	return b.p != NULL || b.fail != HR_OK ? hr_buf_take(&b) : calloc(1, 1);
}

/* Copies a number, since strtod() and strtoll() require a terminated string. */
static const char *
number_text(const struct br_tape *t, uint32_t i, char *out, size_t size)
{
	size_t len;
	const char *p = br_tape_raw(t, i, &len);

	if (br_tape_type(t, i) != BR_TAPE_NUMBER || len >= size)
		return NULL;
	memcpy(out, p, len);
	out[len] = '\0';
	return out;
}

int64_t
br_tape_int(const struct br_tape *t, uint32_t i, int64_t otherwise)
{
	char text[32], *end;
	const char *p = number_text(t, i, text, sizeof(text));
	long long v;

	if (p == NULL)
		return otherwise;
	errno = 0;
	v = strtoll(p, &end, 10);
	return *end == '\0' && errno == 0 ? v : otherwise;
}

double
br_tape_number(const struct br_tape *t, uint32_t i, double otherwise)
{
	char text[400], *end;
	const char *p = number_text(t, i, text, sizeof(text));
	double v;

	if (p == NULL)
		return otherwise;
	v = strtod(p, &end);
	return *end == '\0' ? v : otherwise;
}
