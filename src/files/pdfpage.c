/* Follows LTLayoutContainer.analyze() of pdfminer with its default LAParams. The fractions below
 * are line_overlap, char_margin, word_margin, line_margin and boxes_flow. */
#include "config.h"

#include "files/pdfpage.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define NONE SIZE_MAX
/* maxima for one page, since the work grows with their square; more stay in the page's order */
#define LINES_MAX 2000
#define BOXES_MAX 250

struct line {
	struct hr_pdf_rect at;
	size_t from, to; /* runs */
	bool blank;
	size_t box;  /* the line that made the box; NONE: in none yet */
	size_t next; /* the box's next line; NONE: the last one */
	size_t seen; /* the last line that gathered this one, + 1 */
};

struct pair {
	bool apart; /* another node is between them */
	double distance;
	size_t a, b;
};

/* The closest pair is at its top. */
struct heap {
	struct pair *p; /* borrowed */
	size_t n;
};

/* A box, or two nodes that are read one after the other. */
struct node {
	struct hr_pdf_rect at;
	size_t from, to;   /* a box's lines: indices into `order` */
	size_t kids[2];    /* the first is NONE in a box */
	struct heap pairs; /* pairs with earlier nodes, but for the one in the heap of all */
	bool joined;
};

struct layout {
	const struct hr_pdf_page *page;
	struct line *lines;
	size_t nlines;
	size_t *first;   /* each box's first line, by the line that made it */
	size_t *order;   /* lines, box by box */
	size_t *members; /* room for gather() */
	struct node *nodes;
	size_t nnodes;
	struct pair *room;   /* room for the pairs of further nodes */
	struct heap closest; /* one pair of each node */
};

static double
height(const struct hr_pdf_rect *r)
{
	return r->y1 - r->y0;
}

static double
area(const struct hr_pdf_rect *r)
{
	return (r->x1 - r->x0) * (r->y1 - r->y0);
}

static struct hr_pdf_rect
around(const struct hr_pdf_rect *a, const struct hr_pdf_rect *b)
{
	return (struct hr_pdf_rect){
	    fmin(a->x0, b->x0), fmin(a->y0, b->y0), fmax(a->x1, b->x1), fmax(a->y1, b->y1)};
}

