/* browser: runs one Chromium with its tabs, driven over its DevTools pipe. A call that asks
 * Chromium blocks until the reply arrives, up to the caller's deadline (until_ms); meanwhile events
 * change the state below. So any pointer into it may be stale after a call: look up a tab again,
 * and a frame by its id. */
#ifndef HR_PLUGINS_BROWSER_BROWSER_H
#define HR_PLUGINS_BROWSER_BROWSER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/clock.h"
#include "base/loop.h"
#include "plugins/browser/cast.h"
#include "plugins/browser/page/tape.h"

#define BR_ID 64       /* bytes of target, session and frame ids; 32 hex digits today */
#define BR_OBJECT 128  /* bytes of a remote object's id */
#define BR_TABS_MAX 24 /* maximum of tabs; a page cannot open more */
#define BR_FRAMES_MAX 2000
#define BR_WIDTH 1280 /* default size of a page */
#define BR_HEIGHT 720

struct br_frame {
	TAILQ_ENTRY(br_frame) entry;
	char id[BR_ID], parent[BR_ID]; /* parent: "" for the top of its session */
	int64_t ours, main;            /* execution contexts: handrail's and the page's; 0: none */
	bool moving;                   /* a navigation has started and not ended */
	bool dom, load;                /* events of the current document */
	int64_t due_ms;                /* start of a refresh that the page requests; 0: none */
	char loader[BR_ID];            /* loader of the current document */
};

/* A page, or one of its out-of-process frames. */
struct br_session {
	TAILQ_ENTRY(br_session) entry;
	char id[BR_ID], target[BR_ID];
	char above[BR_ID];             /* the other process's frame that holds it; "": a page */
	TAILQ_HEAD(, br_frame) frames; /* the first one is the top */
	size_t nframes;
	int64_t tree; /* id of the query for earlier frames; 0: complete */
};

struct br_tab {
	TAILQ_ENTRY(br_tab) entry;
	char target[BR_ID];
	char *url;                         /* NULL: the address is unknown */
	TAILQ_HEAD(, br_session) sessions; /* the first one is the page's own */
	uint64_t used;                     /* time of last use, as a counter */
	int64_t requests;                  /* requests in progress */
	bool crashed;
	bool fresh; /* nothing has loaded since it was opened */
	int64_t width, height;
	/* ---- awaited by actions ---- */
	uint64_t chooser;     /* count of file choosers */
	int64_t chooser_node; /* backend node id of the chooser's element */
	char chooser_session[BR_ID];
	uint64_t dragged; /* count of intercepted drags */
	char *drag;       /* data of the last drag, as JSON */
	uint64_t commits; /* count of the top frame's documents */
	uint64_t moves;   /* number of commits plus moves within a document */
};

/* A reply: the whole message, and the index of its result. */
struct br_answer {
	char *text;
	size_t len;
	struct br_tape tape;
	uint32_t result;
};

/* A query in progress. */
struct br_asking {
	TAILQ_ENTRY(br_asking) entry;
	int64_t id;
	char session[BR_ID];
	bool done;
	struct br_answer *answer;
	struct hr_err err; /* set if done without an answer */
};

struct browser {
	/* set by the caller */
	struct hr_loop *loop;
	const char *program;            /* path of Chromium */
	const char *profile;            /* a private directory */
	const char *downloads;          /* directory for downloads */
	double download_max;            /* bytes per file */
	double memory_max;              /* bytes per process; 0: no limit */
	bool saves_pdf;                 /* download a PDF instead of showing it */
	bool (*interrupted)(void *arg); /* Returns true to stop waiting. */
	void *arg;

	pid_t pid;
	int pidfd, to, from;
	struct hr_watch *reading, *writing, *ended, *timer;
	struct hr_buf in, out;
	size_t scanned, sent; /* bytes of `in` already scanned, and of `out` already sent */
	bool skipping;        /* inside a message that is too long */
	bool gone;            /* the connection has ended: only br_stop() is possible */
	char why[200];

	int64_t next_id;
	TAILQ_HEAD(, br_asking) asking;
	char context[BR_ID];
	TAILQ_HEAD(br_tabs, br_tab) tabs; /* sorted by opening */
	size_t ntabs;
	uint64_t uses;
	uint64_t wanted;                     /* tabs requested by pages and not attached yet */
	int64_t wanted_width, wanted_height; /* size of the next tab that a page opens */
	char front[BR_ID];                   /* target of the tab in front */
	uint64_t downloads_begun, downloads_ended;
	bool download_cut;     /* a download was aborted, not reported yet */
	struct br_tab *active; /* NULL: no tab is active */
	int64_t until_ms;      /* deadline of each wait */
	int64_t step_ms;       /* a second, fixed deadline */
	struct hr_err err;     /* error of the last failed call */
	double mouse_x, mouse_y;
	struct br_cast cast; /* pictures for viewers */
};

