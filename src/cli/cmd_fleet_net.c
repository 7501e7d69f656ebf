/* Implements fleet net: the rules of the network of a fleet's sandbox. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "cli/commands.h"
#include "cli/fleet.h"
#include "host/config/rules.h"
#include "proto/json.h"

static const char net_args[] = "ID [allow ENTRY... | deny ENTRY... | set FILE | log]";

static int
show_rules(struct cli *c, const char *path)
{
	HR_CLEAN(hr_rules_clean) struct egress_policy *p = NULL;
	HR_PUT struct json_object *o = NULL;
	HR_BUF(b, EGRESS_POLICY_MAX * 4);
	struct hr_err err = {0};
	struct json_object *rules;
	int r = cli_fleet_ask(c, "GET", path, NULL, &o);

	if (r != CLI_OK)
		return r;
	rules = hr_json_at(o, "network");
	if (c->json) {
		hr_json_put_whole(&b, rules);
		hr_buf_addc(&b, '\n');
	} else if (rules == NULL) {
		return cli_error("the network of the sandbox has no rules: a start with "
				 "\"network\" gives it some");
	} else if ((p = hr_rules_read(rules, c->env, &err)) == NULL) {
		return cli_fail(&err);
	} else {
		egress_policy_explain(p, &b);
	}
	return cli_out_buf(&b);
}

static void
show_refusals(struct hr_buf *b, struct json_object *o)
{
	struct json_object *events = hr_json_at(o, "events");
	size_t i;

	for (i = 0; i < hr_json_count(events); i++) {
		cli_put_net_event(b, hr_json_entry(events, i));
		hr_buf_addc(b, '\n');
	}
}

static int
change_rules(struct cli *c, const struct cli_args *a)
{
	struct json_object *what = json_object_new_array();
	bool bad = what == NULL;
	int i;

	for (i = 2; i < a->argc; i++)
		bad |= hr_json_append(what, json_object_new_string(a->argv[i]), NULL) != 0;
	if (bad) {
		json_object_put(what);
		return cli_no_memory();
	}
	return cli_fleet_call(c, "POST", "/handrail/v1/network",
	    hr_json_object(
		NULL, "runtime_id", json_object_new_string(a->argv[0]), a->argv[1], what, NULL),
	    NULL);
}

static int
net(struct cli *c, const struct cli_args *a)
{
	const char *id = a->argv[0], *verb = a->argc > 1 ? a->argv[1] : "";
	struct json_object *rules;
	char path[128];

	if (strlen(id) > 32 || strspn(id, "0123456789abcdef") != strlen(id))
		return cli_usage(
		    "fleet net: \"%s\" must be an ID that \"handrail fleet ps\" prints", id);
	(void)snprintf(path, sizeof(path), "/handrail/v1/network%s?runtime_id=%s",
	    strcmp(verb, "log") == 0 ? "/log" : "", id);
	if (a->argc == 1)
		return show_rules(c, path);
	if (a->argc == 2 && strcmp(verb, "log") == 0)
		return cli_fleet_call(c, "GET", path, NULL, show_refusals);
	if (a->argc > 2 && (strcmp(verb, "allow") == 0 || strcmp(verb, "deny") == 0))
		return change_rules(c, a);
	if (a->argc != 3 || strcmp(verb, "set") != 0)
		return cli_usage("usage: handrail fleet net %s", net_args);
	if (cli_fleet_read_rules(a->argv[2], &rules) != CLI_OK)
		return CLI_ERROR;
	return cli_fleet_call(c, "POST", "/handrail/v1/network",
	    hr_json_object(NULL, "runtime_id", json_object_new_string(id), "network",
		rules != NULL ? rules : json_object_new_object(), NULL),
	    NULL);
}

const struct cli_command cli_fleet_net = {"fleet net", NULL, net_args,
    "Print the rules of a sandbox's network, change them, or print refusals.", NULL, 1, -1,
    CLI_PLAIN, net, NULL};