static bool
overlap(const struct hr_pdf_rect *a, const struct hr_pdf_rect *b)
{
	return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

static bool
is_on_page(const struct layout *l, const struct hr_pdf_rect *r)
{
	const struct hr_pdf_rect page = {0, 0, l->page->width, l->page->height};

	return overlap(r, &page);
}

/* ---- lines ---- */

/* Returns true if b continues the line that a ends. */
static bool
continues(const struct hr_pdf_run *a, const struct hr_pdf_run *b)
{
	double from = a->at.x1 - a->last, to = b->at.x0 + b->first, gap = 0;

	if (b->at.y0 > a->at.y1 || a->at.y0 > b->at.y1 ||
	    fmin(height(&a->at), height(&b->at)) * 0.5 >=
		fmin(fabs(a->at.y0 - b->at.y1), fabs(a->at.y1 - b->at.y0)))
		return false;
	if (b->at.x0 > a->at.x1 || from > to)
		gap = fmin(fabs(from - to), fabs(a->at.x1 - b->at.x0));
	return gap < fmax(a->last, b->first) * 2;
}

static void
make_lines(struct layout *l)
{
	const struct hr_pdf_run *runs = l->page->runs;
	struct line *line = NULL;
	size_t i;

	for (i = 0; i < l->page->n; i++) {
		if (line == NULL || !continues(&runs[i - 1], &runs[i])) {
			line = &l->lines[l->nlines++];
			*line = (struct line){
			    .at = runs[i].at, .from = i, .blank = true, .box = NONE, .next = NONE};
		}
		line->at = around(&line->at, &runs[i].at);
		line->to = i + 1;
		line->blank = line->blank && runs[i].blank;
	}
	for (i = 0; i < l->nlines; i++)
		if (l->lines[i].at.x0 >= l->lines[i].at.x1 || height(&l->lines[i].at) <= 0)
			l->lines[i].blank = true;
}

static void
put_line(const struct layout *l, const struct line *line, struct hr_buf *out)
{
	const struct hr_pdf_run *run, *before = NULL;
	size_t i;

	for (i = line->from; i < line->to; before = run, i++) {
		run = &l->page->runs[i];
		if (before != NULL &&
		    before->at.x1 < run->at.x0 - 0.1 * fmax(run->first, height(&run->at)))
			hr_buf_addc(out, ' ');
		hr_buf_add(out, l->page->text.p + run->text, run->len);
	}
	hr_buf_addc(out, '\n');
}

/* ---- boxes ---- */

static bool
is_near(const struct hr_pdf_rect *a, const struct hr_pdf_rect *b, double d)
{
	return fabs(height(a) - height(b)) <= d &&
	       (fabs(a->x0 - b->x0) <= d || fabs(a->x1 - b->x1) <= d ||
		   fabs((a->x0 + a->x1) / 2 - (b->x0 + b->x1) / 2) <= d);
}

static void
take(struct layout *l, size_t by, size_t i, size_t *n)
{
	if (l->lines[i].seen == by + 1)
		return;
	l->lines[i].seen = by + 1;
	l->members[(*n)++] = i;
}

/* Makes a box of a line, its neighbours, and the boxes in which those are. */
static void
gather(struct layout *l, size_t by)
{
	struct line *lines = l->lines;
	double d = height(&lines[by].at) * 0.5;
	struct hr_pdf_rect near = lines[by].at;
	size_t n = 0, i, k;

	near.y0 -= d;
	near.y1 += d;
	take(l, by, by, &n);
	for (i = 0; i < l->nlines && is_on_page(l, &near); i++) {
		if (lines[i].blank || !overlap(&near, &lines[i].at) ||
		    !is_on_page(l, &lines[i].at) || !is_near(&lines[by].at, &lines[i].at, d))
			continue;
		if (i != by && lines[i].seen == by + 1)
			continue; /* boxes are taken whole */
		take(l, by, i, &n);
		for (k = lines[i].box != NONE ? l->first[lines[i].box] : NONE; k != NONE;
		     k = lines[k].next)
			take(l, by, k, &n);
	}
	for (i = 0; i < n; i++) {
		lines[l->members[i]].box = by;
		lines[l->members[i]].next = i + 1 < n ? l->members[i + 1] : NONE;
	}
	l->first[by] = l->members[0];
}

/* Appends a box to the nodes, and its lines to `order`, from the highest to the lowest. */
static void
add_box(struct layout *l, size_t box, size_t *norder)
{
	struct node *node = &l->nodes[l->nnodes++];
	const struct line *lines = l->lines;
	size_t i, k;

	*node = (struct node){.at = lines[l->first[box]].at, .from = *norder, .kids = {NONE, NONE}};
	for (i = l->first[box]; i != NONE; i = lines[i].next) {
		node->at = around(&node->at, &lines[i].at);
		for (k = (*norder)++;
		     k > node->from && lines[l->order[k - 1]].at.y1 < lines[i].at.y1; k--)
			l->order[k] = l->order[k - 1];
		l->order[k] = i;
	}
	node->to = *norder;
	l->first[box] = NONE;
}

static void
make_boxes(struct layout *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->nlines; i++)
		if (!l->lines[i].blank)
			gather(l, i);
	for (i = 0; i < l->nlines; i++)
		if (!l->lines[i].blank && l->first[l->lines[i].box] != NONE)
			add_box(l, l->lines[i].box, &n);
}

/* ---- the order of boxes ---- */

static bool
comes_before(const struct pair *a, const struct pair *b)
{
	if (a->apart != b->apart)
		return b->apart;
	if (a->distance != b->distance)
		return a->distance < b->distance;
	return a->a != b->a ? a->a < b->a : a->b < b->b;
}

static void
push(struct heap *h, struct pair p)
{
	size_t i;

	for (i = h->n++; i > 0 && comes_before(&p, &h->p[(i - 1) / 2]); i = (i - 1) / 2)
		h->p[i] = h->p[(i - 1) / 2];
	h->p[i] = p;
}

static struct pair
pop(struct heap *h)
{
	struct pair top = h->p[0], last = h->p[--h->n];
	size_t i = 0, k;

	for (; (k = 2 * i + 1) < h->n; i = k) {
		k += k + 1 < h->n && comes_before(&h->p[k + 1], &h->p[k]);
		if (!comes_before(&h->p[k], &last))
			break;
		h->p[i] = h->p[k];
	}
	h->p[i] = last;
	return top;
}

static void
push_distance(struct layout *l, struct heap *h, size_t a, size_t b)
{
	const struct hr_pdf_rect *ra = &l->nodes[a].at, *rb = &l->nodes[b].at,
				 both = around(ra, rb);

	push(h, (struct pair){false, area(&both) - area(ra) - area(rb), a, b});
}

static bool
is_over(const struct layout *l, const struct pair *p)
{
	return l->nodes[p->a].joined || l->nodes[p->b].joined;
}

