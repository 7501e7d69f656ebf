/* hr_pyrepr: implements Python's repr(), which the original puts into its error texts
 * (doc/actions.md, "repr"). All functions append; the caller checks the buffer. Characters that are
 * not printable become ASCII escapes, so a lone surrogate of the input comes out as text
 * ('\udc80'). */
#ifndef HR_PROTO_PYTHON_REPR_H
#define HR_PROTO_PYTHON_REPR_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "proto/json.h"

void hr_pyrepr(struct hr_buf *b, struct json_object *v);
/* Appends the repr of generalised UTF-8. */
void hr_pyrepr_str(struct hr_buf *b, const char *p, size_t len);
void hr_pyrepr_bytes(struct hr_buf *b, const void *p, size_t len);

/* Appends Python's error for `count` characters from position `at` on, the first of them `first`,
 * that the codec cannot encode. */
void hr_pyencode_error(struct hr_buf *b, const char *codec, int32_t first, size_t at, size_t count,
    const char *reason);
/* Appends the same for the first surrogates of generalised UTF-8. Returns -1, or 0 if there are
 * none. b may be NULL. */
int hr_pyencode_check(struct hr_buf *b, const char *codec, const char *p, size_t len);

/* Returns an int object whose repr is `text` (static) instead of its digits, like that of an
 * enumeration's member in a dictionary. Returns NULL without memory. The caller owns the object. */
struct json_object *hr_pyrepr_named_int(int value, const char *text);

/* Returns the name of the type in Python's messages: "NoneType", "int", ... */
const char *hr_py_type_name(enum hr_py_type t);

bool hr_py_truthy(struct json_object *v);

/* Converts v as float(v). Returns 0, or -1 with Python's error text in why. v must not be null. */
int hr_py_float(struct json_object *v, double *ret, struct hr_buf *why);

#endif
