/* box_snapshot: copies the storage of a box while its processes are frozen, and makes the files of
 * its root a layer instead where that is safe. */
#ifndef HR_BOX_SNAPSHOT_H
#define HR_BOX_SNAPSHOT_H

#include <stdbool.h>

#include "base/err.h"
#include "box/copy.h"
#include "box/shift.h"

struct box_snapshot {
	struct box_copy copy;
	const char *group;      /* the control group to freeze meanwhile; NULL: none */
	struct box_shift shift; /* pid 0: only copy */
};

/* Makes the copy, and prints the line of --shift. The copy lacks the top if that has become a
 * layer. The group is thawed again, also after a failure. Returns 0; 1 if the copy would take more
 * than the limit; or -1 with *err. *ret_shifted: the box has the new layer. */
int box_snapshot(struct box_snapshot *s, bool *ret_shifted, struct hr_err *err);

#endif
