/* hr_loglines: keeps the last lines of the log for viewers, as JSON objects, numbered from 1 in an
 * epoch that starts with the process. New lines displace the oldest. */
#ifndef HR_BASE_LOGLINES_H
#define HR_BASE_LOGLINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_LOGLINES_KEPT 65536 /* bytes */

struct hr_loglines {
	struct hr_buf text; /* lines, each with its newline */
	uint64_t first;     /* number of the first line in text */
	uint64_t next;      /* number of the next line */
	int64_t epoch;      /* start of the numbering, ms since 1970 */
	int news;           /* see hr_loglines_news(); -1: not requested yet */
};

void hr_loglines_init(struct hr_loglines *l);
void hr_loglines_done(struct hr_loglines *l);

/* Appends one line, which must not contain a newline. Cannot fail: a line without memory is lost,
 * and the gap in the numbers shows it. */
void hr_loglines_add(struct hr_loglines *l, const char *line, size_t len);

/* Appends {"first":N,"next":N,"epoch":N,"lines":[...]} with the lines from number `from` on that
 * fit into `most` bytes, the last ones if not all do; "first" is the number of the first line in
 * the list. A `from` after next, as from another epoch: all. */
void hr_loglines_put(const struct hr_loglines *l, uint64_t from, size_t most, struct hr_buf *b);

/* Returns an eventfd that each line writes to, owned by l. Wait with EPOLLET and never read it, so
 * that any number of processes can wait. Returns -1 with HR_E_SYS. */
int hr_loglines_news(struct hr_loglines *l, struct hr_err *err);

#endif
