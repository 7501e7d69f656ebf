/* Serves /handrail/mcp: checks the client and connects the tools to this worker (doc/agents.md). */
#include "config.h"

#include <string.h>

#include "actions/shell.h"
#include "base/clock.h"
#include "mcp/mcp.h"
#include "worker/beside.h"
#include "worker/request/body.h"
#include "worker/live.h"
#include "worker/once.h"
#include "worker/worker.h"

struct door {
	struct hr_worker *w;
	const struct hr_request *r;
};

/* ---- the services for the tools ---- */

static void
perform(void *arg, const char *session, struct json_object *action, struct hr_span key,
    struct hr_answer *ret)
{
	struct door *d = arg;

	/* the answer's note points to the name after the call was freed */
	hr_buf_reset(&d->w->session);
	if (session != NULL) {
		hr_buf_adds(&d->w->session, session);
		if (hr_buf_check(&d->w->session, NULL) < 0) {
			hr_answer_generic(ret);
			return;
		}
		session = hr_buf_str(&d->w->session);
	}
	hr_execute_action(d->w, d->r, session, action, key, HR_RULES_OWN, ret);
}

/* Starts an operation. Its key is the client's name for the request, or nginx's own so that a retry
 * is covered. */
static bool
enter(void *arg, struct hr_answer *ret)
{
	struct door *d = arg;

	return hr_once_begin(d->w, d->r, NULL, ret);
}

static bool
begin(void *arg, struct hr_answer *ret)
{
	struct door *d = arg;

	return hr_once_open(d->w, d->r, NULL, ret);
}

static void
mark(void *arg)
{
	struct door *d = arg;

	hr_journal_mark(&d->w->journal, &d->w->once);
}

static void
active(void *arg)
{
	struct door *d = arg;

	atomic_store(&d->w->board->last_execution_ns, hr_wall_ns());
}

static void
leave(void *arg, const struct hr_answer *ret)
{
	struct door *d = arg;

	hr_once_leave(d->w, ret);
}

/* Succeeds, too, if another caller has created the shell meanwhile. */
static bool
create(void *arg, const char *name, struct hr_answer *ret)
{
	const struct door *d = arg;
	const struct hr_shell_place place = {.run_dir = d->w->run_dir, .session = name};

	/* 409: the shell exists, or the number of shells is at its limit */
	return hr_live_make(d->w, name, ret) || (ret->status == 409 && hr_shell_is_there(&place));
}

static bool
end(void *arg, const char *name, struct hr_answer *ret)
{
	const struct door *d = arg;
	const struct hr_shell_place place = {.run_dir = d->w->run_dir};

	return name != NULL ? hr_live_end(d->w, name, ret) : hr_live_end_shell(&place, ret);
}

static bool
names(void *arg, struct hr_buf *names, struct hr_answer *ret)
{
	const struct door *d = arg;

	return hr_live_names(d->w, names, ret);
}

static void
start(void *arg, struct hr_span command, struct hr_span directory, struct hr_span key,
    struct hr_answer *ret)
{
	const struct door *d = arg;

	hr_beside_start(d->w, d->r, command, directory, key, ret);
}

/* ---- access ---- */

static bool
has_key(const struct hr_worker *w, const struct hr_request *r)
{
	return hr_auth_passes(&w->auth, r->session_key) ||
	       hr_auth_passes(&w->auth, hr_request_bearer(r));
}

void
hr_handle_door_key(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	ret->content_type = NULL;
	ret->status = has_key(w, r) ? 204 : 403;
}

/* Returns true if the client accepts this media type. */
static bool
accepts(const char *accept, const char *type, const char *family)
{
	return strstr(accept, type) != NULL || strstr(accept, family) != NULL ||
	       strstr(accept, "*/*") != NULL;
}

static bool
check(const struct hr_worker *w, const struct hr_request *r, struct hr_answer *ret)
{
	if (!has_key(w, r))
		return hr_answer_detail(ret, 403, "Invalid API Key");
	if (!r->mcp)
		return hr_answer_detail(ret, 404, "Not Found");
	if (!hr_request_from_here(r))
		return hr_answer_detail(ret, 403, "This origin is not allowed");
	if (r->content_type[0] != '\0' && !hr_body_is_type(r->content_type, "application/json"))
		return hr_answer_detail(ret, 415, "The body must be application/json");
	return r->accept[0] == '\0' || accepts(r->accept, "application/json", "application/*") ||
	       hr_answer_detail(
		   ret, 406, "Accept must name application/json and text/event-stream");
}

void
hr_handle_door(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct door d = {w, r};
	const struct hr_mcp_env env = {.run_dir = w->run_dir,
	    .work_dir = w->work_dir,
	    .office = w->office,
	    .shell_uid = w->shell_uid,
	    .user_id = w->user_id,
	    .perform = perform,
	    .enter = enter,
	    .leave = leave,
	    .begin = begin,
	    .mark = mark,
	    .active = active,
	    .create = create,
	    .end = end,
	    .names = names,
	    .start = start,
	    .beside = &hr_beside,
	    .server = w,
	    .arg = &d};
	struct hr_mcp_request q = {.version = r->mcp_version,
	    .method = r->mcp_method,
	    .name = r->mcp_name,
	    .events = strstr(r->accept, "text/event-stream") != NULL};

	if (!check(w, r, ret) || !hr_worker_body(w, r, HR_MCP_BODY_MAX, ret))
		return;
	q.body = hr_span_of_buf(&w->body);
	hr_mcp_handle(&env, &q, ret);
}
