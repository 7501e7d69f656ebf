/* hr_command: the words that start the server of a sandbox (doc/host.md, "The start command"). */
#ifndef HR_HOST_COMMAND_H
#define HR_HOST_COMMAND_H

#include "host/handrail.h"
#include "host/common/strv.h"

struct hr_command {
	const char *const *prefix; /* the program and what stands before the port */
	int port;
	const char *working_dir;
	const char *const *plugins;
	const char *username; /* NULL: by environment and configuration */
	long user_id;         /* -1: the same. 0 counts */
};

/* Appends to *ret. */
int hr_command_build(struct hr_strv *ret, const struct hr_command *c, const struct hr_config *cfg,
    const char *const *env, struct hr_err *err);

#endif
