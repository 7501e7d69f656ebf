/* What requests and WebSockets share of libcurl. */
#ifndef HR_HTTP_HTTP_INT_H
#define HR_HTTP_HTTP_INT_H

#include "http/http.h"

#include "http/curl.h"

/* Where to, through what, and as whom. *ret_connect_to (NULL before) is to be freed after e. */
int hr_http_set_peer(CURL *e, const struct hr_http_request *r, struct curl_slist **ret_connect_to);

enum hr_http_fault hr_http_fault_of(CURLcode code, CURL *e);

#endif
