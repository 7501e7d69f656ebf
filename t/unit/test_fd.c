/* base/fd: whole reads and writes, descriptor passing, flags. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"

static bool
is_cloexec(int fd)
{
	return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

START_TEST(flags_turn_on_and_off)
{
	int p[2];

	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(hr_fd_cloexec(p[0], NULL), 0);
	ck_assert(is_cloexec(p[0]));
	ck_assert_int_eq(hr_fd_nonblock(p[0], true, NULL), 0);
	ck_assert_int_eq(fcntl(p[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	ck_assert_int_eq(hr_fd_nonblock(p[0], false, NULL), 0);
	ck_assert_int_eq(fcntl(p[0], F_GETFL) & O_NONBLOCK, 0);
	hr_fd_close(&p[0]);
	ck_assert_int_eq(p[0], -1);
	hr_fd_close(&p[1]);
}
END_TEST

START_TEST(bad_descriptor_is_an_error)
{
	struct hr_err err = {0};

	ck_assert_int_eq(hr_fd_cloexec(-1, &err), -1);
	ck_assert_int_eq(err.sys, EBADF);
	ck_assert_int_eq(hr_fd_write_full(-1, "x", 1, &err), -1);
	ck_assert_int_eq(hr_fd_read_full(-1, &err, 1, NULL), -1);
}
END_TEST

/* More than a pipe holds: both sides must repeat short calls. */
START_TEST(readable_without_waiting)
{
	int p[2];

	ck_assert(!hr_fd_is_readable(-1));
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert(!hr_fd_is_readable(p[0]));
	ck_assert_int_eq(hr_fd_write_full(p[1], "x", 1, NULL), 0);
	ck_assert(hr_fd_is_readable(p[0]));
	ck_assert_int_eq(hr_fd_read(p[0], (char[1]){0}, 1), 1);
	hr_fd_close(&p[1]);
	ck_assert(hr_fd_is_readable(p[0])); /* at the end */
	hr_fd_close(&p[0]);
}
END_TEST

START_TEST(a_megabyte_passes_a_pipe_whole)
{
	size_t len = 1 << 20, i;
	HR_FREE unsigned char *out = malloc(len);
	HR_FREE unsigned char *in = malloc(len + 1);
	int p[2], status;
	pid_t pid;

	ck_assert(out != NULL && in != NULL);
	for (i = 0; i < len; i++)
		out[i] = (unsigned char)(i * 2654435761u >> 24);
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(hr_fd_write_full(p[1], out, len, NULL) == 0 ? 0 : 1);
	hr_fd_close(&p[1]);
	ck_assert_int_eq(hr_fd_read_full(p[0], in, len + 1, NULL), (ssize_t)len);
	ck_assert_mem_eq(in, out, len);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	hr_fd_close(&p[0]);
}
END_TEST

START_TEST(a_descriptor_travels_and_is_cloexec)
{
	int s[2], p[2], got = -1;
	char text[8], c;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_eq(hr_fd_send(s[0], "s", 1, p[0], NULL), 0);
	ck_assert_int_eq(hr_fd_recv(s[1], text, sizeof(text), &got, NULL), 1);
	ck_assert_int_eq(text[0], 's');
	ck_assert_int_ge(got, 0);
	ck_assert(is_cloexec(got));
	ck_assert_int_eq(write(p[1], "z", 1), 1);
	ck_assert_int_eq(read(got, &c, 1), 1);
	ck_assert_int_eq(c, 'z');
	hr_fd_close(&got);
	/* and a packet without one says so */
	ck_assert_int_eq(hr_fd_send(s[0], "abc", 3, -1, NULL), 0);
	ck_assert_int_eq(hr_fd_recv(s[1], text, sizeof(text), &got, NULL), 3);
	ck_assert_int_eq(got, -1);
	hr_fd_close(&s[0]);
	ck_assert_int_eq(hr_fd_recv(s[1], text, sizeof(text), &got, NULL), 0);
	hr_fd_close(&s[1]);
	hr_fd_close(&p[0]);
	hr_fd_close(&p[1]);
}
END_TEST

