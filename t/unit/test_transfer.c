/* Where uploads may go (files/target, files/beneath), how a file takes its place (files/spool),
 * archives in and out (files/unpack, files/pack). */
#include "config.h"

#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/tempfiles.h"
#include "files/place/beneath.h"
#include "files/place/reach.h"
#include "files/archive/pack.h"
#include "files/place/spool.h"
#include "files/place/target.h"
#include "files/archive/unpack.h"
#include "files/archive/zip.h"

#include "attributes.h"

static char top[64];
static bool openat2_works; /* not under valgrind, for one: then no link is followed */

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
	ck_assert_int_eq(hr_path_write(in_top(name), text, strlen(text), 0644, NULL), 0);
}

static const char *
get(const char *name)
{
	static struct hr_buf b;

	hr_buf_done(&b);
	hr_buf_init(&b, 1 << 20);
	if (hr_path_read(in_top(name), &b, NULL) < 0)
		return NULL;
	return hr_buf_str(&b);
}

static void
make_dir(const char *name)
{
	ck_assert_int_eq(hr_path_mkdirs(in_top(name), 0755, NULL, NULL), 0);
}

static unsigned
entries(const char *name)
{
	char command[600];
	unsigned n = 0;
	FILE *f;

	(void)snprintf(command, sizeof(command), "ls -A '%s' | wc -l", in_top(name));
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%u", &n), 1);
	(void)pclose(f);
	return n;
}

static bool
can_openat2(void)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
	long fd = syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how));

	if (fd >= 0)
		(void)close((int)fd);
	return fd >= 0 || errno != ENOSYS;
}

static void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(top, sizeof(top), "%.40s/hr-transfer-XXXXXX", tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
	(void)umask(022);
	make_dir("ws/dest/sub");
	make_dir("out");
	openat2_works = can_openat2();
	put("ws/dest/old", "old");
	put("out/secret", "secret");
}

static void
teardown(void)
{
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

/* ---- beneath ---- */

START_TEST(beneath)
{
	static const struct {
		const char *path;
		int links, walk; /* errno with links; of the walk, which has none */
	} rows[] = {{"sub", 0, 0}, {"./sub//", 0, 0}, {"", 0, 0}, {"sub/..", 0, EXDEV},
	    {"..", EXDEV, EXDEV}, {"sub/../..", EXDEV, EXDEV}, {"/etc", EXDEV, EXDEV},
	    {"in", 0, EXDEV}, {"away", EXDEV, EXDEV}, {"up", EXDEV, EXDEV},
	    {"in/away", EXDEV, EXDEV}, {"old", ENOTDIR, ENOTDIR}, {"none", ENOENT, ENOENT},
	    {"loop", ELOOP, EXDEV}};
	int root = open(in_top("ws/dest"), O_PATH | O_DIRECTORY | O_CLOEXEC), fd;
	size_t i;

	ck_assert_int_eq(symlink("sub", in_top("ws/dest/in")), 0);
	ck_assert_int_eq(symlink(in_top("out"), in_top("ws/dest/away")), 0);
	ck_assert_int_eq(symlink("../../out", in_top("ws/dest/up")), 0);
	ck_assert_int_eq(symlink("../away", in_top("ws/dest/sub/away")), 0);
	ck_assert_int_eq(symlink("loop", in_top("ws/dest/loop")), 0);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int want = openat2_works ? rows[i].links : rows[i].walk;

		fd = hr_beneath_open(root, rows[i].path, O_RDONLY | O_DIRECTORY, true);
		ck_assert_msg(
		    fd >= 0 ? want == 0 : errno == want, "%s: %d %d", rows[i].path, fd, errno);
		hr_fd_close(&fd);
		fd = hr_beneath_walk(root, rows[i].path, O_RDONLY | O_DIRECTORY);
		ck_assert_msg(fd >= 0 ? rows[i].walk == 0 : errno == rows[i].walk, "walk %s: %d %d",
		    rows[i].path, fd, errno);
		hr_fd_close(&fd);
	}
	ck_assert_int_eq(hr_beneath_open(root, "in", O_RDONLY, false), -1);
	ck_assert_int_eq(errno, openat2_works ? ELOOP : EXDEV);
	fd = hr_beneath_mkdirs(root, "a/./b//c");
	ck_assert_int_ge(fd, 0);
	hr_fd_close(&fd);
	ck_assert_int_eq(access(in_top("ws/dest/a/b/c"), F_OK), 0);
	ck_assert_int_eq(hr_beneath_mkdirs(root, "in/x"), -1);
	ck_assert_int_eq(hr_beneath_mkdirs(root, "a/../../x"), -1);
	(void)close(root);
}
END_TEST

/* ---- what is reached ---- */

/* As the kernel does it, and by hand. */
static int
reach(const char *path, int flags, bool by_hand)
{
	int fd = by_hand ? hr_reach_walk(AT_FDCWD, path, flags, false)
			 : hr_reach_open(AT_FDCWD, path, flags);

	if (fd >= 0)
		ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	return fd;
}

