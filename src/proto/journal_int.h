/* Internals of hr_journal: journal.c has the entries, journal_tidy.c their bounds. */
#ifndef HR_PROTO_JOURNAL_INT_H
#define HR_PROTO_JOURNAL_INT_H

#include "proto/journal.h"

#define JOURNAL_NAME 32 /* size of a name: 16 digits */

void journal_name(char *name, uint64_t digest);
void journal_count(struct hr_journal *j, int64_t entries, int64_t bytes);
bool journal_has_name(const struct hr_journal *j, const char *name, ino_t ino);

/* Drops the oldest entries down to these numbers, and all older than age_ms. entries_max
 * JOURNAL_HALF: half of the present ones. */
#define JOURNAL_HALF (-1)
void
journal_drop_oldest(struct hr_journal *j, int64_t entries_max, int64_t bytes_max, int64_t age_ms);

#endif
