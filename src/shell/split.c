/* Turns complete commands into pieces: each command includes the text between it and the next. */
#include "config.h"

#include "shell/split.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "base/text/utf8.h"
#include "shell/parse.h"

struct span {
	size_t start, end;
};

struct spans {
	struct span *v;
	size_t n, room;
};

/* Reads all complete commands of a text. Returns -1 if it cannot be parsed, if it contains no
 * command, or, with st->nomem set, if memory runs out. */
static int
spans_read(struct spans *sp, const char *text, size_t len, struct hr_shell_state *st)
{
	struct hr_shell_parser p;
	struct hr_shell_unit u;
	int r;

	hr_shell_parser_init(&p, text, len, false, st);
	while ((r = hr_shell_parse_unit(&p, &u)) == 0 && !u.blank) {
		st->nomem = hr_grow(&sp->v, sp->n, &sp->room, sizeof(*sp->v)) != 0;
		if (st->nomem)
			break;
		sp->v[sp->n++] = (struct span){u.start, u.end};
	}
	hr_shell_parser_done(&p);
	return r == 0 && sp->n > 0 ? 0 : -1;
}

void
hr_shell_pieces_done(struct hr_shell_pieces *p)
{
	free(p->v);
	free(p->store);
	memset(p, 0, sizeof(*p));
}

static int
pieces_alloc(struct hr_shell_pieces *p, size_t n, size_t bytes, struct hr_err *err)
{
	memset(p, 0, sizeof(*p));
	p->v = calloc(n, sizeof(*p->v));
	p->store = malloc(bytes + n);
	if (p->v && p->store)
		return 0;
	hr_shell_pieces_done(p);
	return hr_err_nomem(err);
}

/* Appends s to the piece being written at *at, without trailing white space. */
static void
piece_add(struct hr_shell_piece *piece, char **at, const char *s, size_t len)
{
	len = hr_utf8_rstrip(s, len);
	memcpy(*at, s, len);
	*at += len;
	piece->len += len;
}

static struct hr_shell_piece *
piece_begin(struct hr_shell_pieces *p, const char *at)
{
	struct hr_shell_piece *piece = &p->v[p->n++];

	piece->text = at;
	return piece;
}

static int
build(const char *text, size_t len, const struct spans *sp, struct hr_shell_pieces *ret,
    struct hr_err *err)
{
	struct hr_shell_piece *piece;
	char *at;
	size_t i;

	if (pieces_alloc(ret, sp->n + 1, len, err))
		return -1;
	at = ret->store;
	if (hr_utf8_rstrip(text, sp->v[0].start) > 0) {
		piece = piece_begin(ret, at);
		piece->comment = true;
		piece_add(piece, &at, text, sp->v[0].start);
		*at++ = '\0';
	}
	for (i = 0; i < sp->n; i++) {
		const struct span *s = &sp->v[i];
		size_t next = i + 1 < sp->n ? s[1].start : len;

		piece = piece_begin(ret, at);
		piece_add(piece, &at, text + s->start, s->end - s->start);
		piece_add(piece, &at, text + s->end, next - s->end);
		*at++ = '\0';
	}
	ret->verdict = HR_SHELL_PARSED;
	return 0;
}

static int
build_single(const char *text, size_t len, enum hr_shell_verdict verdict,
    struct hr_shell_pieces *ret, struct hr_err *err)
{
	if (pieces_alloc(ret, 1, len, err))
		return -1;
	if (len > 0)
		memcpy(ret->store, text, len);
	ret->store[len] = '\0';
	ret->v[0].text = ret->store;
	ret->v[0].len = len;
	ret->n = 1;
	ret->verdict = verdict;
	return 0;
}

int
hr_shell_split(const char *text, size_t len, struct hr_shell_pieces *ret, struct hr_err *err)
{
	struct hr_shell_state st = {0};
	struct spans sp = {0};
	int r;

	if (hr_utf8_rstrip(text, len) == 0)
		return build_single("", 0, HR_SHELL_BLANK, ret, err);
	r = spans_read(&sp, text, len, &st);
	if (st.nomem)
		r = hr_err_nomem(err);
	else if (r == 0)
		r = build(text, len, &sp, ret, err);
	else
		r = build_single(text, len, HR_SHELL_UNPARSABLE, ret, err);
	free(sp.v);
	return r;
}

void
hr_shell_add_unix(struct hr_buf *b, const char *p, size_t len)
{
	const char *end = p + len, *cr;

	while ((cr = memmem(p, (size_t)(end - p), "\r\n", 2)) != NULL) {
		hr_buf_add(b, p, (size_t)(cr - p));
		p = cr + 1;
	}
	hr_buf_add(b, p, (size_t)(end - p));
}

/* Counts the trailing backslashes. */
static size_t
count_slashes(const char *p, size_t len)
{
	size_t n = 0;

	while (n < len && p[len - 1 - n] == '\\')
		n++;
	return n;
}

void
hr_shell_trim(const char **p, size_t *len)
{
	const char *end = *p + *len;

	hr_utf8_strip(p, len);
	if (count_slashes(*p, *len) % 2 != 0 && *p + *len < end &&
	    ((*p)[*len] == ' ' || (*p)[*len] == '\t'))
		(*len)++;
}

int
hr_shell_add_one(struct hr_buf *b, const char *p, size_t len, bool braces)
{
	struct hr_shell_pieces pieces = {0};
	HR_BUF(text, len + 1);
	bool goes_on;

	hr_shell_trim(&p, &len);
	hr_shell_add_unix(&text, p, len);
	if (text.fail != HR_OK || hr_shell_split(hr_buf_str(&text), text.len, &pieces, NULL) < 0)
		return -1;
	goes_on = count_slashes(p, len) % 2 != 0; /* bash continues the word in the next line */
	braces |= goes_on || hr_shell_pieces_refused(&pieces);
	hr_shell_pieces_done(&pieces);
	if (braces)
		hr_buf_adds(b, "{\n");
	hr_buf_add(b, hr_buf_str(&text), text.len);
	if (braces)
		hr_buf_adds(b, goes_on ? "\n\n}" : "\n}");
	return b->fail == HR_OK ? 0 : -1;
}

bool
hr_shell_pieces_refused(const struct hr_shell_pieces *p)
{
	size_t commands = 0, i;

	for (i = 0; i < p->n; i++)
		commands += !p->v[i].comment;
	return commands > 1;
}

char *
hr_shell_refusal_text(const struct hr_shell_pieces *p, size_t *ret_len, struct hr_err *err)
{
	HR_BUF(b, (size_t)-1 / 2);
	size_t i;

	hr_buf_adds(&b,
	    "ERROR: Cannot execute multiple commands at once.\n"
	    "Please run each command separately OR chain them into a single command via "
	    "&& or ;\n"
	    "Provided commands:");
	for (i = 0; i < p->n; i++) {
		hr_buf_addf(&b, "\n(%zu) ", i + 1);
		hr_buf_add(&b, p->v[i].text, p->v[i].len);
	}
	if (ret_len)
		*ret_len = b.len;
	return hr_buf_end(&b, err);
}
