/* hr_tree: sends a file, a link, or a directory with everything below it as a tar stream, and
 * unpacks such a stream; both ends are handrail's. Modes (without set-ID bits), times, links and
 * holes are kept.
 *
 * Sockets, FIFOs, devices and files that cannot be read or written are left out and reported by
 * name. The sender's report is the last entry of the stream, so a stream without a report was cut.
 *
 * The names in the stream are "t", the top, and names below "t/". No name leaves the place of the
 * top: directories are entered by descriptor and never through a link, whatever the stream
 * holds. */
#ifndef HR_FILES_ARCHIVE_TREE_H
#define HR_FILES_ARCHIVE_TREE_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_TREE_DEPTH 200 /* maximum of nested directories */
#define HR_TREE_REPORT_MAX (4u << 20)

/* An archive of chosen files for other programs: compressed (gzip), without links and a report. */
struct hr_tree_choice {
	const char *top; /* name of the top in the stream */
	/* Returns true for an entry that is left out, with everything below it. */
	bool (*leaves_out)(void *arg, const char *name, bool directory);
	/* Appends the content of one more file, the last one of the stream, which has `last` as its
	 * name below the top. Nothing appended: there is none. */
	void (*put_last)(void *arg, uint64_t files, uint64_t bytes, struct hr_buf *text);
	const char *last;
	void *arg;
};

struct hr_tree_options {
	const struct hr_tree_choice *choice; /* borrowed; NULL: none */
	bool owner;                          /* owner and group are kept, as numbers */
	bool follow;             /* an existing link is followed when a file is written */
	bool own;                /* the sender keeps its report and adds none to the stream */
	uint64_t bytes, entries; /* limits for unpacking; 0: no limit */
};

struct hr_tree_report {
	struct hr_buf list; /* JSON objects with "path" ("" for the top) and "reason"; commas */
	unsigned failed;    /* number of entries, including those that list has no room for */
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
/* Appends an entry that was left out. */
void hr_tree_report_add(struct hr_tree_report *r, const char *path, const char *reason);

/* Takes the next bytes of a stream. Returns 0, or -1 if the receiver is gone. */
typedef int hr_tree_write_fn(void *arg, const void *p, size_t len);
/* Returns the number of bytes read (> 0), 0 at the end, or -1 with errno. */
typedef ssize_t hr_tree_read_fn(void *arg, char *p, size_t room);

struct hr_tree;
/* Opens the top, through links; a dangling link is itself the top. Returns NULL with *err set to
 * HR_E_NOTFOUND, HR_E_PERMISSION or another code. */
struct hr_tree *hr_tree_open(const char *path, const struct hr_tree_options *o, struct hr_err *err);
/* Writes the stream, once. Returns 0, or -1 with *err set if the stream is not complete. */
int hr_tree_send(struct hr_tree *t, hr_tree_write_fn *fn, void *arg, struct hr_tree_report *r,
    struct hr_err *err);
void hr_tree_free(struct hr_tree *t); /* Accepts NULL. */

/* Unpacks the stream at `path`, whose directory exists. Existing directories are merged, files and
 * links replaced. Entries that are left out are added to `r`. Returns 0, or -1 with *err set if the
 * stream is cut, damaged or above a limit (HR_E_TOOLARGE); entries before that point stay. */
int hr_tree_unpack(const char *path, const struct hr_tree_options *o, hr_tree_read_fn *fn,
    void *arg, struct hr_tree_report *r, struct hr_err *err);

/* name of the sender's report, which no file has */
#define HR_TREE_REPORT "/-/report"
#define HR_TREE_TOP "t"

/* Makes the calling thread take names as UTF-8 or any bytes, whatever the program's locale.
 * hr_tree_locale_end() takes what hr_tree_locale() returned. */
struct hr_tree_locale {
	locale_t utf8, before;
};
struct hr_tree_locale hr_tree_locale(void);
void hr_tree_locale_end(struct hr_tree_locale *l);

#endif
