/* The payload is a directory that, mounted or copied, starts a sandbox in any image (doc/images.md,
 * "The payload"). */
#ifndef HR_HOST_COMMON_PAYLOAD_H
#define HR_HOST_COMMON_PAYLOAD_H

#include <stdbool.h>

#include "host/handrail.h"

#define HR_PAYLOAD_PLACE "/openhands"
/* the program that every client starts */
#define HR_PAYLOAD_START HR_PAYLOAD_PLACE "/micromamba/bin/micromamba"

bool hr_payload_is(const char *dir);
/* Sets *ret to the directory in sandbox.payload, borrowed, or NULL if none is set. Returns -1 if
 * the directory is not a payload. */
int hr_payload_given(const struct hr_config *c, const char **ret, struct hr_err *err);
/* Returns the payload installed beside the modules, or NULL. */
const char *hr_payload_installed(void);
/* Returns true if an Engine's error says that the container lacks the start command. */
bool hr_payload_lacks(const char *said);

#endif
