/* Shares the use of libcurl between requests and WebSockets. */
#ifndef HR_HTTP_HTTP_INT_H
#define HR_HTTP_HTTP_INT_H

#include "http/http.h"

#include "http/curl.h"

/* Sets address, proxy and credentials. *ret_connect_to must be NULL before; the caller frees it
 * after e. */
int hr_http_set_peer(CURL *e, const struct hr_http_request *r, struct curl_slist **ret_connect_to);

enum hr_http_fault hr_http_fault_of(CURLcode code, CURL *e);

#endif
