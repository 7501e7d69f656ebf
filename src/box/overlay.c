/* Overlays: their directories in the storage, and their mounts. */
#include "config.h"

#include "box/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/ids.h"
#include "box/layer.h"
#include "box/mount.h"

#define OPTION_MAX 256 /* maximum bytes of an option of a mount, with the NUL */
#define SCRATCH "top"  /* name in the scratch directory */

const char *
box_overlay_own(size_t i)
{
	static const char *const own[] = {"work", "work2", "new", SCRATCH};

	return i < sizeof(own) / sizeof(*own) ? own[i] : NULL;
}

bool
box_overlay_is_own(const char *name)
{
	const char *own;
	size_t i;

	for (i = 0; (own = box_overlay_own(i)) != NULL; i++)
		if (strcmp(own, name) == 0)
			return true;
	return false;
}

const char *
box_overlay_opaque(bool plain)
{
	return plain ? "user.overlay.opaque" : "trusted.overlay.opaque";
}

int
box_lower_open(struct box_lower *l, const char *const *paths, size_t n, struct hr_err *err)
{
	for (; n > 0; n--, paths++) {
		l->v[l->n] = box_mount_path(*paths, O_RDONLY | O_DIRECTORY);
		if (l->v[l->n++] < 0)
			return hr_err_sys(err, errno, "open the layer %s", *paths);
	}
	return 0;
}

void
box_lower_done(struct box_lower *l)
{
	while (l->n > 0)
		hr_fd_close(&l->v[--l->n]);
}

void
box_overlay_done(struct box_overlay *o)
{
	hr_fd_close(&o->scratch);
	hr_fd_close(&o->upper);
	hr_fd_close(&o->work);
}

int
box_overlay_open(int storage, const char *name, struct box_overlay *ret, struct hr_err *err)
{
	HR_CLOSE int top = box_layer_directory(storage, "layers", 0700);

	ret->scratch = top >= 0 ? box_layer_directory(top, name, 0700) : -1;
	ret->upper = ret->scratch >= 0 ? box_layer_directory(ret->scratch, "upper", 0755) : -1;
	ret->work = ret->upper >= 0 ? box_layer_directory(ret->scratch, "work", 0700) : -1;
	return ret->work >= 0 ? 0 : hr_err_sys(err, errno, "make layers/%s in the storage", name);
}

/* Opens the top, which is made whole or not at all. */
static int
open_top(int dir, const char *name, int scratch, int like)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, name, flags);
	struct stat st;

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (fstat(like, &st) != 0)
		return -1;
	(void)unlinkat(scratch, SCRATCH, AT_REMOVEDIR); /* a killed launcher's */
	if (mkdirat(scratch, SCRATCH, 0700) != 0 ||
	    box_ids_give(scratch, SCRATCH, st.st_uid, st.st_gid) != 0 ||
	    fchmodat(scratch, SCRATCH, st.st_mode & 07777, 0) != 0 ||
	    renameat(scratch, SCRATCH, dir, name) != 0)
		return -1;
	return openat(dir, name, flags);
}

int
box_overlay_open_root(
    int storage, bool own, int like, const char *work, struct box_overlay *ret, struct hr_err *err)
{
	HR_CLOSE int top = box_layer_directory(storage, "layers", 0700);

	ret->scratch = top >= 0 ? box_layer_directory(top, BOX_OVERLAY_ROOT, 0700) : -1;
	ret->work = ret->scratch >= 0 ? box_layer_directory(ret->scratch, work, 0700) : -1;
	if (ret->work >= 0)
		ret->upper = own ? open_top(ret->scratch, "upper", ret->scratch, like)
				 : open_top(storage, BOX_OVERLAY_TOP, ret->scratch, like);
	return ret->upper >= 0 ? 0 : hr_err_sys(err, errno, "make the root in the storage");
}

/* Writes the lower directories as an option, and enters the directory in which they have short
 * names: the kernel takes 255 bytes. */
static int
name_lower(const int *lower, size_t n, char ret[OPTION_MAX])
{
	size_t i, len = 0;

	if (n == 1) {
		(void)snprintf(ret, OPTION_MAX, "/proc/self/fd/%d", lower[0]);
		return 0;
	}
	for (i = 0; i < n && len < OPTION_MAX; i++)
		len += (size_t)snprintf(
		    ret + len, OPTION_MAX - len, "%s%d", i > 0 ? ":" : "", lower[i]);
	if (len >= OPTION_MAX) {
		errno = E2BIG;
		return -1;
	}
	return chdir("/proc/self/fd");
}

int
box_overlay_new(
    bool plain, const int *lower, size_t n, const struct box_overlay *o, const char *source)
{
	char below[OPTION_MAX], places[2][32];
	const char *options[] = {"lowerdir", below, "upperdir", places[0], "workdir", places[1],
	    "source", source, plain ? "userxattr" : "index", plain ? NULL : "off",
	    plain ? NULL : "redirect_dir", "off", "metacopy", "off", NULL};

	/* descriptors, since a comma or a colon in a path would end the option */
	if (name_lower(lower, n, below) < 0)
		return -1;
	(void)snprintf(places[0], sizeof(places[0]), "/proc/self/fd/%d", o->upper);
	(void)snprintf(places[1], sizeof(places[1]), "/proc/self/fd/%d", o->work);
	return box_mount_new("overlay", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

int
box_overlay_name(const struct box_overlay *o, char ret[BOX_TABLE_SOURCE])
{
	struct stat upper, work;

	if (fstat(o->upper, &upper) != 0 || fstat(o->work, &work) != 0)
		return -1;
	box_table_name(upper.st_ino, work.st_ino, ret);
	return 0;
}