static int
lowest_free_fd(void)
{
	int fd = dup(0);

	(void)close(fd);
	return fd;
}

START_TEST(nothing_leaks_from_a_packet_too_long_or_unwanted)
{
	struct hr_err err = {0};
	int s[2], got = -1, before;
	char text[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	before = lowest_free_fd();
	ck_assert_int_eq(hr_fd_send(s[0], "four", 4, s[0], NULL), 0);
	ck_assert_int_eq(hr_fd_recv(s[1], text, sizeof(text), &got, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	ck_assert_int_eq(hr_fd_send(s[0], "x", 1, s[0], NULL), 0);
	ck_assert_int_eq(hr_fd_recv(s[1], text, sizeof(text), NULL, NULL), 1);
	ck_assert_int_eq(lowest_free_fd(), before);
	hr_fd_close(&s[0]);
	hr_fd_close(&s[1]);
}
END_TEST

START_TEST(sending_to_nobody_is_a_value_not_a_signal)
{
	struct hr_err err = {0};
	int s[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	hr_fd_close(&s[1]);
	ck_assert_int_eq(hr_fd_send(s[0], "x", 1, -1, &err), -1);
	ck_assert_int_eq(err.sys, EPIPE);
	hr_fd_close(&s[0]);
}
END_TEST

START_TEST(closed_stdio_is_filled)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)close(0);
		(void)close(1);
		(void)close(2);
		if (hr_fd_open_stdio(NULL) != 0)
			_exit(1);
		_exit(fcntl(0, F_GETFD) >= 0 && fcntl(2, F_GETFD) >= 0 &&
			      lowest_free_fd() > STDERR_FILENO
			  ? 0
			  : 2);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_directory_is_taken)
{
	char top[] = "/tmp/test-fd-XXXXXX", one[64];
	const struct dirent *e;
	DIR *d;
	int fd;

	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(one, sizeof(one), "%s/one", top);
	fd = open(one, O_RDWR | O_CREAT, 0600);
	errno = 0;
	ck_assert_ptr_null(hr_dir_take(fd));
	ck_assert_int_eq(errno, ENOTDIR);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	errno = EMFILE;
	ck_assert_ptr_null(hr_dir_take(-1));
	ck_assert_int_eq(errno, EMFILE);
	d = hr_dir_take(open(top, O_RDONLY));
	ck_assert_ptr_nonnull(d);
	e = hr_dir_next(d);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->d_name, "one");
	ck_assert_ptr_null(hr_dir_next(d));
	ck_assert_int_eq(errno, 0);
	(void)closedir(d);
	(void)unlink(one);
	(void)rmdir(top);
}
END_TEST

/* Without a descriptor the connection stays in the queue: the caller is held up, but not when it is
 * to stop, and takes the connection when there is a descriptor again. */
START_TEST(accepting_without_descriptors_does_not_spin)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(sa_family_t);
	struct rlimit was, none;
	int stop[2], listener, peer, fd;
	int64_t began;

	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(pipe(stop), 0);
	ck_assert_int_eq(hr_fd_accept(listener, 0, stop[0]), -1);
	ck_assert_int_eq(errno, EAGAIN);
	len = sizeof(a);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	peer = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(peer, (struct sockaddr *)&a, len), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){0, was.rlim_max};
	fd = dup(peer); /* the lowest that is free */
	none.rlim_cur = (rlim_t)fd;
	hr_fd_close(&fd);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	began = hr_now_ms();
	ck_assert_int_eq(hr_fd_accept(listener, 0, stop[0]), -1);
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_ge(hr_now_ms() - began, 90);
	ck_assert_int_eq(write(stop[1], "x", 1), 1);
	ck_assert_int_eq(hr_fd_accept(listener, 0, stop[0]), -1);
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	fd = hr_fd_accept(listener, SOCK_NONBLOCK, stop[0]);
	ck_assert_int_ge(fd, 0);
	ck_assert(is_cloexec(fd) && (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	hr_fd_close(&fd);
	hr_fd_close(&peer);
	hr_fd_close(&listener);
	hr_fd_close(&stop[0]);
	hr_fd_close(&stop[1]);
}
END_TEST

START_TEST(ranges_of_data)
{
	const off_t mb = 1 << 20;
	off_t data = 0, hole = 0;
	int fd = memfd_create("sparse", MFD_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, 4 * mb), 0);
	ck_assert(!hr_fd_next_data(fd, 4 * mb, &data, &hole));
	ck_assert_int_eq(hr_fd_pwrite_full(fd, "a", 1, mb), 0);
	ck_assert_int_eq(hr_fd_pwrite_full(fd, "b", 1, 4 * mb - 1), 0);
	hole = 0;
	ck_assert(hr_fd_next_data(fd, 4 * mb, &data, &hole));
	ck_assert(data == mb && hole > mb && hole <= 2 * mb);
	ck_assert(hr_fd_next_data(fd, 4 * mb, &data, &hole));
	ck_assert(data > 3 * mb - 1 && hole == 4 * mb);
	ck_assert(!hr_fd_next_data(fd, 4 * mb, &data, &hole) && errno == ENXIO);
	/* a file that has grown ends where it did before */
	hole = 0;
	ck_assert(hr_fd_next_data(fd, mb + 1, &data, &hole));
	ck_assert(data == mb && hole == mb + 1);
	ck_assert(!hr_fd_next_data(fd, mb + 1, &data, &hole) && errno == ENXIO);
	(void)close(fd);
	hole = 0;
	ck_assert(!hr_fd_next_data(fd, mb, &data, &hole) && errno == EBADF);
}
END_TEST

