/* Implements events: events of sandboxes as they occur. */
#include "config.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text/quote.h"
#include "cli/commands.h"
#include "proto/json.h"

static int
on_event(void *arg, const char *sid, const char *event, const char *detail)
{
	struct cli *c = arg;
	char when[HR_WALL_TEXT];
	HR_BUF(b, 1 << 16);

	hr_wall_text(hr_wall_ms(), when);
	if (c->json) {
		hr_buf_addf(&b, "{\"time\":\"%s\"", when);
		hr_json_put_named(&b, "sid", sid);
		hr_json_put_named(&b, "event", event);
		hr_json_put_named(&b, "detail", detail);
		hr_buf_adds(&b, "}\n");
	} else {
		hr_buf_addf(&b, "%s %-20s %-10s ", when, *sid != '\0' ? sid : "-", event);
		hr_quote_text(&b, detail, strlen(detail));
		hr_buf_addc(&b, '\n');
	}
	return cli_out_buf(&b); /* an error ends the command: nothing reads its output */
}

static int
events(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};

	(void)a;
	return hr_sandbox_events(c->config, c->state_dir, c->env, 1, on_event, c, &err) == 0
		   ? CLI_ERROR
		   : cli_fail(&err);
}

const struct cli_command cli_events = {"events", NULL, NULL,
    "Print the events of the sandboxes until you interrupt it.", NULL, 0, 0, CLI_PLAIN, events,
    NULL};
