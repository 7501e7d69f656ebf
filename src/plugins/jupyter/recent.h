/* hr_recent: remembers the last cells for GET /handrail/v1/cells (doc/live.md). */
#ifndef HR_PLUGINS_JUPYTER_RECENT_H
#define HR_PLUGINS_JUPYTER_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define HR_RECENT_MAX 32    /* number of cells kept */
#define HR_RECENT_CODE 1000 /* maximum bytes kept of a cell's code */

enum hr_recent_state { HR_RECENT_RUNNING, HR_RECENT_COMPLETED, HR_RECENT_FAILED };

struct hr_recent_cell {
	enum hr_recent_state state;
	int64_t started_ms;         /* as hr_wall_ms() counts */
	int64_t began_ms, ended_ms; /* as hr_now_ms() counts */
	size_t length, kept;        /* bytes of the code, and of its part in `code` */
	char code[HR_RECENT_CODE];
};

/* All zero: no cell yet. */
struct hr_recent {
	uint64_t begun; /* number of cells so far */
	struct hr_recent_cell cells[HR_RECENT_MAX];
};

/* Adds a cell that starts now. Returns its number, counted from 1. */
uint64_t hr_recent_begin(struct hr_recent *r, const char *code, size_t len);
/* Ends cell number `id`, unless it is no longer kept. */
void hr_recent_end(struct hr_recent *r, uint64_t id, bool failed);

/* Appends {"cells": [...]}, oldest first; check b. */
void hr_recent_put(struct hr_buf *b, const struct hr_recent *r);

#endif
