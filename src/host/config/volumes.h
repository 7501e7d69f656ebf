/* hr_volumes: parses "source:target[:mode]" entries of sandbox.volumes (doc/host.md, "Volumes").
 * Pure. */
#ifndef HR_HOST_CONFIG_VOLUMES_H
#define HR_HOST_CONFIG_VOLUMES_H

#include <stdbool.h>
#include <stddef.h>

#include "host/handrail.h"

struct hr_volume {
	char *source; /* a path, or a volume's name */
	char *target;
	char *mode; /* "rw" unless given */
	bool named; /* source is a volume's name */
};

struct hr_volumes {
	struct hr_volume *v;
	size_t n;
};

/* Parses entries separated by commas. "volume:NAME:TARGET[:MODE]" is a named volume; a source that
 * begins with "/", "./", "../" or "~/" is a path, anything else a name. */
int hr_volumes_parse(const char *text, struct hr_volumes *ret, struct hr_err *err);
void hr_volumes_done(struct hr_volumes *v);

#endif
