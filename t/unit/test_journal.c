/* proto/journal: what is found after each way in which a holder can go, who may begin, and what is
 * dropped when. Holders that die are processes that exit. */
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "lines.h"
#include "proto/journal.h"

static char top[64];
static struct hr_journal j;
static struct hr_journal_counts counts;
static struct hr_journal_entry e;
static enum hr_journal_found found;
static struct hr_buf answer;
static uint32_t tag;

static void
setup(void)
{
	struct hr_err err = {0};

	(void)snprintf(top, sizeof(top), "/tmp/hr-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	hr_journal_init(&j);
	j.entries_max = 100;
	j.bytes_max = 1 << 20;
	j.age_max_ms = 3600000;
	memset(&counts, 0, sizeof(counts));
	j.counts = &counts;
	hr_buf_init(&answer, 1 << 20);
	ck_assert_msg(hr_journal_open(&j, top, &err) == 0, "%s", err.msg);
}

static void
teardown(void)
{
	hr_journal_close(&j);
	hr_buf_done(&answer);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
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

static void
leave(void)
{
	hr_journal_leave(&j, &e, false);
	ck_assert_int_eq(e.fd, -1);
}

static int
files(void)
{
	DIR *d = opendir(top);
	struct dirent *f;
	int n = 0;

	while ((f = readdir(d)) != NULL)
		n += f->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

/* A holder that ends without a word, having done what fn does. */
static void
dies_after(const char *key, void (*fn)(const char *key))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		hr_journal_close(&j); /* locks belong to descriptors, and ours were copied */
		if (hr_journal_open(&j, top, NULL) != 0)
			_exit(1);
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
	if (!hr_journal_begin(&j, key, strlen(key), e.attempt))
		_exit(2);
}

static void
marks(const char *key)
{
	(void)key;
	hr_journal_mark(&j, &e);
}

static void
answers_partly(const char *key)
{
	/* killed between the answer and what makes it one */
	if (pwrite(e.fd, "half", 4, (off_t)(32 + strlen(key))) != 4)
		_exit(3);
}

START_TEST(answer_is_given_again)
{
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert(!hr_journal_begun(&e));
	hr_journal_done(&j, &e, 4711, "the answer", 10);
	leave();
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	ck_assert_uint_eq(tag, 4711);
	ck_assert_str_eq(hr_buf_str(&answer), "the answer");
	leave();
	enter("other");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	hr_journal_done(&j, &e, 1, "", 0);
	leave();
	enter("other");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	ck_assert_uint_eq(answer.len, 0);
	leave();
	ck_assert_int_eq(files(), 2);
	ck_assert_int_eq(counts.entries, 2);
}
END_TEST

START_TEST(dead_holders)
{
	dies_after("reserved", NULL);
	enter("reserved");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert_uint_eq(e.attempt, 2);
	leave();
	dies_after("begun", begins);
	enter("begun");
	ck_assert_int_eq(found, HR_JOURNAL_BEGUN);
	ck_assert(hr_journal_begun(&e));
	leave();
	dies_after("marked", marks);
	enter("marked");
	ck_assert_int_eq(found, HR_JOURNAL_BEGUN);
	hr_journal_done(&j, &e, 7, "nobody knows", 12);
	leave();
	enter("marked");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	leave();
	dies_after("half", answers_partly);
	enter("half");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	hr_journal_done(&j, &e, 1, "whole", 5);
	leave();
	enter("half");
	ck_assert_str_eq(hr_buf_str(&answer), "whole");
	leave();
}
END_TEST

/* Made, and nothing written: its maker died between two calls. */
START_TEST(empty_file)
{
	char path[128];
	int fd;

	enter("k");
	(void)snprintf(path, sizeof(path), "%s/%016llx", top, (unsigned long long)e.digest);
	leave();
	ck_assert_int_eq(truncate(path, 0), 0);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	leave();
	fd = open(path, O_WRONLY | O_TRUNC);
	ck_assert_int_eq(write(fd, "nonsense that is no entry of ours, but long", 43), 43);
	(void)close(fd);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	hr_journal_done(&j, &e, 1, "a", 1);
	leave();
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	leave();
}
END_TEST

START_TEST(only_one_attempt_begins)
{
	uint32_t first;

	enter("k");
	first = e.attempt;
	leave(); /* its holder died; what it asked for is still on its way */
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert(!hr_journal_begin(&j, "k", 1, first));
	ck_assert(!hr_journal_begun(&e));
	errno = EINTR; /* an earlier call was interrupted */
	ck_assert(hr_journal_begin(&j, "k", 1, e.attempt));
	ck_assert(hr_journal_begun(&e));
	ck_assert(!hr_journal_begin(&j, "k", 1, e.attempt));
	leave();
	/* what is not in the journal is nobody's business */
	ck_assert(hr_journal_begin(&j, "k", 1, 0));
}
END_TEST

/* Nothing of a second attempt was done, and it said so: a third may come. The first, which died and
 * whose request is still on its way, must not be a second one then. */
START_TEST(an_attempt_without_its_entry_does_not_begin)
{
	uint32_t first;

	enter("k");
	first = e.attempt;
	leave();
	enter("k");
	hr_journal_undo(&j, &e);
	ck_assert(!hr_journal_begin(&j, "k", 1, first));
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	leave();
}
END_TEST

/* The second waits until the first has answered. */
START_TEST(second_waits)
{
	struct pollfd p;
	int tell[2];
	pid_t pid;
	char c = 0;

	ck_assert_int_eq(pipe(tell), 0);
	enter("k");
	pid = fork();
	if (pid == 0) {
		(void)close(e.fd);
		hr_journal_close(&j);
		if (hr_journal_open(&j, top, NULL) != 0 || write(tell[1], "a", 1) != 1)
			_exit(1);
		enter("k");
		c = found == HR_JOURNAL_DONE && strcmp(hr_buf_str(&answer), "late") == 0 ? 'y'
											 : 'n';
		_exit(write(tell[1], &c, 1) == 1 ? 0 : 1);
	}
	ck_assert_int_eq(read(tell[0], &c, 1), 1);
	p = (struct pollfd){.fd = tell[0], .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, 50), 0);
	hr_journal_done(&j, &e, 1, "late", 4); /* before it leaves */
	ck_assert_int_eq(read(tell[0], &c, 1), 1);
	ck_assert_int_eq(c, 'y');
	leave();
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	(void)close(tell[0]);
	(void)close(tell[1]);
}
END_TEST

START_TEST(undone_and_forgotten)
{
	enter("k");
	hr_journal_undo(&j, &e);
	ck_assert_int_eq(e.fd, -1);
	ck_assert_int_eq(files(), 0);
	ck_assert_int_eq(counts.entries, 0);
	ck_assert_int_eq(counts.bytes, 0);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	hr_journal_done(&j, &e, 1, top, sizeof(top));
	hr_journal_leave(&j, &e, true);
	ck_assert_int_eq(e.fd, -1);
	/* it makes room for the next */
	enter("next");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert_uint_eq(e.attempt, 1);
	ck_assert_int_eq(files(), 1);
	ck_assert_int_eq(counts.entries, 1);
	ck_assert_int_eq(counts.bytes, 4096);
	hr_journal_done(&j, &e, 2, "a", 1);
	leave();
	enter("next");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	ck_assert_uint_eq(tag, 2);
	ck_assert_str_eq(hr_buf_str(&answer), "a");
	leave();
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	leave();
}
END_TEST

static void
done_and_over(const char *key, const char *text)
{
	enter(key);
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	hr_journal_done(&j, &e, 1, text, strlen(text));
	hr_journal_leave(&j, &e, true);
}

/* Nobody should ask; who does is told what came of it. */
START_TEST(over_and_asked_again)
{
	done_and_over("k", "once");
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	ck_assert_str_eq(hr_buf_str(&answer), "once");
	leave();
	ck_assert_int_eq(counts.entries, 1);
}
END_TEST

/* An entry that is over, but not ours alone: the next one must not take it away. */
START_TEST(over_and_held)
{
	struct hr_journal other;
	struct hr_journal_entry held;

	done_and_over("k", "once");
	hr_journal_init(&other);
	other.bytes_max = j.bytes_max;
	ck_assert_int_eq(hr_journal_open(&other, top, NULL), 0);
	ck_assert_int_eq(hr_journal_enter(&other, "k", 1, &held, &found, &tag, &answer, NULL), 0);
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	enter("next");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert_int_eq(files(), 2);
	leave();
	hr_journal_leave(&other, &held, false);
	hr_journal_close(&other);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	leave();
}
END_TEST

/* Dropped meanwhile, and its name is another's. */
START_TEST(over_and_replaced)
{
	struct hr_journal other;
	struct hr_journal_entry theirs;
	char path[128];

	done_and_over("k", "once");
	(void)snprintf(path, sizeof(path), "%s/%016llx", top, (unsigned long long)j.spare_digest);
	ck_assert_int_eq(unlink(path), 0);
	hr_journal_init(&other);
	other.bytes_max = j.bytes_max;
	ck_assert_int_eq(hr_journal_open(&other, top, NULL), 0);
	ck_assert_int_eq(hr_journal_enter(&other, "k", 1, &theirs, &found, &tag, &answer, NULL), 0);
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	hr_journal_done(&other, &theirs, 5, "theirs", 6);
	hr_journal_leave(&other, &theirs, false);
	done_and_over("next", "ours");
	hr_journal_close(&other);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	ck_assert_uint_eq(tag, 5);
	leave();
	ck_assert_int_eq(files(), 1); /* the file of "next" was to become that of "k" */
	ck_assert_int_eq(counts.entries, 1);
}
END_TEST

/* Killed between the new record and the new name: neither action is begun for the other. */
START_TEST(killed_while_it_changes_names)
{
	char path[128];
	int fd;

	enter("1");
	(void)snprintf(path, sizeof(path), "%s/%016llx", top, (unsigned long long)e.digest);
	leave();
	fd = open(path, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "2", 1, 32), 1);
	(void)close(fd);
	ck_assert(!hr_journal_begin(&j, "1", 1, 1));
	enter("2");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert(hr_journal_begin(&j, "2", 1, e.attempt));
	leave();
}
END_TEST

