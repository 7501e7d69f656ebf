/* Writes a layer of a snapshot. Nothing changes the snapshot meanwhile; no link is followed, and
 * nothing but regular files is opened. */
#include "config.h"

#include "box/oci/oci.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/dir.h"
#include "base/fd.h"
#include "box/mount.h"
#include "box/overlay.h"
#include "box/view.h"

#define ATTRIBUTES_MAX (64u << 10) /* the kernel's limit of a list, and of one value */
#define HOLES_MAX 65536u           /* maximum of holes per file */
#define WRITTEN_MAX (1 << 30)      /* maximum bytes of holes that are written as zeros */
#define HOLE_PIECE (1u << 30)

struct pack {
	struct oci_out out;
	const struct oci_source *from;
	struct archive_entry *e;
	struct archive_entry_linkresolver *links;
	struct hr_buf way; /* name of the current entry */
	bool overlay;      /* the directory is an upper layer: whiteouts are marks */
	bool hidden;       /* a directory above is opaque: nothing of the layers below is seen */
	bool part;         /* the directory is not the box's root, but one of the host's */
	const char *zeros; /* HOLE_PIECE bytes without memory */
	char piece[OCI_PIECE], list[ATTRIBUTES_MAX], value[ATTRIBUTES_MAX];
};

static int
failed(const struct pack *p, struct hr_err *err)
{
	return hr_err_sys(err, errno, "read %s", hr_buf_str(&p->way));
}

/* Adds a name to the way. Returns the length to which way_cut() takes it back. */
static size_t
way_add(struct pack *p, const char *name)
{
	const size_t len = p->way.len;

	if (len > 0)
		hr_buf_addc(&p->way, '/');
	hr_buf_adds(&p->way, name);
	return len;
}

static void
way_cut(struct pack *p, size_t len)
{
	if (p->way.fail != HR_OK || p->way.p == NULL)
		return;
	p->way.len = len;
	p->way.p[len] = '\0';
}

static void
describe(struct pack *p, const struct stat *st)
{
	archive_entry_clear(p->e);
	archive_entry_set_pathname(p->e, hr_buf_str(&p->way));
	archive_entry_set_filetype(p->e, st->st_mode & S_IFMT);
	archive_entry_set_perm(p->e, st->st_mode & 07777);
	archive_entry_set_uid(p->e, st->st_uid);
	archive_entry_set_gid(p->e, st->st_gid);
	archive_entry_set_mtime(p->e, st->st_mtim.tv_sec, 0);
	archive_entry_set_size(p->e, S_ISREG(st->st_mode) ? st->st_size : 0);
}

static int
put_header(struct pack *p, struct hr_err *err)
{
	if (hr_buf_check(&p->way, err) < 0)
		return -1;
	if (!oci_name_fits(hr_buf_str(&p->way)))
		return hr_err_set(err, HR_E_TOOLARGE,
		    "/%.100s... of the box has a longer name than %d bytes, or one of more than %d "
		    "components, which an image cannot have",
		    hr_buf_str(&p->way), OCI_NAME_MAX, OCI_DEPTH_MAX);
	return archive_write_header(p->out.a, p->e) < ARCHIVE_WARN || p->out.sys != 0
		   ? oci_out_fail(&p->out, err)
		   : 0;
}

/* Adds the attributes that an image has; those of overlays and of the machine's security modules
 * are left out. */
static int
add_attributes(struct pack *p, int fd)
{
	ssize_t n = flistxattr(fd, p->list, sizeof(p->list)), size;
	const char *name;

	if (n < 0)
		return errno == ENOTSUP ? 0 : -1;
	for (name = p->list; name < p->list + n; name += strlen(name) + 1) {
		if ((strncmp(name, "user.", 5) != 0 || strncmp(name, "user.overlay.", 13) == 0) &&
		    strncmp(name, "system.posix_acl_", 17) != 0 &&
		    strcmp(name, "security.capability") != 0)
			continue;
		size = fgetxattr(fd, name, p->value, sizeof(p->value));
		if (size < 0)
			return -1;
		archive_entry_xattr_add_entry(p->e, name, p->value, (size_t)size);
	}
	return 0;
}

