/* hr_once: an action under the journal (proto/journal.h). For the handlers of a worker. */
#ifndef HR_WORKER_ONCE_H
#define HR_WORKER_ONCE_H

#include "actions/action.h"

struct hr_request;
struct hr_worker;

/* Performs the action, unless it was performed before: then its answer is given again, or one that
 * says that it cannot be known. Waits while somebody else is at it. env->key is the key; the parts
 * of env about the journal are filled here. */
void hr_once_perform(struct hr_worker *w, struct hr_action_env *env, const struct hr_event *ev,
    struct hr_answer *ret);

/* The same for a request that is no action: enter, then, if that says true, the work, then leave.
 * False: answered. Between the two hr_journal_mark(&w->journal, &w->once) says that it has begun.
 */
bool hr_once_enter(struct hr_worker *w, struct hr_span key, struct hr_answer *ret);
/* Enters, by the name that the client gave the request or else by nginx's. path: NULL, or what
 * tells it from an action of that name and body. */
bool hr_once_open(
    struct hr_worker *w, const struct hr_request *r, const char *path, struct hr_answer *ret);
/* The same, and marks. */
bool hr_once_begin(
    struct hr_worker *w, const struct hr_request *r, const char *path, struct hr_answer *ret);
void hr_once_leave(struct hr_worker *w, const struct hr_answer *ret);

/* After the answer: `sent` if all of it is in nginx's hands. */
void hr_once_sent(struct hr_worker *w, bool sent);

#endif
