/* browser: one Chromium with its tabs, driven over its DevTools pipe.
 *
 * Everything that asks Chromium something waits in place until the answer is there, with a deadline
 * (until_ms) that the caller has set; while it waits, events change what is noted here. So whatever
 * was noted before a call may be gone after it: a tab is looked up again, a frame by its id. */
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

#define BR_ID 64       /* of targets, sessions, frames: 32 hexadecimal digits, so far */
#define BR_OBJECT 128  /* of a remote object */
#define BR_TABS_MAX 24 /* a page that opens more does so in vain */
#define BR_FRAMES_MAX 2000
#define BR_WIDTH 1280 /* of a page, where it does not ask for another size */
#define BR_HEIGHT 720

struct br_frame {
	TAILQ_ENTRY(br_frame) entry;
	char id[BR_ID], parent[BR_ID]; /* parent: "" for the top of its session */
	int64_t ours, main;            /* execution contexts; 0: none */
	bool moving;                   /* a navigation has begun and not ended */
	bool dom, load;                /* events of the document that is there */
	int64_t due_ms;                /* when a refresh that the page asks for begins; 0: none */
	char loader[BR_ID];            /* of the document that is there */
};

/* A page, or a frame of it that is in another process. */
struct br_session {
	TAILQ_ENTRY(br_session) entry;
	char id[BR_ID], target[BR_ID];
	char above[BR_ID]; /* the frame of another process that holds it; "": it is a page */
	TAILQ_HEAD(, br_frame) frames; /* the first one is the top */
	size_t nframes;
	int64_t tree; /* the question for the frames that were there already; 0: it is answered */
};

struct br_tab {
	TAILQ_ENTRY(br_tab) entry;
	char target[BR_ID];
	char *url;                         /* NULL: none seen */
	TAILQ_HEAD(, br_session) sessions; /* the first one is the page's own */
	uint64_t used;                     /* when it was active last: greater is later */
	int64_t requests;                  /* under way */
	bool crashed;
	bool fresh; /* nothing has come of its opening yet */
	int64_t width, height;
	/* what an action waits for */
	uint64_t chooser;     /* file choosers so far */
	int64_t chooser_node; /* backend id */
	char chooser_session[BR_ID];
	uint64_t dragged; /* drags taken over so far */
	char *drag;       /* data of the last one, JSON */
	uint64_t commits; /* documents of the top frame so far */
	uint64_t moves;   /* those, and moves within one */
};

/* An answer: the whole message, and where in it the result is. */
struct br_answer {
	char *text;
	size_t len;
	struct br_tape tape;
	uint32_t result;
};

/* A question that is under way. */
struct br_asking {
	TAILQ_ENTRY(br_asking) entry;
	int64_t id;
	char session[BR_ID];
	bool done;
	struct br_answer *answer;
	struct hr_err err; /* where it is done without an answer */
};

struct browser {
	/* given */
	struct hr_loop *loop;
	const char *program;            /* Chromium */
	const char *profile;            /* a directory of ours */
	const char *downloads;          /* where files go */
	double download_max;            /* bytes of each */
	double memory_max;              /* bytes of each process; 0: as many as it wants */
	bool saves_pdf;                 /* a PDF is downloaded and not shown */
	bool (*interrupted)(void *arg); /* whoever waits is to give up */
	void *arg;

	pid_t pid;
	int pidfd, to, from;
	struct hr_watch *reading, *writing, *ended, *timer;
	struct hr_buf in, out;
	size_t scanned, sent; /* of in and out */
	bool skipping;        /* a message that is too long */
	bool gone;            /* no more than br_stop() helps */
	char why[200];

	int64_t next_id;
	TAILQ_HEAD(, br_asking) asking;
	char context[BR_ID];
	TAILQ_HEAD(br_tabs, br_tab) tabs; /* in the order of their opening */
	size_t ntabs;
	uint64_t uses;
	uint64_t wanted; /* tabs that pages have asked for and that have not come */
	int64_t wanted_width, wanted_height; /* of the next one */
	char front[BR_ID];                   /* the target in front */
	uint64_t downloads_begun, downloads_ended;
	bool download_cut;     /* one was broken off, and nobody was told */
	struct br_tab *active; /* NULL: none */
	int64_t until_ms;      /* for all that waits */
	int64_t step_ms;       /* and never longer than this */
	struct hr_err err;     /* of the last call that failed */
	double mouse_x, mouse_y;
	struct br_cast cast; /* for those who look on */
};