/* Writes an empty file that marks a removed or a replaced entry of the layer below. */
static int
put_mark(struct pack *p, const char *name, struct hr_err *err)
{
	const struct stat st = {.st_mode = S_IFREG | 0600};
	const size_t len = way_add(p, name);
	int r;

	describe(p, &st);
	r = put_header(p, err);
	way_cut(p, len);
	return r;
}

/* Describes the data ranges of a sparse file. One with too many, or whose file system cannot report
 * them, is written as if it had no holes, if that takes little: the box could fill the disk of its
 * owner otherwise. */
static int
add_holes(struct pack *p, int fd, const struct stat *st, struct hr_err *err)
{
	const off_t holes = st->st_size - (off_t)st->st_blocks * 512;
	off_t data = 0, hole = 0;
	size_t n = 0;
	bool listed;

	if (holes <= 0)
		return 0;
	for (; n < HOLES_MAX && hr_fd_next_data(fd, st->st_size, &data, &hole); n++)
		archive_entry_sparse_add_entry(p->e, data, hole - data);
	listed = n < HOLES_MAX && errno == ENXIO;
	if (!listed && n < HOLES_MAX && holes > WRITTEN_MAX)
		return failed(p, err);
	if (!listed && holes > WRITTEN_MAX)
		return hr_err_set(err, HR_E_TOOLARGE,
		    "/%.100s of the box has more than %u holes: fill them, or remove the file, and "
		    "take another snapshot",
		    hr_buf_str(&p->way), HOLES_MAX);
	if (!listed)
		archive_entry_sparse_clear(p->e);
	else if (n == 0) /* the file is one hole */
		archive_entry_sparse_add_entry(p->e, st->st_size, 0);
	return 0;
}

/* Passes over a hole. libarchive takes its bytes, and reads none of them. */
static int
put_hole(struct pack *p, off_t len, struct hr_err *err)
{
	la_ssize_t n;

	for (; len > 0; len -= n) {
		n = archive_write_data(
		    p->out.a, p->zeros, len < (off_t)HOLE_PIECE ? (size_t)len : HOLE_PIECE);
		if (n <= 0 || p->out.sys != 0)
			return oci_out_fail(&p->out, err);
	}
	return 0;
}

static int
put_range(struct pack *p, int fd, off_t at, off_t end, struct hr_err *err)
{
	ssize_t n;

	for (; at < end; at += n) {
		n = pread(
		    fd, p->piece, end - at < (off_t)OCI_PIECE ? (size_t)(end - at) : OCI_PIECE, at);
		if (n <= 0) {
			errno = n == 0 ? EIO : errno;
			return failed(p, err);
		}
		if (archive_write_data(p->out.a, p->piece, (size_t)n) != n || p->out.sys != 0)
			return oci_out_fail(&p->out, err);
	}
	return 0;
}

/* Writes the file's data. A hole can have more bytes than anybody can wait for. */
static int
put_data(struct pack *p, int fd, const struct stat *st, struct hr_err *err)
{
	la_int64_t data, len;
	off_t at = 0;

	if (archive_entry_sparse_reset(p->e) == 0)
		return put_range(p, fd, 0, st->st_size, err);
	for (; archive_entry_sparse_next(p->e, &data, &len) == ARCHIVE_OK; at = data + len)
		if (put_hole(p, data - at, err) < 0 || put_range(p, fd, data, data + len, err) < 0)
			return -1;
	return put_hole(p, st->st_size - at, err);
}

/* Makes the entry a link to an earlier one of the same file. Returns true if there was one. */
static bool
is_linked(struct pack *p, const struct stat *st)
{
	struct archive_entry *e = p->e, *spare = NULL;

	if (st->st_nlink < 2)
		return false;
	archive_entry_set_dev(e, st->st_dev);
	archive_entry_set_ino(e, (la_int64_t)st->st_ino);
	archive_entry_set_nlink(e, (unsigned)st->st_nlink);
	archive_entry_linkify(p->links, &e, &spare);
	return archive_entry_hardlink(p->e) != NULL;
}

static int
put_file(struct pack *p, int dir, const char *name, const struct stat *st, struct hr_err *err)
{
	HR_CLOSE int fd = -1;

	describe(p, st);
	if (is_linked(p, st))
		return put_header(p, err);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || add_attributes(p, fd) < 0)
		return failed(p, err);
	return add_holes(p, fd, st, err) < 0 || put_header(p, err) < 0 ? -1
								       : put_data(p, fd, st, err);
}

