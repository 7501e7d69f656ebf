/* hr_key: by what a repeated request is known (handraild(8), "AT MOST ONCE"). */
#ifndef HR_WORKER_REQUEST_KEY_H
#define HR_WORKER_REQUEST_KEY_H

#include <stdbool.h>

#include "proto/event.h"
#include "worker/request/request.h"

#define HR_KEY_MAX 512

#define HR_KEY_OF_NGINX 'n' /* first byte of a key that no client knows */

/* Appends the key: the client's X-Request-ID, else its Idempotency-Key; else, for an event with an
 * id and a time stamp, these; each with what tells its body from others. Else nginx's own id, so
 * that a retry by nginx inside one request is covered and two equal requests are two actions. "" if
 * there is nothing. */
void hr_key_make(struct hr_buf *key, const struct hr_request *r, const struct hr_event *ev,
    const struct hr_buf *body);

/* For a request that is no action and whose body is not kept: the client's X-Request-ID or its
 * Idempotency-Key, with what tells the request from others of that name. "" if it gave neither. */
void hr_key_named(struct hr_buf *key, const struct hr_request *r, const struct hr_buf *what);
/* Whether it gave one. */
bool hr_key_is_named(const struct hr_request *r);

#endif