void br_init(struct browser *b);
/* Starts Chromium and waits until it has a tab. -1: err. */
int br_start(struct browser *b, struct hr_err *err);
/* Ends it and forgets all tabs; any time. */
void br_stop(struct browser *b);
void br_done(struct browser *b); /* that, for good */

/* ---- talk.c ---- */

/* Appends JSON by a pattern: $s a string that is quoted, $b the same with a length (const char *,
 * size_t), $r text as it is, $d int64_t, $f double. */
void br_json(struct hr_buf *b, const char *pattern, ...);

/* Asks and does not wait. session "": the browser. The message's number, with which br_told() gets
 * the answer. */
int64_t
br_tell(struct browser *b, const char *session, const char *method, const char *pattern, ...);
/* Asks and waits. NULL: b->err (HR_E_PROTO: Chromium refused; HR_E_TIMEOUT; HR_E_GONE). */
struct br_answer *
br_ask(struct browser *b, const char *session, const char *method, const char *pattern, ...);
/* The same in two steps, so that Chromium is at work on several. What was begun is ended, or given
 * up. */
void br_ask_begin(struct browser *b, struct br_asking *a, const char *session, const char *method,
    const char *pattern, ...);
struct br_answer *br_ask_end(struct browser *b, struct br_asking *a);
void br_ask_give_up(struct browser *b, struct br_asking *a);
/* Asks and waits, for who does not look at the answer. */
int br_do(struct browser *b, const char *session, const char *method, const char *pattern, ...);
void br_answer_free(struct br_answer *a); /* NULL: nothing */
static inline void
br_answer_clean(struct br_answer **a) /* for HR_CLEAN() */
{
	br_answer_free(*a);
}
/* The message itself, malloc'ed; frees the rest. */
char *br_answer_take(struct br_answer *a, size_t *ret_len);
/* Members of the result. */
uint32_t br_at(const struct br_answer *a, const char *name);
void br_copy(const struct br_tape *t, uint32_t i, char *ret, size_t cap); /* "": no string */
void br_text_at(const struct br_answer *a, const char *name, char *ret, size_t cap); /* "": none */
/* Waits until something has happened, at most until then. -1: b->err. */
int br_wait(struct browser *b, int64_t until_ms);
/* From now on nothing waits longer than this, nor longer than the step. */
void br_limit(struct browser *b, int64_t ms);
/* The same, for who waits for until_ms itself: it is no failure to reach it. */
int br_pause(struct browser *b, int64_t until_ms);

/* An expression in a context of a session: of ours ("handrail.x()"), or the page's. The answer's
 * result.result holds its value. A promise is awaited. NULL: b->err. */
struct br_answer *
br_eval(struct browser *b, const char *session, int64_t context, const char *code, bool by_value);
/* The same in two steps, as above; the context is one. */
void br_eval_begin(struct browser *b, struct br_asking *a, const char *session, int64_t context,
    const char *code, bool by_value);
struct br_answer *br_eval_end(struct browser *b, struct br_asking *a);
/* A function of ours with an object as its first argument and JSON values behind it; its value.
 * NULL: b->err. */
struct br_answer *br_call_on(struct browser *b, const char *session, const char *object,
    const char *function, const char *args);
/* The value of such an answer. */
uint32_t br_value(const struct br_answer *a);

/* ---- events.c ---- */

/* What Chromium says of itself. The tape is that of a message. */
void br_event(struct browser *b, const char *session, const char *method, const struct br_tape *t,
    uint32_t params);
/* An answer for which nobody waits. */
void br_told(struct browser *b, int64_t id, const struct br_tape *t, uint32_t result);

/* ---- tabs.c ---- */

struct br_session *br_session_find(struct browser *b, const char *id, struct br_tab **ret_tab);
struct br_tab *br_tab_find(struct browser *b, const char *target);
struct br_frame *br_frame_find(struct br_session *s, const char *id);
/* By a frame's id alone, in all processes of a tab. */
struct br_frame *br_frame_of(struct br_tab *tab, const char *id, struct br_session **ret);
struct br_session *br_page(struct br_tab *tab); /* its own session */
struct br_frame *br_top(struct br_tab *tab);    /* NULL: none yet */
void br_use(struct browser *b, struct br_tab *tab);
/* Opens a tab and waits until it can be used. NULL: b->err. */
struct br_tab *br_tab_open(struct browser *b);
int br_tab_close(struct browser *b, struct br_tab *tab);
void br_tab_gone(struct browser *b, struct br_tab *tab);
/* Brings it to the front, where it is painted. */
int br_tab_front(struct browser *b, struct br_tab *tab);

#endif
