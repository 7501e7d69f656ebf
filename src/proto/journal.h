/* hr_journal: which actions were begun, and what was answered, so that none is done twice.
 *
 * A directory of ours alone with one small file for each action, named by a digest of its key. Who
 * does the action holds the file locked (flock): another one with the same key waits, and the lock
 * ends with its holder, however that dies. The file goes through
 *
 *     reserved  ->  begun  ->  done
 *
 * each written in place, last what makes it so: a kill at any instant leaves one of them. "Begun"
 * is written before the first thing that cannot be taken back, by whoever does it (for a command:
 * the keeper of its shell). So what a dead holder leaves tells what is known: reserved: nothing was
 * done; begun: ask who did it, or say that it is not known; done: the answer.
 *
 * All of this outlives the death of any process. Of a machine that loses power only what was
 * written with `sync` survives.
 *
 * Most requests have no name of their client's. Only nginx can repeat them, when a worker died over
 * one, and nobody once the answer is sent. A worker keeps the file of such an entry and makes the
 * next one of it; until then it still answers.
 *
 * A file that a command or a disk has damaged, emptied or removed is an entry that nobody has
 * begun: it is written anew, by whoever enters it next or by the answer of its holder. */
#ifndef HR_PROTO_JOURNAL_H
#define HR_PROTO_JOURNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_JOURNAL_KEY_MAX 1024

/* On the scoreboard, for all processes together; estimates between two tidyings. */
struct hr_journal_counts {
	_Atomic int64_t entries;
	_Atomic int64_t bytes;     /* as the file system counts them */
	_Atomic int64_t tidied_ms; /* CLOCK_MONOTONIC; 0: never */
};

struct hr_journal {
	int dir;       /* -1: there is none, and nothing is ever found */
	bool sync;     /* each step reaches the disk before the next */
	bool required; /* without room for an entry the action is not done */
	int64_t entries_max, bytes_max, age_max_ms; /* what tidying leaves at most */
	struct hr_journal_counts *counts;           /* NULL: not counted (and so not tidied) */
	bool failing;                               /* said so in the log */
	/* the file of the last entry that is over, for the next one; not locked; -1: none */
	int spare;
	uint64_t spare_digest;
	ino_t spare_ino;
	int64_t spare_more; /* bytes that are counted beyond an entry's least */
};

void hr_journal_init(struct hr_journal *j);
/* The directory must be ours and nobody else's. */
int hr_journal_open(struct hr_journal *j, const char *path, struct hr_err *err);
void hr_journal_close(struct hr_journal *j);

enum hr_journal_found {
	HR_JOURNAL_NEW,     /* nobody has begun it */
	HR_JOURNAL_BEGUN,   /* somebody has, and died; what came of it is not here */
	HR_JOURNAL_DONE,    /* the answer was given out */
	HR_JOURNAL_DROPPED, /* it was done; the answer was too long to be kept */
};

/* One action of one process; locked from enter to leave. */
struct hr_journal_entry {
	int fd; /* -1: it is not in the journal */
	uint32_t attempt;
	uint64_t digest;
	ino_t ino;
	off_t bytes; /* of its file; 0: not done */
	size_t key_len;
	char key[HR_JOURNAL_KEY_MAX];
};

/* Waits for whoever holds the key. DONE: *ret_tag and the answer (appended to `answer`) are what
 * hr_journal_done() was given. -1: the entry could not be made (HR_E_SYS), or another key has the
 * same digest (HR_E_INVAL). */
int hr_journal_enter(struct hr_journal *j, const char *key, size_t key_len,
    struct hr_journal_entry *ret, enum hr_journal_found *ret_found, uint32_t *ret_tag,
    struct hr_buf *answer, struct hr_err *err);

/* By another process than the holder: the action of this key begins now, on behalf of the holder's
 * `attempt`. False: it must not, since another attempt was made meanwhile or it was begun before.
 * An action that has no entry (attempt 0) may always begin. */
bool hr_journal_begin(struct hr_journal *j, const char *key, size_t key_len, uint32_t attempt);
/* The same by the holder, who cannot be overtaken. */
void hr_journal_mark(struct hr_journal *j, struct hr_journal_entry *e);
/* Whether it was begun. Without an entry: yes, for all we know. */
bool hr_journal_begun(const struct hr_journal_entry *e);

/* The answer, for whoever asks again; who waits gets it now. */
void hr_journal_done(
    struct hr_journal *j, struct hr_journal_entry *e, uint32_t tag, const void *p, size_t len);
/* Nothing was done, and nobody else knows of the attempt: the next with this key begins anew. */
void hr_journal_undo(struct hr_journal *j, struct hr_journal_entry *e);
/* Gives the lock up. `over`: nobody will ask again; the answer may go from now on. */
void hr_journal_leave(struct hr_journal *j, struct hr_journal_entry *e, bool over);

/* Drops the oldest entries when there are too many, or too old ones: where nobody waits for an
 * answer. Who is in progress stays. */
void hr_journal_tidy(struct hr_journal *j, int64_t now_ms);

#endif
