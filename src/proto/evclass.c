/* Holds the tables: only data and three look-ups. */
#include "config.h"

#include "proto/evclass.h"

#include <string.h>

/* clang-format off */
#define REQ(n) {n, HR_ARG_REQUIRED, 0, NULL}
#define NIL(n) {n, HR_ARG_NULL, 0, NULL}
#define NO(n) {n, HR_ARG_FALSE, 0, NULL}
#define YES(n) {n, HR_ARG_TRUE, 0, NULL}
#define INT(n, v) {n, HR_ARG_INT, v, NULL}
#define STR(n, v) {n, HR_ARG_STR, 0, v}
#define LIST(n) {n, HR_ARG_LIST, 0, NULL}
#define DICT(n) {n, HR_ARG_DICT, 0, NULL}
#define NONE (const struct hr_arg_spec[]){{NULL, HR_ARG_END, 0, NULL}}
#define ARGS_NONE NONE, false, NULL
#define SEEN_NONE(module) NONE, false, module
#define SPECS(...) (const struct hr_arg_spec[]){__VA_ARGS__, {NULL, HR_ARG_END, 0, NULL}}
#define ARGS(...) SPECS(__VA_ARGS__), false, NULL
#define SEEN(module, ...) SPECS(__VA_ARGS__), false, module /* an observation's */
#define RUNS(...) SPECS(__VA_ARGS__), true, NULL /* arguments of an action that a sandbox performs */
/* clang-format on */

const struct hr_event_class hr_action_classes[] = {
    {"null", "NULL", "NullAction", false, ARGS_NONE},
    {"run", "RUN", "CmdRunAction", false,
	RUNS(REQ("command"), NO("is_input"), STR("thought", ""), NO("blocking"), NO("is_static"),
	    NIL("cwd"), NO("hidden"), STR("confirmation_state", "confirmed"),
	    INT("security_risk", -1))},
    {"run_ipython", "RUN_IPYTHON", "IPythonRunCellAction", false,
	RUNS(REQ("code"), STR("thought", ""), YES("include_extra"),
	    STR("confirmation_state", "confirmed"), INT("security_risk", -1),
	    STR("kernel_init_code", ""))},
    {"browse", "BROWSE", "BrowseURLAction", false,
	RUNS(REQ("url"), STR("thought", ""), INT("security_risk", -1), NO("return_axtree"))},
    {"browse_interactive", "BROWSE_INTERACTIVE", "BrowseInteractiveAction", false,
	RUNS(REQ("browser_actions"), STR("thought", ""), STR("browsergym_send_msg_to_user", ""),
	    INT("security_risk", -1), NO("return_axtree"))},
    {"read", "READ", "FileReadAction", false,
	RUNS(REQ("path"), INT("start", 0), INT("end", -1), STR("thought", ""),
	    INT("security_risk", -1), STR("impl_source", "default"), NIL("view_range"))},
    {"write", "WRITE", "FileWriteAction", false,
	RUNS(REQ("path"), REQ("content"), INT("start", 0), INT("end", -1), STR("thought", ""),
	    INT("security_risk", -1))},
    {"edit", "EDIT", "FileEditAction", false,
	RUNS(REQ("path"), STR("command", ""), NIL("file_text"), NIL("old_str"), NIL("new_str"),
	    NIL("insert_line"), STR("content", ""), INT("start", 1), INT("end", -1),
	    STR("thought", ""), INT("security_risk", -1), STR("impl_source", "oh_aci"))},
    {"think", "THINK", "AgentThinkAction", false, ARGS(STR("thought", ""))},
    {"finish", "FINISH", "AgentFinishAction", false,
	ARGS(STR("final_thought", ""), DICT("outputs"), STR("thought", ""))},
    {"reject", "REJECT", "AgentRejectAction", false, ARGS(DICT("outputs"), STR("thought", ""))},
    {"delegate", "DELEGATE", "AgentDelegateAction", false,
	ARGS(REQ("agent"), REQ("inputs"), STR("thought", ""))},
    {"recall", "RECALL", "RecallAction", false,
	ARGS(REQ("recall_type"), STR("query", ""), STR("thought", ""))},
    {"change_agent_state", "CHANGE_AGENT_STATE", "ChangeAgentStateAction", false,
	ARGS(REQ("agent_state"), STR("thought", ""))},
    {"message", "MESSAGE", "MessageAction", false,
	ARGS(REQ("content"), NIL("file_urls"), NIL("image_urls"), NO("wait_for_response"),
	    INT("security_risk", -1))},
    {"system", "SYSTEM", "SystemMessageAction", false,
	ARGS(REQ("content"), NIL("tools"), STR("openhands_version", "0.62.0"), NIL("agent_class"))},
    {"condensation", "CONDENSATION", "CondensationAction", false,
	ARGS(NIL("forgotten_event_ids"), NIL("forgotten_events_start_id"),
	    NIL("forgotten_events_end_id"), NIL("summary"), NIL("summary_offset"))},
    {"condensation_request", "CONDENSATION_REQUEST", "CondensationRequestAction", false, ARGS_NONE},
    {"call_tool_mcp", "MCP", "MCPAction", false,
	RUNS(REQ("name"), DICT("arguments"), STR("thought", ""), INT("security_risk", -1))},
    {"task_tracking", "TASK_TRACKING", "TaskTrackingAction", false,
	ARGS(STR("command", "view"), LIST("task_list"), STR("thought", ""))},
    {"loop_recovery", "LOOP_RECOVERY", "LoopRecoveryAction", false, ARGS(INT("option", 1))},
};
const size_t hr_action_classes_n = sizeof(hr_action_classes) / sizeof(hr_action_classes[0]);

