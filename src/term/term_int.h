/* Internals of term/.
 *
 * A row is stored as bytes (up to eight in the row itself) while it is plain ASCII and as cells
 * otherwise; in the history it is bytes (UTF-8) again. `used` and `size` repeat tmux's cellused and
 * cellsize, which decide about blanks at the end of a row and about rows that count as empty. */
#ifndef HR_TERM_TERM_INT_H
#define HR_TERM_TERM_INT_H

#include <endian.h>
#include <string.h>
#include <sys/types.h>

#include "term/term.h"

#define TERM_MAX_COLS 3000 /* 21 bytes each: a row's text must fit uint16_t */

enum {
	ROW_WRAPPED = 1, /* the terminal continued it on the next row */
	ROW_CELLS = 2,   /* data is struct term_cells */
	ROW_DIRTY = 4,   /* the row was written since hr_term_generation() last read it */
	ROW_COUNTED = 8, /* the row's hash is part of the sum */
};

struct term_row {
	union {
		void *data;
		char few[8]; /* the bytes of the row if room is 0 */
	};
	uint16_t used; /* columns in use; those from len on are blank */
	uint16_t len;  /* columns stored in data; history: bytes */
	uint16_t room; /* allocated bytes or cells */
	uint8_t size;  /* tmux's cellsize: index into hr_term.sizes */
	uint8_t flags;
	uint32_t hash; /* valid if ROW_COUNTED */
};

/* A cell is a code point with flags; or PAD, the right half of a wide character; or the index of a
 * term_extra: a character with its combining characters. */
#define CELL_PAD 0x80000000u
#define CELL_EXTRA 0x40000000u
#define CELL_WIDE 0x20000000u
#define CELL_VALUE 0x001fffffu

#define TERM_ROW_SLACK 64 /* bytes that a row of the history may waste */
#define TERM_JOINER 0x200d
#define TERM_CELL_BYTES 21 /* tmux's UTF8_SIZE: excess combining characters are dropped */

struct term_extra {
	uint8_t len;
	char bytes[TERM_CELL_BYTES];
};

struct term_cells {
	struct term_extra *extra;
	uint16_t extra_len, extra_room;
	uint32_t cell[];
};

/* The rows of a screen. Rows from `room` on are empty and not allocated. Once all are allocated the
 * array is a ring that starts at `top`, which is 0 until then. */
struct term_screen {
	struct term_row *row;
	unsigned room;
	unsigned top;
};

/* A pen is a number: its attributes (sgr.c) and the bits below, for colours other than the
 * default. */
#define PEN_FG 0x10000u
#define PEN_BG 0x20000u

struct term_charset {
	bool shifted, g0_acs, g1_acs;
};

enum term_state {
	ST_GROUND,
	ST_ESC,
	ST_ESC_INTERM,
	ST_CSI_ENTER,
	ST_CSI_PARAM,
	ST_CSI_INTERM,
	ST_CSI_IGNORE,
	ST_DCS_ENTER,
	ST_DCS_PARAM,
	ST_DCS_INTERM,
	ST_DCS_DATA,
	ST_DCS_ESC,
	ST_DCS_IGNORE,
	ST_OSC,
	ST_STRING, /* APC, PM, SOS, title: until ST */
};

#define TERM_ESC 0x1b
#define TERM_DEL 0x7f
#define TERM_PARAM_BYTES 63
#define TERM_PARAMS 23
#define PARAM_MISSING (-2)
#define PARAM_TEXT (-1) /* the parameter has colons */
#define TERM_REPLY_BYTES 256

struct term_parser {
	enum term_state state;
	bool discard; /* the sequence is too long */
	char interm[3];
	uint8_t interm_len;
	uint8_t param_len;
	char param[TERM_PARAM_BYTES + 1];
	int arg[TERM_PARAMS + 1];
	/* source of args; the first byte that is not part of a parameter ends it */
	const char *params;
	uint8_t arg_at[TERM_PARAMS + 1]; /* start of each in params */
	unsigned args;
	int last; /* character that REP repeats, or -1 */
	uint8_t utf8[4];
	uint8_t utf8_want, utf8_have;
	bool utf8_bad;
};

