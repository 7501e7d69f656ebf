/* hr_repeat: detects unnamed requests that repeat one whose answer the client has not read
 * (handraild(8), "AT MOST ONCE"). */
#ifndef HR_WORKER_REPEAT_H
#define HR_WORKER_REPEAT_H

#include <stdbool.h>

#include "base/buf.h"
#include "worker/request/request.h"

struct hr_worker;

/* Handles an action that must not run twice. If `key` is nginx's name of the request and the same
 * client has sent the same body to the same session (NULL: the default one) on a connection that
 * ended without an answer, `key` becomes the key of that first request. Blocks until that action is
 * over while its connection still exists. Returns false if this request's own client has left,
 * after sending an answer that nothing was done. */
bool hr_repeat_enter(struct hr_worker *w, const struct hr_request *r, const char *session,
    struct hr_buf *key, struct hr_answer *ret);

/* Brackets the sending of an answer. `sent`: nginx has received all of it. hr_repeat_sent() returns
 * true if the answer has reached the client, as far as the worker can know. */
void hr_repeat_answering(struct hr_worker *w);
bool hr_repeat_sent(struct hr_worker *w, bool sent);

#endif
