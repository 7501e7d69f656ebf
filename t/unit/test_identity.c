/* supervisor/identity: users, the working directory's owner, nginx's account. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "supervisor/run/identity.h"
#include "supervisor/run/newaccount.h"
#include "supervisor/settings/settings.h"

static struct hr_err err;
static struct hr_settings c;
static struct hr_identity id;
static char top[64], work[128];

static void
set(const char *key, const char *value)
{
	ck_assert_int_eq(hr_settings_set(&c, key, value, &err), 0);
}

static void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	memset(&err, 0, sizeof(err));
	(void)snprintf(top, sizeof(top), "%.30s/test_identity.XXXXXX", tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(work, sizeof(work), "%s/deep/work", top);
	ck_assert_int_eq(hr_settings_init(&c, &err), 0);
	set("working_dir", work);
	hr_log_setup("test", HR_LOG_CHILD, HR_LOG_ERROR);
}

static void
teardown(void)
{
	hr_settings_done(&c);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static struct stat
stat_of(const char *name)
{
	struct stat st;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	ck_assert_msg(lstat(path, &st) == 0, "%s", path);
	return st;
}

START_TEST(names)
{
	static const struct {
		const char *name;
		bool ok;
	} rows[] = {{"openhands", true}, {"user.name-2", true}, {"_x", true}, {"", false},
	    {"-rf", false}, {"a b", false}, {"a:b", false}, {"a/b", false}, {"a\nb", false},
	    {"a,b", false}, {"a'b", false}, {"a\"b", false}, {"a\\b", false},
	    {"0123456789012345678901234567890123456789012345678901234567890123456789", false}};

	ck_assert_int_eq(hr_identity_name_ok(rows[_i].name), rows[_i].ok);
}
END_TEST

START_TEST(ones_own_account_is_left_alone)
{
	set("username", "somebody");
	set("user_id", "4321");
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "somebody", top, NULL, &err), 0);
	ck_assert_uint_eq(id.user_id, 4321);
	ck_assert_int_ne(access(work, F_OK), 0); /* not even made */
	ck_assert(!id.shell_changes);
	ck_assert_uint_eq(id.shell_uid, geteuid());
	hr_identity_done(&id);
}
END_TEST

START_TEST(root_gets_the_directory)
{
	if (geteuid() != 0)
		return;
	set("username", "root");
	set("user_id", "77");
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
	ck_assert_uint_eq(id.user_id, 77);
	ck_assert_uint_eq(stat_of("deep/work").st_mode & 07777, 0775);
	ck_assert(id.shell_changes);
	ck_assert_uint_eq(id.shell_uid, 0);
	ck_assert_str_eq(id.shell_user, "root");
	ck_assert_ptr_nonnull(id.nginx_user);
	ck_assert_uint_ne(id.nginx_uid, 0);
	hr_identity_done(&id);
}
END_TEST

START_TEST(an_existing_user_keeps_its_id)
{
	if (geteuid() != 0)
		return;
	set("username", "nobody");
	set("sandbox_group", "12345");
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
	ck_assert_uint_eq(id.user_id, 65534);
	ck_assert_uint_eq(stat_of("deep/work").st_uid, 65534);
	ck_assert_uint_eq(stat_of("deep/work").st_gid, 12345);
	ck_assert(!id.shell_changes); /* only root, openhands and RUNTIME_USERNAME */
	hr_identity_done(&id);
	set("runtime_username", "nobody");
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
	ck_assert(id.shell_changes);
	ck_assert_uint_eq(id.shell_uid, 65534);
	hr_identity_done(&id);
	set("su_to_user", "false");
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
	ck_assert(!id.shell_changes);
	hr_identity_done(&id);
}
END_TEST

