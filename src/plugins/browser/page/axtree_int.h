/* What axtree.c holds and axtext.c writes. */
#ifndef HR_PLUGINS_BROWSER_PAGE_AXTREE_INT_H
#define HR_PLUGINS_BROWSER_PAGE_AXTREE_INT_H

#include "plugins/browser/page/axtree.h"
#include "plugins/browser/page/tape.h"

struct ax_frame {
	char *id; /* NULL: merged before, and clean */
	char *json;
	struct br_tape tape;
	size_t first, n; /* its nodes */
};

struct ax_node {
	uint32_t frame;
	uint32_t value; /* on the frame's tape */
	char *bid;
	size_t child; /* what follows its own children: the index of a node + 1, or 0 */
};

struct br_ax {
	struct ax_frame *frames;
	size_t n_frames;
	struct ax_node *nodes;
	size_t n, room;
	size_t *iframes;
	size_t n_iframes, room_iframes;
	bool no_nodes; /* something was added that has none */
};

/* A text with the mark in front of it that carries an element's bid: browsergym_id_<bid>, maybe a
 * blank. The bid's span and where the text goes on; false: there is no mark. */
bool br_ax_marked(const char *p, size_t len, size_t *ret_bid, size_t *ret_rest);

/* The place of a node's property "roledescription", or BR_TAPE_NONE. */
uint32_t br_ax_roledescription(const struct br_tape *t, uint32_t node);

#endif
