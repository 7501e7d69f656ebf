/* From JSON to actions: what the corpus of conversations does not show. */
#include "config.h"

#include "proto/event.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "lines.h"

static struct json_object *root;
static struct hr_event ev;

static int
decode(const char *json, struct hr_buf *why)
{
	struct hr_json_error e;

	json_object_put(root);
	root = NULL;
	ck_assert_msg(hr_json_decode(json, strlen(json), &root, &e) == 0, "%s", json);
	hr_buf_init(why, 1 << 20);
	return hr_event_decode(root, &ev, why);
}

static void
good(const char *json)
{
	struct hr_buf why;

	ck_assert_msg(decode(json, &why) == 0, "%s: %s", json, hr_buf_str(&why));
	hr_buf_done(&why);
}

/* The last word of a long text is enough for some. */
static void
bad(const char *json, const char *want)
{
	struct hr_buf why;

	ck_assert_msg(decode(json, &why) == -1, "%s", json);
	ck_assert_int_eq(why.fail, HR_OK);
	ck_assert_str_eq(hr_buf_str(&why), want);
	hr_buf_done(&why);
}

static void
forget(void)
{
	json_object_put(root);
	root = NULL;
}

START_TEST(defaults)
{
	struct hr_arg a;

	good("{\"action\":\"run\",\"args\":{\"command\":\"ls\"}}");
	ck_assert_str_eq(ev.cls->type, "run");
	hr_event_arg(&ev, "command", &a);
	ck_assert_int_eq(a.type, HR_PY_STR);
	ck_assert_uint_eq(a.text.len, 2);
	hr_event_arg(&ev, "security_risk", &a);
	ck_assert_int_eq(a.type, HR_PY_INT);
	ck_assert_int_eq(a.number, -1);
	hr_event_arg(&ev, "cwd", &a);
	ck_assert_int_eq(a.type, HR_PY_NONE);
	hr_event_arg(&ev, "confirmation_state", &a);
	ck_assert_str_eq(a.text.p, "confirmed");
	ck_assert(!hr_event_truth(&ev, "blocking"));
	ck_assert_ptr_null(ev.timeout);
	good("{\"action\":\"run_ipython\",\"args\":{\"code\":\"\"},\"timeout\":null}");
	ck_assert(hr_event_truth(&ev, "include_extra"));
	ck_assert_ptr_null(ev.timeout);
	good("{\"action\":\"edit\",\"args\":{\"path\":\"p\",\"insert_line\":3}}");
	hr_event_arg(&ev, "insert_line", &a);
	ck_assert_int_eq(a.number, 3);
	hr_event_arg(&ev, "start", &a);
	ck_assert_int_eq(a.number, 1);
	good("{\"action\":\"null\"}");
	ck_assert_ptr_null(ev.args);
	forget();
}
END_TEST

START_TEST(truthiness)
{
	good("{\"action\":\"run\",\"args\":{\"command\":1,\"is_input\":\"false\",\"blocking\":[],"
	     "\"hidden\":{\"a\":1},\"is_static\":0.0}}");
	ck_assert(hr_event_truth(&ev, "is_input"));
	ck_assert(!hr_event_truth(&ev, "blocking"));
	ck_assert(hr_event_truth(&ev, "hidden"));
	ck_assert(!hr_event_truth(&ev, "is_static"));
	forget();
}
END_TEST

START_TEST(legacy_rewriting)
{
	struct hr_arg a;

	good(
	    "{\"action\":\"run\",\"args\":{\"command\":\"x\",\"timestamp\":\"t\",\"keep_prompt\":1,"
	    "\"task_completed\":2,\"is_confirmed\":\"rejected\",\"translated_ipython_code\":null}"
	    "}");
	hr_event_arg(&ev, "confirmation_state", &a);
	ck_assert_str_eq(a.text.p, "rejected");
	good("{\"action\":\"run\",\"args\":{\"command\":\"x\",\"is_confirmed\":null}}");
	hr_event_arg(&ev, "confirmation_state", &a);
	ck_assert_str_eq(a.text.p, "confirmed");
	good("{\"action\":\"message\",\"args\":{\"content\":\"x\",\"images_urls\":[\"u\"]}}");
	hr_event_arg(&ev, "image_urls", &a);
	ck_assert_int_eq(a.type, HR_PY_LIST);
	forget();
}
END_TEST

