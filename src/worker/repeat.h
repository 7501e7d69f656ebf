/* hr_repeat: a request without a name that is a repetition of one whose answer its client has not
 * read (handraild(8), "AT MOST ONCE"). */
#ifndef HR_WORKER_REPEAT_H
#define HR_WORKER_REPEAT_H

#include <stdbool.h>

#include "base/buf.h"
#include "worker/request/request.h"

struct hr_worker;

/* For an action that must not be done twice. Where `key` is nginx' name of the request, and the
 * same client has sent the same body before, to the same session (NULL: the default one), by a
 * connection that has ended without an answer, `key` becomes the key of that first request. While
 * that connection still stands, waits until its action is over. Returns false if this request's own
 * client has left meanwhile, with an answer that says that nothing was done. */
bool hr_repeat_enter(struct hr_worker *w, const struct hr_request *r, const char *session,
    struct hr_buf *key, struct hr_answer *ret);

/* Before the answer is sent, and after it: `sent` if all of it is in nginx' hands. Returns whether
 * the answer has reached the client, as far as the worker can know. */
void hr_repeat_answering(struct hr_worker *w);
bool hr_repeat_sent(struct hr_worker *w, bool sent);

#endif
