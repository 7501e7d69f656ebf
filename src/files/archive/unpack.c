/* Reads the archive with libarchive but resolves the names here: libarchive's rules for them differ
 * from the contract's. Invariant: nothing outside the staging directory is touched before the whole
 * archive was read. */
#include "config.h"

#include "files/archive/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "files/place/beneath.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "files/place/spool.h"
#include "files/archive/unpack_int.h"
#include "proto/python/repr.h"
#include "base/text/utf8.h"

#define STAGE_KIND "unpack"
#define BLOCK (64u << 10)
#define TAIL_MAX (22u + 65535u) /* bytes of the end record with the longest comment */

struct unpack {
	struct archive *a;
	const struct hr_unpack_limits *limits;
	const struct hr_commit *commit; /* NULL: none */
	const char *zip_name, *directory;
	struct hr_buf *why;
	uint64_t bytes, entries;
	bool too_large;
	int root, stage;
	char stage_name[HR_SPOOL_NAME];
	/* the directory of the last file, kept open for the next one */
	struct hr_buf name, last_way;
	int last_dir;
};

bool
hr_unpack_is_zip(int fd)
{
	static const char sign[] = {'P', 'K', 5, 6};
	struct stat st;
	size_t len;
	HR_FREE char *tail = NULL;
	ssize_t n;

	if (fstat(fd, &st) < 0 || st.st_size < 22)
		return false;
	len = st.st_size < (off_t)TAIL_MAX ? (size_t)st.st_size : TAIL_MAX;
	tail = malloc(len);
	if (tail == NULL)
		return false;
	n = pread(fd, tail, len, st.st_size - (off_t)len);
	/* the record has at least 22 bytes, and the comment must fit after it */
	return n == (ssize_t)len && memmem(tail, len - 18, sign, sizeof(sign)) != NULL;
}