/* The rewriting shows in the error texts. */
START_TEST(rewritten_args_in_texts)
{
#define RISK(json, text)                                                                           \
	bad("{\"action\":\"run\",\"args\":{\"security_risk\":" json "}}",                          \
	    "action={'action': 'run', 'args': {" text "}} has the wrong arguments: "               \
	    "CmdRunAction.__init__() missing 1 required positional argument: 'command'")
	RISK("0", "'security_risk': <ActionSecurityRisk.LOW: 0>");
	RISK("-1", "'security_risk': <ActionSecurityRisk.UNKNOWN: -1>");
	RISK("1.0", "'security_risk': <ActionSecurityRisk.MEDIUM: 1>");
	RISK("true", "'security_risk': <ActionSecurityRisk.MEDIUM: 1>");
	RISK("2", "'security_risk': <ActionSecurityRisk.HIGH: 2>");
	RISK("null", "'security_risk': None");
	RISK("99", "");
	RISK("\"1\"", "");
	RISK("[]", "");
	RISK("NaN", "");
	RISK("123456789012345678901234567890", "");
	bad("{\"action\":\"read\",\"args\":{\"is_confirmed\":1,\"confirmation_state\":2,"
	    "\"images_urls\":3,\"x\":4}}",
	    "action={'action': 'read', 'args': {'confirmation_state': 1, 'x': 4, 'image_urls': 3}} "
	    "has the wrong arguments: FileReadAction.__init__() got an unexpected keyword argument "
	    "'confirmation_state'");
	bad("{\"action\":\"read\",\"args\":{\"x\":1,\"keep_prompt\":1,\"timestamp\":2}}",
	    "action={'action': 'read', 'args': {'x': 1}} has the wrong arguments: "
	    "FileReadAction.__init__() got an unexpected keyword argument 'x'");
	forget();
}
END_TEST

START_TEST(translated_code)
{
	struct hr_arg a;

	good("{\"action\":\"edit\",\"args\":{\"path\":\"p\",\"old_str\":\"o\","
	     "\"translated_ipython_code\":\"print(file_editor(**{'command': 'str_replace', "
	     "'path': '/q', 'new_str': 'it\\\\'s'}))\"}}");
	hr_event_arg(&ev, "path", &a);
	ck_assert_str_eq(a.text.p, "/q");
	hr_event_arg(&ev, "new_str", &a);
	ck_assert_str_eq(a.text.p, "it's");
	hr_event_arg(&ev, "old_str", &a);
	ck_assert_str_eq(a.text.p, "o");
	/* `view` goes only where the key was present */
	good("{\"action\":\"edit\",\"args\":{\"path\":\"p\",\"command\":\"view\"}}");
	hr_event_arg(&ev, "command", &a);
	ck_assert_str_eq(a.text.p, "view");
	good("{\"action\":\"read\",\"args\":{\"translated_ipython_code\":"
	     "\"print(file_editor(**{'command': 'view', 'path': '/q'}))\"}}");
	hr_event_arg(&ev, "path", &a);
	ck_assert_str_eq(a.text.p, "/q");
	good("{\"action\":\"read\",\"args\":{\"path\":\"p\",\"command\":\"view\","
	     "\"translated_ipython_code\":\"\"}}");
	good("{\"action\":\"read\",\"args\":{\"path\":\"p\","
	     "\"translated_ipython_code\":\"print(file_editor(**{'path': ))\"}}");
	hr_event_arg(&ev, "path", &a);
	ck_assert_str_eq(a.text.p, "p");
	/* a sequence of pairs, as dict.update() takes it, and the pairs before one that is none */
	good("{\"action\":\"read\",\"args\":{\"translated_ipython_code\":"
	     "\"print(file_editor(**[('path', '/r'), {'impl_source': 1, 'oh_aci': 2}, 'x', "
	     "5]))\"}}");
	hr_event_arg(&ev, "path", &a);
	ck_assert_str_eq(a.text.p, "/r");
	hr_event_arg(&ev, "impl_source", &a);
	ck_assert_str_eq(a.text.p, "oh_aci");
	bad("{\"action\":\"read\",\"args\":{\"translated_ipython_code\":"
	    "\"print(file_editor(**[('path', '/r'), 5]))\"}}",
	    "cannot convert dictionary update sequence element #1 to a sequence");
	/* a string of two characters is a pair, and a key that JSON cannot name is left out */
#define PAIRS(items)                                                                               \
	"{\"action\":\"null\",\"args\":{\"translated_ipython_code\":"                              \
	"\"print(file_editor(**" items "))\"}}"
#define REFUSED(args)                                                                              \
	"action={'action': 'null', 'args': {" args "}} has the wrong arguments: "                  \
	"NullAction.__init__() got an unexpected keyword argument "
	bad(PAIRS("['a\\u00e9', ('c', 1), 'bcd', ('d', 2)]"),
	    REFUSED("'a': '\u00e9', 'c': 1") "'a'");
	bad(PAIRS("[(1, 2), (None, 2), ('\\\\0', 2), '\\\\0b', ('c', 1), '', ('d', 2)]"),
	    REFUSED("'c': 1") "'c'");
	bad(PAIRS("[('c', 1), ({}, 2)]"), "unhashable type: 'dict'");
	bad(PAIRS("[([], 2)]"), "unhashable type: 'list'");
#undef PAIRS
#undef REFUSED
	bad("{\"action\":\"read\",\"args\":{\"translated_ipython_code\":5}}",
	    "'int' object has no attribute 'startswith'");
	forget();
}
END_TEST

