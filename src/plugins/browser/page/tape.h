/* br_tape: JSON read in place, for answers of many megabytes: 12 bytes a value beside the text,
 * where a tree of objects takes ten times the text. No recursion, no copy. */
#ifndef HR_PLUGINS_BROWSER_PAGE_TAPE_H
#define HR_PLUGINS_BROWSER_PAGE_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* No text is longer, and none has more values: both fail as HR_E_TOOLARGE. */
#define BR_TAPE_TEXT_MAX (128u << 20)
#define BR_TAPE_VALUES_MAX (16u << 20)

enum br_tape_type {
	BR_TAPE_NOTHING, /* also what is not there */
	BR_TAPE_NULL,
	BR_TAPE_FALSE,
	BR_TAPE_TRUE,
	BR_TAPE_NUMBER,
	BR_TAPE_STRING,
	BR_TAPE_LIST,
	BR_TAPE_OBJECT, /* its members are a key and a value by turns */
};

/* A value is its index; all functions take BR_TAPE_NONE and values of another type, and say no more
 * than that it is not there. */
#define BR_TAPE_NONE 0x0FFFFFFFu

struct br_tape_value {
	uint32_t at, end;   /* of its text; a string's are those between the quotes */
	uint32_t next : 28; /* behind it and all in it */
	uint32_t type : 4;
};

struct br_tape {
	const char *text; /* borrowed */
	struct br_tape_value *v;
	uint32_t n, room;
};

/* What looks like a number is kept as it is; br_tape_int() and _number() say whether it is one.
 * 0: value 0 is the whole text, which must stay where it is. -1: nothing to free. */
int br_tape_parse(struct br_tape *t, const char *p, size_t len, struct hr_err *err);
void br_tape_done(struct br_tape *t); /* takes a zeroed one */

enum br_tape_type br_tape_type(const struct br_tape *t, uint32_t i);
/* A member; of equal names the last. */
uint32_t br_tape_at(const struct br_tape *t, uint32_t object, const char *name);
/* What a list or object holds, one after the other; BR_TAPE_NONE at the end. */
uint32_t br_tape_first(const struct br_tape *t, uint32_t in);
uint32_t br_tape_next(const struct br_tape *t, uint32_t in, uint32_t i);
size_t br_tape_count(const struct br_tape *t, uint32_t list);

bool br_tape_is(const struct br_tape *t, uint32_t i, const char *text);  /* this very string? */
void br_tape_str(const struct br_tape *t, uint32_t i, struct hr_buf *b); /* appends a string */
char *br_tape_strdup(const struct br_tape *t, uint32_t i); /* NULL: no string, or no memory */
int64_t br_tape_int(const struct br_tape *t, uint32_t i, int64_t otherwise);
double br_tape_number(const struct br_tape *t, uint32_t i, double otherwise);
/* Its JSON text; of a string without the quotes. */
const char *br_tape_raw(const struct br_tape *t, uint32_t i, size_t *ret_len);

/* The value as Python would have it, with at most so many brackets in each other. -1: deeper, or no
 * memory. */
struct br_value;
int br_tape_value(const struct br_tape *t, uint32_t i, unsigned depth, struct br_value *ret);

#endif
