/* hr_kept: what outlives a keeper that is killed.
 *
 * Its descriptors (terminal, FIFOs, the log) lie as a message in a socket of which the supervisor
 * has a copy, and what it knows as plain bytes in memory that goes with them. The next keeper finds
 * both and goes on with the shell, which notices nothing. While something is being done that would
 * have to be known and cannot be (`sure` is not set), it cannot: then the shell is replaced, with
 * its directory and its exported variables. */
#ifndef HR_SESSION_KEPT_H
#define HR_SESSION_KEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "session/commands.h"
#include "session/core.h"
#include "session/prompt/hook.h"
#include "session/outlog.h"

#define HR_KEPT_DIR 4096
#define HR_KEPT_KEY 512        /* longer ones cannot be asked for again */
#define HR_KEPT_RESULT 16384   /* of the last command, as it is sent */
#define HR_KEPT_EXPORTS 262144 /* longer ones are not kept */
#define HR_KEPT_CRASH 8
#define HR_KEPT_GIVEN 8
#define HR_KEPT_READ 8192 /* what is read from the terminal at once: it gives 4 kB */

enum hr_kept_fd {
	HR_KEPT_PAGE,
	HR_KEPT_REPORTS,
	HR_KEPT_EXPORT,
	HR_KEPT_ACK,
	HR_KEPT_LINE,
	HR_KEPT_SHELL, /* a handle of its process */
	HR_KEPT_MASTER,
	HR_KEPT_SLAVE,
	HR_KEPT_LOG_FILE, /* one of these two, or none */
	HR_KEPT_LOG_MEMORY,
	HR_KEPT_FDS,
};

/* A prompt is taken from a note of before it: all of that may be done twice, but for the answer to
 * the shell, of which it can be seen whether the shell has it. */
enum hr_kept_stage { HR_KEPT_NO_REPORT, HR_KEPT_REPORT, HR_KEPT_ANSWERING };

struct hr_kept_text {
	size_t len; /* 0: none; changed before and set after the bytes are */
	char p[HR_KEPT_KEY];
};

struct hr_kept {
	char layout[64];   /* a keeper of another build does not understand it */
	atomic_uint sure;  /* but for the report that is being taken: */
	atomic_uint stage; /* enum hr_kept_stage */
	bool ready;        /* it had been announced */
	atomic_uint tries; /* successors that died over it; one that crashed counts as so many: */
	struct hr_hook_secrets secrets;
	struct hr_core_kept core;

	/* the shell */
	pid_t shell, said;     /* its process, and the one that reported last */
	char dir[HR_KEPT_DIR]; /* in which it was started; "": that is too long */
	int given;
	bool has_line, from_us, sent_away, suspicious, resized, tells_hides;
	unsigned hides;

	/* the request in hand */
	bool hidden;
	uint32_t attempt;
	struct hr_kept_text key;
	/* the last that was answered */
	struct hr_kept_text result_key;
	size_t result_len;
	char result[HR_KEPT_RESULT];

	/* the commands since the screen was emptied, as they stand in the log */
	uint64_t given_from[HR_KEPT_GIVEN], given_to[HR_KEPT_GIVEN];
	unsigned ngiven;
	uint64_t returned; /* a client has the output before that */
	/* the same of a report, see below */
	size_t report_len;
	char report[HR_KEPT_READ];
	/* a read of the terminal: zero but for what it brought, which may not be in the log yet */
	uint64_t read_at;
	size_t read_len;
	char read[HR_KEPT_READ];
	struct hr_outlog outlog;
	struct hr_commands commands;
	size_t exports_len;
	char exports[HR_KEPT_EXPORTS];
};

struct hr_kept_store {
	int in, out; /* the two ends of the socket; -1: nothing outlives us */
	int page_fd;
	struct hr_kept *page;
};

/* in and out are set, and the store's from now on. *ret_found: there is what a predecessor left,
 * and fds are filled (-1 where there is none) and the caller's; otherwise the page is empty. */
int
hr_kept_open(struct hr_kept_store *s, int fds[HR_KEPT_FDS], bool *ret_found, struct hr_err *err);
/* Puts all of them, but for the page's, in place of what lay there. Copies: they stay the caller's.
 */
int hr_kept_put(struct hr_kept_store *s, const int fds[HR_KEPT_FDS], struct hr_err *err);
void hr_kept_clear(struct hr_kept_store *s); /* what lay there has no other holder any more */
void hr_kept_layout(char text[64]);          /* what a page of this build has in its place */
/* Until hr_kept_succeeded() our death counts as a try: it may be what we found that we died of. A
 * kill from outside says little about it, a signal of our own fault very much. */
void hr_kept_try(struct hr_kept *page);
void hr_kept_succeeded(struct hr_kept *page);
void hr_kept_close(struct hr_kept_store *s);

static inline bool
hr_kept_outlives(const struct hr_kept_store *s)
{
	return s->in >= 0;
}

/* Stores before and after this are seen in this order, should we die between them. */
static inline void
hr_kept_sure(struct hr_kept *page, bool sure)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&page->sure, sure, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void
hr_kept_stage(struct hr_kept *page, enum hr_kept_stage stage)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&page->stage, stage, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
}

/* Of bytes that were zero before a read of which nobody knows how much it brought. */
static inline size_t
hr_kept_read_length(const char *p, size_t cap)
{
	while (cap > 0 && p[cap - 1] == '\0')
		cap--;
	return cap;
}

#endif
