/* Creates sandboxes for the E2B API: checks a NewSandbox, and makes the body of a start of it. What
 * promises isolation and is not enforced is refused. */
#include "config.h"

#include "fleet/e2b/e2b.h"
#include "fleet/network.h"
#include "fleet/request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <openssl/sha.h>

#include "base/random.h"
#include "base/text/quote.h"
#include "proto/json.h"

#define V1_TIMEOUT_S 15
#define V2_TIMEOUT_S 300

/* ---- the members of a request ---- */

static const struct {
	const char *name;
	enum hr_py_type type;
	const char *says;
} types[] = {
    {"templateID", HR_PY_STR, "a string"},
    {"timeout", HR_PY_INT, "an integer"},
    {"metadata", HR_PY_DICT, "an object of strings"},
    {"envVars", HR_PY_DICT, "an object of strings"},
    {"autoPause", HR_PY_BOOL, "a boolean"},
    {"autoPauseMemory", HR_PY_BOOL, "a boolean"},
    {"autoResume", HR_PY_DICT, "an object"},
    {"allow_internet_access", HR_PY_BOOL, "a boolean"},
    {"network", HR_PY_DICT, "an object"},
    {"secure", HR_PY_BOOL, "a boolean"},
    {"volumeMounts", HR_PY_LIST, "a list"},
    {"mcp", HR_PY_DICT, "an object"},
    {"iam", HR_PY_DICT, "an object"},
};

static int
check_types(const struct hr_fleet_call *c)
{
	struct json_object *v;
	size_t i;

	if (hr_json_type(c->body) != HR_PY_DICT)
		return hr_e2b_say(c->a, 400, "the body must be a JSON object");
	for (i = 0; i < sizeof(types) / sizeof(*types); i++) {
		v = hr_json_at(c->body, types[i].name);
		if (v != NULL && hr_json_type(v) != types[i].type)
			return hr_e2b_say(c->a, 400, "%s must be %s", types[i].name, types[i].says);
	}
	for (i = 2; i < 4; i++) {
		v = hr_json_at(c->body, types[i].name);
		if (v != NULL && !hr_json_all_strings(v))
			return hr_e2b_say(c->a, 400, "%s must be %s", types[i].name, types[i].says);
	}
	return 0;
}

int64_t
hr_e2b_read_timeout(struct hr_fleet_call *c, int64_t otherwise, int64_t least)
{
	struct json_object *v = hr_json_at(c->body, "timeout");
	int64_t s = v != NULL ? hr_json_int(v) : otherwise;
	int64_t hours = c->api->most_hours;

	if (v != NULL && hr_json_type(v) != HR_PY_INT)
		return hr_e2b_say(c->a, 400, "timeout must be an integer");
	if (v == NULL && otherwise < 0)
		return hr_e2b_say(c->a, 400, "timeout is missing");
	if (s < least)
		return hr_e2b_say(c->a, 400, "timeout must be at least %lld", (long long)least);
	if (s > hours * 3600)
		return hr_e2b_say(
		    c->a, 400, "Timeout cannot be greater than %lld hours", (long long)hours);
	return s > 0 ? s : 0;
}