/* The file has the same bytes as if all were written, whatever the pieces, and zeros take no room.
 */
START_TEST(zeros_become_holes)
{
	static char all[40 * 4096], got[sizeof(all)];
	const size_t pieces[] = {1, 7, 4096, 5000, sizeof(all)};
	size_t i, at, n;
	struct stat st;
	int fd;

	all[0] = all[3 * 4096 - 1] = all[3 * 4096] = all[20 * 4096 + 17] = 'x';
	for (i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		fd = memfd_create("sparse", MFD_CLOEXEC);
		for (at = 0; at < sizeof(all); at += n) {
			n = sizeof(all) - at < pieces[i] ? sizeof(all) - at : pieces[i];
			ck_assert_int_eq(hr_fd_pwrite_sparse(fd, all + at, n, (off_t)at), 0);
		}
		ck_assert_int_eq(ftruncate(fd, sizeof(all)), 0);
		ck_assert_int_eq(fstat(fd, &st), 0);
		if (sysconf(_SC_PAGESIZE) == 4096)
			ck_assert_int_le(st.st_blocks, 4 * 8);
		ck_assert_int_eq(hr_fd_pread_full(fd, got, sizeof(got), 0), 0);
		ck_assert(memcmp(got, all, sizeof(all)) == 0);
		(void)close(fd);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("fd");
	TCase *tc = tcase_create("fd");
	TCase *native = tcase_create("native");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, flags_turn_on_and_off);
	tcase_add_test(tc, bad_descriptor_is_an_error);
	tcase_add_test(tc, readable_without_waiting);
	tcase_add_test(tc, a_megabyte_passes_a_pipe_whole);
	tcase_add_test(tc, a_descriptor_travels_and_is_cloexec);
	tcase_add_test(tc, nothing_leaks_from_a_packet_too_long_or_unwanted);
	tcase_add_test(tc, sending_to_nobody_is_a_value_not_a_signal);
	tcase_add_test(tc, closed_stdio_is_filled);
	tcase_add_test(tc, a_directory_is_taken);
	tcase_add_test(tc, ranges_of_data);
	tcase_add_test(tc, zeros_become_holes);
	tcase_set_tags(native, "no-valgrind"); /* it has a limit of descriptors of its own */
	tcase_add_test(native, accepting_without_descriptors_does_not_spin);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, native);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
