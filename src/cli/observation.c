/* Performs one action, from arguments to an exit status. */
#include "config.h"

#include "cli/observation.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/text/tame.h"
#include "host/handle.h"
#include "proto/json.h"
#include "shell/text.h"

#define DASHES_MIN 10
#define LINES_MAX 10000      /* maximum lines of a terminal's history */
#define OUT_MAX (256u << 20) /* has room for three bytes in place of one */

/* Returns true for an error observation, or the editor's form of one. */
static bool
is_error(struct json_object *obs)
{
	const char *type = hr_json_text_or(obs, "observation", "");

	return strcmp(type, "error") == 0 ||
	       (strcmp(type, "edit") == 0 &&
		   strncmp(hr_json_text_or(obs, "content", ""), "ERROR:\n", 7) == 0);
}

/* Returns true if input found no command: neither an end nor a running one is reported. */
static bool
is_lost(struct json_object *obs)
{
	struct json_object *metadata = hr_json_at(hr_json_at(obs, "extras"), "metadata");

	return hr_json_int_at(metadata, "exit_code") < 0 &&
	       *hr_json_text_or(metadata, "suffix", "") == '\0' &&
	       strncmp(hr_json_text_or(obs, "content", ""), "ERROR: No previous running command",
		   34) == 0;
}

/* Returns true if the server left out the middle of a long output, or all but the last lines. */
static bool
is_cut(const char *p, size_t len)
{
	size_t lines = 0;

	if (len <= HR_SHELL_CONTENT_MAX)
		return false;
	if (strstr(p, hr_shell_truncated_mark) != NULL)
		return true;
	while (lines < LINES_MAX && (p = strchr(p, '\n')) != NULL) {
		lines++;
		p++;
	}
	return lines == LINES_MAX;
}

static bool
begins_with(const char *p, const char *word)
{
	return strncmp(p, word, strlen(word)) == 0;
}

/* Detects IPython's line above a traceback: preceded by dashes, directly after output without a
 * line feed. */
static bool
is_traceback(const char *text, const char *p)
{
	static const char end[] = "Traceback (most recent call last)";
	const size_t n = strcspn(p, "\n");
	const char *dash = p;

	if (n < sizeof(end) - 1 || strncmp(p + n - (sizeof(end) - 1), end, sizeof(end) - 1) != 0 ||
	    p == text)
		return false;
	for (dash--; dash > text && dash[-1] == '-'; dash--)
		continue;
	return p - dash > DASHES_MIN;
}

/* Returns true for a failure that the back-end's interpreter reports; no server reports one. */
static bool
is_failed(struct json_object *obs)
{
	struct json_object *v = hr_json_at(obs, "success");

	return json_object_is_type(v, json_type_boolean) && !json_object_get_boolean(v);
}

/* Determines a cell's status: a server's answer does not mark an exception, but IPython's report at
 * the end of the text does. */