/* Moves a node's closest pair to the heap of all. */
static void
offer(struct layout *l, size_t i)
{
	struct heap *h = &l->nodes[i].pairs;

	while (h->n > 0 && is_over(l, &h->p[0]))
		(void)pop(h);
	if (h->n > 0)
		push(&l->closest, pop(h));
}

static bool
is_between(const struct layout *l, const struct pair *p)
{
	struct hr_pdf_rect both = around(&l->nodes[p->a].at, &l->nodes[p->b].at);
	size_t i;

	for (i = 0; i < l->nnodes && is_on_page(l, &both); i++)
		if (i != p->a && i != p->b && !l->nodes[i].joined &&
		    overlap(&both, &l->nodes[i].at) && is_on_page(l, &l->nodes[i].at))
			return true;
	return false;
}

static double
reading_key(const struct hr_pdf_rect *r)
{
	return 0.5 * r->x0 - 1.5 * (r->y0 + r->y1);
}

static void
join(struct layout *l, size_t a, size_t b)
{
	struct node *na = &l->nodes[a], *nb = &l->nodes[b];
	bool swapped = reading_key(&nb->at) < reading_key(&na->at);
	size_t i, made = l->nnodes;

	na->joined = nb->joined = true;
	l->nodes[made] = (struct node){.at = around(&na->at, &nb->at),
	    .kids = {swapped ? b : a, swapped ? a : b},
	    .pairs = {.p = l->room}};
	for (i = 0; i < made; i++)
		if (!l->nodes[i].joined)
			push_distance(l, &l->nodes[made].pairs, made, i);
	l->room += l->nodes[made].pairs.n;
	l->nnodes++;
	offer(l, made);
}

/* Joins the closest nodes until one is left. A joined node takes most of its pairs with it: only
 * those that reach the heap of all are compared with those of other nodes. */
static void
join_all(struct layout *l)
{
	size_t i, k, boxes = l->nnodes;
	struct pair p;

	l->closest.p = l->room;
	l->room += 2 * boxes;
	for (i = 0; i < boxes; i++) {
		l->nodes[i].pairs.p = l->room;
		l->room += i;
		for (k = 0; k < i; k++)
			push_distance(l, &l->nodes[i].pairs, k, i);
		offer(l, i);
	}
	while (l->closest.n > 0) {
		p = pop(&l->closest);
		i = p.a > p.b ? p.a : p.b; /* the node whose pair this is */
		if (l->nodes[i].joined)
			continue;
		if (is_over(l, &p)) {
			offer(l, i);
		} else if (p.apart || !is_between(l, &p)) {
			join(l, p.a, p.b);
		} else {
			p.apart = true;
			push(&l->nodes[i].pairs, p);
			offer(l, i);
		}
	}
}

static void
put_node(const struct layout *l, size_t at, struct hr_buf *out)
{
	const struct node *node = &l->nodes[at];
	size_t i;

	if (node->kids[0] != NONE) {
		put_node(l, node->kids[0], out);
		put_node(l, node->kids[1], out);
		return;
	}
	for (i = node->from; i < node->to; i++)
		put_line(l, &l->lines[l->order[i]], out);
	hr_buf_addc(out, '\n');
}

static void
put_all(struct layout *l, struct hr_buf *out)
{
	size_t i;

	make_boxes(l);
	if (l->nnodes <= BOXES_MAX)
		join_all(l);
	for (i = 0; i < l->nnodes; i++)
		if (!l->nodes[i].joined)
			put_node(l, i, out);
}

void
hr_pdf_page_put(const struct hr_pdf_page *p, struct hr_buf *out)
{
	size_t n = p->n + 1, boxes = n < BOXES_MAX ? n : BOXES_MAX, i;
	HR_FREE struct line *lines = calloc(n, sizeof(*lines));
	HR_FREE size_t *places = calloc(3 * n, sizeof(*places));
	HR_FREE struct node *nodes = calloc(2 * n, sizeof(*nodes));
	HR_FREE struct pair *room = calloc(boxes * (boxes + 2), sizeof(*room));
	struct layout l = {.page = p, .lines = lines, .nodes = nodes, .room = room};
	bool arranged;

	if (lines == NULL || places == NULL || nodes == NULL || room == NULL) {
		out->fail = HR_E_NOMEM;
		return;
	}
	l.first = places;
	l.order = places + n;
	l.members = places + 2 * n;
	make_lines(&l);
	arranged = !p->ordered && l.nlines <= LINES_MAX;
	if (arranged)
		put_all(&l, out);
	for (i = 0; i < l.nlines; i++)
		if (!arranged || l.lines[i].blank)
			put_line(&l, &l.lines[i], out);
	hr_buf_addc(out, '\f');
}
