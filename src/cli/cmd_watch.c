/* logs, top, sh: what a sandbox says and uses, and a terminal in it. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "proto/json.h"

static const struct cli_option logs_options[] = {
    {'f', "follow", NULL, "and what comes"},
    {0, NULL, NULL, NULL},
};

static int
on_line(void *arg, const char *line, size_t len)
{
	struct cli *c = arg;
	struct hr_buf b;
	int r;

	hr_buf_init(&b, 8u << 20);
	if (c->json) {
		hr_buf_adds(&b, "{\"line\":");
		(void)hr_json_put_str(&b, line, len, HR_JSON_REPLACE);
		hr_buf_addc(&b, '}');
	} else {
		hr_quote_text(&b, line, len);
	}
	hr_buf_addc(&b, '\n');
	r = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	return r;
}

static int
logs(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	struct hr_sandbox *s;
	int r = CLI_ERROR;

	s = cli_attach(c, &r);
	if (s != NULL)
		r = hr_sandbox_logs(s, cli_value(a, 'f') != NULL, on_line, c, &err) == 0
			? CLI_OK
			: cli_fail(&err);
	hr_sandbox_free(s);
	return r;
}

const struct cli_command cli_logs = {
    "logs", "", "Print the log of the sandbox's server.", logs_options, 0, 0, logs};

/* "resources.memory.rss  123": names of nested members with dots. */
static void
put_values(struct hr_buf *b, const char *prefix, struct json_object *o)
{
	const char *text;
	char name[160];

	json_object_object_foreach(o, key, v)
	{
		(void)snprintf(
		    name, sizeof(name), "%s%s%s", prefix, *prefix != '\0' ? "." : "", key);
		if (json_object_is_type(v, json_type_object)) {
			put_values(b, name, v);
			continue;
		}
		/* a server may say what a terminal would do */
		hr_quote_text(b, name, strlen(name));
		hr_buf_addf(b, "%*s ", strlen(name) < 32 ? (int)(32 - strlen(name)) : 0, "");
		text = v != NULL ? json_object_get_string(v) : "-";
		if (json_object_is_type(v, json_type_double))
			hr_buf_addf(b, "%.1f", json_object_get_double(v));
		else
			hr_quote_text(b, text, strlen(text));
		hr_buf_addc(b, '\n');
	}
}

static int
show_use(struct cli *c, const char *text)
{
	struct json_object *o = NULL;
	struct hr_json_error why;
	struct hr_buf b;
	int r;

	if (c->json) {
		r = cli_outs(text);
		return r == CLI_OK ? cli_outs("\n") : r;
	}
	hr_buf_init(&b, 1 << 20);
	if (hr_json_decode(text, strlen(text), &o, &why) == 0 &&
	    json_object_is_type(o, json_type_object))
		put_values(&b, "", o);
	else
		hr_quote_text(&b, text, strlen(text));
	json_object_put(o);
	r = cli_out(hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	return r;
}

static int
top(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	struct hr_sandbox *s;
	char *text = NULL;
	int r = CLI_ERROR;

	(void)a;
	s = cli_attach(c, &r);
	if (s == NULL)
		return r;
	r = hr_sandbox_stats(s, &text, &err) == 0 ? show_use(c, text) : cli_fail(&err);
	free(text);
	hr_sandbox_free(s);
	return r;
}

const struct cli_command cli_top = {"top", "", "Print what the sandbox uses.", NULL, 0, 0, top};

static int
sh(struct cli *c, const struct cli_args *a)
{
	static const char *const shell[] = {"bash", NULL};
	struct hr_err err = {0};
	struct hr_sandbox *s;
	int r = CLI_ERROR, status = 0;

	s = cli_attach(c, &r);
	if (s == NULL)
		return r;
	/* they are for the program at the terminal */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	r = hr_sandbox_exec(s, a->argc > 0 ? (const char *const *)a->argv : shell, &status, &err) ==
		    0
		? status
		: cli_fail(&err);
	hr_sandbox_free(s);
	return r;
}

const struct cli_command cli_sh = {"sh", "[COMMAND [ARGUMENT]...]",
    "A shell in the sandbox on this terminal, or another program.", NULL, 0, -1, sh};
