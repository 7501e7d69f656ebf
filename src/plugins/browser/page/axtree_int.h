/* Holds the data that axtree.c stores and axtext.c prints. */
#ifndef HR_PLUGINS_BROWSER_PAGE_AXTREE_INT_H
#define HR_PLUGINS_BROWSER_PAGE_AXTREE_INT_H

#include "plugins/browser/page/axtree.h"
#include "plugins/browser/page/tape.h"

struct ax_frame {
	char *id; /* NULL: the tree was merged before, without marks */
	char *json;
	struct br_tape tape;
	size_t first, n; /* range of the tree's nodes */
};

struct ax_node {
	uint32_t frame;
	uint32_t value; /* index on the frame's tape */
	char *bid;
	size_t child; /* the node after its children: index + 1, or 0 */
};

struct br_ax {
	struct ax_frame *frames;
	size_t n_frames;
	struct ax_node *nodes;
	size_t n, room;
	size_t *iframes;
	size_t n_iframes, room_iframes;
	bool no_nodes; /* a tree without nodes was added */
};

/* Parses the mark at the start of a text that carries an element's bid: browsergym_id_<bid>,
 * perhaps a blank. Sets the bid's span and the offset of the rest. Returns false if there is no
 * mark. */
bool br_ax_marked(const char *p, size_t len, size_t *ret_bid, size_t *ret_rest);

/* Returns a node's property "roledescription", or BR_TAPE_NONE. */
uint32_t br_ax_roledescription(const struct br_tape *t, uint32_t node);

#endif
