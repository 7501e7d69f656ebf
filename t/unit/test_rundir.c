/* supervisor/rundir: who may have it, what is in it, and that nothing stays. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/run/context.h"
#include "supervisor/run/guard.h"
#include "supervisor/run/journaldir.h"
#include "supervisor/run/rundir.h"

static char top[64];
static struct hr_err err;

static const char *
in_top(const char *name)
{
	static char path[4][256];
	static int i;

	i = (i + 1) % 4;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", top, name);
	return path[i];
}

static bool
exists(const char *name)
{
	struct stat st;

	return lstat(in_top(name), &st) == 0;
}

static unsigned
mode_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(lstat(in_top(name), &st), 0);
	return st.st_mode & 07777;
}

static void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	memset(&err, 0, sizeof(err));
	(void)snprintf(top, sizeof(top), "%.30s/test_rundir.XXXXXX", tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(top));
}

static void
teardown(void)
{
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static struct hr_rundir_place
at(const char *wanted)
{
	return (struct hr_rundir_place){.wanted = wanted,
	    .runstatedir = top,
	    .xdg_runtime_dir = top,
	    .tmpdir = top,
	    .port = 3000};
}

static void
open_ok(struct hr_rundir *r, const struct hr_rundir_place *where)
{
	ck_assert_msg(hr_rundir_open(r, where, &err) == 0, "%s", err.msg);
}

START_TEST(the_place_is_chosen_by_port)
{
	struct hr_rundir_place where = at("");
	char *name;

	ck_assert_int_eq(chmod(top, 0755), 0);
	ck_assert_int_eq(mkdir(in_top("run"), 0755), 0);
	where.privileged = true;
	where.runstatedir = in_top("run");
	name = hr_rundir_name(&where, NULL);
	ck_assert_str_eq(name, in_top("run/handrail/3000"));
	free(name);
	where.privileged = false;
	name = hr_rundir_name(&where, NULL);
	ck_assert_str_eq(name, in_top("handrail/3000"));
	free(name);
	where.xdg_runtime_dir = "relative";
	ck_assert_ptr_null(hr_rundir_name(&where, &err));
	where.wanted = "/x/y";
	name = hr_rundir_name(&where, NULL);
	ck_assert_str_eq(name, "/x/y");
	free(name);
}
END_TEST

/* A directory is passed over that others cannot enter, that the caller cannot write in, or whose
 * name leaves no room for sockets. */
START_TEST(a_place_that_the_accounts_enter)
{
	struct hr_rundir_place where = at("");
	char far[256], *name;

	(void)snprintf(far, sizeof(far), "%.60s/%080d", top, 0);
	ck_assert_int_eq(mkdir(far, 0755), 0);
	ck_assert_int_eq(mkdir(in_top("barred"), 0700), 0);
	ck_assert_int_eq(mkdir(in_top("barred/open"), 0755), 0);
	ck_assert_int_eq(chmod(top, 0755), 0);
	where.privileged = true;
	where.runstatedir = in_top("var/run"); /* is made */
	name = hr_rundir_name(&where, NULL);
	ck_assert_str_eq(name, in_top("var/run/handrail/3000"));
	free(name);
	where.runstatedir = in_top("barred/open/var/run");
	where.tmpdir = "/tmp";
	if (access("/run", W_OK) == 0) {
		name = hr_rundir_name(&where, NULL);
		ck_assert_str_eq(name, "/run/handrail/3000");
		free(name);
	}
	where.privileged = false;
	where.xdg_runtime_dir = far;
	ck_assert_ptr_null(hr_rundir_name(&where, &err)); /* a new one each time */
	ck_assert_int_eq(chmod(in_top("barred"), 0500), 0);
	where.xdg_runtime_dir = in_top("barred");
	name = hr_rundir_name(&where, &err);
	ck_assert(geteuid() == 0 || name == NULL);
	free(name);
	ck_assert_int_eq(chmod(in_top("barred"), 0700), 0);
}
END_TEST

