/* Implements the handlers that read no body and touch no file. */
#include "config.h"

#include <stdlib.h>

#include "worker/worker.h"

/* Answers that the server is alive. Clients check only for a 2xx, which means that they may send
 * actions. Once the server was ready this stays true: requests are accepted even while a shell is
 * being replaced. */
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

/* Answers nginx's auth_request: the router has checked the key already. */
void
hr_handle_auth(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	static const char ports[] = "/port/";

	/* any page of a browser could ask a server without a key for what listens there */
	if (w->auth.head.count == 0 && strncmp(r->asked_uri, ports, sizeof(ports) - 1) == 0) {
		hr_answer_detail(ret, 403, "/port/ requires a session key");
		return;
	}
	ret->status = 204;
	ret->content_type = NULL;
}

/* Checks the key a second time, as a bearer token (RFC 6750). */
void
hr_handle_bearer(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	hr_handle_auth(w, r, ret);
	if (!hr_auth_passes(&w->auth, hr_request_bearer(r)))
		ret->status = 401;
}

/* Distinguishes a full action pool (nginx turns 403 into 503) from one client's excess (401 becomes
 * 429). Requests that nginx still receives count there but not here. */
void
hr_handle_refused(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	unsigned long limit = strtoul(r->action_limit, NULL, 10);
	uint32_t busy = atomic_load(&w->board->pools[HR_SCOREBOARD_ACTION].busy);

	ret->status = limit > 0 && busy >= limit ? 403 : 401;
	ret->content_type = NULL;
}

/* Answers without a token; if the plugin is installed, nginx asks it directly. */
void
hr_handle_token(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	(void)w;
	(void)r;
	hr_buf_adds(&ret->body, "{\"token\":null}");
}
