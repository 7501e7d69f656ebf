/* A journal with slots in a directory of its own, for test_slots and test_slots_dead. */
#ifndef HR_T_UNIT_SLOTS_H
#define HR_T_UNIT_SLOTS_H

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "proto/journal_int.h"

#define SLOTS 128 /* as in journal_slots.c */
#define SLOT_BYTES 4096

static char top[64], file[96];
static struct hr_journal j, keeper;
static struct hr_journal_counts counts;
static struct hr_journal_entry e;
static enum hr_journal_found found;
static struct hr_buf answer;
static uint32_t tag;

static inline void
open_journal(struct hr_journal *new)
{
	struct hr_err err = {0};

	hr_journal_init(new);
	new->entries_max = 100;
	new->bytes_max = 1 << 20;
	new->age_max_ms = 3600000;
	new->counts = &counts;
	ck_assert_msg(hr_journal_open(new, top, &err) == 0, "%s", err.msg);
}

/* Whatever the file system: hr_journal_make_slots() would refuse some. */
static inline void
make_slots(bool existed)
{
	int dir = open(top, O_RDONLY | O_DIRECTORY);
	struct hr_err err = {0};

	ck_assert_msg(journal_slots_write(dir, existed, &err) == 0, "%s", err.msg);
	(void)close(dir);
}

static inline void
setup(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/hr-slots-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(file, sizeof(file), "%s/.slots", top);
	memset(&counts, 0, sizeof(counts));
	hr_buf_init(&answer, 1 << 20);
	make_slots(false);
	open_journal(&j);
	open_journal(&keeper);
}

static inline void
teardown(void)
{
	hr_journal_close(&j);
	hr_journal_close(&keeper);
	hr_buf_done(&answer);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static inline void
enter_of(struct hr_journal *of, const char *key)
{
	struct hr_err err = {0};

	hr_buf_reset(&answer);
	ck_assert_msg(
	    hr_journal_enter_brief(of, key, strlen(key), &e, &found, &tag, &answer, &err) == 0,
	    "%s", err.msg);
}

static inline void
enter(const char *key)
{
	enter_of(&j, key);
}

static inline void
enter_new(const char *key)
{
	enter(key);
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert_ptr_nonnull(e.slot);
	ck_assert(!hr_journal_begun(&e));
}

static inline bool
begin(const char *key, uint32_t attempt)
{
	return hr_journal_begin(&keeper, key, strlen(key), attempt);
}

static inline void
leave(bool over)
{
	hr_journal_leave(&j, &e, over);
	ck_assert_ptr_null(e.slot);
	ck_assert_int_eq(e.fd, -1);
}

static inline void
expect_done(const char *key, uint32_t its_tag, const char *its_answer)
{
	enter(key);
	ck_assert_int_eq(found, HR_JOURNAL_DONE);
	ck_assert_uint_eq(tag, its_tag);
	ck_assert_str_eq(hr_buf_str(&answer), its_answer);
	leave(false);
}

/* Of actions: none where all is in slots. */
static inline int
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

/* The word of a key's slot, and its time. */
static inline void
word_io(const char *key, off_t at, uint64_t *value, bool put)
{
	uint64_t n = journal_digest(key, strlen(key)) % SLOTS;
	off_t where = (off_t)(SLOT_BYTES * (1 + n)) + at;
	int fd = open(file, O_RDWR);

	ck_assert_int_eq(put ? pwrite(fd, value, sizeof(*value), where)
			     : pread(fd, value, sizeof(*value), where),
	    sizeof(*value));
	(void)close(fd);
}

static inline void
grow_old(const char *key)
{
	uint64_t long_ago = UINT64_MAX / 2; /* later than now: of before a boot */

	word_io(key, 24, &long_ago, true);
}

/* Another key of the same slot. */
static inline const char *
neighbour(const char *key, int which)
{
	static char text[4][16];
	uint64_t slot = journal_digest(key, strlen(key)) % SLOTS;
	unsigned i = 0;

	do
		(void)snprintf(text[which], sizeof(text[which]), "%d-%u", which, i++);
	while (journal_digest(text[which], strlen(text[which])) % SLOTS != slot);
	return text[which];
}

#endif
