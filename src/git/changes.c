/* Collects a list of changes, and searches for repositories in a directory. */
#include "config.h"

#include "git/git_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dir.h"

static struct hr_git_change *
entries(const struct hr_buf *list, size_t *ret_n)
{
	*ret_n = list->len / sizeof(struct hr_git_change);
	return (struct hr_git_change *)(void *)list->p;
}

void
hr_git_changes_add(
    struct hr_buf *list, char status, const char *prefix, const char *path, size_t len)
{
	struct hr_git_change one = {status, NULL};
	HR_BUF(full, HR_GIT_OUTPUT_MAX);

	if (prefix != NULL)
		hr_buf_addf(&full, "%s/", prefix);
	hr_buf_add(&full, path, len);
	one.path = hr_buf_take(&full);
	if (one.path == NULL) {
		list->fail = HR_E_NOMEM;
		return;
	}
	hr_buf_add(list, &one, sizeof(one));
	if (list->fail != HR_OK)
		free(one.path);
}

void
hr_git_changes_take(
    struct hr_buf *list, bool conflicts, const char *prefix, const struct hr_buf *out)
{
	const char *p = hr_buf_str(out), *end = p + out->len, *name, *last = "";
	char status;

	for (; p < end; p = name + strlen(name) + 1) {
		status = *p;
		name = p + strlen(p) + 1;
		if (name >= end)
			return;
		if (status == 'R' || status == 'C') {
			if (status == 'R')
				hr_git_changes_add(list, 'D', prefix, name, strlen(name));
			name += strlen(name) + 1;
			if (name >= end)
				return;
			status = 'A';
		}
		if (strchr(conflicts ? "ADU" : "AD", status) == NULL)
			status = 'M';
		/* a conflict's name appears a second time, as modified */
		if (!conflicts || strcmp(name, last) != 0)
			hr_git_changes_add(list, status, prefix, name, strlen(name));
		last = name;
	}
}

void
hr_git_changes_drop(struct hr_buf *list, const struct hr_buf *names,
    bool (*is_below)(const char *path, const char *name))
{
	size_t n, i, kept = 0;
	struct hr_git_change *one = entries(list, &n);
	const char *name, *end = hr_buf_str(names) + names->len;

	for (i = 0; i < n; i++) {
		for (name = hr_buf_str(names); name < end; name += strlen(name) + 1)
			if (is_below(one[i].path, name))
				break;
		if (name < end)
			free(one[i].path);
		else
			one[kept++] = one[i];
	}
	list->len = kept * sizeof(*one);
}

int
hr_git_by_path(const void *a, const void *b)
{
	const struct hr_git_change *x = a, *y = b;
	int c = strcmp(x->path, y->path);

	return c != 0 ? c : (x->status < y->status) - (x->status > y->status);
}

void
hr_git_changes_put(
    const struct hr_buf *list, int (*order)(const void *, const void *), struct hr_buf *json)
{
	size_t n, i;
	struct hr_git_change *one = entries(list, &n);

	if (n > 0 && order != NULL)
		qsort(one, n, sizeof(*one), order);
	hr_buf_addc(json, '[');
	for (i = 0; i < n; i++) {
		hr_buf_addf(
		    json, "%s{\"status\": \"%c\", \"path\": ", i > 0 ? ", " : "", one[i].status);
		hr_git_put_ascii(json, one[i].path, strlen(one[i].path));
		hr_buf_addc(json, '}');
	}
	hr_buf_addc(json, ']');
}

void
hr_git_changes_done(struct hr_buf *list)
{
	size_t n, i;
	struct hr_git_change *one = entries(list, &n);

	for (i = 0; i < n; i++)
		free(one[i].path);
	hr_buf_done(list);
}

void
hr_git_nested(const char *directory, struct hr_buf *names)
{
	HR_CLOSEDIR DIR *d = opendir(directory);
	const struct dirent *e;
	struct stat st;
	HR_BUF(path, PATH_MAX);

	while (d != NULL && (e = readdir(d)) != NULL) {
		hr_buf_reset(&path);
		hr_buf_addf(&path, "%s/.git", e->d_name);
		if (e->d_name[0] != '.' && path.fail == HR_OK &&
		    fstatat(dirfd(d), path.p, &st, AT_SYMLINK_NOFOLLOW) == 0)
			hr_buf_add(names, e->d_name, strlen(e->d_name) + 1);
	}
}
