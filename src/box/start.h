/* box_start: turns a document into a running box. */
#ifndef HR_BOX_START_H
#define HR_BOX_START_H

#include "box/spec.h"

/* Starts the box, and waits until its program runs. control < 0: in the foreground, the box ends
 * with this process, whose terminal and standard streams it has; then the call waits for its end
 * and sets *ret_status to the program's exit status as shells number it. Otherwise the box is
 * detached: *ret_status is 0 when the program runs. `control` is a socket: {"pid": N, "started": N,
 * "groups": [PATH, ...], "lacks": "LINES"} and a line feed are sent when the box's first process
 * exists, and nothing is done in it until a byte comes back; if the socket ends without a byte the
 * box ends. "started" is field 22 of /proc/N/stat, and "lacks" has the lines of box_start_lacks().
 * Returns 0, or -1 with *err and nothing left of the box except its storage. */
int box_start(const struct box_spec *s, int control, int *ret_status, struct hr_err *err);

/* Checks, without a box, whether the document's directories exist and whether this kernel lets the
 * caller make a box. Returns 0, or -1 with *err, which names the setting that forbids it. */
int box_start_check(const struct box_spec *s, struct hr_err *err);

/* Appends which accounts a box of this caller has, for --check. */
void box_start_explain(struct hr_buf *b);

/* Appends what cannot be enforced for a box of this caller, a line each. */
void box_start_lacks(bool host_network, struct hr_buf *b);

#endif
