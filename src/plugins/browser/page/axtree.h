/* br_ax: joins the accessibility trees of a page's frames, and prints them. Pure: it is fed with
 * the browser's replies. */
#ifndef HR_PLUGINS_BROWSER_PAGE_AXTREE_H
#define HR_PLUGINS_BROWSER_PAGE_AXTREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "plugins/browser/page/props.h"

/* Lists the frames' ids in a reply to Page.getFrameTree (whole message or its result), in the order
 * to query their trees. The caller frees each, and the list. */
int br_ax_frames(const char *json, size_t len, char ***ret, size_t *ret_n, struct hr_err *err);

struct br_ax;

struct br_ax *br_ax_new(void); /* Returns NULL without memory. */
void br_ax_free(struct br_ax *ax);

/* Adds a frame's tree: a reply to Accessibility.getFullAXTree (whole message or its result),
 * malloc'ed, whose ownership it takes even on failure. frame_id NULL: a tree that was merged
 * before, with bids. */
int
br_ax_add_take(struct br_ax *ax, const char *frame_id, char *json, size_t len, struct hr_err *err);

/* Returns the i-th element with a frame as content: query DOM.describeNode for this backend node
 * id. Returns -1 if there is no such element. When all frames are added, pass its frame (NULL:
 * unknown). */
int64_t br_ax_iframe(const struct br_ax *ax, size_t i);
void br_ax_join(struct br_ax *ax, size_t i, const char *frame_id);

/* Prints the tree. Returns 0; 1 if Python raises *why ("KeyError: 'nodes'"; clients see the part
 * after the colon); -1 without memory or if the tree is too large: see b. */
int br_ax_text(
    const struct br_ax *ax, const struct br_props *props, struct hr_buf *b, struct hr_buf *why);

/* Appends axtree_object of an observation: {"nodes":[...]}. */
void br_ax_json(const struct br_ax *ax, struct hr_buf *b);

#endif
