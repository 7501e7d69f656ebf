/* Prints for the user: messages and errors to standard error, answers to standard output. */
#include "config.h"

#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text/quote.h"
#include "proto/json.h"

#define SAY_MAX 4096

/* ---- messages ---- */

void
cli_say(const char *fmt, ...)
{
	char text[SAY_MAX], *line, *next;
	HR_BUF(b, SAY_MAX * 8);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* a sandbox's text may contain escape sequences */
	for (line = text; line != NULL; line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		if (*line == '\0' && b.len > 0)
			continue; /* the log of a failed start can end in empty lines */
		hr_buf_adds(&b, b.len == 0 ? "handrail: " : "\n    ");
		hr_quote_text(&b, line, strlen(line));
	}
	hr_buf_addc(&b, '\n');
	(void)hr_fd_write_full(2, hr_buf_str(&b), b.len, NULL); /* a failure cannot be reported */
}

static void
say(const char *fmt, va_list ap)
{
	char text[SAY_MAX];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	cli_say("%s", text);
}

int
cli_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return CLI_USAGE;
}

int
cli_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return CLI_ERROR;
}

int
cli_no_memory(void)
{
	return cli_error("out of memory");
}

/* Prints the status of a sandbox's server. The library's text is that of the original's client; the
 * server's own follows "Details: ", perhaps after a status or Python's "[Errno 2]". Texts of a
 * service that runs sandboxes are handrail's. */
static void
say_status(const struct hr_err *err)
{
	static const char before[] = "\nDetails: ", internal[] = "Internal server error: ";
	const char *text = strstr(err->msg, before), *number;

	if (strstr(err->msg, "\nFor more information check: ") == NULL) {
		cli_say("%s", err->msg);
		return;
	}
	if (text == NULL) {
		cli_say(
		    "the sandbox's server answered with status %d; \"handrail logs\" may say more",
		    err->status);
		return;
	}
	text += sizeof(before) - 1;
	if (strspn(text, "0123456789") == 3 && strncmp(text + 3, ": ", 2) == 0)
		text += 5;
	if (strncmp(text, internal, sizeof(internal) - 1) == 0)
		text += sizeof(internal) - 1;
	number = strncmp(text, "[Errno ", 7) == 0 ? strstr(text, "] ") : NULL;
	if (number != NULL)
		text = number + 2;
	if (strstr(text, "JupyterRequirement not found") != NULL)
		cli_say(
		    "the sandbox has no notebook: it was started without the plugin jupyter; "
		    "\"handrail up\" starts one that has it, where the package python3-ipykernel "
		    "(Debian) is installed");
	else
		cli_say("%s", text);
}

static const char of_git[] = "error_in_git_";

/* Prints "error_in_git_diff: no_repository", "error_in_git_changes: error_running_cmd:128:fatal:
 * ...": the format of programs that agents use. */
static void
say_git(const char *msg)
{
	static const char failed[] = "error_running_cmd:";
	const char *text = strstr(msg, ": ");

	text = text != NULL ? text + 2 : msg;
	if (strncmp(text, failed, sizeof(failed) - 1) == 0) {
		text += sizeof(failed) - 1;
		text += strspn(text, "0123456789:");
		cli_say("git in the sandbox: %s", text);
	} else if (strncmp(text, "no_repository", 13) == 0) {
		cli_say("the path is not in a git repository with a commit; \"handrail repo "
			"clone\" brings one");
	} else {
		cli_say("%s", text);
	}
}

/* the original's text, followed by handrail's reason */
static const char no_engine[] = "Launch docker client failed. Please make sure you have installed "
				"docker and started docker desktop/daemon. ";

int
cli_fail(const struct hr_err *err)
{
	if (err->code == HR_E_HTTP_STATUS)
		say_status(err);
	else if (strncmp(err->msg, of_git, sizeof(of_git) - 1) == 0)
		say_git(err->msg);
	else if (strncmp(err->msg, no_engine, sizeof(no_engine) - 1) == 0)
		cli_say(
		    "there is no Docker Engine that can be used. %s \"handrail up -r box\" needs "
		    "none; \"handrail doctor docker\" prints what to fix",
		    err->msg + sizeof(no_engine) - 1);
	else
		cli_say("%s", err->msg);
	switch (err->code) {
	case HR_E_NO_SANDBOX:
	case HR_E_NOTFOUND: return CLI_NOT_FOUND;
	case HR_E_SYS: return err->sys == ENOENT ? CLI_NOT_FOUND : CLI_ERROR;
	case HR_E_RUNTIME_TIMEOUT:
	case HR_E_HTTP_TIMEOUT:
	case HR_E_TIMEOUT: return CLI_TIMEOUT;
	case HR_E_DISCONNECTED:
	case HR_E_HTTP_NETWORK:
	case HR_E_PROTO: return CLI_DISCONNECTED;
	default: return CLI_ERROR;
	}
}

/* ---- answers ---- */

int
cli_out(const void *p, size_t len)
{
	struct hr_err e = {0};

	if (hr_fd_write_full(1, p, len, &e) == 0)
		return CLI_OK;
	if (e.sys != EPIPE) /* "| head" closes the pipe on purpose */
		cli_say("standard output: %s", e.msg);
	return CLI_ERROR;
}

int
cli_outs(const char *s)
{
	return cli_out(s, strlen(s));
}

int
cli_out_buf(const struct hr_buf *b)
{
	return cli_out(hr_buf_str(b), b->len);
}

int
cli_out_line(const char *s)
{
	int r = cli_outs(s);

	return r == CLI_OK ? cli_outs("\n") : r;
}

int
cli_done(const struct cli *c, ...)
{
	const char *name;
	HR_BUF(b, 1 << 20);
	va_list ap;

	if (!c->json)
		return CLI_OK;
	hr_buf_addc(&b, '{');
	va_start(ap, c);
	while ((name = va_arg(ap, const char *)) != NULL) {
		hr_json_put_named(&b, name, va_arg(ap, const char *));
	}
	va_end(ap);
	hr_buf_adds(&b, "}\n");
	return cli_out_buf(&b);
}