START_TEST(binding)
{
	bad("{\"action\":\"run\",\"args\":{\"self\":1,\"zz\":2}}",
	    "action={'action': 'run', 'args': {'self': 1, 'zz': 2}} has the wrong arguments: "
	    "CmdRunAction.__init__() got multiple values for argument 'self'");
	bad("{\"action\":\"delegate\",\"args\":{}}",
	    "action={'action': 'delegate', 'args': {}} has the wrong arguments: "
	    "AgentDelegateAction.__init__() missing 2 required positional arguments: 'agent' and "
	    "'inputs'");
	bad("{\"action\":\"run\",\"args\":{\"x\":1,\"command\":\"a\"},\"args\":{\"y\":2}}",
	    "action={'action': 'run', 'args': {'y': 2}} has the wrong arguments: "
	    "CmdRunAction.__init__() got an unexpected keyword argument 'y'");
	good("{\"action\":\"run\",\"args\":{\"command\":\"x\",\"action\":\"read\"}}");
	ck_assert(ev.has_dispatch);
	ck_assert(hr_json_str_is(ev.dispatch, "read"));
	good("{\"action\":\"run\",\"args\":{\"command\":\"x\",\"action\":null}}");
	ck_assert(ev.has_dispatch);
	ck_assert_ptr_null(ev.dispatch);
	bad("{\"action\":\"run\\u0000\"}",
	    "'action['action']='run\\x00'' is not defined. Available actions: "
	    "dict_keys([<ActionType.NULL: 'null'>, <ActionType.RUN: 'run'>, "
	    "<ActionType.RUN_IPYTHON: 'run_ipython'>, <ActionType.BROWSE: 'browse'>, "
	    "<ActionType.BROWSE_INTERACTIVE: 'browse_interactive'>, <ActionType.READ: 'read'>, "
	    "<ActionType.WRITE: 'write'>, <ActionType.EDIT: 'edit'>, <ActionType.THINK: 'think'>, "
	    "<ActionType.FINISH: 'finish'>, <ActionType.REJECT: 'reject'>, "
	    "<ActionType.DELEGATE: 'delegate'>, <ActionType.RECALL: 'recall'>, "
	    "<ActionType.CHANGE_AGENT_STATE: 'change_agent_state'>, "
	    "<ActionType.MESSAGE: 'message'>, <ActionType.SYSTEM: 'system'>, "
	    "<ActionType.CONDENSATION: 'condensation'>, "
	    "<ActionType.CONDENSATION_REQUEST: 'condensation_request'>, "
	    "<ActionType.MCP: 'call_tool_mcp'>, <ActionType.TASK_TRACKING: 'task_tracking'>, "
	    "<ActionType.LOOP_RECOVERY: 'loop_recovery'>])");
	forget();
}
END_TEST

