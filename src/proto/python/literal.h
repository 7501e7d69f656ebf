/* hr_pyliteral: parses a Python literal as ast.literal_eval() does, for one legacy argument whose
 * value is Python source (doc/actions.md, "From JSON to an action"). Accepts strings, numbers,
 * True, False, None, lists, tuples (as lists) and dictionaries with string keys. Refuses bytes,
 * sets, complex numbers and \N{...}: they have no JSON form, or need the names of all
 * characters. */
#ifndef HR_PROTO_PYTHON_LITERAL_H
#define HR_PROTO_PYTHON_LITERAL_H

#include <stddef.h>

struct json_object;

/* Parses a literal. Returns 0 with *ret, which the caller owns (NULL for None), or -1 if p is not
 * such a literal. Pure. */
int hr_pyliteral(const char *p, size_t len, struct json_object **ret);

#endif
