/* egress_log: the events of a box's way to the network, as JSON lines in a bounded file and, the
 * last ones, in memory for viewers. Equal events within a minute are a line at first, and another
 * one with their number. */
#ifndef HR_EGRESS_LOG_H
#define HR_EGRESS_LOG_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "egress/event.h"

struct egress_log;
struct hr_loop;

/* Opens the file, or makes it. `told`: directory of the box's own list of refusals (`told.h`). `fn`
 * is called with each new line, which includes its newline. */
struct egress_log *egress_log_open(struct hr_loop *loop, const char *path, const char *told,
    void (*fn)(void *arg, const char *line, size_t len), void *arg, struct hr_err *err);
void egress_log_free(struct egress_log *l);

/* Logs an event. Its texts may be hostile: they are cut and quoted. */
void egress_log_add(struct egress_log *l, const struct egress_event *e);
/* Writes the lines of events that were repeated, before their minute is over. */
void egress_log_flush(struct egress_log *l);
/* Appends the lines in memory with a larger number than `from`. */
void egress_log_since(const struct egress_log *l, uint64_t from, struct hr_buf *b);

#endif