/* su would ask him for a password. In a child: there is no way back from another user. */
START_TEST(nobody_becomes_who_he_is)
{
	pid_t pid;
	int status;

	if (geteuid() != 0)
		return;
	set("username", "nobody");
	set("runtime_username", "nobody");
	pid = fork();
	if (pid == 0) {
		if (setuid(65534) != 0 ||
		    hr_identity_prepare(&id, &c, "nobody", top, NULL, &err) != 0)
			_exit(2);
		_exit(id.shell_changes ? 1 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* useradd is a stand-in on PATH that notes its words. */
static void
fake_useradd(int status)
{
	char path[256], text[256];
	int n = snprintf(text, sizeof(text),
	    "#!/bin/sh\nfor w; do echo \"[$w]\"; done >%s/words\necho broken >&2\nexit %d\n", top,
	    status);

	(void)snprintf(path, sizeof(path), "%s/useradd", top);
	ck_assert_int_eq(hr_path_write(path, text, (size_t)n, 0755, &err), 0);
	(void)snprintf(text, sizeof(text), "%s:/usr/bin:/bin", top);
	ck_assert_int_eq(setenv("PATH", text, 1), 0);
}

/* Sets user_id to a number that no account has. */
static uid_t
set_free_uid(void)
{
	char text[24];
	uid_t uid = 4711;

	while (getpwuid(uid) != NULL)
		uid++;
	(void)snprintf(text, sizeof(text), "%u", (unsigned)uid);
	set("user_id", text);
	return uid;
}

START_TEST(a_missing_user_is_made)
{
	HR_BUF(b, 4096);
	char path[256], words[200];
	uid_t uid;

	fake_useradd(0);
	set("username", "no-such-user-here");
	uid = set_free_uid();
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
	ck_assert_uint_eq(id.user_id, uid);
	hr_identity_done(&id);
	(void)snprintf(path, sizeof(path), "%s/words", top);
	ck_assert_int_eq(hr_path_read(path, &b, &err), 0);
	(void)snprintf(words, sizeof(words),
	    "[-rm]\n[-d]\n[/home/no-such-user-here]\n[-s]\n[/bin/bash]\n"
	    "[-g]\n[root]\n[-G]\n[sudo]\n[-u]\n[%u]\n"
	    "[no-such-user-here]\n",
	    (unsigned)uid);
	ck_assert_str_eq(hr_buf_str(&b), words);
	hr_buf_reset(&b);
	(void)snprintf(path, sizeof(path), "%s/sudoers", top);
	/* twice the start, once the line */
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
	hr_identity_done(&id);
	ck_assert_int_eq(hr_path_read(path, &b, &err), 0);
	ck_assert_str_eq(hr_buf_str(&b), "%sudo ALL=(ALL) NOPASSWD:ALL\n");
}
END_TEST

/* sudo refuses a file in which two rules are on one line. */
START_TEST(a_last_line_without_line_feed)
{
	static const char rule[] = "%sudo ALL=(ALL) NOPASSWD:ALL\n";
	static const char *const had[] = {"", "root ALL=(ALL) ALL\n", "root ALL=(ALL) ALL", "\n",
	    "# %sudo ALL=(ALL) NOPASSWD:ALL\n", "%sudo ALL=(ALL) NOPASSWD:ALL"};
	HR_BUF(b, 4096);
	char path[256], want[256];
	size_t i, len;

	fake_useradd(0);
	set("username", "no-such-user-here");
	(void)set_free_uid();
	(void)snprintf(path, sizeof(path), "%s/sudoers", top);
	for (i = 0; i < sizeof(had) / sizeof(had[0]); i++) {
		len = strlen(had[i]);
		ck_assert_int_eq(hr_path_write(path, had[i], len, 0600, &err), 0);
		ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
		hr_identity_done(&id);
		(void)snprintf(want, sizeof(want), "%s%s%s", had[i],
		    len > 0 && had[i][len - 1] != '\n' ? "\n" : "", rule);
		hr_buf_reset(&b);
		ck_assert_int_eq(hr_path_read(path, &b, &err), 0);
		ck_assert_str_eq(hr_buf_str(&b), want);
	}
}
END_TEST

static void
write_top(const char *name, const char *text)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	ck_assert_int_eq(hr_path_write(path, text, strlen(text), 0640, &err), 0);
}

static void
top_has(const char *name, const char *text)
{
	char path[256];
	HR_BUF(b, 4096);

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	ck_assert_int_eq(hr_path_read(path, &b, &err), 0);
	ck_assert_str_eq(hr_buf_str(&b), text);
}

/* Where no passwords are kept, useradd is not needed. */
START_TEST(an_account_without_useradd)
{
	char path[256], want[400];

	if (geteuid() != 0)
		return;
	write_top("passwd", "root:x:0:0::/root:/bin/sh"); /* no line feed */
	write_top("group", "xsudo:x:1:\nsudo:x:27:\nlast:x:28:other\n");
	(void)snprintf(path, sizeof(path), "%s/skel", top);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	write_top("skel/.profile", "hello\n");
	ck_assert_int_eq(hr_newaccount_add(top, top, "new", 4711, &err), 1);
	(void)snprintf(
	    want, sizeof(want), "root:x:0:0::/root:/bin/sh\nnew:!:4711:0::%s/new:/bin/bash\n", top);
	top_has("passwd", want);
	top_has("group", "xsudo:x:1:\nsudo:x:27:new\nlast:x:28:other\n");
	top_has("new/.profile", "hello\n");
	ck_assert_uint_eq(stat_of("new").st_uid, 4711);
	ck_assert_uint_eq(stat_of("new").st_gid, 0);
	ck_assert_uint_eq(stat_of("new").st_mode & 07777, 0755);
	ck_assert_uint_eq(stat_of("new/.profile").st_uid, 4711);
	ck_assert_uint_eq(stat_of("passwd").st_mode & 07777, 0644);
	write_top("group", "sudo:x:27:first");
	/* a directory that is there may be a volume: it stays as it is; what a killed process has
	 * left does not */
	(void)snprintf(path, sizeof(path), "%s/next", top);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	write_top("next/.profile", "mine\n");
	ck_assert_int_eq(hr_newaccount_add(top, top, "next", 4712, &err), 1);
	top_has("next/.profile", "mine\n");
	ck_assert_uint_eq(stat_of("next").st_uid, 0);
	ck_assert_uint_eq(stat_of("next/.profile").st_uid, 0);
	(void)snprintf(path, sizeof(path), "%s/third~new", top);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	write_top("group", "sudo:x:27:first");
	ck_assert_int_eq(hr_newaccount_add(top, top, "third", 4713, &err), 1);
	top_has("third/.profile", "hello\n");
	ck_assert_int_ne(access(path, F_OK), 0);
	write_top("group", "sudo:x:27:first");
	ck_assert_int_eq(hr_newaccount_add(top, top, "next", 4712, &err), 1);
	top_has("group", "sudo:x:27:first,next");
}
END_TEST

/* These systems are for useradd, and nothing of them changes. */
START_TEST(accounts_of_other_systems)
{
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(hr_newaccount_add(top, top, "new", 4711, &err), 0);
	write_top("passwd", "");
	write_top("group", "sudo:x:27:");
	ck_assert_int_eq(hr_newaccount_add(top, top, "..", 4711, &err), 0);
	ck_assert_int_eq(hr_newaccount_add(top, top, "+x", 4711, &err), 0);
	write_top("group", "");
	ck_assert_int_eq(hr_newaccount_add(top, top, "new", 4711, &err), 0);
	write_top("group", "sudoers:x:27:\n");
	ck_assert_int_eq(hr_newaccount_add(top, top, "new", 4711, &err), 0);
	write_top("group", "sudo:x:27:\n");
	write_top("shadow", "");
	ck_assert_int_eq(hr_newaccount_add(top, top, "new", 4711, &err), 0);
	top_has("passwd", "");
	top_has("group", "sudo:x:27:\n");
}
END_TEST

START_TEST(an_account_that_cannot_be_added)
{
	if (geteuid() != 0)
		return;
	write_top("passwd", "");
	write_top("group", "sudo:x:27:\n");
	write_top("skel", "no directory");
	ck_assert_int_eq(hr_newaccount_add(top, top, "new", 4711, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "skel: cp: "));
	ck_assert_int_eq(hr_newaccount_add(top, "/nonexistent", "new", 4711, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "create /nonexistent/new"));
	top_has("passwd", "");
}
END_TEST

static void
group_is(int gid, int of_last)
{
	char accounts[300];

	(void)snprintf(accounts, sizeof(accounts),
	    "# a comment\nroot:x:0:0::/root:/bin/sh\n"
	    "new:!:4711:%d::%s/home:/bin/sh\nlast:x:5:%d::/:",
	    gid, top, of_last);
	top_has("passwd", accounts);
}

START_TEST(a_group_for_an_account)
{
	char path[256], accounts[300];
	int i;

	if (geteuid() != 0)
		return;
	(void)snprintf(accounts, sizeof(accounts),
	    "# a comment\nroot:x:0:0::/root:/bin/sh\n"
	    "new:!:4711:0::%s/home:/bin/sh\nlast:x:5:6::/:",
	    top);
	write_top("passwd", accounts);
	write_top("group", "root:x:0:\nsudo:x:27:new"); /* no line feed */
	(void)snprintf(path, sizeof(path), "%s/home", top);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	ck_assert_int_eq(lchown(path, 4711, 0), 0);
	write_top("home/own", "");
	write_top("home/other", "");
	(void)snprintf(path, sizeof(path), "%s/home/own", top);
	ck_assert_int_eq(lchown(path, 4711, 0), 0);
	for (i = 0; i < 2; i++) { /* the second one finds all as it must be */
		ck_assert_int_eq(hr_newaccount_set_group(top, "new", 4800, &err), 0);
		group_is(4800, 6);
		top_has("group", "root:x:0:\nsudo:x:27:new\nnew:x:4800:\n");
	}
	ck_assert_uint_eq(stat_of("home").st_gid, 4800);
	ck_assert_uint_eq(stat_of("home/own").st_gid, 4800);
	ck_assert_uint_eq(stat_of("home/other").st_gid, 0);
	/* another group; the name of the account is taken, and its home is the root directory */
	ck_assert_int_eq(hr_newaccount_set_group(top, "new", 27, &err), 0);
	ck_assert_int_eq(hr_newaccount_set_group(top, "new", 4801, &err), 0);
	ck_assert_int_eq(hr_newaccount_set_group(top, "last", 27, &err), 0);
	top_has("group", "root:x:0:\nsudo:x:27:new\nnew:x:4800:\nnew-4801:x:4801:\n");
	group_is(4801, 27);
	ck_assert_uint_eq(stat_of("home/own").st_gid, 4801);
	ck_assert_int_eq(hr_newaccount_set_group(top, "missing", 27, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "the account missing cannot get group 27: "));
	write_top("passwd", "short:x:5\nnext:x:6:0::/:\n");
	ck_assert_int_eq(hr_newaccount_set_group(top, "short", 27, &err), -1);
	ck_assert_int_eq(hr_newaccount_set_group("/nonexistent", "new", 27, &err), -1);
}
END_TEST

/* A container may have any user ID, and its image neither an account of it nor the one asked for.
 * In a child: there is no way back from another user. */
START_TEST(a_user_id_without_an_account)
{
	static const char *const users[] = {"no-such-user-here", "root", "nobody"};
	pid_t pid;
	size_t i;
	int status;

	if (geteuid() != 0)
		return;
	fake_useradd(9);
	ck_assert_int_eq(chmod(top, 0755), 0);
	for (i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		set("username", users[i]);
		set("runtime_username", users[i]);
		pid = fork();
		if (pid == 0) {
			uid_t uid = set_free_uid();

			if (setgid(uid) != 0 || setuid(uid) != 0 ||
			    hr_identity_prepare(&id, &c, NULL, top, NULL, &err) != 0)
				_exit(2);
			_exit(id.shell_changes || id.shell_uid != uid ? 1 : 0);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
	}
}
END_TEST

START_TEST(an_account_of_the_user_id_is_used)
{
	fake_useradd(9); /* "UID 65534 is not unique" */
	set("username", "no-such-user-here");
	set("runtime_username", "no-such-user-here");
	set("user_id", "65534");
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
	ck_assert_str_eq(id.shell_user, "nobody");
	ck_assert_uint_eq(id.shell_uid, geteuid() == 0 ? 65534 : geteuid());
	ck_assert_uint_eq(id.user_id, 65534);
	ck_assert(id.shell_changes == (geteuid() == 0));
	if (geteuid() == 0)
		ck_assert_uint_eq(stat_of("deep/work").st_uid, 65534);
	hr_identity_done(&id);
	set("su_to_user", "false");
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
	ck_assert(!id.shell_changes);
	ck_assert_uint_eq(id.shell_uid, geteuid());
	hr_identity_done(&id);
}
END_TEST

/* Clients of E2B find `user` in each image, whichever accounts have its number. */
START_TEST(the_user_of_e2b_is_made)
{
	HR_BUF(b, 4096);
	char path[256], want[64];

	if (geteuid() != 0 || getpwnam("user") != NULL)
		return;
	fake_useradd(0);
	set("username", "user");
	set("user_id", "0");
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), 0);
	ck_assert_uint_ge(id.user_id, 1000);
	ck_assert_ptr_null(getpwuid(id.user_id));
	ck_assert_ptr_null(getgrgid(id.user_id));
	(void)snprintf(want, sizeof(want), "[-u]\n[%u]\n[user]\n", (unsigned)id.user_id);
	hr_identity_done(&id);
	(void)snprintf(path, sizeof(path), "%s/words", top);
	ck_assert_int_eq(hr_path_read(path, &b, &err), 0);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&b), want));
}
END_TEST

