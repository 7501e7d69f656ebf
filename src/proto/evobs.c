/* Checks an observation that was sent in place of an action. The original decodes it before
 * refusing it, so the errors of decoding come first (doc/actions.md, "Observations instead of
 * actions"). The fields of `metadata` are not checked: their errors are pages of another library's
 * text, and the answer is a 500 either way. */
#include "config.h"

#include <string.h>

#include <json-c/json.h>

#include "proto/event.h"
#include "proto/python/repr.h"

/* Uses the repr of the message, which is a KeyError's text. */
static void
say_unknown(struct json_object *type, struct hr_buf *why)
{
	HR_BUF(text, HR_JSON_BODY_MAX * 4);
	size_t i;

	hr_buf_adds(&text, "'observation['observation']=");
	hr_pyrepr(&text, type);
	hr_buf_adds(&text, "' is not defined. Available observations: dict_keys([");
	for (i = 0; i < hr_observation_classes_n; i++)
		hr_buf_addf(&text, "%s<ObservationType.%s: '%s'>", i > 0 ? ", " : "",
		    hr_observation_classes[i].member, hr_observation_classes[i].type);
	hr_buf_adds(&text, "])");
	hr_pyrepr_str(why, hr_buf_str(&text), text.len);
	if (text.fail != HR_OK)
		why->fail = text.fail;
}

/* Appends the name of the class with its module, as Python's errors of a call before the function
 * itself. */
static void
put_callee(struct hr_buf *why, const struct hr_event_class *c)
{
	hr_buf_addf(why, "openhands.events.observation.%s.%s()", c->module, c->cls);
}

/* Reports extras that are not a dictionary, with the text of the first operation that fails on
 * them. */
static void
say_bad_extras(const struct hr_event_class *c, struct json_object *extras, struct hr_buf *why)
{
	enum hr_py_type t = hr_json_type(extras);

	if (t != HR_PY_STR && t != HR_PY_LIST)
		hr_buf_addf(why, "argument of type '%s' is not iterable", hr_py_type_name(t));
	else if (c->open)
		hr_buf_addf(why, t == HR_PY_STR
				     ? "'str' object does not support item assignment"
				     : "list indices must be integers or slices, not str");
	else {
		put_callee(why, c);
		hr_buf_addf(
		    why, " argument after ** must be a mapping, not %s", hr_py_type_name(t));
	}
}

static int
check_recall(struct json_object *extras, struct hr_buf *why)
{
	static const struct hr_arg_spec args[] = {{"name", HR_ARG_REQUIRED, 0, NULL},
	    {"trigger", HR_ARG_REQUIRED, 0, NULL}, {"content", HR_ARG_REQUIRED, 0, NULL},
	    {NULL, HR_ARG_END, 0, NULL}};
	static const struct hr_event_class knowledge = {
	    .type = "", .member = "", .cls = "MicroagentKnowledge", .args = args};
	struct json_object *v, *item;
	size_t i;

	if (json_object_object_get_ex(extras, "recall_type", &v) &&
	    !hr_json_str_is(v, "workspace_context") && !hr_json_str_is(v, "knowledge")) {
		hr_pyrepr(why, v);
		hr_buf_adds(why, " is not a valid RecallType");
		return -1;
	}
	if (!json_object_object_get_ex(extras, "microagent_knowledge", &v) ||
	    hr_json_type(v) != HR_PY_LIST)
		return 0;
	for (i = 0; i < json_object_array_length(v); i++) {
		item = json_object_array_get_idx(v, i);
		if (hr_json_type(item) == HR_PY_DICT &&
		    hr_event_bind(&knowledge, item, "", why) < 0)
			return -1;
	}
	return 0;
}

/* Moves exit_code and command_id into metadata, which only the class `run` has. */
static int
rewrite_extras(struct json_object *extras, struct hr_buf *why)
{
	static const char *const legacy[] = {"exit_code", "command_id"};
	struct json_object *metadata;
	size_t i;

	for (i = 0; i < 2; i++) {
		if (!json_object_object_get_ex(extras, legacy[i], NULL))
			continue;
		json_object_object_del(extras, legacy[i]);
		if (json_object_object_get_ex(extras, "metadata", &metadata) && metadata != NULL)
			continue;
		metadata = json_object_new_object();
		if (metadata == NULL || json_object_object_add(extras, "metadata", metadata) < 0) {
			json_object_put(metadata);
			why->fail = HR_E_NOMEM;
			return -1;
		}
	}
	json_object_object_del(extras, "formatted_output_and_error");
	return 0;
}

static int
check_extras(const struct hr_event_class *c, struct json_object *extras, struct hr_buf *why)
{
	if (rewrite_extras(extras, why) < 0)
		return -1;
	if (strcmp(c->type, "recall") == 0 && check_recall(extras, why) < 0)
		return -1;
	if (json_object_object_get_ex(extras, "content", NULL)) {
		put_callee(why, c);
		hr_buf_adds(why, " got multiple values for keyword argument 'content'");
		return -1;
	}
	return hr_event_bind(c, extras, "observation", why);
}

int
hr_event_check_observation(struct json_object *d, struct hr_buf *why)
{
	struct json_object *type = NULL, *extras = NULL;
	HR_PUT struct json_object *none = NULL;
	const struct hr_event_class *c = NULL;
	const char *s;
	size_t len;

	/* the caller has checked that the member exists */
	(void)json_object_object_get_ex(d, "observation", &type);
	if (hr_json_type(type) == HR_PY_LIST || hr_json_type(type) == HR_PY_DICT) {
		hr_buf_addf(why, "unhashable type: '%s'", hr_py_type_name(hr_json_type(type)));
		return -1;
	}
	if (hr_json_type(type) == HR_PY_STR) {
		s = hr_json_str(type, &len);
		c = hr_observation_class(s, len);
	}
	if (c == NULL) {
		say_unknown(type, why);
		return -1;
	}
	if (json_object_object_get_ex(d, "extras", &extras)) {
		if (hr_json_type(extras) == HR_PY_DICT)
			return check_extras(c, extras, why);
		say_bad_extras(c, extras, why);
		return -1;
	}
	none = json_object_new_object();
	if (none != NULL)
		return check_extras(c, none, why);
	why->fail = HR_E_NOMEM;
	return -1;
}
