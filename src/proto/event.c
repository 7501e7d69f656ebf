/* Decodes actions: rewrites legacy forms, binds arguments, checks metadata. The order of the steps
 * is the original's, since it decides which of several errors is reported. */
#include "config.h"

#include "proto/event.h"

#include <string.h>

#include <json-c/json.h>

#include "proto/python/literal.h"
#include "proto/python/repr.h"

static bool
has(struct json_object *d, const char *key)
{
	return json_object_object_get_ex(d, key, NULL) != 0;
}

/* Sets a member; takes ownership of v. */
static int
set(struct json_object *d, const char *key, struct json_object *v, struct hr_buf *why)
{
	if (json_object_object_add(d, key, v) == 0)
		return 0;
	json_object_put(v);
	why->fail = HR_E_NOMEM;
	return -1;
}

/* Moves the value to another key, as `d[to] = d.pop(from)`. */
static int
rename_key(struct json_object *d, const char *from, const char *to, struct hr_buf *why)
{
	struct json_object *v = json_object_get(hr_json_at(d, from));

	json_object_object_del(d, from);
	return set(d, to, v, why);
}

/* Converts a value as ActionSecurityRisk(v) does: 1.0 and true equal members, too. */
static const char *
risk_member(struct json_object *v, int *ret_value)
{
	static const char *const names[] = {
	    "<ActionSecurityRisk.UNKNOWN: -1>",
	    "<ActionSecurityRisk.LOW: 0>",
	    "<ActionSecurityRisk.MEDIUM: 1>",
	    "<ActionSecurityRisk.HIGH: 2>",
	};
	enum hr_py_type t = hr_json_type(v);
	int i;

	if (t != HR_PY_BOOL && t != HR_PY_INT && t != HR_PY_FLOAT)
		return NULL;
	for (i = -1; i <= 2; i++)
		if (json_object_get_double(v) == i) {
			*ret_value = i;
			return names[i + 1];
		}
	return NULL;
}

static int
rewrite_risk(struct json_object *args, struct hr_buf *why)
{
	struct json_object *v = hr_json_at(args, "security_risk"), *named;
	const char *name;
	int value;

	if (v == NULL)
		return 0;
	name = risk_member(v, &value);
	if (name == NULL) {
		json_object_object_del(args, "security_risk");
		return 0;
	}
	named = hr_pyrepr_named_int(value, name);
	if (named == NULL) {
		why->fail = HR_E_NOMEM;
		return -1;
	}
	return set(args, "security_risk", named, why);
}

/* Appends a string. Returns 0, or -1 without memory. */
static int
add_str(struct json_object *list, const char *s, size_t len, struct hr_buf *why)
{
	struct json_object *v = json_object_new_string_len(s, (int)len);

	if (list != NULL && v != NULL && json_object_array_add(list, v) == 0)
		return 0;
	json_object_put(v);
	why->fail = HR_E_NOMEM;
	return -1;
}

/* Converts an item of a sequence to a pair, as dict.update() does: a string gives its characters, a
 * dictionary its keys. Returns NULL for an item without a length, or without memory. */
static struct json_object *
pair_of(struct json_object *item, struct hr_buf *why)
{
	enum hr_py_type t = hr_json_type(item);
	struct json_object *pair;
	const char *s;
	size_t len, n;

	if (t == HR_PY_LIST)
		return json_object_get(item);
	if (t != HR_PY_DICT && t != HR_PY_STR)
		return NULL;
	pair = json_object_new_array();
	if (t == HR_PY_STR) {
		/* the third character makes it no pair, however many follow */
		for (s = hr_json_str(item, &len);
		     len > 0 && pair != NULL && json_object_array_length(pair) < 3;
		     s += n, len -= n) {
			for (n = 1; n < len && ((unsigned char)s[n] & 0xc0) == 0x80; n++)
				;
			if (add_str(pair, s, n, why) < 0)
				break;
		}
		return pair;
	}
	json_object_object_foreach(item, key, value)
	{
		(void)value;
		if (add_str(pair, key, strlen(key), why) < 0)
			break;
	}
	return pair;
}

/* Sets a key. Skips one that JSON cannot name, such as a number, and adds Python's error for one
 * that it cannot hash; a tuple is not known from a list. */
static int
update_key(
    struct json_object *args, struct json_object *key, struct json_object *v, struct hr_buf *why)
{
	enum hr_py_type t = hr_json_type(key);
	const char *s;
	size_t len;

	if (t == HR_PY_LIST || t == HR_PY_DICT) {
		hr_buf_addf(why, "unhashable type: '%s'", hr_py_type_name(t));
		return -1;
	}
	s = t == HR_PY_STR ? hr_json_str(key, &len) : NULL;
	if (s == NULL || strlen(s) != len)
		return 0;
	return set(args, s, json_object_get(v), why);
}

