/* br_value: holds a literal of a program as a Python value, and prints its repr(). */
#ifndef HR_PLUGINS_BROWSER_PROGRAM_VALUE_H
#define HR_PLUGINS_BROWSER_PROGRAM_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum br_kind {
	BR_V_NONE,
	BR_V_FALSE,
	BR_V_TRUE,
	BR_V_INT,   /* text: decimal digits, perhaps after a minus */
	BR_V_FLOAT, /* `number` holds the value */
	BR_V_STR,   /* text: generalised UTF-8, which may contain nulls */
	BR_V_LIST,
	BR_V_TUPLE,
	BR_V_DICT, /* item 2i is the key of item 2i + 1; keys are distinct strings */
};

struct br_value {
	enum br_kind kind;
	double number; /* the number of a BR_V_INT, or the nearest value */
	char *text;
	size_t len;
	struct br_value *items;
	size_t n;
};

void br_value_done(struct br_value *v);
/* Appends *item to the items of v, and takes ownership of it. Returns -1 without memory, with *item
 * freed. */
int br_value_push(struct br_value *v, struct br_value *item);
/* A key of a dictionary, or the name of an argument. */
struct br_key {
	const char *p; /* borrowed */
	size_t len;
	size_t at, first; /* the index of this key, and of the first equal one */
};
/* Sets `at` and `first` of each key. */
void br_keys_find_first(struct br_key *keys, size_t n);

void br_value_repr(struct hr_buf *b, const struct br_value *v);
const char *br_value_type(const struct br_value *v); /* Returns "int", "str", ... */
/* Returns true if v is a string equal to text. */
bool br_value_is(const struct br_value *v, const char *text);
/* Returns true if v contains a float whose repr() is a name. */
bool br_value_has_inf(const struct br_value *v);

#endif
