/* hr_box_snapshots: the snapshots of boxes below the state directory (store.h). */
#ifndef HR_HOST_BOX_SNAPSHOT_H
#define HR_HOST_BOX_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/handrail-backend.h"

struct hr_sandbox;

struct hr_box_bounds {
	int64_t most;  /* bytes; 0: no limit */
	bool replaces; /* true: takes the place of a snapshot with its tag; false: such a tag is an
			* error */
	bool counted;  /* true: the record has "files" and "bytes"; false: a list counts them */
};

/* Makes a snapshot, as hr_sandbox_snapshot(). Returns 0, or -1 with *err set and nothing changed,
 * HR_E_TOOLARGE if it would take more than it may. */
int hr_box_snapshot_within(struct hr_sandbox *s, const char *tag,
    const struct hr_box_bounds *bounds, char **ret_json, struct hr_err *err);

/* Lists the records of the snapshots whose tags begin with `prefix` as a JSON array, in the order
 * of their tags; the caller frees. `counted`: all have "files" and "bytes", for which each file
 * of a snapshot is looked at once, or "uncounted" with the reason why not. Returns 0, or -1 with
 * *err set. */
int hr_box_snapshots(
    const char *state_dir, const char *prefix, bool counted, char **ret_json, struct hr_err *err);

/* Removes a snapshot below h->state_dir, and reports a wait by h->log(). Boxes that were started
 * from it keep its files. Returns 0, or -1 with *err set, HR_E_NOTFOUND if there is none. */
int hr_box_snapshot_remove(const struct hr_backend_host *h, const char *tag, struct hr_err *err);

/* Writes a snapshot to fd as an image: a tar archive with the layout of OCI, whose layer has the
 * differences to the system below the box. Reports a wait by h->log(). Returns 0, or -1 with *err
 * set, HR_E_NOTFOUND if there is none. */
int hr_box_snapshot_export(
    const struct hr_backend_host *h, const char *tag, int fd, struct hr_err *err);
/* Makes a snapshot of such an archive, which may be hostile, in the same way. *ret_json is its
 * record; the caller frees. Returns 0, or -1 with *err set and nothing made. */
int hr_box_snapshot_import(
    const struct hr_backend_host *h, const char *tag, int fd, char **ret_json, struct hr_err *err);

#endif