START_TEST(failures_to_make_a_user)
{
	char said[200];

	fake_useradd(9);
	set("username", "no-such-user-here");
	(void)snprintf(said, sizeof(said),
	    "Failed to create user `no-such-user-here` with UID %u. Output: [broken\n]",
	    (unsigned)set_free_uid());
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), -1);
	ck_assert_str_eq(err.msg, said);
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", "/nonexistent", NULL, &err), -1);
	ck_assert_int_eq(strncmp(err.msg, "Failed to add sudoer: ", 22), 0);
	set("username", "--help");
	ck_assert_int_eq(hr_identity_prepare(&id, &c, "root", top, NULL, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "cannot be the name of a user"));
}
END_TEST

START_TEST(the_tree_changes_hands_but_not_through_links)
{
	char path[256];
	int fd;

	if (geteuid() != 0)
		return;
	(void)snprintf(path, sizeof(path), "%s/a/b", work);
	ck_assert_int_eq(hr_path_mkdirs(path, 0755, NULL, &err), 0);
	(void)snprintf(path, sizeof(path), "%s/victim", top);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	hr_fd_close(&fd);
	(void)snprintf(path, sizeof(path), "%s/a/link", work);
	ck_assert_int_eq(symlink("../../../victim", path), 0);
	ck_assert_int_eq(hr_identity_work_dir(work, "nobody", "nogroup", false, NULL, &err), 0);
	ck_assert_uint_eq(stat_of("deep/work/a/b").st_uid, 65534);
	ck_assert_uint_eq(stat_of("deep/work/a/link").st_uid, 65534); /* the link itself */
	ck_assert_uint_eq(stat_of("victim").st_uid, 0);
	ck_assert_uint_eq(stat_of("deep").st_uid, 0); /* only what is below */
}
END_TEST

