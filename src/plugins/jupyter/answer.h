/* hr_answer_cell: observations of run_ipython, as frames for a worker. */
#ifndef HR_PLUGINS_JUPYTER_ANSWER_H
#define HR_PLUGINS_JUPYTER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "plugins/jupyter/cell.h"

struct hr_cell_answer {
	const char *code; /* as it came; generalised UTF-8 */
	size_t code_len;
	const struct hr_cell *cell;
	const char *first_words,
	    *last_words; /* before and, on a line of its own, after the output */
	bool include_extra;
	const char *dir, *path; /* for the two lines of that */
};

/* Both append a whole frame; check b. */
void hr_answer_put_cell(struct hr_buf *b, const struct hr_cell_answer *a);
void hr_answer_put_error(struct hr_buf *b, const char *why);
/* Status 500: the cell was begun, and nobody knows it any more. */
void hr_answer_put_unknown(struct hr_buf *b);

#endif
