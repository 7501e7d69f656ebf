/* Inside shell/: JSON as Python's json.loads() reads it, as far as prompt blocks need it. NaN,
 * Infinity and -Infinity are values; control characters in strings are errors; numbers keep their
 * text. */
#ifndef HR_SHELL_PS1JSON_H
#define HR_SHELL_PS1JSON_H

#include <stdbool.h>
#include <stddef.h>

enum hr_ps1_type {
	HR_PS1_NULL,
	HR_PS1_BOOL,
	HR_PS1_INT,
	HR_PS1_FLOAT,
	HR_PS1_STR,
	HR_PS1_LIST,
	HR_PS1_DICT,
};

struct hr_ps1_value {
	enum hr_ps1_type type;
	const char *raw; /* borrowed: the value's text */
	size_t len;
};

/* Reads one value from s[*at], which may have white space before it; *at moves behind it. False:
 * not JSON, or nested more than 500 deep. */
bool hr_ps1_json_value(const char *s, size_t len, size_t *at, struct hr_ps1_value *ret);

/* The whole text is one value with nothing but white space around it. */
bool hr_ps1_json_text(const char *s, size_t len, struct hr_ps1_value *ret);

/* Walks over the members of a valid object: *at is 0 at first. False: no more. */
bool hr_ps1_json_member(const struct hr_ps1_value *dict, size_t *at, struct hr_ps1_value *ret_key,
    struct hr_ps1_value *ret_value);

/* The content of a valid string, NUL-terminated; the caller frees. NULL: out of memory. */
char *hr_ps1_json_string(const struct hr_ps1_value *str, size_t *ret_len);

#endif
