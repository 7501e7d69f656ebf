/* hr_cell: one execution and what comes of it: fed with messages, asked for the text. No sockets,
 * no clock. */
#ifndef HR_PLUGINS_JUPYTER_CELL_H
#define HR_PLUGINS_JUPYTER_CELL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "plugins/jupyter/wire.h"

/* More output than that is counted, not kept; the same for images. */
#define HR_CELL_TEXT_MAX (64u << 20)

struct hr_cell {
	char id[HR_WIRE_ID]; /* of its request; "": none was sent */
	bool replied, idle;  /* both: it is over */
	bool failed;         /* an error came: text after it is not shown */
	bool aborted;        /* the kernel did not run it */
	bool exiting;        /* it asked for the end of the kernel */
	bool has_text;       /* if only an empty one */
	size_t dropped;      /* bytes of output */
	struct hr_buf text;
	struct hr_buf images; /* JSON: data URLs as strings, commas between */
};

void hr_cell_init(struct hr_cell *c);
void hr_cell_done(struct hr_cell *c);
void hr_cell_begin(struct hr_cell *c); /* for another execution */

/* A message of the shell channel (reply) or of iopub. Others than its own are ignored. */
void hr_cell_reply(struct hr_cell *c, const struct hr_wire_message *m);
void hr_cell_output(struct hr_cell *c, const struct hr_wire_message *m);
bool hr_cell_over(const struct hr_cell *c);

/* Appends what it printed, as a client is shown it: without colours, or the words for nothing. */
void hr_cell_put(struct hr_buf *b, const struct hr_cell *c);

/* Removes ESC [ number (; number){0,2} m in place. */
void hr_cell_strip_colours(struct hr_buf *b);

#endif
