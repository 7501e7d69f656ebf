/* Freezes, thaws and removes the control groups of a box, which its launcher makes. */
#include "config.h"

#include "host/box/box_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/process/hierarchy.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"

#define START 32 /* bytes for a number of a process, or a state */
#define PATIENCE_MS 2000
#define PROCESSES_MAX 100 /* a launcher has started one or two */

/* The files by which cgroups of version 2 and version 1 are frozen, with their values. */
static const struct {
	const char *file, *frozen, *thawed;
} ways[] = {{"cgroup.freeze", "1", "0"}, {"freezer.state", "FROZEN", "THAWED"}};

/* Reads the first bytes of a file; *ret is empty if there is none. */
static void
read_start(const char *group, const char *file, char ret[START])
{
	HR_FREE char *path = hr_path_join(group, file);
	HR_CLOSE int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd >= 0 ? hr_fd_read(fd, ret, START - 1) : -1;

	ret[n > 0 ? n : 0] = '\0';
}

/* Returns the group that can be frozen, with its state in *ret and its index of `ways` in *ret_way;
 * NULL: there is none. */
static const char *
freezer(const struct hr_box *b, size_t *ret_way, char *ret)
{
	char text[START];
	size_t i;

	for (i = 0; i < b->groups.n; i++)
		for (*ret_way = 0; *ret_way < sizeof(ways) / sizeof(*ways); (*ret_way)++) {
			read_start(b->groups.v[i], ways[*ret_way].file, text);
			*ret = text[0];
			if (*ret != '\0')
				return b->groups.v[i];
		}
	return NULL;
}

const char *
hr_box_freezer(const struct hr_box *b)
{
	char state;
	size_t way;

	return freezer(b, &way, &state);
}

int
hr_box_freeze(const struct hr_box *b, bool frozen, struct hr_err *err)
{
	char state;
	size_t way;
	const char *group = freezer(b, &way, &state);

	if (group == NULL)
		return 0;
	return hr_hierarchy_put(
		   group, ways[way].file, frozen ? ways[way].frozen : ways[way].thawed, err) == 0
		   ? 1
		   : -1;
}

/* Returns true once the last process has stopped: until then the state of a cgroup of version 1 is
 * FREEZING. */
bool
hr_box_is_frozen(const struct hr_box *b)
{
	char state;
	size_t way;

	return freezer(b, &way, &state) != NULL && state == ways[way].frozen[0];
}

/* Waits for the end of a process of a group. Returns false if none has ended. */
static bool
wait_for_one(const char *group)
{
	HR_CLOSE int fd = -1;
	char text[START];
	long pid;

	read_start(group, "cgroup.procs", text);
	pid = strtol(text, NULL, 10);
	if (pid <= 0)
		return false;
	fd = hr_pidfd_open((pid_t)pid);
	return fd >= 0 ? hr_pid_wait(fd, PATIENCE_MS) : errno == ESRCH;
}

/* Removes a group. A process whose launcher was killed ends by itself, and keeps the group until
 * then. */
static void
remove_group(const char *group)
{
	int left = PROCESSES_MAX;

	while (rmdir(group) != 0 && errno == EBUSY && left-- > 0 && wait_for_one(group)) {
	}
}

/* Removes the groups of a launcher that was killed before it reported them, by their name. */
static void
remove_unreported(const char *name)
{
	static const char *const controllers[] = {"", "memory", "pids", "cpu", "freezer"};
	size_t i;

	for (i = 0; i < sizeof(controllers) / sizeof(*controllers); i++) {
		const bool top = controllers[i][0] != '\0' || geteuid() == 0;
		HR_FREE char *mount = hr_hierarchy_find("/proc", controllers[i], top, NULL);
		HR_FREE char *all = mount != NULL ? hr_path_join(mount, "handrail") : NULL;
		HR_FREE char *group = all != NULL ? hr_path_join(all, name) : NULL;

		if (group != NULL)
			remove_group(group);
	}
}

void
hr_box_remove_groups(struct hr_box *b)
{
	size_t i;

	if (b->groups.n == 0 && b->name != NULL)
		remove_unreported(b->name);
	for (i = 0; i < b->groups.n; i++)
		remove_group(b->groups.v[i]); /* none is left if the machine was restarted */
	hr_strv_done(&b->groups);
}
