/* hr_spec: finds the kernel of a language among Jupyter's kernel specifications. */
#ifndef HR_PLUGINS_JUPYTER_SPEC_H
#define HR_PLUGINS_JUPYTER_SPEC_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

struct json_object;

struct hr_spec {
	struct hr_strv argv; /* "{connection_file}" stands for that file's path */
	struct hr_strv env;  /* further variables */
	bool asks_interrupt; /* the kernel is interrupted by a message */
};

/* Fills *ret for a language in lower case: ipykernel of `python` for "python", otherwise the
 * specification of that name, or the first one with that language. Returns 0, or -1 with *err:
 * HR_E_NOTFOUND if there is none. Call hr_spec_done() in both cases. */
int hr_spec_find(struct hr_spec *ret, const char *language, const char *python, struct hr_err *err);
void hr_spec_done(struct hr_spec *s);

/* Appends the program's arguments for a connection file to *ret. */
void hr_spec_argv(struct hr_strv *ret, const struct hr_spec *s, const char *file);

/* Appends code that sets variables (an object of strings), or that takes them back: gives them
 * their values in envp, or unsets them. Appends nothing for a language without such code. */
void hr_spec_set(struct hr_buf *b, const char *language, struct json_object *vars);
void hr_spec_take_back(
    struct hr_buf *b, const char *language, struct json_object *vars, char *const *envp);

#endif
