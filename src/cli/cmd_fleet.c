/* Implements fleet: commands for an administrator of handrail-fleetd: keys, sandboxes, shutdown. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/fleet.h"
#include "base/strv.h"
#include "host/config/rules.h"
#include "host/config/settings.h"
#include "host/client/rest.h"
#include "proto/json.h"

#define FLEETD HR_SBINDIR "/handrail-fleetd"
#define NETWORK 1 /* letter of an option without a short form */

/* Prints why a call failed, and returns the exit status. */
static int
failed(const struct hr_err *err)
{
	int r = cli_fail(err);

	return err->code == HR_E_HTTP_STATUS && err->status == 404 ? CLI_NOT_FOUND : r;
}

/* Finds the service as the back-end remote does. Returns CLI_OK, or another exit status after it
 * has reported the error. */
static int
service(struct cli *c, struct hr_rest **ret)
{
	const char *key = hr_config_text(c->config, "sandbox.api_key");
	struct hr_rest_options o = {
	    .url = hr_config_text(c->config, "sandbox.remote_runtime_api_url"), .watch_fd = -1};
	struct hr_err err = {0};

	*ret = NULL;
	if (key == NULL)
		return cli_usage(
		    "fleet: SANDBOX_API_KEY is not set; \"handrail fleet init\" prints a "
		    "key");
	*ret = hr_rest_new(&o, &err);
	if (*ret == NULL || hr_rest_header(*ret, "X-API-Key", key, true, &err) != 0)
		return cli_fail(&err);
	return CLI_OK;
}

int
cli_fleet_ask(struct cli *c, const char *method, const char *path, struct json_object *body,
    struct json_object **ret)
{
	HR_CLEAN(hr_rest_clean) struct hr_rest *rest = NULL;
	HR_PUT struct json_object *sent = body;
	struct hr_err err = {0};
	int r = service(c, &rest);

	if (r != CLI_OK)
		return r;
	return hr_rest_send(rest, method, path, sent, ret, &err) == 0 ? CLI_OK : failed(&err);
}

/* Prints an answer: as JSON, or with `show` unless that is NULL. */
static int
print(struct cli *c, struct json_object *o, void (*show)(struct hr_buf *b, struct json_object *o))
{
	HR_BUF(b, 64u << 20);

	if (c->json) {
		(void)hr_json_put(&b, o);
		hr_buf_addc(&b, '\n');
	} else if (show != NULL) {
		show(&b, o);
	}
	return cli_out_buf(&b);
}

int
cli_fleet_call(struct cli *c, const char *method, const char *path, struct json_object *body,
    void (*show)(struct hr_buf *b, struct json_object *o))
{
	HR_PUT struct json_object *o = NULL;
	int r = cli_fleet_ask(c, method, path, body, &o);

	return r == CLI_OK ? print(c, o, show) : r;
}

/* ---- printing ---- */

static void
show_keys(struct hr_buf *b, struct json_object *o)
{
	struct json_object *keys = hr_json_at(o, "keys"), *k;
	size_t n, i;

	hr_buf_addf(b, "%-5s %-24s %-8s %-10s %s\n", "ID", "NAME", "SCOPE", "SANDBOXES", "STATE");
	for (i = 0; i < hr_json_count(keys); i++) {
		k = hr_json_entry(keys, i);
		n = hr_json_count(hr_json_at(k, "scopes"));
		hr_buf_addf(b, "%-5lld %-24s %-8s ", (long long)hr_json_int_at(k, "id"),
		    hr_json_text_or(k, "name", "-"),
		    n > 2   ? "admin"
		    : n > 1 ? "use"
			    : "read");
		if (hr_json_int_at(k, "sandboxes") > 0)
			hr_buf_addf(b, "%-10lld ", (long long)hr_json_int_at(k, "sandboxes"));
		else
			hr_buf_addf(b, "%-10s ", "-");
		hr_buf_addf(b, "%s%s\n", hr_json_true_at(k, "revoked") ? "revoked" : "good",
		    hr_json_at(k, "network") != NULL ? ", its network is limited" : "");
	}
}

static void
show_key(struct hr_buf *b, struct json_object *o)
{
	hr_buf_addf(b, "%s\n", hr_json_text_or(o, "key", "-"));
}

