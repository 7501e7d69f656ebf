/* hr_ask: reads the bodies of requests to the code interpreter, and refuses wrong ones in the words
 * of the original (FastAPI with pydantic). Pure. */
#ifndef HR_PLUGINS_JUPYTER_ASK_H
#define HR_PLUGINS_JUPYTER_ASK_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"

struct json_object;

struct hr_ask_field {
	const char *name; /* NULL: the end of a table */
	bool required;
	bool map; /* an object of strings; otherwise a string. null is a missing value */
};

extern const struct hr_ask_field hr_ask_execute[], hr_ask_create[];

/* Returns 0 with an object, which the caller puts, or the status of a refusal, whose JSON is
 * appended to `why`. */
int hr_ask_read(struct hr_span text, const struct hr_ask_field *fields, struct json_object **ret,
    struct hr_buf *why);

/* Returns a language's name without blanks around it, in lower case and without abbreviations;
 * "python" for NULL and for an empty name. The caller frees; NULL: no memory. */
char *hr_ask_language(struct json_object *name);

#endif
