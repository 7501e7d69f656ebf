/* hr_journal: records which actions were started and how they were answered, so that none is done
 * twice.
 *
 * A private directory has one small file for each action, named by a digest of its key. The process
 * that does the action holds the file locked (flock): another process with the same key waits, and
 * the kernel releases the lock when the holder dies.
 *
 * The file goes through RESERVED -> BEGUN -> DONE, each written in place, the state last: a kill at
 * any instant leaves one of them. BEGUN is written before the first step that cannot be undone,
 * by the process that takes that step (for a command: the keeper of its shell). After the holder's
 * death the state therefore means: RESERVED: nothing was done; BEGUN: ask the performer, or report
 * that the outcome is unknown; DONE: the answer is here. All of this outlives the death of any
 * process. After a loss of power only data written with `sync` survives.
 *
 * Most requests come without a client's key. Only nginx can repeat them, when a worker died over
 * one, and nobody once the answer is sent. A worker reuses the file of such an entry for its next
 * one; until then the entry still answers.
 *
 * A file that a command or a disk has damaged, emptied or removed counts as an entry that was never
 * started: the next process that enters the key writes the file again, or the holder does with its
 * answer. */
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

/* Counters on the scoreboard, for all processes together; estimates between two runs of
 * hr_journal_tidy(). */
struct hr_journal_counts {
	_Atomic int64_t entries;
	_Atomic int64_t bytes;     /* as the file system counts them */
	_Atomic int64_t tidied_ms; /* CLOCK_MONOTONIC; 0: never */
};

struct hr_journal {
	int dir;       /* directory; -1: none, and no key is ever found */
	bool sync;     /* flush each step to disk before the next */
	bool required; /* refuse an action if there is no room for its entry */
	int64_t entries_max, bytes_max, age_max_ms; /* limits that hr_journal_tidy() enforces */
	struct hr_journal_counts *counts; /* NULL: entries are not counted (and so not tidied) */
	bool failing;                     /* the failure is logged already */
	/* file of the last finished entry, for reuse; not locked; -1: none */
	int spare;
	uint64_t spare_digest;
	ino_t spare_ino;
	int64_t spare_more; /* counted bytes above an entry's minimum */
};

void hr_journal_init(struct hr_journal *j);
/* Opens a directory, which must belong to this account and be writable by nobody else. */
int hr_journal_open(struct hr_journal *j, const char *path, struct hr_err *err);
void hr_journal_close(struct hr_journal *j);

enum hr_journal_found {
	HR_JOURNAL_NEW,     /* the action was never started */
	HR_JOURNAL_BEGUN,   /* a process that died had started it; the outcome is not recorded */
	HR_JOURNAL_DONE,    /* the action was answered */
	HR_JOURNAL_DROPPED, /* the action is done, but the answer was too long to be stored */
};

/* One action of one process; locked from enter to leave. */
struct hr_journal_entry {
	int fd; /* -1: not in the journal */
	uint32_t attempt;
	uint64_t digest;
	ino_t ino;
	off_t bytes; /* bytes of its file when done; 0: not done */
	size_t key_len;
	char key[HR_JOURNAL_KEY_MAX];
};

/* Waits until no other process holds the key. DONE: *ret_tag and the answer (appended to `answer`)
 * are those given to hr_journal_done(). -1: the entry could not be made (HR_E_SYS), or another key
 * has the same digest (HR_E_INVAL). */
int hr_journal_enter(struct hr_journal *j, const char *key, size_t key_len,
    struct hr_journal_entry *ret, enum hr_journal_found *ret_found, uint32_t *ret_tag,
    struct hr_buf *answer, struct hr_err *err);

/* Records, in another process than the holder, that the action starts now on behalf of the holder's
 * `attempt`. Returns false if the action must not start: a later attempt exists, or it was started
 * before. An action without an entry (attempt 0) may always start. */
bool hr_journal_begin(struct hr_journal *j, const char *key, size_t key_len, uint32_t attempt);
/* Does the same in the holder, which cannot be overtaken. */
void hr_journal_mark(struct hr_journal *j, struct hr_journal_entry *e);
/* Returns true if the action was started; without an entry always, to be safe. */
bool hr_journal_begun(const struct hr_journal_entry *e);

/* Stores the answer for repetitions; releases processes that wait for it. */
void hr_journal_done(
    struct hr_journal *j, struct hr_journal_entry *e, uint32_t tag, const void *p, size_t len);
/* Removes the entry: nothing was done, and no other process knows of the attempt. The next request
 * with this key starts from the beginning. */
void hr_journal_undo(struct hr_journal *j, struct hr_journal_entry *e);
/* Releases the lock. `over`: no request can need the answer again, so it may be dropped from now
 * on. */
void hr_journal_leave(struct hr_journal *j, struct hr_journal_entry *e, bool over);

/* Drops the oldest entries if there are too many or too old ones, unless somebody waits for the
 * answer. Actions in progress stay. */
void hr_journal_tidy(struct hr_journal *j, int64_t now_ms);

#endif