/* Prints the text of the same key that clients of the E2B API accept. */
static void
show_e2b_key(struct hr_buf *b, struct json_object *o)
{
	const char *digits = strchr(hr_json_text_or(o, "key", ""), '_');

	hr_buf_addf(b, "%s%s\n", digits != NULL ? "e2b" : "-", digits != NULL ? digits : "");
}

static void
show_sandboxes(struct hr_buf *b, struct json_object *o)
{
	struct json_object *list = hr_json_at(o, "sandboxes"), *s;
	long long now = (long long)time(NULL);
	size_t i;

	hr_buf_addf(
	    b, "%-32s %-4s %-24s %-9s %8s %8s\n", "ID", "KEY", "SESSION", "STATE", "AGE", "IDLE");
	for (i = 0; i < hr_json_count(list); i++) {
		s = hr_json_entry(list, i);
		hr_buf_addf(b, "%-32s %-4lld %-24s %-9s %7llds %7llds\n",
		    hr_json_text_or(s, "runtime_id", "-"), (long long)hr_json_int_at(s, "key"),
		    hr_json_text_or(s, "session_id", "-"), hr_json_text_or(s, "state", "-"),
		    now - (long long)hr_json_int_at(s, "created"),
		    now - (long long)hr_json_int_at(s, "active"));
	}
	if (hr_json_true_at(o, "drained"))
		hr_buf_adds(b, "drained: nothing new is started\n");
}

static void
show_snapshots(struct hr_buf *b, struct json_object *o)
{
	struct json_object *list = hr_json_at(o, "snapshots"), *s;
	long long now = (long long)time(NULL);
	size_t i;

	hr_buf_addf(b, "%-5s %-32s %9s %10s %s\n", "KEY", "SNAPSHOT", "AGE", "SIZE", "SANDBOX");
	for (i = 0; i < hr_json_count(list); i++) {
		s = hr_json_entry(list, i);
		hr_buf_addf(b, "%-5lld %-32s %8llds %7lld MB %s\n",
		    (long long)hr_json_int_at(s, "key"), hr_json_text_or(s, "name", "-"),
		    now - (long long)hr_json_int_at(s, "created"),
		    ((long long)hr_json_int_at(s, "bytes") + (1 << 20) - 1) >> 20,
		    hr_json_text_or(s, "runtime_id", "-"));
	}
}

/* ---- commands ---- */

int
cli_fleet_read_rules(const char *file, struct json_object **ret)
{
	HR_BUF(text, EGRESS_POLICY_MAX);
	struct hr_err err = {0};

	*ret = NULL;
	if (file == NULL || strcmp(file, "none") == 0)
		return CLI_OK;
	if (hr_path_read(file, &text, &err) < 0)
		return cli_fail(&err);
	*ret = hr_rules_decode(hr_buf_str(&text), text.len, &err);
	if (*ret != NULL)
		return CLI_OK;
	(void)hr_err_prefix(&err, "%s", file);
	return cli_fail(&err);
}

static int
make_key(struct cli *c, const struct cli_args *a)
{
	const char *most = cli_value(a, 'm');
	struct json_object *o, *limit;
	long n = 0;

	if (most != NULL && !cli_number(most, 0, LONG_MAX, &n))
		return cli_usage("--most must be a number, not \"%s\"", most);
	if (cli_fleet_read_rules(cli_value(a, NETWORK), &limit) != CLI_OK)
		return CLI_ERROR;
	o = hr_json_object(NULL, "name", json_object_new_string(a->argv[1]), "sandboxes",
	    json_object_new_int64(n), "scope", hr_json_maybe(cli_value(a, 'o')), "network",
	    limit != NULL ? limit : HR_JSON_NONE, NULL);
	return o != NULL ? cli_fleet_call(c, "POST", "/handrail/v1/keys", o,
			       cli_value(a, 'e') != NULL ? show_e2b_key : show_key)
			 : cli_no_memory();
}

static void
show_revoked(struct hr_buf *b, struct json_object *o)
{
	long long n = (long long)hr_json_int_at(o, "sandboxes");

	if (n > 0 && hr_json_true_at(o, "stopped"))
		hr_buf_addf(b, "%lld sandboxes of the key are stopped\n", n);
	else if (n > 0)
		hr_buf_addf(b,
		    "%lld sandboxes of the key continue, and their own keys stay valid; --stop "
		    "ends them\n",
		    n);
}

