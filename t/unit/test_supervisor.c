/* The small parts of the supervisor: keys, addresses, back-off, environment, readiness, adoption.
 */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/process/image.h"
#include "base/process/notify.h"
#include "base/process/spawn.h"
#include "supervisor/children/adopt.h"
#include "supervisor/children/childenv.h"
#include "supervisor/children/keeperargs.h"
#include "supervisor/run/keys.h"
#include "supervisor/edge/listen.h"
#include "supervisor/children/plugins.h"
#include "supervisor/children/readyline.h"
#include "supervisor/run/rundir.h"
#include "supervisor/server.h"

static struct hr_err err;
static char top[64];

static void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	memset(&err, 0, sizeof(err));
	(void)snprintf(
	    top, sizeof(top), "%.30s/test_supervisor.XXXXXX", tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(top));
}

static void
teardown(void)
{
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static const char *
in_top(const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static const struct hr_listen *rival; /* is served just before this process has bound a name */
static int rivals = -1;

int
bind(int fd, const struct sockaddr *address, socklen_t len)
{
	const struct hr_listen *first = rival;
	struct hr_listen l;

	rival = NULL;
	if (first != NULL) {
		l = *first;
		rivals = hr_listen_bind(&l, &err);
	}
	return (int)syscall(SYS_bind, fd, address, len);
}

/* ---- keys ---- */

/* All of them, one a line, and no other. */
static bool
knows(const struct hr_keys *k, const char *keys)
{
	unsigned char sum[HR_KEYSUM];
	size_t n, i, at = 0;

	for (; *keys != '\0'; keys += n + 1, at++) {
		n = strcspn(keys, "\n");
		hr_keysum(k->salt, keys, n, sum);
		for (i = 0; i < k->count && memcmp(k->v[i].sum, sum, HR_KEYSUM) != 0; i++)
			;
		if (i == k->count || n > k->longest)
			return false;
	}
	return at == k->count;
}

START_TEST(the_key_leaves_the_environment)
{
	HR_CLEAN(hr_keys_done) struct hr_keys k = {.count = 0};
	char *there;

	ck_assert_int_eq(setenv("SESSION_API_KEY", "s3cret-value", 1), 0);
	there = getenv("SESSION_API_KEY"); /* the very bytes that /proc/PID/environ shows */
	ck_assert_int_eq(hr_keys_take_environment(&k, &err), 0);
	ck_assert_ptr_null(getenv("SESSION_API_KEY"));
	ck_assert_str_eq(there, "");
	ck_assert_uint_eq(k.count, 1);
	ck_assert(knows(&k, "s3cret-value\n"));
	/* it stays in force over a key file */
	ck_assert_int_eq(hr_keys_read_file(&k, "/nonexistent", &err), 0);
	ck_assert_uint_eq(k.count, 1);
}
END_TEST

START_TEST(an_empty_key_is_none)
{
	struct hr_keys k = {.count = 0};

	ck_assert_int_eq(setenv("SESSION_API_KEY", "", 1), 0);
	ck_assert_int_eq(hr_keys_take_environment(&k, &err), 0);
	ck_assert_int_eq(hr_keys_read_file(&k, "", &err), 0);
	ck_assert_uint_eq(k.count, 0);
	ck_assert(knows(&k, ""));
	hr_keys_done(&k);
	ck_assert_int_eq(setenv("SESSION_API_KEY", "two\nlines", 1), 0);
	ck_assert_int_eq(hr_keys_take_environment(&k, &err), -1);
	ck_assert_ptr_null(strstr(err.msg, "two"));
	ck_assert_ptr_null(getenv("SESSION_API_KEY"));
	hr_keys_done(&k);
}
END_TEST

START_TEST(key_files)
{
	static const struct {
		const char *text, *want;
		size_t count;
	} rows[] = {{"one", "one\n", 1}, {"one\n", "one\n", 1}, {"a\r\nb\r\n", "a\nb\n", 2},
	    {"\n\na\n\nb", "a\nb\n", 2}};
	HR_CLEAN(hr_keys_done) struct hr_keys k = {.count = 0};

	ck_assert_int_eq(
	    hr_path_write(in_top("keys"), rows[_i].text, strlen(rows[_i].text), 0600, &err), 0);
	ck_assert_int_eq(hr_keys_read_file(&k, in_top("keys"), &err), 0);
	ck_assert_uint_eq(k.count, rows[_i].count);
	ck_assert(knows(&k, rows[_i].want));
}
END_TEST

START_TEST(bad_key_files_change_nothing)
{
	HR_CLEAN(hr_keys_done) struct hr_keys k = {.count = 0};

	ck_assert_int_eq(hr_path_write(in_top("keys"), "good\n", 5, 0600, &err), 0);
	ck_assert_int_eq(hr_keys_read_file(&k, in_top("keys"), &err), 0);
	ck_assert_int_eq(hr_path_write(in_top("keys"), "\n\r\n", 3, 0600, &err), 0);
	ck_assert_int_eq(
	    hr_keys_read_file(&k, in_top("keys"), &err), -1); /* not: no key, no check */
	ck_assert_int_eq(hr_path_write(in_top("keys"), "a\0b", 3, 0600, &err), 0);
	ck_assert_int_eq(hr_keys_read_file(&k, in_top("keys"), &err), -1);
	ck_assert_int_eq(hr_keys_read_file(&k, in_top("gone"), &err), -1);
	ck_assert_uint_eq(k.count, 1);
	ck_assert(knows(&k, "good\n"));
}
END_TEST

/* Salted: two servers with one key keep nothing that is the same, and two starts of one. */
START_TEST(sums_are_salted)
{
	HR_CLEAN(hr_keys_done) struct hr_keys a = {.count = 0};
	HR_CLEAN(hr_keys_done) struct hr_keys b = {.count = 0};

	ck_assert_int_eq(hr_path_write(in_top("keys"), "good\n", 5, 0600, &err), 0);
	ck_assert_int_eq(hr_keys_read_file(&a, in_top("keys"), &err), 0);
	ck_assert_int_eq(hr_keys_read_file(&b, in_top("keys"), &err), 0);
	ck_assert_mem_ne(a.salt, b.salt, sizeof(a.salt));
	ck_assert_mem_ne(a.v[0].sum, b.v[0].sum, HR_KEYSUM);
}
END_TEST

/* More keys than one answer has room for: in parts, to the last one. */
START_TEST(workers_are_told_in_parts)
{
	const size_t room = sizeof(struct hr_keysum_head) + 2 * HR_KEYSUM + 1;
	HR_CLEAN(hr_keys_done) struct hr_keys k = {.count = 0};
	struct hr_keysum_head head;
	HR_BUF(b, 4096);

	ck_assert_int_eq(hr_path_write(in_top("keys"), "a\nbb\nccc", 8, 0600, &err), 0);
	ck_assert_int_eq(hr_keys_read_file(&k, in_top("keys"), &err), 0);
	hr_keys_tell(&k, 0, room, &b);
	ck_assert_uint_eq(b.len, room - 1);
	memcpy(&head, b.p, sizeof(head));
	ck_assert_uint_eq(head.count, 3);
	ck_assert_uint_eq(head.longest, 3);
	ck_assert_mem_eq(b.p + sizeof(head) + HR_KEYSUM, k.v[1].sum, HR_KEYSUM);
	hr_buf_reset(&b);
	hr_keys_tell(&k, 2, room, &b);
	ck_assert_uint_eq(b.len, sizeof(head) + HR_KEYSUM);
	hr_buf_reset(&b);
	hr_keys_tell(&k, 9, room, &b);
	ck_assert_uint_eq(b.len, sizeof(head));
}
END_TEST

START_TEST(the_next_image_inherits)
{
	HR_CLEAN(hr_keys_done) struct hr_keys k = {.count = 0};
	HR_CLEAN(hr_keys_done) struct hr_keys next = {.count = 0};
	char text[256];
	ssize_t n;
	int fd;

	ck_assert_int_eq(setenv("SESSION_API_KEY", "s3cret-value", 1), 0);
	ck_assert_int_eq(hr_keys_take_environment(&k, &err), 0);
	fd = hr_keys_hand_over(&k, &err);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	n = pread(fd, text, sizeof(text), 0);
	ck_assert_int_gt(n, HR_KEYSUM);
	ck_assert_ptr_null(memmem(text, (size_t)n, "s3cret", 6));
	ck_assert_int_eq(hr_keys_inherit(&next, fd, &err), 0);
	ck_assert(next.from_environment && knows(&next, "s3cret-value\n"));
	ck_assert_int_eq(ftruncate(fd, sizeof(struct hr_keysum_head) + 1), 0);
	ck_assert_int_eq(hr_keys_inherit(&next, fd, &err), -1);
	ck_assert_int_eq(ftruncate(fd, 0), 0); /* not: no key, no check */
	ck_assert_int_eq(hr_keys_inherit(&next, fd, &err), -1);
	ck_assert(knows(&next, "s3cret-value\n"));
	hr_fd_close(&fd);
}
END_TEST

/* ---- programs that cannot be read ---- */

START_TEST(an_image_runs_and_cannot_be_read)
{
	int fd = hr_image_open("/bin/true", "true", 0100, &err), status = -1;
	const char *const argv[] = {"true", NULL};
	struct stat st;
	pid_t pid;

	ck_assert_msg(fd > 4, "%s", err.msg); /* above what a child is given */
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0100);
	pid = hr_spawn(
	    &(const struct hr_spawn){
		.path = "/nonexistent", .image = &fd, .argv = argv, .umask = -1},
	    &err);
	ck_assert_msg(pid > 0, "%s", err.msg);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	hr_fd_close(&fd);
	/* by its path, where there is none */
	pid = hr_spawn(
	    &(const struct hr_spawn){.path = "true", .image = &fd, .argv = argv, .umask = -1},
	    &err);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(hr_image_open("/etc/passwd", "x", 0100, &err), -1);
	ck_assert_int_eq(hr_image_open("/nonexistent", "x", 0100, &err), -1);
}
END_TEST

/* ---- addresses ---- */

START_TEST(addresses)
{
	static const struct {
		const char *listen;
		bool has_key, allow;
		const char *want; /* NULL: refused */
		bool public;
	} rows[] = {
	    {"", false, false, "127.0.0.1:3000", false},
	    {"", true, false, "0.0.0.0:3000", true},
	    {"", false, true, "0.0.0.0:3000", true},
	    {"0.0.0.0", false, false, NULL, false},
	    {"0.0.0.0", false, true, "0.0.0.0:3000", true},
	    {"0.0.0.0", true, false, "0.0.0.0:3000", true},
	    {"127.0.0.1", true, false, "127.0.0.1:3000", false},
	    {"127.8.9.10", false, false, "127.8.9.10:3000", false},
	    {"localhost", false, false, "127.0.0.1:3000", false},
	    {"::1", false, false, "[::1]:3000", false},
	    {"[::1]", false, false, "[::1]:3000", false},
	    {"::", false, false, NULL, false},
	    {"::", true, false, "[::]:3000", true},
	    {"192.0.2.7", false, false, NULL, false},
	    {"1.2.3", true, false, NULL, false},
	    {"host.example", true, false, NULL, false},
	    {"127.0.0.1; evil", true, false, NULL, false},
	    {"0:0:0:0:0:0:0:1", false, false, "[::1]:3000", false},
	    {"unix:/server.sock", false, false, "unix:/server.sock", false},
	    {"unix:///server.sock", true, true, "unix:///server.sock", false},
	    {"unix:server.sock", false, false, NULL, false},
	    {"unix:", false, false, NULL, false},
	    {"unix:/", false, false, NULL, false},
	    {"unix:/tmp/server.sock", false, false, NULL, false},
	    {"unix:/server.sock; evil", false, false, NULL, false},
	};
	struct hr_settings c;
	struct hr_listen l;
	int r;

	ck_assert_int_eq(hr_settings_init(&c, &err), 0);
	c.port = 3000;
	c.allow_unauthenticated = rows[_i].allow;
	ck_assert_int_eq(hr_settings_set(&c, "listen", rows[_i].listen, &err), 0);
	r = hr_listen_choose(&l, &c, rows[_i].has_key, &err);
	ck_assert_int_eq(r, rows[_i].want != NULL ? 0 : -1);
	if (r == 0) {
		ck_assert_str_eq(l.text, rows[_i].want);
		ck_assert_int_eq(l.public, rows[_i].public);
	}
	hr_settings_done(&c);
}
END_TEST

START_TEST(a_taken_port_is_noticed)
{
	struct hr_settings c;
	struct hr_listen l;
	struct sockaddr_storage self;
	socklen_t len = sizeof(self);
	int fd, second, client;

	ck_assert_int_eq(hr_settings_init(&c, &err), 0);
	ck_assert_int_eq(hr_listen_choose(&l, &c, false, &err), 0); /* port 0: any */
	fd = hr_listen_bind(&l, &err);
	ck_assert_msg(fd >= 0, "%s", err.msg);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&self, &len), 0);
	/* bound is not open */
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&self, len), -1);
	ck_assert_int_eq(errno, ECONNREFUSED);
	ck_assert_int_eq(hr_listen_start(fd, &l, &err), 0);
	memcpy(&l.addr, &self, len);
	second = hr_listen_bind(&l, &err);
	ck_assert_int_eq(second, -1);
	ck_assert_int_eq(err.code, HR_E_BUSY);
	hr_fd_close(&client);
	hr_fd_close(&fd);
	hr_settings_done(&c);
}
END_TEST

