/* br_tape: parses JSON in place, for replies of many megabytes: 12 bytes per value in addition to
 * the text, where a tree of objects takes ten times the text. No recursion, no copies. */
#ifndef HR_PLUGINS_BROWSER_PAGE_TAPE_H
#define HR_PLUGINS_BROWSER_PAGE_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Limits of a text and of its values: beyond them parsing fails with HR_E_TOOLARGE. */
#define BR_TAPE_TEXT_MAX (128u << 20)
#define BR_TAPE_VALUES_MAX (16u << 20)

enum br_tape_type {
	BR_TAPE_NOTHING, /* also stands for a missing value */
	BR_TAPE_NULL,
	BR_TAPE_FALSE,
	BR_TAPE_TRUE,
	BR_TAPE_NUMBER,
	BR_TAPE_STRING,
	BR_TAPE_LIST,
	BR_TAPE_OBJECT, /* members alternate: key, value */
};

/* An index stands for a value. All functions accept BR_TAPE_NONE and values of another type, and
 * treat them as missing. */
#define BR_TAPE_NONE 0x0FFFFFFFu

struct br_tape_value {
	uint32_t at, end;   /* range of the value's text; a string's excludes the quotes */
	uint32_t next : 28; /* index after the value and its content */
	uint32_t type : 4;
};

struct br_tape {
	const char *text; /* borrowed */
	struct br_tape_value *v;
	uint32_t n, room;
};

/* Parses the text. Tokens that look like numbers stay raw; br_tape_int() and _number() check them.
 * Returns 0: value 0 is the whole text, which must stay in place; or -1 with nothing to free. */
int br_tape_parse(struct br_tape *t, const char *p, size_t len, struct hr_err *err);
void br_tape_done(struct br_tape *t); /* Accepts a zeroed t. */

enum br_tape_type br_tape_type(const struct br_tape *t, uint32_t i);
/* Returns a member; of equal names the last one. */
uint32_t br_tape_at(const struct br_tape *t, uint32_t object, const char *name);
/* Iterate over a list or object; they return BR_TAPE_NONE at the end. */
uint32_t br_tape_first(const struct br_tape *t, uint32_t in);
uint32_t br_tape_next(const struct br_tape *t, uint32_t in, uint32_t i);
size_t br_tape_count(const struct br_tape *t, uint32_t list);

/* Returns true if the value is a string equal to text. */
bool br_tape_is(const struct br_tape *t, uint32_t i, const char *text);
void br_tape_str(const struct br_tape *t, uint32_t i, struct hr_buf *b); /* Appends a string. */
/* Returns NULL if the value is not a string, or without memory. */
char *br_tape_strdup(const struct br_tape *t, uint32_t i);
int64_t br_tape_int(const struct br_tape *t, uint32_t i, int64_t otherwise);
double br_tape_number(const struct br_tape *t, uint32_t i, double otherwise);
/* Returns the value's JSON text; a string's without the quotes. */
const char *br_tape_raw(const struct br_tape *t, uint32_t i, size_t *ret_len);

/* Converts to a Python value, with at most `depth` nested brackets. Returns -1 if they are deeper,
 * or without memory. */
struct br_value;
int br_tape_value(const struct br_tape *t, uint32_t i, unsigned depth, struct br_value *ret);

#endif
