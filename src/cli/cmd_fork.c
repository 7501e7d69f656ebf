/* Implements fork: branches of a running box. */
#include "config.h"

#include <string.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "host/box/fork.h"
#include "host/records/record.h"
#include "proto/json.h"

#define FREEZE 1 /* letters of options without a short form */
#define COUNT 2

static const struct cli_option fork_options[] = {
    {COUNT, "count", "N", "make N branches: NEW-1 to NEW-N"},
    {FREEZE, "freeze", NULL, "copy although a command runs or a file is open for writing"},
    {0, NULL, NULL, NULL},
};

/* Parses --count; 0: it is not given. */
static int
count_of(const struct cli_args *a, unsigned *ret)
{
	const char *text = cli_value(a, COUNT);
	long n;

	*ret = 0;
	if (text == NULL)
		return CLI_OK;
	if (!cli_number(text, 1, HR_BOX_FORK_MAX, &n))
		return cli_usage(
		    "fork: --count must be from 1 to %d, not \"%s\"", HR_BOX_FORK_MAX, text);
	*ret = (unsigned)n;
	return CLI_OK;
}

void
cli_put_not_copied(struct hr_buf *b, struct json_object *lack)
{
	struct json_object *names = hr_json_at(lack, "names");
	size_t n;

	hr_buf_adds(b, hr_json_text_or(lack, "what", "-"));
	for (n = 0; n < hr_json_count(names); n++)
		hr_buf_addf(b, "%s%s", n == 0 ? " (" : ", ",
		    json_object_get_string(hr_json_entry(names, n)));
	hr_buf_adds(b, n > 0 ? ")" : "");
}

/* Prints the names of the branches, and notes for people. */
static int
show(struct cli *c, struct json_object *o)
{
	struct json_object *lacks = hr_json_at(o, "not_copied"), *names;
	HR_BUF(b, 1 << 20);
	HR_BUF(note, 1 << 20);
	size_t i;

	if (!hr_json_true_at(o, "still"))
		cli_note(c, "nothing could freeze the box: files that its processes changed "
			    "meanwhile may be half old and half new");
	for (i = 0; i < hr_json_count(lacks) && !c->quiet; i++) {
		hr_buf_reset(&note);
		hr_buf_adds(&note, "not copied: ");
		cli_put_not_copied(&note, hr_json_entry(lacks, i));
		cli_note(c, hr_buf_str(&note));
	}
	names = hr_json_at(o, "branches");
	for (i = 0; i < hr_json_count(names); i++)
		hr_buf_addf(&b, "%s\n", json_object_get_string(hr_json_entry(names, i)));
	return cli_out_buf(&b);
}

static int
fork_it(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	struct hr_box_fork how = {.name = a->argv[0], .freeze = cli_value(a, FREEZE) != NULL};
	HR_PUT struct json_object *o = NULL;
	HR_FREE char *json = NULL;
	struct hr_err err = {0};
	int r = count_of(a, &how.count);

	if (r != CLI_OK)
		return r;
	if (!hr_sid_valid(how.name))
		return cli_no_name(how.name);
	if (hr_box_fork(s, &how, &json, &err) < 0)
		return cli_fail(&err);
	if (c->json)
		return cli_out_line(json);
	if (hr_json_decode(json, strlen(json), &o, NULL) < 0)
		return cli_error("the answer of the fork is not JSON");
	return show(c, o);
}

const struct cli_command cli_fork = {"fork", NULL, "NAME NEW",
    "Start branches of a running box, with its files and shells; prints their names.", fork_options,
    1, 1, CLI_FIRST, NULL, fork_it};