/* Parses a key's number. Returns CLI_OK, or CLI_USAGE after it has reported the error. */
static int
key_of(const struct cli_args *a, const char *command, struct json_object **ret)
{
	long id;

	if (!cli_number(a->argv[1], LONG_MIN, LONG_MAX, &id))
		return cli_usage("fleet %s %s: the key's ID must be a number, not \"%s\"", command,
		    a->argv[0], a->argv[1]);
	*ret = json_object_new_int64(id);
	return *ret != NULL ? CLI_OK : cli_no_memory();
}

static int
limit_key(struct cli *c, const struct cli_args *a)
{
	struct json_object *id, *limit, *body;
	int r = key_of(a, "keys", &id);

	if (r != CLI_OK)
		return r;
	body = hr_json_object(NULL, "id", id, NULL);
	r = body != NULL ? cli_fleet_read_rules(a->argv[2], &limit) : cli_no_memory();
	if (r == CLI_OK && json_object_object_add(body, "network", limit) != 0) {
		json_object_put(limit);
		r = cli_no_memory();
	}
	if (r == CLI_OK)
		return cli_fleet_call(c, "POST", "/handrail/v1/keys/network", body, NULL);
	json_object_put(body);
	return r;
}

static const char snapshots_args[] = "[rm ID SNAPSHOT]";

/* Gets the snapshots of all keys, page by page, as {"snapshots":[...]}. */
static int
list_snapshots(struct cli *c, struct json_object **ret)
{
	struct json_object *list = json_object_new_array(), *part;
	HR_FREE char *path = strdup("/handrail/v1/snapshots?keys=all");
	struct hr_err err = {0};
	size_t i;
	int r;

	*ret = hr_json_object(NULL, "snapshots", list, NULL);
	while (path != NULL && *ret != NULL) {
		HR_PUT struct json_object *page = NULL;

		r = cli_fleet_ask(c, "GET", path, NULL, &page);
		part = hr_json_at(page, "snapshots");
		for (i = 0; r == CLI_OK && i < hr_json_count(part); i++)
			if (hr_json_append(list, json_object_get(hr_json_entry(part, i)), &err) !=
			    0)
				return cli_no_memory();
		if (r != CLI_OK || hr_json_text_at(page, "next") == NULL)
			return r;
		if (hr_text_setf(&path, NULL, "/handrail/v1/snapshots?keys=all&after=%s",
			hr_json_text_at(page, "next")) != 0)
			break;
	}
	return cli_no_memory();
}

static int
snapshots(struct cli *c, const struct cli_args *a)
{
	HR_PUT struct json_object *list = NULL;
	struct json_object *id;
	int r;

	if (a->argc == 0) {
		r = list_snapshots(c, &list);
		return r == CLI_OK ? print(c, list, show_snapshots) : r;
	}
	if (a->argc != 3 || strcmp(a->argv[0], "rm") != 0)
		return cli_usage("usage: handrail fleet snapshots %s", snapshots_args);
	r = key_of(a, "snapshots", &id);
	return r != CLI_OK ? r
			   : cli_fleet_call(c, "POST", "/handrail/v1/snapshots/remove",
				 hr_json_object(NULL, "key", id, "name",
				     json_object_new_string(a->argv[2]), NULL),
				 NULL);
}

static const char keys_args[] = "[make NAME | limit ID FILE | revoke ID]";
static const char pools_args[] = "[set NAME SIZE | rm NAME]";

static int
keys(struct cli *c, const struct cli_args *a)
{
	struct json_object *id;
	int r;

	if (a->argc == 0)
		return cli_fleet_call(c, "GET", "/handrail/v1/keys", NULL, show_keys);
	if (a->argc == 2 && strcmp(a->argv[0], "make") == 0)
		return make_key(c, a);
	if (a->argc == 3 && strcmp(a->argv[0], "limit") == 0)
		return limit_key(c, a);
	if (a->argc == 2 && strcmp(a->argv[0], "revoke") == 0) {
		r = key_of(a, "keys", &id);
		return r != CLI_OK
			   ? r
			   : cli_fleet_call(c, "POST", "/handrail/v1/keys/revoke",
				 hr_json_object(NULL, "id", id, "stop",
				     json_object_new_boolean(cli_value(a, 'S') != NULL), NULL),
				 show_revoked);
	}
	return cli_usage("usage: handrail fleet keys %s", keys_args);
}

