/* hr_search: looking through a tree of files that somebody hostile may have made. It ends: by time,
 * by number, by depth. No link is followed below the top, nothing but directories and plain files
 * is opened, and file systems of the kernel are left out. The order is that of the names' bytes. */
#ifndef HR_FILES_SEARCH_SEARCH_H
#define HR_FILES_SEARCH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#define HR_SEARCH_DEPTH 200
#define HR_SEARCH_FILE_MAX ((size_t)32 << 20) /* longer files are not searched */

struct hr_search {
	const char *top;   /* absolute */
	int64_t until_ms;  /* hr_now_ms() */
	unsigned depth;    /* 0: as deep as it goes */
	bool hidden;       /* names that begin with a dot, too; .git never */
	bool ignored;      /* what .gitignore names, too */
	const char *named; /* a name in the top that is neither hidden nor ignored; NULL: none */
	const char *home;  /* of the shell's account, for git's settings; NULL: none */
	const char *config_home; /* as $XDG_CONFIG_HOME; NULL: home/.config */
};

/* Why it is not all. */
struct hr_search_end {
	bool late;     /* the time was over */
	size_t closed; /* directories and files that could not be opened */
	size_t deep;   /* directories beyond the depth */
	size_t
	    large; /* files that are too long (.gitignore, too), directories with too many names */
	size_t costly;          /* files on which the expression took too many steps */
	size_t hidden, ignored; /* names that were left out */
	size_t binary;          /* files that hold no text, and were not searched for that */
};

/* name is relative to dir, rel to the top (a directory's without a slash). False: stop. */
typedef bool hr_search_fn(void *arg, int dir, const char *name, const char *rel, bool is_dir);

/* Calls fn for all that is there, a directory before what is in it. -1 if the top cannot be opened.
 */
int hr_search_walk(const struct hr_search *s, hr_search_fn *fn, void *arg,
    struct hr_search_end *ret, struct hr_err *err);

/* ---- patterns of names ----
 *
 * * and ? within a name, ** across, [...], \. Characters count, not bytes. Time is bounded by the
 * square of the lengths. */

/* Whether one pattern fits a text; a dot is a character as others. Pure. */
bool hr_glob_match(const char *pattern, const char *text);

struct hr_globs;
/* With {a,b}, also nested; one without a slash is for the last part of a name, one that begins with
 * one or with `top` for names from the top on. `hidden`: a dot at the beginning of a name is fitted
 * by * and ?, not by a dot alone. NULL: *err. */
struct hr_globs *
hr_globs_new(struct hr_span pattern, const char *top, bool hidden, struct hr_err *err);
void hr_globs_free(struct hr_globs *g);
/* Whether a name that begins with a dot may fit. */
bool hr_globs_hidden(const struct hr_globs *g);
/* How many levels of directories a name that fits may have; 0: any number. */
unsigned hr_globs_depth(const struct hr_globs *g);
bool hr_globs_match(const struct hr_globs *g, const char *rel);

/* Where a pattern has to be looked for: what is named in it is found although it is hidden or
 * ignored. */
struct hr_glob_plan {
	struct hr_buf top;     /* the directory to begin with */
	struct hr_buf shown;   /* to be put before what is found; "", or with a slash at its end */
	struct hr_buf pattern; /* for hr_globs_new(), from there on */
	bool absolute, anchored;
	bool exact; /* nothing in the pattern is special */
};
/* `top` is absolute. Returns 0 or -1; free it in both cases. Does not look at the disk. */
int
hr_glob_plan(const char *top, struct hr_span pattern, struct hr_glob_plan *ret, struct hr_err *err);
void hr_glob_plan_done(struct hr_glob_plan *p);

/* ---- .gitignore ---- */

struct hr_ignore; /* the rules of one directory and of those above it */
/* Of a file's text that lies in the directory `base` ("" or "a/b"), on top of `above`. NULL: no
 * memory. */
struct hr_ignore *
hr_ignore_new(const struct hr_ignore *above, const char *base, const char *text, size_t len);
void hr_ignore_free(struct hr_ignore *i); /* not those above */
/* Not after until_ms, hr_now_ms(): then false. */
bool hr_ignore_matches(const struct hr_ignore *i, const char *rel, bool is_dir, int64_t until_ms);

#define HR_IGNORE_ALL ((size_t)1 << 20) /* bytes of all rules that hold somewhere, as text */
/* The room that is left for more of them. */
static inline size_t
hr_ignore_room(size_t used)
{
	return used < HR_IGNORE_ALL ? HR_IGNORE_ALL - used : 0;
}

/* The rules that hold in a directory because of the repository that it is in, of what lies above it
 * there and of git's settings. */
struct hr_ignore_above {
	struct hr_ignore *v[HR_SEARCH_DEPTH + 2]; /* each on top of the one before */
	size_t n;
	struct hr_buf prefix; /* the directory's name in its repository; "", or with a slash */
	struct hr_buf global; /* the text of core.excludesFile */
	size_t bytes;         /* of the rules in v, as text */
	size_t large;         /* files that had no room */
};
/* Fills ret for the open directory. What cannot be read holds no rules. Where the directory is
 * ignored itself, who names it wants to see it: then there are no rules from above. */
void hr_ignore_find(struct hr_ignore_above *ret, int dir, const struct hr_search *s);
void hr_ignore_above_done(struct hr_ignore_above *a);
/* Appends the text of info/exclude of the repository in that directory. */
void hr_ignore_exclude(int dir, struct hr_buf *text);
/* Appends a regular file's text; one that is named relative to dir is no link. Returns 0; -1: there
 * is none, or it is too long (text->fail). */
int hr_ignore_read(int dir, const char *name, struct hr_buf *text);

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
