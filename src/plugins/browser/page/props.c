/* Stores properties by bid: a list, and a hash table with open addressing that points into the
 * list. */
#include "config.h"

#include "plugins/browser/page/props.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/floatrepr.h"
#include "base/grow.h"
#include "base/random.h"
#include "proto/json.h"

void
br_props_init(struct br_props *p)
{
	*p = (struct br_props){0};
}

void
br_props_done(struct br_props *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		free(p->v[i].bid);
	free(p->v);
	free(p->slots);
	br_props_init(p);
}

static size_t
hash(uint64_t h, const char *bid)
{
	for (; *bid != '\0'; bid++)
		h = (h ^ (unsigned char)*bid) * UINT64_C(0x100000001b3);
	return (size_t)(h ^ h >> 32);
}

/* Returns the slot of this bid, or a free one for it. */
static size_t
slot_of(const struct br_props *p, const char *bid)
{
	size_t i = hash(p->seed, bid) & (p->n_slots - 1);

	while (p->slots[i] != 0 && strcmp(p->v[p->slots[i] - 1].bid, bid) != 0)
		i = (i + 1) & (p->n_slots - 1);
	return i;
}

const struct br_prop *
br_props_find(const struct br_props *p, const char *bid)
{
	size_t i = p->n_slots > 0 ? p->slots[slot_of(p, bid)] : 0;

	return i > 0 ? &p->v[i - 1] : NULL;
}

/* Makes room for one more entry, and keeps the table at most half full. Returns -1 without memory
 * or random bytes. */
static int
grow(struct br_props *p)
{
	size_t n = p->n_slots > 0 ? p->n_slots * 2 : 64, i;
	size_t *slots;

	if (hr_grow(&p->v, p->n, &p->room, sizeof(*p->v)) < 0)
		return -1;
	if (p->n * 2 < p->n_slots)
		return 0;
	if (p->n_slots == 0 && hr_random(&p->seed, sizeof(p->seed), NULL) < 0)
		return -1;
	slots = calloc(n, sizeof(*slots));
	if (slots == NULL)
		return -1;
	free(p->slots);
	p->slots = slots;
	p->n_slots = n;
	for (i = 0; i < p->n; i++)
		p->slots[slot_of(p, p->v[i].bid)] = i + 1;
	return 0;
}

struct br_prop *
br_props_put(struct br_props *p, const char *bid)
{
	size_t slot;
	char *copy;

	if (grow(p) < 0)
		return NULL;
	slot = slot_of(p, bid);
	if (p->slots[slot] != 0)
		return &p->v[p->slots[slot] - 1];
	copy = strdup(bid);
	if (copy == NULL)
		return NULL;
	p->v[p->n] = (struct br_prop){.bid = copy, .visibility = NAN, .marked = -1};
	p->slots[slot] = ++p->n;
	return &p->v[p->n - 1];
}

/* Prints a number as the browser did: whole numbers without a fraction. */
static void
put_number(struct hr_buf *b, double d)
{
	if (d == floor(d) && fabs(d) < 1e15)
		hr_buf_addf(b, "%.0f", d);
	else
		hr_float_repr(b, d);
}

static void
put_one(struct hr_buf *b, const struct br_prop *v)
{
	int i;

	hr_json_put_str(b, v->bid, strlen(v->bid), HR_JSON_REPLACE);
	hr_buf_adds(b, ":{\"visibility\":");
	if (isfinite(v->visibility))
		hr_float_repr(b, v->visibility);
	else
		hr_buf_adds(b, "null");
	hr_buf_adds(b, v->has_bbox ? ",\"bbox\":[" : ",\"bbox\":null");
	for (i = 0; v->has_bbox && i < 4; i++) {
		hr_buf_adds(b, i > 0 ? "," : "");
		put_number(b, v->bbox[i]);
	}
	hr_buf_addf(b, "%s,\"clickable\":%s,\"set_of_marks\":%s}", v->has_bbox ? "]" : "",
	    v->clickable ? "true" : "false",
	    v->marked < 0   ? "null"
	    : v->marked > 0 ? "true"
			    : "false");
}

void
br_props_json(struct hr_buf *b, const struct br_props *p)
{
	size_t i;

	hr_buf_addc(b, '{');
	for (i = 0; i < p->n; i++) {
		hr_buf_adds(b, i > 0 ? "," : "");
		put_one(b, &p->v[i]);
	}
	hr_buf_addc(b, '}');
}