/* The room that a long answer took is counted once, however often its file is used again. */
START_TEST(counted_once)
{
	char text[20001], key[16];
	int i;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (i = 0; i < 10; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		done_and_over(key, i % 2 == 0 ? text : "short");
	}
	ck_assert_int_eq(files(), 1);
	ck_assert_int_eq(counts.entries, 1);
	ck_assert_int_eq(counts.bytes, 4096);
	hr_journal_close(&j);
	ck_assert_int_eq(files(), 0);
	ck_assert_int_eq(counts.entries, 0);
	ck_assert_int_eq(counts.bytes, 0);
}
END_TEST

START_TEST(too_long_is_dropped)
{
	HR_FREE char *big = calloc(1, 1 << 20);

	enter("k");
	hr_journal_done(&j, &e, 1, big, 1 << 20);
	leave();
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_DROPPED);
	leave();
}
END_TEST

static void
fill(int n, const char *text)
{
	char key[32];
	int i;

	for (i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "key %d", i);
		enter(key);
		hr_journal_done(&j, &e, 1, text, strlen(text));
		leave();
		hr_journal_tidy(&j, 1000000 + i);
	}
}

START_TEST(bounded_by_number)
{
	fill(1000, "x");
	ck_assert_int_le(files(), 100);
	ck_assert_int_ge(files(), 75);
	ck_assert_int_eq(counts.entries, files());
	enter("key 999");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	leave();
	enter("key 0");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	leave();
}
END_TEST

