/* proto/journal with several processes: what is found after each way in which a holder can go, and
 * who is waited for. */
#include "config.h"

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "lines.h"
#include "proto/journal.h"

static char top[64];
static struct hr_journal j, keeper;
static struct hr_journal_counts counts;
static struct hr_journal_entry e;
static enum hr_journal_found found;
static struct hr_buf answer;
static uint32_t tag;

static void
open_journals(void)
{
	struct hr_err err = {0};

	hr_journal_init(&j);
	hr_journal_init(&keeper);
	j.entries_max = 1000;
	j.bytes_max = 1 << 20;
	j.age_max_ms = 3600000;
	j.counts = &counts;
	ck_assert_msg(hr_journal_open(&j, top, &err) == 0, "%s", err.msg);
	ck_assert_msg(hr_journal_open(&keeper, top, &err) == 0, "%s", err.msg);
}

static void
setup(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/hr-journal-dead-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	hr_buf_init(&answer, 1 << 20);
	e.fd = -1;
	open_journals();
}

static void
teardown(void)
{
	hr_journal_close(&j);
	hr_journal_close(&keeper);
	hr_buf_done(&answer);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

/* In a process of its own: locks belong to descriptors, and it has copies of ours. */
static void
open_again(void)
{
	if (e.fd >= 0)
		(void)close(e.fd);
	(void)close(j.dir);
	(void)close(keeper.dir);
	if (j.spare >= 0)
		(void)close(j.spare);
	open_journals();
}

static void
enter(const char *key)
{
	struct hr_err err = {0};

	hr_buf_reset(&answer);
	ck_assert_msg(hr_journal_enter(&j, key, strlen(key), &e, &found, &tag, &answer, &err) == 0,
	    "%s", err.msg);
	ck_assert_int_ge(e.fd, 0);
}

static bool
begin(const char *key, uint32_t attempt)
{
	return hr_journal_begin(&keeper, key, strlen(key), attempt);
}

static void
leave(bool over)
{
	hr_journal_leave(&j, &e, over);
	ck_assert_int_eq(e.fd, -1);
}

static void
expect(const char *key, enum hr_journal_found what)
{
	enter(key);
	ck_assert_int_eq(found, what);
	if (what == HR_JOURNAL_DONE) {
		ck_assert_uint_eq(tag, 9);
		ck_assert_str_eq(hr_buf_str(&answer), "whole");
	}
	leave(false);
}

/* A holder that ends without a word, having done what fn does. */
static void
dies_after(const char *key, void (*fn)(const char *key))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		open_again();
		enter(key);
		if (fn != NULL)
			fn(key);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void
begins(const char *key)
{
	if (!begin(key, e.attempt))
		_exit(2);
}

static void
marks(const char *key)
{
	(void)key;
	hr_journal_mark(&j, &e);
}

static void
answers(const char *key)
{
	begins(key);
	hr_journal_done(&j, &e, 9, "whole", 5);
}

static void
answers_and_leaves(const char *key)
{
	answers(key);
	hr_journal_leave(&j, &e, true);
}

START_TEST(dead_holders)
{
	dies_after("a", NULL);
	expect("a", HR_JOURNAL_NEW);
	dies_after("b", begins);
	expect("b", HR_JOURNAL_BEGUN);
	dies_after("c", marks);
	expect("c", HR_JOURNAL_BEGUN);
	dies_after("d", answers);
	expect("d", HR_JOURNAL_DONE);
	dies_after("e", answers_and_leaves);
	expect("e", HR_JOURNAL_DONE);
}
END_TEST

/* In a process of its own: says on `tell` that it is about to enter, then what it found. */
static pid_t
waiter(const char *key, int tell)
{
	pid_t pid = fork();
	char c;

	ck_assert_int_ge(pid, 0);
	if (pid != 0)
		return pid;
	open_again();
	if (write(tell, "a", 1) != 1)
		_exit(1);
	enter(key);
	c = found == HR_JOURNAL_DONE  ? strcmp(hr_buf_str(&answer), "late") == 0 ? 'd' : '?'
	    : found == HR_JOURNAL_NEW ? 'n'
				      : 'b';
	if (found == HR_JOURNAL_NEW || found == HR_JOURNAL_BEGUN)
		hr_journal_done(&j, &e, 1, "late", 4);
	hr_journal_leave(&j, &e, false);
	_exit(write(tell, &c, 1) == 1 ? 0 : 1);
}

static char
told(int fd)
{
	char c = 0;

	ck_assert_int_eq(read(fd, &c, 1), 1);
	return c;
}

static void
reap(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(two_wait)
{
	struct pollfd p;
	int tell[2], i;
	pid_t pid[2];

	ck_assert_int_eq(pipe(tell), 0);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	for (i = 0; i < 2; i++)
		pid[i] = waiter("k", tell[1]);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(told(tell[0]), 'a');
	p = (struct pollfd){.fd = tell[0], .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, 50), 0);
	ck_assert(begin("k", e.attempt)); /* it is not they who may */
	ck_assert_int_eq(poll(&p, 1, 20), 0);
	hr_journal_done(&j, &e, 1, "late", 4); /* before it leaves */
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(told(tell[0]), 'd');
	leave(true);
	for (i = 0; i < 2; i++)
		reap(pid[i]);
	(void)close(tell[0]);
	(void)close(tell[1]);
}
END_TEST

/* One of those who wait goes on where the dead one was, the other waits for that one. */
START_TEST(two_wait_for_a_death)
{
	int tell[2], i, status;
	char c[3] = {0};
	pid_t holder, pid[2];

	ck_assert_int_eq(pipe(tell), 0);
	holder = fork();
	ck_assert_int_ge(holder, 0);
	if (holder == 0) {
		open_again();
		enter("k");
		begins("k");
		if (write(tell[1], "h", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	ck_assert_int_eq(told(tell[0]), 'h');
	for (i = 0; i < 2; i++)
		pid[i] = waiter("k", tell[1]);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(told(tell[0]), 'a');
	ck_assert_int_eq(kill(holder, SIGKILL), 0);
	for (i = 0; i < 2; i++)
		c[i] = told(tell[0]);
	ck_assert(strcmp(c, "bd") == 0 || strcmp(c, "db") == 0);
	for (i = 0; i < 2; i++)
		reap(pid[i]);
	ck_assert_int_eq(waitpid(holder, &status, 0), holder);
	(void)close(tell[0]);
	(void)close(tell[1]);
}
END_TEST

#define STORM_KEYS 200
#define STORM_WORKERS 3
#define STORM_KILLS 30

/* All go through the same keys. */
static void
storm_worker(_Atomic uint32_t *begun, _Atomic uint32_t *answered, _Atomic uint32_t *at)
{
	char key[32], big[6000];
	uint32_t i;
	bool did;

	memset(big, 'y', sizeof(big));
	open_again();
	for (i = atomic_load(at) > 2 ? atomic_load(at) - 2 : 0; i < STORM_KEYS; i++) {
		(void)snprintf(key, sizeof(key), "storm %u", i);
		hr_buf_reset(&answer);
		if (hr_journal_enter(&j, key, strlen(key), &e, &found, &tag, &answer, NULL) != 0)
			_exit(3);
		did = found == HR_JOURNAL_NEW && begin(key, e.attempt);
		if (found == HR_JOURNAL_NEW && !did)
			_exit(4);
		if (did && atomic_fetch_add(&begun[i], 1) != 0)
			_exit(5);
		if (found == HR_JOURNAL_NEW || found == HR_JOURNAL_BEGUN)
			hr_journal_done(&j, &e, i, big, i % 7 == 0 ? sizeof(big) : 40);
		else if (found == HR_JOURNAL_DONE &&
			 (tag != i || answer.len != (i % 7 == 0 ? sizeof(big) : 40)))
			_exit(6);
		atomic_fetch_add(&answered[i], 1);
		hr_journal_leave(&j, &e, false);
		if (atomic_load(at) < i)
			atomic_store(at, i);
	}
	_exit(0);
}

static pid_t
storm_start(_Atomic uint32_t *begun, _Atomic uint32_t *answered, _Atomic uint32_t *at)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		storm_worker(begun, answered, at);
	return pid;
}

/* No key is begun twice, whoever is killed when, and nobody waits for ever. */
START_TEST(storm)
{
	size_t bytes = (2 * STORM_KEYS + 1) * sizeof(uint32_t);
	_Atomic uint32_t *begun =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_Atomic uint32_t *answered = begun + STORM_KEYS, *at = begun + (size_t)2 * STORM_KEYS;
	pid_t pid[STORM_WORKERS], dead;
	int status, left = STORM_WORKERS, i, kills = STORM_KILLS;
	unsigned seed = 4711 + (unsigned)_i;

	ck_assert_ptr_ne((void *)begun, MAP_FAILED);
	for (i = 0; i < STORM_WORKERS; i++)
		pid[i] = storm_start(begun, answered, at);
	while (left > 0) {
		i = rand_r(&seed) % STORM_WORKERS;
		if (kills > 0 && pid[i] > 0) {
			kills--;
			(void)poll(NULL, 0, rand_r(&seed) % 2);
			(void)kill(pid[i], SIGKILL); /* not waited for yet: still of that one */
		}
		dead = wait(&status);
		ck_assert_int_gt(dead, 0);
		ck_assert_msg(status == 0 || status == SIGKILL, "status %x", (unsigned)status);
		for (i = 0; i < STORM_WORKERS; i++) {
			if (pid[i] != dead)
				continue;
			pid[i] = status == 0 ? 0 : storm_start(begun, answered, at);
			left -= status == 0;
		}
	}
	for (i = 0; i < STORM_KEYS; i++) {
		ck_assert_uint_le(begun[i], 1);
		ck_assert_uint_ge(answered[i], 1);
	}
	(void)munmap((void *)begun, bytes);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("journal_dead");
	TCase *c = tcase_create("journal_dead");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, dead_holders);
	tcase_add_test(c, two_wait);
	tcase_add_test(c, two_wait_for_a_death);
	tcase_add_loop_test(c, storm, 0, 10);
	suite_add_tcase(s, c);
	return lines_run(s);
}
