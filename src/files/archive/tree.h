/* hr_tree: a file, a directory with all below it, or a link as a tar stream, and back, between two
 * ends that are both handrail's. Modes (without set-ID bits), times, links and holes are kept.
 *
 * What cannot be copied (sockets, FIFOs, devices, files that cannot be read or written) is left out
 * and reported by its name. The sender's report is the last entry of the stream, so that a stream
 * without one was cut.
 *
 * The names in the stream are "t", the top, and what is below "t/". No name leaves the place of the
 * top: directories are entered by descriptor and never through a link, whatever the stream holds.
 */
#ifndef HR_FILES_ARCHIVE_TREE_H
#define HR_FILES_ARCHIVE_TREE_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_TREE_DEPTH 200 /* directories in each other */
#define HR_TREE_REPORT_MAX (4u << 20)

struct hr_tree_options {
	bool owner;              /* owner and group are kept, as numbers */
	bool follow;             /* a file is written to through a link that is there */
	bool own;                /* the sender knows its report: it is not added */
	uint64_t bytes, entries; /* of what is unpacked, at most; 0: no limit */
};

struct hr_tree_report {
	struct hr_buf list; /* objects of JSON with "path", "" for the top, and "reason"; commas */
	unsigned failed;    /* how many there are, also those for which the list has no room */
};

static inline void
hr_tree_report_init(struct hr_tree_report *r)
{
	hr_buf_init(&r->list, HR_TREE_REPORT_MAX);
	r->failed = 0;
}
static inline void
hr_tree_report_done(struct hr_tree_report *r)
{
	hr_buf_done(&r->list);
}
/* Appends one that is left out. */
void hr_tree_report_add(struct hr_tree_report *r, const char *path, const char *reason);

/* The next bytes of a stream: 0, or -1 if nobody takes them. */
typedef int hr_tree_write_fn(void *arg, const void *p, size_t len);
/* Some bytes (> 0), 0 at the end, -1 with errno. */
typedef ssize_t hr_tree_read_fn(void *arg, char *p, size_t room);

struct hr_tree;
/* Opens the top, through links; one that leads nowhere is the top itself. NULL with *err:
 * HR_E_NOTFOUND, HR_E_PERMISSION or another. */
struct hr_tree *hr_tree_open(const char *path, const struct hr_tree_options *o, struct hr_err *err);
/* Writes the stream, once. Returns 0, or -1 with *err if it is not whole. */
int hr_tree_send(struct hr_tree *t, hr_tree_write_fn *fn, void *arg, struct hr_tree_report *r,
    struct hr_err *err);
void hr_tree_free(struct hr_tree *t); /* NULL: nothing */

/* Makes what the stream has at `path`, whose directory exists. What is there is kept: directories
 * are merged, files and links replaced. What is left out is added to
 * `r`. Returns 0, or -1 with *err if
 * the stream is cut, damaged or above a limit (HR_E_TOOLARGE); what came before it stays. */
int hr_tree_unpack(const char *path, const struct hr_tree_options *o, hr_tree_read_fn *fn,
    void *arg, struct hr_tree_report *r, struct hr_err *err);

/* The name of the sender's report, which no file has. */
#define HR_TREE_REPORT "/-/report"
#define HR_TREE_TOP "t"

/* Names are UTF-8 or any bytes, whatever the locale of the program; for the calling thread alone.
 * hr_tree_locale_end() takes what hr_tree_locale() returned. */
struct hr_tree_locale {
	locale_t utf8, before;
};
struct hr_tree_locale hr_tree_locale(void);
void hr_tree_locale_end(struct hr_tree_locale *l);

#endif