void br_init(struct browser *b);
/* Starts Chromium and waits until it has a tab. Returns -1 with *err set. */
int br_start(struct browser *b, struct hr_err *err);
/* Ends Chromium and drops all tabs; may be called at any time. */
void br_stop(struct browser *b);
void br_done(struct browser *b); /* Ends the browser for ever. */

/* ---- talk.c ---- */

/* Appends JSON by a pattern: $s is a string to be quoted, $b the same with a length (const char *,
 * size_t), $r raw text, $d int64_t, $f double. */
void br_json(struct hr_buf *b, const char *pattern, ...);

/* Sends a query without waiting; session "": the browser's. Returns the message's number, with
 * which br_told() gets the reply. */
int64_t
br_tell(struct browser *b, const char *session, const char *method, const char *pattern, ...);
/* Sends a query and waits. Returns NULL with b->err (HR_E_PROTO: Chromium refused; HR_E_TIMEOUT;
 * HR_E_GONE). */
struct br_answer *
br_ask(struct browser *b, const char *session, const char *method, const char *pattern, ...);
/* Do the work of br_ask() in two steps, so that Chromium works on several queries. Each
 * br_ask_begin() requires br_ask_end() or br_ask_give_up(). */
void br_ask_begin(struct browser *b, struct br_asking *a, const char *session, const char *method,
    const char *pattern, ...);
struct br_answer *br_ask_end(struct browser *b, struct br_asking *a);
void br_ask_give_up(struct browser *b, struct br_asking *a);
/* Works as br_ask(), for a caller that ignores the reply. */
int br_do(struct browser *b, const char *session, const char *method, const char *pattern, ...);
void br_answer_free(struct br_answer *a); /* Accepts NULL. */
static inline void
br_answer_clean(struct br_answer **a) /* Frees *a, for HR_CLEAN(). */
{
	br_answer_free(*a);
}
/* Returns the message, which the caller frees; frees the rest. */
char *br_answer_take(struct br_answer *a, size_t *ret_len);
/* Returns a member of the result. */
uint32_t br_at(const struct br_answer *a, const char *name);
/* Copies a string; "" if the value is not a string. */
void br_copy(const struct br_tape *t, uint32_t i, char *ret, size_t cap);
/* Copies a member; "" if there is none. */
void br_text_at(const struct br_answer *a, const char *name, char *ret, size_t cap);
/* Waits for any event, at most until until_ms. Returns -1 with b->err set. */
int br_wait(struct browser *b, int64_t until_ms);
/* Sets the deadline of later waits; step_ms still applies. */
void br_limit(struct browser *b, int64_t ms);
/* Waits until until_ms and returns 0, or -1 with b->err set. */
int br_pause(struct browser *b, int64_t until_ms);

/* Evaluates an expression in a context: handrail's ("handrail.x()"), or the page's. The value is in
 * result.result. Awaits a promise. Returns NULL with b->err set. */
struct br_answer *
br_eval(struct browser *b, const char *session, int64_t context, const char *code, bool by_value);
/* Do the work of br_eval() in two steps, as br_ask_begin() and br_ask_end() do; `context` must not
 * be 0. */
void br_eval_begin(struct browser *b, struct br_asking *a, const char *session, int64_t context,
    const char *code, bool by_value);
struct br_answer *br_eval_end(struct browser *b, struct br_asking *a);
/* Calls a function of page.js with an object as first argument, then JSON values. Returns its
 * value, or NULL with b->err set. */
struct br_answer *br_call_on(struct browser *b, const char *session, const char *object,
    const char *function, const char *args);
/* Returns the value in a reply to br_eval() or br_call_on(). */
uint32_t br_value(const struct br_answer *a);

/* ---- events.c ---- */

/* Handles an event from Chromium. t is the tape of its message. */
void br_event(struct browser *b, const char *session, const char *method, const struct br_tape *t,
    uint32_t params);
/* Handles a reply that no query waits for. */
void br_told(struct browser *b, int64_t id, const struct br_tape *t, uint32_t result);

/* ---- tabs.c ---- */

struct br_session *br_session_find(struct browser *b, const char *id, struct br_tab **ret_tab);
struct br_tab *br_tab_find(struct browser *b, const char *target);
struct br_frame *br_frame_find(struct br_session *s, const char *id);
/* Finds a frame by its id in all processes of a tab. */
struct br_frame *br_frame_of(struct br_tab *tab, const char *id, struct br_session **ret);
struct br_session *br_page(struct br_tab *tab); /* Returns the page's own session. */
struct br_frame *br_top(struct br_tab *tab);    /* Returns NULL if there is no frame yet. */
void br_use(struct browser *b, struct br_tab *tab);
/* Opens a tab and waits until it is usable. Returns NULL with b->err set. */
struct br_tab *br_tab_open(struct browser *b);
int br_tab_close(struct browser *b, struct br_tab *tab);
void br_tab_gone(struct browser *b, struct br_tab *tab);
/* Brings the tab to the front, so that it is painted. */
int br_tab_front(struct browser *b, struct br_tab *tab);

#endif
