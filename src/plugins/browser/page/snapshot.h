/* br_snapshot: an answer of DOMSnapshot.captureSnapshot: properties of the
 * elements, and the page as HTML. Pure. */
#ifndef HR_PLUGINS_BROWSER_PAGE_SNAPSHOT_H
#define HR_PLUGINS_BROWSER_PAGE_SNAPSHOT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "plugins/browser/page/props.h"

struct br_snapshot;

/* Borrows the text (the whole message, or what is in it) until it is freed. NULL: see err. */
struct br_snapshot *br_snapshot_new(const char *json, size_t len, struct hr_err *err);
void br_snapshot_free(struct br_snapshot *s);

int br_snapshot_props(const struct br_snapshot *s, struct br_props *ret, struct hr_err *err);
/* Appends the page as HTML, all documents in one, one tag or text a line. -1: no memory, or larger
 * than b takes. */
int br_snapshot_html(const struct br_snapshot *s, struct hr_buf *b, struct hr_err *err);

#endif
