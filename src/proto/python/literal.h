/* hr_pyliteral: a Python literal as ast.literal_eval() takes it, for one legacy argument whose
 * value is Python source (doc/actions.md, "From JSON to an action"). Strings, numbers, True, False,
 * None, lists, tuples (as lists) and dictionaries with string keys. Bytes, sets, complex numbers
 * and \N{...} are refused: they have no JSON form, or need the names of all characters. */
#ifndef HR_PROTO_PYTHON_LITERAL_H
#define HR_PROTO_PYTHON_LITERAL_H

#include <stddef.h>

struct json_object;

/* Parses a literal. Returns 0 with *ret, the caller's (NULL for None), or -1 if p is not such a
 * literal. Pure. */
int hr_pyliteral(const char *p, size_t len, struct json_object **ret);

#endif