START_TEST(processes_are_not_reached)
{
	static const struct {
		const char *path;
		int want;
	} rows[] = {{"/proc/self/mem", EACCES}, {"/proc/thread-self/environ", EACCES},
	    {"/proc/self/fd", EACCES}, {"/proc/self/fd/0", EACCES}, {"/dev/fd/0", EACCES},
	    {"/proc/self/root/etc", EACCES}, {"/proc/self/cwd", EACCES}, {"/proc/self/exe", EACCES},
	    {"/proc/self/root", EACCES}, {"/proc/self/status", 0}, {"/proc/mounts", 0},
	    {"/proc/net/unix", 0}, {"/proc/cpuinfo", 0}, {"/proc//self/./task/../status", 0},
	    {"/etc/passwd", 0}, {"/etc/passwd/", ENOTDIR}, {"/", 0}, {"", ENOENT},
	    {"/none", ENOENT}, {"/etc/passwd/x", ENOTDIR}};
	char link[200];
	int fd, hand;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (hand = 0; hand < 2; hand++) {
			fd = reach(rows[i].path, O_RDONLY | O_NONBLOCK | O_NOCTTY, hand != 0);
			ck_assert_msg(fd >= 0 ? rows[i].want == 0 : errno == rows[i].want,
			    "%s by %d: %d %d", rows[i].path, hand, fd, errno);
			hr_fd_close(&fd);
			if (i >= 3)
				continue;
			/* the same behind a link, and one behind that */
			(void)snprintf(link, sizeof(link), "%s/%zu-%d", top, i, hand);
			ck_assert_int_eq(symlink(rows[i].path, link), 0);
			ck_assert_int_eq(reach(link, O_RDONLY, hand != 0), -1);
			ck_assert_int_eq(errno, EACCES);
		}
}
END_TEST

START_TEST(links_by_hand)
{
	static const struct {
		const char *path;
		int flags, want;
	} rows[] = {{"in/../old", O_RDONLY, 0}, {"in", O_RDONLY | O_DIRECTORY, 0},
	    {"in/", O_RDONLY, 0}, {"far", O_RDONLY, 0}, {"far/", O_RDONLY, ENOTDIR},
	    {"far", O_RDONLY | O_NOFOLLOW, ELOOP}, {"loop", O_RDONLY, ELOOP},
	    {"gone", O_RDONLY, ENOENT}, {"up/secret", O_RDONLY, 0}, {"old/x", O_RDONLY, ENOTDIR}};
	char path[200];
	int fd, hand;
	size_t i;

	ck_assert_int_eq(symlink("sub", in_top("ws/dest/in")), 0);
	ck_assert_int_eq(symlink(in_top("out/secret"), in_top("ws/dest/far")), 0);
	ck_assert_int_eq(symlink("loop", in_top("ws/dest/loop")), 0);
	ck_assert_int_eq(symlink("none", in_top("ws/dest/gone")), 0);
	ck_assert_int_eq(symlink("../..//out/", in_top("ws/dest/up")), 0);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (hand = 0; hand < 2; hand++) {
			(void)snprintf(path, sizeof(path), "%s/ws/dest/%s", top, rows[i].path);
			fd = reach(path, rows[i].flags, hand != 0);
			ck_assert_msg(fd >= 0 ? rows[i].want == 0 : errno == rows[i].want,
			    "%s by %d: %d %d", path, hand, fd, errno);
			hr_fd_close(&fd);
		}
}
END_TEST

START_TEST(links_of_another_account)
{
	static const struct hr_reach rules = {.shell = 65534};
	char link[200], by_root[200];
	int fd;

	if (geteuid() != 0)
		return; /* the rule is the kernel's */
	hr_reach_rules(&rules);
	ck_assert_int_eq(chmod(top, 0755), 0);
	ck_assert_int_eq(chmod(in_top("out/secret"), 0600), 0);
	(void)snprintf(link, sizeof(link), "%s/ws/link", top);
	(void)snprintf(by_root, sizeof(by_root), "%s/ws/by-root", top);
	ck_assert_int_eq(symlink(in_top("out/secret"), link), 0);
	ck_assert_int_eq(symlink(in_top("out/secret"), by_root), 0);
	ck_assert_int_eq(lchown(link, 65534, 65534), 0);
	ck_assert_int_eq(hr_reach_open_as(AT_FDCWD, link, O_RDONLY, false), -1);
	ck_assert_int_eq(errno, EACCES);
	fd = hr_reach_open_as(AT_FDCWD, by_root, O_RDONLY, false);
	ck_assert_int_ge(fd, 0);
	hr_fd_close(&fd);
	fd = hr_reach_open(AT_FDCWD, link, O_RDONLY); /* without the rule */
	ck_assert_int_ge(fd, 0);
	hr_fd_close(&fd);
	ck_assert_int_eq(chmod(in_top("out/secret"), 0644), 0);
	fd = hr_reach_open_as(AT_FDCWD, link, O_RDONLY, false);
	ck_assert_int_ge(fd, 0);
	hr_fd_close(&fd);
	ck_assert_int_eq(hr_reach_open_as(AT_FDCWD, link, O_PATH, true), -1);
	ck_assert_int_eq(errno, EACCES);
	ck_assert_int_eq(geteuid(), 0);
	hr_reach_rules(NULL);
}
END_TEST