/* Writes an entry that is no directory. Devices are left out: no box can use one. */
static int
put_other(struct pack *p, int dir, const char *name, const struct stat *st, struct hr_err *err)
{
	char target[PATH_MAX];
	ssize_t n;

	if (S_ISREG(st->st_mode))
		return put_file(p, dir, name, st, err);
	if (!S_ISLNK(st->st_mode) && !S_ISFIFO(st->st_mode))
		return 0;
	describe(p, st);
	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(dir, name, target, sizeof(target) - 1);
		if (n < 0)
			return failed(p, err);
		target[n] = '\0';
		archive_entry_set_symlink(p->e, target);
	}
	(void)is_linked(p, st);
	return put_header(p, err);
}

/* Returns true for an opaque directory. The attribute of the other kind of overlay, which a box of
 * root can set, has no effect. */
static bool
is_opaque(const struct pack *p, int fd)
{
	const char *name = box_overlay_opaque(p->from->plain);
	char value[2];

	return fgetxattr(fd, name, value, sizeof(value)) == 1 && value[0] == 'y';
}

/* Returns true for a directory that lies on no other one. Marked as opaque it stays so in a storage
 * that has the files of all layers: the kernel lists the whiteouts of a directory that is not
 * opaque, and has none below. */
static bool
is_new(const struct pack *p)
{
	size_t i;

	for (i = 0; i < p->from->n_below; i++) {
		HR_CLOSE int fd = box_mount_within(p->from->below[i], hr_buf_str(&p->way));

		if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP))
			return false;
	}
	return i > 0;
}

static int put_below(struct pack *p, int fd, struct hr_err *err);
static int open_layer(int storage, const char *seen, int *ret, struct hr_err *err);

/* Returns true for the place of an overlay in the box's root. Its layer has an entry of the same
 * name, which must be the only one. */
static bool
is_covered(const struct pack *p)
{
	const char *seen;
	size_t i;

	for (i = 0; !p->part && (seen = box_view_seen(i)) != NULL; i++)
		if (strcmp(seen, hr_buf_str(&p->way)) == 0) {
			HR_CLOSE int fd = -1;

			return open_layer(p->from->storage, seen, &fd, NULL) == 0 && fd >= 0;
		}
	return false;
}

static int
put_directory(struct pack *p, int fd, struct hr_err *err)
{
	const bool hidden = p->hidden;
	struct stat st;
	bool opaque;
	int r;

	if (fd < 0 || fstat(fd, &st) != 0)
		return failed(p, err);
	if (is_covered(p))
		return 0;
	describe(p, &st);
	if (add_attributes(p, fd) < 0)
		return failed(p, err);
	opaque = p->overlay && (is_opaque(p, fd) || (!p->part && !hidden && is_new(p)));
	if (put_header(p, err) < 0 || (opaque && put_mark(p, OCI_OPAQUE, err) < 0))
		return -1;
	p->hidden = hidden || opaque;
	r = put_below(p, fd, err);
	p->hidden = hidden;
	return r;
}

static int
put_entry(struct pack *p, int dir, const char *name, struct hr_err *err)
{
	char mark[sizeof(OCI_WHITEOUT) + NAME_MAX];
	const size_t len = p->way.len;
	HR_CLOSE int fd = -1;
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return failed(p, err);
	if (p->overlay && S_ISCHR(st.st_mode) && st.st_rdev == 0) {
		(void)snprintf(mark, sizeof(mark), OCI_WHITEOUT "%s", name);
		return put_mark(p, mark, err);
	}
	(void)way_add(p, name);
	if (strncmp(name, OCI_WHITEOUT, strlen(OCI_WHITEOUT)) == 0)
		return hr_err_set(err, HR_E_INVAL,
		    "/%s of the box has a name that means a removed file in an image: rename it, "
		    "and take another snapshot",
		    hr_buf_str(&p->way));
	if (S_ISDIR(st.st_mode)) {
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = put_directory(p, fd, err);
	} else {
		r = put_other(p, dir, name, &st, err);
	}
	way_cut(p, len);
	return r;
}