int
hr_unpack_name(const char *name, struct hr_buf *ret)
{
	unsigned depth = 0;
	size_t n, total = 0;

	if (name[0] == '/' || strstr(name, "..") != NULL)
		return 1;
	for (; *name != '\0'; name += n + strspn(name + n, "/")) {
		n = strcspn(name, "/");
		if (n == 1 && *name == '.')
			continue;
		total += n + 1;
		if (n > NAME_MAX || total > PATH_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		if (++depth > HR_UNPACK_DEPTH) {
			errno = ELOOP;
			return -1;
		}
		if (depth > 1)
			hr_buf_addc(ret, '/');
		hr_buf_add(ret, name, n);
	}
	return 0;
}

/* ---- the staging directory ---- */

static void
stage_remove(const struct unpack *u, const char *name)
{
	char path[64 + NAME_MAX];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", u->root, name);
	(void)hr_path_remove(path, NULL); /* the next upload removes leftovers */
}

/* Removes staging directories of killed processes: those that nobody has locked. */
static void
stage_sweep(const struct unpack *u)
{
	static const char prefix[] = HR_SPOOL_PREFIX STAGE_KIND "-";
	HR_CLOSEDIR DIR *d = hr_dir_take(openat(u->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	int old;

	if (d == NULL)
		return;
	while ((e = hr_dir_next(d)) != NULL) {
		if (strncmp(e->d_name, prefix, sizeof(prefix) - 1) != 0)
			continue;
		old = openat(u->root, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) == 0)
			stage_remove(u, e->d_name);
		hr_fd_close(&old);
	}
}

static int
stage_open(struct unpack *u)
{
	stage_sweep(u);
	if (hr_spool_name(u->stage_name, STAGE_KIND) < 0 ||
	    mkdirat(u->root, u->stage_name, 0700) < 0) {
		u->stage_name[0] = '\0';
		return -1;
	}
	u->stage = openat(u->root, u->stage_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* a concurrent sweep may find the directory empty before it is locked and remove it: then
	 * the open or the first file fails */
	return u->stage < 0 ? -1 : flock(u->stage, LOCK_SH | LOCK_NB);
}

/* ---- errors ---- */

static int
fail_entry(struct unpack *u, int sys)
{
	HR_FREE char *path = hr_path_join(u->directory, hr_buf_str(&u->name));

	return hr_oserror_put(u->why, path != NULL ? sys : ENOMEM, path);
}

static int
fail_limit(struct unpack *u, const char *what, uint64_t limit)
{
	hr_buf_reset(u->why);
	hr_buf_addf(u->why, "The archive holds more than %llu %s", (unsigned long long)limit, what);
	u->too_large = true;
	return -1;
}

/* Translates libarchive's error into the original's text where one is known. */
static int
fail_archive(struct unpack *u)
{
	const char *text = archive_error_string(u->a);
	HR_BUF(safe, 4096);

	if (text == NULL)
		text = "The archive is damaged";
	if (strncmp(text, "ZIP bad CRC", 11) == 0)
		text = "Bad CRC-32 for file";
	/* the text may quote bytes of the archive */
	hr_buf_adds(&safe, hr_utf8_valid(text, strlen(text)) ? text : "The archive is damaged");
	if (strcmp(hr_buf_str(&safe), "Bad CRC-32 for file") == 0) {
		hr_buf_addc(&safe, ' ');
		hr_pyrepr_str(&safe, hr_buf_str(&u->name), u->name.len);
		(void)hr_oserror_text(u->why, hr_buf_str(&safe), NULL);
	} else {
		(void)hr_oserror_text(u->why, hr_buf_str(&safe), u->zip_name);
	}
	return -1;
}

/* ---- entries ---- */

/* Opens the directory that the current name (clean) lies in, and makes it if needed. */
static int
directory_of(struct unpack *u, const char **ret_leaf)
{
	const char *name = hr_buf_str(&u->name), *slash = strrchr(name, '/');
	size_t n = slash != NULL ? (size_t)(slash - name) : 0;

	*ret_leaf = slash != NULL ? slash + 1 : name;
	if (u->last_dir >= 0 && n == u->last_way.len &&
	    memcmp(hr_buf_str(&u->last_way), name, n) == 0)
		return u->last_dir;
	hr_fd_close(&u->last_dir);
	hr_buf_reset(&u->last_way);
	hr_buf_add(&u->last_way, name, n);
	if (u->last_way.fail != HR_OK) {
		errno = ENOMEM;
		return -1;
	}
	u->last_dir = hr_beneath_mkdirs(u->stage, hr_buf_str(&u->last_way));
	return u->last_dir;
}

static int
write_block(struct unpack *u, int fd, const void *p, size_t len)
{
	u->bytes += len;
	if (u->limits->bytes > 0 && u->bytes > u->limits->bytes)
		return fail_limit(u, "bytes", u->limits->bytes);
	if (hr_fd_write_full(fd, p, len, NULL) < 0)
		return fail_entry(u, errno);
	return 0;
}

static int
write_data(struct unpack *u, int fd, struct archive_entry *e)
{
	const char *link = archive_entry_symlink(e);
	const void *p;
	size_t len;
	la_int64_t at;
	int r;

	if (link != NULL)
		return write_block(u, fd, link, strlen(link));
	while ((r = archive_read_data_block(u->a, &p, &len, &at)) == ARCHIVE_OK)
		if (len > 0 && write_block(u, fd, p, len) < 0)
			return -1;
	return r == ARCHIVE_EOF ? 0 : fail_archive(u);
}

static int
write_file(struct unpack *u, struct archive_entry *e)
{
	const char *leaf;
	int dir = directory_of(u, &leaf), fd, r;

	if (dir < 0)
		return fail_entry(u, errno);
	/* the later one of two entries with one name wins */
	fd = openat(
	    dir, leaf, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail_entry(u, errno);
	r = write_data(u, fd, e);
	if (close(fd) < 0 && r == 0) /* some file systems report a full quota only at close */
		r = fail_entry(u, errno);
	return r;
}

static int
write_directory(struct unpack *u)
{
	HR_CLOSE int fd = hr_beneath_mkdirs(u->stage, hr_buf_str(&u->name));

	if (fd < 0)
		return fail_entry(u, errno);
	return 0;
}

static bool
is_special(struct archive_entry *e)
{
	mode_t type = archive_entry_filetype(e);

	return type != 0 && type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK;
}

static int
unpack_entry(struct unpack *u, struct archive_entry *e)
{
	const char *name = archive_entry_pathname(e);
	size_t len = name != NULL ? strlen(name) : 0;
	bool is_dir = len > 0 && name[len - 1] == '/';
	int r;

	hr_buf_reset(&u->name);
	if (u->limits->entries > 0 && ++u->entries > u->limits->entries)
		return fail_limit(u, "entries", u->limits->entries);
	if (name == NULL || !hr_utf8_valid(name, len))
		return hr_oserror_text(
		    u->why, "400: A name in the archive is not valid", u->zip_name);
	r = hr_unpack_name(name, &u->name);
	if (r > 0)
		return 0;
	if (r < 0) {
		r = errno;
		hr_buf_reset(&u->name);
		hr_buf_add(&u->name, name, len < 512 ? len : 512);
		return fail_entry(u, r);
	}
	if (u->name.fail != HR_OK)
		return fail_entry(u, ENOMEM);
	if (is_special(e))
		return hr_oserror_text(
		    u->why, "400: Neither a file nor a directory", hr_buf_str(&u->name));
	if (u->name.len == 0)
		return 0;
	if (is_dir || archive_entry_filetype(e) == AE_IFDIR)
		return write_directory(u);
	if (archive_entry_is_data_encrypted(e)) {
		hr_buf_reset(u->why);
		hr_buf_adds(u->why, "File ");
		hr_pyrepr_str(u->why, hr_buf_str(&u->name), u->name.len);
		hr_buf_adds(u->why, " is encrypted, password required for extraction");
		return -1;
	}
	return write_file(u, e);
}

static int
unpack_all(struct unpack *u, int zip)
{
	struct archive_entry *e;
	int r;

	if (archive_read_support_format_zip_seekable(u->a) != ARCHIVE_OK)
		return fail_archive(u);
	/* names lacking the UTF-8 flag are in CP437; if iconv lacks that they must be ASCII */
	(void)archive_read_set_options(u->a, "zip:hdrcharset=CP437");
	if (lseek(zip, 0, SEEK_SET) < 0 || archive_read_open_fd(u->a, zip, BLOCK) != ARCHIVE_OK)
		return fail_archive(u);
	while ((r = archive_read_next_header(u->a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN)
		if (unpack_entry(u, e) < 0)
			return -1;
	return r == ARCHIVE_EOF ? 0 : fail_archive(u);
}

/* Returns true for an archive that is only an end record: libarchive fails on one. */
static bool
is_empty(int zip)
{
	struct stat st;
	unsigned char count[2];

	return fstat(zip, &st) == 0 && st.st_size == 22 && pread(zip, count, 2, 10) == 2 &&
	       count[0] == 0 && count[1] == 0;
}

static int
unpack_into(struct unpack *u, int zip)
{
	struct hr_merge m = {u->root, u->directory, u->why};

	if (is_empty(zip))
		return 0;
	u->a = archive_read_new();
	if (u->a == NULL)
		return hr_oserror_put(u->why, ENOMEM, NULL);
	if (stage_open(u) < 0)
		return hr_oserror_put(u->why, errno, u->directory);
	if (unpack_all(u, zip) < 0 || hr_merge_check(&m, u->stage) < 0)
		return -1;
	hr_commit_reached(u->commit);
	return hr_merge_move(&m, u->stage);
}

int
hr_unpack(int zip, const char *zip_name, const char *directory,
    const struct hr_unpack_limits *limits, const struct hr_commit *commit, bool *ret_too_large,
    struct hr_buf *why)
{
	struct unpack u = {.limits = limits,
	    .commit = commit,
	    .zip_name = zip_name,
	    .directory = directory,
	    .why = why,
	    .stage = -1,
	    .last_dir = -1};
	int r;

	hr_buf_init(&u.name, PATH_MAX + 1024);
	hr_buf_init(&u.last_way, PATH_MAX + 1024);
	u.root = hr_reach_open_as(AT_FDCWD, directory, O_PATH | O_DIRECTORY, true);
	r = u.root >= 0 ? unpack_into(&u, zip) : hr_oserror_put(why, errno, directory);
	hr_fd_close(&u.last_dir);
	hr_fd_close(&u.stage);
	if (u.stage_name[0] != '\0')
		stage_remove(&u, u.stage_name);
	hr_fd_close(&u.root);
	if (u.a != NULL)
		(void)archive_read_free(u.a);
	hr_buf_done(&u.name);
	hr_buf_done(&u.last_way);
	*ret_too_large = u.too_large;
	return r;
}
