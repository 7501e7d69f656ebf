/* A request whose headers are all absent. */
#ifndef REQUEST_H
#define REQUEST_H

#include "worker/request/request.h"

static inline struct hr_request
request_blank(const char *method, const char *uri)
{
	return (struct hr_request){.method = method,
	    .uri = uri,
	    .content_type = "",
	    .session_key = "",
	    .authorization = "",
	    .host = "box:8000",
	    .scheme = "http",
	    .client_id = "",
	    .idempotency_key = "",
	    .request_id = "req1",
	    .traceparent = "",
	    .connection = "",
	    .forwarded_for = "",
	    .user_agent = "",
	    .range = "",
	    .if_range = "",
	    .if_none_match = "",
	    .accept = "",
	    .last_event_id = "",
	    .cookie = "",
	    .page_token = "",
	    .asked_method = "",
	    .asked_uri = "",
	    .mcp_version = "",
	    .mcp_method = "",
	    .mcp_name = "",
	    .rex_key = "",
	    .origin = "",
	    .action_limit = "",
	    .remote = ""};
}

#endif