static int
cell_status(const char *text)
{
	static const char left[] = "SystemExit: ";
	static const char *const without[] = {
	    "SyntaxError: ", "IndentationError: ", "TabError: ", "UsageError: "};
	const char *p, *last;
	size_t i;

	/* the text begins with a note about variables that the kernel lost before */
	if (begins_with(text, "[The Jupyter kernel "))
		text += strcspn(text, "\n") + (strchr(text, '\n') != NULL);
	if (begins_with(text, "[Execution timed out ("))
		return CLI_TIMEOUT;
	for (p = last = text; p != NULL; p = strchr(p, '\n'), p = p != NULL ? p + 1 : NULL) {
		if (is_traceback(text, p) || begins_with(p, "[Jupyter kernel died ("))
			return CLI_ERROR;
		if (!begins_with(p, "[Jupyter current working directory: ") &&
		    !begins_with(p, "[Jupyter Python interpreter: "))
			last = p;
	}
	for (i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		if (begins_with(last, without[i]))
			return CLI_ERROR;
	if (!begins_with(last, left))
		return CLI_OK;
	last += sizeof(left) - 1;
	last += *last == '0';
	return *last == '\0' || *last == '\n' ? CLI_OK : CLI_ERROR;
}

static int
status_of(struct json_object *obs)
{
	struct json_object *v =
	    hr_json_at(hr_json_at(hr_json_at(obs, "extras"), "metadata"), "exit_code");
	int code;

	if (is_error(obs))
		return CLI_ERROR;
	if (strcmp(hr_json_text_or(obs, "observation", ""), "run_ipython") == 0)
		return is_failed(obs) ? CLI_ERROR
				      : cell_status(hr_json_text_or(obs, "content", ""));
	if (!json_object_is_type(v, json_type_int))
		return CLI_OK;
	code = json_object_get_int(v);
	if (is_lost(obs))
		return CLI_ERROR;
	/* -1 means that the command still runs */
	return code < 0 ? CLI_COMMAND_TIMEOUT : code & 0xFF;
}

/* Prints output of the sandbox's programs; a terminal gets only its colours. */
static int
out(const char *p, size_t len)
{
	const char *no_color = getenv("NO_COLOR");
	struct hr_tame t = {.terminal = true, .colours = no_color == NULL || *no_color == '\0'};
	HR_BUF(b, OUT_MAX);
	int r;

	if (len > 0 && isatty(1) == 1) {
		hr_tame_feed(&t, &b, p, len);
		hr_tame_end(&t, &b);
		return b.fail == HR_OK ? cli_out_buf(&b) : cli_no_memory();
	}
	r = cli_out(p, len);
	return r == CLI_OK && len > 0 && p[len - 1] != '\n' ? cli_outs("\n") : r;
}

/* Reports why the answer came before the command's end: the server's own note is for agents. */
static void
say_unfinished(const struct cli *c, const char *suffix)
{
	static const char silent[] = "\n[The command has no new output after ",
			  late[] = "\n[The command timed out after ";
	const bool is_silent = strncmp(suffix, silent, sizeof(silent) - 1) == 0;
	const char *of = strcmp(c->name, "default") != 0 ? c->name : "";
	const char *opt = *of != '\0' ? " -n " : "", *after, *why;

	if (is_silent || strncmp(suffix, late, sizeof(late) - 1) == 0) {
		after = suffix + (is_silent ? sizeof(silent) : sizeof(late)) - 1;
		cli_say("the command still runs%s %.*s seconds; \"handrail attach%s%s\" waits for "
			"its end, "
			"\"handrail run%s%s -i C-c\" interrupts it",
		    is_silent ? ", and has printed nothing for" : " after",
		    (int)strspn(after, "0123456789."), after, opt, of, opt, of);
	} else if (strncmp(suffix, "\n[Your command \"", 16) == 0) {
		cli_say("not run: the shell is busy with another command; \"handrail attach%s%s\" "
			"waits for its end, \"handrail run%s%s -i C-c\" interrupts it",
		    opt, of, opt, of);
	} else {
		why = suffix + strspn(suffix, "\n[");
		cli_say("%.*s", (int)strcspn(why, "]"), why);
	}
}

/* Reports what the server found out about the end of a command: the lines after the first one. */
static void
say_facts(const char *suffix)
{
	const char *p = strstr(suffix, "]\n["), *next;

	for (; p != NULL; p = next) {
		next = strstr(p + 3, "]\n[");
		cli_say("%.*s", (int)(next != NULL ? next - p - 3 : (long)strcspn(p + 3, "]\n")),
		    p + 3);
	}
}

/* Returns the length of a cell's text without the two lines that inform an agent where it ran. */
static size_t
without_place(const char *p, size_t len)
{
	static const char *const lines[] = {
	    "[Jupyter Python interpreter: ", "[Jupyter current working directory: "};
	const char *line;
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		line = memrchr(p, '\n', len);
		line = line != NULL ? line + 1 : p;
		if (len == 0 || p[len - 1] != ']' || !begins_with(line, lines[i]))
			break;
		len = (size_t)(line - p);
		len -= len > 0;
	}
	return len;
}

static int
show(const struct cli *c, const char *text, struct json_object *obs, bool shown)
{
	struct json_object *content = hr_json_at(obs, "content");
	struct json_object *metadata = hr_json_at(hr_json_at(obs, "extras"), "metadata");
	const char *suffix = hr_json_text_at(metadata, "suffix");
	const char *p;
	int r, n;

	if (c->json)
		return cli_out_line(text);
	p = hr_json_text(content);
	if (p == NULL)
		return CLI_OK;
	if (is_lost(obs)) {
		cli_say("no command runs that could take this input; \"handrail run COMMAND\" "
			"starts one");
		return CLI_OK;
	}
	if (is_error(obs)) {
		cli_say("%s%s", strncmp(p, "ERROR:\n", 7) == 0 ? p + 7 : p,
		    strcmp(p, "ERROR_BINARY_FILE") == 0
			? ": the file is not certain to be text; \"handrail get\" copies it"
			: "");
		return CLI_OK;
	}
	n = shown ? json_object_get_string_len(content) : 0;
	if (strcmp(hr_json_text_or(obs, "observation", ""), "run_ipython") == 0)
		n = (int)without_place(p, (size_t)n);
	r = out(p, (size_t)n);
	if (suffix == NULL || c->quiet)
		return r;
	if (hr_json_int_at(metadata, "exit_code") < 0)
		say_unfinished(c, suffix);
	else
		say_facts(suffix);
	return r;
}

