/* hr_body: interprets the Content-Type header. */
#ifndef HR_WORKER_REQUEST_BODY_H
#define HR_WORKER_REQUEST_BODY_H

#include <stdbool.h>

/* Returns true if FastAPI would parse the body as JSON: the header is absent or empty, or its media
 * type is application/json or application/<anything>+json, in any case (doc/http.md, "POST
 * /execute_action"). */
bool hr_body_is_json(const char *content_type);

/* Returns true if the media type is exactly `media` (lower case). Parameters do not count. */
bool hr_body_is_type(const char *content_type, const char *media);

#endif
