/* hr_live: what the handlers of /handrail/v1/ share. */
#ifndef HR_WORKER_LIVE_H
#define HR_WORKER_LIVE_H

#include <stdbool.h>

#include "actions/shell.h"
#include "base/err.h"
#include "worker/stay.h"
#include "worker/worker.h"

/* The session that the query names. ret is valid until the next request. False: answered. */
bool hr_live_place(struct hr_worker *w, const struct hr_request *r,
    struct hr_shell_place *ret_place, struct hr_answer *ret);

/* The body as a JSON object, the caller's; NULL: answered. */
struct json_object *
hr_live_object(struct hr_worker *w, const struct hr_request *r, struct hr_answer *ret);

/* {"name": ..., } of GET /handrail/v1/session. */
void hr_live_put_state(struct hr_buf *b, const char *name, const struct hr_session_state *s);

/* One of GET /handrail/v1/commands. */
void hr_live_put_command(struct hr_buf *b, const char *session, const struct hr_command_state *c);

/* Makes a session of that name, in the server's directory. Where there are as many as may be, one
 * whose shell was ended by its last command and that is idle makes room. False: answered why not.
 */
bool hr_live_make(struct hr_worker *w, const char *name, struct hr_answer *ret);

/* Ends it, with all that runs on its terminal. False: answered, 404 if there is none. */
bool hr_live_end(struct hr_worker *w, const char *name, struct hr_answer *ret);

/* Ends the shell of the default session, which stays: its keeper replaces the shell. False:
 * answered. */
bool hr_live_end_shell(const struct hr_shell_place *place, struct hr_answer *ret);

/* The names of all but the default one, each with its NUL. False: answered. */
bool hr_live_names(struct hr_worker *w, struct hr_buf *names, struct hr_answer *ret);

/* 404 if there is no such session. 503: the shell's keeper may be about to be replaced, which is a
 * matter of a moment. False. */
bool hr_live_refuse(struct hr_answer *ret, const struct hr_err *err);

/* ---- answers without an end ---- */

/* A descriptor that tells of the end of this worker; -1. */
int hr_live_signals(struct hr_err *err);
/* An offset, or the id of a command: up to 2^63; false for what is no number. */
bool hr_live_number(const char *text, uint64_t *ret);
/* Whom it is for, and what ends it. */
struct hr_live_end {
	const struct hr_worker *w;
	struct hr_stay stay;
	int signals; /* by hr_live_signals() */
	bool events; /* silence is broken by comments, as proxies on the way give up on it */
};
/* Sleeps until `fd` is readable: true; false: the client has left, the sign-in is over, or the
 * worker is to end. */
bool hr_live_wait(int fd, const struct hr_live_end *end, struct hr_sink *sink);

#endif