START_TEST(condensations)
{
	static const char e7[] = "Invalid configuration of the optional fields.";

	good("{\"action\":\"condensation\",\"args\":{\"forgotten_event_ids\":[]}}");
	good("{\"action\":\"condensation\",\"args\":{\"forgotten_events_start_id\":1,"
	     "\"forgotten_events_end_id\":2,\"summary\":\"\",\"summary_offset\":0}}");
	bad("{\"action\":\"condensation\"}", e7);
	bad("{\"action\":\"condensation\",\"args\":{\"forgotten_events_start_id\":1}}", e7);
	bad("{\"action\":\"condensation\",\"args\":{\"forgotten_event_ids\":[1],"
	    "\"forgotten_events_start_id\":1,\"forgotten_events_end_id\":2}}",
	    e7);
	bad("{\"action\":\"condensation\",\"args\":{\"forgotten_event_ids\":[1],"
	    "\"summary_offset\":1}}",
	    e7);
	forget();
}
END_TEST

START_TEST(metadata)
{
	good("{\"action\":\"null\",\"source\":\"environment\",\"id\":\"x\",\"cause\":[],"
	     "\"timestamp\":5,\"tool_call_metadata\":{},\"llm_metrics\":9,\"unknown\":1}");
	ck_assert_ptr_nonnull(ev.id);
	ck_assert_ptr_nonnull(ev.timestamp);
	bad("{\"action\":\"null\",\"source\":[\"it's\"]}", "[\"it's\"] is not a valid EventSource");
	bad("{\"action\":\"null\",\"llm_metrics\":{\"accumulated_cost\":-0.5}}",
	    "Total cost cannot be negative.");
	good("{\"action\":\"null\",\"llm_metrics\":{\"accumulated_cost\":0,\"costs\":[]}}");
	/* the arguments are looked at first */
	bad("{\"action\":\"null\",\"args\":5,\"source\":1}", "'int' object has no attribute 'pop'");
	forget();
}
END_TEST

START_TEST(observations)
{
	static const char refused[] = "400: Invalid action type";

	bad("{\"observation\":\"null\"}", refused);
	bad("{\"observation\":\"run\",\"extras\":{\"command\":1,\"bogus\":2}}", refused);
	bad("{\"observation\":\"read\",\"extras\":{\"path\":1,\"bogus\":2}}",
	    "FileReadObservation.__init__() got an unexpected keyword argument 'bogus'");
	bad("{\"observation\":\"browse\"}", "BrowserOutputObservation.__init__() missing 2 "
					    "required positional arguments: 'url' and "
					    "'trigger_by_action'");
	bad("{\"observation\":\"think\",\"extras\":{\"exit_code\":1}}",
	    "AgentThinkObservation.__init__() got an unexpected keyword argument 'metadata'");
	bad("{\"observation\":\"think\",\"extras\":{\"formatted_output_and_error\":1}}", refused);
	bad("{\"observation\":\"recall\",\"extras\":{\"recall_type\":\"zz\"}}",
	    "'zz' is not a valid RecallType");
	bad("{\"observation\":\"recall\",\"extras\":{\"recall_type\":\"knowledge\","
	    "\"microagent_knowledge\":[{\"name\":1}]}}",
	    "MicroagentKnowledge.__init__() missing 2 required positional arguments: 'trigger' and "
	    "'content'");
	bad("{\"observation\":[1]}", "unhashable type: 'list'");
	bad("{\"observation\":\"null\",\"source\":1}", "1 is not a valid EventSource");
	bad("{\"observation\":\"null\",\"extras\":null}",
	    "argument of type 'NoneType' is not iterable");
	/* an action wins over an observation */
	good("{\"observation\":\"null\",\"action\":\"null\"}");
	forget();
}
END_TEST

START_TEST(unknown_observation)
{
	struct hr_buf why;

	ck_assert_int_eq(decode("{\"observation\":\"b\\\"\"}", &why), -1);
	/* KeyError: the repr of the text, here with both kinds of quotes in it */
	ck_assert(strncmp(why.p, "'\\'observation[\\'observation\\']=\\'b\"\\'\\' is not defined. ",
		      50) == 0);
	hr_buf_done(&why);
	forget();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("event");
	TCase *c = tcase_create("event");

	tcase_add_test(c, defaults);
	tcase_add_test(c, truthiness);
	tcase_add_test(c, legacy_rewriting);
	tcase_add_test(c, rewritten_args_in_texts);
	tcase_add_test(c, translated_code);
	tcase_add_test(c, binding);
	tcase_add_test(c, condensations);
	tcase_add_test(c, metadata);
	tcase_add_test(c, observations);
	tcase_add_test(c, unknown_observation);
	suite_add_tcase(s, c);
	return lines_run(s);
}
