/* hr_toml: TOML 1.0 to a tree of json-c objects. No TOML library for C is packaged in Debian 12.
 * Tables become objects, arrays arrays, dates and times strings as they are written. */
#ifndef HR_HOST_CONFIG_TOML_H
#define HR_HOST_CONFIG_TOML_H

#include <stddef.h>

#include "base/err.h"

struct json_object;

#define HR_TOML_MAX (4u << 20) /* no configuration is longer */
#define HR_TOML_DEPTH 64       /* of arrays and inline tables in each other */

/* 0: *ret is the caller's; -1: *err names the line. Pure. */
int hr_toml_parse(const char *p, size_t len, struct json_object **ret, struct hr_err *err);

#endif