static bool
is_variable(const char *name)
{
	if (*name == '\0' || isdigit((unsigned char)*name))
		return false;
	for (; *name != '\0'; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

static int
check_env(const struct hr_fleet_call *c)
{
	struct json_object *env = hr_json_at(c->body, "envVars");

	if (env == NULL)
		return 0;
	json_object_object_foreach(env, name, value)
	{
		(void)value;
		if (!is_variable(name))
			return hr_e2b_say(c->a, 400,
			    "envVars: the name of a variable has letters, digits and '_' only");
	}
	return 0;
}

/* ---- network ---- */

/* Returns true for an address or a range; anything else is a name. */
static bool
is_address(const char *text)
{
	return text[strspn(text, "0123456789./")] == '\0' || strchr(text, ':') != NULL;
}

static bool
denies_all(struct json_object *deny)
{
	size_t i;

	for (i = 0; i < hr_json_count(deny); i++)
		if (hr_json_str_is(hr_json_entry(deny, i), HR_E2B_ALL))
			return true;
	return false;
}

static int
check_lists(struct hr_fleet_call *c, struct json_object *from, bool closed)
{
	static const char *const lists[] = {"allowOut", "denyOut", "dnsServers", "httpsPorts"};
	struct json_object *list;
	const char *text;
	size_t i, j;

	for (i = 0; i < 4; i++) {
		list = hr_json_at(from, lists[i]);
		if (list != NULL && hr_json_type(list) != HR_PY_LIST)
			return hr_e2b_say(c->a, 400, "%s must be a list", lists[i]);
		for (j = 0; i < 2 && j < hr_json_count(list); j++) {
			text = hr_json_text(hr_json_entry(list, j));
			if (text == NULL)
				return hr_e2b_say(
				    c->a, 400, "%s must be a list of strings", lists[i]);
			if (i == 1 && !is_address(text))
				return hr_e2b_say(c->a, 400,
				    "denyOut takes addresses and ranges: %.200s is neither", text);
			if (i == 0 && !closed && !is_address(text))
				return hr_e2b_say(c->a, 400,
				    "allowOut has the name %.200s: names need denyOut " HR_E2B_ALL,
				    text);
		}
	}
	return 0;
}

/* Copies the lists without HR_E2B_ALL, which allowInternetAccess says for the rules of handrail. */
static int
copy_rules(struct json_object *from, bool closed, struct json_object **ret)
{
	static const char *const members[] = {
	    "allowOut", "denyOut", "dnsServers", "rules", "egressProxy"};
	struct json_object *o =
	    hr_json_object(NULL, "allowInternetAccess", json_object_new_boolean(!closed), NULL);
	struct json_object *v, *list;
	bool bad = o == NULL;
	size_t i, j;

	for (i = 0; i < sizeof(members) / sizeof(*members) && !bad; i++) {
		v = hr_json_at(from, members[i]);
		if (v == NULL || (hr_json_type(v) == HR_PY_LIST && hr_json_count(v) == 0))
			continue;
		if (i != 1) {
			bad |= hr_json_set(o, members[i], json_object_get(v), NULL) != 0;
			continue;
		}
		list = json_object_new_array();
		for (j = 0; j < hr_json_count(v); j++)
			if (!hr_json_str_is(hr_json_entry(v, j), HR_E2B_ALL))
				bad |= hr_json_append(
					   list, json_object_get(hr_json_entry(v, j)), NULL) != 0;
		bad |= hr_json_set(o, members[i], list, NULL) != 0;
	}
	*ret = o;
	return bad ? -1 : 0;
}

/* Returns true if a request needs rules, whatever they are. */
static bool
asks_for_rules(struct json_object *from)
{
	static const char *const members[] = {"allowOut", "denyOut", "dnsServers", "rules"};
	struct json_object *v;
	size_t i;

	for (i = 0; i < sizeof(members) / sizeof(*members); i++) {
		v = hr_json_at(from, members[i]);
		if (v != NULL && (hr_json_count(v) > 0 || (hr_json_type(v) == HR_PY_DICT &&
							      json_object_object_length(v) > 0)))
			return true;
	}
	return hr_json_at(from, "egressProxy") != NULL;
}

/* Returns true if a request without rules opens the network: only boxes have none by themselves,
 * and a key with a limit gets that. */
static bool
is_opened(const struct hr_fleet_call *c)
{
	HR_FREE char *limit = NULL;

	return c->api->internet && strcmp(c->api->kind, "box") == 0 &&
	       c->api->fleet->engine->rules &&
	       hr_fleet_network_limit_of(c->api->fleet, c->key.id, &limit, NULL) == 0 &&
	       limit == NULL;
}

int
hr_e2b_read_network(struct hr_fleet_call *c, struct json_object *from, struct json_object **ret)
{
	struct json_object *access = hr_json_at(c->body, "allow_internet_access");
	bool closed = denies_all(hr_json_at(from, "denyOut")) ||
		      (access != NULL && !hr_json_true_at(c->body, "allow_internet_access"));

	*ret = NULL;
	if (access != NULL && hr_json_type(access) != HR_PY_BOOL)
		return hr_e2b_say(c->a, 400, "allow_internet_access must be a boolean");
	if (check_lists(c, from, closed) != 0)
		return -1;
	if (!closed && !asks_for_rules(from) && !is_opened(c))
		return 0;
	if (!c->api->fleet->engine->rules)
		return hr_e2b_say(c->a, 400,
		    "this service enforces no rules of a sandbox's network: leave out "
		    "allow_internet_access and network");
	return copy_rules(from, closed, ret) == 0 ? 0 : hr_e2b_say(c->a, 503, "out of memory");
}

/* Returns true for names or numbers with dots between and perhaps a port, in which HR_E2B_PORT
 * stands for digits. */
static bool
is_host(const char *p)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	const size_t len = strlen(HR_E2B_PORT);
	bool port = false,
	     part = false; /* `part`: there is something since the last dot or colon */

	if (strlen(p) > 255)
		return false;
	while (*p != '\0') {
		if (strncmp(p, HR_E2B_PORT, len) == 0) {
			p += len;
			part = true;
		} else if (port ? *p >= '0' && *p <= '9' : strchr(plain, *p) != NULL) {
			p++;
			part = true;
		} else if (part && !port && (*p == '.' || *p == ':')) {
			port = *p++ == ':';
			part = false;
		} else {
			return false;
		}
	}
	return part;
}

/* Checks how requests reach programs of the sandbox. */
static int
check_ingress(const struct hr_fleet_call *c, struct json_object *network)
{
	struct json_object *mask = hr_json_at(network, "maskRequestHost");
	struct json_object *ports = hr_json_at(network, "httpsPorts"), *port;
	const char *text = hr_json_text(mask);
	size_t i;

	if (mask != NULL && (text == NULL || !is_host(text)))
		return hr_e2b_say(c->a, 400,
		    "maskRequestHost must be a host name, in which " HR_E2B_PORT
		    " stands for the port");
	for (i = 0; i < hr_json_count(ports); i++) {
		port = hr_json_entry(ports, i);
		if (hr_json_type(port) != HR_PY_INT || hr_json_int(port) < 1 ||
		    hr_json_int(port) > 65535 || hr_json_int(port) == HR_E2B_ENVD_PORT ||
		    hr_json_int(port) == HR_E2B_CODE_PORT)
			return hr_e2b_say(c->a, 400,
			    "httpsPorts must be a list of ports other than %d and %d",
			    HR_E2B_ENVD_PORT, HR_E2B_CODE_PORT);
	}
	return 0;
}

/* ---- the whole ---- */

static int
check_rest(const struct hr_fleet_call *c)
{
	struct json_object *resume = hr_json_at(c->body, "autoResume");
	bool pauses = hr_json_true_at(c->body, "autoPause");
	bool cold = hr_e2b_pauses_cold(c->body);

	if (hr_json_count(hr_json_at(c->body, "volumeMounts")) > 0)
		return hr_e2b_say(
		    c->a, 400, "this service has no volumes: upload files after the create");
	if (hr_json_at(c->body, "iam") != NULL)
		return hr_e2b_say(c->a, 400, "this service issues no identity tokens");
	if (cold && !pauses)
		return hr_e2b_say(c->a, 400, "autoPauseMemory needs autoPause");
	if (cold && hr_json_true_at(resume, "enabled"))
		return hr_e2b_say(c->a, 400, "autoPauseMemory false excludes autoResume");
	if (cold && c->api->fleet->engine->copies == NULL)
		return hr_e2b_say(c->a, 400,
		    "this service pauses sandboxes with their memory only: leave autoPauseMemory "
		    "out");
	if (pauses && c->api->fleet->engine->stays)
		return hr_e2b_say(
		    c->a, 400, "this service cannot pause sandboxes: leave autoPause out");
	if (resume != NULL && hr_json_type(hr_json_at(resume, "enabled")) != HR_PY_BOOL)
		return hr_e2b_say(c->a, 400, "autoResume must be {\"enabled\": BOOLEAN}");
	return 0;
}

/* Writes the session's name. Returns 0, or -1 after it has sent the error response. The second of
 * two creates with one key of idempotency finds the first one's sandbox, also after a restart of
 * the service. */
static int
name_session(const struct hr_fleet_call *c, char ret[HR_FLEET_SESSION])
{
	const char *key = c->q->idempotency_key;
	unsigned char sum[SHA256_DIGEST_LENGTH];
	struct hr_err err = {0};
	char digits[33];
	size_t n = strlen(key);

	if (n == 0) {
		if (hr_random_hex(digits, 32, &err) < 0)
			return hr_e2b_say(c->a, 503, "%s", err.msg);
		(void)snprintf(ret, HR_FLEET_SESSION, "e2b-%s", digits);
		return 0;
	}
	if (n > 255)
		return hr_e2b_say(c->a, 400, "Idempotency-Key has at most 255 characters");
	(void)SHA256((const unsigned char *)key, n, sum);
	(void)snprintf(ret, HR_FLEET_SESSION, "e2b-once-");
	hr_quote_hex(ret + 9, sum, sizeof(sum));
	return 0;
}

static void
digest_body(const struct hr_fleet_request *q, char ret[2 * SHA256_DIGEST_LENGTH + 1])
{
	unsigned char sum[SHA256_DIGEST_LENGTH];

	(void)SHA256((const unsigned char *)q->body, q->body_len, sum);
	hr_quote_hex(ret, sum, sizeof(sum));
}

/* Returns a member of the body, or an object without members. */
static struct json_object *
copy_or_empty(struct json_object *o, const char *name)
{
	struct json_object *v = hr_json_at(o, name);

	return v != NULL ? json_object_get(v) : json_object_new_object();
}

static struct json_object *
maybe(const char *text)
{
	return hr_json_maybe(*text != '\0' ? text : NULL);
}

/* Makes the body of a start. network is taken over. Returns NULL without memory. */
static struct json_object *
make_request(const struct hr_fleet_call *c, const struct hr_e2b_template *t, const char *session,
    struct json_object *network)
{
	static const char *const plugins[] = {"--plugins", "jupyter", NULL};
	struct json_object *asked = hr_json_at(c->body, "network");
	struct json_object *open = hr_json_at(asked, "allowPublicTraffic");
	struct json_object *access = hr_json_at(c->body, "allow_internet_access");
	bool docker = strcmp(c->api->kind, "docker") == 0;
	char sum[2 * SHA256_DIGEST_LENGTH + 1];
	struct json_object *e2b;

	digest_body(c->q, sum);
	e2b = hr_json_object(NULL, "template", json_object_new_string(t->name), "user",
	    maybe(t->user), "workdir", maybe(t->workdir), "root", maybe(docker ? "" : t->image),
	    "metadata", copy_or_empty(c->body, "metadata"), "env",
	    copy_or_empty(c->body, "envVars"), "sum", json_object_new_string(sum), "autoResume",
	    json_object_new_boolean(hr_json_true_at(hr_json_at(c->body, "autoResume"), "enabled")),
	    "autoPauseMemory",
	    hr_e2b_pauses_cold(c->body) ? json_object_new_boolean(false) : HR_JSON_NONE, "public",
	    json_object_new_boolean(open == NULL || hr_json_true_at(asked, "allowPublicTraffic")),
	    "network", asked != NULL ? json_object_get(asked) : HR_JSON_NONE, "ownRun",
	    json_object_new_boolean(docker || strcmp(c->api->kind, "box") == 0), "internet",
	    access != NULL ? json_object_get(access) : HR_JSON_NONE, NULL);
	/* the code interpreter is part of a plugin, which starts at its first use */
	return hr_json_object(NULL, "session_id", json_object_new_string(session), "command",
	    hr_json_list(NULL, plugins), "image", maybe(docker ? t->image : ""), "network",
	    network != NULL ? network : HR_JSON_NONE, "e2b", e2b, NULL);
}

/* Starts the sandbox, and waits until it runs. */
static void
start(struct hr_fleet_call *c, struct json_object *request, const char *session, int64_t timeout)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_fleet_term term = {
	    .ms = timeout * 1000, .pauses = hr_json_true_at(c->body, "autoPause")};
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	HR_PUT struct json_object *kept = NULL;
	char shape[HR_FLEET_SHAPE], sum[2 * SHA256_DIGEST_LENGTH + 1], id[HR_FLEET_ID];
	enum hr_fleet_result r;
	struct hr_err err = {0};
	HR_BUF(text, 2 * HR_FLEET_BODY_MAX);

	if (hr_fleet_request_shape(request, f->set.image, shape, &err) != 0 ||
	    hr_json_put(&text, request) != 0 || hr_buf_check(&text, NULL) != 0) {
		(void)hr_e2b_say(c->a, 400, "the body cannot be written as JSON");
		return;
	}
	r = hr_fleet_start(f, &c->key, session, hr_buf_str(&text), hr_fleet_request_factor(request),
	    shape, &term, &row, &err);
	if (r == HR_FLEET_OK && *c->q->idempotency_key != '\0') {
		digest_body(c->q, sum);
		if (strcmp(hr_json_text_or(hr_e2b_of(&row, &kept), "sum", ""), sum) != 0) {
			c->a->status = 422;
			hr_buf_adds(&c->a->body,
			    "{\"code\":422,\"error_code\":\"idempotency_request_mismatch\","
			    "\"message\":\"this Idempotency-Key came with another body\"}");
			return;
		}
	}
	if (r == HR_FLEET_OK) {
		(void)snprintf(id, sizeof(id), "%s", row.id);
		hr_fleet_row_done(&row);
		r = hr_fleet_wait(f, id, &row, &err);
	}
	if (r == HR_FLEET_OK && row.state == HR_FLEET_RUNNING) {
		c->a->status = 201;
		hr_e2b_put_sandbox(&c->a->body, c, &row);
	} else if (r == HR_FLEET_OK) {
		(void)hr_e2b_say(c->a, 500, "the sandbox could not be started: %s", row.reason);
	} else {
		hr_fleet_refuse(c->a, r, &row, &err);
	}
}

