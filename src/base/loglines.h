/* hr_loglines: the last lines of the log, numbered from 1 on in an epoch that begins with the
 * process, for those who look on. A line is an object of JSON. The oldest ones make room. */
#ifndef HR_BASE_LOGLINES_H
#define HR_BASE_LOGLINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_LOGLINES_KEPT 65536 /* bytes */

struct hr_loglines {
	struct hr_buf text; /* each with its newline */
	uint64_t first;     /* number of the first one in it */
	uint64_t next;      /* of the one that comes next */
	int64_t epoch;      /* since when they are counted, in ms since 1970 */
	int news;           /* see hr_loglines_news(); -1: nobody has asked */
};

void hr_loglines_init(struct hr_loglines *l);
void hr_loglines_done(struct hr_loglines *l);

/* One line, without a newline in it. Cannot fail: one for which there is no memory is lost, which
 * its number tells. */
void hr_loglines_add(struct hr_loglines *l, const char *line, size_t len);

/* Appends {"first":N,"next":N,"epoch":N,"lines":[...]} with those from number `from` on that fit
 * into `most` bytes, the last of them if not all do; first is that of the first one in it. `from`
 * of another count, after next: all. */
void hr_loglines_put(const struct hr_loglines *l, uint64_t from, size_t most, struct hr_buf *b);

/* An eventfd that is written to with each line, for who waits with EPOLLET and never reads it, so
 * that any number of processes may. Stays the lines' own. -1: HR_E_SYS. */
int hr_loglines_news(struct hr_loglines *l, struct hr_err *err);

#endif
