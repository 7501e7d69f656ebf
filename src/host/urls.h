/* Addresses for a person's browser, for kinds that say their own. */
#ifndef HR_HOST_URLS_H
#define HR_HOST_URLS_H

#include <stddef.h>

#include "host/handrail.h"

/* What ops->web_hosts returns: {"URL": port, ...}; a URL that is NULL is left out. */
int
hr_web_hosts_json(char *const *urls, const int *ports, size_t n, char **ret, struct hr_err *err);

#endif
