/* The prompt metadata block in its public text form, as the shells of the
 * original server print it. Ours report out of band; this is for texts that hold such blocks. */
#ifndef HR_SHELL_PS1_H
#define HR_SHELL_PS1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What the reference puts into PS1, double quotes backslash-escaped; begins and ends with a
 * newline. */
extern const char hr_ps1_prompt[];

struct hr_ps1_match {
	size_t start,
	    end; /* from the first # of the begin marker to behind the last # of the end marker */
	size_t body; /* the JSON text between them, without white space around it */
	size_t body_len;
};

/* The first valid block that starts at or behind `from`: pass 0, then ret->end. A block whose body
 * is no JSON as Python reads it is passed over with its end marker. */
bool hr_ps1_find(const char *text, size_t len, size_t from, struct hr_ps1_match *ret);

struct hr_ps1_string {
	char *p; /* NULL: null; may hold NULs, and surrogates as three bytes each */
	size_t len;
};

struct hr_ps1_meta {
	int64_t exit_code, pid; /* -1: unknown. Beyond the type's range: its last value */
	struct hr_ps1_string username, hostname, working_dir, py_interpreter_path;
	struct hr_ps1_string prefix, suffix; /* never null */
};

/* The metadata without any block: the numbers -1, prefix and suffix empty, else null. */
int hr_ps1_meta_init(struct hr_ps1_meta *m, struct hr_err *err);
void hr_ps1_meta_done(struct hr_ps1_meta *m); /* all zero is fine */

/* Interprets the body of a block. -1: HR_E_INVAL with the reference's error text where it is plain
 * (the body is no object, infinity), or the name of a field of the wrong type; HR_E_NOMEM. ret is
 * set on success only. */
int hr_ps1_interpret(const char *body, size_t len, struct hr_ps1_meta *ret, struct hr_err *err);

#endif
