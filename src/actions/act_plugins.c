/* Performs actions of the contract that only a plugin can perform; without a plugin the answer is
 * the original's. */
#include "config.h"

#include <string.h>

#include <json-c/json.h>

#include "actions/action.h"
#include "actions/plugin.h"
#include "base/fd.h"
#include "proto/python/repr.h"

static struct json_object *
action_of(const struct hr_event *ev)
{
	struct json_object *o =
	    hr_json_object(NULL, "action", json_object_new_string(ev->cls->type), NULL);

	/* The members may be null. */
	if (o != NULL &&
	    (json_object_object_add(o, "args", json_object_get(ev->args)) != 0 ||
		json_object_object_add(o, "timeout", json_object_get(ev->timeout)) != 0)) {
		json_object_put(o); /* frees the members that were added */
		return NULL;
	}
	return o;
}

/* Performs the action by a plugin. `keeps`: the plugin has a limit of its own, and the action's is
 * ignored. Returns false, with ret untouched, if no plugin performs it. */
static bool
ask_plugin(
    const struct hr_action_env *env, const struct hr_event *ev, bool keeps, struct hr_answer *ret)
{
	const char *type = ev->cls->type;
	HR_PUT struct json_object *action = NULL;
	HR_CLOSE int fd = -1;
	double limit_s = 0;
	HR_BUF(why, HR_JSON_BODY_MAX);
	int r = hr_plugin_reach(env->run_dir, type, strlen(type), &fd, ret);

	if (r <= 0)
		return r < 0;
	action = action_of(ev);
	if (ev->timeout != NULL && hr_py_float(ev->timeout, &limit_s, &why) < 0)
		hr_answer_internal(ret, &why);
	else if (action == NULL)
		hr_answer_generic(ret);
	else
		hr_plugin_perform(env, fd, type, action, keeps ? 0 : limit_s, ret);
	return true;
}

static void
perform_run_ipython(
    const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret)
{
	if (!ask_plugin(env, ev, false, ret))
		hr_answer_detail(ret, 500,
		    "Internal server error: JupyterRequirement not found. Unable to run IPython "
		    "action.");
}

/* Answers the same for a plugin that is disabled, missing or failed: a client sees no
 * difference. */
static void
perform_browse(const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret)
{
	static const char text[] = "Browser functionality is not supported or disabled.";
	struct hr_note note;

	if (ask_plugin(env, ev, true, ret) && !(ret->note.plugin_failed && ret->status == 500))
		return;
	note = ret->note;
	hr_action_error(ret, text, strlen(text));
	note.error = true;
	ret->note = note;
}

const struct hr_action_ops hr_act_run_ipython = {"run_ipython", perform_run_ipython};
const struct hr_action_ops hr_act_browse = {"browse", perform_browse};
const struct hr_action_ops hr_act_browse_interactive = {"browse_interactive", perform_browse};
