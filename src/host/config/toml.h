/* hr_toml: parses TOML 1.0 to json-c objects. Debian 12 has no TOML library for C. Tables become
 * objects, arrays arrays, dates and times strings as written. */
#ifndef HR_HOST_CONFIG_TOML_H
#define HR_HOST_CONFIG_TOML_H

#include <stddef.h>

#include "base/err.h"

struct json_object;

#define HR_TOML_MAX (4u << 20) /* maximum bytes of a configuration */
#define HR_TOML_DEPTH 64       /* maximum of nested arrays and inline tables */

/* Parses a text. Returns 0 with *ret, which the caller owns, or -1 with *err naming the line. No
 * I/O. */
int hr_toml_parse(const char *p, size_t len, struct json_object **ret, struct hr_err *err);

#endif
