/* hr_source: the output of one shell for the pages that look at it (worker/hub.h), read from its
 * keeper once: the last bytes of it, and the state of that shell. Knows no page. */
#ifndef HR_WORKER_HUB_SOURCE_H
#define HR_WORKER_HUB_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "actions/shell.h"
#include "base/buf.h"
#include "base/err.h"
#include "proto/channel.h"

#define HR_SOURCE_RING (4u << 20)  /* bytes that are kept of each shell, */
#define HR_SOURCE_SLACK (1u << 20) /* and so many more until some are dropped */
#define HR_TOLD_MAX (1u << 20)

/* What an event of the hub's epoll is about. */
enum hr_hub_kind { HR_HUB_TIMER, HR_HUB_NEWS, HR_HUB_SOURCE, HR_HUB_PAGE };

/* A text of which a page is told when it is not the one that it knows. */
struct hr_told {
	struct hr_buf text; /* a whole event */
	uint64_t turn;      /* counts its changes from 1; 0: there is none yet */
	bool lost;          /* the last one was too much, and that was logged */
};

void hr_told_init(struct hr_told *t);
void hr_told_done(struct hr_told *t);
/* An event of that name with data, one line, if it is news. Data that was too much is none. */
void hr_told_set(struct hr_told *t, const char *event, const struct hr_buf *data);

/* So long do all pages, of all shells, wait for a keeper that does not answer. */
#define HR_SOURCE_LIMIT_S 1

struct hr_source {
	enum hr_hub_kind kind;
	LIST_ENTRY(hr_source) entry;
	char name[HR_SESSION_NAME_MAX + 1];
	unsigned pages;
	int keeper; /* -1: gone */
	bool ended;
	struct hr_buf frame, ring;
	uint64_t start; /* offset of the ring's first byte */
	struct hr_told state;
	int64_t soon_ms, settle_ms; /* when to look at it; 0: not */
};

/* Without a keeper. NULL: no memory. */
struct hr_source *hr_source_new(const char *name);
void hr_source_free(struct hr_source *s);

/* Follows the shell (NULL: the default one), whose output ends there now. */
struct hr_source *
hr_source_open(const char *run_dir, const char *session, uint64_t end, struct hr_err *err);

/* Offset behind its last byte. */
uint64_t hr_source_end(const struct hr_source *s);

/* -1: the count began anew, or there is no memory. */
int hr_source_take(struct hr_source *s, const struct hr_output_piece *piece);

/* 0: all that there is was taken; -1: its keeper is gone, or spoke nonsense. */
int hr_source_read(struct hr_source *s);

/* Asks for the state of the shell, which answers at once. */
void hr_source_look(struct hr_source *s, const char *run_dir);

/* It has printed: when to look is put off until it is silent, and not put off for ever. */
void hr_source_printed(struct hr_source *s, int64_t now_ms);
/* Whether to look now. */
bool hr_source_due(struct hr_source *s, int64_t now_ms);

#endif