START_TEST(bounded_by_size)
{
	char text[100001];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	fill(100, text);
	ck_assert_int_le(files(), 10);
	ck_assert_int_ge(files(), 6);
	enter("key 99");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	ck_assert_uint_eq(answer.len, 100000);
	leave();
}
END_TEST

START_TEST(bounded_by_age)
{
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	char path[128];

	fill(3, "x");
	enter("key 1");
	(void)snprintf(path, sizeof(path), "%s/%016llx", top, (unsigned long long)e.digest);
	leave();
	ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	hr_journal_tidy(&j, 1000010); /* too early to look */
	ck_assert_int_eq(files(), 3);
	hr_journal_tidy(&j, 1000010 + 3600000);
	ck_assert_int_eq(files(), 2);
	enter("key 1");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	leave();
}
END_TEST

START_TEST(what_is_held_stays)
{
	struct hr_journal_entry held;

	enter("held");
	held = e;
	fill(300, "x");
	ck_assert_int_le(files(), 101);
	ck_assert(!hr_journal_begun(&held));
	hr_journal_done(&j, &held, 1, "done", 4);
	hr_journal_leave(&j, &held, false);
	enter("held");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	leave();
}
END_TEST

/* An existing journal is counted at the first look. */
START_TEST(inherited)
{
	fill(50, "x");
	memset(&counts, 0, sizeof(counts));
	hr_journal_tidy(&j, 5);
	ck_assert_int_eq(counts.entries, 50);
	ck_assert_int_ge(counts.bytes, 50 * 4096);
}
END_TEST

