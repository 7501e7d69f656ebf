/* hr_search: looking through a tree of files that somebody hostile may have made. It ends: by time,
 * by number, by depth. No link is followed below the top, nothing but directories and plain files
 * is opened, and file systems of the kernel are left out. The order is that of the names' bytes. */
#ifndef HR_FILES_SEARCH_SEARCH_H
#define HR_FILES_SEARCH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/span.h"

#define HR_SEARCH_DEPTH 200
#define HR_SEARCH_FILE_MAX ((size_t)32 << 20) /* longer files are not searched */

struct hr_search {
	const char *top;  /* absolute */
	int64_t until_ms; /* hr_now_ms() */
	unsigned depth;   /* 0: as deep as it goes */
	bool hidden;      /* names that begin with a dot, too; .git never */
	bool ignored;     /* what .gitignore names, too */
};

/* Why it is not all. */
struct hr_search_end {
	bool late;     /* the time was over */
	size_t closed; /* directories and files that could not be opened */
	size_t deep;   /* directories beyond the depth */
	size_t
	    large; /* files that are too long (.gitignore, too), directories with too many names */
	size_t costly; /* files on which the expression took too many steps */
	size_t binary; /* files that hold no text, and were not searched for that */
};

/* name is relative to dir, rel to the top (a directory's without a slash). False: stop. */
typedef bool hr_search_fn(void *arg, int dir, const char *name, const char *rel, bool is_dir);

/* Calls fn for all that is there, a directory before what is in it. -1 if the top cannot be opened.
 */
int hr_search_walk(const struct hr_search *s, hr_search_fn *fn, void *arg,
    struct hr_search_end *ret, struct hr_err *err);

/* ---- patterns of names ---- */

/* Of one pattern: * and ? within a name, ** across, [...], \. Time is bounded by the square of the
 * lengths. Pure. */
bool hr_glob_match(const char *pattern, const char *text);

struct hr_globs;
/* With {a,b}; one without a slash is for the last part of a name. NULL: *err. */
struct hr_globs *hr_globs_new(struct hr_span pattern, struct hr_err *err);
void hr_globs_free(struct hr_globs *g);
bool hr_globs_match(const struct hr_globs *g, const char *rel);

/* ---- .gitignore ---- */

struct hr_ignore; /* the rules of one directory and of those above it */
/* Of a file's text that lies in the directory `base` ("" or "a/b"), on top of `above`. NULL: no
 * memory. */
struct hr_ignore *
hr_ignore_new(const struct hr_ignore *above, const char *base, const char *text, size_t len);
void hr_ignore_free(struct hr_ignore *i); /* not those above */
/* Not after until_ms, hr_now_ms(): then false. */
bool hr_ignore_matches(const struct hr_ignore *i, const char *rel, bool is_dir, int64_t until_ms);

/* ---- lines ----
 *
 * An expression sees one line at a time, without its end: LF, CR LF, or CR in a file without any
 * LF. One that names CR sees that of CR LF, too. Texts in UTF-16 and UTF-32 with a mark are
 * searched as UTF-8. */

struct hr_grep {
	struct hr_span pattern; /* of PCRE2 */
	bool ignore_case, literal;
	const struct hr_globs *names; /* NULL: all files */
	unsigned context;             /* lines around each */
	size_t max;                   /* lines, or files, that are told */
	bool files_only;
};

struct hr_grep_line {
	size_t number;       /* from 1; 0: of files_only */
	struct hr_span text; /* without its end */
	bool match;          /* false for a line of the context */
	size_t from, to;     /* the bytes of the first match in text */
};

/* Called in order. */
typedef void hr_grep_fn(void *arg, const char *rel, const struct hr_grep_line *l);

struct hr_grep_end {
	size_t lines, files; /* with a match, told or not */
	size_t searched;
	struct hr_search_end walk;
};

/* s->top may be a file. -1: the expression is wrong (HR_E_INVAL), or the top cannot be opened. */
int hr_grep(const struct hr_search *s, const struct hr_grep *g, hr_grep_fn *fn, void *arg,
    struct hr_grep_end *ret, struct hr_err *err);

#endif
