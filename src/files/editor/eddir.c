/* Implements view of a directory (doc/files.md, "view of a directory"): its entries, two levels
 * deep. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/path.h"
#include "base/strv.h"
#include "files/editor/editor_int.h"
#include "files/purepath.h"
#include "files/pytext.h"
#include "files/place/reach.h"
#include "proto/python/repr.h"

#define DEPTH 2
#define NAMES_MAX (256u << 20) /* maximum bytes of the paths of all entries */

static const char clipped[] =
    "<response clipped><NOTE>Due to the max output limit, only part of this directory has been "
    "shown to you. You should use `ls -la` instead to view large directories "
    "incrementally.</NOTE>";

struct found {
	struct hr_buf names; /* each path with its NUL */
	size_t n, hidden;    /* hidden: number of hidden entries directly in the top */
	struct stat top;     /* a link back to the top is listed, not entered */
};

static void
add_name(struct found *f, const char *dir, const char *name)
{
	hr_buf_adds(&f->names, dir);
	if (name != NULL) {
		if (dir[strlen(dir) - 1] != '/')
			hr_buf_addc(&f->names, '/');
		hr_buf_adds(&f->names, name);
	}
	hr_buf_addc(&f->names, '\0');
	f->n++;
}

static bool
is_another(const struct found *f, const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_dev != f->top.st_dev || st.st_ino != f->top.st_ino);
}

/* Lists a directory; one that cannot be listed is left out. */
static void
list(struct found *f, const char *path, unsigned depth)
{
	DIR *dir = hr_dir_take(hr_reach_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
	struct dirent *d;
	char *below;
	size_t at;

	if (dir == NULL) {
		if (errno == ENOMEM || errno == EMFILE || errno == ENFILE)
			/* the cause is that this process lacks memory or descriptors */
			f->names.fail = HR_E_NOMEM;
		return;
	}
	while ((d = hr_dir_next(dir)) != NULL && f->names.fail == HR_OK) {
		if (d->d_name[0] == '.') {
			f->hidden += depth == 1;
			continue;
		}
		at = f->names.len;
		add_name(f, path, d->d_name);
		if (depth == DEPTH || f->names.fail != HR_OK)
			continue;
		if (d->d_type != DT_DIR && d->d_type != DT_LNK && d->d_type != DT_UNKNOWN)
			continue;
		below = strdup(f->names.p + at); /* copies the path, since the buffer moves */
		if (below == NULL)
			f->names.fail = HR_E_NOMEM;
		else if (d->d_type == DT_DIR || is_another(f, below))
			list(f, below, depth + 1);
		free(below);
	}
	(void)closedir(dir);
}

/* Appends the sorted paths as text, cut to the limit. */
static void
join_sorted(struct found *f, struct hr_buf *text)
{
	const char *p = f->names.p;
	HR_FREE const char **sorted = malloc(f->n * sizeof(*sorted));
	size_t i;

	if (sorted == NULL) {
		text->fail = HR_E_NOMEM;
		return;
	}
	for (i = 0; i < f->n; i++, p += strlen(p) + 1)
		sorted[i] = p;
	qsort(sorted, f->n, sizeof(*sorted), hr_strv_compare);
	/* stop at a length that is never shown in full: a character has at most four bytes */
	for (i = 0; i < f->n && text->len <= (size_t)EDIT_SHOWN * 4; i++) {
		hr_purepath_text(text, sorted[i], strlen(sorted[i]));
		hr_buf_addc(text, '\n');
	}
	i = hr_pytext_prefix(hr_buf_str(text), text->len, EDIT_SHOWN);
	if (i < text->len) {
		text->len = i;
		hr_buf_add(text, clipped, sizeof(clipped) - 1);
	}
}

static void
put_lines(struct hr_buf *b, const char *p, size_t len)
{
	const char *end = p + len, *next;
	HR_BUF(why, NAMES_MAX);
	char *file;

	if (len > 0 && end[-1] == '\n')
		end--;
	for (;; p = next + 1) {
		next = memchr(p, '\n', (size_t)(end - p));
		if (next == NULL)
			next = end;
		hr_buf_add(b, p, (size_t)(next - p));
		file = hr_purepath_bytes(p, (size_t)(next - p), &why);
		if (file != NULL && hr_path_is_directory(file))
			hr_buf_addc(b, '/');
		free(file);
		if (next == end)
			break;
		hr_buf_addc(b, '\n');
	}
	if (why.fail == HR_E_NOMEM)
		b->fail = HR_E_NOMEM;
}

enum hr_edit_result
edit_view_directory(struct edit *e)
{
	struct found f = {.top = e->st};
	HR_BUF(text, NAMES_MAX);

	if (hr_py_truthy(e->q->view_range)) {
		edit_invalid_range(e, e->q->view_range);
		hr_buf_adds(e->text, "The `view_range` parameter is not allowed when `path` points "
				     "to a directory.");
		return HR_EDIT_ERROR;
	}
	hr_buf_init(&f.names, NAMES_MAX);
	add_name(&f, e->file, NULL);
	list(&f, e->file, 1);
	if (f.names.fail == HR_OK)
		join_sorted(&f, &text);
	(void)edit_error(e,
	    "Here's the files and directories up to 2 levels deep in %s, excluding hidden items:\n",
	    edit_path(e));
	put_lines(e->text, hr_buf_str(&text), text.len);
	if (f.hidden > 0) {
		hr_buf_addf(e->text, "\n\n%zu", f.hidden);
		(void)edit_error(e,
		    " hidden files/directories in this directory are excluded. You can use 'ls "
		    "-la %s' to see them.",
		    edit_path(e));
	}
	if (f.names.fail != HR_OK || text.fail != HR_OK)
		e->text->fail = f.names.fail != HR_OK ? f.names.fail : text.fail;
	hr_buf_done(&f.names);
	return HR_EDIT_DONE;
}