START_TEST(a_taken_socket_is_noticed)
{
	struct hr_settings c;
	struct hr_listen l, other;
	char at[96], *path = at + strlen("unix:");
	int fd, second;

	(void)snprintf(at, sizeof(at), "unix:%s/server.sock", top);
	ck_assert_int_eq(hr_settings_init(&c, &err), 0);
	ck_assert_int_eq(hr_settings_set(&c, "listen", at, &err), 0);
	ck_assert_int_eq(hr_listen_choose(&l, &c, false, &err), 0);
	other = l;
	fd = hr_listen_bind(&l, &err);
	ck_assert_msg(fd >= 0, "%s", err.msg);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_eq(hr_listen_bind(&other, &err), -1);
	ck_assert_int_eq(err.code, HR_E_BUSY);
	ck_assert_int_eq(hr_listen_start(fd, &l, &err), 0);
	/* another server that started at the same time wins: it is told apart, and keeps its file
	 */
	ck_assert_int_eq(unlink(path), 0);
	second = hr_listen_bind(&other, &err);
	ck_assert_msg(second >= 0, "%s", err.msg);
	ck_assert_str_ne(l.nginx, other.nginx);
	ck_assert_int_eq(hr_listen_start(fd, &l, &err), -1);
	ck_assert_int_eq(err.code, HR_E_BUSY);
	hr_listen_close(&l, &fd);
	ck_assert_int_eq(access(path, F_OK), 0);
	hr_listen_close(&other, &second);
	ck_assert_int_eq(access(path, F_OK), -1);
	hr_settings_done(&c);
}
END_TEST

