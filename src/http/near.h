/* hr_near: performs requests to servers of this machine, at a Unix socket or 127.0.0.1, without
 * libcurl, which takes longer to load than a sandbox takes to answer. Each request has a connection
 * of its own. Names, TLS, proxies, HTTP/2, forms, and bodies that are streams are left to
 * libcurl. */
#ifndef HR_HTTP_NEAR_H
#define HR_HTTP_NEAR_H

#include "http/request.h"

bool hr_near_can(const struct hr_http_request *r);
/* Performs a request as hr_http_do(). */
int hr_near_do(const struct hr_http_request *r, struct hr_http_answer *ret, struct hr_err *err);

#endif
