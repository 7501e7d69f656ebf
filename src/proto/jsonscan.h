/* hr_json_scan: the verdict of Python's json.loads on a text, without building anything.
 *
 * json-c says neither where nor in Python's words what is wrong, and takes several things that
 * Python refuses (and the other way round). So every text is scanned first; json-c then parses what
 * is known to be right. The grammar, the texts and the offsets are those of CPython 3.11's _json.c
 * (doc/http.md, "JSON"). */
#ifndef HR_PROTO_JSONSCAN_H
#define HR_PROTO_JSONSCAN_H

#include <stdbool.h>
#include <stddef.h>

/* Python's limit at that point depends on its stack: about 940. */
#define HR_JSON_DEPTH 900
#define HR_JSON_INT_DIGITS 4300 /* Python's limit for decimal integers */
#define HR_JSON_VALUES_MAX 2000000u

enum hr_json_verdict {
	HR_JSON_OK = 0,
	HR_JSON_SYNTAX,  /* text and pos say what is wrong where */
	HR_JSON_NOTTEXT, /* bytes that are no text in the encoding they seem to be in */
	HR_JSON_LIMIT,   /* too deep, an integer too long, or too many values; text says which */
	HR_JSON_NOMEM,
};

struct hr_json_error {
	enum hr_json_verdict verdict;
	const char *text; /* static; Python's words for HR_JSON_SYNTAX */
	size_t pos;       /* HR_JSON_SYNTAX: 0-based, in characters */
};

/* What the parser has to know of a text that is right. */
struct hr_json_facts {
	bool odd; /* holds something that json-c would lose (an escape of a surrogate, an integer
		     beyond int64_t, a null character in a key): see json.c */
	unsigned depth; /* of the deepest bracket */
};

/* p is generalised UTF-8. 0, or -1 with *ret_error. */
int
hr_json_scan(const char *p, size_t len, struct hr_json_facts *ret, struct hr_json_error *ret_error);

/* Does the decimal integer of n digits (no sign) fit int64_t? */
bool hr_json_int_fits(const char *digits, size_t n, bool negative);

#endif