/* Two servers see that a path is free, or that its server is dead; the faster one has it. */
START_TEST(one_of_two_gets_the_path)
{
	struct hr_settings c;
	struct hr_listen l;
	char at[96];
	int fd;

	(void)snprintf(at, sizeof(at), "unix:%s/server.sock", top);
	ck_assert_int_eq(hr_settings_init(&c, &err), 0);
	ck_assert_int_eq(hr_settings_set(&c, "listen", at, &err), 0);
	ck_assert_int_eq(hr_listen_choose(&l, &c, false, &err), 0);
	if (_i == 1) {
		fd = hr_listen_bind(&l, &err);
		hr_fd_close(&fd); /* killed: its file stays */
	}
	rival = &l;
	ck_assert_int_eq(
	    hr_listen_bind(&(struct hr_listen){.addr = l.addr, .len = l.len}, &err), -1);
	ck_assert_int_eq(err.code, HR_E_BUSY);
	ck_assert_int_ge(rivals, 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&l.addr, l.len), 0);
	hr_fd_close(&fd);
	fd = accept4(rivals, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	hr_fd_close(&fd);
	hr_fd_close(&rivals);
	hr_settings_done(&c);
}
END_TEST

START_TEST(the_viewer_takes_no_port_that_is_bound)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
	    .sin_port = htons(65535),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct hr_settings c;
	struct hr_viewer v;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	/* as another server does before it is ready */
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(hr_settings_init(&c, &err), 0);
	ck_assert_int_eq(hr_settings_set(&c, "viewer_url_file", "", &err), 0);
	c.port = 65534; /* then there is no other */
	hr_viewer_open(&v, &c, -1);
	ck_assert_int_eq(v.fd, -1);
	hr_settings_done(&c);
	hr_fd_close(&fd);
}
END_TEST

