/* Implements difflib.SequenceMatcher over lines. Equal lines first get equal numbers, so that the
 * matcher compares integers. */
#include "config.h"

#include "files/diff.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "files/pytext.h"

#define WORK_MAX 400000000u /* maximum steps; so many take about a second */
#define POPULAR_FROM 200    /* lines of the new text */
#define NO_LINE UINT32_MAX

struct side {
	const char *p;
	uint32_t n;
	size_t *at;   /* n + 1 offsets of lines; each line ends one byte before the next */
	uint32_t *id; /* n entries: equal lines have equal numbers */
};

struct block {
	uint32_t a, b, len;
};

struct range {
	uint32_t alo, ahi, blo, bhi;
};

struct matcher {
	struct side a, b;
	uint32_t ids;
	uint32_t *table; /* hash table of ids, by their first lines */
	size_t table_mask;
	const char **id_p; /* the text of each id */
	size_t *id_len;
	uint32_t *first; /* ids + 1 indexes into positions: the lines of b per id, ascending */
	uint32_t *positions;
	uint32_t *row,
	    *before; /* length of the block that ends in line j of b, for this row and the last */
	struct range *todo;
	size_t todo_n, todo_room;
	struct block *blocks;
	size_t blocks_n, blocks_room;
	uint64_t work;
};

/* ---- lines ---- */

static int
side_init(struct side *s, struct hr_span text)
{
	const char *p = text.p, *end = p + text.len;
	size_t n = hr_pytext_newlines(p, text.len) + 1, i = 0;

	if (n >= NO_LINE)
		return -1;
	s->p = p;
	s->n = (uint32_t)n;
	s->at = malloc((n + 1) * sizeof(*s->at));
	s->id = malloc(n * sizeof(*s->id));
	if (s->at == NULL || s->id == NULL)
		return -1;
	s->at[i++] = 0;
	while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL)
		s->at[i++] = (size_t)(++p - text.p);
	s->at[i] = text.len + 1;
	return 0;
}

static size_t
line_len(const struct side *s, uint32_t i)
{
	return s->at[i + 1] - s->at[i] - 1;
}

/* Hashes a line only to spread lines over the table: they are compared for equality. Takes eight
 * bytes at a time, since every byte of both texts passes here. */
static size_t
spread(const char *p, size_t len)
{
	uint64_t h = len, w;

	for (; len >= sizeof(w); p += sizeof(w), len -= sizeof(w)) {
		memcpy(&w, p, sizeof(w));
		h = (h ^ w) * 0x9E3779B97F4A7C15u;
		h ^= h >> 32;
	}
	w = 0;
	memcpy(&w, p, len);
	h = (h ^ w) * 0x9E3779B97F4A7C15u;
	return (size_t)(h ^ h >> 29);
}

static uint32_t
line_id(struct matcher *m, const char *p, size_t len)
{
	size_t slot = spread(p, len) & m->table_mask;
	uint32_t id;

	for (; (id = m->table[slot]) != NO_LINE; slot = (slot + 1) & m->table_mask)
		if (m->id_len[id] == len && memcmp(m->id_p[id], p, len) == 0)
			return id;
	id = m->ids++;
	m->id_p[id] = p;
	m->id_len[id] = len;
	m->table[slot] = id;
	return id;
}

static int
number_lines(struct matcher *m)
{
	size_t n = (size_t)m->a.n + m->b.n, room = 16;
	uint32_t i;

	while (room < n * 2)
		room *= 2;
	m->table = malloc(room * sizeof(*m->table));
	m->id_p = malloc(n * sizeof(*m->id_p));
	m->id_len = malloc(n * sizeof(*m->id_len));
	if (m->table == NULL || m->id_p == NULL || m->id_len == NULL)
		return -1;
	memset(m->table, 0xFF, room * sizeof(*m->table));
	m->table_mask = room - 1;
	for (i = 0; i < m->b.n; i++)
		m->b.id[i] = line_id(m, m->b.p + m->b.at[i], line_len(&m->b, i));
	for (i = 0; i < m->a.n; i++)
		m->a.id[i] = line_id(m, m->a.p + m->a.at[i], line_len(&m->a, i));
	return 0;
}

