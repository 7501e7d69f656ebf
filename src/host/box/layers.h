/* hr_box_layers: layers of files that boxes and snapshots share, "layers" below the state
 * directory. Each is a directory, ID, with the directory "files", which nobody changes any more,
 * and "ref", a link whose target is the ID: that is in the inode, so that a power failure leaves no
 * empty one. A storage lies on the layers to which its directory "below" has hard links of "ref":
 * 00 is the lowest. So the number of links counts the users, a storage that is removed gives its
 * layers up at once, and a command that is killed leaves a layer that the next one removes. A box
 * of which no directory "below" exists has all its files itself. */
#ifndef HR_HOST_BOX_LAYERS_H
#define HR_HOST_BOX_LAYERS_H

#include "box/copy.h"
#include "box/overlay.h"
#include "box/spec.h"
#include "host/box/box_int.h"

/* The path, below a storage, of the directory that takes the changes to the root of its box.
 * `root`: box.root, or NULL. */
#define hr_box_top(root) BOX_OVERLAY_TOP_OF(root)

/* Lists the directories "files" on which a storage lies, topmost first. Returns 0, or -1 with *err
 * set. */
int
hr_box_below(const char *state_dir, const char *storage, struct hr_strv *ret, struct hr_err *err);
/* Lets the storage `to`, which has none, lie on the layers of `from`. The caller keeps `from`. */
int hr_box_below_share(const char *from, const char *to, struct hr_err *err);

/* A new layer, held by this process. */
struct hr_box_layer {
	char *path; /* the layer's directory */
	char *link; /* the layer's name in the storage */
	int lock;
};
#define HR_BOX_LAYER_NONE                                                                          \
	{                                                                                          \
		.lock = -1                                                                         \
	}
/* Makes a layer without files for a storage. */
int hr_box_layer_begin(
    struct hr_box_layer *l, const char *state_dir, const char *storage, struct hr_err *err);
/* Frees the members. Removes a layer that has no files. */
void hr_box_layer_end(struct hr_box_layer *l);
/* Makes a layer of the top of a storage that no box uses. Returns 0, also where the file system
 * cannot, or -1 with *err set. */
int hr_box_layer_freeze(
    const char *state_dir, const char *storage, const char *top, struct hr_err *err);

/* The references of a storage that its running box may still need. */
#define HR_BOX_BELOW_OLD "below.old"
/* Removes them when the box has left their layers. Returns 0, or -1 with *err set. */
int hr_box_below_forget(const char *storage, struct hr_err *err);

/* Completes the change of a running box's layers in which a command was killed, and joins layers if
 * the box has as many as it can have. */
int hr_box_layers_repair(const struct hr_box *b, struct hr_err *err);

#endif
