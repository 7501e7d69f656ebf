/* box/oci: an image takes each name that it gives, files keep their own attributes but get none of
 * an overlay's, and a file with very many holes is written whole or refused. */
#include "config.h"

#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/path.h"
#include "box/oci/oci.h"
#include "lines.h"
#include "scratch.h"

static int from, to, layer;

static int
storage(const char *name)
{
	int dir = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	ck_assert_int_eq(mkdirat(dir, name, 0755), 0);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)close(dir);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void
set_up(void)
{
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
	scratch_make();
	from = storage("from");
	to = storage("to");
	layer = memfd_create("layer", MFD_CLOEXEC);
	ck_assert_int_ge(layer, 0);
}

static void
tear_down(void)
{
	(void)close(from);
	(void)close(to);
	(void)close(layer);
	scratch_remove();
	(void)strcpy(scratch + strlen(scratch) - 6, "XXXXXX");
}

static int
pack(struct oci_blob *ret, struct hr_err *err)
{
	const struct oci_source source = {.storage = from, .files = -1, .plain = true};

	return oci_pack(&source, layer, ret, err);
}

static int
unpack(struct hr_err *err)
{
	return oci_unpack(to, false, false, true, layer, err);
}

/* Opens, or makes, the entry "f" below that many directories in the box's root. */
static int
open_deep(int in, unsigned depth, size_t length, int flags)
{
	const char *part = "root";
	char name[NAME_MAX + 1];
	int dir = dup(in), fd;

	memset(name, 'd', sizeof(name));
	name[length] = '\0';
	for (; part != NULL; part = depth-- > 0 ? name : NULL) {
		ck_assert((flags & O_CREAT) == 0 || mkdirat(dir, part, 0755) == 0);
		fd = openat(dir, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		(void)close(dir);
		dir = fd;
	}
	fd = openat(dir, "f", flags | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	(void)close(dir);
	return fd;
}

static const struct {
	unsigned depth;
	size_t length; /* of each directory's name */
	bool fits;
} names[] = {{OCI_DEPTH_MAX, 1, false}, {OCI_DEPTH_MAX - 1, 1, true},
    {OCI_NAME_MAX / NAME_MAX + 1, NAME_MAX, false}, {OCI_NAME_MAX / NAME_MAX, NAME_MAX, true}};

START_TEST(names_of_an_image)
{
	struct hr_err err = {0};
	struct oci_blob blob;
	int r;

	(void)close(open_deep(from, names[_i].depth, names[_i].length, O_WRONLY | O_CREAT));
	r = pack(&blob, &err);
	ck_assert_msg((r == 0) == names[_i].fits, "%s", err.msg);
	if (!names[_i].fits) {
		ck_assert_ptr_nonnull(strstr(err.msg, "which an image cannot have"));
		return;
	}
	ck_assert_msg(unpack(&err) == 0, "%s", err.msg);
	(void)close(open_deep(to, names[_i].depth, names[_i].length, O_RDONLY));
	ck_assert_msg(oci_unpack(to, true, false, true, layer, &err) == 0, "%s", err.msg);
	(void)close(open_deep(to, names[_i].depth, names[_i].length, O_RDONLY));
}
END_TEST

START_TEST(removed_file_with_the_longest_name)
{
	char name[NAME_MAX + 1], path[2 * NAME_MAX];
	struct hr_err err = {0};
	struct oci_blob blob;
	struct stat st;

	memset(name, 'x', sizeof(name));
	name[NAME_MAX] = '\0';
	(void)snprintf(path, sizeof(path), "layers/usr/upper/%s", name);
	ck_assert(mkdirat(from, "layers", 0755) == 0 && mkdirat(from, "layers/usr", 0755) == 0 &&
		  mkdirat(from, "layers/usr/upper", 0755) == 0);
	ck_assert_int_eq(mknodat(from, path, S_IFCHR, 0), 0);
	ck_assert_msg(pack(&blob, &err) == 0, "%s", err.msg);
	ck_assert_msg(unpack(&err) == 0, "%s", err.msg);
	ck_assert_int_eq(fstatat(to, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert(S_ISCHR(st.st_mode) && st.st_rdev == 0);
}
END_TEST

static const struct {
	const char *name;
	bool kept;
} attributes[] = {{"user.overlay.opaque", false}, {"user.overlay.", false}, {"user.overlays", true},
    {"user.note", true}, {"trusted.note", false}};

/* Writes a layer with one file that has the attribute. */
static void
make_layer(const char *attribute)
{
	struct archive_entry *e = archive_entry_new();
	struct hr_err err = {0};
	struct oci_out o;

	ck_assert_int_eq(oci_out_open(&o, layer, &err), 0);
	archive_entry_set_pathname(e, "f");
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0600);
	archive_entry_set_uid(e, geteuid());
	archive_entry_set_gid(e, getegid());
	archive_entry_set_size(e, 0);
	archive_entry_xattr_add_entry(e, attribute, "y", 1);
	ck_assert_int_eq(archive_write_header(o.a, e), ARCHIVE_OK);
	archive_entry_free(e);
	ck_assert_int_eq(oci_out_close(&o, NULL, &err), 0);
	oci_out_done(&o);
}

START_TEST(attributes_of_an_image)
{
	struct hr_err err = {0};
	char value[8];
	int fd;

	make_layer(attributes[_i].name);
	if (unpack(&err) != 0) {
		/* the file system has no such attributes */
		ck_assert(attributes[_i].kept && err.sys == ENOTSUP);
		return;
	}
	fd = openat(to, "root/f", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
	    fgetxattr(fd, attributes[_i].name, value, sizeof(value)) == 1, attributes[_i].kept);
	(void)close(fd);
}
END_TEST

static unsigned ranges; /* number of data ranges that a file still seems to have; 0: its own */

static unsigned unreported; /* number of the call that fails; 0: none */

bool __real_hr_fd_next_data(int fd, off_t size, off_t *data, off_t *hole);
bool __wrap_hr_fd_next_data(int fd, off_t size, off_t *data, off_t *hole);

bool
__wrap_hr_fd_next_data(int fd, off_t size, off_t *data, off_t *hole)
{
	if (unreported != 0 && --unreported == 0) {
		*data = *hole = -1;
		errno = EIO;
		return false;
	}
	errno = ENXIO;
	if (ranges == 0)
		return __real_hr_fd_next_data(fd, size, data, hole);
	*data = *hole + 1;
	*hole = *data + 1;
	return --ranges > 0;
}

static const struct {
	unsigned ranges;
	off_t size;
	bool fits;
} sparse[] = {
    {65535, (off_t)2 << 30, true}, {65536, 1 << 20, true}, {65536, (off_t)2 << 30, false}};

START_TEST(holes_of_an_image)
{
	struct hr_err err = {0};
	struct oci_blob blob;
	struct stat st;
	int fd = open_deep(from, 0, 1, O_WRONLY | O_CREAT), r;

	ck_assert_int_eq(ftruncate(fd, sparse[_i].size), 0);
	(void)close(fd);
	ranges = sparse[_i].ranges + 1;
	r = pack(&blob, &err);
	ranges = 0;
	ck_assert_msg((r == 0) == sparse[_i].fits, "%s", err.msg);
	if (!sparse[_i].fits) {
		ck_assert_int_eq(err.code, HR_E_TOOLARGE);
		ck_assert_ptr_nonnull(strstr(err.msg, "/f of the box has more than 65536 holes"));
		return;
	}
	ck_assert_uint_lt(blob.size, 4 << 20);
	ck_assert_msg(unpack(&err) == 0, "%s", err.msg);
	fd = open_deep(to, 0, 1, O_RDONLY);
	ck_assert(fstat(fd, &st) == 0 && st.st_size == sparse[_i].size);
	(void)close(fd);
}
END_TEST

/* A file without data takes no room, in the layer or in the box. */
START_TEST(a_file_of_one_hole)
{
	struct hr_err err = {0};
	struct oci_blob blob;
	struct stat st;
	int fd = open_deep(from, 0, 1, O_WRONLY | O_CREAT);

	ck_assert_int_eq(ftruncate(fd, 64 << 20), 0);
	(void)close(fd);
	ck_assert_msg(pack(&blob, &err) == 0, "%s", err.msg);
	ck_assert_uint_lt(blob.size, 1 << 20);
	ck_assert_msg(unpack(&err) == 0, "%s", err.msg);
	fd = open_deep(to, 0, 1, O_RDONLY);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_size, 64 << 20);
	ck_assert_int_lt(st.st_blocks, 2048);
	(void)close(fd);
}
END_TEST

/* The first range cannot be found, or the second one. */
START_TEST(holes_that_are_not_reported)
{
	struct hr_err err = {0};
	struct oci_blob blob;
	char data[2] = "";
	int fd = open_deep(from, 0, 1, O_WRONLY | O_CREAT);

	ck_assert_int_eq(ftruncate(fd, 3 << 20), 0);
	ck_assert_int_eq(pwrite(fd, "a", 1, 1 << 20), 1);
	ck_assert_int_eq(pwrite(fd, "b", 1, 2 << 20), 1);
	(void)close(fd);
	unreported = (unsigned)_i;
	ck_assert_msg(pack(&blob, &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(unreported, 0);
	ck_assert_msg(unpack(&err) == 0, "%s", err.msg);
	fd = open_deep(to, 0, 1, O_RDONLY);
	ck_assert_int_eq(pread(fd, data, 1, 1 << 20), 1);
	ck_assert_int_eq(pread(fd, data + 1, 1, 2 << 20), 1);
	ck_assert_int_eq(memcmp(data, "ab", 2), 0);
	(void)close(fd);
}
END_TEST

/* Writes an image that has an empty file alone. */
static void
make_image(void)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();

	archive_entry_set_pathname(e,
	    "blobs/sha256/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b"
	    "7852b855");
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0600);
	archive_entry_set_size(e, 0);
	ck_assert_int_eq(archive_write_set_format_ustar(a), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_open_fd(a, layer), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_header(a, e), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_close(a), ARCHIVE_OK);
	archive_entry_free(e);
	(void)archive_write_free(a);
	ck_assert_int_eq(lseek(layer, 0, SEEK_SET), 0);
}

START_TEST(an_empty_file_needs_no_room)
{
	struct hr_err err = {0};

	make_image();
	ck_assert_int_eq(oci_import(scratch, "tag", true, layer, &err), -1);
	ck_assert_msg(strstr(err.msg, "it has no index.json") != NULL, "%s", err.msg);
}
END_TEST

#define N(a) (int)(sizeof(a) / sizeof(*(a)))

int
main(void)
{
	Suite *s = suite_create("box_oci");
	TCase *tc = tcase_create("box_oci");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, names_of_an_image, 0, N(names));
	tcase_add_test(tc, removed_file_with_the_longest_name);
	tcase_add_test(tc, an_empty_file_needs_no_room);
	tcase_add_loop_test(tc, attributes_of_an_image, 0, N(attributes));
	tcase_add_loop_test(tc, holes_of_an_image, 0, N(sparse));
	tcase_add_test(tc, a_file_of_one_hole);
	tcase_add_loop_test(tc, holes_that_are_not_reported, 1, 3);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