struct hr_term {
	unsigned cols, rows, history_limit;
	unsigned sizes[4]; /* 0, cols/4, cols/2, cols: how tmux grows a row */
	size_t max_bytes;
	size_t bytes; /* bytes allocated beside this struct */

	/* the screens */
	struct term_screen screen, main; /* main: the other screen while `alternate` */
	bool alternate;
	unsigned cx, cy;       /* cx == cols: the next character wraps */
	unsigned upper, lower; /* scroll region, inclusive */
	bool wrap, insert, origin, app_cursor, bracketed_paste;
	bool lf_is_crlf;
	uint32_t pen;
	struct term_charset charset;
	uint8_t tabs[(TERM_MAX_COLS + 7) / 8];
	struct { /* saved by DECSC */
		uint32_t pen;
		struct term_charset charset;
		unsigned cx, cy;
		bool origin;
	} saved;
	struct { /* saved by mode 1049 */
		uint32_t pen;
		unsigned cx, cy;
		bool valid;
	} alt_saved;
	bool joiner;         /* a zero width joiner waits for the next character */
	uint64_t joiner_end; /* offset of input at which the joiner stops waiting */

	/* history: a ring; unused slots may hold a buffer for reuse */
	struct term_row *hist;
	unsigned hist_room, hist_head, hist_len;
	uint64_t base; /* number of the oldest row */
	uint64_t dropped;

	/* detection of changes */
	uint64_t sum;                 /* sum of hash * HASH_BASE ^ number, over counted rows */
	uint64_t counted;             /* number of counted rows */
	uint64_t power_number, power; /* HASH_BASE ^ number of the last call */
	uint64_t dirty_lo, dirty_hi;  /* rows that may be dirty; none if lo > hi */
	uint64_t generation, fingerprint;

	struct term_parser parser;
	uint64_t fed; /* bytes of input so far, exact when term_put() is called */
	char reply[TERM_REPLY_BYTES];
	size_t reply_len;
};

#define TERM_ONES 0x0101010101010101u

static inline uint64_t
term_load(const uint8_t *b)
{
	uint64_t w;

	memcpy(&w, b, sizeof(w));
	return le64toh(w);
}

/* Returns the high bits of bytes that are not printable ASCII: below 0x20 borrows, 0x7f and above
 * carry. The first one is exact, later ones may be wrong. */
static inline uint64_t
term_not_ascii(uint64_t w)
{
	return ((w - 0x20 * TERM_ONES) | (w + TERM_ONES) | w) & 0x80 * TERM_ONES;
}

/* Counts the leading bytes that are printable ASCII. */
static inline size_t
term_ascii_run(const uint8_t *b, size_t len)
{
	uint64_t bad;
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		bad = term_not_ascii(term_load(b + i));
		if (bad != 0)
			return i + (size_t)__builtin_ctzll(bad) / 8;
	}
	while (i < len && b[i] >= 0x20 && b[i] < TERM_DEL)
		i++;
	return i;
}

/* --- term.c: memory and replies --- */
/* Reallocates, counts and keeps the limit: drops history until there is room. Returns NULL if that
 * fails, with the old block untouched. Frees if new_size is 0. */
