/* The payload: a directory of this machine that starts a sandbox where it is mounted or copied to,
 * whatever the image has (doc/images.md, "The payload"). */
#ifndef HR_HOST_COMMON_PAYLOAD_H
#define HR_HOST_COMMON_PAYLOAD_H

#include <stdbool.h>

#include "host/handrail.h"

#define HR_PAYLOAD_PLACE "/openhands"
/* The program that each client starts. */
#define HR_PAYLOAD_START HR_PAYLOAD_PLACE "/micromamba/bin/micromamba"

bool hr_payload_is(const char *dir);
/* *ret: the directory that sandbox.payload names, borrowed; NULL: none. -1: it is no payload. */
int hr_payload_given(const struct hr_config *c, const char **ret, struct hr_err *err);
/* The one that is installed beside our modules; NULL: none is. */
const char *hr_payload_installed(void);
/* An Engine said, as why it could not start a container, that our start command is not in it. */
bool hr_payload_lacks(const char *said);

#endif
