/* hr_yaml: converts a YAML document to JSON. Every scalar becomes a string ("true", "8080"), except
 * null. No other file uses libyaml. */
#ifndef HR_HOST_KUBERNETES_YAML_H
#define HR_HOST_KUBERNETES_YAML_H

#include "host/handrail.h"

struct json_object;

/* Reads the first document; refuses aliases. The caller owns *ret, which is NULL for null. */
int hr_yaml_read(const char *p, size_t len, struct json_object **ret, struct hr_err *err);

#endif
