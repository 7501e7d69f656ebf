/* proto/journal: entries in slots. What is found, who may begin, when it is a file after all, and
 * for how long what is kept. */
#include "config.h"

#include <errno.h>
#include <sys/stat.h>

#include "lines.h"
#include "slots.h"

START_TEST(answer_is_given_again)
{
	enter_new("k");
	ck_assert(begin("k", e.attempt));
	ck_assert(hr_journal_begun(&e));
	ck_assert(!begin("k", e.attempt));
	hr_journal_done(&j, &e, 4711, "the answer", 10);
	expect_done("k", 4711, "the answer"); /* before it leaves */
	enter_of(&keeper, "k");
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	leave(false);
	expect_done("k", 4711, "the answer");
	ck_assert_int_eq(files(), 0);
	ck_assert_int_eq(counts.entries, 0);
}
END_TEST

/* Nobody should ask; who does is told, until another has the slot. */
START_TEST(over)
{
	const char *other = neighbour("k", 0);

	enter_new("k");
	hr_journal_mark(&j, &e);
	ck_assert(hr_journal_begun(&e));
	hr_journal_done(&j, &e, 1, "", 0);
	leave(true);
	expect_done("k", 1, "");
	enter_new(other);
	leave(true); /* without an answer: nothing was done */
	enter_new(other);
	leave(true);
	enter_new("k");
	ck_assert_int_eq(files(), 0);
}
END_TEST

START_TEST(only_one_attempt_begins)
{
	uint32_t first;

	enter_new("k");
	first = e.attempt;
	leave(false); /* its holder died; what it asked for is still on its way */
	enter_new("k");
	ck_assert_uint_ne(e.attempt, first);
	ck_assert(!begin("k", first));
	ck_assert(!hr_journal_begun(&e));
	ck_assert(!begin("l", e.attempt));
	ck_assert(begin("k", e.attempt));
	leave(false);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_BEGUN);
	ck_assert(hr_journal_begun(&e));
	ck_assert(!begin("k", e.attempt));
}
END_TEST

START_TEST(undone)
{
	uint32_t first;

	enter_new("k");
	first = e.attempt;
	hr_journal_undo(&j, &e);
	ck_assert_ptr_null(e.slot);
	ck_assert(!begin("k", first));
	enter_new("k");
	ck_assert(!begin("k", first));
	ck_assert(begin("k", e.attempt));
}
END_TEST

/* It may begin in the moment in which it is left. */
START_TEST(left_when_it_began)
{
	enter_new("k");
	ck_assert(begin("k", e.attempt));
	leave(false);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_BEGUN);
	hr_journal_done(&j, &e, 7, "nobody knows", 12);
	leave(false);
	expect_done("k", 7, "nobody knows");
}
END_TEST

/* ---- beside files ---- */

START_TEST(slot_of_another)
{
	const char *b = neighbour("a", 0), *c = neighbour("a", 1);
	struct hr_journal_entry a;
	struct hr_err err = {0};

	enter_new("a");
	a = e;
	enter(b);
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert_ptr_null(e.slot);
	ck_assert_int_eq(files(), 1);
	ck_assert(begin(b, e.attempt));
	hr_journal_leave(&j, &e, false); /* died */
	/* its slot is free by now: it is found all the same */
	hr_journal_done(&j, &a, 1, "a", 1);
	hr_journal_leave(&j, &a, true);
	enter(b);
	ck_assert_int_eq(found, HR_JOURNAL_BEGUN);
	ck_assert_ptr_null(e.slot);
	hr_journal_done(&j, &e, 2, "b", 1);
	leave(true);
	expect_done(b, 2, "b");
	/* who has no file there has a slot */
	enter_new(c);
	hr_journal_done(&j, &e, 3, "c", 1);
	/* and a key of the very digest is told */
	ck_assert_int_eq(hr_journal_enter(&j, b, strlen(b), &a, &found, &tag, &answer, &err), 0);
	hr_journal_leave(&j, &a, false);
	expect_done(b, 2, "b");
	expect_done(c, 3, "c");
}
END_TEST

START_TEST(elsewhere_is_counted)
{
	const char *b = neighbour("a", 0);
	_Atomic uint32_t *n = journal_slot_elsewhere(&j, journal_digest("a", 1));
	struct hr_journal_entry a;

	enter_new("a");
	a = e;
	ck_assert_uint_eq(*n, 0);
	enter(b);
	ck_assert_uint_eq(*n, 1);
	hr_journal_undo(&j, &e);
	ck_assert_uint_eq(*n, 0);
	enter(b);
	hr_journal_done(&j, &e, 1, "b", 1);
	ck_assert_uint_eq(*n, 1);
	leave(true);
	ck_assert_uint_eq(*n, 0);
	enter(neighbour("a", 1));
	leave(true);
	ck_assert_uint_eq(*n, 0);
	enter(neighbour("a", 2));
	leave(false);
	ck_assert_uint_eq(*n, 1); /* for ever: it died */
	enter(neighbour("a", 2));
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert_int_ge(e.fd, 0);
	hr_journal_leave(&j, &a, true);
}
END_TEST