static int
put_below(struct pack *p, int fd, struct hr_err *err)
{
	HR_CLOSEDIR DIR *d = hr_dir_take(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *e;

	while (d != NULL && (e = hr_dir_next(d)) != NULL)
		if (put_entry(p, fd, e->d_name, err) < 0)
			return -1;
	return d != NULL && errno == 0 ? 0 : failed(p, err);
}

/* Opens a directory of the storage. *ret stays -1 if it is missing. */
static int
open_part(int storage, const char *path, int *ret, struct hr_err *err)
{
	*ret = openat(storage, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret >= 0 || errno == ENOENT || errno == ENOTDIR
		   ? 0
		   : hr_err_sys(err, errno, "open %s of the snapshot", path);
}

void
oci_place(const char *seen, bool whole, struct hr_buf *b)
{
	if (whole) {
		hr_buf_addf(b, "layers/" BOX_OVERLAY_WHOLE "/upper/%s", seen);
		return;
	}
	hr_buf_adds(b, "layers/");
	for (; *seen != '\0'; seen++)
		hr_buf_addc(b, *seen == '/' ? '-' : *seen);
	hr_buf_adds(b, "/upper");
}

/* Opens the layer of a directory of the host. *ret stays -1 if it has none. */
static int
open_layer(int storage, const char *seen, int *ret, struct hr_err *err)
{
	int i, r = 0;

	*ret = -1;
	for (i = 0; r == 0 && *ret < 0 && i < 2; i++) {
		HR_BUF(path, PATH_MAX);

		oci_place(seen, i == 0, &path);
		r = hr_buf_check(&path, err) < 0 ? -1
						 : open_part(storage, hr_buf_str(&path), ret, err);
	}
	return r;
}

/* Writes a directory of the storage as the root of the box. */
static int
put_root(struct pack *p, const char *path, struct hr_err *err)
{
	HR_CLOSE int fd = -1;

	if (open_part(p->from->storage, path, &fd, err) < 0)
		return -1;
	return fd >= 0 ? put_below(p, fd, err) : 0;
}

static int
put_parts(struct pack *p, struct hr_err *err)
{
	const char *seen;
	size_t i;

	p->overlay = p->from->marks;
	if (p->from->files >= 0)
		return put_below(p, p->from->files, err);
	if (put_root(p, "root", err) < 0)
		return -1;
	p->overlay = p->part = true;
	for (i = 0; (seen = box_view_seen(i)) != NULL; i++) {
		HR_CLOSE int fd = -1;
		int r = open_layer(p->from->storage, seen, &fd, err);

		if (r == 0 && fd >= 0) {
			(void)way_add(p, seen);
			r = put_directory(p, fd, err);
			way_cut(p, 0);
		}
		if (r < 0)
			return -1;
	}
	p->part = false;
	return put_root(p, BOX_OVERLAY_OWN_TOP, err);
}

int
oci_pack(const struct oci_source *from, int to, struct oci_blob *ret, struct hr_err *err)
{
	HR_FREE struct pack *p = calloc(1, sizeof(*p));
	void *zeros =
	    mmap(NULL, HOLE_PIECE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r = -1;

	if (p == NULL || zeros == MAP_FAILED) {
		if (zeros != MAP_FAILED)
			(void)munmap(zeros, HOLE_PIECE);
		return hr_err_nomem(err);
	}
	p->zeros = zeros;
	hr_buf_init(&p->way, 2 * PATH_MAX);
	p->e = archive_entry_new();
	p->links = archive_entry_linkresolver_new();
	if (p->e == NULL || p->links == NULL) {
		(void)hr_err_nomem(err);
	} else if (oci_out_open(&p->out, to, err) == 0) {
		archive_entry_linkresolver_set_strategy(p->links, ARCHIVE_FORMAT_TAR);
		p->from = from;
		r = put_parts(p, err);
		if (r == 0)
			r = oci_out_close(&p->out, ret, err);
	}
	oci_out_done(&p->out);
	archive_entry_linkresolver_free(p->links);
	archive_entry_free(p->e);
	hr_buf_done(&p->way);
	(void)munmap(zeros, HOLE_PIECE);
	return r;
}