START_TEST(without_a_better_place_a_fresh_one)
{
	struct hr_rundir_place where = at("");
	struct hr_rundir a, b;
	struct stat st;

	where.xdg_runtime_dir = NULL;
	open_ok(&a, &where);
	open_ok(&b, &where);
	ck_assert_str_ne(a.path, b.path);
	ck_assert_int_eq(strncmp(a.path, top, strlen(top)), 0);
	ck_assert_int_eq(stat(a.path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	hr_rundir_close(&a);
	hr_rundir_close(&b);
	ck_assert_int_eq(rmdir(top), 0); /* nothing is left in it */
	ck_assert_int_eq(mkdir(top, 0700), 0);
}
END_TEST

START_TEST(parts_and_their_modes)
{
	const struct hr_rundir_place where = at(in_top("d"));
	struct hr_rundir r;

	open_ok(&r, &where);
	ck_assert_int_eq(hr_rundir_prepare(&r, 0, false, &err), 0);
	ck_assert_uint_eq(mode_of("d"), 0700);
	ck_assert_uint_eq(mode_of("d/fcgi"), 0700);
	ck_assert_uint_eq(mode_of("d/shell"), 0700);
	ck_assert_uint_eq(mode_of("d/lock"), 0600);
	hr_rundir_close(&r);
	ck_assert(!exists("d"));
}
END_TEST

/* Programs of a box can change the journal of its server, which is made anew then. */
START_TEST(a_journal_that_is_none_is_replaced)
{
	static const char *const names[] = {"state/journal/1", "state/journal"};
	size_t i;
	int fd;

	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(hr_path_remove(in_top("state"), &err), 0);
		ck_assert_int_eq(mkdir(in_top("state"), 0755), 0);
		if (i == 0)
			ck_assert_int_eq(mkdir(in_top("state/journal"), 0755), 0);
		fd = open(in_top(names[i]), O_CREAT | O_WRONLY, 0600);
		ck_assert_int_eq(close(fd), 0);
		ck_assert_int_eq(hr_journaldir_make(in_top("state/journal/1"), &err), 0);
		ck_assert_uint_eq(mode_of("state/journal/1"), 0700);
	}
	ck_assert_int_eq(mkdir(in_top("state/journal/1/entry"), 0700), 0);
	ck_assert_int_eq(hr_journaldir_make(in_top("state/journal/1"), &err), 0);
	ck_assert(exists("state/journal/1/entry")); /* a good journal keeps its answers */
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(chown(in_top("state/journal/1"), 4711, 0), 0);
	ck_assert_int_eq(hr_journaldir_make(in_top("state/journal/1"), &err), 0);
	ck_assert(exists("state/journal/1.lost"));
	ck_assert_uint_eq(mode_of("state/journal/1"), 0700);
}
END_TEST

START_TEST(root_lets_others_pass_but_not_look)
{
	struct hr_rundir_place where = at(in_top("d"));
	struct hr_rundir r;
	struct stat st;
	int fd;

	if (geteuid() != 0)
		return; /* changing owners needs root */
	where.privileged = true;
	open_ok(&r, &where);
	ck_assert_int_eq(hr_rundir_prepare(&r, 65534, false, &err), 0);
	ck_assert_uint_eq(mode_of("d"), 0711);
	ck_assert_uint_eq(mode_of("d/fcgi"), 0711);
	fd = hr_rundir_listen(&r, "fcgi/x.sock", r.nginx_uid, &err);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(stat(in_top("d/fcgi/x.sock"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_uint_eq(st.st_uid, 65534);
	hr_fd_close(&fd);
	ck_assert_int_eq(hr_rundir_shell(&r, in_top("d/shell/s"), &err), 0);
	ck_assert_int_eq(stat(in_top("d/shell/s"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0711);
	ck_assert_uint_eq(st.st_uid, 0);
	hr_rundir_close(&r);
	ck_assert(!exists("d"));
}
END_TEST

/* What this machine's other users can do with the sockets, tried as one of them. */
START_TEST(another_user_cannot_connect)
{
	struct hr_rundir_place where = at(in_top("d"));
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct hr_rundir r;
	int fd, status;
	pid_t pid;

	if (geteuid() != 0)
		return;
	where.privileged = true;
	ck_assert_int_eq(chmod(top, 0711), 0);
	open_ok(&r, &where);
	ck_assert_int_eq(hr_rundir_prepare(&r, 33, false, &err), 0);
	fd = hr_rundir_listen(&r, "session.sock", 0, &err);
	ck_assert_int_ge(fd, 0);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", in_top("d/session.sock"));
	pid = fork();
	if (pid == 0) {
		int s = socket(AF_UNIX, SOCK_STREAM, 0);

		if (setgid(0) != 0 || setuid(65534) != 0) /* group root, as useradd -g root makes */
			_exit(2);
		_exit(connect(s, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? 1 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	hr_fd_close(&fd);
	hr_rundir_close(&r);
}
END_TEST

START_TEST(a_living_owner_is_named)
{
	const struct hr_rundir_place where = at(in_top("d"));
	struct hr_rundir r, second;
	char pid[32];

	open_ok(&r, &where);
	ck_assert_int_eq(hr_rundir_open(&second, &where, &err), -1);
	ck_assert_int_eq(err.code, HR_E_BUSY);
	(void)snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	ck_assert_ptr_nonnull(strstr(err.msg, pid));
	ck_assert(exists("d/lock")); /* the refused one took nothing away */
	hr_rundir_close(&second);
	hr_rundir_close(&r);
	ck_assert(!exists("d"));
}
END_TEST

/* As after kill -9: the lock is free, everything else is still there. */
static void
kill_owner(struct hr_rundir *r)
{
	(void)close(r->lock);
	free(r->path);
	memset(r, 0, sizeof(*r));
}

START_TEST(leftovers_of_a_killed_one_are_cleaned)
{
	const struct hr_rundir_place where = at(in_top("d"));
	struct hr_rundir r;
	struct stat old, fresh;
	int fd;

	open_ok(&r, &where);
	ck_assert(!r.inherited);
	ck_assert_int_eq(hr_rundir_prepare(&r, 0, false, &err), 0);
	fd = hr_rundir_listen(&r, "fcgi/a.sock", 0, &err);
	hr_fd_close(&fd);
	ck_assert_int_eq(stat(in_top("d/fcgi/a.sock"), &old), 0);
	fd = hr_rundir_listen(&r, "session.sock", 0, &err);
	hr_fd_close(&fd);
	ck_assert_int_eq(mkdir(in_top("d/nginx/body"), 0700), 0);
	/* a file that is written whole was not complete */
	ck_assert_int_eq(
	    hr_path_write(in_top("d/viewer-url" HR_PATH_UNFINISHED), "u", 1, 0600, NULL), 0);
	kill_owner(&r);
	open_ok(&r, &where);
	ck_assert(r.inherited);
	ck_assert_int_eq(hr_rundir_prepare(&r, 0, false, &err), 0);
	/* its nginx looks for it until there is another */
	ck_assert(exists("d/fcgi/a.sock"));
	fd = hr_rundir_listen(&r, "fcgi/a.sock", 0, &err);
	ck_assert_int_eq(stat(in_top("d/fcgi/a.sock"), &fresh), 0);
	ck_assert_uint_ne(old.st_ino, fresh.st_ino);
	hr_fd_close(&fd);
	ck_assert(!exists("d/session.sock"));
	ck_assert(!exists("d/nginx/body"));
	ck_assert(!exists("d/viewer-url" HR_PATH_UNFINISHED));
	/* and a socket can be bound where a stale one lies */
	fd = hr_rundir_listen(&r, "session.sock", 0, &err);
	hr_fd_close(&fd);
	fd = hr_rundir_listen(&r, "session.sock", 0, &err);
	ck_assert_int_ge(fd, 0);
	hr_fd_close(&fd);
	hr_rundir_close(&r);
	ck_assert(!exists("d")); /* the first one had made it */
}
END_TEST

START_TEST(a_living_session_may_stay)
{
	const struct hr_rundir_place where = at(in_top("d"));
	struct hr_rundir r;
	int fd;

	open_ok(&r, &where);
	ck_assert_int_eq(hr_rundir_prepare(&r, 0, false, &err), 0);
	fd = hr_rundir_listen(&r, "session.sock", 0, &err);
	hr_fd_close(&fd);
	ck_assert_int_eq(hr_path_write(in_top("d/keeper"), "x", 1, 0600, &err), 0);
	ck_assert_int_eq(mkdir(in_top("d/shell/default"), 0700), 0);
	kill_owner(&r);
	open_ok(&r, &where);
	ck_assert_int_eq(hr_rundir_prepare(&r, 0, true, &err), 0);
	ck_assert(exists("d/session.sock"));
	ck_assert(exists("d/keeper"));
	ck_assert(exists("d/shell/default"));
	hr_rundir_close(&r);
	ck_assert(!exists("d"));
}
END_TEST

START_TEST(what_we_did_not_make_stays)
{
	const struct hr_rundir_place where = at(in_top("d"));
	struct hr_rundir r;

	ck_assert_int_eq(mkdir(in_top("d"), 0755), 0);
	ck_assert_int_eq(hr_path_write(in_top("d/precious"), "x", 1, 0600, &err), 0);
	open_ok(&r, &where);
	ck_assert_int_eq(hr_rundir_prepare(&r, 0, false, &err), 0);
	hr_rundir_close(&r);
	ck_assert(exists("d/precious"));
	ck_assert(!exists("d/lock"));
	ck_assert(!exists("d/fcgi"));
}
END_TEST

START_TEST(unsafe_directories_are_refused)
{
	struct hr_rundir_place where = at(in_top("d"));
	struct hr_rundir r;

	ck_assert_int_eq(mkdir(in_top("d"), 0700), 0);
	ck_assert_int_eq(chmod(in_top("d"), 0777), 0);
	ck_assert_int_eq(hr_rundir_open(&r, &where, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "others can write"));
	ck_assert(exists("d"));
	ck_assert_int_eq(symlink(top, in_top("link")), 0);
	where.wanted = in_top("link");
	ck_assert_int_eq(hr_rundir_open(&r, &where, &err), -1);
	if (geteuid() == 0) {
		ck_assert_int_eq(chmod(in_top("d"), 0700), 0);
		ck_assert_int_eq(chown(in_top("d"), 65534, 0), 0);
		where.wanted = in_top("d");
		ck_assert_int_eq(hr_rundir_open(&r, &where, &err), -1);
		ck_assert_ptr_nonnull(strstr(err.msg, "belongs to user 65534"));
	}
}
END_TEST

START_TEST(a_name_too_long_for_sockets)
{
	static char longer[200];
	struct hr_rundir_place where = at(longer);
	struct hr_rundir r;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	ck_assert_int_eq(hr_rundir_open(&r, &where, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
}
END_TEST

/* The owner ends between our open() and our flock(): the file we locked is gone. */
START_TEST(a_lock_file_that_was_removed_is_not_a_lock)
{
	const struct hr_rundir_place where = at(in_top("d"));
	struct hr_rundir r, next;
	int fd;

	open_ok(&r, &where);
	fd = open(in_top("d/lock"), O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	hr_rundir_close(&r);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0); /* of no file */
	open_ok(&next, &where);
	ck_assert(!next.inherited);
	hr_rundir_close(&next);
	(void)close(fd);
}
END_TEST

/* ---- the guard ---- */

static void
on_damage(void *arg, const char *path)
{
	(void)path;
	++*(unsigned *)arg;
}

static void
stop_loop(void *arg)
{
	hr_loop_stop(arg);
}

static unsigned
watches_of(int fd)
{
	char path[64], line[256];
	unsigned n = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strncmp(line, "inotify ", 8) == 0;
	ck_assert_int_eq(fclose(f), 0);
	return n;
}

/* The kernel frees watches while the server ends; a close that comes later has nothing to wait
 * for. */
START_TEST(a_guard_that_stops)
{
	struct hr_context ctx = {.run.path = top};
	struct hr_watch *timer;
	struct hr_guard g;
	unsigned reports = 0;

	ctx.loop = hr_loop_new(&err);
	ck_assert_ptr_nonnull(ctx.loop);
	timer = hr_loop_timer(ctx.loop, stop_loop, ctx.loop, &err);
	ck_assert_ptr_nonnull(timer);
	ctx.journal = hr_path_join(top, "journal");
	ck_assert_ptr_nonnull(ctx.journal);
	ck_assert_int_eq(mkdir(in_top("fcgi"), 0700), 0);
	ck_assert_int_eq(mkdir(in_top("shell"), 0700), 0);
	ck_assert_int_eq(mkdir(in_top("shell/default"), 0700), 0);
	hr_guard_init(&g);
	ck_assert_int_eq(hr_guard_open(&g, &ctx, on_damage, &reports, &err), 0);
	ck_assert_uint_eq(watches_of(g.fd), 3);
	hr_guard_stop(&g);
	ck_assert_uint_eq(watches_of(g.fd), 0);
	ck_assert_int_eq(rmdir(in_top("fcgi")), 0);
	ck_assert_int_eq(hr_watch_arm(timer, 400, &err), 0);
	ck_assert_int_eq(hr_loop_run(ctx.loop, &err), 0);
	ck_assert_uint_eq(reports, 0);
	hr_guard_close(&g);
	ck_assert_int_eq(g.fd, -1);
	free(ctx.journal);
	hr_watch_free(timer);
	hr_loop_free(ctx.loop);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("rundir");
	TCase *tc = tcase_create("rundir");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_place_is_chosen_by_port);
	tcase_add_test(tc, a_journal_that_is_none_is_replaced);
	tcase_add_test(tc, a_place_that_the_accounts_enter);
	tcase_add_test(tc, without_a_better_place_a_fresh_one);
	tcase_add_test(tc, parts_and_their_modes);
	tcase_add_test(tc, root_lets_others_pass_but_not_look);
	tcase_add_test(tc, another_user_cannot_connect);
	tcase_add_test(tc, a_living_owner_is_named);
	tcase_add_test(tc, leftovers_of_a_killed_one_are_cleaned);
	tcase_add_test(tc, a_living_session_may_stay);
	tcase_add_test(tc, what_we_did_not_make_stays);
	tcase_add_test(tc, unsafe_directories_are_refused);
	tcase_add_test(tc, a_name_too_long_for_sockets);
	tcase_add_test(tc, a_lock_file_that_was_removed_is_not_a_lock);
	tcase_add_test(tc, a_guard_that_stops);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
