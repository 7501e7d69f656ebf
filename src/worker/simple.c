/* Handlers that look at no body and touch no file. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <json-c/json.h>

#include "proto/channel.h"
#include "proto/json.h"
#include "worker/worker.h"

#define READY_TIMEOUT_MS 5000

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
	static const char scheme[] = "Bearer ";
	const char *value = r->authorization != NULL ? r->authorization : "";

	if (strncasecmp(value, scheme, sizeof(scheme) - 1) == 0)
		value += sizeof(scheme) - 1;
	else
		value = "";
	hr_handle_auth(w, r, ret);
	if (!hr_auth_passes(&w->auth, value))
		ret->status = 401;
}

/* All places for actions are taken (nginx makes 503 of 403), or one client asks for too much (429
 * of 401)? Those that wait in nginx for the rest of a body are counted there and not here. */
void
hr_handle_refused(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	unsigned long limit = strtoul(r->action_limit != NULL ? r->action_limit : "", NULL, 10);
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

/* The supervisor says "status":"ready" when everything answers. */
static bool
says_ready(const struct hr_channel_answer *a)
{
	struct json_object *v = NULL, *status = NULL;
	struct hr_json_error e;
	bool ready;

	if (hr_json_decode(a->text, a->len, &v, &e) < 0)
		return false;
	ready = hr_json_type(v) == HR_PY_DICT && json_object_object_get_ex(v, "status", &status) &&
		hr_json_str_is(status, "ready");
	json_object_put(v);
	return ready;
}

void
hr_handle_ready(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_channel_answer a;
	struct hr_err err = {.code = HR_OK};

	(void)r;
	if (hr_channel_ask(w->channel, HR_CHANNEL_READY, "", 0, HR_CHANNEL_READY_ANSWER,
		READY_TIMEOUT_MS, &a, &err) < 0) {
		hr_buf_adds(&ret->body, "{\"status\":\"not ready\",\"reason\":");
		(void)hr_json_put_str(
		    &ret->body, err.msg, strlen(err.msg), HR_JSON_REPLACE); /* cannot refuse */
		hr_buf_addc(&ret->body, '}');
		ret->status = 503;
	} else {
		hr_buf_add(&ret->body, a.text, a.len);
		ret->status = says_ready(&a) ? 200 : 503;
	}
	if (ret->status == 503)
		ret->retry_after_s = 1;
}
