/* One action, from words to an exit status. */
#include "config.h"

#include "cli/observation.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "proto/json.h"

struct json_object *
cli_object(const char *name, ...)
{
	struct json_object *o = json_object_new_object(), *v;
	const char *value;
	va_list ap;

	va_start(ap, name);
	for (; o != NULL && name != NULL; name = va_arg(ap, const char *)) {
		value = va_arg(ap, const char *);
		v = json_object_new_string(value);
		if (v == NULL || json_object_object_add(o, name, v) != 0) {
			json_object_put(v);
			json_object_put(o);
			o = NULL;
		}
	}
	va_end(ap);
	return o;
}

/* An error observation, or the editor's own way of saying that it did nothing. */
static bool
is_error(struct json_object *obs)
{
	const char *type = hr_json_text_or(obs, "observation", "");

	return strcmp(type, "error") == 0 ||
	       (strcmp(type, "edit") == 0 &&
		   strncmp(hr_json_text_or(obs, "content", ""), "ERROR:\n", 7) == 0);
}

static int
status_of(struct json_object *obs)
{
	struct json_object *v =
	    hr_json_at(hr_json_at(hr_json_at(obs, "extras"), "metadata"), "exit_code");
	int code;

	if (is_error(obs))
		return CLI_ERROR;
	if (!json_object_is_type(v, json_type_int))
		return CLI_OK;
	code = json_object_get_int(v);
	/* -1: it still runs */
	return code < 0 ? CLI_COMMAND_TIMEOUT : code & 0xFF;
}

static int
show(struct cli *c, const char *text, struct json_object *obs)
{
	struct json_object *content = hr_json_at(obs, "content");
	struct json_object *metadata = hr_json_at(hr_json_at(obs, "extras"), "metadata");
	const char *suffix = hr_json_text_at(metadata, "suffix");
	const char *p;
	int rc, n;

	if (c->json) {
		rc = cli_outs(text);
		return rc == CLI_OK ? cli_outs("\n") : rc;
	}
	p = hr_json_text(content);
	if (p == NULL)
		return CLI_OK;
	if (is_error(obs)) {
		cli_say("%s", p);
		return CLI_OK;
	}
	n = json_object_get_string_len(content);
	rc = cli_out(p, (size_t)n);
	if (rc == CLI_OK && n > 0 && p[n - 1] != '\n')
		rc = cli_outs("\n");
	if (hr_json_int_at(metadata, "exit_code") < 0 && suffix != NULL && !c->quiet)
		cli_say("%s", suffix);
	return rc;
}

char *
cli_action_text(const char *type, struct json_object *args, double timeout_s)
{
	struct hr_buf b;
	char *text = NULL;

	hr_buf_init(&b, 64u << 20);
	hr_buf_addf(&b, "{\"action\":\"%s\",", type);
	if (timeout_s > 0)
		hr_buf_addf(&b, "\"timeout\":%.3f,", timeout_s);
	hr_buf_adds(&b, "\"args\":");
	if (args != NULL && hr_json_put(&b, args) == 0) {
		hr_buf_addc(&b, '}');
		text = hr_buf_take(&b);
	}
	hr_buf_done(&b);
	json_object_put(args);
	if (text == NULL)
		(void)cli_usage("what was given is no text, or too long");
	return text;
}

int
cli_act_in(struct cli *c, struct hr_sandbox *s, const char *action)
{
	struct json_object *obs = NULL;
	struct hr_err err = {0};
	struct hr_json_error why;
	int rc = CLI_ERROR, shown;
	char *text = NULL;

	if (hr_sandbox_action(s, action, &text, &err) != 0) {
		rc = cli_fail(&err);
	} else if (hr_json_decode(text, strlen(text), &obs, &why) == 0) {
		shown = show(c, text, obs);
		rc = shown != CLI_OK ? shown : status_of(obs);
	}
	json_object_put(obs);
	free(text);
	return rc;
}

int
cli_act(struct cli *c, const char *type, struct json_object *args, double timeout_s)
{
	char *action = cli_action_text(type, args, timeout_s);
	struct hr_sandbox *s;
	int rc = CLI_USAGE;

	if (action == NULL)
		return rc;
	s = cli_attach(c, &rc);
	if (s != NULL)
		rc = cli_act_in(c, s, action);
	hr_sandbox_free(s);
	free(action);
	return rc;
}

struct json_object *
cli_run_args(const char *line, double timeout_s)
{
	struct json_object *args = cli_object("command", line, NULL);

	if (args != NULL && timeout_s > 0 &&
	    json_object_object_add(args, "blocking", json_object_new_boolean(true)) != 0) {
		json_object_put(args);
		args = NULL;
	}
	return args;
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
		return cli_usage("--timeout takes a number of seconds, not \"%s\"", text);
	return CLI_OK;
}