START_TEST(owners_are_kept_where_the_directory_has_the_right_one)
{
	char path[256];

	if (geteuid() != 0)
		return;
	(void)snprintf(path, sizeof(path), "%s/a", work);
	ck_assert_int_eq(hr_path_mkdirs(path, 0755, NULL, &err), 0);
	/* the directory is another account's */
	ck_assert_int_eq(hr_identity_work_dir(work, "nobody", "nogroup", true, NULL, &err), 0);
	ck_assert_uint_eq(stat_of("deep/work").st_uid, 65534);
	ck_assert_uint_eq(stat_of("deep/work/a").st_uid, 65534);
	ck_assert_int_eq(chown(path, 0, 0), 0);
	ck_assert_int_eq(hr_identity_work_dir(work, "nobody", "nogroup", true, NULL, &err), 0);
	ck_assert_uint_eq(stat_of("deep/work/a").st_uid, 0);
	/* it is another group's */
	ck_assert_int_eq(hr_identity_work_dir(work, "nobody", "root", true, NULL, &err), 0);
	ck_assert_uint_eq(stat_of("deep/work/a").st_uid, 65534);
	ck_assert_uint_eq(stat_of("deep/work/a").st_gid, 0);
}
END_TEST

struct group *__real_getgrnam(const char *name);
struct group *__wrap_getgrnam(const char *name);

