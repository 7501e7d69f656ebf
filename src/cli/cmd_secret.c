/* Implements secret: values for the network of boxes, which no box sees. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/strv.h"
#include "cli/commands.h"
#include "host/config/rules.h"
#include "host/records/record.h"
#include "host/records/secret.h"
#include "proto/json.h"

/* ---- set ---- */

/* Reads the value to the end of standard input, or one line of a terminal without an echo. */
static int
read_value(const char *name, struct hr_buf *b)
{
	struct termios before, silent;
	struct hr_err err = {0};
	ssize_t n = 0;
	char c = '\0';

	if (tcgetattr(0, &before) != 0) {
		if (hr_path_read_fd(0, "standard input", b, &err) < 0)
			return cli_fail(&err);
	} else {
		silent = before;
		silent.c_lflag &= ~(tcflag_t)(ECHO | ISIG); /* no signal leaves it silent */
		(void)tcsetattr(0, TCSAFLUSH, &silent);
		cli_say("the value of the secret \"%s\":", name);
		while (c != '\n' && (n = read(0, &c, 1)) == 1)
			hr_buf_addc(b, c);
		(void)tcsetattr(0, TCSAFLUSH, &before);
		if (n < 0)
			return cli_error("standard input: %s", strerror(errno));
	}
	while (b->len > 0 && (b->p[b->len - 1] == '\n' || b->p[b->len - 1] == '\r'))
		b->len--;
	return hr_buf_check(b, &err) == 0 ? CLI_OK : cli_fail(&err);
}

struct use {
	const char *name;
	bool used;
};

static int
on_secret(void *arg, const char *name)
{
	struct use *u = arg;

	u->used |= strcmp(name, u->name) == 0;
	return 0;
}

/* Gives the new value to the broker of a sandbox whose rules use the secret. */
static int
renew(struct cli *c, const char *state_dir, const char *sid, const char *name)
{
	struct hr_sandbox_options o = cli_sandbox(c, sid);
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	HR_CLEAN(hr_rules_clean) struct egress_policy *p = NULL;
	HR_PUT struct json_object *rules = NULL;
	HR_FREE char *json = NULL;
	struct use u = {.name = name};
	struct hr_err err = {0};

	o.attach = true;
	o.state_dir = state_dir;
	s = hr_sandbox_open(c->config, &o, &err);
	if (s == NULL)
		return cli_fail(&err);
	/* the next start of a sandbox that has ended reads the value */
	if (hr_sandbox_connect(s, NULL) < 0)
		return CLI_OK;
	if (hr_sandbox_network(s, &json, &err) < 0)
		return cli_fail(&err);
	rules = json != NULL ? hr_rules_decode(json, strlen(json), &err) : NULL;
	p = rules != NULL ? hr_rules_read(rules, c->env, &err) : NULL;
	if (p == NULL)
		return json == NULL ? CLI_OK : cli_fail(&err);
	(void)egress_policy_secrets(p, on_secret, &u);
	if (!u.used || hr_sandbox_set_network(s, NULL, &err) == 0)
		return CLI_OK;
	(void)cli_fail(&err);
	return cli_error("sandbox \"%s\" still uses the old value of \"%s\"", sid, name);
}

static int
renew_all(struct cli *c, const char *state_dir, const char *name)
{
	struct hr_err err = {0};
	HR_FREE char *text = hr_sandbox_list(state_dir, &err);
	HR_PUT struct json_object *list = NULL;
	int r = CLI_OK, one;
	size_t i;

	if (text == NULL || hr_json_decode(text, strlen(text), &list, NULL) < 0)
		return cli_fail(&err);
	for (i = 0; i < hr_json_count(list); i++) {
		struct json_object *s = hr_json_entry(list, i);

		if (strcmp(hr_json_text_or(s, "runtime", ""), "box") != 0)
			continue;
		one = renew(c, state_dir, hr_json_text_or(s, "sid", ""), name);
		r = r != CLI_OK ? r : one;
	}
	return r;
}

static int
set(struct cli *c, const struct cli_args *a)
{
	const char *name = a->argv[0];
	HR_FREE char *pool = NULL;
	HR_BUF(value, HR_SECRET_MAX + 2);
	struct hr_err err = {0};
	int r, other;

	if (hr_secret_name(name, &err) < 0)
		return cli_usage("%s", err.msg);
	r = read_value(name, &value);
	if (r != CLI_OK)
		return r;
	if (hr_secret_set(c->state_dir, name, hr_buf_str(&value), value.len, &err) < 0)
		return cli_fail(&err);
	pool = hr_path_join(c->state_dir, &HR_POOL_BELOW[1]);
	if (pool == NULL)
		return cli_no_memory();
	r = renew_all(c, c->state_dir, name);
	other = renew_all(c, pool, name);
	if (r == CLI_OK)
		r = other;
	return r != CLI_OK ? r : cli_done(c, "secret", name, NULL);
}

const struct cli_command cli_secret_set = {"secret set", NULL, "NAME",
    "Keep a value from standard input, and give it to the boxes that use it.", NULL, 1, 1,
    CLI_PLAIN, set, NULL};

/* ---- list, rm ---- */

static int
list_them(struct cli *c, const struct cli_args *a)
{
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	HR_PUT struct json_object *o = NULL;
	HR_BUF(b, 1u << 20);
	struct hr_err err = {0};
	size_t i;

	(void)a;
	if (hr_secret_list(c->state_dir, c->env, &names, &err) < 0)
		return cli_fail(&err);
	if (c->json) {
		o = hr_json_list(&err, hr_strv_list(&names));
		if (o == NULL)
			return cli_fail(&err);
		hr_json_put_whole(&b, o);
		hr_buf_addc(&b, '\n');
	}
	for (i = 0; !c->json && i < names.n; i++)
		hr_buf_addf(&b, "%s\n", names.v[i]);
	return cli_out_buf(&b);
}

const struct cli_command cli_secret_list = {
    .name = "secret list", .help = "List the names of the secrets.", .run = list_them};

static int
rm(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};

	if (hr_secret_name(a->argv[0], &err) < 0)
		return cli_usage("%s", err.msg);
	return hr_secret_remove(c->state_dir, a->argv[0], &err) == 0
		   ? cli_done(c, "removed", a->argv[0], NULL)
		   : cli_fail(&err);
}

const struct cli_command cli_secret_rm = {"secret rm", NULL, "NAME",
    "Remove a secret; boxes that run keep its value until they end.", NULL, 1, 1, CLI_PLAIN, rm,
    NULL};
