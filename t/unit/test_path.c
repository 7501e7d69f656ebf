/* base/path: names, whole files, walks that follow no link. */
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/plain.h"
#include "base/volume.h"

static char top[64];
static int before_rename; /* a signal that this process gets there */
static int named;     /* the error of a file system without files without a name; 0: it has them */
static pid_t stopped; /* a process that continues, and ends, when this one waits; 0: none */

static const char *
in_top(const char *name)
{
	static char path[8][512];
	static int i;

	i = (i + 1) % 8;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", top, name);
	return path[i];
}

/* Takes the place of the C library's function. */
int
rename(const char *from, const char *to)
{
	if (before_rename != 0)
		(void)raise(before_rename);
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int
openat(int dir, const char *path, int flags, ...)
{
	va_list more;
	mode_t mode;

	va_start(more, flags);
	mode =
	    (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
	va_end(more);
	if (named != 0 && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = named;
		return -1;
	}
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int
poll(struct pollfd *fds, nfds_t n, int ms)
{
	const struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	int status;

	if (stopped == 0)
		return ppoll(fds, n, &limit, NULL);
	ck_assert_int_eq(kill(stopped, SIGCONT), 0);
	ck_assert_int_eq(waitpid(stopped, &status, 0), stopped);
	ck_assert_int_eq(status, 0);
	stopped = 0;
	return 0;
}

/* Starts a writer that gets a signal when its temporary file is complete. */
static pid_t
interrupted(const char *path, const char *text, int sig)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		before_rename = sig;
		_exit(hr_path_write(path, text, strlen(text), 0400, NULL) != 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert_int_eq(WIFSTOPPED(status) ? WSTOPSIG(status) : WTERMSIG(status), sig);
	return pid;
}

static int
entries(void)
{
	DIR *d = opendir(top);
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (hr_dir_next(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

static void
assert_holds(const char *path, const char *text)
{
	HR_BUF(b, 4096);

	ck_assert_int_eq(hr_path_read(path, &b, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&b), text);
}

static void
make_file(const char *name)
{
	int fd = open(in_top(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	(void)close(fd);
}

static void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(top, sizeof(top), "%.40s/test_path.XXXXXX", tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(top));
}

static void
teardown(void)
{
	struct stat st;

	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
	ck_assert_int_ne(stat(top, &st), 0);
}

START_TEST(leads_out)
{
	static const char *const up[] = {
	    "..", "../a", "a/..", "a/../b", "/..", "a//../b", "/", "/a"};
	static const char *const not_up[] = {
	    "", ".", "...", "a..b", "..a/b", "a../b", "a/...", "a/"};
	size_t i;

	for (i = 0; i < sizeof(up) / sizeof(up[0]); i++)
		ck_assert_msg(hr_path_leads_out(up[i]), "%s", up[i]);
	for (i = 0; i < sizeof(not_up) / sizeof(not_up[0]); i++)
		ck_assert_msg(!hr_path_leads_out(not_up[i]), "%s", not_up[i]);
}
END_TEST

START_TEST(within_and_directory)
{
	ck_assert(hr_path_is_within("/a/b", "/a") && hr_path_is_within("/a", "/a"));
	ck_assert(!hr_path_is_within("/ab", "/a") && !hr_path_is_within("/a", "/a/b"));
	ck_assert(hr_path_is_directory(top));
	ck_assert_int_eq(symlink(top, in_top("link")), 0);
	ck_assert(hr_path_is_directory(in_top("link")));
	ck_assert(!hr_path_is_directory(in_top("none")) && !hr_path_is_directory("/dev/null"));
}
END_TEST

START_TEST(join)
{
	static const struct {
		const char *dir, *name, *want;
	} rows[] = {{"/a", "b", "/a/b"}, {"/a/", "b", "/a/b"}, {"/", "b", "/b"}, {"/a", "/b", "/b"},
	    {"", "b", "b"}};
	HR_FREE char *p = hr_path_join(rows[_i].dir, rows[_i].name);

	ck_assert_str_eq(p, rows[_i].want);
}
END_TEST

START_TEST(mkdirs_makes_what_is_missing)
{
	struct hr_err err = {0};
	unsigned made = 99;

	ck_assert_int_eq(hr_path_mkdirs(in_top("a//b/c/"), 0755, &made, &err), 0);
	ck_assert_uint_eq(made, 3);
	ck_assert_int_eq(hr_path_mkdirs(in_top("a/b/c"), 0755, &made, &err), 0);
	ck_assert_uint_eq(made, 0);
	make_file("f");
	ck_assert_int_eq(hr_path_mkdirs(in_top("f"), 0755, NULL, &err), -1);
	ck_assert_int_eq(hr_path_mkdirs(in_top("f/g"), 0755, NULL, &err), -1);
	ck_assert_int_eq(err.sys, ENOTDIR);
}
END_TEST

START_TEST(write_replaces_whole_and_sets_the_mode)
{
	HR_BUF(b, 16);
	struct stat st;

	ck_assert_int_eq(hr_path_write(in_top("w"), "first", 5, 0600, NULL), 0);
	ck_assert_int_eq(hr_path_write(in_top("w"), "2nd", 3, 0644, NULL), 0);
	ck_assert_int_eq(stat(in_top("w"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
	ck_assert_int_eq(hr_path_read(in_top("w"), &b, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&b), "2nd");
	hr_buf_done(&b);
	ck_assert_int_eq(hr_path_write(in_top("no/w"), "x", 1, 0600, NULL), -1);
}
END_TEST

START_TEST(read_stops_at_the_cap)
{
	struct hr_err err = {0};
	struct hr_buf b;

	ck_assert_int_eq(hr_path_write(in_top("r"), "0123456789", 10, 0600, NULL), 0);
	hr_buf_init(&b, 9);
	ck_assert_int_eq(hr_path_read(in_top("r"), &b, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	hr_buf_done(&b);
	hr_buf_init(&b, 10);
	ck_assert_int_eq(hr_path_read(in_top("r"), &b, &err), 0);
	hr_buf_done(&b);
	ck_assert_int_eq(hr_path_read(in_top("none"), &b, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
}
END_TEST

START_TEST(remove_takes_links_not_their_targets)
{
	struct stat st;

	ck_assert_int_eq(hr_path_mkdirs(in_top("victim/deep"), 0755, NULL, NULL), 0);
	make_file("victim/deep/file");
	ck_assert_int_eq(hr_path_mkdirs(in_top("doomed/x/y"), 0755, NULL, NULL), 0);
	ck_assert_int_eq(symlink(in_top("victim"), in_top("doomed/x/link")), 0);
	ck_assert_int_eq(symlink("/nowhere", in_top("doomed/broken")), 0);
	make_file("doomed/x/y/f");
	ck_assert_int_eq(hr_path_remove(in_top("doomed"), NULL), 0);
	ck_assert_int_ne(lstat(in_top("doomed"), &st), 0);
	ck_assert_int_eq(stat(in_top("victim/deep/file"), &st), 0);
	ck_assert_int_eq(hr_path_remove(in_top("doomed"), NULL), 0); /* nothing there: fine */
	/* a link as the top is removed itself */
	ck_assert_int_eq(symlink(in_top("victim"), in_top("toplink")), 0);
	ck_assert_int_eq(hr_path_remove(in_top("toplink"), NULL), 0);
	ck_assert_int_eq(stat(in_top("victim/deep/file"), &st), 0);
}
END_TEST

START_TEST(remove_takes_trees_of_any_depth)
{
	int above, at = open(in_top(""), O_RDONLY | O_DIRECTORY), i;
	struct stat st;

	for (i = 0; i < 3 * HR_PATH_DEPTH; i++) {
		ck_assert_int_eq(mkdirat(at, "d", 0755), 0);
		above = at;
		at = openat(above, "d", O_RDONLY | O_DIRECTORY);
		(void)close(above);
		if (i == 0) /* the name is taken */
			ck_assert_int_eq(mkdirat(at, ".removed-1", 0755), 0);
		ck_assert_int_ge(at, 0);
	}
	ck_assert_int_eq(mknodat(at, "f", S_IFREG | 0600, 0), 0);
	(void)close(at);
	ck_assert_int_eq(hr_path_remove(in_top("d"), NULL), 0);
	ck_assert_int_ne(lstat(in_top("d"), &st), 0);
}
END_TEST

/* The next writer of a path replaces what a killed one has left, and so does its removal. */
START_TEST(killed_writers_leave_nothing_for_long)
{
	const char *path = in_top("a");
	int i;

	for (i = 0; i < 3; i++) {
		(void)interrupted(path, "a longer secret", SIGKILL);
		ck_assert_int_eq(entries(), 1); /* however often */
		ck_assert_int_ne(access(path, F_OK), 0);
	}
	ck_assert_int_eq(hr_path_write(path, "one", 3, 0600, NULL), 0);
	ck_assert_int_eq(entries(), 1);
	assert_holds(path, "one");
	(void)interrupted(path, "two", SIGKILL);
	assert_holds(path, "one");
	ck_assert_int_eq(entries(), 2);
	ck_assert(hr_path_clean(path));
	ck_assert_int_eq(entries(), 1);
	ck_assert(hr_path_clean(path)); /* nothing is left */
	(void)interrupted(path, "two", SIGKILL);
	ck_assert_int_eq(hr_path_unlink(path), 0);
	ck_assert_int_eq(entries(), 0);
	(void)interrupted(path, "three", SIGKILL);
	ck_assert_int_eq(hr_path_unlink(path), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(entries(), 0);
}
END_TEST

/* A second writer waits, so that it has no name that nobody finds again if it is killed. */
START_TEST(writers_one_after_the_other)
{
	const char *path = in_top("a");

	stopped = interrupted(path, "the first one", SIGSTOP);
	ck_assert(!hr_path_clean(path));
	ck_assert_int_eq(errno, EWOULDBLOCK);
	ck_assert_int_eq(hr_path_write(path, "the second one", 14, 0600, NULL), 0);
	ck_assert_int_eq(stopped, 0);
	assert_holds(path, "the second one");
	ck_assert_int_eq(entries(), 1);
}
END_TEST

/* A writer that stands still keeps its file, and both write a whole one. */
START_TEST(writers_beside_each_other)
{
	const char *path = in_top("a");
	pid_t pid = interrupted(path, "the first one", SIGSTOP);
	int status;

	ck_assert_int_eq(hr_path_write(path, "the second one", 14, 0600, NULL), 0);
	assert_holds(path, "the second one");
	ck_assert_int_eq(entries(), 2);
	ck_assert_int_eq(kill(pid, SIGCONT), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	assert_holds(path, "the first one");
	ck_assert_int_eq(entries(), 1);
}
END_TEST

/* Nothing is written through a link, or to a file, of the temporary name. */
START_TEST(a_temporary_name_that_is_taken)
{
	const char *path = in_top("a"), *name = in_top("a" HR_PATH_UNFINISHED);
	const char *other = in_top("other");

	ck_assert_int_eq(hr_path_write(other, "other", 5, 0600, NULL), 0);
	ck_assert_int_eq(symlink(other, name), 0);
	ck_assert_int_eq(hr_path_write(path, "one", 3, 0600, NULL), 0);
	assert_holds(path, "one");
	ck_assert_int_eq(unlink(name), 0);
	ck_assert_int_eq(link(other, name), 0);
	ck_assert_int_eq(hr_path_write(path, "two", 3, 0600, NULL), 0);
	assert_holds(path, "two");
	ck_assert_int_eq(mkdir(name, 0700), 0);
	ck_assert_int_eq(hr_path_write(path, "three", 5, 0600, NULL), 0);
	assert_holds(path, "three");
	assert_holds(other, "other");
	ck_assert_int_eq(entries(), 3);
}
END_TEST

/* The reason is why the tree could not be read, and not that a directory is therefore not empty. */
START_TEST(remove_reports_why)
{
	static const struct {
		const char *tree, *closed; /* the directory that its owner may not read */
		mode_t mode;
		int want;
	} rows[] = {{"unread", "unread/a/b", 0, EACCES},
	    {"unsearched", "unsearched/a", 0400, EACCES},
	    {"unwritten", "unwritten/a", 0500, EACCES}, {"way/entry", "way", 0600, EACCES},
	    {"empty", "empty/closed", 0, 0}, {"none", "closed", 0, 0}};
	struct hr_err err = {0};
	char inside[64];
	size_t i;
	int r;

	ck_assert_int_eq(chmod(top, 0755), 0);
	if (geteuid() == 0) /* root reads everything */
		ck_assert_int_eq(chown(top, 65533, (gid_t)-1) | seteuid(65533), 0);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_int_eq(hr_path_mkdirs(in_top(rows[i].closed), 0755, NULL, NULL), 0);
		(void)snprintf(inside, sizeof(inside), "%s/entry", rows[i].closed);
		if (rows[i].want != 0)
			ck_assert_int_eq(mkdir(in_top(inside), 0755), 0);
		ck_assert_int_eq(chmod(in_top(rows[i].closed), rows[i].mode), 0);
		err.sys = 0;
		r = hr_path_remove(in_top(rows[i].tree), &err);
		ck_assert_msg(r == (rows[i].want == 0 ? 0 : -1) && err.sys == rows[i].want,
		    "%s: %d, errno %d", rows[i].tree, r, err.sys);
		(void)chmod(in_top(rows[i].closed), 0700);
	}
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

static int
count_and_stop(int dirfd, const char *name, const struct stat *st, void *arg)
{
	int *left = arg;

	(void)dirfd;
	(void)name;
	(void)st;
	return --*left == 0 ? -7 : 0;
}

START_TEST(a_visitor_can_stop_the_walk)
{
	int left = 2;

	ck_assert_int_eq(hr_path_mkdirs(in_top("s/a"), 0755, NULL, NULL), 0);
	ck_assert_int_eq(hr_path_mkdirs(in_top("s/b"), 0755, NULL, NULL), 0);
	ck_assert_int_eq(hr_path_walk(in_top("s"), count_and_stop, &left, NULL), -7);
	ck_assert_int_eq(left, 0);
}
END_TEST

START_TEST(a_whole_walk_skips_nothing)
{
	unsigned skipped = 9;
	int left = -1;

	ck_assert_int_eq(hr_path_mkdirs(in_top("r/a/b"), 0755, NULL, NULL), 0);
	ck_assert_int_eq(hr_path_walk(in_top("r"), count_and_stop, &left, &skipped), 0);
	ck_assert_int_eq(left, -4); /* r, a and b */
	ck_assert_uint_eq(skipped, 0);
}
END_TEST

/* As the kernel does it, and by hand: what a process has open is not behind a name. */
START_TEST(magic_links_are_not_followed)
{
	static const struct {
		const char *path;
		int want;
	} rows[] = {{"/proc/self/fd/0", EACCES}, {"/proc/self/root/etc", EACCES},
	    {"/proc/self/cwd", EACCES}, {"/dev/fd/0", EACCES}, {"/proc/self/status", 0},
	    {"/etc/passwd", 0}, {"/", 0}, {"/none/x", ENOENT}, {"/etc/passwd/x", ENOTDIR}};
	size_t i;
	int fd, hand;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (hand = 0; hand < 2; hand++) {
			fd = hand != 0 ? hr_plain_walk(AT_FDCWD, rows[i].path, O_PATH, false)
				       : hr_plain_open(AT_FDCWD, rows[i].path, O_PATH);
			ck_assert_msg(fd >= 0 ? rows[i].want == 0 : errno == rows[i].want,
			    "%s by %d: %d %d", rows[i].path, hand, fd, errno);
			hr_fd_close(&fd);
		}
}
END_TEST

/* Links of other accounts, in a directory in which others may write, are not followed. Root alone
 * can make one. */
START_TEST(others_links_lead_to_no_place_of_ours)
{
	static const uid_t others[] = {65533, 0};
	struct hr_err err = {0};
	struct stat st;
	bool ours;
	size_t i;
	int fd;

	ck_assert_int_eq(mkdir(in_top("victim"), 0700) | mkdir(in_top("sticky"), 0777), 0);
	for (i = 0; i < 2; i++) {
		ours = others[i] == 0 || geteuid() != 0;
		ck_assert_int_eq(symlink(in_top("victim"), in_top("sticky/way")), 0);
		ck_assert_int_eq(symlink(in_top("victim/f"), in_top("sticky/file")), 0);
		if (geteuid() == 0)
			ck_assert_int_eq(lchown(in_top("sticky/way"), others[i], 0) |
					     lchown(in_top("sticky/file"), others[i], 0),
			    0);
		err.code = HR_OK;
		ck_assert_int_eq(
		    hr_path_mkdirs_own(in_top("sticky/way"), 0755, NULL, &err), ours ? 0 : -1);
		ck_assert_int_eq(err.code, ours ? HR_OK : HR_E_UNTRUSTED);
		ck_assert_int_eq(
		    hr_path_mkdirs_own(in_top("sticky/way/a/b"), 0755, NULL, &err), ours ? 0 : -1);
		ck_assert_int_eq(stat(in_top("victim/a/b"), &st), ours ? 0 : -1);
		fd = hr_path_open_own(in_top("sticky/file"), O_WRONLY, 0600, &err);
		ck_assert_int_eq(fd >= 0, ours);
		hr_fd_close(&fd);
		fd = hr_path_open_own(in_top("sticky/way/g"), O_WRONLY, 0600, &err);
		ck_assert_int_eq(fd >= 0, ours);
		hr_fd_close(&fd);
		ck_assert_int_eq(stat(in_top("victim/f"), &st), ours ? 0 : -1);
		ck_assert_int_eq(stat(in_top("victim/g"), &st), ours ? 0 : -1);
		ck_assert_int_eq(unlink(in_top("sticky/way")) | unlink(in_top("sticky/file")), 0);
		if (geteuid() != 0)
			break;
	}
	/* and as mkdir -p */
	ck_assert_int_eq(hr_path_mkdirs_own(in_top("sticky//x/./y/../z/"), 0755, NULL, &err), 0);
	ck_assert_int_eq(stat(in_top("sticky/x/z"), &st), 0);
	fd = hr_path_open_own(in_top("sticky/x/new"), O_WRONLY, 0600, &err);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	hr_fd_close(&fd);
	ck_assert_int_eq(hr_path_mkdirs_own(in_top("sticky/x/new/dir"), 0755, NULL, &err), -1);
}
END_TEST

START_TEST(a_directory_that_may_not_be_made)
{
	struct hr_err err = {0};

	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65533), 0); /* "/" is root's */
	ck_assert_int_eq(hr_path_mkdirs_own("/handrail-none/a", 0755, NULL, &err), -1);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_msg(
	    strstr(err.msg, strerror(EACCES)) != NULL || strstr(err.msg, strerror(EROFS)) != NULL,
	    "%s", err.msg);
}
END_TEST

START_TEST(unnamed_files_on_any_file_system)
{
	char byte = 0;
	int fd[3], i;

	make_file(".unnamed"); /* a killed process has left it */
	for (i = 0; i < 3; i++) {
		named = i > 0 ? EOPNOTSUPP : 0;
		fd[i] = hr_path_unnamed(top);
		ck_assert_int_ge(fd[i], 0);
		ck_assert_int_eq(entries(), i == 0 ? 1 : 0);
		ck_assert_int_eq(hr_fd_pwrite_full(fd[i],
				     i == 0   ? "a"
				     : i == 1 ? "b"
					      : "c",
				     1, 0),
		    0);
	}
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(hr_fd_pread_full(fd[i], &byte, 1, 0), 0);
		ck_assert_int_eq(byte, 'a' + i);
		(void)close(fd[i]);
	}
	ck_assert_int_eq(mkdir(in_top(".unnamed"), 0700), 0);
	ck_assert_int_eq(hr_path_unnamed(top), -1);
}
END_TEST

static const int no_unnamed[] = {0, EOPNOTSUPP, EISDIR, EINVAL, ENOENT};

/* A file is there as a whole or not at all; one that exists is replaced only if it may be. */
START_TEST(new_files_on_any_file_system)
{
	char *tmp;
	HR_FREE char *path = strdup(in_top("f"));
	HR_BUF(text, 16);
	struct hr_err err = {0};
	int i, fd;

	named = no_unnamed[_i];
	for (i = 0; i < 4; i++) {
		fd = hr_path_new(path, 0640, &tmp, &err);
		ck_assert_msg(fd >= 0, "%s", err.msg);
		ck_assert_uint_eq(entries(), (i > 0) + (named != 0));
		ck_assert_int_eq(hr_fd_write_full(fd, i == 0 ? "a" : "b", 1, NULL), 0);
		/* a new one, one that exists, one that could not be filled, one in its place */
		ck_assert_int_eq(
		    hr_path_put(fd, tmp, path, i > 1, i == 2 ? -1 : 0, &err), i % 3 != 0 ? -1 : 0);
		if (i == 1)
			ck_assert_int_eq(err.sys, EEXIST);
		ck_assert_uint_eq(entries(), 1);
		hr_buf_reset(&text);
		ck_assert_int_eq(hr_path_read(path, &text, NULL), 0);
		ck_assert_str_eq(hr_buf_str(&text), i < 3 ? "a" : "b");
		free(tmp);
	}
	ck_assert_int_eq(hr_path_new("/no/such/f", 0600, &tmp, &err), -1);
	ck_assert_str_eq(err.msg, "create /no/such/f: No such file or directory");
	free(tmp);
}
END_TEST

/* On ext4 the parent is a "top" directory then, and nothing is left beside the new directory. */
START_TEST(directories_at_places_of_their_own)
{
	const int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat before, st;
	struct statfs fs;
	int flags, i;

	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(fstat(dir, &before), 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(hr_volume_make(dir, i == 0 ? "v" : "w"), 0);
		ck_assert_int_eq(fstatat(dir, i == 0 ? "v" : "w", &st, AT_SYMLINK_NOFOLLOW), 0);
		ck_assert_uint_eq(st.st_mode, S_IFDIR | 0700);
	}
	ck_assert_int_eq(hr_volume_make(dir, "v"), -1);
	ck_assert_int_eq(errno, EEXIST);
	ck_assert_int_eq(fstatfs(dir, &fs), 0);
	if (fs.f_type == EXT4_SUPER_MAGIC) {
		ck_assert_int_eq(fstat(dir, &st), 0);
		ck_assert_uint_eq(st.st_nlink, before.st_nlink + 2);
		ck_assert_int_eq(ioctl(dir, FS_IOC_GETFLAGS, &flags), 0);
		ck_assert_int_ne(flags & FS_TOPDIR_FL, 0);
	}
	ck_assert_int_eq(unlinkat(dir, "v", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(dir, "w", AT_REMOVEDIR), 0);
	ck_assert_int_eq(close(dir), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("path");
	TCase *tc = tcase_create("path");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, leads_out);
	tcase_add_test(tc, within_and_directory);
	tcase_add_test(tc, a_directory_that_may_not_be_made);
	tcase_add_loop_test(tc, join, 0, 5);
	tcase_add_test(tc, mkdirs_makes_what_is_missing);
	tcase_add_test(tc, write_replaces_whole_and_sets_the_mode);
	tcase_add_test(tc, read_stops_at_the_cap);
	tcase_add_test(tc, remove_takes_links_not_their_targets);
	tcase_add_test(tc, remove_takes_trees_of_any_depth);
	tcase_add_test(tc, killed_writers_leave_nothing_for_long);
	tcase_add_test(tc, writers_beside_each_other);
	tcase_add_test(tc, writers_one_after_the_other);
	tcase_add_test(tc, a_temporary_name_that_is_taken);
	tcase_add_test(tc, remove_reports_why);
	tcase_add_test(tc, a_visitor_can_stop_the_walk);
	tcase_add_test(tc, a_whole_walk_skips_nothing);
	tcase_add_test(tc, magic_links_are_not_followed);
	tcase_add_test(tc, others_links_lead_to_no_place_of_ours);
	tcase_add_test(tc, unnamed_files_on_any_file_system);
	tcase_add_loop_test(
	    tc, new_files_on_any_file_system, 0, (int)(sizeof(no_unnamed) / sizeof(*no_unnamed)));
	tcase_add_test(tc, directories_at_places_of_their_own);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
