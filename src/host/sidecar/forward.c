/* Describes the forwarders of a box, processes of handrail-forward. */
#include "config.h"

#include "host/sidecar/sidecar.h"

#include <stdio.h>

static const char *const records[] = {"forward", "forward.editor"};

int
hr_sidecar_forward(const struct hr_sidecars *b, bool editor, int port, struct hr_err *err)
{
	char text[16];
	const char *const argv[] = {"handrail-forward", editor ? "editor" : "server", text, NULL};

	(void)snprintf(text, sizeof(text), "%d", port);
	return hr_sidecar_find(b,
	    &(const struct hr_sidecar){.argv = argv,
		.socket = true,
		.record = records[editor],
		.what =
		    editor ? "the way to the sandbox's editor" : "the way to the sandbox's server"},
	    err);
}

void
hr_sidecar_end_forwards(const struct hr_sidecars *b)
{
	hr_sidecar_end(b, records[false]);
	hr_sidecar_end(b, records[true]);
}
