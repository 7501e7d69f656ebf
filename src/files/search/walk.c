/* Walks down a tree. Invariant: every open descriptor is a directory on the path from the top,
 * reached without following a link. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/strv.h"
#include "files/place/reach.h"
#include "files/place/whole.h"
#include "files/search/search.h"

#define NAMES_MAX (32u << 20) /* maximum bytes of the names of one directory */
/* maximum bytes of the names of all directories on the way down */
#define NAMES_ALL (64u << 20)
#define PATH_MAX_BYTES 8192

struct walk {
	const struct hr_search *s;
	hr_search_fn *fn;
	void *arg;
	struct hr_search_end *end;
	struct hr_buf rel; /* the current entry's name from the repository's top; NUL-terminated */
	size_t skip;       /* bytes of rel above the top of the walk */
	size_t names, rules; /* bytes kept for names and for rules */
	struct hr_ignore_above above;
	bool stop;
};

struct names {
	struct hr_buf text;
	const char **v;
	size_t n;
	size_t held; /* bytes of names that the walk counts for this directory */
};

/* Reads the names of a directory; a byte for the type follows each. Takes fd. */
static int
names_read(struct walk *w, struct names *ret, int fd)
{
	DIR *d = hr_dir_take(fd);
	struct dirent *e;
	struct stat st;
	const char *p;
	size_t i;
	bool dir;

	memset(ret, 0, sizeof(*ret));
	hr_buf_init(
	    &ret->text, NAMES_MAX < NAMES_ALL - w->names ? NAMES_MAX : NAMES_ALL - w->names);
	if (d == NULL)
		return -1;
	while ((e = hr_dir_next(d)) != NULL) {
		dir = e->d_type == DT_DIR;
		if (e->d_type == DT_UNKNOWN &&
		    (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!(dir = S_ISDIR(st.st_mode)) == !S_ISREG(st.st_mode)))
			continue;
		if (!dir && e->d_type != DT_REG && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
			continue;
		hr_buf_add(&ret->text, e->d_name, strlen(e->d_name) + 1);
		hr_buf_addc(&ret->text, dir ? 'd' : e->d_type == DT_LNK ? 'l' : 'f');
		if (ret->text.fail != HR_OK || hr_now_ms() >= w->s->until_ms)
			break; /* if the time is over, the caller reports it with the first entry */
		ret->n++;
	}
	(void)closedir(d);
	if (ret->text.fail != HR_OK)
		w->end->large++; /* the names read so far are shown */
	ret->v = ret->n > 0 ? calloc(ret->n, sizeof(*ret->v)) : NULL;
	if (ret->n > 0 && ret->v == NULL)
		return -1;
	ret->held = ret->text.len;
	w->names += ret->held;
	for (i = 0, p = hr_buf_str(&ret->text); i < ret->n; i++, p += strlen(p) + 2)
		ret->v[i] = p;
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), hr_strv_compare);
	return 0;
}

static void
names_done(struct walk *w, struct names *n)
{
	w->names -= n->held;
	free(n->v);
	hr_buf_done(&n->text);
}

/* The rules of one directory: at the start of a repository those of git's settings and its
 * info/exclude; then those of its .gitignore. */
struct own {
	struct hr_ignore *v[3];
	size_t n, held; /* held: bytes that the walk counts for these rules */
};

static const struct hr_ignore *
add_rules(struct walk *w, struct own *o, const struct hr_ignore *above, const struct hr_buf *text)
{
	struct hr_ignore *more;
	const bool large = text->fail != HR_OK || text->len > hr_ignore_room(w->rules);

	w->end->large += large;
	if (large || text->len == 0)
		return above;
	more = hr_ignore_new(above, hr_buf_str(&w->rel), text->p, text->len);
	if (more == NULL)
		return above;
	o->v[o->n++] = more;
	o->held += text->len;
	w->rules += text->len;
	return more;
}

static const struct hr_ignore *
add_exclude(struct walk *w, struct own *o, const struct hr_ignore *above, int dir)
{
	HR_BUF(text, hr_ignore_room(w->rules));

	hr_ignore_exclude(dir, &text);
	return add_rules(w, o, above, &text);
}

static const struct hr_ignore *
add_own(struct walk *w, struct own *o, const struct hr_ignore *above, int dir)
{
	HR_BUF(text, hr_ignore_room(w->rules));

	(void)hr_ignore_read(dir, ".gitignore", &text);
	return add_rules(w, o, above, &text);
}

