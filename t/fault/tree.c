/* The files of a scenario. */
#include "config.h"

#include "tree.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/path.h"
#include "failcalls.h"
#include "fault.h"

const char *
tree_path(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];

	(void)snprintf(path, PATH_MAX, "%s/%s", fault_dir(), name);
	return path;
}

void
tree_tell(const char *p, size_t len)
{
	const char *dir = fault_dir(), *at;
	size_t n = strlen(dir);

	while ((at = memmem(p, len, dir, n)) != NULL) {
		fault_tell_bytes(p, (size_t)(at - p));
		fault_tell("DIR");
		len -= (size_t)(at - p) + n;
		p = at + n;
	}
	fault_tell_bytes(p, len);
}

static size_t
length(const struct tree_file *f, const char *text)
{
	return f->len > 0 ? f->len : strlen(text);
}

static void
broken(const char *path)
{
	perror(path);
	exit(99);
}

void
tree_make(const struct tree_file *files, size_t n)
{
	char dir[PATH_MAX];
	const char *path;
	size_t i;

	failcalls_spare(true);
	for (i = 0; i < n; i++) {
		path = tree_path(files[i].name);
		(void)snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
		if (files[i].old == NULL)
			continue;
		if (hr_path_mkdirs(dir, 0755, NULL, NULL) != 0 ||
		    hr_path_write(
			path, files[i].old, length(&files[i], files[i].old), 0644, NULL) != 0 ||
		    chmod(path, files[i].mode != 0 ? files[i].mode : 0644) != 0)
			broken(path);
	}
	failcalls_spare(false);
}

static bool
holds(const struct tree_file *f, const struct hr_buf *b, const char *text)
{
	return text != NULL && b->len == length(f, text) &&
	       memcmp(hr_buf_str(b), text, b->len) == 0;
}

static void
check_file(const struct tree_file *f)
{
	const char *path = tree_path(f->name);
	HR_BUF(b, 16u << 20);
	struct stat st;

	if (stat(path, &st) != 0) {
		if (f->old != NULL)
			fault_wrong("%s is gone", f->name);
		return;
	}
	if (hr_path_read(path, &b, NULL) != 0)
		broken(path);
	if (holds(f, &b, f->new))
		fault_tell("{new %s}", f->name);
	else if (!holds(f, &b, f->old))
		fault_wrong("%s is neither old nor new: \"%.80s\"", f->name, hr_buf_str(&b));
	if (f->old != NULL && (st.st_mode & 07777) != (f->mode != 0 ? f->mode : 0644))
		fault_wrong("%s has mode %o", f->name, (unsigned)st.st_mode & 07777);
}

struct known {
	const struct tree_file *files;
	size_t n;
};

static int
visit(int dirfd, const char *name, const struct stat *st, void *arg)
{
	const struct known *k = arg;
	struct stat mine;
	size_t i;

	(void)dirfd;
	if (S_ISDIR(st->st_mode)) {
		if (strncmp(name, ".handrail-", 10) == 0)
			fault_wrong("%s is left behind", name);
		return 0;
	}
	/* the undo history's own */
	if (strcmp(name, "lock") == 0 || (name[0] == 'e' && strlen(name) == 21))
		return 0;
	for (i = 0; i < k->n; i++)
		if (lstat(tree_path(k->files[i].name), &mine) == 0 && mine.st_ino == st->st_ino)
			return 0;
	fault_wrong("%s is left behind", name);
	return 0;
}

void
tree_check(const struct tree_file *files, size_t n)
{
	struct known k = {files, n};
	size_t i;

	failcalls_spare(true);
	for (i = 0; i < n; i++)
		check_file(&files[i]);
	if (hr_path_walk(fault_dir(), visit, &k, NULL) != 0)
		broken(fault_dir());
	failcalls_spare(false);
}