void *term_realloc(struct hr_term *t, void *p, size_t old_size, size_t new_size);
void term_reply(struct hr_term *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline uint64_t
term_top(const struct hr_term *t)
{
	return t->base + t->hist_len;
}

/* --- row.c --- */
/* Row functions leave it to the caller to mark the row dirty; x and n must stay within cols.
 * Without memory the row is unchanged. */
uint32_t term_row_get(const struct term_row *r, unsigned x);
void term_row_set(struct hr_term *t, struct term_row *r, unsigned x, uint32_t cell);
void term_row_put(struct hr_term *t, struct term_row *r, unsigned x, const uint8_t *p, unsigned n);
void term_row_erase(struct term_row *r, unsigned x, unsigned n);
void term_row_insert(struct hr_term *t, struct term_row *r, unsigned x, unsigned n);
void term_row_delete(struct hr_term *t, struct term_row *r, unsigned x, unsigned n);
/* Empties r, whose memory may be kept. */
void term_row_clear(struct hr_term *t, struct term_row *r);
void term_row_free(struct hr_term *t, struct term_row *r);
/* Returns false without memory. */
bool term_row_grow(struct hr_term *t, struct term_row *r, unsigned n);
static inline char *
term_row_bytes(struct term_row *r)
{
	return r->room > 0 ? r->data : r->few;
}
static inline const char *
term_row_bytes_const(const struct term_row *r)
{
	return r->room > 0 ? r->data : r->few;
}
/* Copies the text between colours, which is short; a call of memcpy() would take longer. */
static inline void
term_copy(char *to, const uint8_t *from, unsigned n)
{
	unsigned i;

	if (n > 16) {
		memcpy(to, from, n);
	} else if (n >= 8) {
		memcpy(to, from, 8);
		memcpy(to + n - 8, from + n - 8, 8);
	} else {
		for (i = 0; i < n; i++)
			to[i] = (char)from[i];
	}
}
static inline unsigned
term_row_room(const struct term_row *r)
{
	return r->room > 0 ? r->room : sizeof(r->few);
}
/* Converts the row to the history's form. */
void term_row_seal(struct hr_term *t, struct term_row *r);
static inline bool
term_row_needs_seal(const struct term_row *r)
{
	return r->room > TERM_ROW_SLACK || r->flags & (ROW_CELLS | ROW_WRAPPED);
}
static inline void
term_row_grow_size(const struct hr_term *t, struct term_row *r, unsigned n)
{
	if (n > t->sizes[r->size])
		r->size = n < t->sizes[1] ? 1 : n < t->sizes[2] ? 2 : 3;
}
/* Appends text to a row of bytes that has room. */
static inline void
term_row_append(const struct hr_term *t, struct term_row *r, const uint8_t *p, unsigned n)
{
	term_copy(term_row_bytes(r) + r->len, p, n);
	r->len = (uint16_t)(r->len + n);
	term_row_grow_size(t, r, r->len);
	if (r->len > r->used)
		r->used = r->len;
}
/* Writes the bytes of a cell, at most TERM_CELL_BYTES; returns 0 for PAD. */
unsigned term_cell_bytes(const struct term_row *r, uint32_t cell, char *out);
/* Returns a cell for these bytes, or 0 without memory. */
uint32_t
term_row_extra(struct hr_term *t, struct term_row *r, const char *p, unsigned n, bool wide);

/* --- grid.c: rows of the screen --- */
/* Returns NULL for an empty row. */
struct term_row *term_grid_row(const struct hr_term *t, unsigned y);
/* Returns NULL without memory. */
struct term_row *term_grid_allocate(struct hr_term *t, unsigned y);
/* Takes rows y to y + n - 1 out of the sum before they are renumbered or leave the screen. */
void term_grid_forget(struct hr_term *t, unsigned y, unsigned n);
void term_grid_renumbered(struct hr_term *t, unsigned y, unsigned n);
void term_grid_unwrap_above(struct hr_term *t, unsigned y);
void term_grid_clear_part(struct hr_term *t, unsigned y, unsigned x, unsigned n, bool bg);
void term_grid_clear_rows(struct hr_term *t, unsigned y, unsigned n, bool bg);
/* Moves rows into the history, if there are any. */
void term_grid_clear_all(struct hr_term *t, bool bg);
void term_grid_scroll_up(struct hr_term *t, unsigned n, bool bg);   /* Scrolls the region up. */
void term_grid_scroll_down(struct hr_term *t, unsigned n, bool bg); /* Scrolls the region down. */
void term_grid_insert_rows(struct hr_term *t, unsigned y, unsigned n, bool bg);
void term_grid_delete_rows(struct hr_term *t, unsigned y, unsigned n, bool bg);
void term_grid_free(struct hr_term *t, struct term_screen *s);

/* --- history.c --- */
/* Moves *r into the history; *r becomes an empty row. */
void term_history_push(struct hr_term *t, struct term_row *r);
void term_history_clear(struct hr_term *t);
/* Frees memory; returns false if nothing is left to free. */
bool term_history_relieve(struct hr_term *t);
static inline struct term_row *
term_history_row(const struct hr_term *t, unsigned i)
{
	unsigned at = t->hist_head + i;

	return &t->hist[at < t->hist_room ? at : at - t->hist_room];
}
/* Takes the last step of a push, for a sealed row and a history with room. */
static inline void
term_history_take(struct hr_term *t, struct term_row *r)
{
	struct term_row *slot = term_history_row(t, t->hist_len++), spare = *slot;

	*slot = *r;
	/* Reuse the slot's buffer, not its content. */
	r->data = spare.data;
	r->room = spare.room;
	r->used = r->len = 0;
	r->size = r->flags = 0;
}

/* --- change.c --- */
void term_change_reset(struct hr_term *t);
void term_change_dirty(struct hr_term *t, struct term_row *r, uint64_t number);
void term_change_forget(struct hr_term *t, struct term_row *r, uint64_t number);

/* Returns a row of the screen for writing, marked dirty, or NULL without memory. */
static inline struct term_row *
term_grid_write(struct hr_term *t, unsigned y)
{
	unsigned at = t->screen.top + y;
	struct term_row *r;

	if (y < t->screen.room)
		r = &t->screen.row[at < t->rows ? at : at - t->rows];
	else if ((r = term_grid_allocate(t, y)) == NULL)
		return NULL;
	if (!(r->flags & ROW_DIRTY))
		term_change_dirty(t, r, term_top(t) + y);
	return r;
}

/* --- screen.c: effects of sequences --- */
/* Moves the cursor; -1 leaves a coordinate unchanged. */
void term_move(struct hr_term *t, int x, int y, bool with_origin);
void term_up(struct hr_term *t, int n); /* Moves up by n, which is 1 or more here and below. */
void term_down(struct hr_term *t, int n);
void term_right(struct hr_term *t, int n);
void term_left(struct hr_term *t, int n);
void term_backspace(struct hr_term *t);
void term_tab(struct hr_term *t);
void term_back_tab(struct hr_term *t, int n);
void term_linefeed(struct hr_term *t, bool wrapped, bool bg);
void term_reverse_index(struct hr_term *t);
void term_region(struct hr_term *t, unsigned upper, unsigned lower);
void term_erase_line(struct hr_term *t, int how);
void term_erase_screen(struct hr_term *t, int how);
void term_align(struct hr_term *t);
void term_save(struct hr_term *t);
void term_restore(struct hr_term *t);
void term_alternate_on(struct hr_term *t, bool cursor);
void term_alternate_off(struct hr_term *t, bool cursor);
void term_tabs_default(struct hr_term *t);
void term_full_reset(struct hr_term *t); /* Performs RIS. */

/* --- put.c: characters --- */
void term_put_ascii(struct hr_term *t, const uint8_t *p, size_t n);
void term_put(struct hr_term *t, uint32_t cp, int width);

/* --- flood.c: returns the number of bytes it consumed --- */
size_t term_flood(struct hr_term *t, const uint8_t *b, size_t len);

/* --- parser.c, csi.c, sgr.c --- */
void term_parse(struct hr_term *t, const uint8_t *p, size_t len);
void term_esc(struct hr_term *t, uint8_t final);
void term_csi(struct hr_term *t, uint8_t final);
/* Performs ESC [ numbers and the final byte, complete at b, which is the form of nearly every
 * sequence. Returns its length; 0: b has another form. `fed` is the offset of b in the input. */
size_t term_csi_whole(struct hr_term *t, const uint8_t *b, size_t len, uint64_t fed);
void term_sgr(struct hr_term *t);
int term_arg(const struct hr_term *t, unsigned i, int least, int absent);

#endif