/* Lists where each line occurs in b; popular lines are not listed. */
static int
index_b(struct matcher *m)
{
	uint32_t limit = m->b.n >= POPULAR_FROM ? m->b.n / 100 + 1 : NO_LINE, i, n, at = 0;
	HR_FREE uint32_t *count = calloc((size_t)m->ids + 1, sizeof(*count));

	m->first = malloc(((size_t)m->ids + 1) * sizeof(*m->first));
	m->positions = malloc((size_t)m->b.n * sizeof(*m->positions));
	m->row = calloc((size_t)m->b.n + 1, sizeof(*m->row));
	m->before = calloc((size_t)m->b.n + 1, sizeof(*m->before));
	if (count == NULL || m->first == NULL || m->positions == NULL || m->row == NULL ||
	    m->before == NULL)
		return -1;
	for (i = 0; i < m->b.n; i++)
		count[m->b.id[i]]++;
	for (i = 0; i < m->ids; i++) {
		n = count[i] > limit ? 0 : count[i];
		m->first[i] = at;
		at += n;
		count[i] = n;
	}
	m->first[m->ids] = at;
	/* goes backwards, so that the counts end at the first position */
	for (i = m->b.n; i-- > 0;) {
		n = m->b.id[i];
		if (count[n] > 0)
			m->positions[m->first[n] + --count[n]] = i;
	}
	return 0;
}

/* ---- blocks ---- */

static void
clear_row(struct matcher *m, uint32_t *row, uint32_t id)
{
	uint32_t k;

	for (k = m->first[id]; k < m->first[id + 1]; k++)
		row[m->positions[k] + 1] = 0;
}

/* Finds the longest block. m->row[j + 1] holds the length of the block that ends in a[i] and b[j],
 * m->before[j + 1] that of the block that ends in a[i - 1] and b[j]. All of m->row and m->before is
 * zero before the call and after it. */
static struct block
longest_indexed(struct matcher *m, const struct range *r)
{
	struct block best = {r->alo, r->blo, 0};
	uint32_t i, j, k, len, id, *swap;

	for (i = r->alo; i < r->ahi && m->work <= WORK_MAX; i++) {
		id = m->a.id[i];
		for (k = m->first[id]; k < m->first[id + 1]; k++) {
			j = m->positions[k];
			if (j < r->blo)
				continue;
			if (j >= r->bhi)
				break;
			len = m->before[j] + 1;
			m->row[j + 1] = len;
			if (len > best.len)
				best = (struct block){i + 1 - len, j + 1 - len, len};
		}
		m->work += k - m->first[id] + 1;
		if (i > r->alo)
			clear_row(m, m->before, m->a.id[i - 1]);
		swap = m->before;
		m->before = m->row;
		m->row = swap;
	}
	if (r->ahi > r->alo)
		clear_row(m, m->before, m->a.id[r->ahi - 1]);
	return best;
}

static struct block
longest_block(struct matcher *m, const struct range *r)
{
	struct block x = longest_indexed(m, r);

	while (x.a > r->alo && x.b > r->blo && m->a.id[x.a - 1] == m->b.id[x.b - 1]) {
		x.a--;
		x.b--;
		x.len++;
	}
	while (x.a + x.len < r->ahi && x.b + x.len < r->bhi &&
	       m->a.id[x.a + x.len] == m->b.id[x.b + x.len])
		x.len++;
	m->work += x.len;
	return x;
}

static int
push_range(struct matcher *m, uint32_t alo, uint32_t ahi, uint32_t blo, uint32_t bhi)
{
	if (alo >= ahi || blo >= bhi)
		return 0;
	if (hr_grow(&m->todo, m->todo_n, &m->todo_room, sizeof(*m->todo)) < 0)
		return -1;
	m->todo[m->todo_n++] = (struct range){alo, ahi, blo, bhi};
	return 0;
}

static int
push_block(struct matcher *m, struct block x)
{
	if (hr_grow(&m->blocks, m->blocks_n, &m->blocks_room, sizeof(*m->blocks)) < 0)
		return -1;
	m->blocks[m->blocks_n++] = x;
	return 0;
}

static int
compare_blocks(const void *p, const void *q)
{
	const struct block *x = p, *y = q;

	return x->a != y->a ? (x->a < y->a ? -1 : 1) : x->b < y->b ? -1 : x->b > y->b;
}

