/* hr_body: what the Content-Type header says of a body. */
#ifndef HR_WORKER_REQUEST_BODY_H
#define HR_WORKER_REQUEST_BODY_H

#include <stdbool.h>

/* FastAPI parses a body as JSON if the header is absent or empty, or its media type is
 * application/json or application/<anything>+json, in any case (doc/http.md, "POST
 * /execute_action"). */
bool hr_body_is_json(const char *content_type);

/* Is the media type exactly this one (lower case)? Parameters do not count. */
bool hr_body_is_type(const char *content_type, const char *media);

#endif