/* Names a group by a number that is not its own. */
struct group *
__wrap_getgrnam(const char *name)
{
	static struct group odd = {.gr_gid = 4802};

	return strcmp(name, "4803") == 0 ? &odd : __real_getgrnam(name);
}

START_TEST(a_number_is_no_name_of_a_group)
{
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(hr_identity_work_dir(work, "nobody", "4803", false, NULL, &err), 0);
	ck_assert_uint_eq(stat_of("deep/work").st_gid, 4803);
}
END_TEST

START_TEST(an_unknown_group_changes_nothing)
{
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(
	    hr_identity_work_dir(work, "nobody", "no such group", false, NULL, &err), 0);
	ck_assert_uint_eq(stat_of("deep/work").st_uid, 0);
	ck_assert_uint_eq(stat_of("deep/work").st_mode & 07777, 0775);
}
END_TEST

static bool
stop_now(void)
{
	return true;
}

START_TEST(a_long_walk_can_be_stopped)
{
	ck_assert_int_eq(hr_identity_work_dir(work, "root", "root", false, stop_now, &err), -1);
	ck_assert_int_eq(err.code, HR_E_GONE);
}
END_TEST

START_TEST(accounts_of_nginx)
{
	if (geteuid() != 0)
		return;
	memset(&id, 0, sizeof(id));
	ck_assert_int_eq(hr_identity_nginx(&id, "nobody", &err), 0);
	ck_assert_str_eq(id.nginx_user, "nobody");
	ck_assert_str_eq(id.nginx_group, "nogroup"); /* not a group of the user's name */
	hr_identity_done(&id);
	ck_assert_int_eq(hr_identity_nginx(&id, "no-such-user-here", &err), -1);
	hr_identity_done(&id);
}
END_TEST