/* In its slot, although it was to be a file meanwhile. */
START_TEST(file_gives_way)
{
	struct hr_journal files_only;
	struct hr_journal_entry slot;

	open_journal(&files_only);
	files_only.required = true;
	enter_of(&files_only, "new");
	ck_assert_ptr_null(e.slot);
	ck_assert_int_ge(e.fd, 0);
	hr_journal_leave(&files_only, &e, false);
	enter("new"); /* of one that died */
	ck_assert_ptr_null(e.slot);
	ck_assert_int_ge(e.fd, 0);
	leave(false);
	/* a setting changed: what is in slots is found there */
	enter_new("k");
	ck_assert(begin("k", e.attempt));
	slot = e;
	hr_journal_leave(&j, &slot, false);
	enter_of(&files_only, "k");
	ck_assert_int_eq(found, HR_JOURNAL_BEGUN);
	ck_assert_ptr_nonnull(e.slot);
	hr_journal_done(&files_only, &e, 1, "x", 1);
	hr_journal_leave(&files_only, &e, true);
	expect_done("k", 1, "x");
	hr_journal_close(&files_only);
}
END_TEST

START_TEST(long_answer)
{
	char text[20001];
	struct hr_journal_entry other;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	enter_new("k");
	ck_assert(begin("k", e.attempt));
	hr_journal_done(&j, &e, 3, text, sizeof(text) - 1);
	ck_assert_int_eq(files(), 1);
	other = e;
	expect_done("k", 3, text);
	hr_journal_leave(&j, &other, true);
	expect_done("k", 3, text);
	/* the file is the next one's */
	enter_new("l");
	hr_journal_done(&j, &e, 4, text, sizeof(text) - 2);
	leave(false);
	ck_assert_int_eq(files(), 1);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_DROPPED);
	leave(false);
	ck_assert_int_eq(files(), 1);
	text[sizeof(text) - 2] = '\0';
	expect_done("l", 4, text);
	/* just fits */
	enter_new("m");
	hr_journal_done(&j, &e, 5, text, SLOT_BYTES - 32 - 1);
	leave(false);
	enter_new("n");
	hr_journal_done(&j, &e, 5, text, SLOT_BYTES - 32);
	leave(false);
	ck_assert_int_eq(files(), 2);
	text[SLOT_BYTES - 32] = '\0';
	expect_done("n", 5, text);
	text[SLOT_BYTES - 32 - 1] = '\0';
	expect_done("m", 5, text);
}
END_TEST

START_TEST(too_long_is_dropped)
{
	HR_FREE char *big = calloc(1, 1 << 20);

	enter_new("k");
	hr_journal_done(&j, &e, 1, big, 1 << 20);
	leave(false);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_DROPPED);
	leave(false);
}
END_TEST

/* The file of a long answer was made, and its slot does not say so yet. */
START_TEST(killed_before_filed)
{
	struct hr_journal_entry half;
	char text[8001];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	enter_new("k");
	hr_journal_mark(&j, &e);
	half = e;
	ck_assert_int_eq(hr_journal_enter(&j, "k", 1, &e, &found, &tag, &answer, NULL), 0);
	hr_journal_done(&j, &e, 1, "first", 5);
	hr_journal_leave(&j, &e, false);
	hr_journal_leave(&j, &half, false);
	enter("k");
	ck_assert_int_eq(found, HR_JOURNAL_BEGUN);
	hr_journal_done(&j, &e, 2, text, sizeof(text) - 1);
	leave(false);
	expect_done("k", 1, "first");
}
END_TEST

/* ---- what is kept for how long ---- */

START_TEST(old_ones_make_room)
{
	const char *b = neighbour("a", 0);
	int i;

	enter_new("a");
	hr_journal_done(&j, &e, 1, "a", 1);
	leave(false); /* it could not be sent */
	enter(b);
	ck_assert_ptr_null(e.slot);
	leave(true);
	grow_old("a");
	enter_new(b);
	leave(false); /* dead, and not long ago */
	enter("a");
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert_ptr_null(e.slot);
	hr_journal_done(&j, &e, 1, "a", 1);
	leave(true);
	grow_old(b);
	enter_new("a");
	/* but not who is at it */
	grow_old("a");
	enter_of(&keeper, b);
	ck_assert_ptr_null(e.slot);
	hr_journal_done(&keeper, &e, 1, "b", 1);
	hr_journal_leave(&keeper, &e, true);
	/* nor who died now, however long it was at it */
	hr_journal_close(&j);
	open_journal(&j);
	for (i = 0; i < 2; i++) {
		enter(neighbour("a", 1));
		ck_assert_ptr_null(e.slot);
		leave(true);
	}
	grow_old("a");
	enter_new(neighbour("a", 1));
}
END_TEST

