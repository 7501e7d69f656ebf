/* hr_once: runs an action at most once with the journal (proto/journal.h), for the handlers. */
#ifndef HR_WORKER_ONCE_H
#define HR_WORKER_ONCE_H

#include "actions/action.h"

struct hr_request;
struct hr_worker;

/* Performs the action, or repeats the answer of an earlier attempt; if that result cannot be known,
 * the answer says so. Blocks while another worker performs it. env->key is the key; this function
 * fills the journal's members of env. */
void hr_once_perform(struct hr_worker *w, struct hr_action_env *env, const struct hr_event *ev,
    struct hr_answer *ret);

/* Enters a request that is not an action: if this returns true, the caller does the work and then
 * calls hr_once_leave(). Returns false after sending an error. In between,
 * hr_journal_mark(&w->journal, &w->once) marks the work as started. */
bool hr_once_enter(struct hr_worker *w, struct hr_span key, struct hr_answer *ret);
/* Enters under the client's name for the request or else nginx's. `path` distinguishes the request
 * from an action with the same name and body; NULL: there is none. */
bool hr_once_open(
    struct hr_worker *w, const struct hr_request *r, const char *path, struct hr_answer *ret);
/* Opens the entry like hr_once_open() and marks it. */
bool hr_once_begin(
    struct hr_worker *w, const struct hr_request *r, const char *path, struct hr_answer *ret);
/* Opens the entry and marks it for a caller that can finish a request that was started, and sees by
 * w->once_again that it was. If `key` is empty, it gets the request's name; "": none. */
bool hr_once_join(struct hr_worker *w, const struct hr_request *r, const char *path,
    struct hr_buf *key, struct hr_answer *ret);
/* Enters under nginx's name alone, by which nginx tries a request again whose worker died: what the
 * client calls its request does not matter. `join`: the caller can finish a request that was
 * started, and sees by w->once_again that it was; otherwise such a request is refused. */
bool hr_once_try(struct hr_worker *w, const struct hr_request *r, bool join, struct hr_answer *ret);
void hr_once_leave(struct hr_worker *w, const struct hr_answer *ret);

/* Finishes after the answer; `sent`: nginx has received all of it. */
void hr_once_sent(struct hr_worker *w, bool sent);

#endif