/* Updates the dictionary with a sequence of pairs, up to the first item that is none: the original
 * ignores its ValueError. */
static int
args_update_pairs(struct json_object *args, struct json_object *from, struct hr_buf *why)
{
	size_t i, n = json_object_array_length(from);
	struct json_object *item;

	for (i = 0; i < n; i++) {
		item = json_object_array_get_idx(from, i);
		HR_PUT struct json_object *pair = pair_of(item, why);

		if (why->fail != HR_OK)
			return -1;
		if (pair == NULL) {
			hr_buf_addf(why,
			    "cannot convert dictionary update sequence element #%zu to a sequence",
			    i);
			return -1;
		}
		if (json_object_array_length(pair) != 2)
			return 0;
		if (update_key(args, json_object_array_get_idx(pair, 0),
			json_object_array_get_idx(pair, 1), why) < 0)
			return -1;
	}
	return 0;
}

/* Updates the dictionary with the parsed literal, as dict.update(). */
static int
args_update(struct json_object *args, struct json_object *from, struct hr_buf *why)
{
	enum hr_py_type t = hr_json_type(from);

	if (t == HR_PY_STR)
		return 0; /* the original ignores the ValueError here */
	if (t == HR_PY_LIST)
		return args_update_pairs(args, from, why);
	if (t != HR_PY_DICT) {
		hr_buf_addf(why, "'%s' object is not iterable", hr_py_type_name(t));
		return -1;
	}
	json_object_object_foreach(from, key, value)
	{
		if (set(args, key, json_object_get(value), why) < 0)
			return -1;
	}
	return 0;
}

static int
rewrite_translated(struct json_object *args, struct hr_buf *why)
{
	static const char head[] = "print(file_editor(**", tail[] = "))";
	const size_t head_len = sizeof(head) - 1, tail_len = sizeof(tail) - 1;
	HR_PUT struct json_object *literal = NULL, *code = NULL;
	const char *s;
	size_t len;

	if (!has(args, "translated_ipython_code"))
		return 0;
	code = json_object_get(hr_json_at(args, "translated_ipython_code"));
	json_object_object_del(args, "translated_ipython_code");
	if (code != NULL && hr_json_type(code) != HR_PY_STR) {
		hr_buf_addf(why, "'%s' object has no attribute 'startswith'",
		    hr_py_type_name(hr_json_type(code)));
		return -1;
	}
	if (code != NULL) {
		s = hr_json_str(code, &len);
		if (len >= head_len + tail_len && memcmp(s, head, head_len) == 0 &&
		    memcmp(s + len - tail_len, tail, tail_len) == 0 &&
		    hr_pyliteral(s + head_len, len - head_len - tail_len, &literal) == 0 &&
		    args_update(args, literal, why) < 0)
			return -1;
	}
	if (hr_json_str_is(hr_json_at(args, "command"), "view"))
		json_object_object_del(args, "command");
	return 0;
}

/* Implements doc/actions.md, "From JSON to an action", 4. */
static int
rewrite_legacy(struct json_object *args, struct hr_buf *why)
{
	json_object_object_del(args, "timestamp");
	if (hr_json_at(args, "is_confirmed") != NULL) {
		if (rename_key(args, "is_confirmed", "confirmation_state", why) < 0)
			return -1;
	} else {
		json_object_object_del(args, "is_confirmed");
	}
	if (has(args, "images_urls") && rename_key(args, "images_urls", "image_urls", why) < 0)
		return -1;
	if (rewrite_risk(args, why) < 0)
		return -1;
	json_object_object_del(args, "keep_prompt");
	json_object_object_del(args, "task_completed");
	return rewrite_translated(args, why);
}

static void
say_missing(const struct hr_event_class *c, struct json_object *args, int n, struct hr_buf *why)
{
	const struct hr_arg_spec *a;
	int i = 0;

	hr_buf_addf(why, "%s.__init__() missing %d required positional argument%s: ", c->cls, n,
	    n == 1 ? "" : "s");
	for (a = c->args; a->def != HR_ARG_END; a++) {
		if (a->def != HR_ARG_REQUIRED || has(args, a->name))
			continue;
		if (i > 0)
			hr_buf_adds(why, n == 2 ? " and " : i == n - 1 ? ", and " : ", ");
		hr_buf_addf(why, "'%s'", a->name);
		i++;
	}
}

