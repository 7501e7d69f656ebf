/* files/archive/tree: what the system refuses, and what somebody changes, while a tree is sent or
 * made. */
#include "config.h"

#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "files/archive/pack.h"
#include "files/archive/tree.h"
#include "files/place/reach.h"
#include "lines.h"
#include "scratch.h"

#define SHELL 65533
#define LONG_AGO 981173106
#define NAME_LENGTH 250
#define SPARSE_SIZE (32 << 20)
#define SPARSE_STEP 128

static char top[sizeof(scratch) + 8];
static struct hr_tree_report report;
static struct hr_err err;

/* ---- the system ---- */

static int reads = -1;      /* that succeed still; -1: all */
static int read_fails;      /* errno of the others */
static unsigned names = 0;  /* that a directory seems to hold */
static off_t extent = 0;    /* bytes of data and of holes; 0: as it is */
static const char *swapped; /* with the next name that is made; NULL: nothing */

ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n);
struct dirent *__real_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d);
off_t __real_lseek(int fd, off_t at, int whence);
off_t __wrap_lseek(int fd, off_t at, int whence);
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __real_symlinkat(const char *target, int dir, const char *name);
int __wrap_symlinkat(const char *target, int dir, const char *name);

ssize_t
__wrap_read(int fd, void *p, size_t n)
{
	if (reads == 0) {
		errno = read_fails;
		return -1;
	}
	reads -= reads > 0;
	return __real_read(fd, p, n);
}

struct dirent *
__wrap_readdir(DIR *d)
{
	static struct dirent e;

	if (names == 0)
		return __real_readdir(d);
	names--;
	(void)snprintf(e.d_name, sizeof(e.d_name), "%0*u", NAME_LENGTH, names);
	return names > 0 ? &e : NULL;
}

off_t
__wrap_lseek(int fd, off_t at, int whence)
{
	if (extent == 0 || (whence != SEEK_DATA && whence != SEEK_HOLE))
		return __real_lseek(fd, at, whence);
	if (whence == SEEK_DATA && at >= SPARSE_SIZE) {
		errno = ENXIO;
		return -1;
	}
	return (at / extent + 1) * extent;
}

/* As the shell would, at the worst moment. */
static int
swap(int dir, const char *name)
{
	const char *victim = swapped;

	if (victim == NULL)
		return 0;
	swapped = NULL;
	return renameat(dir, name, dir, "away") == 0 ? renameat(dir, victim, dir, name) : -1;
}

int
__wrap_mkdirat(int dir, const char *name, mode_t mode)
{
	return __real_mkdirat(dir, name, mode) == 0 ? swap(dir, name) : -1;
}

int
__wrap_symlinkat(const char *target, int dir, const char *name)
{
	return __real_symlinkat(target, dir, name) == 0 ? swap(dir, name) : -1;
}

/* ---- streams ---- */

static const char *
in_top(const char *name)
{
	static char path[4][256];
	static unsigned i;

	i = (i + 1) % 4;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", top, name);
	return path[i];
}

static void
setup(void)
{
	static const struct hr_reach rules = {.shell = SHELL};

	(void)snprintf(top, sizeof(top), "%s/top", scratch);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0); /* of one that failed */
	ck_assert_int_eq(mkdir(top, 0700), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(chown(top, SHELL, SHELL), 0);
	(void)umask(0);
	memset(&err, 0, sizeof(err));
	hr_reach_rules(&rules);
	hr_tree_report_init(&report);
}