/* ---- children ---- */

START_TEST(backoff_of_what_never_worked)
{
	static const int want[] = {0, 50, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};
	struct hr_backoff b = {0};
	size_t i;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		ck_assert_int_eq(hr_backoff_next(&b, false, 10, 1000), want[i]);
	ck_assert_int_eq(hr_backoff_next(&b, false, 1000, 1000), 0); /* it lived */
	ck_assert_int_eq(hr_backoff_next(&b, false, 10, 1000), 0);
	ck_assert_int_eq(hr_backoff_next(&b, false, 10, 1000), 50);
	ck_assert_int_eq(hr_backoff_next(&b, true, 10, 1000), 0); /* it worked */
	ck_assert_int_eq(hr_backoff_next(&b, false, 10, 1000), 0);
}
END_TEST

START_TEST(backoff_of_what_worked_is_a_budget)
{
	struct hr_backoff b = {0};
	int i;

	for (i = 0; i < 20; i++)
		ck_assert_int_eq(hr_backoff_next(&b, true, 10, 5000), 0);
	ck_assert_int_eq(hr_backoff_next(&b, true, 10, 5000), 500);
	ck_assert_int_eq(hr_backoff_next(&b, true, 10, 5500), 0); /* one came back */
	ck_assert_int_eq(hr_backoff_next(&b, true, 10, 5500), 500);
	ck_assert_int_eq(hr_backoff_next(&b, true, 10, 60000), 0);
	ck_assert_uint_lt(b.short_lives, HR_BACKOFF_FAILING);
}
END_TEST

