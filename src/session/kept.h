/* hr_kept: keeps state that outlives a killed keeper. Its descriptors (terminal, FIFOs, the log)
 * are in a message in a socket of which the supervisor has a copy; its state is plain bytes in a
 * memory file, which is passed with them. The next keeper finds both and continues with the shell,
 * which notices nothing. Steps whose outcome cannot be recorded in time clear `sure`: after a kill
 * during one the shell is replaced, with its directory and its exported variables. */
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
/* maximum bytes of a key; requests with longer keys cannot be joined later */
#define HR_KEPT_KEY 512
#define HR_KEPT_RESULT 16384 /* bytes of the last command's result, as sent */
/* maximum bytes of the exported variables; longer ones are not kept */
#define HR_KEPT_EXPORTS 262144
#define HR_KEPT_CRASH 8
#define HR_KEPT_GIVEN 8
#define HR_KEPT_READ 8192 /* bytes read from the terminal at once: it provides 4 kB */

enum hr_kept_fd {
	HR_KEPT_PAGE,
	HR_KEPT_REPORTS,
	HR_KEPT_EXPORT,
	HR_KEPT_ACK,
	HR_KEPT_LINE,
	HR_KEPT_SHELL, /* pidfd of the shell */
	HR_KEPT_MASTER,
	HR_KEPT_SLAVE,
	HR_KEPT_LOG_FILE, /* at most one of these two is present */
	HR_KEPT_LOG_MEMORY,
	HR_KEPT_FDS,
};

/* The stages of handling a prompt. A successor can repeat each stage from the state recorded here,
 * except the answer to the shell; the successor can see whether the shell has received it. */
enum hr_kept_stage { HR_KEPT_NO_REPORT, HR_KEPT_REPORT, HR_KEPT_ANSWERING };

struct hr_kept_text {
	size_t len; /* 0: there is no text; cleared before the bytes change and set afterwards */
	char p[HR_KEPT_KEY];
};

struct hr_kept {
	char layout[64];   /* differs for a keeper of another build */
	atomic_uint sure;  /* true except for the report being handled */
	atomic_uint stage; /* enum hr_kept_stage */
	bool ready;        /* readiness was announced */
	atomic_uint tries; /* successors that died while resuming; a crash adds this many */
	struct hr_hook_secrets secrets;
	struct hr_core_kept core;

	/* ---- the shell ---- */
	pid_t shell, said;     /* the shell, and the process of the last report */
	char dir[HR_KEPT_DIR]; /* start directory; "": its name is too long */
	uint64_t root;         /* mount of "/" when the shell entered its directory; 0: unknown */
	int given;
	bool has_line, from_us, sent_away, suspicious, resized, tells_hides;
	unsigned hides;

	/* ---- the current request ---- */
	bool hidden;
	uint32_t attempt;
	struct hr_kept_text key;
	/* key of the last answered request */
	struct hr_kept_text result_key;
	size_t result_len;
	char result[HR_KEPT_RESULT];

	/* places in the log of the commands since the screen was cleared */
	uint64_t given_from[HR_KEPT_GIVEN], given_to[HR_KEPT_GIVEN];
	unsigned ngiven;
	uint64_t returned; /* offset up to which a client has the output */
	/* length of a report, whose bytes are below */
	size_t report_len;
	char report[HR_KEPT_READ];
	/* the last read of the terminal: zero except for its bytes, which may not be in the log
	 * yet */
	uint64_t read_at;
	size_t read_len;
	char read[HR_KEPT_READ];
	struct hr_outlog outlog;
	struct hr_commands commands;
	size_t exports_len;
	char exports[HR_KEPT_EXPORTS];
};

struct hr_kept_store {
	int in, out; /* ends of the socket; -1: nothing outlives this process */
	int page_fd;
	struct hr_kept *page;
};

/* Takes ownership of in and out. *ret_found: a predecessor's state exists; the caller then owns the
 * descriptors in fds (-1: missing). Otherwise the page is empty. */
int
hr_kept_open(struct hr_kept_store *s, int fds[HR_KEPT_FDS], bool *ret_found, struct hr_err *err);
/* Replaces the stored descriptors by copies of all of these, plus the page's. The caller keeps its
 * own. */
int hr_kept_put(struct hr_kept_store *s, const int fds[HR_KEPT_FDS], struct hr_err *err);
/* Closes the stored copies of the descriptors, of which there are no others. */
void hr_kept_clear(struct hr_kept_store *s);
void hr_kept_layout(char text[64]); /* Writes the layout string of the current build. */
/* Counts this process's death as a try until hr_kept_succeeded(), since the resumed state may be
 * the cause. A kill from outside counts little, a crash of this process a lot. */
void hr_kept_try(struct hr_kept *page);
void hr_kept_succeeded(struct hr_kept *page);
void hr_kept_close(struct hr_kept_store *s);

static inline bool
hr_kept_outlives(const struct hr_kept_store *s)
{
	return s->in >= 0;
}

/* Orders the stores before and after it, in case the process dies between them. */
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

/* Returns the length of a read into zeroed bytes whose result is unknown. */
static inline size_t
hr_kept_read_length(const char *p, size_t cap)
{
	while (cap > 0 && p[cap - 1] == '\0')
		cap--;
	return cap;
}

#endif
