/* The directories and links of a box beside those of the host. */
#include "config.h"

#include "box/skeleton.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "box/layer.h"

/* the directories that every box has */
static const struct {
	const char *path;
	mode_t mode;
	bool once; /* the box may change it, or put something else in its place */
} empty[] = {{"dev", 0755, false}, {"home", 0755, false}, {"media", 0755, false},
    {"mnt", 0755, false}, {"opt", 0755, false}, {"proc", 0555, false}, {"root", 0700, false},
    {"run", 0755, false}, {"srv", 0755, false}, {"sys", 0555, false}, {"tmp", 01777, false},
    {"var", 0755, false}, {"var/backups", 0755, true}, {"var/local", 0755, true},
    {"var/log", 0755, false}, {"var/mail", 0755, true}, {"var/opt", 0755, true},
    {"var/spool", 0755, true}, {"var/tmp", 01777, false}};

/* the links that every box with the host's programs has */
static const char *const links[][2] = {{"var/lock", "/run/lock"}, {"var/run", "/run"}};

int
box_skeleton_root(int root, struct hr_err *err)
{
	struct stat st;
	size_t i;

	for (i = 0; i < sizeof(empty) / sizeof(*empty); i++)
		if (!(empty[i].once &&
			fstatat(root, empty[i].path, &st, AT_SYMLINK_NOFOLLOW) == 0) &&
		    box_layer_below(root, empty[i].path, empty[i].mode, err) < 0)
			return -1;
	for (i = 0; i < sizeof(links) / sizeof(*links); i++)
		if (box_layer_link(root, links[i][0], links[i][1], err) < 0)
			return -1;
	return 0;
}

int
box_skeleton_system(struct hr_err *err)
{
	static const char *const shared[] = {"/run/lock", "/run/screen"};
	static const char *const devs[][2] = {{"/proc/self/fd", "/dev/fd"},
	    {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"},
	    {"/proc/self/fd/2", "/dev/stderr"}, {"pts/ptmx", "/dev/ptmx"}};
	size_t i;

	for (i = 0; i < sizeof(shared) / sizeof(*shared); i++)
		if (mkdir(shared[i], 01777) != 0 && errno != EEXIST)
			return hr_err_sys(err, errno, "make %s", shared[i]);
	for (i = 0; i < sizeof(devs) / sizeof(*devs); i++)
		if (symlink(devs[i][0], devs[i][1]) != 0)
			return hr_err_sys(err, errno, "make %s", devs[i][1]);
	return 0;
}