static void
create(struct hr_fleet_call *c, int64_t otherwise)
{
	const char *name = hr_json_text_at(c->body, "templateID");
	HR_PUT struct json_object *network = NULL;
	HR_PUT struct json_object *request = NULL;
	char session[HR_FLEET_SESSION];
	struct hr_err err = {0};
	char snapshot[HR_FLEET_SNAPSHOT_NAME], tag[HR_FLEET_TAG];
	struct hr_e2b_template t;
	enum hr_fleet_result r;
	int64_t timeout;
	int found = 0;

	if (check_types(c) != 0 || (timeout = hr_e2b_read_timeout(c, otherwise, 1)) < 0 ||
	    check_env(c) != 0 || check_rest(c) != 0 || name_session(c, session) != 0)
		return;
	if (name == NULL) {
		(void)hr_e2b_say(c->a, 400, "templateID is missing");
		return;
	}
	if (!hr_e2b_template(c->api, name, &t) &&
	    (found = hr_e2b_snapshot_template(c, name, snapshot, &t, &err)) <= 0) {
		(void)hr_e2b_say(c->a, found < 0 ? 503 : 404, "template '%.200s' not found", name);
		return;
	}
	if (hr_e2b_read_network(c, hr_json_at(c->body, "network"), &network) != 0 ||
	    check_ingress(c, hr_json_at(c->body, "network")) != 0)
		return;
	request = make_request(c, &t, session, json_object_get(network));
	if (found > 0 &&
	    (hr_fleet_tag(c->key.id, snapshot, tag, &err) != 0 ||
		hr_json_set(request, "from", json_object_new_string(tag), &err) != 0)) {
		(void)hr_e2b_say(c->a, 503, "%s", err.msg);
		return;
	}
	if (request == NULL)
		(void)hr_e2b_say(c->a, 503, "out of memory");
	else if ((r = hr_fleet_network_check(c->api->fleet, c->key.id, request, &err)) !=
		 HR_FLEET_OK)
		hr_fleet_refuse(c->a, r, NULL, &err);
	else
		start(c, request, session, timeout);
}

void
hr_e2b_create_v1(struct hr_fleet_call *c)
{
	create(c, V1_TIMEOUT_S);
}

void
hr_e2b_create_v2(struct hr_fleet_call *c)
{
	create(c, V2_TIMEOUT_S);
}