START_TEST(no_journal)
{
	struct hr_journal none;
	struct hr_err err;

	hr_journal_init(&none);
	ck_assert_int_eq(hr_journal_enter(&none, "k", 1, &e, &found, &tag, &answer, &err), 0);
	ck_assert_int_eq(e.fd, -1);
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert(hr_journal_begun(&e));
	hr_journal_mark(&none, &e);
	hr_journal_done(&none, &e, 1, "x", 1);
	hr_journal_leave(&none, &e, true);
	hr_journal_tidy(&none, 1);
	ck_assert(hr_journal_begin(&none, "k", 1, 1));
}
END_TEST

START_TEST(refused_directories)
{
	struct hr_journal bad;
	struct hr_err err = {0};

	hr_journal_init(&bad);
	ck_assert_int_eq(chmod(top, 0750), 0);
	ck_assert_int_eq(hr_journal_open(&bad, top, &err), -1);
	ck_assert_int_eq(err.code, HR_E_INVAL);
	ck_assert_int_eq(chmod(top, 0700), 0);
	ck_assert_int_eq(hr_journal_open(&bad, "/nowhere", &err), -1);
	ck_assert_int_eq(bad.dir, -1);
}
END_TEST

static void
path_of(const char *key, char path[128])
{
	enter(key);
	(void)snprintf(path, 128, "%s/%016llx", top, (unsigned long long)e.digest);
	leave();
}

/* The answer of a running action is found again after its file was damaged. */
START_TEST(damaged_while_held)
{
	static const char nonsense[] = "nonsense, longer than a head is and than its key";
	char path[128], text[20001];
	int how, fd, size;

	memset(text, 'x', sizeof(text) - 1);
	for (how = 0; how < 4; how++) {
		size = how % 2 == 0 ? 10 : 20000; /* in the first page, and beyond it */
		text[size] = '\0';
		enter("k");
		ck_assert_int_eq(found, HR_JOURNAL_NEW);
		hr_journal_mark(&j, &e);
		(void)snprintf(path, sizeof(path), "%s/%016llx", top, (unsigned long long)e.digest);
		fd = open(path, how < 2 ? O_WRONLY | O_TRUNC : O_WRONLY);
		if (how >= 2)
			ck_assert_int_eq(write(fd, nonsense, sizeof(nonsense)), sizeof(nonsense));
		(void)close(fd);
		hr_journal_done(&j, &e, 3, text, strlen(text));
		leave();
		enter("k");
		ck_assert_int_eq(found, HR_JOURNAL_DONE);
		ck_assert_uint_eq(tag, 3);
		ck_assert_str_eq(hr_buf_str(&answer), text);
		leave();
		ck_assert_int_eq(unlink(path), 0);
		text[size] = 'x';
	}
	/* one that is gone is nobody's, and the next one has its own */
	enter("k");
	ck_assert_int_eq(unlink(path), 0);
	ck_assert(!hr_journal_begin(&j, "k", 1, e.attempt));
	hr_journal_done(&j, &e, 3, "x", 1);
	hr_journal_leave(&j, &e, true);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	leave();
}
END_TEST

/* An answer without its end is an error, and no action runs again because of it. */
START_TEST(an_answer_that_is_cut)
{
	static const char whole[] = "the answer";
	char path[128];
	struct hr_err err = {0};
	struct stat st;

	enter("k");
	hr_journal_done(&j, &e, 3, whole, sizeof(whole) - 1);
	(void)snprintf(path, sizeof(path), "%s/%016llx", top, (unsigned long long)e.digest);
	leave();
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size - 1), 0);
	hr_buf_reset(&answer);
	ck_assert_int_eq(hr_journal_enter(&j, "k", 1, &e, &found, &tag, &answer, &err), -1);
	ck_assert_uint_eq(answer.len, 0);
	ck_assert_int_eq(e.fd, -1);
}
END_TEST

