/* hr_fleet_copies: branches and snapshots of sandboxes. A branch is a sandbox as any other; its
 * request is its parent's, with the member "fork". A snapshot belongs to a key: its tag is the
 * number of the key, a dot and the name that the client knows. */
#ifndef HR_FLEET_COPIES_H
#define HR_FLEET_COPIES_H

#include "fleet/fleet.h"

#define HR_FLEET_FORK_MAX 100
#define HR_FLEET_SNAPSHOTS_MAX 100 /* snapshots of one key */
#define HR_FLEET_SNAPSHOT_NAME 101
#define HR_FLEET_TAG (HR_FLEET_SNAPSHOT_NAME + 24)

struct hr_fleet_fork {
	const char *id;              /* the parent */
	const char *const *sessions; /* one for each branch, at most HR_FLEET_FORK_MAX */
	size_t n;
	bool freeze; /* copies although a command runs or a file is open for writing */
	const struct hr_fleet_term *term; /* NULL: no end */
};

/* Forks a sandbox of the key, and waits until the branches run, or this process leaves. Fills n
 * rows, which the caller frees also after an error, and *ret_json with the engine's answer, as of
 * hr_box_fork(). All branches exist, or none, also after a kill of the service: it continues with
 * all of them, as with starts, or removes them. rows[0] is the parent's after HR_FLEET_CONFLICT. */
enum hr_fleet_result
hr_fleet_fork(struct hr_fleet *f, const struct hr_fleet_key *k, const struct hr_fleet_fork *how,
    struct hr_fleet_row *rows, char **ret_json, struct hr_err *err);

/* Writes the tag of a snapshot. Returns -1 with *err set if the name is not valid. */
int hr_fleet_tag(int64_t key, const char *name, char ret[HR_FLEET_TAG], struct hr_err *err);
struct hr_fleet_copy {
	const char *id;   /* the sandbox */
	const char *name; /* NULL: a new one */
	bool replaces;    /* takes the place of the key's snapshot with that name */
};
/* Copies the files of a sandbox of the key. Those of one key are made one after another, so that
 * the limits hold. The caller puts *ret, an entry of the list. */
enum hr_fleet_result
hr_fleet_snapshot(struct hr_fleet *f, const struct hr_fleet_key *k, const struct hr_fleet_copy *how,
    struct hr_fleet_row *row, struct json_object **ret, struct hr_err *err);
/* Lists the snapshots of the key whose names begin with `prefix`: [{"name", "runtime_id",
 * "created", "files", "bytes", "still"}]. `key` 0: those of all keys, with the member "key". The
 * caller puts *ret. */
int hr_fleet_snapshots(struct hr_fleet *f, int64_t key, const char *prefix,
    struct json_object **ret, struct hr_err *err);
/* Returns 1 if the key has a snapshot of that name, 0, or -1 with *err set. */
int hr_fleet_has_snapshot(struct hr_fleet *f, int64_t key, const char *name, struct hr_err *err);
/* Removes a snapshot; sandboxes that were started from it stay. HR_FLEET_NOT_FOUND: there is none.
 */
enum hr_fleet_result
hr_fleet_unsnapshot(struct hr_fleet *f, int64_t key, const char *name, struct hr_err *err);

#endif
