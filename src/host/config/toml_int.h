/* What the parts of the TOML reader share: a place in the text, and values. */
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

/* -1 with "line N: text" */
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

void toml_blanks(struct toml *t); /* spaces and tabs */
/* Blanks, comments and line ends, as inside an array. */
int toml_space(struct toml *t);

/* A string with its quotes; multi: """ and ''' are taken as well. */
int toml_string(struct toml *t, bool multi, struct hr_buf *ret);
int toml_value(struct toml *t, struct json_object **ret);

/* KEY = VALUE, the key perhaps dotted, put into table. */
int toml_pair(struct toml *t, struct json_object *table);

/* What is known of a table beside its content. */
enum toml_mark {
	TOML_IMPLICIT = 1, /* made on the way to another */
	TOML_HEADER,       /* it had its [header] */
	TOML_DOTTED,       /* made by a dotted key */
	TOML_CLOSED,       /* inline: complete */
};

enum toml_mark toml_mark(struct json_object *o);
struct json_object *toml_new_table(struct toml *t, enum toml_mark mark);
void toml_set_mark(struct json_object *o, enum toml_mark mark);

#endif