int
hr_event_bind(
    const struct hr_event_class *c, struct json_object *args, const char *own, struct hr_buf *why)
{
	const struct hr_arg_spec *a;
	HR_BUF(tmp, HR_JSON_BODY_MAX);
	const char *s;
	size_t len;
	int missing = 0;

	json_object_object_foreach(args, key, value)
	{
		(void)value;
		if (strcmp(key, "self") == 0) {
			hr_buf_addf(
			    why, "%s.__init__() got multiple values for argument 'self'", c->cls);
			return -1;
		}
		if (c->open || strcmp(key, own) == 0 || hr_event_class_arg(c, key) != NULL)
			continue;
		s = hr_json_key(key, &tmp, &len);
		hr_buf_addf(why, "%s.__init__() got an unexpected keyword argument '", c->cls);
		hr_buf_add(why, s, len);
		hr_buf_addc(why, '\'');
		return -1;
	}
	for (a = c->args; a->def != HR_ARG_END; a++)
		missing += a->def == HR_ARG_REQUIRED && !has(args, a->name);
	if (missing == 0)
		return 0;
	say_missing(c, args, missing, why);
	return -1;
}

/* Checks E7: exactly one of ids and range is given; summary and its offset are both given or both
 * missing. */
static int
check_condensation(const struct hr_event *ev, struct hr_buf *why)
{
	bool ids = hr_json_at(ev->args, "forgotten_event_ids") != NULL;
	bool range = hr_json_at(ev->args, "forgotten_events_start_id") != NULL &&
		     hr_json_at(ev->args, "forgotten_events_end_id") != NULL;
	bool summary = hr_json_at(ev->args, "summary") != NULL;
	bool offset = hr_json_at(ev->args, "summary_offset") != NULL;

	if (ids != range && summary == offset)
		return 0;
	hr_buf_adds(why, "Invalid configuration of the optional fields.");
	return -1;
}

static void
say_unknown_action(struct json_object *type, struct hr_buf *why)
{
	size_t i;

	hr_buf_adds(why, "'action['action']=");
	hr_pyrepr(why, type);
	hr_buf_adds(why, "' is not defined. Available actions: dict_keys([");
	for (i = 0; i < hr_action_classes_n; i++)
		hr_buf_addf(why, "%s<ActionType.%s: '%s'>", i > 0 ? ", " : "",
		    hr_action_classes[i].member, hr_action_classes[i].type);
	hr_buf_adds(why, "])");
}

static int
decode_args(struct json_object *d, struct hr_event *ev, struct hr_buf *why)
{
	HR_BUF(text, HR_JSON_BODY_MAX);
	/* a missing "args" counts as an empty dictionary, which the error text does not show */
	HR_PUT struct json_object *args =
	    ev->args != NULL ? json_object_get(ev->args) : json_object_new_object();

	if (args == NULL)
		text.fail = HR_E_NOMEM;
	else if (hr_event_bind(ev->cls, args, "action", &text) == 0)
		return 0;
	hr_buf_adds(why, "action=");
	hr_pyrepr(why, d);
	hr_buf_adds(why, " has the wrong arguments: ");
	hr_buf_add(why, hr_buf_str(&text), text.len);
	if (text.fail != HR_OK)
		why->fail = text.fail;
	return -1;
}

static int
take_args(struct json_object *d, struct hr_event *ev, struct hr_buf *why)
{
	enum hr_py_type t;

	ev->args = hr_json_at(d, "args");
	t = hr_json_type(ev->args);
	if (t == HR_PY_LIST) {
		hr_buf_adds(why, "pop expected at most 1 argument, got 2");
		return -1;
	}
	if (t != HR_PY_DICT) {
		hr_buf_addf(why, "'%s' object has no attribute 'pop'", hr_py_type_name(t));
		return -1;
	}
	if (rewrite_legacy(ev->args, why) < 0)
		return -1;
	ev->has_dispatch = json_object_object_get_ex(ev->args, "action", &ev->dispatch);
	return 0;
}

static int
decode_action(struct json_object *d, struct hr_event *ev, struct hr_buf *why)
{
	struct json_object *type = hr_json_at(d, "action");
	const char *s;
	size_t len;

	if (hr_json_type(type) == HR_PY_STR) {
		s = hr_json_str(type, &len);
		ev->cls = hr_action_class(s, len);
	}
	if (ev->cls == NULL) {
		say_unknown_action(type, why);
		return -1;
	}
	if (has(d, "args") && take_args(d, ev, why) < 0)
		return -1;
	if (decode_args(d, ev, why) < 0)
		return -1;
	return strcmp(ev->cls->type, "condensation") == 0 ? check_condensation(ev, why) : 0;
}

