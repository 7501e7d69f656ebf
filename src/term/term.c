/* Manages the terminal as a whole: creation, reset, memory, and queries of its owner. */
#include "config.h"

#include "term/term_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TERM_DEFAULT_SIZE = 1000,
	TERM_DEFAULT_HISTORY = 10000,
	TERM_MAX_ROWS = 10000,
	TERM_MAX_HISTORY = 1000000,
	TERM_DEFAULT_BYTES = 64 << 20,
	TERM_MIN_BYTES = 64 << 10,
	TERM_MALLOC_COST = 16, /* the allocator's overhead of a block, approximately */
};

static size_t
term_cost(size_t size)
{
	return size > 0 ? size + TERM_MALLOC_COST : 0;
}

void *
term_realloc(struct hr_term *t, void *p, size_t old_size, size_t new_size)
{
	size_t was = term_cost(old_size), cost = term_cost(new_size);
	void *q;

	if (new_size == 0) {
		free(p);
		t->bytes -= was;
		return NULL;
	}
	while (cost > was && t->bytes + (cost - was) > t->max_bytes)
		if (!term_history_relieve(t))
			return NULL;
	while ((q = realloc(p, new_size)) == NULL)
		if (!term_history_relieve(t))
			return NULL;
	t->bytes = t->bytes - was + cost;
	return q;
}

static unsigned
term_bound(unsigned v, unsigned least, unsigned most, unsigned absent)
{
	if (v == 0)
		return absent;
	return v < least ? least : v > most ? most : v;
}

/* Resets everything except the configuration and the allocations. */
static void
term_start(struct hr_term *t)
{
	t->alternate = false;
	t->cx = t->cy = 0;
	t->upper = 0;
	t->lower = t->rows - 1;
	t->wrap = true;
	t->insert = t->origin = t->app_cursor = t->bracketed_paste = false;
	t->pen = 0;
	memset(&t->charset, 0, sizeof(t->charset));
	memset(&t->saved, 0, sizeof(t->saved));
	memset(&t->alt_saved, 0, sizeof(t->alt_saved));
	memset(&t->parser, 0, sizeof(t->parser));
	t->parser.last = -1;
	t->joiner = false;
	t->reply_len = 0;
	t->base = t->dropped = 0;
	term_tabs_default(t);
	term_change_reset(t);
}

struct hr_term *
hr_term_new(const struct hr_term_config *config)
{
	struct hr_term *t = calloc(1, sizeof(*t));
	size_t max = config->max_bytes;

	if (t == NULL)
		return NULL;
	t->cols = term_bound(config->cols, 2, TERM_MAX_COLS, TERM_DEFAULT_SIZE);
	t->rows = term_bound(config->rows, 2, TERM_MAX_ROWS, TERM_DEFAULT_SIZE);
	t->history_limit = term_bound(config->history, 1, TERM_MAX_HISTORY, TERM_DEFAULT_HISTORY);
	t->max_bytes = max == 0 ? TERM_DEFAULT_BYTES : max < TERM_MIN_BYTES ? TERM_MIN_BYTES : max;
	t->lf_is_crlf = config->lf_is_crlf;
	t->sizes[1] = t->cols / 4;
	t->sizes[2] = t->cols / 2;
	t->sizes[3] = t->cols;
	term_start(t);
	return t;
}

static void
term_drop_all(struct hr_term *t)
{
	term_history_clear(t);
	term_grid_free(t, &t->screen);
	term_grid_free(t, &t->main);
}

void
hr_term_free(struct hr_term *t)
{
	if (t == NULL)
		return;
	term_drop_all(t);
	free(t);
}

void
hr_term_reset(struct hr_term *t)
{
	term_drop_all(t);
	term_start(t);
}

void
hr_term_feed(struct hr_term *t, const void *bytes, size_t len)
{
	term_parse(t, bytes, len);
}

uint64_t
hr_term_first_row(const struct hr_term *t)
{
	return t->base;
}

uint64_t
hr_term_cursor_row(const struct hr_term *t)
{
	return term_top(t) + t->cy;
}

uint64_t
hr_term_rows_dropped(const struct hr_term *t)
{
	return t->dropped;
}

void
hr_term_cursor(const struct hr_term *t, unsigned *ret_col, unsigned *ret_row)
{
	*ret_col = t->cx;
	*ret_row = t->cy;
}

bool
hr_term_alternate(const struct hr_term *t)
{
	return t->alternate;
}

bool
hr_term_application_cursor(const struct hr_term *t)
{
	return t->app_cursor;
}

bool
hr_term_bracketed_paste(const struct hr_term *t)
{
	return t->bracketed_paste;
}

size_t
hr_term_memory(const struct hr_term *t)
{
	return sizeof(*t) + t->bytes;
}

void
term_reply(struct hr_term *t, const char *fmt, ...)
{
	char *at = t->reply + t->reply_len;
	size_t room = sizeof(t->reply) - t->reply_len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(at, room, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < room) /* appends whole answers only */
		t->reply_len += (size_t)n;
}

size_t
hr_term_replies(struct hr_term *t, char *buf, size_t cap)
{
	size_t n = t->reply_len < cap ? t->reply_len : cap;

	if (n == 0)
		return 0;
	memcpy(buf, t->reply, n);
	t->reply_len -= n;
	memmove(t->reply, t->reply + n, t->reply_len);
	return n;
}