static void
teardown(void)
{
	hr_tree_report_done(&report);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static int
count(void *arg, const void *p, size_t len)
{
	(void)p;
	*(size_t *)arg += len;
	return 0;
}

/* Returns the bytes of the stream. */
static size_t
send_tree(const char *name)
{
	const struct hr_tree_options o = {.own = false};
	struct hr_tree *t = hr_tree_open(in_top(name), &o, &err);
	size_t sent = 0;

	ck_assert_msg(t != NULL, "%s", err.msg);
	ck_assert_msg(hr_tree_send(t, count, &sent, &report, &err) == 0, "%s", err.msg);
	hr_tree_free(t);
	return sent;
}

struct member {
	const char *name;
	mode_t mode;      /* with its type */
	const char *text; /* or where a link leads */
};

/* A stream, which comes byte by byte. */
struct stream {
	char bytes[64 << 10];
	size_t len, at;
	mode_t widest; /* the modes that the top has meanwhile */
};

static void
write_stream(struct stream *s, const struct member *m, uid_t uid)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();

	memset(s, 0, sizeof(*s));
	ck_assert(a != NULL && e != NULL);
	ck_assert_int_eq(archive_write_set_format_pax(a), ARCHIVE_OK);
	ck_assert_int_eq(
	    archive_write_open_memory(a, s->bytes, sizeof(s->bytes), &s->len), ARCHIVE_OK);
	for (; m->name != NULL; m++) {
		archive_entry_clear(e);
		archive_entry_set_pathname(e, m->name);
		archive_entry_set_filetype(e, m->mode & S_IFMT);
		archive_entry_set_perm(e, m->mode & 07777);
		archive_entry_set_mtime(e, LONG_AGO, 0);
		archive_entry_set_uid(e, uid);
		archive_entry_set_gid(e, uid == 0 ? 0 : getegid());
		if (S_ISLNK(m->mode))
			archive_entry_set_symlink(e, m->text);
		archive_entry_set_size(e, S_ISREG(m->mode) ? (la_int64_t)strlen(m->text) : 0);
		ck_assert_int_eq(archive_write_header(a, e), ARCHIVE_OK);
		if (S_ISREG(m->mode))
			ck_assert_int_eq(archive_write_data(a, m->text, strlen(m->text)),
			    (la_ssize_t)strlen(m->text));
	}
	ck_assert_int_eq(archive_write_close(a), ARCHIVE_OK);
	archive_entry_free(e);
	(void)archive_write_free(a);
}

static ssize_t
read_stream(void *arg, char *p, size_t room)
{
	struct stream *s = arg;
	struct stat st;

	if (stat(in_top("made"), &st) == 0)
		s->widest |= st.st_mode & 0777;
	if (room == 0 || s->at == s->len)
		return 0;
	*p = s->bytes[s->at++];
	return 1;
}

static struct stream stream;

static void
make_tree(const struct member *m, const struct hr_tree_options *o, uid_t uid)
{
	write_stream(&stream, m, uid);
	ck_assert_msg(hr_tree_unpack(in_top("made"), o, read_stream, &stream, &report, &err) == 0,
	    "%s", err.msg);
}

#define REPORT                                                                                     \
	{                                                                                          \
		HR_TREE_REPORT, S_IFREG | 0600, ""                                                 \
	}

static const struct hr_tree_options plain = {.owner = false};

/* ---- sending ---- */

START_TEST(a_read_that_fails_after_the_first_piece)
{
	static const struct {
		int sys;
		const char *said;
	} rows[] = {{EIO, "Input/output error"}, {EAGAIN, NULL}};

	ck_assert_int_eq(hr_path_write(in_top("f"), "piece", 5, 0644, NULL), 0);
	reads = 1;
	read_fails = rows[_i].sys;
	(void)send_tree("f");
	reads = -1;
	ck_assert_uint_eq(report.failed, rows[_i].said != NULL);
	ck_assert(rows[_i].said == NULL || strstr(hr_buf_str(&report.list), rows[_i].said) != NULL);
}
END_TEST

static int
collect(void *arg, const void *p, size_t len)
{
	struct stream *s = arg;

	ck_assert_uint_le(len, sizeof(s->bytes) - s->len);
	memcpy(s->bytes + s->len, p, len);
	s->len += len;
	return 0;
}

/* A name need not be text of any charset. */
START_TEST(a_name_of_any_bytes)
{
	const struct hr_tree_options o = {.own = false};
	struct hr_tree *t;
	struct stat st;

	ck_assert_int_eq(mkdir(in_top("d"), 0755), 0);
	ck_assert_int_eq(hr_path_write(in_top("d/\xFF\xC3(\n"), "piece", 5, 0644, NULL), 0);
	t = hr_tree_open(in_top("d"), &o, &err);
	ck_assert_msg(t != NULL, "%s", err.msg);
	memset(&stream, 0, sizeof(stream));
	ck_assert_msg(hr_tree_send(t, collect, &stream, &report, &err) == 0, "%s", err.msg);
	hr_tree_free(t);
	ck_assert_msg(
	    hr_tree_unpack(in_top("made"), &plain, read_stream, &stream, &report, &err) == 0, "%s",
	    err.msg);
	ck_assert_uint_eq(report.failed, 0);
	ck_assert_int_eq(stat(in_top("made/\xFF\xC3(\n"), &st), 0);
	ck_assert_int_eq(st.st_size, 5);
}
END_TEST

