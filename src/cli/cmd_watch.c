/* Implements logs, top and sh: a sandbox's log and usage, and a terminal in it. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text/quote.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "host/handle.h"
#include "host/client/rest.h"
#include "proto/json.h"

#define TOP_S 2

static const struct cli_option logs_options[] = {
    {'f', "follow", NULL, "keep printing new lines"},
    {0, NULL, NULL, NULL},
};

static int
on_line(void *arg, const char *line, size_t len)
{
	struct cli *c = arg;
	HR_BUF(b, 8u << 20);

	if (c->json) {
		hr_buf_adds(&b, "{\"line\":");
		(void)hr_json_put_str(&b, line, len, HR_JSON_REPLACE);
		hr_buf_addc(&b, '}');
	} else {
		hr_quote_text(&b, line, len);
	}
	hr_buf_addc(&b, '\n');
	return c->out = cli_out_buf(&b);
}

int
cli_reader_gone(void)
{
	struct epoll_event e = {.events = 0}; /* waits for errors only, which are always reported */
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, 1, &e) != 0)
		hr_fd_close(&fd);
	return fd;
}

static int
logs(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	struct hr_err err = {0};
	int r;

	/* a followed log may be silent for hours */
	s->host.stop_fd = cli_reader_gone();
	r = hr_sandbox_logs(s, cli_value(a, 'f') != NULL, on_line, c, &err) == 0 ? c->out
										 : cli_fail(&err);
	hr_fd_close(&s->host.stop_fd);
	return r;
}

const struct cli_command cli_logs = {"logs", NULL, "[NAME]",
    "Print the log of the sandbox's server.", logs_options, 0, 0, CLI_NAME, NULL, logs};

/* Prints "resources.memory.rss  12.3 MiB": names of nested members joined by dots. */
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
		/* a server may send escape sequences */
		hr_quote_text(b, name, strlen(name));
		hr_buf_addf(b, "%*s ", strlen(name) < 32 ? (int)(32 - strlen(name)) : 0, "");
		text = v != NULL ? json_object_get_string(v) : "-";
		if (json_object_is_type(v, json_type_double))
			hr_buf_addf(b, "%.1f", json_object_get_double(v));
		else if (json_object_is_type(v, json_type_int) &&
			 json_object_get_int64(v) >= 1 << 20)
			hr_buf_addf(b, "%.1f MiB", (double)json_object_get_int64(v) / (1 << 20));
		else
			hr_quote_text(b, text, strlen(text));
		hr_buf_addc(b, '\n');
	}
}

static int
show_use(struct cli *c, const char *text)
{
	HR_BUF(b, 1 << 20);
	HR_PUT struct json_object *o = NULL;

	if (c->json)
		return cli_out_line(text);
	if (hr_json_decode(text, strlen(text), &o, NULL) == 0 &&
	    json_object_is_type(o, json_type_object))
		put_values(&b, "", o);
	else
		hr_quote_text(&b, text, strlen(text));
	return cli_out_buf(&b);
}

static const struct cli_option top_options[] = {
    {'d', "delay", "SECONDS", "repeat after SECONDS [2 on a terminal]"},
    {1, "once", NULL, "print once, as if not on a terminal"},
    {0, NULL, NULL, NULL},
};

/* Parses the interval in ms between two samples; 0: a single sample. */
static int
delay_of(const struct cli *c, const struct cli_args *a, unsigned *ret)
{
	const char *text = cli_value(a, 'd');
	double s = isatty(1) == 1 && !c->json ? TOP_S : 0;
	char *stop;

	if (text != NULL) {
		s = strtod(text, &stop);
		if (*text == '\0' || *stop != '\0' || !(s >= 0.1 && s <= 86400))
			return cli_usage("--delay must be at least 0.1 seconds, not \"%s\"", text);
	}
	*ret = cli_value(a, 1) != NULL ? 0 : (unsigned)(s * 1000);
	return CLI_OK;
}

static int
top(struct cli *c, const struct cli_args *a)
{
	const bool clears = isatty(1) == 1 && !c->json;
	struct hr_err err = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	HR_CLOSE int gone = -1;
	unsigned delay_ms = 0;
	int r = delay_of(c, a, &delay_ms);

	if (r != CLI_OK)
		return r;
	s = cli_attach(c, &r);
	if (s == NULL)
		return r;
	gone = cli_reader_gone();
	do {
		HR_FREE char *text = NULL;

		r = hr_sandbox_stats(s, &text, &err) == 0 ? CLI_OK : cli_fail(&err);
		if (r == CLI_OK && clears && delay_ms > 0)
			r = cli_outs("\033[H\033[J");
		if (r == CLI_OK)
			r = show_use(c, text);
	} while (r == CLI_OK && delay_ms > 0 && !hr_rest_wait(gone, delay_ms));
	return r;
}

const struct cli_command cli_top = {"top", "stats", "[NAME]",
    "Show what the sandbox uses; on a terminal repeatedly.", top_options, 0, 0, CLI_NAME, top,
    NULL};

int
cli_on_terminal(struct hr_sandbox *s, const char *const *argv)
{
	struct hr_err err = {0};
	int status = 0;

	if (s->ops->exec == NULL && s->endpoint.url != NULL)
		return cli_terminal(s, argv);
	/* these signals are for the program at the terminal */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	return hr_sandbox_exec(s, argv, &status, &err) == 0 ? status : cli_fail(&err);
}

static int
sh(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	static const char *const shell[] = {"bash", NULL};
	int r = cli_on_terminal(s, a->argc > 0 ? (const char *const *)a->argv : shell);

	if (r == CLI_NO_PROGRAM && c->word != NULL && c->word != c->name)
		cli_say("there is no sandbox \"%s\" either; \"handrail ps\" lists the sandboxes",
		    c->word);
	return r;
}

const struct cli_command cli_sh = {"sh", "shell", "[NAME] [COMMAND [ARGUMENT]...]",
    "Start a shell in the sandbox on this terminal, or another program.", NULL, 0, -1, CLI_SH, NULL,
    sh};
