/* Internals of the TOML parser: a position in the text, and values. */
#ifndef HR_HOST_CONFIG_TOML_INT_H
#define HR_HOST_CONFIG_TOML_INT_H

#include <stdbool.h>

#include "base/buf.h"
#include "host/config/toml.h"

struct toml {
	const char *p, *end;
	unsigned line;
	int depth;
	struct hr_err *err;
};

/* Returns -1 with the error "line N: text". */
int toml_fail(struct toml *t, const char *text);

static inline bool
toml_more(const struct toml *t)
{
	return t->p < t->end;
}

static inline bool
toml_at(const struct toml *t, char c)
{
	return t->p < t->end && *t->p == c;
}

void toml_blanks(struct toml *t); /* Skips spaces and tabs. */
/* Skips blanks, comments and line ends, as inside an array. */
int toml_space(struct toml *t);

/* Reads a string with its quotes; with `multi` also """ and '''. */
int toml_string(struct toml *t, bool multi, struct hr_buf *ret);
int toml_value(struct toml *t, struct json_object **ret);

/* Reads KEY = VALUE into table; the key may be dotted. */
int toml_pair(struct toml *t, struct json_object *table);

/* how a table was defined */
enum toml_mark {
	TOML_IMPLICIT = 1, /* defined by a longer key or header */
	TOML_HEADER,       /* defined by its own [header] */
	TOML_DOTTED,       /* defined by a dotted key */
	TOML_CLOSED,       /* inline, and thus complete */
};

enum toml_mark toml_mark(struct json_object *o);
struct json_object *toml_new_table(struct toml *t, enum toml_mark mark);
void toml_set_mark(struct json_object *o, enum toml_mark mark);

#endif