/* The file that waits for the next action may have been emptied, overwritten or removed. */
START_TEST(damaged_while_spare)
{
	char path[128];
	int how, fd;

	for (how = 0; how < 3; how++) {
		done_and_over("k", "once");
		path_of("k", path);
		fd = open(path, how == 0 ? O_WRONLY | O_TRUNC : O_WRONLY);
		if (how == 1)
			ck_assert_int_eq(write(fd, "nonsense", 8), 8);
		if (how == 2)
			ck_assert_int_eq(unlink(path), 0);
		(void)close(fd);
		enter("next");
		ck_assert_int_eq(found, HR_JOURNAL_NEW);
		ck_assert(hr_journal_begin(&j, "next", 4, e.attempt));
		hr_journal_done(&j, &e, 2, "a", 1);
		leave();
		enter("next");
		ck_assert_int_eq(found, HR_JOURNAL_DONE);
		ck_assert_str_eq(hr_buf_str(&answer), "a");
		leave();
		ck_assert_int_eq(files(), 1);
		path_of("next", path);
		ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

/* Without its directory the journal refuses, and makes nothing elsewhere. */
START_TEST(directory_is_gone)
{
	struct hr_err err = {0};

	done_and_over("k", "once");
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
	ck_assert_int_eq(hr_journal_enter(&j, "l", 1, &e, &found, &tag, &answer, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
	ck_assert_int_eq(e.fd, -1);
	ck_assert(!hr_journal_begin(&j, "l", 1, 1));
	hr_journal_tidy(&j, 1);
	ck_assert_int_eq(mkdir(top, 0700), 0);
	ck_assert_int_eq(files(), 0);
}
END_TEST

/* Another key of the same digest is told, not answered with what is not its own. */
START_TEST(same_digest)
{
	char path[128], wrong[2] = {'z', '\0'};
	struct hr_err err = {0};
	int fd;

	enter("k");
	(void)snprintf(path, sizeof(path), "%s/%016llx", top, (unsigned long long)e.digest);
	hr_journal_done(&j, &e, 1, "mine", 4);
	leave();
	fd = open(path, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, wrong, 1, 32), 1);
	(void)close(fd);
	ck_assert_int_eq(hr_journal_enter(&j, "k", 1, &e, &found, &tag, &answer, &err), -1);
	ck_assert_int_eq(err.code, HR_E_INVAL);
	ck_assert_int_eq(e.fd, -1);
}
END_TEST

/* With `sync` all is the same, later. */
START_TEST(synced)
{
	j.sync = true;
	fill(3, "x");
	dies_after("k", begins);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_BEGUN);
	leave();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("journal");
	TCase *c = tcase_create("journal");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, answer_is_given_again);
	tcase_add_test(c, dead_holders);
	tcase_add_test(c, empty_file);
	tcase_add_test(c, only_one_attempt_begins);
	tcase_add_test(c, an_attempt_without_its_entry_does_not_begin);
	tcase_add_test(c, second_waits);
	tcase_add_test(c, undone_and_forgotten);
	tcase_add_test(c, over_and_asked_again);
	tcase_add_test(c, over_and_held);
	tcase_add_test(c, over_and_replaced);
	tcase_add_test(c, killed_while_it_changes_names);
	tcase_add_test(c, counted_once);
	tcase_add_test(c, too_long_is_dropped);
	tcase_add_test(c, bounded_by_number);
	tcase_add_test(c, bounded_by_size);
	tcase_add_test(c, bounded_by_age);
	tcase_add_test(c, what_is_held_stays);
	tcase_add_test(c, inherited);
	tcase_add_test(c, no_journal);
	tcase_add_test(c, refused_directories);
	tcase_add_test(c, same_digest);
	tcase_add_test(c, synced);
	tcase_add_test(c, damaged_while_held);
	tcase_add_test(c, an_answer_that_is_cut);
	tcase_add_test(c, damaged_while_spare);
	tcase_add_test(c, directory_is_gone);
	suite_add_tcase(s, c);
	return lines_run(s);
}
