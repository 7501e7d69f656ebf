/* hr_json_scan: gives the verdict of Python's json.loads on a text, without building a tree. json-c
 * reports errors neither with their place nor in Python's words, and accepts several things that
 * Python refuses (and the other way round). So every text is scanned first; json-c then parses only
 * valid text. The grammar, the texts and the offsets are those of CPython 3.11's _json.c
 * (doc/http.md, "JSON"). */
#ifndef HR_PROTO_JSONSCAN_H
#define HR_PROTO_JSONSCAN_H

#include <stdbool.h>
#include <stddef.h>

/* Python's limit at this place depends on its stack: about 940. */
#define HR_JSON_DEPTH 900
#define HR_JSON_INT_DIGITS 4300 /* Python's limit for decimal integers */
#define HR_JSON_VALUES_MAX 2000000u

enum hr_json_verdict {
	HR_JSON_OK = 0,
	HR_JSON_SYNTAX,  /* text and pos describe the error */
	HR_JSON_NOTTEXT, /* some bytes are invalid in their apparent encoding */
	/* the nesting is too deep, an integer too long, or there are too many values; see text */
	HR_JSON_LIMIT,
	HR_JSON_NOMEM,
};

struct hr_json_error {
	enum hr_json_verdict verdict;
	const char *text; /* static; Python's message for HR_JSON_SYNTAX */
	size_t pos;       /* HR_JSON_SYNTAX: 0-based, in characters */
};

/* Facts about a valid text for the parser. */
struct hr_json_facts {
	/* the text contains something that json-c would lose (an escape of a surrogate, an integer
	 * beyond int64_t, a null character in a key): see json.c */
	bool odd;
	unsigned depth; /* maximum nesting of brackets */
};

/* Scans p, which must be generalised UTF-8. Returns 0, or -1 with *ret_error. */
int
hr_json_scan(const char *p, size_t len, struct hr_json_facts *ret, struct hr_json_error *ret_error);

/* Returns true if the decimal integer of n digits (no sign) fits int64_t. */
bool hr_json_int_fits(const char *digits, size_t n, bool negative);

#endif
