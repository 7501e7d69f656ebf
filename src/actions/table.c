/* Holds the table of actions and its look-up. */
#include "config.h"

#include <string.h>

#include "actions/action.h"
#include "proto/obs.h"
#include "proto/python/repr.h"

static const struct {
	const struct hr_action_ops *ops;
	enum hr_repeat repeat;
} table[] = {
    {&hr_act_run, HR_REPEAT_JOIN},
    {&hr_act_run_ipython, HR_REPEAT_JOIN},
    {&hr_act_browse, HR_REPEAT_NEVER},
    {&hr_act_browse_interactive, HR_REPEAT_NEVER},
    {&hr_act_read, HR_REPEAT_FREE},
    {&hr_act_write, HR_REPEAT_MARK},
    {&hr_act_edit, HR_REPEAT_MARK},
};

#define TABLE (sizeof(table) / sizeof(table[0]))

void
hr_action_error(struct hr_answer *ret, const char *text, size_t len)
{
	hr_answer_reset(ret);
	hr_obs_put_error(&ret->body, text, len);
	hr_answer_settle(ret);
	ret->note.error = true;
}

static void
say_no_attribute(struct hr_answer *ret, const char *name, size_t len)
{
	HR_BUF(why, len + 128);

	hr_buf_adds(&why, "'ActionExecutor' object has no attribute '");
	hr_buf_add(&why, name, len);
	hr_buf_addc(&why, '\'');
	hr_answer_internal(ret, &why);
}

/* Refuses a request whose args.action names another action than the event: the original calls its
 * own method of that name. Here nothing is called; the answers are those of the harmless cases. */
static void
refuse_dispatch(const struct hr_event *ev, struct hr_answer *ret)
{
	enum hr_py_type t = hr_json_type(ev->dispatch);
	const char *name;
	HR_BUF(why, 256);
	size_t len;

	if (t == HR_PY_STR && !hr_json_str_is(ev->dispatch, "run")) {
		name = hr_json_str(ev->dispatch, &len);
		say_no_attribute(ret, name, len);
		return;
	}
	if (t == HR_PY_STR) {
		hr_buf_addf(&why, "'%s' object has no attribute 'is_static'", ev->cls->cls);
		hr_action_error(ret, hr_buf_str(&why), why.len);
	} else {
		hr_buf_addf(&why, "attribute name must be string, not '%s'", hr_py_type_name(t));
		hr_answer_internal(ret, &why);
	}
}

static bool
is_refused(const struct hr_event *ev)
{
	return ev->has_dispatch && !hr_json_str_is(ev->dispatch, ev->cls->type);
}

enum hr_repeat
hr_action_repeat(const struct hr_event *ev)
{
	struct hr_arg command;
	size_t i;

	for (i = 0; i < TABLE && !is_refused(ev); i++) {
		if (strcmp(table[i].ops->type, ev->cls->type) != 0)
			continue;
		if (table[i].ops != &hr_act_edit)
			return table[i].repeat;
		hr_event_arg(ev, "command", &command);
		return command.type == HR_PY_STR && command.text.len == 4 &&
			       memcmp(command.text.p, "view", 4) == 0
			   ? HR_REPEAT_FREE
			   : table[i].repeat;
	}
	return HR_REPEAT_FREE;
}

void
hr_action_perform(const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret)
{
	size_t i;

	if (is_refused(ev)) {
		refuse_dispatch(ev, ret);
		return;
	}
	for (i = 0; i < TABLE; i++)
		if (strcmp(table[i].ops->type, ev->cls->type) == 0) {
			table[i].ops->perform(env, ev, ret);
			return;
		}
	say_no_attribute(ret, ev->cls->type, strlen(ev->cls->type));
}