int
cli_action_text(const char *type, struct json_object *args, double timeout_s, char **ret)
{
	HR_BUF(b, 64u << 20);
	int r;

	*ret = NULL;
	hr_buf_addf(&b, "{\"action\":\"%s\",", type);
	if (timeout_s > 0)
		hr_buf_addf(&b, "\"timeout\":%.3f,", timeout_s);
	/* the rules are not those of V0's wire */
	if (strcmp(type, "run") == 0 || strcmp(type, "edit") == 0 || strcmp(type, "read") == 0)
		hr_buf_adds(&b, "\"exact\":true,");
	hr_buf_adds(&b, "\"args\":");
	r = args != NULL ? hr_json_put(&b, args) : 0;
	hr_buf_addc(&b, '}');
	json_object_put(args);
	if (args == NULL || b.fail == HR_E_NOMEM)
		return cli_no_memory();
	if (r != 0 || (*ret = hr_buf_take(&b)) == NULL)
		return cli_usage("the argument is not UTF-8, or too long");
	return CLI_OK;
}

int
cli_observed(const struct cli *c, const char *text, bool content)
{
	HR_PUT struct json_object *obs = NULL;
	const char *p;
	int r;

	if (hr_json_decode(text, strlen(text), &obs, NULL) != 0)
		return CLI_ERROR;
	r = show(c, text, obs, content);
	if (r == CLI_OK)
		r = status_of(obs);
	p = hr_json_text_or(obs, "content", "");
	if (content && !c->json && is_cut(p, strlen(p))) {
		cli_say("a part of the output is missing, as it is too long to send; redirect the "
			"output to a file in the sandbox and copy that");
		r = r == CLI_OK ? CLI_ERROR : r;
	}
	return r;
}

void
cli_observed_facts(const struct cli *c, const char *text)
{
	HR_PUT struct json_object *obs = NULL;

	if (!c->quiet && hr_json_decode(text, strlen(text), &obs, NULL) == 0)
		say_facts(hr_json_text_or(
		    hr_json_at(hr_json_at(obs, "extras"), "metadata"), "suffix", ""));
}

static int
act(struct cli *c, struct hr_sandbox *s, const char *action)
{
	struct hr_err err = {0};
	HR_FREE char *text = NULL;

	return hr_sandbox_action(s, action, &text, &err) == 0 ? cli_observed(c, text, true)
							      : cli_fail(&err);
}

int
cli_act_in(struct cli *c, struct hr_sandbox *s, const char *type, struct json_object *args,
    double timeout_s)
{
	HR_FREE char *action = NULL;
	int r = cli_action_text(type, args, timeout_s, &action);

	return r == CLI_OK ? act(c, s, action) : r;
}

int
cli_act(struct cli *c, const char *type, struct json_object *args, double timeout_s)
{
	HR_FREE char *action = NULL;
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	int r = cli_action_text(type, args, timeout_s, &action);

	if (r == CLI_OK)
		s = cli_attach(c, &r);
	return s != NULL ? act(c, s, action) : r;
}

struct json_object *
cli_run_args(const char *line, double timeout_s)
{
	return hr_json_object(NULL, "command", json_object_new_string(line), "blocking",
	    timeout_s > 0 ? json_object_new_boolean(true) : HR_JSON_NONE, NULL);
}

int
cli_seconds(const struct cli_args *a, double *ret)
{
	const char *text = cli_value(a, 't');
	char *stop;

	*ret = 0;
	if (text == NULL)
		return CLI_OK;
	*ret = strtod(text, &stop);
	if (*stop != '\0' || !(*ret > 0 && *ret < 1e7))
		return cli_usage("--timeout must be a number of seconds above 0, not \"%s\"", text);
	return CLI_OK;
}
