/* br_ax: the accessibility trees of a page's frames as one, and its text. Pure: fed with the
 * answers of the browser. */
#ifndef HR_PLUGINS_BROWSER_PAGE_AXTREE_H
#define HR_PLUGINS_BROWSER_PAGE_AXTREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "plugins/browser/page/props.h"

/* The ids of the frames in an answer of Page.getFrameTree (the whole message, or what is in it), in
 * the order in which their trees are to be asked for. The caller frees each and the list. */
int br_ax_frames(const char *json, size_t len, char ***ret, size_t *ret_n, struct hr_err *err);

struct br_ax;

struct br_ax *br_ax_new(void); /* NULL: no memory */
void br_ax_free(struct br_ax *ax);

/* Adds a frame's tree: an answer of Accessibility.getFullAXTree (whole message, or what is in it),
 * malloc'ed and now ax's, in case of failure as well. frame_id NULL: a tree that was merged before,
 * with its bids. */
int
br_ax_add_take(struct br_ax *ax, const char *frame_id, char *json, size_t len, struct hr_err *err);

/* The elements whose content is another frame: ask DOM.describeNode for the i-th backend node id;
 * -1: there is none of that number. Once all frames are added say what frame it is (NULL: unknown).
 */
int64_t br_ax_iframe(const struct br_ax *ax, size_t i);
void br_ax_join(struct br_ax *ax, size_t i, const char *frame_id);

/* The text of the tree. 0; 1: Python raises *why ("KeyError: 'nodes'"; clients are shown what
 * is behind the colon); -1: no memory
 * or too large: see b. */
int br_ax_text(
    const struct br_ax *ax, const struct br_props *props, struct hr_buf *b, struct hr_buf *why);

/* axtree_object of an observation: {"nodes":[...]}. */
void br_ax_json(const struct br_ax *ax, struct hr_buf *b);

#endif
