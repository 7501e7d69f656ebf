/* hr_cors: composes the nginx directives that recognise web pages which may read the answers of the
 * OpenHands V1 API. */
#ifndef HR_SUPERVISOR_EDGE_CORS_H
#define HR_SUPERVISOR_EDGE_CORS_H

#include "base/buf.h"
#include "base/err.h"

/* Appends content of server { } that sets $handrail_cors_origin for the pages of `origins`, the
 * setting cors_origins. Fails for a word that the setting cannot have. */
int hr_cors_compose(struct hr_buf *b, const char *origins, struct hr_err *err);

#endif