static int
put(const char *path, const char *text)
{
	HR_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* In a user namespace of one account root is the only one that nginx's workers can have. */
START_TEST(nginx_where_root_is_the_only_account)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER) != 0) {
		(void)printf("skipped: no user namespace can be made here: %s\n", strerror(errno));
		return;
	}
	ck_assert_int_eq(put("/proc/self/setgroups", "deny"), 0);
	(void)snprintf(map, sizeof(map), "0 %ld 1", (long)gid);
	ck_assert_int_eq(put("/proc/self/gid_map", map), 0);
	(void)snprintf(map, sizeof(map), "0 %ld 1", (long)uid);
	ck_assert_int_eq(put("/proc/self/uid_map", map), 0);
	memset(&id, 0, sizeof(id));
	ck_assert_msg(hr_identity_nginx(&id, "", &err) == 0, "%s", err.msg);
	ck_assert_str_eq(id.nginx_user, "root");
	ck_assert_uint_eq(id.nginx_uid, 0);
	ck_assert_uint_eq(id.nginx_gid, 0);
	hr_identity_done(&id);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("identity");
	TCase *tc = tcase_create("identity");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, names, 0, 14);
	tcase_add_test(tc, an_account_without_useradd);
	tcase_add_test(tc, accounts_of_other_systems);
	tcase_add_test(tc, an_account_that_cannot_be_added);
	tcase_add_test(tc, ones_own_account_is_left_alone);
	tcase_add_test(tc, root_gets_the_directory);
	tcase_add_test(tc, an_existing_user_keeps_its_id);
	tcase_add_test(tc, nobody_becomes_who_he_is);
	tcase_add_test(tc, a_missing_user_is_made);
	tcase_add_test(tc, a_last_line_without_line_feed);
	tcase_add_test(tc, a_group_for_an_account);
	tcase_add_test(tc, a_user_id_without_an_account);
	tcase_add_test(tc, an_account_of_the_user_id_is_used);
	tcase_add_test(tc, the_user_of_e2b_is_made);
	tcase_add_test(tc, failures_to_make_a_user);
	tcase_add_test(tc, the_tree_changes_hands_but_not_through_links);
	tcase_add_test(tc, owners_are_kept_where_the_directory_has_the_right_one);
	tcase_add_test(tc, a_number_is_no_name_of_a_group);
	tcase_add_test(tc, an_unknown_group_changes_nothing);
	tcase_add_test(tc, a_long_walk_can_be_stopped);
	tcase_add_test(tc, accounts_of_nginx);
	tcase_add_test(tc, nginx_where_root_is_the_only_account);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