static const struct hr_ignore *
rules_of(struct walk *w, int dir, unsigned depth, const struct hr_ignore *above, struct own *o)
{
	const struct hr_ignore *ig = above;
	struct stat st;

	*o = (struct own){.n = 0};
	/* rules of an outer repository do not apply inside a nested one */
	if (depth > 0 && fstatat(dir, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		ig = add_rules(w, o, NULL, &w->above.global);
		ig = add_exclude(w, o, ig, dir);
	}
	return add_own(w, o, ig, dir);
}

static void
rules_done(struct walk *w, struct own *o)
{
	while (o->n > 0)
		hr_ignore_free(o->v[--o->n]);
	w->rules -= o->held;
}

static void walk_dir(struct walk *w, int fd, unsigned depth, const struct hr_ignore *above);

static void
walk_below(struct walk *w, int dir, const char *name, unsigned depth, const struct hr_ignore *ig)
{
	int fd;

	if (w->s->depth > 0 && depth + 1 >= w->s->depth)
		return;
	if (depth + 1 >= HR_SEARCH_DEPTH || w->rel.len > PATH_MAX_BYTES / 2) {
		w->end->deep++;
		return;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		w->end->closed += errno != ENOENT;
		return;
	}
	if (hr_whole_is_kernels(fd))
		hr_fd_close(&fd);
	else
		walk_dir(w, fd, depth + 1, ig);
}

/* Returns true if the entry is left out, and counts it. */
static bool
is_left_out(struct walk *w, const char *name, unsigned depth, const struct hr_ignore *ig)
{
	if (depth == 0 && w->s->named != NULL && strcmp(name, w->s->named) == 0)
		return false;
	if (name[0] == '.' && (!w->s->hidden || strcmp(name, ".git") == 0)) {
		w->end->hidden += strcmp(name, ".git") != 0;
		return true;
	}
	if (w->s->ignored ||
	    !hr_ignore_matches(ig, w->rel.p, name[strlen(name) + 1] == 'd', w->s->until_ms))
		return false;
	w->end->ignored++;
	return true;
}

static void
walk_name(struct walk *w, int dir, const char *name, unsigned depth, const struct hr_ignore *ig)
{
	bool is_dir = name[strlen(name) + 1] == 'd', left_out;
	size_t len = w->rel.len;

	if (len > w->skip)
		hr_buf_addc(&w->rel, '/');
	hr_buf_adds(&w->rel, name);
	if (w->rel.fail != HR_OK) {
		w->stop = true;
		return;
	}
	left_out = is_left_out(w, name, depth, ig);
	if (hr_now_ms() >= w->s->until_ms)
		w->end->late = w->stop = true;
	else if (!left_out) {
		if (!w->fn(w->arg, dir, name, w->rel.p + w->skip, is_dir))
			w->stop = true;
		else if (is_dir)
			walk_below(w, dir, name, depth, ig);
	}
	w->rel.len = len;
	w->rel.p[len] = '\0';
}

/* Walks one directory. Takes ownership of fd. */
static void
walk_dir(struct walk *w, int fd, unsigned depth, const struct hr_ignore *above)
{
	const struct hr_ignore *ig = above;
	struct own own = {.n = 0};
	struct names names;
	int again = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	size_t i;

	if (!w->s->ignored)
		ig = rules_of(w, fd, depth, above, &own);
	if (again >= 0 && names_read(w, &names, again) == 0) {
		for (i = 0; i < names.n && !w->stop; i++)
			walk_name(w, fd, names.v[i], depth, ig);
		names_done(w, &names);
	} else {
		w->end->closed++;
		if (again >= 0)
			names_done(w, &names);
	}
	rules_done(w, &own);
	hr_fd_close(&fd);
}

int
hr_search_walk(const struct hr_search *s, hr_search_fn *fn, void *arg, struct hr_search_end *ret,
    struct hr_err *err)
{
	struct walk w = {.s = s, .fn = fn, .arg = arg, .end = ret};
	int fd;

	memset(ret, 0, sizeof(*ret));
	fd = hr_reach_open_as(AT_FDCWD, s->top, O_RDONLY | O_DIRECTORY | O_NONBLOCK, false);
	if (fd < 0)
		return hr_err_sys(err, errno, "%s", s->top);
	if (hr_whole_is_kernels(fd)) {
		hr_fd_close(&fd);
		return hr_err_set(err, HR_E_INVAL,
		    "%s is a file system of the kernel and is not searched", s->top);
	}
	if (!s->ignored)
		hr_ignore_find(&w.above, fd, s);
	w.rules = w.above.bytes;
	ret->large = w.above.large;
	hr_buf_init(&w.rel, PATH_MAX_BYTES);
	hr_buf_add(&w.rel, hr_buf_str(&w.above.prefix), w.above.prefix.len);
	w.skip = w.rel.len;
	hr_buf_addc(&w.rel, '.'); /* never empty, so that it has a buffer */
	if (w.rel.fail != HR_OK) {
		hr_fd_close(&fd);
		hr_ignore_above_done(&w.above);
		return hr_err_nomem(err);
	}
	w.rel.len = w.skip;
	w.rel.p[w.skip] = '\0';
	walk_dir(&w, fd, 0, w.above.n > 0 ? w.above.v[w.above.n - 1] : NULL);
	hr_buf_done(&w.rel);
	hr_ignore_above_done(&w.above);
	return 0;
}
