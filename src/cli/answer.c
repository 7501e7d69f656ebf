/* Implements subcommands whose answers are JSON. */
#include "config.h"

#include "cli/answer.h"

#include <string.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "proto/json.h"

#define LINE_MAX_BYTES (1u << 20)

int
cli_answer(struct cli *c, struct hr_sandbox *s, const struct cli_args *a, cli_ask_fn *ask,
    const char *name, cli_line_fn *line)
{
	HR_FREE char *json = NULL;
	HR_PUT struct json_object *list = NULL;
	struct hr_err e = {0};
	HR_BUF(b, LINE_MAX_BYTES);
	int r = CLI_OK;
	size_t i;

	if (ask(s, a->argc > 0 ? a->argv[0] : NULL, &json, &e) != 0)
		return cli_fail(&e);
	if (c->json)
		return cli_out_line(json);
	if (hr_json_decode(json, strlen(json), &list, NULL) < 0 ||
	    !json_object_is_type(list, json_type_array))
		return cli_error("%s cannot be read", name);
	for (i = 0; r == CLI_OK && i < json_object_array_length(list); i++) {
		hr_buf_reset(&b);
		line(&b, json_object_array_get_idx(list, i));
		hr_buf_addc(&b, '\n');
		if (hr_buf_check(&b, &e) < 0) {
			cli_say("%s: %s", name, e.msg);
			r = CLI_ERROR;
		} else {
			r = cli_out(b.p, b.len);
		}
	}
	return r;
}
