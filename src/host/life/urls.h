/* Makes addresses for a browser, for back-ends that report their own. */
#ifndef HR_HOST_LIFE_URLS_H
#define HR_HOST_LIFE_URLS_H

#include "host/handrail.h"

/* Finds the address of the server's page for people by one request of at most ten seconds: *ret_url
 * is the caller's; NULL: the server has none. */
int hr_sandbox_page(struct hr_sandbox *s, char **ret_url, struct hr_err *err);
/* Returns the server's address for a browser, which the caller owns; *ret is NULL if there is no
 * server. */
int hr_sandbox_web_url(struct hr_sandbox *s, char **ret, struct hr_err *err);
/* Builds the result of ops->web_hosts: {"URL": port, ...}; skips a NULL URL. */
int hr_web_hosts_json(char *const urls[2], const int ports[2], char **ret, struct hr_err *err);
/* Does the same for ports of a host; skips those that are 0. */
int hr_web_hosts_at(const char *host, const int ports[2], char **ret, struct hr_err *err);

#endif
