/* Handles the control groups handrail/NAME of a box, which its launcher makes: freezes and removes
 * them. */
#include "config.h"

#include "host/box/box_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"

#define MOUNTINFO_MAX (4u << 20)
#define GROUP_OF "%s/handrail/%s"

/* Called with the directory of a group; a non-zero result ends the walk. */
typedef int group_fn(const char *dir, void *arg);

/* Walks the groups that exist of that name in all hierarchies. */
static int
each(const char *name, group_fn *fn, void *arg)
{
	char *line, *next, dir[PATH_MAX], group[PATH_MAX];
	HR_FREE char *text = NULL;
	HR_BUF(b, MOUNTINFO_MAX);
	int r = 0;

	if (geteuid() != 0 || hr_path_read("/proc/self/mountinfo", &b, NULL) < 0)
		return 0;
	text = hr_buf_take(&b);
	for (line = text; r == 0 && line != NULL && *line != '\0'; line = next) {
		next = strchrnul(line, '\n');
		if (*next != '\0')
			*next++ = '\0';
		/* a backslash begins an escaped byte, which no mount of control groups has */
		if (strstr(line, " - cgroup") != NULL &&
		    sscanf(line, "%*s %*s %*s %*s %4095s", dir) == 1 && strchr(dir, '\\') == NULL &&
		    (size_t)snprintf(group, sizeof(group), GROUP_OF, dir, name) < sizeof(group) &&
		    access(group, F_OK) == 0)
			r = fn(group, arg);
	}
	return r;
}

/* the files by which versions 2 and 1 freeze, with their values */
static const struct {
	const char *file, *frozen, *thawed;
} ways[] = {{"cgroup.freeze", "1", "0"}, {"freezer.state", "FROZEN", "THAWED"}};

/* Returns a descriptor of the file that freezes a group, or -1 if this hierarchy has none. */
static int
freezer(const char *dir, int flags, size_t *ret_way)
{
	char path[PATH_MAX];
	int fd = -1;

	for (*ret_way = 0; *ret_way < sizeof(ways) / sizeof(*ways); (*ret_way)++) {
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, ways[*ret_way].file) <
		    sizeof(path))
			fd = open(path, flags | O_CLOEXEC);
		if (fd >= 0)
			break;
	}
	return fd;
}

struct freezing {
	bool frozen;
	struct hr_err *err;
};

static int
freeze_one(const char *dir, void *arg)
{
	const struct freezing *f = arg;
	size_t way;
	HR_CLOSE int fd = freezer(dir, O_WRONLY, &way);
	const char *value;

	if (fd < 0)
		return 0;
	value = f->frozen ? ways[way].frozen : ways[way].thawed;
	return write(fd, value, strlen(value)) > 0
		   ? 1
		   : hr_err_sys(f->err, errno, "write %s to the freezer in %s", value, dir);
}

int
hr_box_freeze(const struct hr_box *b, bool frozen, struct hr_err *err)
{
	struct freezing f = {frozen, err};

	return b->name != NULL ? each(b->name, freeze_one, &f) : 0;
}

static int
ask_one(const char *dir, void *arg)
{
	size_t way;
	HR_CLOSE int fd = freezer(dir, O_RDONLY, &way);
	char text[16] = "";

	(void)arg;
	if (fd < 0 || hr_fd_read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	/* version 1 may also show FREEZING, until the last process has stopped */
	return text[0] == ways[way].frozen[0];
}

bool
hr_box_is_frozen(const struct hr_box *b)
{
	return b->name != NULL && each(b->name, ask_one, NULL) == 1;
}

static int
remove_one(const char *dir, void *arg)
{
	(void)arg;
	(void)rmdir(dir); /* a group of that name may hold a process of another box */
	return 0;
}

void
hr_box_remove_groups(const struct hr_box *b)
{
	if (b->name != NULL)
		(void)each(b->name, remove_one, NULL);
}
