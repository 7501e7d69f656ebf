/* br_props: stores properties of a page's elements by bid, in addition to the accessibility
 * tree. */
#ifndef HR_PLUGINS_BROWSER_PAGE_PROPS_H
#define HR_PLUGINS_BROWSER_PAGE_PROPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct br_prop {
	char *bid;
	double visibility; /* NAN: null */
	double bbox[4];    /* x, y, width, height in the viewport's coordinates */
	bool has_bbox;
	bool clickable;
	signed char marked; /* set_of_marks: 0, 1; -1: null */
};

struct br_props {
	struct br_prop *v; /* sorted by document */
	size_t n, room;
	size_t *slots; /* hash table of the bids: index + 1 */
	size_t n_slots;
	uint64_t seed; /* random, because pages choose their bids */
};

void br_props_init(struct br_props *p);
void br_props_done(struct br_props *p);
/* Returns NULL if there is no entry. */
const struct br_prop *br_props_find(const struct br_props *p, const char *bid);
/* Returns the entry of this bid, perhaps a new one without values; NULL without memory. */
struct br_prop *br_props_put(struct br_props *p, const char *bid);
/* Appends extra_element_properties of an observation. */
void br_props_json(struct hr_buf *b, const struct br_props *p);

#endif
