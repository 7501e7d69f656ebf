/* hr_cell: collects the output of one execution from the messages that it is fed with. Uses no
 * sockets and no clock. */
#ifndef HR_PLUGINS_JUPYTER_CELL_H
#define HR_PLUGINS_JUPYTER_CELL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "plugins/jupyter/wire.h"

/* maximum of output and of images; more is counted, not kept */
#define HR_CELL_TEXT_MAX (64u << 20)

struct hr_cell {
	char id[HR_WIRE_ID]; /* id of the cell's request; "": none was sent */
	bool replied, idle;  /* when both are set the cell has ended */
	bool failed;         /* an error arrived: text after it is not shown */
	bool aborted;        /* the kernel did not run the cell */
	bool exiting;        /* the cell requested the kernel's exit */
	bool has_text;       /* the cell has printed text, even if it is empty */
	size_t dropped;      /* bytes of dropped output */
	struct hr_buf text;
	struct hr_buf images; /* JSON: data URLs as strings, separated by commas */
};

void hr_cell_init(struct hr_cell *c);
void hr_cell_done(struct hr_cell *c);
void hr_cell_begin(struct hr_cell *c); /* Starts another execution. */

/* Returns true for an answer to the cell's request. */
bool hr_cell_owns(const struct hr_cell *c, const struct hr_wire_message *m);
/* Handles a message of the shell channel (reply) or of iopub; ignores those for other cells. */
void hr_cell_reply(struct hr_cell *c, const struct hr_wire_message *m);
void hr_cell_output(struct hr_cell *c, const struct hr_wire_message *m);
bool hr_cell_over(const struct hr_cell *c);

/* Appends the output as clients see it: without colours, or the phrase for no output. */
void hr_cell_put(struct hr_buf *b, const struct hr_cell *c);

/* Removes ESC [ number (; number){0,2} m in place. */
void hr_cell_strip_colours(struct hr_buf *b);

#endif
