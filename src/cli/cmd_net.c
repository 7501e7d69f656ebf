/* Implements net: the rules of a box's network, and what they refused. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/text/quote.h"
#include "cli/commands.h"
#include "host/config/rules.h"
#include "host/handle.h"
#include "host/records/record.h"
#include "proto/json.h"

#define LINE_MAX_BYTES (1u << 18)

/* Gets the rules in force. Returns CLI_OK, or CLI_ERROR after it has reported the error. */
static int
rules_of(struct hr_sandbox *s, struct json_object **ret)
{
	HR_FREE char *json = NULL;
	struct hr_err err = {0};

	*ret = NULL;
	if (hr_sandbox_network(s, &json, &err) < 0)
		return cli_fail(&err);
	if (json == NULL)
		return cli_error(
		    "the network of sandbox \"%s\" has no rules: \"handrail down -n %s\" "
		    "ends it, and \"handrail up -r box --network egress\" starts one that has",
		    hr_sandbox_id(s), hr_sandbox_id(s));
	*ret = hr_rules_decode(json, strlen(json), &err);
	return *ret != NULL ? CLI_OK : cli_fail(&err);
}

/* ---- show ---- */

static int
show(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	HR_PUT struct json_object *o = NULL;
	HR_CLEAN(hr_rules_clean) struct egress_policy *p = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv presets = {0};
	HR_BUF(b, EGRESS_POLICY_MAX * 4);
	struct hr_err err = {0};
	size_t i;
	int r = rules_of(s, &o);

	(void)a;
	if (r != CLI_OK)
		return r;
	if (c->json) {
		hr_json_put_whole(&b, o);
		hr_buf_addc(&b, '\n');
		return cli_out_buf(&b);
	}
	p = hr_rules_read(o, c->env, &err);
	if (p == NULL)
		return cli_fail(&err);
	egress_policy_explain(p, &b);
	if (hr_rules_presets(c->env, &presets, &err) < 0)
		return cli_fail(&err);
	for (i = 0; i < presets.n; i++)
		hr_buf_addf(&b, "%s%s%s", i == 0 ? "presets for \"net allow\": " : ", ",
		    presets.v[i], i + 1 == presets.n ? "\n" : "");
	return cli_out_buf(&b);
}

const struct cli_command cli_net_show = {"net show", NULL, "[NAME]",
    "Print what the network of a box allows, in sentences.", NULL, 0, 0, CLI_NAME, NULL, show};

/* ---- allow, deny ---- */

/* Locks the sandbox's record until the descriptor is closed, so that no change of another process
 * is lost. */
static int
lock(const struct cli *c)
{
	HR_FREE char *path = hr_record_path(c->state_dir, c->name, ".json");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
		;
	return fd;
}

static int
change_locked(
    struct cli *c, struct hr_sandbox *s, const struct cli_args *a, hr_rules_change_fn *one)
{
	HR_PUT struct json_object *o = NULL;
	HR_BUF(text, EGRESS_POLICY_MAX);
	struct hr_err err = {0};
	int i, r = rules_of(s, &o);

	if (r != CLI_OK)
		return r;
	for (i = 0; i < a->argc; i++)
		if (one(o, c->env, a->argv[i], &err) < 0)
			return cli_fail(&err);
	hr_json_put_whole(&text, o);
	if (hr_buf_check(&text, &err) < 0 || hr_sandbox_set_network(s, hr_buf_str(&text), &err) < 0)
		return cli_fail(&err);
	return cli_done(c, "sid", c->name, NULL);
}

static int
change(struct cli *c, struct hr_sandbox *s, const struct cli_args *a, hr_rules_change_fn *one)
{
	int locked = lock(c), r = change_locked(c, s, a, one);

	hr_fd_close(&locked);
	return r;
}

static int
allow(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	return change(c, s, a, hr_rules_allow);
}

const struct cli_command cli_net_allow = {"net allow", NULL, "NAME ENTRY...",
    "Allow hosts, addresses, ranges or presets while the box runs.", NULL, 1, -1, CLI_FIRST, NULL,
    allow};

static int
deny(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	return change(c, s, a, hr_rules_deny);
}

const struct cli_command cli_net_deny = {"net deny", NULL, "NAME ENTRY...",
    "Take entries back, or deny addresses and ranges.", NULL, 1, -1, CLI_FIRST, NULL, deny};

/* ---- log ---- */

static void
put_text(struct hr_buf *b, const char *before, const char *text)
{
	if (*text == '\0')
		return;
	hr_buf_adds(b, before);
	hr_quote_text(b, text, strlen(text));
}

void
cli_put_net_event(struct hr_buf *b, struct json_object *o)
{
	const char *name = hr_json_text_or(o, "name", "");
	const long long count = (long long)hr_json_int_at(o, "count");
	char when[HR_WALL_TEXT];

	hr_wall_text_s((int64_t)hr_json_number_at(o, "time"), when);
	hr_buf_addf(b, "%s %s", when,
	    strcmp(hr_json_text_or(o, "verdict", ""), "allow") == 0 ? "allowed" : "refused");
	put_text(b, " ", hr_json_text_or(o, "kind", "-"));
	put_text(b, " ", hr_json_text_or(o, "method", ""));
	put_text(b, " ", *name != '\0' ? name : hr_json_text_or(o, "address", "-"));
	if (hr_json_int_at(o, "port") > 0)
		hr_buf_addf(b, ":%lld", (long long)hr_json_int_at(o, "port"));
	put_text(b, "", hr_json_text_or(o, "path", ""));
	put_text(b, ": ", hr_json_text_or(o, "rule", ""));
	if (count > 1)
		hr_buf_addf(b, " (%lld times)", count);
}