/* Matches the common start and the common end only. */
static int
match_ends(struct matcher *m)
{
	uint32_t n = m->a.n < m->b.n ? m->a.n : m->b.n, head = 0, tail = 0;

	while (head < n && m->a.id[head] == m->b.id[head])
		head++;
	while (tail < n - head && m->a.id[m->a.n - 1 - tail] == m->b.id[m->b.n - 1 - tail])
		tail++;
	m->blocks_n = 0;
	if (head > 0 && push_block(m, (struct block){0, 0, head}) < 0)
		return -1;
	if (tail > 0 && push_block(m, (struct block){m->a.n - tail, m->b.n - tail, tail}) < 0)
		return -1;
	return 0;
}

static int
match(struct matcher *m)
{
	struct range r;
	struct block x;

	if (push_range(m, 0, m->a.n, 0, m->b.n) < 0)
		return -1;
	while (m->todo_n > 0) {
		r = m->todo[--m->todo_n];
		x = longest_block(m, &r);
		if (m->work > WORK_MAX) {
			if (match_ends(m) < 0)
				return -1;
			/* the rows are not zero any more, so no further block can be found */
			break;
		}
		if (x.len == 0)
			continue;
		if (push_block(m, x) < 0 || push_range(m, r.alo, x.a, r.blo, x.b) < 0 ||
		    push_range(m, x.a + x.len, r.ahi, x.b + x.len, r.bhi) < 0)
			return -1;
	}
	if (m->blocks_n > 1)
		qsort(m->blocks, m->blocks_n, sizeof(*m->blocks), compare_blocks);
	return push_block(m, (struct block){m->a.n, m->b.n, 0});
}

/* ---- text ---- */

static void
put_line(struct hr_buf *b, const char *prefix, const char *p, size_t len)
{
	hr_buf_addc(b, '\n');
	hr_buf_adds(b, prefix);
	hr_buf_add(b, p, hr_pytext_rstrip(p, len));
}

static void
put_range(struct hr_buf *b, char sign, uint32_t from, uint32_t to)
{
	if (to - from == 1)
		hr_buf_addf(b, "%c%u", sign, from + 1);
	else if (to == from)
		hr_buf_addf(b, "%c%u,0", sign, from);
	else
		hr_buf_addf(b, "%c%u,%u", sign, from + 1, to - from);
}

static void
put_lines(struct hr_buf *b, const char *prefix, const struct side *s, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		put_line(b, prefix, s->p + s->at[from], line_len(s, from));
}

static void
put_header(struct hr_buf *b, const char *prefix, struct hr_span path)
{
	size_t len = hr_pytext_rstrip(path.p, path.len);

	hr_buf_adds(b, prefix);
	if (len > 0)
		hr_buf_addc(b, ' ');
	hr_buf_add(b, path.p, len);
}

static void
put_groups(struct hr_buf *b, const struct matcher *m, struct hr_span path)
{
	uint32_t i = 0, j = 0;
	bool any = false;
	size_t k;

	for (k = 0; k < m->blocks_n; k++) {
		const struct block *x = &m->blocks[k];

		if (i < x->a || j < x->b) {
			if (!any) {
				put_header(b, "---", path);
				put_header(b, "\n+++", path);
			}
			any = true;
			hr_buf_adds(b, "\n@@ ");
			put_range(b, '-', i, x->a);
			hr_buf_addc(b, ' ');
			put_range(b, '+', j, x->b);
			hr_buf_adds(b, " @@");
			put_lines(b, "-", &m->a, i, x->a);
			put_lines(b, "+", &m->b, j, x->b);
		}
		i = x->a + x->len;
		j = x->b + x->len;
	}
}

static void
matcher_done(struct matcher *m)
{
	free(m->a.at);
	free(m->a.id);
	free(m->b.at);
	free(m->b.id);
	free(m->table);
	free(m->id_p);
	free(m->id_len);
	free(m->first);
	free(m->positions);
	free(m->row);
	free(m->before);
	free(m->todo);
	free(m->blocks);
}

int
hr_diff(struct hr_buf *b, struct hr_span old, struct hr_span new, struct hr_span path,
    struct hr_err *err)
{
	HR_CLEAN(matcher_done) struct matcher m = {.ids = 0};
	int r = 0;

	if (old.len == new.len && memcmp(old.p, new.p, old.len) == 0)
		return 0;
	if (side_init(&m.a, old) < 0 || side_init(&m.b, new) < 0 || number_lines(&m) < 0 ||
	    index_b(&m) < 0 || match(&m) < 0)
		r = hr_err_nomem(err);
	else
		put_groups(b, &m, path);
	return r;
}
