/* Answers POST /list_files (doc/http.md, "POST /list_files"). */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/dir.h"
#include "base/path.h"
#include "files/place/reach.h"
#include "files/purepath.h"
#include "proto/json.h"
#include "proto/python/lower.h"
#include "base/text/utf8.h"
#include "worker/worker.h"

/* maximum bytes of all names of a directory: 10 million files of 25 letters */
#define NAMES_MAX (512u << 20)
#define WHY_MAX 512

struct entry {
	size_t name, name_len; /* offset in `names`; a directory's name ends with '/' */
	size_t lower, lower_len;
	size_t order; /* position as read, for a stable sort */
	bool is_dir;
};

struct listing {
	struct hr_buf names;   /* the names and their lower-cased forms */
	struct hr_buf entries; /* array of struct entry */
	bool bad_name;
};

static bool
entry_is(int dirfd, const struct dirent *d, bool searchable, bool *ret_is_dir)
{
	struct stat st;

	if (searchable && d->d_type != DT_LNK && d->d_type != DT_UNKNOWN) {
		*ret_is_dir = d->d_type == DT_DIR;
		return true;
	}
	if (fstatat(dirfd, d->d_name, &st, 0) < 0)
		return false;
	*ret_is_dir = S_ISDIR(st.st_mode);
	return true;
}

static void
listing_add(struct listing *l, const char *name, bool is_dir)
{
	struct entry e = {.name = l->names.len, .is_dir = is_dir};

	if (!hr_utf8_strict(name, strlen(name))) {
		l->bad_name = true;
		return;
	}
	hr_buf_adds(&l->names, name);
	if (is_dir)
		hr_buf_addc(&l->names, '/');
	e.name_len = l->names.len - e.name;
	e.lower = l->names.len;
	/* the slash is part of the key: "a-b/" sorts before "a/" */
	hr_pylower(&l->names, name, strlen(name));
	if (is_dir)
		hr_buf_addc(&l->names, '/');
	e.lower_len = l->names.len - e.lower;
	e.order = l->entries.len;
	hr_buf_add(&l->entries, &e, sizeof(e));
}

static void
listing_read(struct listing *l, const char *path)
{
	struct dirent *d;
	bool searchable, is_dir;
	DIR *dir = hr_dir_take(hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, false));

	if (dir == NULL)
		return;
	/* stat() finds no entry without search permission */
	searchable = faccessat(dirfd(dir), ".", X_OK, AT_EACCESS) == 0;
	while ((d = hr_dir_next(dir)) != NULL)
		if (entry_is(dirfd(dir), d, searchable, &is_dir))
			listing_add(l, d->d_name, is_dir);
	if (errno != 0)
		l->bad_name = true; /* any error while listing gives an empty list */
	(void)closedir(dir);        /* the directory was only read */
}

static int
entry_compare(const void *a, const void *b, void *arg)
{
	const struct entry *x = a, *y = b;
	const char *names = arg;
	size_t n = x->lower_len < y->lower_len ? x->lower_len : y->lower_len;
	int c;

	if (x->is_dir != y->is_dir)
		return x->is_dir ? -1 : 1;
	/* UTF-8 bytes sort like code points */
	c = memcmp(names + x->lower, names + y->lower, n);
	if (c != 0)
		return c;
	if (x->lower_len != y->lower_len)
		return x->lower_len < y->lower_len ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void
listing_put(struct listing *l, struct hr_buf *b)
{
	size_t n = l->entries.len / sizeof(struct entry), i;
	struct entry *e = (struct entry *)(void *)l->entries.p;

	if (n > 0)
		qsort_r(e, n, sizeof(*e), entry_compare, l->names.p);
	hr_buf_addc(b, '[');
	for (i = 0; i < n; i++) {
		hr_buf_adds(b, i > 0 ? "," : "");
		(void)hr_json_put_str(b, l->names.p + e[i].name, e[i].name_len,
		    HR_JSON_REFUSE); /* the names were checked */
	}
	hr_buf_addc(b, ']');
}

static void
list_directory(const char *path, struct hr_answer *ret)
{
	struct listing l = {.names.cap = NAMES_MAX, .entries.cap = NAMES_MAX};

	listing_read(&l, path);
	if (l.names.fail != HR_OK || l.entries.fail != HR_OK)
		hr_answer_generic(ret);
	else if (l.bad_name)
		hr_buf_adds(&ret->body, "[]");
	else
		listing_put(&l, &ret->body);
	hr_buf_done(&l.names);
	hr_buf_done(&l.entries);
}

static void
list_path(const char *work_dir, struct json_object *path, struct hr_answer *ret)
{
	const char *s = "";
	HR_BUF(why, WHY_MAX);
	HR_FREE char *bytes = NULL;
	HR_FREE char *full = NULL;
	size_t len = 0;

	if (path != NULL)
		s = hr_json_str(path, &len);
	bytes = hr_purepath_bytes(s, len, &why);
	full = bytes != NULL ? hr_path_join(work_dir, bytes) : NULL;
	if (full != NULL)
		list_directory(full, ret);
	else if (bytes != NULL || why.fail == HR_E_NOMEM)
		hr_answer_generic(ret);
	else
		hr_buf_adds(&ret->body, "[]"); /* no such path can exist */
}

void
hr_handle_list(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_PUT struct json_object *body = NULL;
	struct json_object *path;

	if (!hr_worker_body(w, r, HR_JSON_BODY_MAX, ret))
		return;
	(void)hr_json_decode(
	    hr_buf_str(&w->body), w->body.len, &body, NULL); /* otherwise `body` is not an object */
	path = hr_json_at(body, "path");
	if (hr_json_type(body) != HR_PY_DICT || (path != NULL && hr_json_type(path) != HR_PY_STR))
		hr_answer_generic(ret);
	else
		list_path(w->work_dir, path, ret);
}