static int
on_event(void *arg, const char *line, size_t len)
{
	struct cli *c = arg;
	HR_PUT struct json_object *o = NULL;
	HR_BUF(b, LINE_MAX_BYTES);

	if (c->json)
		hr_quote_text(&b, line, len);
	else if (hr_json_decode_foreign(line, len, &o, NULL) < 0)
		return 0;
	else
		cli_put_net_event(&b, o);
	hr_buf_addc(&b, '\n');
	return c->out = cli_out_buf(&b); /* an error ends the command: nothing reads its output */
}

static const struct cli_option log_options[] = {
    {'f', "follow", NULL, "print new events until you interrupt it"},
    {0, NULL, NULL, NULL},
};

static int
print_log(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	struct hr_err err = {0};
	int r;

	s->host.stop_fd = cli_reader_gone();
	r = hr_sandbox_network_log(s, cli_value(a, 'f') != NULL, on_event, c, &err) == 0
		? c->out
		: cli_fail(&err);
	hr_fd_close(&s->host.stop_fd);
	return r;
}

const struct cli_command cli_net_log = {"net log", NULL, "[NAME]",
    "Print what the network of a box refused and allowed.", log_options, 0, 0, CLI_NAME, NULL,
    print_log};

/* ---- test ---- */

#define METHOD 'X'

static const struct cli_option test_options[] = {
    {METHOD, "method", "METHOD", "the method of the request [GET]"},
    {0, NULL, NULL, NULL},
};

struct target {
	char name[EGRESS_NAME_MAX + 1];
	struct in_addr address;
	bool is_address;
	int port;
	char *path; /* owned */
};

/* Parses "http://HOST[:PORT][/PATH]", the same with https, or "HOST[:PORT]", whose port is 443. */
static bool
parse(const char *url, struct target *t)
{
	const char *rest = strstr(url, "://");
	size_t n, host;
	char text[EGRESS_NAME_MAX + 2], *end;

	t->port = 443;
	if (rest != NULL && strncmp(url, "http://", 7) == 0)
		t->port = 80;
	else if (rest != NULL && strncmp(url, "https://", 8) != 0)
		return false;
	rest = rest != NULL ? rest + 3 : url;
	n = strcspn(rest, "/?#");
	host = strcspn(rest, ":/?#");
	if (host < n) {
		t->port = (int)strtol(rest + host + 1, &end, 10);
		if (end != rest + n || end == rest + host + 1 || t->port < 1 || t->port > 65535)
			return false;
	}
	if (host >= sizeof(text))
		return false;
	memcpy(text, rest, host);
	text[host] = '\0';
	t->is_address = inet_pton(AF_INET, text, &t->address) == 1;
	t->path = rest[n] == '/' ? strndup(rest + n, strcspn(rest + n, "?#")) : strdup("/");
	return t->is_address || egress_name(text, host, t->name);
}

static int
test(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	const char *method = cli_value(a, METHOD) != NULL ? cli_value(a, METHOD) : "GET";
	HR_PUT struct json_object *o = NULL;
	HR_CLEAN(hr_rules_clean) struct egress_policy *p = NULL;
	struct egress_decision d = {0};
	struct target t = {.port = 0};
	struct hr_err err = {0};
	HR_FREE char *path = NULL;
	HR_BUF(b, LINE_MAX_BYTES);
	bool good = parse(a->argv[0], &t);
	int r;

	path = t.path;
	if (!good)
		return cli_usage("net test: \"%s\" must be http://HOST[:PORT][/PATH], the same "
				 "with https, or HOST[:PORT]",
		    a->argv[0]);
	if (path == NULL)
		return cli_no_memory();
	r = rules_of(s, &o);
	if (r != CLI_OK)
		return r;
	p = hr_rules_read(o, c->env, &err);
	if (p == NULL)
		return cli_fail(&err);
	if (t.is_address)
		egress_policy_address(p, t.address, t.port, &d);
	else
		egress_policy_name(p, t.name, t.port, &d);
	if (d.verdict == EGRESS_INSPECT)
		egress_policy_request(p, t.name, t.port, method, path, &d);
	good = d.verdict != EGRESS_DENY;
	if (c->json)
		r = cli_done(c, "verdict", good ? "allow" : "deny", "rule", d.rule, NULL);
	else {
		hr_buf_addf(&b, "%s: %s\n", good ? "allowed" : "refused", d.rule);
		r = cli_out_buf(&b);
	}
	return r != CLI_OK ? r : good ? CLI_OK : CLI_ERROR;
}

const struct cli_command cli_net_test = {"net test", NULL, "NAME URL",
    "Print whether the network of a box allows a request; status 1: no.", test_options, 1, 1,
    CLI_FIRST, NULL, test};
