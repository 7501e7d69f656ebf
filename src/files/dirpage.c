/* Reads the directory once and keeps the first `limit` entries after a name in a heap with the last
 * of them on top. */
#include "config.h"

#include "files/dirpage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/text/percent.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"

/* bounds the read: a file system that the agent controls may list entries for ever */
#define READ_MAX 5000000
#define NAME_BYTES 256

struct entry {
	bool is_dir;
	char name[NAME_BYTES];
};

struct page {
	DIR *dir;
	struct entry after;
	bool from_start, encoded;
	size_t limit, n, unnamed;
	bool more;
	struct entry *heap;
};

static int
compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->is_dir != y->is_dir)
		return x->is_dir ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void
swap(struct entry *a, struct entry *b)
{
	struct entry t = *a;

	*a = *b;
	*b = t;
}

static void
heap_add(struct page *p, const struct entry *e)
{
	size_t i, up, down;

	if (p->n < p->limit) {
		p->heap[p->n] = *e;
		for (i = p->n++; i > 0; i = up) {
			up = (i - 1) / 2;
			if (compare(&p->heap[up], &p->heap[i]) >= 0)
				break;
			swap(&p->heap[up], &p->heap[i]);
		}
		return;
	}
	p->more = true;
	if (compare(e, &p->heap[0]) >= 0)
		return;
	p->heap[0] = *e;
	for (i = 0; (down = 2 * i + 1) < p->n; i = down) {
		if (down + 1 < p->n && compare(&p->heap[down + 1], &p->heap[down]) > 0)
			down++;
		if (compare(&p->heap[i], &p->heap[down]) >= 0)
			break;
		swap(&p->heap[i], &p->heap[down]);
	}
}

static void
take(struct page *p, const struct dirent *d)
{
	struct entry e;
	size_t len = strlen(d->d_name);

	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return;
	if (len >= sizeof(e.name) || (!p->encoded && !hr_utf8_strict(d->d_name, len))) {
		p->unnamed++;
		return;
	}
	memcpy(e.name, d->d_name, len + 1);
	e.is_dir = hr_dir_is_directory(dirfd(p->dir), d);
	if (p->from_start || compare(&e, &p->after) > 0)
		heap_add(p, &e);
}

static int
read_all(struct page *p, struct hr_err *err)
{
	const struct dirent *d;
	unsigned seen;

	for (seen = 0; seen < READ_MAX; seen++) {
		errno = 0;
		d = readdir(p->dir);
		if (d == NULL)
			return errno == 0 ? 0 : hr_err_sys(err, errno, "cannot read it");
		take(p, d);
	}
	return hr_err_set(err, HR_E_TOOLARGE, "it has more than %d entries", READ_MAX);
}

static void
put_name(const struct page *p, struct hr_buf *b, const struct entry *e)
{
	char name[NAME_BYTES + 1];
	size_t len = strlen(e->name);

	memcpy(name, e->name, len);
	if (e->is_dir)
		name[len++] = '/';
	name[len] = '\0';
	if (!p->encoded) {
		hr_quote_json(b, name, len);
		return;
	}
	hr_buf_addc(b, '"');
	hr_percent_encode(b, name, "-_.~/");
	hr_buf_addc(b, '"');
}

static const char *
type_of(const struct stat *st)
{
	return S_ISREG(st->st_mode)   ? "file"
	       : S_ISDIR(st->st_mode) ? "directory"
	       : S_ISLNK(st->st_mode) ? "link"
				      : "other";
}

static void
put_entry(const struct page *p, struct hr_buf *b, const struct entry *e)
{
	struct stat st;

	hr_buf_adds(b, "{\"name\":");
	put_name(p, b, e);
	if (fstatat(dirfd(p->dir), e->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		hr_buf_addf(b, ",\"type\":\"%s\",\"size\":%" PRId64 ",\"modified\":%" PRId64 "}",
		    type_of(&st), (int64_t)st.st_size, (int64_t)st.st_mtime);
	else /* the entry was removed, or stat is not permitted */
		hr_buf_addf(b, ",\"type\":\"%s\",\"size\":null,\"modified\":null}",
		    e->is_dir ? "directory" : "other");
}

static void
put_all(struct page *p, struct hr_buf *b)
{
	size_t i;

	qsort(p->heap, p->n, sizeof(p->heap[0]), compare);
	hr_buf_adds(b, "\"entries\":[");
	for (i = 0; i < p->n; i++) {
		if (i > 0)
			hr_buf_addc(b, ',');
		put_entry(p, b, &p->heap[i]);
	}
	hr_buf_adds(b, "],\"next\":");
	if (p->more)
		put_name(p, b, &p->heap[p->n - 1]);
	else
		hr_buf_adds(b, "null");
	hr_buf_addf(b, ",\"unnamed\":%zu%s", p->unnamed, p->encoded ? ",\"encoded\":true" : "");
}

/* Sets the name to start after. A name longer than any entry's sorts after its own prefix. */
static void
set_after(struct page *p, const char *after)
{
	size_t len = strlen(after);

	p->from_start = len == 0;
	p->after.is_dir = len > 0 && after[len - 1] == '/';
	len -= p->after.is_dir;
	if (len >= sizeof(p->after.name))
		len = sizeof(p->after.name) - 1;
	memcpy(p->after.name, after, len);
	p->after.name[len] = '\0';
}

int
hr_dirpage_put(
    struct hr_buf *b, int fd, const char *after, size_t limit, bool encoded, struct hr_err *err)
{
	struct page p = {.limit = limit, .encoded = encoded};
	int r = -1;

	p.heap = calloc(limit, sizeof(*p.heap));
	p.dir = fdopendir(fd);
	if (p.dir == NULL) {
		(void)hr_err_sys(err, errno, "cannot read it");
		hr_fd_close(&fd);
	} else if (p.heap == NULL) {
		(void)hr_err_nomem(err);
	} else {
		set_after(&p, after);
		r = read_all(&p, err);
	}
	if (r == 0)
		put_all(&p, b);
	if (p.dir != NULL)
		(void)closedir(p.dir); /* a directory stream that was only read cannot fail */
	free(p.heap);
	return r;
}