START_TEST(commands_do_not_see_what_is_ours)
{
	char *env[] = {(char[]){"PATH=/bin"}, (char[]){"NOTIFY_SOCKET=/x"},
	    (char[]){"HANDRAIL_LIBEXECDIR=/y"}, (char[]){"SESSION_API_KEY=k"},
	    (char[]){"LISTEN_PID=1"}, (char[]){"HOME=/root"}, (char[]){"SESSION_API_KEYS=kept"},
	    NULL};
	HR_CLEAN(hr_strv_done) struct hr_strv copy = {0};

	ck_assert_int_eq(hr_childenv_fill(&copy, env, &err), 0);
	ck_assert_uint_eq(copy.n, 3);
	ck_assert_str_eq(copy.v[0], "PATH=/bin");
	ck_assert_str_eq(copy.v[1], "HOME=/root");
	ck_assert_str_eq(copy.v[2], "SESSION_API_KEYS=kept");
	ck_assert_ptr_null(copy.v[3]);
}
END_TEST

/* What bash makes of the command is what was meant, whatever the name holds. */
START_TEST(cd_is_quoted_for_bash)
{
	static const char *const names[] = {"plain", "with blank", "it's", "$(touch pwned)", "`x`",
	    "a\"b", "new\nline", "a\\b", "-dash", "*"};
	char script[1024], out[512];
	HR_FREE char *cd = NULL;
	FILE *f;
	size_t n;

	ck_assert_int_eq(chdir(top), 0);
	ck_assert_int_eq(mkdir(names[_i], 0700), 0);
	cd = hr_keeper_cd(names[_i]);
	(void)snprintf(script, sizeof(script), "%s && printf %%s \"${PWD##*/}\"", cd);
	ck_assert_int_eq(setenv("SCRIPT", script, 1), 0);
	f = popen("bash -c \"$SCRIPT\"", "r");
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = '\0';
	ck_assert_int_eq(pclose(f), 0);
	ck_assert_str_eq(out, names[_i]);
	ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

/* ---- readiness ---- */

struct heard {
	struct hr_loop *loop;
	int ready; /* -1: nothing yet */
	char reason[300];
};

static void
on_line(void *arg, bool ready, const char *reason)
{
	struct heard *h = arg;

	ck_assert_int_eq(h->ready, -1); /* once */
	h->ready = ready;
	(void)snprintf(h->reason, sizeof(h->reason), "%s", reason != NULL ? reason : "");
	hr_loop_stop(h->loop);
}

START_TEST(readiness_lines)
{
	static const struct {
		const char *text;
		int ready;
		const char *reason;
	} rows[] = {
	    {"ready\n", 1, ""},
	    {"failed no bash\n", 0, "no bash"},
	    {"failed cut short", 0, "cut short"},
	    {"", 0, "it ended before it was ready"},
	    {"ready", 0, "it ended before it was ready"},
	    {"hello\n", 0, "its first line is not a readiness line"},
	    {"ready \n", 0, "its first line is not a readiness line"},
	};
	struct heard h = {hr_loop_new(NULL), -1, ""};
	struct hr_readyline r;
	int child;

	ck_assert_int_eq(hr_readyline_open(&r, h.loop, on_line, &h, &child, &err), 0);
	ck_assert_int_eq(hr_fd_write_full(child, rows[_i].text, strlen(rows[_i].text), &err), 0);
	hr_fd_close(&child);
	ck_assert_int_eq(hr_loop_run(h.loop, &err), 0);
	ck_assert_int_eq(h.ready, rows[_i].ready);
	ck_assert_str_eq(h.reason, rows[_i].reason);
	ck_assert_int_eq(r.fd, -1);
	hr_readyline_close(&r); /* again: nothing */
	hr_loop_free(h.loop);
}
END_TEST

/* ---- the service manager ---- */

START_TEST(notify_reaches_both_kinds_of_names)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct hr_notify n;
	char name[108], got[64];
	socklen_t len;
	ssize_t size;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(name, sizeof(name), "%s%s/notify", _i == 0 ? "" : "@", top);
	memcpy(addr.sun_path, name, strlen(name));
	if (_i == 1)
		addr.sun_path[0] = '\0';
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(hr_notify_open(&n, name, &err), 0);
	hr_notify_send(&n, "READY=%d\n", 1);
	size = recv(fd, got, sizeof(got), MSG_DONTWAIT);
	ck_assert_int_eq(size, 8);
	ck_assert_mem_eq(got, "READY=1\n", 8);
	hr_notify_close(&n);
	hr_fd_close(&fd);
}
END_TEST

