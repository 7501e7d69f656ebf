/* hr_live: has helpers that the handlers of /handrail/v1/ share. */
#ifndef HR_WORKER_LIVE_H
#define HR_WORKER_LIVE_H

#include <stdbool.h>

#include "actions/shell.h"
#include "base/err.h"
#include "worker/stay.h"
#include "worker/worker.h"

/* Finds the session that the query names; *ret_place is valid until the next request. Returns false
 * after sending an error. */
bool hr_live_place(struct hr_worker *w, const struct hr_request *r,
    struct hr_shell_place *ret_place, struct hr_answer *ret);

/* Returns the body as a JSON object, owned by the caller, or NULL after sending an error. */
struct json_object *
hr_live_object(struct hr_worker *w, const struct hr_request *r, struct hr_answer *ret);

/* Appends the object {"name": ..., } of GET /handrail/v1/session. */
void hr_live_put_state(struct hr_buf *b, const char *name, const struct hr_session_state *s);

/* Appends an object of GET /handrail/v1/commands. */
void hr_live_put_command(struct hr_buf *b, const char *session, const struct hr_command_state *c);

/* Creates the session `name` in the server's directory. At the limit it first ends an idle session
 * whose shell was ended by its last command. Returns false after sending an error. */
bool hr_live_make(struct hr_worker *w, const char *name, struct hr_answer *ret);

/* Ends the session and all processes of its terminal. Returns false after sending an error, 404 if
 * the session does not exist. */
bool hr_live_end(struct hr_worker *w, const char *name, struct hr_answer *ret);

/* Ends the shell of the default session; its keeper starts another. Returns false after sending an
 * error. */
bool hr_live_end_shell(const struct hr_shell_place *place, struct hr_answer *ret);

/* Appends the names of all sessions but the default one, each with its NUL. Returns false after
 * sending an error. */
bool hr_live_names(struct hr_worker *w, struct hr_buf *names, struct hr_answer *ret);

/* Answers 404 if the session does not exist, or 503 if the keeper may be about to be replaced, so
 * that a retry helps. Returns false. */
bool hr_live_refuse(struct hr_answer *ret, const struct hr_err *err);

/* ---- endless answers ---- */

/* Parses an offset or a command id, up to 2^63. Returns false if `text` is not a number. */
bool hr_live_number(const char *text, uint64_t *ret);
/* The conditions that end an endless answer. */
struct hr_live_end {
	const struct hr_worker *w;
	struct hr_stay stay;
	int signals; /* descriptor of hr_command_signals() */
	bool events; /* send comments during silence, because proxies close silent connections */
};
/* Sleeps until `fd` is readable. Returns false if the client has left, its sign-in is over or the
 * worker must end. */
bool hr_live_wait(int fd, const struct hr_live_end *end, struct hr_sink *sink);

#endif