START_TEST(made_again)
{
	struct hr_journal bad;
	struct hr_err err = {0};
	struct stat first, now;

	ck_assert_int_eq(stat(file, &first), 0);
	ck_assert_int_eq(first.st_mode & 0777, 0600);
	ck_assert_int_eq(first.st_size, SLOT_BYTES * (1 + SLOTS));
	ck_assert_int_eq(hr_journal_make_slots(top, true, &err), 0);
	ck_assert_int_eq(stat(file, &now), 0);
	ck_assert_uint_eq(now.st_ino, first.st_ino);
	ck_assert_uint_eq(*journal_slot_elsewhere(&j, 0), 0);
	/* torn */
	ck_assert_int_eq(truncate(file, 100), 0);
	hr_journal_init(&bad);
	ck_assert_int_eq(hr_journal_open(&bad, top, &err), -1);
	ck_assert_int_eq(bad.dir, -1);
	ck_assert_int_eq(truncate(file, 0), 0);
	ck_assert_int_eq(truncate(file, SLOT_BYTES * (1 + SLOTS)), 0);
	ck_assert_int_eq(hr_journal_open(&bad, top, &err), -1); /* no magic in it */
	ck_assert_ptr_null(bad.slots);
	make_slots(true);
	ck_assert_int_eq(hr_journal_open(&bad, top, &err), 0);
	ck_assert_uint_eq(*journal_slot_elsewhere(&bad, 0), 1);
	hr_journal_close(&bad);
	ck_assert_int_eq(hr_journal_make_slots("/nowhere", true, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
	/* not through a link, and of one that does not fit nothing is left */
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(symlink("/etc/passwd", file), 0);
	ck_assert_int_eq(hr_journal_open(&bad, top, &err), -1);
	ck_assert_int_eq(hr_journal_make_slots(top, true, &err), 0);
	ck_assert(lstat(file, &now) != 0 || S_ISREG(now.st_mode));
}
END_TEST

/* Without slots all is as with files alone; a keeper that was there first finds them later. */
START_TEST(made_late)
{
	struct hr_journal none;

	hr_journal_close(&keeper);
	ck_assert_int_eq(unlink(file), 0);
	open_journal(&keeper);
	open_journal(&none);
	ck_assert_ptr_null(none.slots);
	enter_of(&none, "k");
	ck_assert_int_ge(e.fd, 0);
	ck_assert(begin("k", e.attempt));
	hr_journal_leave(&none, &e, true);
	ck_assert(!begin("k", e.attempt | JOURNAL_IN_SLOT));
	hr_journal_close(&none);
	hr_journal_close(&j);
	make_slots(false);
	open_journal(&j);
	enter_new("k");
	ck_assert(begin("k", e.attempt));
}
END_TEST

/* What stands in a slot may be anything after a loss of power. */
START_TEST(nonsense)
{
	static const uint64_t words[] = {UINT64_MAX, 6, 7, 1, 0x0500000000000002u,
	    0x8000000100000003u, 0x8000000100000014u, 0x8000000100000004u, 0x1ffffff05u};
	uint64_t word, lengths = UINT64_MAX;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		word = words[i];
		word_io("k", 0, &word, true);
		word_io("k", 12, &lengths, true);
		grow_old("k");
		enter("k"); /* a dead holder is seen for the first time */
		leave(true);
		grow_old("k");
		enter_new("k");
		leave(true);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("slots");
	TCase *c = tcase_create("slots");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, answer_is_given_again);
	tcase_add_test(c, over);
	tcase_add_test(c, only_one_attempt_begins);
	tcase_add_test(c, undone);
	tcase_add_test(c, left_when_it_began);
	tcase_add_test(c, slot_of_another);
	tcase_add_test(c, elsewhere_is_counted);
	tcase_add_test(c, file_gives_way);
	tcase_add_test(c, long_answer);
	tcase_add_test(c, too_long_is_dropped);
	tcase_add_test(c, killed_before_filed);
	tcase_add_test(c, old_ones_make_room);
	tcase_add_test(c, made_again);
	tcase_add_test(c, made_late);
	tcase_add_test(c, nonsense);
	suite_add_tcase(s, c);
	return lines_run(s);
}