const struct hr_event_class hr_observation_classes[] = {
    {"null", "NULL", "NullObservation", false, SEEN_NONE("empty")},
    {"run", "RUN", "CmdOutputObservation", true,
	SEEN("commands", REQ("command"), NIL("metadata"), NO("hidden"))},
    {"run_ipython", "RUN_IPYTHON", "IPythonRunCellObservation", false,
	SEEN("commands", REQ("code"), NIL("image_urls"))},
    {"browse", "BROWSE", "BrowserOutputObservation", false,
	SEEN("browse", REQ("url"), REQ("trigger_by_action"), STR("screenshot", ""),
	    NIL("screenshot_path"), STR("set_of_marks", ""), NO("error"), LIST("goal_image_urls"),
	    LIST("open_pages_urls"), INT("active_page_index", -1), DICT("dom_object"),
	    DICT("axtree_object"), DICT("extra_element_properties"), STR("last_browser_action", ""),
	    STR("last_browser_action_error", ""), STR("focused_element_bid", ""),
	    NO("filter_visible_only"))},
    {"read", "READ", "FileReadObservation", false,
	SEEN("files", REQ("path"), STR("impl_source", "default"))},
    {"write", "WRITE", "FileWriteObservation", false, SEEN("files", REQ("path"))},
    {"edit", "EDIT", "FileEditObservation", false,
	SEEN("files", STR("path", ""), NO("prev_exist"), NIL("old_content"), NIL("new_content"),
	    STR("impl_source", "llm_based_edit"), NIL("diff"), NIL("_diff_cache"))},
    {"delegate", "DELEGATE", "AgentDelegateObservation", false, SEEN("delegate", REQ("outputs"))},
    {"success", "SUCCESS", "SuccessObservation", false, SEEN_NONE("success")},
    {"error", "ERROR", "ErrorObservation", false, SEEN("error", STR("error_id", ""))},
    {"agent_state_changed", "AGENT_STATE_CHANGED", "AgentStateChangedObservation", false,
	SEEN("agent", REQ("agent_state"), STR("reason", ""))},
    {"user_rejected", "USER_REJECTED", "UserRejectObservation", false, SEEN_NONE("reject")},
    {"condense", "CONDENSE", "AgentCondensationObservation", false, SEEN_NONE("agent")},
    {"think", "THINK", "AgentThinkObservation", false, SEEN_NONE("agent")},
    {"recall", "RECALL", "RecallObservation", false,
	SEEN("agent", REQ("recall_type"), STR("repo_name", ""), STR("repo_directory", ""),
	    STR("repo_branch", ""), STR("repo_instructions", ""), DICT("runtime_hosts"),
	    STR("additional_agent_instructions", ""), STR("date", ""),
	    DICT("custom_secrets_descriptions"), STR("conversation_instructions", ""),
	    STR("working_dir", ""), LIST("microagent_knowledge"))},
    {"mcp", "MCP", "MCPObservation", false, SEEN("mcp", STR("name", ""), DICT("arguments"))},
    {"download", "DOWNLOAD", "FileDownloadObservation", false,
	SEEN("file_download", REQ("file_path"))},
    {"task_tracking", "TASK_TRACKING", "TaskTrackingObservation", false,
	SEEN("task_tracking", STR("command", ""), LIST("task_list"))},
    {"loop_detection", "LOOP_DETECTION", "LoopDetectionObservation", false,
	SEEN_NONE("loop_recovery")},
};
const size_t hr_observation_classes_n =
    sizeof(hr_observation_classes) / sizeof(hr_observation_classes[0]);

static const struct hr_event_class *
class_find(const struct hr_event_class *c, size_t n, const char *type, size_t len)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strlen(c[i].type) == len && memcmp(c[i].type, type, len) == 0)
			return &c[i];
	return NULL;
}

const struct hr_event_class *
hr_action_class(const char *type, size_t len)
{
	return class_find(hr_action_classes, hr_action_classes_n, type, len);
}

const struct hr_event_class *
hr_observation_class(const char *type, size_t len)
{
	return class_find(hr_observation_classes, hr_observation_classes_n, type, len);
}

const struct hr_arg_spec *
hr_event_class_arg(const struct hr_event_class *c, const char *name)
{
	const struct hr_arg_spec *a;

	for (a = c->args; a->def != HR_ARG_END; a++)
		if (strcmp(a->name, name) == 0)
			return a;
	return NULL;
}
