/* Inside of hr_journal: journal.c has the entries that are files, journal_spare.c the file of the
 * next one, journal_tidy.c their bounds; journal_slots.c the slots, journal_brief.c how slots and
 * files go together. */
#ifndef HR_PROTO_JOURNAL_INT_H
#define HR_PROTO_JOURNAL_INT_H

#include "proto/journal.h"

#define JOURNAL_NAME 32 /* room for a name: 16 digits, or a spare file's */
#define JOURNAL_SPARE ".spare."
#define JOURNAL_ENTRY_BYTES 4096 /* of an entry without an answer */

uint64_t journal_digest(const char *key, size_t len);
void journal_name(char *name, uint64_t digest);
void journal_count(struct hr_journal *j, int64_t entries, int64_t bytes);
bool journal_has_name(const struct hr_journal *j, const char *name, ino_t ino);

/* Our own: nobody else of the same number lives. */
void journal_spare_name(char *name);
/* The spare file is locked, and surely ours under the name that is returned. One that holds an old
 * answer is not locked while it waits: another may have it, or have dropped it. False: there is
 * none any more. */
bool journal_spare_take(struct hr_journal *j, char *name);
/* After journal_spare_take(): it is no more. errno stays. */
void journal_spare_drop(struct hr_journal *j, const char *name);

/* Down to these numbers, and nothing older than age_ms. entries_max JOURNAL_HALF: half of those
 * that there are. */
#define JOURNAL_HALF (-1)
void
journal_drop_oldest(struct hr_journal *j, int64_t entries_max, int64_t bytes_max, int64_t age_ms);

/* ---- journal_slots.c ---- */

#define JOURNAL_IN_SLOT 0x80000000u /* in the attempts of entries that are in slots */

/* Whatever the file system is. */
int journal_slots_write(int dir, bool existed, struct hr_err *err);
/* 0: j->slots is there. 1: the journal has none. -1 with errno. */
int journal_slots_attach(struct hr_journal *j);
void journal_slots_detach(struct hr_journal *j);

enum journal_slot_found {
	JOURNAL_SLOT_NEW,
	JOURNAL_SLOT_BEGUN,
	JOURNAL_SLOT_DONE,
	JOURNAL_SLOT_FILED, /* the answer is in the file of this key, if anywhere */
	JOURNAL_SLOT_TAKEN, /* by another key, or none was to be made */
};

/* For e->key: e->slot and e->attempt are filled where it is NEW or BEGUN, and then ours. Waits for
 * whoever holds the key. -1 with errno. */
int journal_slot_enter(struct hr_journal *j, struct hr_journal_entry *e, bool make,
    enum journal_slot_found *ret_found, uint32_t *ret_tag, struct hr_buf *answer);
/* How many entries that belong into the slot of that digest may have a file. */
_Atomic uint32_t *journal_slot_elsewhere(const struct hr_journal *j, uint64_t digest);
/* Whether e->key may be in its slot. */
bool journal_slot_has(const struct hr_journal *j, const struct hr_journal_entry *e);
bool journal_slot_begin(
    struct hr_journal *j, uint64_t digest, const char *key, size_t key_len, uint32_t attempt);

/* Of e->slot, which is ours. */
bool journal_slot_begun(const struct hr_journal_entry *e);
/* False: the answer is too long for it. */
bool journal_slot_done(
    struct hr_journal *j, struct hr_journal_entry *e, uint32_t tag, const void *p, size_t len);
void journal_slot_filed(struct hr_journal *j, struct hr_journal_entry *e);
void journal_slot_undo(struct hr_journal *j, struct hr_journal_entry *e);
void journal_slot_leave(struct hr_journal *j, struct hr_journal_entry *e, bool over);

/* ---- journal_brief.c ---- */

void journal_brief_done(
    struct hr_journal *j, struct hr_journal_entry *e, uint32_t tag, const void *p, size_t len);
/* The entry, which was to be in a slot and is a file, is over. */
void journal_brief_over(struct hr_journal_entry *e);

#endif
