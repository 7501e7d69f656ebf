/* hr_line: writes messages of a kernel as the lines that clients of the code interpreter read
 * (doc/e2b.md). Pure. */
#ifndef HR_PLUGINS_JUPYTER_LINE_H
#define HR_PLUGINS_JUPYTER_LINE_H

#include "base/buf.h"
#include "plugins/jupyter/wire.h"

#define HR_LINE_MAX (64u << 20) /* maximum bytes of a line */

enum hr_line_kind {
	HR_LINE_NONE, /* the message is not shown */
	HR_LINE_COUNT,
	HR_LINE_OUTPUT, /* text or a result */
	HR_LINE_ERROR,
	HR_LINE_SYNTAX, /* the error of a cell that cannot be parsed */
};

/* Appends the line of a message, with its line feed. A line that is too long for b becomes a line
 * for stderr about the loss. */
enum hr_line_kind hr_line_put(struct hr_buf *b, const struct hr_wire_message *m);

/* Appends an error that no kernel has sent. */
void hr_line_put_error(struct hr_buf *b, const char *name, const char *value);

#endif
