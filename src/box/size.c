/* Counts the files of boxes. */
#include "config.h"

#include "box/size.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/volume.h"
#include "box/copy.h"
#include "box/ids.h"

struct sum {
	uint64_t files, bytes;
};

static int
add_one(int dir, const char *name, const struct stat *st, void *arg)
{
	struct sum *s = arg;

	(void)dir;
	(void)name;
	s->files++;
	/* a file with several names is counted once for each of them */
	s->bytes += (uint64_t)st->st_blocks * 512 / (S_ISDIR(st->st_mode) ? 1 : st->st_nlink);
	return 0;
}

/* Counts file by file, below the top. */
static int
walk_all(const char *path, struct sum *s, struct hr_err *err)
{
	unsigned skipped = 0;

	if (hr_path_walk(path, add_one, s, &skipped) < 0 || skipped > 0)
		return hr_err_set(err, HR_E_TOOLARGE,
		    "the box has directories deeper than %d levels", BOX_COPY_DEPTH);
	s->files--;
	return 0;
}

static int
count(const char *path, struct sum *s, struct hr_err *err)
{
	HR_CLOSE int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct sum one = {0};

	if (top < 0)
		return hr_err_sys(err, errno, "open %s", path);
	if (!hr_volume_count(top, &one.files, &one.bytes)) {
		one = (struct sum){0};
		if (walk_all(path, &one, err) < 0)
			return -1;
	}
	s->files += one.files;
	s->bytes += one.bytes + one.files * BOX_COPY_ENTRY;
	return 0;
}

static int
print_size(const void *arg, struct hr_err *err)
{
	const char *const *path;
	struct sum s = {0};
	char line[128];
	int n;

	for (path = arg; *path != NULL; path++)
		if (count(*path, &s, err) < 0)
			return -1;
	n = snprintf(line, sizeof(line), "{\"files\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n",
	    s.files, s.bytes);
	return hr_fd_write_full(STDOUT_FILENO, line, (size_t)n, err);
}

int
box_size(const char *const *paths, struct hr_err *err)
{
	return box_ids_run(print_size, paths, err);
}
