/* hr_source: reads the output of one shell for all pages that watch it (worker/hub.h): the last
 * bytes, read once from its keeper, and the state of the shell. It does not know the pages. */
#ifndef HR_WORKER_HUB_SOURCE_H
#define HR_WORKER_HUB_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "actions/shell.h"
#include "base/buf.h"
#include "base/err.h"
#include "proto/channel.h"

#define HR_SOURCE_RING (4u << 20)  /* bytes kept per shell */
#define HR_SOURCE_SLACK (1u << 20) /* extra bytes before old ones are dropped */
#define HR_TOLD_MAX (1u << 20)

/* The subject of an event of the hub's epoll. */
enum hr_hub_kind { HR_HUB_TIMER, HR_HUB_NEWS, HR_HUB_SOURCE, HR_HUB_PAGE };

/* An event that a page gets whenever its version differs from the page's. */
struct hr_told {
	struct hr_buf text; /* the whole event */
	uint64_t turn;      /* version, counted from 1; 0: no event yet */
	bool lost;          /* the last event did not fit, and that was logged */
};

void hr_told_init(struct hr_told *t);
void hr_told_done(struct hr_told *t);
/* Sets the event `event` with `data`, one line, if it has changed. Data that is too large is
 * dropped. */
void hr_told_set(struct hr_told *t, const char *event, const struct hr_buf *data);

/* seconds that a keeper may block all pages of all shells */
#define HR_SOURCE_LIMIT_S 1

struct hr_source {
	enum hr_hub_kind kind;
	LIST_ENTRY(hr_source) entry;
	char name[HR_SESSION_NAME_MAX + 1];
	unsigned pages;
	int keeper; /* -1: the keeper has ended */
	bool ended;
	struct hr_buf frame, ring;
	uint64_t start; /* offset of the ring's first byte */
	struct hr_told state;
	int64_t soon_ms, settle_ms; /* times of the next looks at the state; 0: none is planned */
};

/* Creates a source without a keeper. Returns NULL if memory runs out. */
struct hr_source *hr_source_new(const char *name);
void hr_source_free(struct hr_source *s);

/* Opens a source that follows the shell `session` (NULL: the default one), whose output ends at
 * `end` now. */
struct hr_source *
hr_source_open(const char *run_dir, const char *session, uint64_t end, struct hr_err *err);

/* Returns the offset after the last byte. */
uint64_t hr_source_end(const struct hr_source *s);

/* Appends a piece. Returns -1 if the offsets restarted or memory runs out. */
int hr_source_take(struct hr_source *s, const struct hr_output_piece *piece);

/* Reads all available output. Returns 0, or -1 if the keeper is gone or sent an invalid frame. */
int hr_source_read(struct hr_source *s);

/* Asks for the state of the shell, which its keeper answers at once. */
void hr_source_look(struct hr_source *s, const char *run_dir);

/* Notes output: delays the look at the state until the shell is silent, but not for ever. */
void hr_source_printed(struct hr_source *s, int64_t now_ms);
/* Returns true if the state must be read now. */
bool hr_source_due(struct hr_source *s, int64_t now_ms);

#endif
