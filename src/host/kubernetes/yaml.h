/* hr_yaml: a YAML document as JSON. Every scalar is a text ("true", "8080"), but what says null.
 * The only user of libyaml. */
#ifndef HR_HOST_KUBERNETES_YAML_H
#define HR_HOST_KUBERNETES_YAML_H

#include "host/handrail.h"

struct json_object;

/* The first document of the text; aliases are refused. *ret is the caller's, NULL for null. */
int hr_yaml_read(const char *p, size_t len, struct json_object **ret, struct hr_err *err);

#endif
