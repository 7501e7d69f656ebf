/* hr_search: searches a tree of files that may be hostile. Time, number and depth limit it. No link
 * is followed below the top, only directories and regular files are opened, and file systems of the
 * kernel are left out. The order is that of the names' bytes. */
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
	const char *top;         /* absolute path */
	int64_t until_ms;        /* deadline, in ms as hr_now_ms() counts */
	unsigned depth;          /* maximum levels; 0: no limit */
	bool hidden;             /* include names that begin with a dot, except .git */
	bool ignored;            /* include names that .gitignore excludes */
	const char *named;       /* a name in the top that is included regardless; NULL: none */
	const char *home;        /* home of the shell's account, for git's settings; NULL: none */
	const char *config_home; /* $XDG_CONFIG_HOME; NULL: home/.config */
};

/* The reasons why a result is incomplete. */
struct hr_search_end {
	bool late;     /* the deadline passed */
	size_t closed; /* number of directories and files that could not be opened */
	size_t deep;   /* number of directories beyond the depth */
	/* number of files (also .gitignore) that are too long, and directories that are too big */
	size_t large;
	size_t costly;          /* number of files in which matching took too many steps */
	size_t hidden, ignored; /* number of names that were left out */
	size_t binary;          /* number of files that are not text, and were not searched */
};

/* name is relative to dir, rel to the top (no trailing slash). Returns false to stop. */
typedef bool hr_search_fn(void *arg, int dir, const char *name, const char *rel, bool is_dir);

/* Visits every entry with fn, a directory before its entries. Returns -1 if the top cannot be
 * opened. */
int hr_search_walk(const struct hr_search *s, hr_search_fn *fn, void *arg,
    struct hr_search_end *ret, struct hr_err *err);

/* ---- patterns of names ---- * and ? match within a name, ** across names; [...] and a backslash
 * work as in git. Characters count, not bytes. The square of the lengths bounds the time. */

/* Returns true if the pattern matches the text; a dot is an ordinary character. Pure. */
bool hr_glob_match(const char *pattern, const char *text);

struct hr_globs;
/* Supports {a,b}, also nested. A pattern without a slash matches the last part of a name; one that
 * begins with a slash or with `top` matches names from the top on. With `hidden`, * and ? match a
 * dot at the start of a name. Returns NULL with *err set. */
struct hr_globs *
hr_globs_new(struct hr_span pattern, const char *top, bool hidden, struct hr_err *err);
void hr_globs_free(struct hr_globs *g);
/* Returns true if a name that begins with a dot may match. */
bool hr_globs_hidden(const struct hr_globs *g);
/* Returns how many levels of directories a matching name may have; 0: any number. */
unsigned hr_globs_depth(const struct hr_globs *g);
bool hr_globs_match(const struct hr_globs *g, const char *rel);

/* The place to search for a pattern: entries that it names literally are found although they are
 * hidden or ignored. */
struct hr_glob_plan {
	struct hr_buf top;     /* the directory to start in */
	struct hr_buf shown;   /* prefix for displayed names; "", or with a trailing slash */
	struct hr_buf pattern; /* a pattern for hr_globs_new(), relative to top */
	bool absolute, anchored;
	bool exact; /* the pattern has no special character */
};
/* `top` is absolute. Returns 0 or -1; free ret in both cases. Does not access the disk. */
int
hr_glob_plan(const char *top, struct hr_span pattern, struct hr_glob_plan *ret, struct hr_err *err);
void hr_glob_plan_done(struct hr_glob_plan *p);

/* ---- .gitignore ---- */

struct hr_ignore; /* rules of one directory and of those above it */
/* Parses a file's text for the directory `base` ("" or "a/b"), on top of `above`. Returns NULL if
 * out of memory. */
struct hr_ignore *
hr_ignore_new(const struct hr_ignore *above, const char *base, const char *text, size_t len);
void hr_ignore_free(struct hr_ignore *i); /* Frees these rules and keeps those above. */
/* Returns false once until_ms, as hr_now_ms() counts, has passed. */
bool hr_ignore_matches(const struct hr_ignore *i, const char *rel, bool is_dir, int64_t until_ms);

#define HR_IGNORE_ALL ((size_t)1 << 20) /* maximum bytes of the text of all rules in effect */
/* Returns the room left for further rules, in bytes. */
static inline size_t
hr_ignore_room(size_t used)
{
	return used < HR_IGNORE_ALL ? HR_IGNORE_ALL - used : 0;
}

/* The rules that apply in a directory from outside it: from its repository, the directories above
 * it there, and git's settings. */
struct hr_ignore_above {
	/* rules of each directory, on top of the rules before them */
	struct hr_ignore *v[HR_SEARCH_DEPTH + 2];
	size_t n;
	struct hr_buf prefix; /* the directory's name in its repository; "", or with a slash */
	struct hr_buf global; /* text of core.excludesFile */
	size_t bytes;         /* length of the text of the rules in v */
	size_t large;         /* number of files left out for lack of room */
};
/* Fills ret for the open directory. Unreadable files hold no rules. A caller that names an ignored
 * directory intends to see it: then no rules from above apply. */
void hr_ignore_find(struct hr_ignore_above *ret, int dir, const struct hr_search *s);
void hr_ignore_above_done(struct hr_ignore_above *a);
/* Appends the text of info/exclude of the repository in that directory. */
void hr_ignore_exclude(int dir, struct hr_buf *text);
/* Appends a regular file's text; a name relative to dir must not be a link. Returns 0, or -1 if
 * there is none or it is too long (text->fail). */
int hr_ignore_read(int dir, const char *name, struct hr_buf *text);

/* ---- lines ----
 *
 * An expression is matched against one line at a time, without its end: LF, CR LF, or CR in a file
 * without any LF. An expression that mentions CR sees that of CR LF as well. Texts in UTF-16 and
 * UTF-32 with a mark are searched as UTF-8. */

struct hr_grep {
	struct hr_span pattern; /* an expression of PCRE2 */
	bool ignore_case, literal;
	const struct hr_globs *names; /* patterns of file names; NULL: all files */
	unsigned context;             /* lines before and after each match */
	size_t max;                   /* lines, or files, to report at most */
	bool files_only;
};

struct hr_grep_line {
	size_t number;       /* counted from 1; 0 with files_only */
	struct hr_span text; /* excludes the line end */
	bool match;          /* false for a context line */
	size_t from, to;     /* byte range of the first match in text */
};

/* Receives the results in their order. */
typedef void hr_grep_fn(void *arg, const char *rel, const struct hr_grep_line *l);

struct hr_grep_end {
	size_t lines, files; /* number of matching lines and files, reported or not */
	size_t searched;
	struct hr_search_end walk;
};

/* Searches; s->top may be a file. Returns -1 if the expression is invalid (HR_E_INVAL) or the top
 * cannot be opened. */
int hr_grep(const struct hr_search *s, const struct hr_grep *g, hr_grep_fn *fn, void *arg,
    struct hr_grep_end *ret, struct hr_err *err);

#endif
