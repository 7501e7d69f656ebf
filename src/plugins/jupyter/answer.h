/* hr_answer_cell: formats observations of run_ipython as frames for a worker. */
#ifndef HR_PLUGINS_JUPYTER_ANSWER_H
#define HR_PLUGINS_JUPYTER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "plugins/jupyter/cell.h"

struct hr_cell_answer {
	const char *code; /* verbatim; generalised UTF-8 */
	size_t code_len;
	const struct hr_cell *cell;
	/* words before the output, and words after it on a new line */
	const char *first_words, *last_words;
	bool include_extra;
	const char *dir, *path; /* printed in the two extra lines */
};

/* Appends a whole frame; check b. */
void hr_answer_put_cell(struct hr_buf *b, const struct hr_cell_answer *a);
/* Appends a frame with that status and that JSON. */
void hr_answer_put_json(struct hr_buf *b, int status, const struct hr_buf *body);
void hr_answer_put_error(struct hr_buf *b, const char *why);
/* Appends a reply with status 500: the cell was started, but its result is lost. */
void hr_answer_put_unknown(struct hr_buf *b);

#endif
