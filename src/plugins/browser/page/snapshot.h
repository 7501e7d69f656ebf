/* br_snapshot: reads a reply to DOMSnapshot.captureSnapshot: the elements' properties, and the page
 * as HTML. Pure. */
#ifndef HR_PLUGINS_BROWSER_PAGE_SNAPSHOT_H
#define HR_PLUGINS_BROWSER_PAGE_SNAPSHOT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "plugins/browser/page/props.h"

struct br_snapshot;

/* Borrows the text (whole message or its result) until it is freed. Returns NULL with err set. */
struct br_snapshot *br_snapshot_new(const char *json, size_t len, struct hr_err *err);
void br_snapshot_free(struct br_snapshot *s);

int br_snapshot_props(const struct br_snapshot *s, struct br_props *ret, struct hr_err *err);
/* Appends the page as HTML, all documents in one, one tag or text per line. Returns -1 without
 * memory, or if it is larger than b's cap. */
int br_snapshot_html(const struct br_snapshot *s, struct hr_buf *b, struct hr_err *err);

#endif