static void
show_pools(struct hr_buf *b, struct json_object *o)
{
	struct json_object *list = hr_json_at(o, "pools"), *p;
	size_t i;

	hr_buf_addf(b, "%-24s %5s %7s %5s %s\n", "NAME", "SIZE", "WARMING", "WARM", "IMAGE");
	for (i = 0; i < hr_json_count(list); i++) {
		p = hr_json_entry(list, i);
		hr_buf_addf(b, "%-24s %5lld %7lld %5lld %s%s\n", hr_json_text_or(p, "name", "-"),
		    (long long)hr_json_int_at(p, "size"), (long long)hr_json_int_at(p, "warming"),
		    (long long)hr_json_int_at(p, "warm"),
		    hr_json_text_or(hr_json_at(p, "request"), "image", "-"),
		    hr_json_int_at(p, "failed") > 0 ? " (the last create failed)" : "");
	}
}

/* Makes *ret of all pools but `name`, in the form that the service takes, with the version, so that
 * a concurrent change is refused. Returns CLI_OK, or another exit status after it has reported the
 * error. */
static int
other_pools(struct cli *c, const char *name, bool *ret_found, struct json_object **ret)
{
	struct json_object *p, *copy, *version;
	HR_PUT struct json_object *there = NULL;
	HR_PUT struct json_object *list = json_object_new_array();
	static const char *const members[] = {"name", "size", "request"};
	HR_CLEAN(hr_rest_clean) struct hr_rest *rest = NULL;
	struct hr_err err = {0};
	bool bad = list == NULL;
	int r = service(c, &rest);
	size_t i;

	*ret_found = false;
	*ret = NULL;
	if (r != CLI_OK)
		return r;
	if (hr_rest_get(rest, "/handrail/v1/pools", &there, &err) != 0)
		return failed(&err);
	for (i = 0; !bad && i < hr_json_count(hr_json_at(there, "pools")); i++) {
		size_t m;

		p = hr_json_entry(hr_json_at(there, "pools"), i);
		if (strcmp(hr_json_text_or(p, "name", ""), name) == 0) {
			*ret_found = true;
			continue;
		}
		/* this pool is ending */
		if (hr_json_int_at(p, "size") == 0)
			continue;
		copy = json_object_new_object();
		for (m = 0; copy != NULL && m < 3; m++)
			bad |= json_object_object_add(copy, members[m],
				   json_object_get(hr_json_at(p, members[m]))) != 0;
		bad |= hr_json_append(list, copy, NULL) != 0;
	}
	version = hr_json_at(there, "version");
	if (!bad)
		*ret = hr_json_object(NULL, "pools", json_object_get(list), "version",
		    version != NULL ? json_object_get(version) : HR_JSON_NONE, NULL);
	return *ret != NULL ? CLI_OK : cli_no_memory();
}

static int
set_pool(struct cli *c, const struct cli_args *a)
{
	const char *image = cli_value(a, 'i'), *name = a->argv[1];
	bool remove = strcmp(a->argv[0], "rm") == 0, found;
	struct json_object *body, *pool;
	long size = 0;
	int r;

	if (!remove && !cli_number(a->argv[2], 0, LONG_MAX, &size))
		return cli_usage(
		    "fleet pools set: the size must be a number, not \"%s\"", a->argv[2]);
	r = other_pools(c, name, &found, &body);
	if (r != CLI_OK)
		return r;
	if (remove && !found) {
		json_object_put(body);
		cli_say("fleet pools rm: there is no pool \"%s\"", name);
		return CLI_NOT_FOUND;
	}
	if (!remove) {
		pool = hr_json_object(NULL, "name", json_object_new_string(name), "size",
		    json_object_new_int64(size), "request",
		    hr_json_texts(NULL, "image", image, NULL), NULL);
		if (hr_json_append(hr_json_at(body, "pools"), pool, NULL) != 0) {
			json_object_put(body);
			return cli_no_memory();
		}
	}
	return cli_fleet_call(c, "POST", "/handrail/v1/pools", body, NULL);
}

static int
pools(struct cli *c, const struct cli_args *a)
{
	if (a->argc == 0)
		return cli_fleet_call(c, "GET", "/handrail/v1/pools", NULL, show_pools);
	if ((a->argc == 3 && strcmp(a->argv[0], "set") == 0) ||
	    (a->argc == 2 && strcmp(a->argv[0], "rm") == 0))
		return set_pool(c, a);
	return cli_usage("usage: handrail fleet pools %s", pools_args);
}

