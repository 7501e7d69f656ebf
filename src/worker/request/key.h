/* hr_key: builds the key by which a repeated request is recognised (handraild(8), "AT MOST
 * ONCE"). */
#ifndef HR_WORKER_REQUEST_KEY_H
#define HR_WORKER_REQUEST_KEY_H

#include <stdbool.h>

#include "proto/event.h"
#include "worker/request/request.h"

#define HR_KEY_MAX 512

#define HR_KEY_OF_NGINX 'n' /* first byte of a key that clients do not know */

/* Appends the key: the client's X-Request-ID, else its Idempotency-Key, else the id and time stamp
 * of the event; each with a digest of the body. Otherwise it appends nginx's id, which covers a
 * retry by nginx within one request, while two equal requests are two actions. Appends "" if no
 * name exists. */
void hr_key_make(struct hr_buf *key, const struct hr_request *r, const struct hr_event *ev,
    const struct hr_buf *body);

/* Appends nginx's id of the request as the key, or "" if there is none. */
void hr_key_of_nginx(struct hr_buf *key, const struct hr_request *r);

/* Appends the key of a request that is not an action and whose body is not kept: the client's
 * X-Request-ID or Idempotency-Key with a digest of `what`. Appends "" if the client gave
 * neither. */
void hr_key_named(struct hr_buf *key, const struct hr_request *r, const struct hr_buf *what);
/* Returns true if the client gave X-Request-ID or Idempotency-Key. */
bool hr_key_is_named(const struct hr_request *r);

#endif
