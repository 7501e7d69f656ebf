#include "config.h"

#include "base/tempfiles.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lines.h"

static char top[64];
static int dir;
static struct hr_tempfiles *shared;

static void
setup(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/test-scrap-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
}

static void
teardown(void)
{
	hr_tempfiles_use(NULL);
	(void)munmap(shared, sizeof(*shared));
	(void)close(dir);
	ck_assert_int_eq(rmdir(top), 0); /* every test removed what it made */
}

static void
make(const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	(void)close(fd);
}

static bool
there(const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A process that makes a file, and dies. */
static void
die_with(const char *name, bool forgets)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		hr_tempfiles_use(shared);
		hr_tempfiles_note(dir, name);
		make(name);
		if (forgets)
			hr_tempfiles_forget();
		(void)kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
}

START_TEST(what_is_left_is_removed)
{
	die_with(".handrail-1", false);
	ck_assert(there(".handrail-1"));
	hr_tempfiles_remove(shared);
	ck_assert(!there(".handrail-1"));
	/* once: another may have the name by now */
	make(".handrail-1");
	hr_tempfiles_remove(shared);
	ck_assert(there(".handrail-1"));
	ck_assert_int_eq(unlinkat(dir, ".handrail-1", 0), 0);
}
END_TEST

START_TEST(what_is_finished_stays)
{
	die_with(".handrail-2", true);
	hr_tempfiles_remove(shared);
	ck_assert(there(".handrail-2"));
	ck_assert_int_eq(unlinkat(dir, ".handrail-2", 0), 0);
}
END_TEST

/* One that is not renamed yet when the next one is made. */
START_TEST(all_that_are_left_are_removed)
{
	die_with(".handrail-1", false);
	die_with(".handrail-2", false);
	hr_tempfiles_remove(shared);
	ck_assert(!there(".handrail-1"));
	ck_assert(!there(".handrail-2"));
	die_with(".handrail-1", false);
	die_with(".handrail-2", true);
	hr_tempfiles_remove(shared);
	ck_assert(there(".handrail-1"));
	ck_assert(there(".handrail-2"));
	ck_assert_int_eq(unlinkat(dir, ".handrail-1", 0), 0);
	ck_assert_int_eq(unlinkat(dir, ".handrail-2", 0), 0);
}
END_TEST

/* Until there is no more room; those before stay. */
START_TEST(more_than_there_is_room_for)
{
	uint32_t len = 0;
	int i;

	make(".handrail-1");
	hr_tempfiles_use(shared);
	for (i = 0; i < HR_TEMPFILES_PATH; i++) {
		hr_tempfiles_note(dir, ".handrail-1");
		len = atomic_load(&shared->len);
		ck_assert_uint_le(len, HR_TEMPFILES_PATH);
	}
	ck_assert_uint_gt(len, HR_TEMPFILES_PATH - 64);
	hr_tempfiles_remove(shared);
	ck_assert(!there(".handrail-1"));
}
END_TEST

START_TEST(no_other_file_is_removed)
{
	uint32_t len;

	die_with("precious", false);
	hr_tempfiles_remove(shared);
	ck_assert(there("precious"));
	/* what a process wrote that had lost its mind */
	make(".handrail-3");
	hr_tempfiles_use(shared);
	hr_tempfiles_note(dir, ".handrail-3");
	len = atomic_load(&shared->len);
	atomic_store(&shared->len, len + 1);
	hr_tempfiles_remove(shared);
	atomic_store(&shared->len, UINT32_MAX);
	hr_tempfiles_remove(shared);
	ck_assert(there(".handrail-3"));
	ck_assert_int_eq(unlinkat(dir, ".handrail-3", 0), 0);
	ck_assert_int_eq(unlinkat(dir, "precious", 0), 0);
}
END_TEST

START_TEST(without_a_place_nothing_is_written_down)
{
	hr_tempfiles_note(dir, ".handrail-4");
	hr_tempfiles_forget();
	ck_assert_uint_eq(atomic_load(&shared->len), 0);
	hr_tempfiles_use(shared);
	hr_tempfiles_note(-1, ".handrail-4");
	ck_assert_uint_eq(atomic_load(&shared->len), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("scrap");
	TCase *tc = tcase_create("scrap");

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_left_is_removed);
	tcase_add_test(tc, what_is_finished_stays);
	tcase_add_test(tc, all_that_are_left_are_removed);
	tcase_add_test(tc, more_than_there_is_room_for);
	tcase_add_test(tc, no_other_file_is_removed);
	tcase_add_test(tc, without_a_place_nothing_is_written_down);
	return lines_run(s);
}