/* Runs handrail-fleetd with these options before the arguments. */
static int
fleetd(struct cli *c, const struct cli_args *a, const char *const *options)
{
	const char *given = hr_env_get(c->env, "HANDRAIL_FLEETD");
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	struct hr_spawn sp = {.path = given != NULL ? given : FLEETD, .umask = -1};
	struct hr_err err = {0};
	int code = 0, r;
	int i;

	hr_strv_add(&argv, "handrail-fleetd");
	hr_strv_add_all(&argv, options);
	for (i = 0; i < a->argc; i++)
		hr_strv_add(&argv, a->argv[i]);
	sp.argv = hr_strv_list(&argv);
	r = argv.failed ? hr_err_nomem(&err) : hr_spawn_here(&sp, &code, &err);
	return r == 0 ? code : cli_fail(&err);
}

/* Runs handrail-fleetd, since it makes the store, which root may own. */
static int
init(struct cli *c, const struct cli_args *a)
{
	const char *const options[] = {"--init", a->argc > 0 ? "--state-dir" : NULL, NULL};

	if (fleetd(c, a, options) != 0)
		return CLI_ERROR;
	if (!c->quiet)
		cli_say("this is the operator's key, which is shown once; start handrail-fleetd, "
			"and set SANDBOX_API_KEY to it");
	return CLI_OK;
}

/* Runs handrail-fleetd, since its options determine its needs. */
static int
fleet_doctor(struct cli *c, const struct cli_args *a)
{
	static const char *const options[] = {"--doctor", NULL};

	return fleetd(c, a, options);
}

static int
drain(struct cli *c, const struct cli_args *a)
{
	bool off = a->argc == 1 && strcmp(a->argv[0], "off") == 0;

	if (a->argc > 0 && !off)
		return cli_usage("usage: handrail fleet drain [off]");
	return cli_fleet_call(c, "POST", "/handrail/v1/drain",
	    hr_json_object(NULL, "off", json_object_new_boolean(off), NULL), NULL);
}

static int
ps(struct cli *c, const struct cli_args *a)
{
	(void)a;
	return cli_fleet_call(c, "GET", "/handrail/v1/sandboxes", NULL, show_sandboxes);
}

static const struct cli_option keys_options[] = {
    {'e', "e2b", NULL, "with make: print the key in the form of the E2B API"},
    {'m', "most", "N", "with make: sandboxes at once [no limit]"},
    {'o', "scope", "SCOPE", "with make: read, use or admin [use]"},
    {NETWORK, "network", "FILE", "with make: what the networks of its sandboxes cannot exceed"},
    {'S', "stop", NULL, "with revoke: stop the key's sandboxes"},
    {0, NULL, NULL, NULL},
};
static const struct cli_option pools_options[] = {
    {'i', "image", "NAME", "with set: image of the pool [the service's]"},
    {0, NULL, NULL, NULL},
};

const struct cli_command cli_fleet_init = {"fleet init", NULL, "[DIR]",
    "Make a fleet, and print a key for its operator.", NULL, 0, 1, CLI_PLAIN, init, NULL};
const struct cli_command cli_fleet_doctor = {"fleet doctor", NULL, "[OPTION]...",
    "Check whether this machine has what handrail-fleetd needs with its OPTIONs.", NULL, 0, -1,
    CLI_RAW, fleet_doctor, NULL};
const struct cli_command cli_fleet_keys = {"fleet keys", NULL, keys_args,
    "List the keys, make one, limit the network of its sandboxes or revoke it.", keys_options, 0, 3,
    CLI_PLAIN, keys, NULL};
const struct cli_command cli_fleet_ps = {
    .name = "fleet ps", .help = "List the sandboxes of all keys.", .run = ps};
const struct cli_command cli_fleet_pools = {"fleet pools", NULL, pools_args,
    "List the pools of waiting sandboxes, set one or end one.", pools_options, 0, 3, CLI_PLAIN,
    pools, NULL};
const struct cli_command cli_fleet_snapshots = {"fleet snapshots", NULL, snapshots_args,
    "List the snapshots of all keys, also of revoked ones, or remove one.", NULL, 0, 3, CLI_PLAIN,
    snapshots, NULL};
const struct cli_command cli_fleet_drain = {"fleet drain", NULL, "[off]",
    "Start nothing new; with \"off\" start sandboxes again.", NULL, 0, 1, CLI_PLAIN, drain, NULL};
