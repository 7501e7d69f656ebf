/* Inside of hr_journal: journal.c has the entries, journal_spare.c the file of the next one,
 * journal_tidy.c their bounds. */
#ifndef HR_PROTO_JOURNAL_INT_H
#define HR_PROTO_JOURNAL_INT_H

#include "proto/journal.h"

#define JOURNAL_NAME 32 /* room for a name: 16 digits, or a spare file's */
#define JOURNAL_SPARE ".spare."
#define JOURNAL_ENTRY_BYTES 4096 /* of an entry without an answer */

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

#endif
