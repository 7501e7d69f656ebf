/* files/atomic: whole or not at all, and what stays of the old file. */
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "files/place/atomic.h"

#include "attributes.h"
#include "lines.h"

static char top[64];

static const char *
in_top(const char *name)
{
	static char path[8][512];
	static int i;

	i = (i + 1) % 8;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", top, name);
	return path[i];
}

static void
put(const char *name, const char *text)
{
	FILE *f = fopen(in_top(name), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void
assert_holds(const char *name, const char *text)
{
	HR_BUF(b, 1 << 20);

	ck_assert_int_eq(hr_path_read(in_top(name), &b, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&b), text);
}

static struct stat
look(const char *name)
{
	struct stat st;

	ck_assert_int_eq(lstat(in_top(name), &st), 0);
	return st;
}

static int
entries(void)
{
	DIR *d = opendir(top);
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n - 2;
}

static int
give(const char *name, const char *text)
{
	struct hr_err err = {.code = HR_OK};
	int r = hr_atomic_write(in_top(name), text, strlen(text), 0666, &err);

	return r == 0 ? 0 : err.sys;
}

static void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(top, sizeof(top), "%.40s/test_atomic.XXXXXX", tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)umask(022);
}

static void
teardown(void)
{
	(void)chmod(top, 0700);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

START_TEST(new_file)
{
	ck_assert_int_eq(give("a", "one"), 0);
	assert_holds("a", "one");
	ck_assert_int_eq(look("a").st_mode & 07777, 0644);
	(void)umask(077);
	ck_assert_int_eq(give("b", ""), 0);
	ck_assert_int_eq(look("b").st_mode & 07777, 0600);
	ck_assert_int_eq(look("b").st_size, 0);
	ck_assert_int_eq(entries(), 2);
}
END_TEST

START_TEST(keeps_mode_and_owner)
{
	put("a", "old and longer");
	ck_assert_int_eq(chmod(in_top("a"), 04751), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(in_top("a"), 1234, 4321), 0);
		ck_assert_int_eq(chmod(in_top("a"), 04751), 0);
	}
	ck_assert_int_eq(give("a", "new"), 0);
	assert_holds("a", "new");
	ck_assert_int_eq(look("a").st_mode & 07777, 04751);
	if (geteuid() == 0) {
		ck_assert_int_eq(look("a").st_uid, 1234);
		ck_assert_int_eq(look("a").st_gid, 4321);
	}
	ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(keeps_attributes)
{
	if (!attributes_work(top))
		return;
	put("a", "old");
	attributes_give(in_top("a"));
	ck_assert_int_eq(give("a", "new"), 0);
	assert_holds("a", "new");
	attributes_are_there(in_top("a"));
}
END_TEST

/* Its directory lets nobody write to new files; this one was not. */
START_TEST(adds_no_attribute)
{
	if (!attributes_work(top))
		return;
	put("a", "old");
	ck_assert_int_eq(chmod(in_top("a"), 0660), 0);
	attributes_give_default(top);
	ck_assert_int_eq(give("a", "new"), 0);
	assert_holds("a", "new");
	attributes_are_none(in_top("a"));
	ck_assert_int_eq(look("a").st_mode & 07777, 0660);
}
END_TEST

/* Another name of the same file sees the new bytes. */
START_TEST(keeps_hard_links)
{
	struct stat before;

	put("a", "old and longer");
	ck_assert_int_eq(link(in_top("a"), in_top("b")), 0);
	before = look("a");
	ck_assert_int_eq(give("a", "new"), 0);
	assert_holds("b", "new");
	ck_assert_uint_eq(look("a").st_ino, before.st_ino);
	ck_assert_int_eq(give("b", "longer than that was"), 0);
	assert_holds("a", "longer than that was");
	ck_assert_int_eq(entries(), 2);
}
END_TEST

START_TEST(keeps_symbolic_links)
{
	ck_assert_int_eq(mkdir(in_top("d"), 0755), 0);
	put("d/target", "old");
	ck_assert_int_eq(symlink("d/target", in_top("one")), 0);
	ck_assert_int_eq(symlink(in_top("one"), in_top("two")), 0);
	ck_assert_int_eq(give("two", "new"), 0);
	assert_holds("d/target", "new");
	ck_assert(S_ISLNK(look("one").st_mode));
	ck_assert(S_ISLNK(look("two").st_mode));
	ck_assert_int_eq(unlink(in_top("d/target")), 0);
	ck_assert_int_eq(give("two", "again"), 0);
	assert_holds("d/target", "again");
	ck_assert(S_ISLNK(look("two").st_mode));
	ck_assert_int_eq(entries(), 3);
}
END_TEST

START_TEST(refuses_as_open_does)
{
	put("f", "x");
	ck_assert_int_eq(mkdir(in_top("d"), 0755), 0);
	ck_assert_int_eq(symlink("loop", in_top("loop")), 0);
	ck_assert_int_eq(give("d", "new"), EISDIR);
	ck_assert_int_eq(give("no/file", "new"), ENOENT);
	ck_assert_int_eq(give("f/file", "new"), ENOTDIR);
	ck_assert_int_eq(give("loop", "new"), ELOOP);
	assert_holds("f", "x");
	ck_assert_int_eq(entries(), 3);
}
END_TEST

START_TEST(never_waits_for_a_fifo)
{
	ck_assert_int_eq(mkfifo(in_top("p"), 0600), 0);
	ck_assert_int_eq(give("p", "new"), ENXIO);
	ck_assert(S_ISFIFO(look("p").st_mode));
	ck_assert_int_eq(hr_atomic_write("/dev/null", "x", 1, 0666, NULL), 0);
}
END_TEST

/* Runs f as somebody without privileges, who owns what is in top. */
static void
as_nobody(void (*f)(void))
{
	pid_t pid;
	int status;

	if (geteuid() == 0)
		ck_assert_int_eq(chown(top, 65534, 65534), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(99);
		f();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

#define NEED(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			_exit(__LINE__ % 90 + 1);                                                  \
	} while (0)

static void
closed_directory(void)
{
	struct stat before, after;
	int fd = open(in_top("mine"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	NEED(fd >= 0 && write(fd, "older", 5) == 5 && fstat(fd, &before) == 0);
	NEED(chmod(top, 0555) == 0);
	NEED(give("mine", "new") == 0);
	NEED(stat(in_top("mine"), &after) == 0 && after.st_ino == before.st_ino);
	NEED(after.st_size == 3);
	NEED(give("another", "new") == EACCES);
	NEED(chmod(in_top("mine"), 0444) == 0);
	NEED(give("mine", "refused") == EACCES);
	NEED(chmod(top, 0755) == 0);
	NEED(give("mine", "refused") == EACCES); /* although it could be replaced */
	NEED(stat(in_top("mine"), &after) == 0 && after.st_size == 3);
	(void)close(fd);
}

START_TEST(without_privileges)
{
	as_nobody(closed_directory);
	ck_assert_int_eq(entries(), 1);
}
END_TEST

/* A limit on the size of files stands for a full disk: t/e2e/test_files.py has a real one. */
START_TEST(failing_write_changes_nothing)
{
	struct rlimit small = {4096, RLIM_INFINITY}, was;
	HR_FREE char *text = malloc(8193);

	ck_assert_ptr_nonnull(text);
	memset(text, 'n', 8192);
	text[8192] = '\0';
	put("a", "old");
	put("b", "old");
	ck_assert_int_eq(link(in_top("b"), in_top("c")), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
	small.rlim_max = was.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	ck_assert_int_eq(give("a", text), EFBIG);
	ck_assert_int_eq(give("b", text), EFBIG);
	ck_assert_int_eq(give("new", text), EFBIG);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_holds("a", "old");
	assert_holds("c", "old");
	ck_assert_int_eq(entries(), 3);
}
END_TEST

START_TEST(given_up)
{
	struct hr_atomic a;

	put("a", "old");
	ck_assert_int_eq(hr_atomic_open(&a, in_top("a"), 0666, NULL), 0);
	ck_assert_int_eq(hr_fd_write_full(a.spool.fd, "half", 4, NULL), 0);
	assert_holds("a", "old");
	hr_atomic_abort(&a);
	hr_atomic_abort(&a);
	assert_holds("a", "old");
	ck_assert_int_eq(hr_atomic_open(&a, in_top("b"), 0666, NULL), 0);
	hr_atomic_abort(&a);
	ck_assert_int_eq(entries(), 1);
}
END_TEST

/* Somebody made the file in the meantime: the last one wins, as with open(). */
START_TEST(race_for_a_new_name)
{
	struct hr_atomic a;

	ck_assert_int_eq(hr_atomic_open(&a, in_top("a"), 0666, NULL), 0);
	ck_assert_int_eq(hr_fd_write_full(a.spool.fd, "ours", 4, NULL), 0);
	put("a", "theirs");
	ck_assert_int_eq(hr_atomic_commit(&a, NULL), 0);
	assert_holds("a", "ours");
	ck_assert_int_eq(entries(), 1);
}
END_TEST

struct told {
	unsigned times;
	bool was_old;
};

static void
tell(const void *arg)
{
	struct told *const *t = arg;
	HR_BUF(b, 100);

	(*t)->times++;
	(*t)->was_old =
	    hr_path_read(in_top("a"), &b, NULL) == 0 && strcmp(hr_buf_str(&b), "old") == 0;
}

/* Who asks is told while nothing has changed, whichever way is taken, and not if nothing will. */
START_TEST(tells_the_moment)
{
	struct told told = {0}, *where = &told;
	const struct hr_commit commit = {tell, &where};

	put("a", "old");
	ck_assert_int_eq(hr_atomic_write_telling(in_top("a"), "new", 3, 0666, &commit, NULL), 0);
	assert_holds("a", "new");
	ck_assert_uint_eq(told.times, 1);
	ck_assert(told.was_old);
	put("a", "old");
	ck_assert_int_eq(link(in_top("a"), in_top("b")), 0); /* copied into the file */
	ck_assert_int_eq(hr_atomic_write_telling(in_top("a"), "new", 3, 0666, &commit, NULL), 0);
	assert_holds("b", "new");
	ck_assert_uint_eq(told.times, 2);
	ck_assert(told.was_old);
	ck_assert_int_eq(hr_atomic_write_telling("/dev/null", "x", 1, 0666, &commit, NULL), 0);
	ck_assert_uint_eq(told.times, 3);
	ck_assert_int_eq(hr_atomic_write_telling(top, "x", 1, 0666, &commit, NULL), -1);
	ck_assert_uint_eq(told.times, 3);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("atomic");
	TCase *tc = tcase_create("atomic");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, new_file);
	tcase_add_test(tc, keeps_mode_and_owner);
	tcase_add_test(tc, keeps_attributes);
	tcase_add_test(tc, adds_no_attribute);
	tcase_add_test(tc, keeps_hard_links);
	tcase_add_test(tc, keeps_symbolic_links);
	tcase_add_test(tc, refuses_as_open_does);
	tcase_add_test(tc, never_waits_for_a_fifo);
	tcase_add_test(tc, without_privileges);
	tcase_add_test(tc, failing_write_changes_nothing);
	tcase_add_test(tc, given_up);
	tcase_add_test(tc, race_for_a_new_name);
	tcase_add_test(tc, tells_the_moment);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