START_TEST(notify_without_a_manager)
{
	struct hr_notify n;

	ck_assert_int_eq(hr_notify_open(&n, NULL, &err), 0);
	hr_notify_send(&n, "READY=1\n");
	ck_assert_int_eq(hr_notify_open(&n, "", &err), 0);
	ck_assert_int_eq(hr_notify_open(&n, "relative", &err), -1);
	ck_assert_int_eq(hr_notify_open(&n, in_top("nobody"), &err), -1);
	ck_assert_int_eq(n.fd, -1);
}
END_TEST

/* ---- adoption ---- */

static const char *const argv_a[] = {"keeper", "--name", "a", NULL};
static const char *const argv_b[] = {"keeper", "--namea", "", NULL};

START_TEST(digests_tell_words_apart)
{
	ck_assert(hr_adopt_digest(argv_a) == hr_adopt_digest(argv_a));
	ck_assert(hr_adopt_digest(argv_a) != hr_adopt_digest(argv_b));
}
END_TEST

/* A process that SIGTERM ends: it never has check's handler, which ends the whole suite. */
static pid_t
fork_sleeper(void)
{
	void (*handler)(int) = signal(SIGTERM, SIG_DFL);
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	(void)signal(SIGTERM, handler);
	return pid;
}

START_TEST(a_recorded_keeper_is_found_while_it_lives)
{
	struct hr_rundir r = {.path = top, .lock = -1};
	struct hr_adopt a;
	int status;
	pid_t pid = fork_sleeper();

	ck_assert_int_eq(hr_adopt_record(&r, "keeper", pid, 42, &err), 0);
	hr_adopt_find(&a, &r, "keeper", 42);
	ck_assert_int_eq(a.pid, pid);
	hr_adopt_signal(&a, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	hr_adopt_done(&a);
	hr_adopt_find(&a, &r, "keeper", 42); /* gone */
	ck_assert_int_eq(a.pid, 0);
	ck_assert_int_eq(a.pidfd, -1);
}
END_TEST

START_TEST(one_with_other_settings_is_ended)
{
	struct hr_rundir r = {.path = top, .lock = -1};
	struct hr_adopt a;
	int status;
	pid_t pid = fork_sleeper();

	ck_assert_int_eq(hr_adopt_record(&r, "keeper", pid, 42, &err), 0);
	hr_adopt_find(&a, &r, "keeper", 43);
	ck_assert_int_eq(a.pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WTERMSIG(status), SIGTERM);
}
END_TEST

/* The number was used again: the start time tells. */
START_TEST(another_process_of_that_number_is_left_alone)
{
	struct hr_rundir r = {.path = top, .lock = -1};
	struct hr_adopt a;
	char text[64];
	int n = snprintf(text, sizeof(text), "%ld 12345 %016x\n", (long)getppid(), 42);

	ck_assert_int_eq(hr_path_write(in_top("keeper"), text, (size_t)n, 0600, &err), 0);
	hr_adopt_find(&a, &r, "keeper", 43);
	ck_assert_int_eq(a.pid, 0);
	ck_assert_int_eq(kill(getppid(), 0), 0);
}
END_TEST

START_TEST(broken_records_are_nobody)
{
	static const char *const texts[] = {
	    "", "x", "1 1 2a\n", "-5 1 2a\n", "99999999999 1 2a\n", "12 1"};
	struct hr_rundir r = {.path = top, .lock = -1};
	struct hr_adopt a;

	ck_assert_int_eq(
	    hr_path_write(in_top("keeper"), texts[_i], strlen(texts[_i]), 0600, &err), 0);
	hr_adopt_find(&a, &r, "keeper", 0x2a);
	ck_assert_int_eq(a.pid, 0);
}
END_TEST

/* ---- the token ---- */

START_TEST(the_token_file)
{
	struct hr_rundir r = {.path = top, .lock = -1};
	struct hr_token t, other;
	HR_BUF(b, 1000);
	char want[64], wrong[64];

	ck_assert_int_eq(mkdir(in_top("www"), 0700), 0);
	ck_assert_int_eq(hr_token_init(&t, &r, &err), 0);
	ck_assert_uint_eq(strspn(t.text, "0123456789abcdef-"), 36);
	ck_assert_int_eq(t.text[14], '4');
	ck_assert_int_eq(hr_token_show(&t, &r, false, &err), 0);
	ck_assert_int_eq(hr_path_read(in_top("www/connection_token"), &b, &err), 0);
	ck_assert_str_eq(hr_buf_str(&b), "{\"token\":null}");
	hr_buf_reset(&b);
	ck_assert_int_eq(hr_token_show(&t, &r, true, &err), 0);
	ck_assert_int_eq(hr_path_read(in_top("www/connection_token"), &b, &err), 0);
	(void)snprintf(want, sizeof(want), "{\"token\":\"%s\"}", t.text);
	ck_assert_str_eq(hr_buf_str(&b), want);
	/* a successor goes on with it, shown or not; another server does not */
	ck_assert_int_eq(hr_token_show(&t, &r, false, &err), 0);
	ck_assert_int_eq(hr_token_init(&other, &r, &err), 0);
	ck_assert_str_ne(other.text, t.text);
	r.inherited = true;
	ck_assert_int_eq(hr_token_init(&other, &r, &err), 0);
	ck_assert_str_eq(other.text, t.text);
	(void)snprintf(wrong, sizeof(wrong), "%s", t.text);
	wrong[30] = 'x';
	ck_assert_int_eq(hr_path_write(in_top("www/token"), wrong, strlen(wrong), 0600, &err), 0);
	ck_assert_int_eq(hr_token_init(&other, &r, &err), 0);
	ck_assert_str_ne(other.text, t.text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("supervisor");
	TCase *tc = tcase_create("supervisor");
	TCase *native = tcase_create("adopt");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_key_leaves_the_environment);
	tcase_add_test(tc, an_empty_key_is_none);
	tcase_add_loop_test(tc, key_files, 0, 4);
	tcase_add_test(tc, bad_key_files_change_nothing);
	tcase_add_test(tc, sums_are_salted);
	tcase_add_test(tc, workers_are_told_in_parts);
	tcase_add_test(tc, the_next_image_inherits);
	tcase_add_loop_test(tc, addresses, 0, 18);
	tcase_add_test(tc, a_taken_port_is_noticed);
	tcase_add_test(tc, a_taken_socket_is_noticed);
	tcase_add_loop_test(tc, one_of_two_gets_the_path, 0, 2);
	tcase_add_test(tc, the_viewer_takes_no_port_that_is_bound);
	tcase_add_test(tc, backoff_of_what_never_worked);
	tcase_add_test(tc, backoff_of_what_worked_is_a_budget);
	tcase_add_test(tc, commands_do_not_see_what_is_ours);
	tcase_add_loop_test(tc, cd_is_quoted_for_bash, 0, 10);
	tcase_add_loop_test(tc, readiness_lines, 0, 7);
	tcase_add_loop_test(tc, notify_reaches_both_kinds_of_names, 0, 2);
	tcase_add_test(tc, notify_without_a_manager);
	tcase_add_test(tc, digests_tell_words_apart);
	tcase_set_tags(
	    native, "no-valgrind"); /* it knows no pidfd_open, and no execveat of memory */
	tcase_add_checked_fixture(native, setup, teardown);
	tcase_add_test(native, an_image_runs_and_cannot_be_read);
	tcase_add_test(native, a_recorded_keeper_is_found_while_it_lives);
	tcase_add_test(native, one_with_other_settings_is_ended);
	tcase_add_test(tc, another_process_of_that_number_is_left_alone);
	tcase_add_loop_test(tc, broken_records_are_nobody, 0, 6);
	tcase_add_test(tc, the_token_file);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, native);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
