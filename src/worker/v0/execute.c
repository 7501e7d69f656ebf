/* Answers POST /execute_action (doc/http.md, "POST /execute_action"): body, validation, event,
 * dispatch. */
#include "config.h"

#include <string.h>

#include <json-c/json.h>

#include "actions/action.h"
#include "actions/plugin.h"
#include "base/clock.h"
#include "proto/json.h"
#include "proto/python/repr.h"
#include "worker/request/body.h"
#include "worker/request/invalid.h"
#include "worker/request/key.h"
#include "worker/request/trace.h"
#include "worker/once.h"
#include "worker/repeat.h"
#include "worker/worker.h"

/* maximum, since the error repeats a body that is not JSON, with up to four characters per byte */
#define OTHER_BODY_MAX (1u << 20)
#define WHY_MAX (16u << 20)

static const char not_an_object[] =
    "Input should be a valid dictionary or object to extract fields from";

static void
refuse_syntax(const struct hr_json_error *e, struct hr_answer *ret)
{
	HR_BUF(errors, HR_INVALID_MAX);
	HR_BUF(loc, 64);
	HR_BUF(ctx, 256);

	hr_buf_addf(&loc, "'body', %zu", e->pos);
	hr_invalid_open(&errors, "json_invalid", hr_buf_str(&loc), "JSON decode error");
	hr_buf_adds(&errors, "{}");
	hr_buf_adds(&ctx, ", 'ctx': {'error': ");
	hr_pyrepr_str(&ctx, e->text, strlen(e->text));
	hr_buf_addc(&ctx, '}');
	hr_invalid_close(&errors, hr_buf_str(&ctx));
	if (loc.fail != HR_OK || ctx.fail != HR_OK)
		errors.fail = HR_E_NOMEM;
	hr_invalid_answer(&errors, ret);
}

static void
refuse_json(const struct hr_json_error *e, struct hr_answer *ret)
{
	if (e->verdict == HR_JSON_SYNTAX)
		refuse_syntax(e, ret);
	else if (e->verdict == HR_JSON_NOMEM)
		hr_answer_generic(ret);
	else
		hr_answer_detail(ret, 400, "There was an error parsing the body");
}

static void
refuse_missing(struct hr_answer *ret)
{
	HR_BUF(errors, HR_INVALID_MAX);

	hr_invalid_missing(&errors, "'body',");
	hr_invalid_answer(&errors, ret);
}

/* Refuses a body that was not parsed, which stays bytes and is not an object. */
static void
refuse_bytes(const struct hr_buf *body, struct hr_answer *ret)
{
	HR_BUF(errors, HR_INVALID_MAX);

	hr_invalid_open(&errors, "model_attributes_type", "'body',", not_an_object);
	hr_pyrepr_bytes(&errors, hr_buf_str(body), body->len);
	hr_invalid_close(&errors, NULL);
	hr_invalid_answer(&errors, ret);
}

/* Returns the action inside the body, or NULL after sending an error. */
static struct json_object *
validate(struct json_object *body, struct hr_answer *ret)
{
	struct json_object *action = NULL, *input = body;
	HR_BUF(errors, HR_INVALID_MAX);

	if (body == NULL) {
		refuse_missing(ret);
		return NULL;
	}
	if (hr_json_type(body) != HR_PY_DICT) {
		hr_invalid_open(&errors, "model_attributes_type", "'body',", not_an_object);
	} else if (!json_object_object_get_ex(body, "action", &action)) {
		hr_invalid_open(&errors, "missing", "'body', 'action'", "Field required");
	} else if (hr_json_type(action) != HR_PY_DICT) {
		hr_invalid_open(
		    &errors, "dict_type", "'body', 'action'", "Input should be a valid dictionary");
		input = action;
	} else {
		return action;
	}
	hr_pyrepr(&errors, input);
	hr_invalid_close(&errors, NULL);
	hr_invalid_answer(&errors, ret);
	return NULL;
}

/* Performs an action that only a plugin knows. Returns false if no plugin takes it. The journal is
 * entered before the plugin is asked: a request that waits for another with the same key must not
 * hold a plugin connection. */
static bool
perform_custom(struct hr_worker *w, const struct hr_request *r, const struct hr_action_env *of,
    struct json_object *action, struct hr_answer *ret)
{
	const struct hr_event ev = {
	    .id = hr_json_at(action, "id"), .timestamp = hr_json_at(action, "timestamp")};
	struct hr_action_env env = *of;
	HR_BUF(key, HR_KEY_MAX);
	bool taken = true;

