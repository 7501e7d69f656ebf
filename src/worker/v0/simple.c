/* Handlers that look at no body and touch no file. */
#include "config.h"

#include <stdlib.h>

#include "worker/worker.h"

/* A 2xx is all that a client looks for, and it means that actions may be sent. Once the server has
 * been ready it stays so here: a shell that is being replaced takes requests all the same. */
void
hr_handle_alive(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	(void)r;
	if (!w->was_ready)
		w->was_ready = atomic_load(&w->board->ready) != 0 ||
			       atomic_load(&w->board->last_execution_ns) != 0;
	if (w->was_ready) {
		hr_buf_adds(&ret->body, "{\"status\":\"ok\"}");
		return;
	}
	hr_buf_adds(&ret->body, "{\"status\":\"not initialized\"}");
	ret->status = 503;
	ret->retry_after_s = 1;
}

/* The key was checked on the way here. */
void
hr_handle_auth(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	(void)w;
	(void)r;
	ret->status = 204;
	ret->content_type = NULL;
}

/* The key once more, as the token of RFC 6750. */
void
hr_handle_bearer(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	hr_handle_auth(w, r, ret);
	if (!hr_auth_passes(&w->auth, hr_request_bearer(r)))
		ret->status = 401;
}

/* All places for actions are taken (nginx makes 503 of 403), or one client asks for too much (429
 * of 401)? Those that wait in nginx for the rest of a body are counted there and not here. */
void
hr_handle_refused(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	unsigned long limit = strtoul(r->action_limit, NULL, 10);
	uint32_t busy = atomic_load(&w->board->pools[HR_SCOREBOARD_ACTION].busy);

	ret->status = limit > 0 && busy >= limit ? 403 : 401;
	ret->content_type = NULL;
}

/* The plugin, if there is one, is asked by nginx without coming here. */
void
hr_handle_token(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	(void)w;
	(void)r;
	hr_buf_adds(&ret->body, "{\"token\":null}");
}
