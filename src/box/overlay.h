/* box_overlay: makes the overlays of a box from directories of its storage. */
#ifndef HR_BOX_OVERLAY_H
#define HR_BOX_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clean.h"
#include "base/err.h"
#include "box/spec.h"
#include "box/table.h"

/* Directories below "layers" of a storage; another overlay has the name of its place, with "-" for
 * "/". Each has the changes in "upper". */
#define BOX_OVERLAY_WHOLE "host" /* the layers of root's box with the host's programs */
#define BOX_OVERLAY_ROOT "root"  /* the layers of the root */

/* Returns name i of what an overlay has beside "upper", which copies leave out; NULL: there are no
 * more. */
const char *box_overlay_own(size_t i);
bool box_overlay_is_own(const char *name);

/* Returns the name of the attribute that is "y" for an opaque directory. `plain`: the overlay
 * belongs to a user namespace. */
const char *box_overlay_opaque(bool plain);

/* The top of a box takes the changes to its root: this directory of its storage, or the upper layer
 * of BOX_OVERLAY_ROOT where the box has a root directory of its own. */
#define BOX_OVERLAY_TOP "root"
#define BOX_OVERLAY_OWN_TOP "layers/" BOX_OVERLAY_ROOT "/upper"
#define BOX_OVERLAY_TOP_OF(root) ((root) != NULL ? BOX_OVERLAY_OWN_TOP : BOX_OVERLAY_TOP)

/* Open directories of layers, topmost first. */
struct box_lower {
	int v[BOX_BELOW_MAX + 1];
	size_t n;
};

/* Opens n directories, and appends them. Returns 0, or -1 with *err. */
int box_lower_open(struct box_lower *l, const char *const *paths, size_t n, struct hr_err *err);
void box_lower_done(struct box_lower *l);

/* The directories of an overlay, all on one file system; -1: not open. `scratch` is no part of the
 * overlay, and no box reaches it. */
struct box_overlay {
	int scratch, upper, work;
};

/* Opens the directories of the storage's overlay `name`, or makes them. Release *ret with
 * box_overlay_done() in any case. Returns 0, or -1 with *err. */
int box_overlay_open(int storage, const char *name, struct box_overlay *ret, struct hr_err *err);

/* Opens those of the overlay that is the root of a box with layers below, whose upper layer is the
 * top; `own`: the box has a root directory of its own. A missing top is made with the mode and the
 * owner of the directory `like`. `work` is the name of the working directory. */
int box_overlay_open_root(
    int storage, bool own, int like, const char *work, struct box_overlay *ret, struct hr_err *err);
void box_overlay_done(struct box_overlay *o);

/* Makes a mount without a place: an overlay of the n directories of `lower`, topmost first. More
 * than one change the caller's working directory. `plain`: the overlay belongs to a user namespace.
 * Returns a descriptor, or -1 with errno. */
int box_overlay_new(
    bool plain, const int *lower, size_t n, const struct box_overlay *o, const char *source);

/* Fills `ret` with the source by which box_table_upper() finds the directories again, or returns -1
 * with errno. */
int box_overlay_name(const struct box_overlay *o, char ret[BOX_TABLE_SOURCE]);

#endif