START_TEST(hidden_files)
{
	char secret[200], other[200];
	const struct hr_reach rules = {.hidden = {secret}};

	(void)snprintf(secret, sizeof(secret), "%s/out/secret", top);
	(void)snprintf(other, sizeof(other), "%s/out/other", top);
	ck_assert_int_eq(link(secret, other), 0);
	hr_reach_rules(&rules);
	ck_assert_int_eq(hr_reach_open(AT_FDCWD, secret, O_RDONLY), -1);
	ck_assert_int_eq(errno, EACCES);
	ck_assert_int_eq(hr_reach_open_as(AT_FDCWD, other, O_WRONLY, false), -1);
	ck_assert_int_eq(errno, EACCES);
	hr_reach_rules(NULL);
}
END_TEST

/* ---- targets and spools ---- */

/* Uploads text as `name` into ws/dest; the error or "". */
static const char *
upload(const char *name, const char *text)
{
	static struct hr_buf why;
	struct hr_target t;
	struct hr_spool s;

	hr_buf_done(&why);
	hr_buf_init(&why, 1 << 16);
	hr_spool_init(&s);
	if (hr_target_open(&t, in_top("ws/dest"), name, in_top("ws"), &why) == 0) {
		ck_assert_int_eq(hr_spool_open_at(&s, t.dir, t.exists ? 0600 : 0666, t.exists), 0);
		ck_assert_int_eq(hr_spool_write(&s, text, strlen(text)), 0);
		(void)hr_spool_place(&s, &t, &why);
	}
	hr_spool_close(&s);
	hr_target_close(&t);
	return hr_buf_str(&why);
}

#define LEAVES "400: The name leads out of the destination: "

static const struct {
	const char *name;
	const char *error; /* NULL: none; its beginning */
	const char *file;  /* where it is then, below top */
} names[] = {
    {"new", NULL, "ws/dest/new"},
    {"old", NULL, "ws/dest/old"},
    {"sub/new", NULL, "ws/dest/sub/new"},
    {"./sub/.//new", NULL, "ws/dest/sub/new"},
    {"sub/../new", NULL, "ws/dest/new"},
    {"in/new", NULL, "ws/dest/sub/new"},
    {"link", NULL, "ws/dest/old"},
    {"../up", NULL, "ws/up"},
    {"../dest/../up", NULL, "ws/up"},
    {"../../up", LEAVES, "up"},
    {"../../out/secret", LEAVES, NULL},
    {"../away/new", LEAVES, "out/new"},
    {"../../ws/back", LEAVES, "ws/back"}, /* on the way it is outside */
    {"/nowhere/x", LEAVES, NULL},
    {"/etc/../etc/x", LEAVES, NULL},
    {"away/new", LEAVES, "out/new"},
    {"absolute", LEAVES, NULL},
    {"secret", LEAVES, NULL},
    {"none/new", "[Errno 2] No such file or directory: ", NULL},
    {"old/new", "[Errno 20] Not a directory: ", NULL},
    {"sub", "[Errno 21] Is a directory: ", NULL},
    {"", "[Errno 21] Is a directory: ", NULL},
    {"sub/", "[Errno 21] Is a directory: ", NULL},
    {"..", "[Errno 21] Is a directory: ", NULL},
    {"none/", "[Errno 2] No such file or directory: ", NULL},
    {"fifo", "400: Not a regular file: ", NULL},
    {"loop", LEAVES, NULL},
};

START_TEST(names_of_uploads)
{
	const char *why, *want = names[_i].error;

	if (!openat2_works && want == NULL &&
	    (strstr(names[_i].name, "..") != NULL || strstr(names[_i].name, "in") != NULL))
		want = LEAVES; /* "in", "link" */

	ck_assert_int_eq(symlink("sub", in_top("ws/dest/in")), 0);
	ck_assert_int_eq(symlink("old", in_top("ws/dest/link")), 0);
	ck_assert_int_eq(symlink("../../out", in_top("ws/dest/away")), 0);
	ck_assert_int_eq(symlink("../out", in_top("ws/away")), 0);
	ck_assert_int_eq(symlink(in_top("out/secret"), in_top("ws/dest/absolute")), 0);
	ck_assert_int_eq(symlink("../../out/secret", in_top("ws/dest/secret")), 0);
	ck_assert_int_eq(symlink("loop", in_top("ws/dest/loop")), 0);
	ck_assert_int_eq(mkfifo(in_top("ws/dest/fifo"), 0600), 0);
	why = upload(names[_i].name, "text");
	ck_assert_msg(strncmp(why, want != NULL ? want : "", want != NULL ? strlen(want) : 1) == 0,
	    "%s: %s", names[_i].name, why);
	ck_assert_str_eq(get("out/secret"), "secret");
	ck_assert_uint_eq(entries("out"), 1);
	if (want == NULL)
		ck_assert_str_eq(get(names[_i].file), "text");
	else if (names[_i].file != NULL && names[_i].error != NULL)
		ck_assert_ptr_null(get(names[_i].file));
}
END_TEST