START_TEST(a_directory_with_too_many_names)
{
	ck_assert_int_eq(mkdir(in_top("d"), 0755), 0);
	names = 80000000 / NAME_LENGTH;
	(void)send_tree("d");
	names = 0;
	ck_assert_uint_eq(report.failed, 1);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&report.list), "too many names"));
}
END_TEST

START_TEST(a_file_with_too_many_holes)
{
	int fd = open(in_top("f"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, SPARSE_SIZE), 0);
	(void)close(fd);
	extent = _i == 0 ? SPARSE_STEP : SPARSE_SIZE / 64;
	if (_i == 0)
		ck_assert_uint_ge(send_tree("f"), SPARSE_SIZE);
	else
		ck_assert_uint_lt(send_tree("f"), SPARSE_SIZE);
	extent = 0;
	ck_assert_uint_eq(report.failed, 0);
}
END_TEST

/* ---- making ---- */

START_TEST(a_link_that_is_swapped)
{
	static const struct member members[] = {
	    {"t", S_IFLNK | 0777, "anywhere"}, REPORT, {.name = NULL}};
	struct hr_tree_options o = {.owner = _i == 1};
	struct stat st;

	ck_assert_int_eq(hr_path_write(in_top("victim"), "x", 1, 0600, NULL), 0);
	swapped = "victim";
	make_tree(members, &o, geteuid() == 0 ? SHELL : geteuid());
	ck_assert_int_eq(lstat(in_top("made"), &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_uint_eq(st.st_uid, geteuid());
	ck_assert_int_ne(st.st_mtime, LONG_AGO);
	ck_assert_uint_eq(report.failed, 1);
}
END_TEST

/* Root's directory, where the caller is root, or one of the shell's own with something in it. */
START_TEST(a_directory_that_is_swapped)
{
	static const struct member members[] = {
	    {"t", S_IFDIR | 0755, NULL}, {"t/f", S_IFREG | 0644, "x"}, REPORT, {.name = NULL}};
	struct stat st;

	ck_assert_int_eq(mkdir(in_top("victim"), 0700), 0);
	if (_i == 1) {
		ck_assert_int_eq(mkdir(in_top("victim/secret"), 0700), 0);
		if (geteuid() == 0)
			ck_assert_int_eq(chown(in_top("victim"), SHELL, SHELL), 0);
	}
	swapped = "victim";
	make_tree(members, &plain, 0);
	ck_assert_int_eq(stat(in_top("made"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
}
END_TEST

/* Both belong to the shell's account where that is not the caller's, and have the entry's time. */
START_TEST(what_is_made_is_the_shells)
{
	static const struct member members[] = {
	    {"t", S_IFDIR | 0755, NULL}, {"t/link", S_IFLNK | 0777, "to"}, REPORT, {.name = NULL}};
	const uid_t whose = geteuid() == 0 ? SHELL : geteuid();
	struct stat st;

	make_tree(members, &plain, 0);
	ck_assert_uint_eq(report.failed, 0);
	ck_assert_int_eq(lstat(in_top("made/link"), &st), 0);
	ck_assert_uint_eq(st.st_uid, whose);
	ck_assert_uint_eq(st.st_gid, geteuid() == 0 ? SHELL : getegid());
	ck_assert_int_eq(st.st_mtime, LONG_AGO);
	ck_assert_int_eq(stat(in_top("made"), &st), 0);
	ck_assert_uint_eq(st.st_uid, whose);
	ck_assert_uint_eq(st.st_mode & 0777, 0755);
	ck_assert_int_eq(st.st_mtime, LONG_AGO);
}
END_TEST

/* Also of what takes the place of something. */
START_TEST(owners_are_kept)
{
	static const struct member members[] = {{"t", S_IFDIR | 0755, NULL},
	    {"t/f", S_IFREG | 0640, "new"}, {"t/link", S_IFLNK | 0777, "to"}, REPORT,
	    {.name = NULL}};
	const struct hr_tree_options o = {.owner = true};
	const uid_t whose = geteuid() == 0 ? 1234 : geteuid();
	struct stat st;

	ck_assert_int_eq(mkdir(in_top("made"), 0755), 0);
	ck_assert_int_eq(hr_path_write(in_top("made/f"), "old", 3, 0600, NULL), 0);
	ck_assert_int_eq(symlink("old", in_top("made/link")), 0);
	make_tree(members, &o, whose);
	ck_assert_uint_eq(report.failed, 0);
	ck_assert_int_eq(lstat(in_top("made/f"), &st), 0);
	ck_assert_uint_eq(st.st_uid, whose);
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
	ck_assert_int_eq(lstat(in_top("made/link"), &st), 0);
	ck_assert_uint_eq(st.st_uid, whose);
	ck_assert_int_eq(st.st_mtime, LONG_AGO);
}
END_TEST

START_TEST(a_directory_is_never_wider_than_its_entry)
{
	static const struct member members[] = {
	    {"t", S_IFDIR | 0510, NULL}, {"t/f", S_IFREG | 0644, "secret"}, REPORT, {.name = NULL}};
	struct stat st;

	make_tree(members, &plain, 0);
	ck_assert_uint_eq(stream.widest, 0710);
	ck_assert_int_eq(stat(in_top("made"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0510);
	ck_assert_int_eq(chmod(in_top("made"), 0700), 0);
}
END_TEST

static unsigned
open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	ck_assert_ptr_nonnull(d);
	while (hr_dir_next(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

START_TEST(a_top_that_comes_again)
{
	static const struct member members[] = {{"t", S_IFDIR | 0755, NULL},
	    {"t", S_IFDIR | 0755, NULL}, {"t/f", S_IFREG | 0644, "x"}, REPORT, {.name = NULL}};
	unsigned before = open_files();
	struct stat st;

	make_tree(members, &plain, 0);
	ck_assert_uint_eq(open_files(), before);
	ck_assert_int_eq(stat(in_top("made/f"), &st), 0);
	ck_assert_uint_eq(report.failed, 0);
}
END_TEST

#define DEEP 2100

static int
sink_nowhere(struct hr_sink *sink, const void *p, size_t len)
{
	(void)sink;
	(void)p;
	(void)len;
	return 0;
}

/* More directories than any path can name: a walk without a limit fills the stack. */
START_TEST(a_tree_without_an_end)
{
	struct hr_sink sink = {.write = sink_nowhere, .fd = -1};
	int next, i, fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct rlimit was, more;
	HR_BUF(why, 1u << 20);
	struct hr_pack *p;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	more = was;
	more.rlim_cur = was.rlim_max < DEEP + 200 ? was.rlim_max : DEEP + 200;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &more), 0);
	for (i = 0; i < DEEP; i++) {
		ck_assert_int_eq(mkdirat(fd, "d", 0700), 0);
		next = openat(fd, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
		hr_fd_close(&fd);
		fd = next;
	}
	hr_fd_close(&fd);
	p = hr_pack_open(top, false, &why);
	/* the look before takes milliseconds, and may have ended above */
	if (p != NULL) {
		ck_assert_int_eq(hr_pack_send(p, &sink, &err), -1);
		hr_buf_adds(&why, err.msg);
	}
	hr_pack_free(p);
	if (more.rlim_cur == DEEP + 200) /* otherwise descriptors ran out before */
		ck_assert_msg(strstr(hr_buf_str(&why), strerror(ENAMETOOLONG)) != NULL, "%s",
		    hr_buf_str(&why));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("tree");
	TCase *tc = tcase_create("tree");

	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, a_read_that_fails_after_the_first_piece, 0, 2);
	tcase_add_test(tc, a_name_of_any_bytes);
	tcase_add_test(tc, a_directory_with_too_many_names);
	tcase_add_loop_test(tc, a_file_with_too_many_holes, 0, 2);
	tcase_add_loop_test(tc, a_link_that_is_swapped, 0, 2);
	tcase_add_loop_test(tc, a_directory_that_is_swapped, geteuid() == 0 ? 0 : 1, 2);
	tcase_add_test(tc, what_is_made_is_the_shells);
	tcase_add_test(tc, owners_are_kept);
	tcase_add_test(tc, a_directory_is_never_wider_than_its_entry);
	tcase_add_test(tc, a_top_that_comes_again);
	tcase_add_test(tc, a_tree_without_an_end);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
