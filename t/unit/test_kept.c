/* session/kept: how the deaths of those are counted that try to go on with a shell. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "session/kept.h"

static struct hr_kept_store store;
static struct hr_kept *page;

static void
setup(void)
{
	struct hr_err err = {0};
	int ends[2], fds[HR_KEPT_FDS];
	bool found;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
	store = (struct hr_kept_store){.in = ends[0], .out = ends[1], .page_fd = -1};
	ck_assert_int_eq(hr_kept_open(&store, fds, &found, &err), 0);
	ck_assert(!found);
	page = store.page;
}

static void
teardown(void)
{
	hr_kept_close(&store);
}

/* How a process ends that tries and dies of the signal, or of abort(). */
static int
try_and_die(int sig)
{
	const struct rlimit none = {0, 0};
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)signal(sig, SIG_DFL); /* a sanitizer would report it */
		hr_kept_try(page);
		if (sig == SIGABRT)
			abort();
		(void)raise(sig);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	return WTERMSIG(status);
}

START_TEST(faults_and_kills)
{
	static const struct {
		int sig;
		unsigned tries;
	} rows[] = {{SIGKILL, 1}, {SIGABRT, HR_KEPT_CRASH}, {SIGSEGV, HR_KEPT_CRASH},
	    {SIGBUS, HR_KEPT_CRASH}, {SIGFPE, HR_KEPT_CRASH}, {SIGILL, HR_KEPT_CRASH}};
	unsigned before;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		before = atomic_load(&page->tries);
		ck_assert_int_eq(try_and_die(rows[i].sig), rows[i].sig);
		ck_assert_uint_eq(atomic_load(&page->tries) - before, rows[i].tries);
	}
}
END_TEST

START_TEST(one_that_succeeds)
{
	struct sigaction before, now;
	int status = 0;
	pid_t pid;

	ck_assert_int_eq(try_and_die(SIGABRT), SIGABRT);
	ck_assert_int_eq(sigaction(SIGFPE, NULL, &before), 0);
	hr_kept_try(page);
	ck_assert_uint_eq(atomic_load(&page->tries), HR_KEPT_CRASH + 1);
	hr_kept_succeeded(page);
	ck_assert_uint_eq(atomic_load(&page->tries), 0);
	ck_assert_int_eq(sigaction(SIGFPE, NULL, &now), 0);
	ck_assert(now.sa_handler == before.sa_handler);
	/* what it dies of later is nothing that it found */
	pid = fork();
	if (pid == 0) {
		(void)signal(SIGFPE, SIG_DFL);
		hr_kept_try(page);
		hr_kept_succeeded(page);
		(void)raise(SIGFPE);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_uint_eq(atomic_load(&page->tries), 0);
}
END_TEST

/* A successor gets the descriptors of the last put alone. */
START_TEST(descriptors_that_replace_others)
{
	struct hr_kept_store next;
	struct hr_err err = {0};
	int old[2], new[2], fds[HR_KEPT_FDS], i;
	bool found;
	char c;

	ck_assert_int_eq(pipe2(old, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(pipe2(new, O_CLOEXEC), 0);
	for (i = 0; i < HR_KEPT_FDS; i++)
		fds[i] = -1;
	fds[HR_KEPT_MASTER] = old[1];
	ck_assert_int_eq(hr_kept_put(&store, fds, &err), 0);
	fds[HR_KEPT_MASTER] = new[1];
	ck_assert_int_eq(hr_kept_put(&store, fds, &err), 0);
	hr_fd_close(&old[1]);
	hr_fd_close(&new[1]);
	ck_assert_int_eq(read(old[0], &c, 1), 0); /* The store has closed its copy. */
	next = (struct hr_kept_store){.in = dup(store.in), .out = dup(store.out), .page_fd = -1};
	ck_assert_int_eq(hr_kept_open(&next, fds, &found, &err), 0);
	ck_assert(found);
	ck_assert_int_eq(write(fds[HR_KEPT_MASTER], "x", 1), 1);
	ck_assert_int_eq(read(new[0], &c, 1), 1);
	for (i = 0; i < HR_KEPT_FDS; i++)
		hr_fd_close(&fds[i]);
	hr_fd_close(&old[0]);
	hr_fd_close(&new[0]);
	hr_kept_close(&next);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("kept");
	TCase *tc = tcase_create("kept");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, faults_and_kills);
	tcase_add_test(tc, one_that_succeeds);
	tcase_add_test(tc, descriptors_that_replace_others);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
