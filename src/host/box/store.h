/* hr_box_store: the store of snapshots, "snapshots" below the state directory. Each entry is a
 * directory, TAG, with the copy "storage" and the record "snapshot.json". A command holds the lock
 * of the entry that it makes, reads or removes, so none waits for the work on another entry. The
 * names of unfinished and removed entries begin with a dot; the next change removes those that no
 * command holds. */
#ifndef HR_HOST_BOX_STORE_H
#define HR_HOST_BOX_STORE_H

#include "host/box/box_int.h"

#define HR_BOX_STORE "snapshots"
#define HR_BOX_RECORD_MAX (1u << 16)
#define HR_BOX_UNFINISHED 22 /* a dot, "new", 16 digits */

/* An open store, and the entry that a command holds. */
struct hr_box_store {
	char *path;
	int dir;
	char name[HR_BOX_UNFINISHED]; /* the name of an unfinished or removed entry */
	char *at;                     /* the path of that entry */
	int locks[HR_BOX_LOCKS]; /* the entry's, and that of the box that is copied; -1: none */
};
#define HR_BOX_STORE_CLOSED                                                                        \
	{                                                                                          \
		.dir = -1, .locks = { -1, -1 }                                                     \
	}

void hr_box_store_close(struct hr_box_store *s);
/* Returns 0, or -1 with *err set. */
int hr_box_check_tag(const char *tag, struct hr_err *err);
/* Reports that there is no such snapshot; always returns -1. */
int hr_box_no_snapshot(const char *tag, struct hr_err *err);

/* Opens the store, and makes it if it is missing. */
int hr_box_store_open(struct hr_box_store *s, const struct hr_backend_host *h, struct hr_err *err);
/* Opens the store and holds a snapshot: for reading, or to remove it. HR_E_NOTFOUND: there is
 * none. */
int hr_box_store_hold(struct hr_box_store *s, const struct hr_backend_host *h, const char *tag,
    bool remove, struct hr_err *err);
/* Reads the record of a snapshot. Returns NULL if there is none. */
struct json_object *hr_box_store_read(const char *store, const char *tag);

/* Replaces the record of a snapshot that is held. */
int hr_box_store_write(
    const struct hr_box_store *s, const char *tag, const char *json, struct hr_err *err);

/* Sets *ret to the tag of a new snapshot of a sandbox; the caller frees. tag NULL: one is chosen.
 * Fails if there is a snapshot of that tag. */
int hr_box_store_choose(
    const struct hr_box_store *s, const char *sid, const char *tag, char **ret, struct hr_err *err);
/* Makes an unfinished entry, and holds it. */
int hr_box_store_begin(struct hr_box_store *s, const struct hr_backend_host *h, struct hr_err *err);
/* Writes the record of the unfinished entry, and gives the entry its tag. Returns 1, 0 if another
 * command was faster with this tag, or -1 with *err set. */
int hr_box_store_finish(
    const struct hr_box_store *s, const char *tag, const char *json, struct hr_err *err);
/* Does the same, but exchanges the entry and a snapshot that has the tag. It waits for the commands
 * that read this snapshot, and removes it. */
int hr_box_store_replace(struct hr_box_store *s, const struct hr_backend_host *h, const char *tag,
    const char *json, struct hr_err *err);
/* Removes the snapshot that is held. */
int hr_box_store_remove(struct hr_box_store *s, const char *tag, struct hr_err *err);

#endif
