/* Describes the forwarders of a box, processes of handrail-forward. */
#include "config.h"

#include "host/box/helper.h"

#include <stdio.h>

static const char *const records[] = {"forward", "forward.editor"};

int
hr_box_forward(const struct hr_box *b, bool editor, struct hr_err *err)
{
	char port[16];
	const char *const argv[] = {"handrail-forward", editor ? "editor" : "server", port, NULL};

	(void)snprintf(port, sizeof(port), "%lld",
	    editor ? b->ports[HR_BOX_VSCODE] : hr_config_int(b->h->config, "box.port"));
	return hr_box_helper_find(b,
	    &(const struct hr_box_helper){.argv = argv,
		.socket = true,
		.record = records[editor],
		.what = editor ? "the way to the box's editor" : "the way to the box's server"},
	    err);
}

void
hr_box_end_forwards(const struct hr_box *b)
{
	hr_box_helper_end(b, records[false]);
	hr_box_helper_end(b, records[true]);
}