START_TEST(mode_links_and_owner_stay)
{
	struct stat st, other;

	ck_assert_int_eq(chmod(in_top("ws/dest/old"), 04751), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(chown(in_top("ws/dest/old"), 12345, 54321), 0);
	ck_assert_int_eq(chmod(in_top("ws/dest/old"), 04751), 0);
	ck_assert_str_eq(upload("old", "new content"), "");
	ck_assert_int_eq(stat(in_top("ws/dest/old"), &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 04751);
	if (geteuid() == 0) {
		ck_assert_int_eq(st.st_uid, 12345);
		ck_assert_int_eq(st.st_gid, 54321);
	}
	/* another name of the same file */
	ck_assert_int_eq(link(in_top("ws/dest/old"), in_top("ws/dest/hard")), 0);
	ck_assert_str_eq(upload("hard", "both"), "");
	ck_assert_str_eq(get("ws/dest/old"), "both");
	ck_assert_int_eq(stat(in_top("ws/dest/hard"), &other), 0);
	ck_assert_uint_eq(other.st_ino, st.st_ino);
	ck_assert_str_eq(upload("fresh", "x"), "");
	ck_assert_int_eq(stat(in_top("ws/dest/fresh"), &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0644);
	ck_assert_uint_eq(entries("ws/dest"), 4);
}
END_TEST

START_TEST(attributes_stay)
{
	if (!attributes_work(in_top("ws/dest")))
		return;
	attributes_give(in_top("ws/dest/old"));
	ck_assert_str_eq(upload("old", "new content"), "");
	ck_assert_str_eq(get("ws/dest/old"), "new content");
	attributes_are_there(in_top("ws/dest/old"));
	ck_assert_str_eq(upload("fresh", "x"), "");
	attributes_are_none(in_top("ws/dest/fresh"));
}
END_TEST

/* Nor comes any by: new files of that directory are open to others. */
START_TEST(no_attribute_is_added)
{
	struct stat st;

	if (!attributes_work(in_top("ws/dest")))
		return;
	attributes_give_default(in_top("ws/dest"));
	ck_assert_int_eq(chmod(in_top("ws/dest/old"), 0660), 0);
	ck_assert_str_eq(upload("old", "new content"), "");
	attributes_are_none(in_top("ws/dest/old"));
	ck_assert_int_eq(stat(in_top("ws/dest/old"), &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0660);
}
END_TEST

START_TEST(running_programs_are_replaced)
{
	struct hr_buf program;
	int input[2], started[2], status;
	char none;
	pid_t pid;

	hr_buf_init(&program, 1 << 24);
	ck_assert_int_eq(hr_path_read("/bin/cat", &program, NULL), 0);
	ck_assert_int_eq(
	    hr_path_write(in_top("ws/dest/cat"), program.p, program.len, 0755, NULL), 0);
	hr_buf_done(&program);
	ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(started, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)dup2(input[0], 0);
		(void)execl(in_top("ws/dest/cat"), "cat", (char *)NULL);
		_exit(99);
	}
	(void)close(input[0]);
	(void)close(started[1]);
	ck_assert_int_eq(read(started[0], &none, 1), 0); /* closed when it became that program */
	(void)close(started[0]);
	ck_assert_str_eq(upload("cat", "new"), "");
	ck_assert_str_eq(get("ws/dest/cat"), "new");
	(void)close(input[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(nothing_is_left_of_what_was_not_placed)
{
	struct hr_spool s;

	hr_spool_init(&s);
	ck_assert_int_eq(hr_spool_open(&s, in_top("ws/dest/not/yet/there")), 0);
	ck_assert_int_eq(hr_spool_write(&s, "abc", 3), 0);
	ck_assert_uint_eq(entries("ws/dest"), 2); /* where there is O_TMPFILE */
	hr_spool_close(&s);
	ck_assert_uint_eq(entries("ws/dest"), 2);
}
END_TEST

/* As where there is no O_TMPFILE: the name that it has is noted until the file is the target's,
 * also while it gets another one. */
START_TEST(a_spool_with_a_name)
{
	static struct hr_tempfiles scrap;
	struct hr_target t;
	struct hr_spool s;
	struct hr_buf why;

	hr_buf_init(&why, 1 << 16);
	hr_spool_init(&s);
	ck_assert_int_eq(hr_target_open(&t, in_top("ws/dest"), "old", in_top("ws"), &why), 0);
	s.dir = open(in_top("ws/dest"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)strcpy(s.name, ".handrail-upload-1");
	hr_tempfiles_use(&scrap);
	hr_tempfiles_note(s.dir, s.name);
	s.fd = openat(s.dir, s.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	ck_assert_int_ge(s.fd, 0);
	ck_assert_int_eq(hr_spool_write(&s, "new", 3), 0);
	/* a directory has come to be where the file was: it fails at the last moment */
	ck_assert_int_eq(unlink(in_top("ws/dest/old")), 0);
	make_dir("ws/dest/old");
	ck_assert_int_eq(hr_spool_place(&s, &t, &why), -1);
	ck_assert_str_eq(strrchr(scrap.path, '/'), "/.handrail-upload-1");
	ck_assert_uint_eq(atomic_load(&scrap.len), strlen(scrap.path) + 1);
	ck_assert_int_eq(rmdir(in_top("ws/dest/old")), 0);
	hr_spool_close(&s);
	ck_assert_uint_eq(atomic_load(&scrap.len), 0);
	hr_tempfiles_use(NULL);
	hr_target_close(&t);
	hr_buf_done(&why);
	ck_assert_uint_eq(entries("ws/dest"), 1); /* sub */
}
END_TEST

START_TEST(directories_made_and_taken_back)
{
	struct hr_buf why;
	size_t made;

	hr_buf_init(&why, 1 << 16);
	ck_assert_int_eq(hr_target_mkdirs(in_top("ws/dest/x/y//z/"), &made, &why), 0);
	ck_assert_int_eq(access(in_top("ws/dest/x/y/z"), F_OK), 0);
	hr_target_rmdirs(in_top("ws/dest/x/y//z/"), made);
	ck_assert_int_ne(access(in_top("ws/dest/x"), F_OK), 0);
	ck_assert_int_eq(access(in_top("ws/dest"), F_OK), 0);
	ck_assert_int_eq(hr_target_mkdirs(in_top("ws/dest"), &made, &why), 0);
	hr_target_rmdirs(in_top("ws/dest"), made);
	ck_assert_int_eq(access(in_top("ws/dest"), F_OK), 0);
	ck_assert_int_eq(hr_target_mkdirs(in_top("ws/dest/old/x/y"), &made, &why), -1);
	ck_assert_ptr_nonnull(strstr(why.p, "[Errno 20] Not a directory: '"));
	ck_assert_ptr_nonnull(strstr(why.p, "ws/dest/old/x'"));
	hr_buf_done(&why);
}
END_TEST

/* ---- archives ---- */

struct member {
	const char *name;
	mode_t type;
	const char *text; /* or the target of a link */
};

static void
make_zip(const char *name, const struct member *m, size_t n)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	size_t i;

	ck_assert_int_eq(archive_write_set_format_zip(a), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_open_filename(a, in_top(name)), ARCHIVE_OK);
	for (i = 0; i < n; i++) {
		archive_entry_clear(e);
		archive_entry_set_pathname(e, m[i].name);
		archive_entry_set_mode(e, m[i].type | 0755);
		if (m[i].type == AE_IFLNK)
			archive_entry_set_symlink(e, m[i].text);
		else if (m[i].text != NULL)
			archive_entry_set_size(e, (la_int64_t)strlen(m[i].text));
		ck_assert_msg(
		    archive_write_header(a, e) >= ARCHIVE_WARN, "%s", archive_error_string(a));
		if (m[i].type == AE_IFREG && m[i].text != NULL)
			(void)archive_write_data(a, m[i].text, strlen(m[i].text));
	}
	ck_assert_int_eq(archive_write_close(a), ARCHIVE_OK);
	(void)archive_write_free(a);
	archive_entry_free(e);
}

/* Into ws/dest; the error or "". */
static const char *
unpack(const char *zip, uint64_t bytes, uint64_t count)
{
	static struct hr_buf why;
	const struct hr_unpack_limits limits = {bytes, count};
	int fd = open(in_top(zip), O_RDONLY | O_CLOEXEC), r;
	bool too_large;

	hr_buf_done(&why);
	hr_buf_init(&why, 1 << 16);
	ck_assert_int_ge(fd, 0);
	ck_assert(hr_unpack_is_zip(fd));
	r = hr_unpack(fd, "z.zip", in_top("ws/dest"), &limits, NULL, &too_large, &why);
	(void)close(fd);
	ck_assert_int_eq(r == 0, why.len == 0);
	ck_assert(!too_large || r < 0);
	return hr_buf_str(&why);
}

START_TEST(unpack_merges)
{
	static const struct member m[] = {{"old", AE_IFREG, "new"}, {"sub/", AE_IFDIR, NULL},
	    {"sub/./a", AE_IFREG, "1"}, {"x/y/z", AE_IFREG, "2"}, {"link", AE_IFLNK, "/etc/passwd"},
	    {"empty/dir/", AE_IFDIR, NULL}, {"x/y/z", AE_IFREG, "3"}, {"../up", AE_IFREG, "no"},
	    {"/abs", AE_IFREG, "no"}, {"a..b", AE_IFREG, "no"}, {"\xC3\xBC.txt", AE_IFREG, "u"}};
	struct stat st;

	ck_assert_int_eq(chmod(in_top("ws/dest/old"), 0600), 0);
	put("ws/dest/sub/stays", "s");
	make_dir("ws/dest/.handrail-unpack-0123456789abcdef/x"); /* of one that was killed */
	make_zip("a.zip", m, sizeof(m) / sizeof(m[0]));
	ck_assert_str_eq(unpack("a.zip", 0, 0), "");
	ck_assert_str_eq(get("ws/dest/old"), "new");
	ck_assert_int_eq(stat(in_top("ws/dest/old"), &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_str_eq(get("ws/dest/sub/a"), "1");
	ck_assert_str_eq(get("ws/dest/sub/stays"), "s");
	ck_assert_str_eq(get("ws/dest/x/y/z"), "3");
	ck_assert_int_eq(stat(in_top("ws/dest/x/y/z"), &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0644); /* the archive's modes count for nothing */
	ck_assert_int_eq(lstat(in_top("ws/dest/link"), &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_str_eq(get("ws/dest/link"), "/etc/passwd");
	ck_assert_int_eq(stat(in_top("ws/dest/empty/dir"), &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0755);
	ck_assert_str_eq(get("ws/dest/\xC3\xBC.txt"), "u");
	ck_assert_ptr_null(get("ws/up"));
	ck_assert_ptr_null(get("ws/dest/a..b"));
	ck_assert_uint_eq(entries("ws/dest"), 6); /* old sub x link empty ü */
}
END_TEST

START_TEST(unpacking_keeps_attributes)
{
	static const struct member m[] = {{"old", AE_IFREG, "new"}, {"sub/a", AE_IFREG, "1"}};

	if (!attributes_work(in_top("ws/dest")))
		return;
	put("ws/dest/sub/target", "old");
	ck_assert_int_eq(symlink("target", in_top("ws/dest/sub/a")), 0);
	attributes_give(in_top("ws/dest/old"));
	attributes_give(in_top("ws/dest/sub/target"));
	make_zip("a.zip", m, openat2_works ? 2 : 1); /* else no link is followed */
	ck_assert_str_eq(unpack("a.zip", 0, 0), "");
	ck_assert_str_eq(get("ws/dest/old"), "new");
	attributes_are_there(in_top("ws/dest/old"));
	if (!openat2_works)
		return;
	ck_assert_str_eq(get("ws/dest/sub/target"), "1");
	attributes_are_there(in_top("ws/dest/sub/target"));
}
END_TEST

static const struct {
	struct member m[3];
	const char *error;
} hostile[] = {
    {{{"a", AE_IFREG, "x"}, {"a/b", AE_IFREG, "y"}}, "[Errno 20] Not a directory: "},
    {{{"a/b", AE_IFREG, "y"}, {"a", AE_IFREG, "x"}}, "[Errno 21] Is a directory: "},
    {{{"n", AE_IFREG, "x"}, {"old/b", AE_IFREG, "y"}}, "[Errno 17] File exists: "},
    {{{"n", AE_IFREG, "x"}, {"sub", AE_IFREG, "y"}}, "[Errno 21] Is a directory: "},
    {{{"n", AE_IFREG, "x"}, {"away/b", AE_IFREG, "y"}}, "400: A link leads out"},
    {{{"n", AE_IFREG, "x"}, {"secret", AE_IFREG, "y"}}, "400: The name leads out"},
    {{{"n", AE_IFREG, "x"}, {"fifo", AE_IFREG, "y"}}, "[Errno 22] Invalid argument: "},
    {{{"l", AE_IFLNK, "../../out"}, {"l/b", AE_IFREG, "y"}}, "[Errno 20] Not a directory: "},
    {{{"n", AE_IFREG, "x"}, {"0123456789012345678901234567890123456789012345678901234567890123"
			     "4567890123456789012345678901234567890123456789012345678901234567"
			     "8901234567890123456789012345678901234567890123456789012345678901"
			     "2345678901234567890123456789012345678901234567890123456789012345",
				AE_IFREG, "y"}},
	"[Errno 36] File name too long: "},
};

START_TEST(hostile_archives_change_nothing)
{
	const struct member *m = hostile[_i].m;
	size_t n = m[2].name != NULL ? 3 : m[1].name != NULL ? 2 : 1;
	const char *why;

	ck_assert_int_eq(symlink("../../out", in_top("ws/dest/away")), 0);
	ck_assert_int_eq(symlink("../../out/secret", in_top("ws/dest/secret")), 0);
	ck_assert_int_eq(mkfifo(in_top("ws/dest/fifo"), 0600), 0);
	make_zip("a.zip", m, n);
	why = unpack("a.zip", 0, 0);
	ck_assert_msg(strncmp(why, hostile[_i].error, strlen(hostile[_i].error)) == 0, "%s", why);
	ck_assert_uint_eq(entries("ws/dest"), 5);
	ck_assert_uint_eq(entries("ws/dest/sub"), 0);
	ck_assert_uint_eq(entries("out"), 1);
	ck_assert_str_eq(get("ws/dest/old"), "old");
	ck_assert_str_eq(get("out/secret"), "secret");
}
END_TEST

START_TEST(limits_of_archives)
{
	static const struct member m[] = {{"a", AE_IFREG, "0123456789"}, {"b/c", AE_IFREG, "01"}};

	make_zip("a.zip", m, 2);
	ck_assert_str_eq(unpack("a.zip", 11, 0), "The archive holds more than 11 bytes");
	ck_assert_str_eq(unpack("a.zip", 0, 1), "The archive holds more than 1 entries");
	ck_assert_uint_eq(entries("ws/dest"), 2);
	ck_assert_str_eq(unpack("a.zip", 12, 2), "");
	ck_assert_uint_eq(entries("ws/dest"), 4);
}
END_TEST

START_TEST(names_of_entries)
{
	static const struct {
		const char *name;
		int r;
		const char *clean;
	} rows[] = {{"a", 0, "a"}, {"a/b/", 0, "a/b"}, {"./a//b", 0, "a/b"}, {"", 0, ""},
	    {"./", 0, ""}, {"/a", 1, ""}, {"../a", 1, ""}, {"a..b", 1, ""}, {"a/..", 1, ""},
	    {"a\\..\\b", 1, ""}, {"a\\b", 0, "a\\b"}, {"C:\\a", 0, "C:\\a"}, {"a\nb", 0, "a\nb"}};
	struct hr_buf b, deep;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hr_buf_init(&b, 1000);
		ck_assert_int_eq(hr_unpack_name(rows[i].name, &b), rows[i].r);
		ck_assert_str_eq(hr_buf_str(&b), rows[i].clean);
		hr_buf_done(&b);
	}
	hr_buf_init(&b, 10000);
	hr_buf_init(&deep, 10000);
	for (i = 0; i <= HR_UNPACK_DEPTH; i++)
		hr_buf_adds(&deep, "d/");
	ck_assert_int_eq(hr_unpack_name(hr_buf_str(&deep), &b), -1);
	ck_assert_int_eq(errno, ELOOP);
	hr_buf_done(&b);
	hr_buf_done(&deep);
}
END_TEST

START_TEST(what_is_a_zip)
{
	static const char end[22] = "PK\5\6";
	struct hr_buf b;
	int fd;

	hr_buf_init(&b, 1 << 20);
	hr_buf_add(&b, end, sizeof(end));
	ck_assert_int_eq(hr_path_write(in_top("e.zip"), b.p, b.len, 0600, NULL), 0);
	ck_assert_str_eq(unpack("e.zip", 0, 0), "");
	put("t", "PK\5\6 too short");
	fd = open(in_top("t"), O_RDONLY | O_CLOEXEC);
	ck_assert(!hr_unpack_is_zip(fd));
	(void)close(fd);
	put("t", "no zip at all, but longer than the end of one");
	fd = open(in_top("t"), O_RDONLY | O_CLOEXEC);
	ck_assert(!hr_unpack_is_zip(fd));
	(void)close(fd);
	hr_buf_done(&b);
}
END_TEST

/* ---- packing ---- */

struct memory_sink {
	struct hr_sink sink;
	struct hr_buf b;
	size_t room; /* then the reader goes */
};

static int
memory_write(struct hr_sink *sink, const void *p, size_t len)
{
	struct memory_sink *m = (struct memory_sink *)sink;

	if (m->b.len + len > m->room)
		return -1;
	hr_buf_add(&m->b, p, len);
	return 0;
}

#define WITH_EMPTY (SIZE_MAX - 1)

/* The archive of ws in packed.zip, with empty directories where there is WITH_EMPTY room; the error
 * or "". */
static const char *
pack(const char *name, size_t room)
{
	static struct hr_buf why;
	struct memory_sink m = {.sink = {memory_write, -1}, .room = room};
	struct hr_err err = {0};
	struct hr_pack *p;

	hr_buf_done(&why);
	hr_buf_init(&why, 1 << 16);
	hr_buf_init(&m.b, 1 << 24);
	p = hr_pack_open(in_top(name), room == WITH_EMPTY, &why);
	if (p == NULL)
		return hr_buf_str(&why);
	if (hr_pack_send(p, &m.sink, &err) < 0)
		hr_buf_adds(&why, err.code != HR_OK ? err.msg : "gone");
	else
		ck_assert_int_eq(
		    hr_path_write(in_top("packed.zip"), hr_buf_str(&m.b), m.b.len, 0600, NULL), 0);
	hr_pack_free(p);
	hr_buf_done(&m.b);
	return hr_buf_str(&why);
}

START_TEST(pack_and_back)
{
	static char big[700000];

	memset(big, 'b', sizeof(big) - 1);
	put("ws/dest/big", big);
	put("ws/dest/sub/\xC3\xBC", "u");
	ck_assert_int_eq(symlink("old", in_top("ws/dest/link")), 0);
	ck_assert_int_eq(symlink("../../out/secret", in_top("ws/dest/out")), 0);
	ck_assert_int_eq(symlink("sub", in_top("ws/dest/dir")), 0);
	ck_assert_int_eq(symlink("/dev/null", in_top("ws/dest/null")), 0);
	ck_assert_int_eq(mkfifo(in_top("ws/dest/fifo"), 0600), 0);
	ck_assert_str_eq(pack("ws", SIZE_MAX), "");
	make_dir("fresh");
	ck_assert_int_eq(rename(in_top("ws/dest"), in_top("was")), 0);
	make_dir("ws/dest");
	ck_assert_str_eq(unpack("packed.zip", 0, 0), "");
	ck_assert_uint_eq(entries("ws/dest/dest"), 7); /* big old link out null fifo sub */
	ck_assert_str_eq(get("ws/dest/dest/old"), "old");
	ck_assert_str_eq(get("ws/dest/dest/link"), "old");
	ck_assert_str_eq(get("ws/dest/dest/out"), "secret");
	ck_assert_str_eq(get("ws/dest/dest/null"), "");
	ck_assert_str_eq(get("ws/dest/dest/fifo"), "");
	ck_assert_str_eq(get("ws/dest/dest/big"), big);
	ck_assert_str_eq(get("ws/dest/dest/sub/\xC3\xBC"), "u");
}
END_TEST

/* The contract's archive has files alone. */
START_TEST(empty_directories)
{
	struct stat st;

	make_dir("ws/dest/sub/none");
	make_dir("ws/dest/last");
	ck_assert_str_eq(pack("ws/dest", SIZE_MAX), "");
	ck_assert_int_eq(rename(in_top("ws/dest"), in_top("was")), 0);
	make_dir("ws/dest");
	ck_assert_str_eq(unpack("packed.zip", 0, 0), "");
	ck_assert_uint_eq(entries("ws/dest"), 1);
	ck_assert_str_eq(pack("was", WITH_EMPTY), "");
	ck_assert_str_eq(unpack("packed.zip", 0, 0), "");
	ck_assert_uint_eq(entries("ws/dest"), 3);
	ck_assert_uint_eq(entries("ws/dest/sub"), 1);
	ck_assert_int_eq(stat(in_top("ws/dest/sub/none"), &st), 0);
	ck_assert(S_ISDIR(st.st_mode));
	ck_assert_uint_eq(entries("ws/dest/last"), 0);
	ck_assert_str_eq(pack("was/last", WITH_EMPTY), "");
	make_dir("was/\xFF");
	ck_assert_str_eq(pack("was", SIZE_MAX), "");
	ck_assert_str_eq(pack("was", WITH_EMPTY),
	    "'utf-8' codec can't encode character '\\udcff' in position 0: surrogates not allowed");
}
END_TEST

START_TEST(pack_refuses)
{
	static const struct timeval old[2] = {{86400, 0}, {86400, 0}};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	ck_assert_str_eq(pack("none", SIZE_MAX), "404: File not found");
	ck_assert_str_eq(pack("ws/dest/old", SIZE_MAX), "");
	ck_assert_uint_eq(strlen(pack("ws", 0)), strlen("gone"));
	ck_assert_int_eq(utimes(in_top("ws/dest/old"), old), 0);
	ck_assert_str_eq(pack("ws", SIZE_MAX), "ZIP does not support timestamps before 1980");
	put("ws/dest/old", "x");
	ck_assert_int_eq(symlink("gone", in_top("ws/dest/sub/broken")), 0);
	ck_assert_ptr_nonnull(
	    strstr(pack("ws/", SIZE_MAX), "[Errno 2] No such file or directory: '"));
	ck_assert_ptr_nonnull(strstr(pack("ws/", SIZE_MAX), "/ws/dest/sub/broken'"));
	ck_assert_int_eq(unlink(in_top("ws/dest/sub/broken")), 0);
	put("ws/dest/sub/\xFF\xFE", "x");
	ck_assert_str_eq(pack("ws", SIZE_MAX),
	    "'utf-8' codec can't encode characters in position 9-10: surrogates not allowed");
	ck_assert_int_eq(rename(in_top("ws/dest/sub/\xFF\xFE"), in_top("ws/\xFF")), 0);
	ck_assert_str_eq(pack("ws", SIZE_MAX),
	    "'utf-8' codec can't encode character '\\udcff' in position 0: surrogates not allowed");
	ck_assert_int_eq(unlink(in_top("ws/\xFF")), 0);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", in_top("ws/sock"));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_ptr_nonnull(
	    strstr(pack("ws", SIZE_MAX), "[Errno 6] No such device or address: '"));
	(void)close(fd);
}
END_TEST

/* The module as workers have it; what is none is refused and said so, and can be tried again. */
START_TEST(module)
{
	const char *built = getenv("abs_top_builddir");
	const struct hr_zip *zip;
	struct hr_err err = {0};
	struct hr_buf why;
	void *p;

	ck_assert_ptr_nonnull(built);
	ck_assert_ptr_null(hr_zip_load("", &err));
	ck_assert_ptr_null(hr_zip_load(in_top("ws"), &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "handrail-zip.so"));
	put("ws/handrail-zip.so", "not a module");
	ck_assert_ptr_null(hr_zip_load(in_top("ws"), &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "no archives: "));
	zip = hr_zip_load(built, &err);
	ck_assert_msg(zip != NULL, "%s", err.msg);
	ck_assert_uint_eq(zip->version, HR_ZIP_VERSION);
	ck_assert_ptr_eq(hr_zip_load("", &err), zip);
	hr_buf_init(&why, 1 << 16);
	p = zip->pack_open(in_top("ws"), false, &why);
	ck_assert_ptr_nonnull(p);
	zip->pack_free(p);
	hr_buf_done(&why);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("transfer");
	TCase *tc = tcase_create("transfer");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, beneath);
	tcase_add_test(tc, processes_are_not_reached);
	tcase_add_test(tc, links_by_hand);
	tcase_add_test(tc, links_of_another_account);
	tcase_add_test(tc, hidden_files);
	tcase_add_loop_test(tc, names_of_uploads, 0, (int)(sizeof(names) / sizeof(names[0])));
	tcase_add_test(tc, mode_links_and_owner_stay);
	tcase_add_test(tc, attributes_stay);
	tcase_add_test(tc, no_attribute_is_added);
	tcase_add_test(tc, running_programs_are_replaced);
	tcase_add_test(tc, nothing_is_left_of_what_was_not_placed);
	tcase_add_test(tc, a_spool_with_a_name);
	tcase_add_test(tc, directories_made_and_taken_back);
	tcase_add_test(tc, unpack_merges);
	tcase_add_test(tc, unpacking_keeps_attributes);
	tcase_add_loop_test(
	    tc, hostile_archives_change_nothing, 0, (int)(sizeof(hostile) / sizeof(hostile[0])));
	tcase_add_test(tc, limits_of_archives);
	tcase_add_test(tc, names_of_entries);
	tcase_add_test(tc, what_is_a_zip);
	tcase_add_test(tc, pack_and_back);
	tcase_add_test(tc, empty_directories);
	tcase_add_test(tc, pack_refuses);
	tcase_add_test(tc, module);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