/* Checks the cost and the lists of metrics, but not the items of the lists. */
static int
check_metrics(struct json_object *metrics, struct hr_buf *why)
{
	static const char *const lists[] = {"costs", "response_latencies", "token_usages"};
	struct json_object *v;
	enum hr_py_type t;
	size_t i;

	if (json_object_object_get_ex(metrics, "accumulated_cost", &v)) {
		t = hr_json_type(v);
		if (t != HR_PY_INT && t != HR_PY_FLOAT && t != HR_PY_BOOL) {
			hr_buf_addf(why, "'<' not supported between instances of '%s' and 'int'",
			    hr_py_type_name(t));
			return -1;
		}
		if (json_object_get_double(v) < 0) {
			hr_buf_adds(why, "Total cost cannot be negative.");
			return -1;
		}
	}
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (!json_object_object_get_ex(metrics, lists[i], &v))
			continue;
		t = hr_json_type(v);
		if (t != HR_PY_LIST && t != HR_PY_DICT && t != HR_PY_STR) {
			hr_buf_addf(why, "'%s' object is not iterable", hr_py_type_name(t));
			return -1;
		}
	}
	return 0;
}

/* Checks the types of the metadata members. The fields of tool_call_metadata are accepted as they
 * come, since the original validates and discards them (doc/actions.md, "From JSON to an action").
 */
static int
check_metadata(struct json_object *d, struct hr_buf *why)
{
	struct json_object *v;

	if (has(d, "source")) {
		v = hr_json_at(d, "source");
		if (!hr_json_str_is(v, "agent") && !hr_json_str_is(v, "user") &&
		    !hr_json_str_is(v, "environment")) {
			hr_pyrepr(why, v);
			hr_buf_adds(why, " is not a valid EventSource");
			return -1;
		}
	}
	if (json_object_object_get_ex(d, "tool_call_metadata", &v) &&
	    hr_json_type(v) != HR_PY_DICT) {
		hr_buf_addf(why,
		    "openhands.events.tool.ToolCallMetadata() argument after ** must be a mapping, "
		    "not %s",
		    hr_py_type_name(hr_json_type(v)));
		return -1;
	}
	v = hr_json_at(d, "llm_metrics");
	return hr_json_type(v) == HR_PY_DICT ? check_metrics(v, why) : 0;
}

int
hr_event_decode(struct json_object *d, struct hr_event *ret, struct hr_buf *why)
{
	struct hr_event ev = {.cls = NULL};

	if (has(d, "action")) {
		if (decode_action(d, &ev, why) < 0 || check_metadata(d, why) < 0)
			return -1;
		ev.timeout = hr_json_at(d, "timeout");
		ev.whole_output = hr_json_true_at(d, "whole_output");
		ev.exact = hr_json_true_at(d, "exact");
		ev.ready_s = hr_json_number_at(d, "ready_s");
		ev.id = hr_json_at(d, "id");
		ev.timestamp = hr_json_at(d, "timestamp");
		*ret = ev;
		return 0;
	}
	if (!has(d, "observation")) {
		hr_buf_adds(why, "Unknown event type: ");
		hr_pyrepr(why, d);
	} else if (hr_event_check_observation(d, why) == 0 && check_metadata(d, why) == 0) {
		hr_buf_adds(why, "400: Invalid action type");
	}
	return -1;
}

static void
arg_default(const struct hr_arg_spec *a, struct hr_arg *ret)
{
	switch (a->def) {
	case HR_ARG_FALSE:
	case HR_ARG_TRUE:
		ret->type = HR_PY_BOOL;
		ret->number = a->def == HR_ARG_TRUE;
		break;
	case HR_ARG_INT:
		ret->type = HR_PY_INT;
		ret->number = a->number;
		break;
	case HR_ARG_STR:
		ret->type = HR_PY_STR;
		ret->text.p = a->text;
		ret->text.len = strlen(a->text);
		break;
	case HR_ARG_LIST: ret->type = HR_PY_LIST; break;
	case HR_ARG_DICT: ret->type = HR_PY_DICT; break;
	default: ret->type = HR_PY_NONE; break;
	}
	ret->truth = ret->number != 0 || ret->text.len > 0;
}

void
hr_event_arg(const struct hr_event *ev, const char *name, struct hr_arg *ret)
{
	const struct hr_arg_spec *a = hr_event_class_arg(ev->cls, name);
	bool negative;
	size_t len;

	hr_assert(a != NULL);
	*ret = (struct hr_arg){.text = {"", 0}};
	if (ev->args == NULL || !json_object_object_get_ex(ev->args, name, &ret->given)) {
		arg_default(a, ret);
		return;
	}
	ret->type = hr_json_type(ret->given);
	ret->truth = hr_py_truthy(ret->given);
	if (ret->type == HR_PY_STR)
		ret->text.p = hr_json_str(ret->given, &ret->text.len);
	else if (ret->type == HR_PY_BOOL ||
		 (ret->type == HR_PY_INT && hr_json_big_int(ret->given, &negative, &len) == NULL))
		ret->number = json_object_get_int64(ret->given);
}

bool
hr_event_truth(const struct hr_event *ev, const char *name)
{
	struct hr_arg a;

	hr_event_arg(ev, name, &a);
	return a.truth;
}