	if (!hr_plugin_takes(env.run_dir, action))
		return false;
	hr_key_make(&key, r, &ev, &w->body);
	if (!hr_repeat_enter(w, r, NULL, &key, ret))
		return true;
	env.key = hr_span_of_buf(&key);
	env.journal = &w->journal;
	env.entry = &w->once;
	if (hr_buf_check(&key, NULL) < 0) {
		hr_answer_generic(ret);
	} else if (hr_once_enter(w, env.key, ret)) {
		taken = hr_plugin_custom(&env, action, ret);
		if (taken)
			hr_once_leave(w, ret);
		else
			hr_journal_undo(&w->journal, &w->once);
	}
	if (taken)
		hr_buf_add(&ret->key, env.key.p, env.key.len);
	return taken;
}

static bool
refuse_other(struct hr_answer *ret)
{
	return hr_answer_detail(
	    ret, 400, "a named session takes run actions only, not static ones");
}

/* Checks that the session takes the action: a named one takes only commands, since other actions
 * use no shell or the default one. */
static bool
fits_session(const struct hr_event *ev, struct hr_answer *ret)
{
	if (strcmp(ev->cls->type, "run") == 0 && !hr_event_truth(ev, "is_static"))
		return true;
	return refuse_other(ret);
}

void
hr_execute_action(struct hr_worker *w, const struct hr_request *r, const char *session,
    struct json_object *action, struct hr_span name, enum hr_rules rules, struct hr_answer *ret)
{
	struct hr_action_env env = {.run_dir = w->run_dir,
	    .rules = rules,
	    .work_dir = w->work_dir,
	    .office = w->office,
	    .channel = w->channel,
	    .session = session,
	    .shell_fd = session == NULL ? &w->shell_fd : NULL,
	    .user_id = w->user_id};
	HR_BUF(why, WHY_MAX);
	HR_BUF(key, HR_KEY_MAX);
	struct hr_event ev;

	if (session == NULL && perform_custom(w, r, &env, action, ret))
		return;
	if (hr_event_decode(action, &ev, &why) < 0) {
		hr_answer_internal(ret, &why);
		return;
	}
	if (session != NULL && !fits_session(&ev, ret))
		return;
	atomic_store(&w->board->last_execution_ns, hr_wall_ns());
	if (name.len > 0)
		hr_buf_add(&key, name.p, name.len);
	else
		hr_key_make(&key, r, &ev, &w->body);
	if (name.len == 0 && hr_action_repeat(&ev) != HR_REPEAT_FREE &&
	    !hr_repeat_enter(w, r, session, &key, ret))
		return;
	if (session != NULL &&
	    key.len > 0) /* the same request for another shell is another action */
		hr_buf_addf(&key, "@%s", session);
	if (hr_buf_check(&key, NULL) < 0) {
		hr_answer_generic(ret); /* no action may run without its key */
	} else {
		env.key.p = hr_buf_str(&key);
		env.key.len = key.len;
		hr_once_perform(w, &env, &ev, ret);
		if (!ret->replayed) /* a replayed answer counts as no action */
			ret->note.cls = ev.cls;
		hr_buf_add(&ret->key, env.key.p, env.key.len); /* a longer key is cut short */
		hr_trace_next(r->traceparent, r->request_id, ret->trace);
	}
}

/* Returns true for the only action that /handrail/v1/run takes, in any session. */
static bool
is_plain_run(struct json_object *action)
{
	return hr_json_str_is(hr_json_at(action, "action"), "run") &&
	       !hr_json_true_at(hr_json_at(action, "args"), "is_static");
}

void
hr_execute(struct hr_worker *w, const struct hr_request *r, const char *session,
    enum hr_rules rules, struct hr_answer *ret)
{
	bool json = hr_body_is_json(r->content_type);
	HR_PUT struct json_object *body = NULL;
	struct json_object *action;
	struct hr_json_error e;

	if (!hr_worker_body(w, r, json ? HR_JSON_BODY_MAX : OTHER_BODY_MAX, ret))
		return;
	if (w->body.len == 0) {
		refuse_missing(ret);
	} else if (!json) {
		refuse_bytes(&w->body, ret);
	} else if (hr_json_decode(w->body.p, w->body.len, &body, &e) < 0) {
		refuse_json(&e, ret);
	} else {
		action = validate(body, ret);
		if (action != NULL && rules == HR_RULES_OWN && !is_plain_run(action))
			refuse_other(ret);
		else if (action != NULL && rules == HR_RULES_OWN &&
			 json_object_object_add(action, "exact", json_object_new_boolean(true)) !=
			     0)
			hr_answer_generic(ret);
		else if (action != NULL)
			hr_execute_action(
			    w, r, session, action, (struct hr_span){"", 0}, rules, ret);
	}
}

void
hr_handle_execute(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	hr_execute(w, r, NULL, HR_RULES_V0, ret);
}
