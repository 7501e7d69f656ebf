/* Addresses for a person's browser, for kinds that say their own. */
#ifndef HR_HOST_LIFE_URLS_H
#define HR_HOST_LIFE_URLS_H

#include "host/handrail.h"

/* What ops->web_hosts returns: {"URL": port, ...}; a URL that is NULL is left out. */
int hr_web_hosts_json(char *const urls[2], const int ports[2], char **ret, struct hr_err *err);
/* The same, of ports of a host; those that are 0 are left out. */
int hr_web_hosts_at(const char *host, const int ports[2], char **ret, struct hr_err *err);

#endif
