/* Reads a network object strictly: a member, a value or a name that this version does not enforce
 * is an error. */
#include "config.h"

#include "egress/policy_int.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text/nearest.h"
#include "base/text/text.h"
#include "proto/json.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define IDENTIFIER_MAX 64 /* bytes of the name of a secret, a variable or a preset */
#define HEADERS_MAX 32
#define SERVERS_MAX 8
#define CREDENTIALS_MAX 256

struct reading {
	struct egress_policy *p;
	const char *presets;
	bool internet, asked; /* allowInternetAccess, and whether it is there */
	bool denied_all, allowed_all;
	struct egress_policy *limit; /* owned; NULL: none */
	struct hr_err *err;
};

static int
bad(struct reading *r, const char *reason)
{
	return hr_err_set(r->err, HR_E_INVAL, "%s", reason);
}

static int
unknown(struct reading *r, const char *name, const char *const *known, size_t n)
{
	const char *near = hr_nearest(name, known, n);

	return hr_err_set(r->err, HR_E_INVAL, "\"%.60s\" is unknown here%s%s%s", name,
	    near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
	    near != NULL ? "\"?" : "");
}

static bool
is_identifier(const char *text, const char *allowed)
{
	size_t n = strlen(text);

	return n > 0 && n <= IDENTIFIER_MAX && strspn(text, allowed) == n;
}

static int
count(struct reading *r)
{
	if (++r->p->entries <= POLICY_ENTRIES_MAX)
		return 0;
	return hr_err_set(
	    r->err, HR_E_TOOLARGE, "a policy can have at most %d entries", POLICY_ENTRIES_MAX);
}

typedef int each_fn(struct reading *r, const char *text, void *arg);

/* Passes each string of a list to fn. Returns 0, or the first result that is not 0. */
static int
each(struct reading *r, struct json_object *list, void *arg, each_fn *fn)
{
	size_t i, n = hr_json_count(list);
	const char *text;

	if (hr_json_type(list) != HR_PY_LIST || !hr_json_all_strings(list))
		return bad(r, "must be a list of strings");
	for (i = 0; i < n; i++) {
		text = hr_json_text(hr_json_entry(list, i));
		if (count(r) < 0 || fn(r, text, arg) < 0)
			return hr_err_prefix(r->err, "entry %zu, \"%.64s\"", i + 1, text);
	}
	return 0;
}

/* ---- ports ---- */

static int
add_port(struct reading *r, struct policy_ports *to, int64_t port)
{
	unsigned i;

	if (port < 1 || port > 65535)
		return bad(r, "a port must be an integer from 1 to 65535");
	if (port == 53)
		return bad(r, "port 53 is not available: the sandbox's resolver has it");
	for (i = 0; i < to->n; i++)
		if (to->v[i] == port)
			return 0;
	if (to->n == EGRESS_PORTS_MAX)
		return hr_err_set(r->err, HR_E_TOOLARGE,
		    "a policy can have at most %d different ports", EGRESS_PORTS_MAX);
	to->v[to->n++] = (uint16_t)port;
	return port == 80 || port == 443 || to == &r->p->others ? 0
								: add_port(r, &r->p->others, port);
}

static int
ports_of(struct reading *r, struct json_object *list, struct policy_ports *ret)
{
	size_t i, n = hr_json_count(list);

	ret->n = 0;
	if (hr_json_type(list) != HR_PY_LIST || n == 0)
		return bad(r, "must be a list of at least one port");
	for (i = 0; i < n; i++)
		if (add_port(r, ret, hr_json_int(hr_json_entry(list, i))) < 0)
			return -1;
	return 0;
}

/* ---- entries ---- */

static struct policy_node *
node_of(struct reading *r, const struct policy_target *t)
{
	struct policy_ports one = {0};

	if (t->port != 0 && add_port(r, &one, t->port) < 0)
		return NULL;
	if (t->range.version == 0)
		return policy_node(r->p, t->name, strlen(t->name), r->err);
	(t->range.version == 4 ? r->p->v4 : r->p->v6)[t->range.length] = true;
	return policy_node(r->p, &t->range, sizeof(t->range), r->err);
}

static int
add_entry(struct reading *r, struct policy_entry **at, const struct policy_credential *c, int port,
    const char *from, const char *text)
{
	struct policy_entry *e;

	for (; *at != NULL; at = &(*at)->next)
		if ((*at)->port == port && (*at)->credential == c)
			return 0;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return hr_err_nomem(r->err);
	*at = e;
	e->port = port;
	e->credential = c;
	return hr_text_setf(&e->spelled, r->err, "%s %s", from, text);
}

static bool
is_everything(const struct policy_target *t)
{
	return t->range.version == 4 && t->range.length == 0 && t->port == 0;
}

static int
allow(struct reading *r, const char *text, void *arg)
{
	struct policy_node *n;
	struct policy_target t;

	if (policy_target_read(text, &t, r->err) < 0 || (n = node_of(r, &t)) == NULL)
		return -1;
	r->allowed_all = r->allowed_all || is_everything(&t);
	return add_entry(r, &n->allow, NULL, t.port, (const char *)arg, text);
}

static int
deny(struct reading *r, const char *text, void *arg)
{
	struct policy_node *n;
	struct policy_target t;

	if (policy_target_read(text, &t, r->err) < 0)
		return -1;
	if (t.range.version == 0 || t.port != 0)
		return bad(r, "must be an address or a range without a port: a name can only be "
			      "allowed");
	if ((n = node_of(r, &t)) == NULL)
		return -1;
	r->denied_all = r->denied_all || is_everything(&t);
	return add_entry(r, &n->deny, NULL, 0, (const char *)arg, text);
}

static int
flag_of(struct reading *r, struct json_object *v, bool *ret)
{
	if (hr_json_type(v) != HR_PY_BOOL)
		return bad(r, "must be true or false");
	*ret = json_object_get_boolean(v);
	return 0;
}

static int
internet(struct reading *r, struct json_object *v)
{
	if (r->asked)
		return bad(r, "is there twice, with two spellings");
	r->asked = true;
	return flag_of(r, v, &r->internet);
}

static int
default_ports(struct reading *r, struct json_object *v)
{
	return ports_of(r, v, &r->p->ports);
}

static int
preset(struct reading *r, const char *name, void *arg)
{
	HR_FREE char *path = NULL, *from = NULL;
	HR_PUT struct json_object *o = NULL;
	HR_BUF(text, EGRESS_POLICY_MAX);

	(void)arg;
	if (r->presets == NULL || !is_identifier(name, LETTERS DIGITS "-_"))
		return bad(r, r->presets == NULL ? "presets are not available here"
						 : "a preset's name is letters, digits, - and _");
	if (hr_text_setf(&from, r->err, "preset %s:", name) < 0 ||
	    hr_text_setf(&path, r->err, "%s/%s.json", r->presets, name) < 0)
		return -1;
	if (access(path, F_OK) != 0)
		return bad(r, "there is no such preset");
	if (hr_path_read(path, &text, r->err) < 0)
		return -1;
	if (hr_json_decode(text.p, text.len, &o, NULL) < 0 || hr_json_has_null(o) ||
	    hr_json_type(o) != HR_PY_DICT || json_object_object_length(o) != 2 ||
	    hr_json_text_at(o, "description") == NULL || hr_json_at(o, "allowOut") == NULL)
		return hr_err_set(r->err, HR_E_INVAL,
		    "%s must be an object with \"description\" and \"allowOut\" only", path);
	return each(r, hr_json_at(o, "allowOut"), from, allow) < 0
		   ? hr_err_prefix(r->err, "%s", path)
		   : 0;
}

static int
server(struct reading *r, const char *text, void *arg)
{
	struct policy_range *range;
	struct policy_target t;

	(void)arg;
	if (policy_target_read(text, &t, r->err) < 0)
		return -1;
	range = &t.range;
	if (range->length != (range->version == 4 ? 32 : 128) || r->p->servers.n == SERVERS_MAX)
		return hr_err_set(r->err, HR_E_INVAL,
		    "must be an address with or without a port, and one of at most %d",
		    SERVERS_MAX);
	hr_strv_add(&r->p->servers, text);
	return r->p->servers.failed ? hr_err_nomem(r->err) : 0;
}

/* ---- rules ---- */

static int
add_secret(struct reading *r, const char *name, size_t len)
{
	char key[IDENTIFIER_MAX + 2];
	size_t before = r->p->n;

	if (len == 0 || len > IDENTIFIER_MAX || strspn(name, LETTERS DIGITS "_-") < len)
		return bad(r, "a secret's name must be 1 to 64 letters, digits, - and _");
	key[0] = '$';
	memcpy(key + 1, name, len);
	key[len + 1] = '\0';
	if (policy_node(r->p, key, len + 1, r->err) == NULL)
		return -1;
	if (r->p->n > before)
		hr_strv_add(&r->p->secrets, key + 1);
	return r->p->secrets.failed ? hr_err_nomem(r->err) : 0;
}

static int
method(struct reading *r, const char *text, void *arg)
{
	struct policy_rule *rule = (struct policy_rule *)arg;
	char *at;

	if (!is_identifier(text, LETTERS DIGITS "-_"))
		return bad(r, "must be a method such as GET");
	hr_strv_add(&rule->methods, text);
	if (rule->methods.failed)
		return hr_err_nomem(r->err);
	for (at = rule->methods.v[rule->methods.n - 1]; *at != '\0'; at++)
		*at = (char)toupper((unsigned char)*at);
	return 0;
}

static int
path(struct reading *r, const char *text, void *arg)
{
	struct policy_rule *rule = (struct policy_rule *)arg;
	const char *at;

	for (at = text; *at > ' ' && *at < 0x7F && strchr("?#\\", *at) == NULL;)
		at++;
	if ((*text != '/' && *text != '*') || *at != '\0')
		return bad(r, "a path must begin with / or *, and be in ASCII without blanks, ?, # "
			      "and backslashes: write other characters as %XX");
	hr_strv_add(&rule->paths, text);
	return rule->paths.failed ? hr_err_nomem(r->err) : 0;
}

static int
header(struct reading *r, struct policy_rule *rule, const char *name, const char *value)
{
	/* A rule sets none of these: they belong to the connection, or keep secrets in the answer
	 * from being found, or servers read them in place of the judged method and path. */
	static const char *const fixed[] = {"Accept-Encoding", "Connection", "Content-Length",
	    "Expect", "Host", "If-Range", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	    "Proxy-Connection", "Range", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
	    "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override", "X-Original-URL",
	    "X-Rewrite-URL", NULL};
	size_t i, n = strlen(name);
	const char *at;

	if (!is_identifier(name, LETTERS DIGITS "-_"))
		return bad(r, "a header's name must be at most 64 letters, digits, - and _");
	for (i = 0; fixed[i] != NULL; i++)
		if (strcasecmp(fixed[i], name) == 0)
			return bad(r, "this header cannot be set: handrail or nginx needs it");
	for (i = 0; i < rule->headers.n; i++)
		if (strncasecmp(rule->headers.v[i], name, n) == 0 && rule->headers.v[i][n] == ':')
			return bad(r, "the header is set twice");
	for (at = value; at != NULL && *at >= ' ' && *at < 0x7F;)
		at++;
	if (at == NULL || *at != '\0')
		return bad(r, "the value must be a string of ASCII without control characters");
	for (at = value; (at = strstr(at, "${")) != NULL; at += strcspn(at, "}")) {
		if (strncmp(at, "${secrets.", 10) != 0 || strchr(at, '}') == NULL)
			return bad(r, "\"${\" must begin ${secrets.NAME}");
		at += 10;
		if (add_secret(r, at, strcspn(at, "}")) < 0)
			return -1;
		rule->secret = true;
	}
	hr_strv_addf(&rule->headers, "%s: %s", name, value);
	return rule->headers.failed ? hr_err_nomem(r->err) : 0;
}

static int
transform(struct reading *r, struct policy_rule *rule, struct json_object *v)
{
	struct json_object *headers = hr_json_typed_at(v, "headers", HR_PY_DICT);

	if (headers == NULL || json_object_object_length(v) != 1 ||
	    json_object_object_length(headers) > HEADERS_MAX)
		return hr_err_set(r->err, HR_E_INVAL,
		    "must be an object with only \"headers\", an object of at most %d",
		    HEADERS_MAX);
	json_object_object_foreach(headers, name,
	    value) if (count(r) < 0 || header(r, rule, name, hr_json_text(value)) <
					   0) return hr_err_prefix(r->err, "header %.64s", name);
	return 0;
}

/* Reads a list that must not be empty, since an empty one would allow nothing. */
static int
some(struct reading *r, struct json_object *v, struct policy_rule *rule, each_fn *fn)
{
	if (hr_json_count(v) == 0)
		return bad(r, "must be a list of at least one string");
	return each(r, v, rule, fn);
}

static int
rule_member(struct reading *r, struct policy_rule *rule, const char *name, struct json_object *v)
{
	static const char *const known[] = {"methods", "paths", "ports", "deny", "transform"};

	if (strcmp(name, "methods") == 0)
		return some(r, v, rule, method);
	if (strcmp(name, "paths") == 0)
		return some(r, v, rule, path);
	if (strcmp(name, "ports") == 0)
		return ports_of(r, v, &rule->ports);
	if (strcmp(name, "deny") == 0)
		return flag_of(r, v, &rule->deny);
	if (strcmp(name, "transform") == 0)
		return transform(r, rule, v);
	return unknown(r, name, known, sizeof(known) / sizeof(*known));
}

static int
one_rule(struct reading *r, struct policy_rule *rule, struct json_object *o)
{
	if (count(r) < 0)
		return -1;
	if (hr_json_type(o) != HR_PY_DICT)
		return bad(r, "must be an object");
	json_object_object_foreach(o, name,
	    v) if (rule_member(r, rule, name, v) < 0) return hr_err_prefix(r->err, "%.60s", name);
	if (rule->deny && rule->headers.n > 0)
		return bad(r, "a rule with \"deny\" cannot have a \"transform\"");
	return 0;
}

static int
rules_of_host(struct reading *r, const char *host, struct json_object *list)
{
	size_t i, n = hr_json_count(list);
	struct policy_rule **at;
	struct policy_node *node;
	struct policy_target t;

	if (policy_target_read(host, &t, r->err) < 0)
		return -1;
	if (t.range.version != 0 || t.port != 0)
		return bad(r, "must be a name without a port: a rule has \"ports\"");
	if (hr_json_type(list) != HR_PY_LIST || n == 0)
		return bad(r, "must be a list of at least one rule: [[...]] in TOML, not [...]");
	node = node_of(r, &t);
	if (node == NULL)
		return -1;
	if (node->rules != NULL)
		return bad(r, "the host is there twice");
	r->p->ruled = true;
	at = &node->rules;
	for (i = 0; i < n; i++, at = &(*at)->next) {
		*at = calloc(1, sizeof(**at));
		if (*at == NULL)
			return hr_err_nomem(r->err);
		if (hr_text_setf(&(*at)->spelled, r->err, "rules %s %zu", host, i + 1) < 0)
			return -1;
		if (one_rule(r, *at, hr_json_entry(list, i)) < 0)
			return hr_err_prefix(r->err, "rule %zu", i + 1);
	}
	return 0;
}

static int
rules(struct reading *r, struct json_object *v)
{
	if (hr_json_type(v) != HR_PY_DICT)
		return bad(r, "must be an object of hosts");
	json_object_object_foreach(
	    v, host, list) if (rules_of_host(r, host, list) < 0) return hr_err_prefix(r->err,
	    "%.253s", host);
	return 0;
}

/* ---- credentials ---- */

static int
credential_host(struct reading *r, const char *text, void *arg)
{
	const struct policy_credential *c = (const struct policy_credential *)arg;
	char from[IDENTIFIER_MAX + 16];
	struct policy_target t;
	struct policy_node *n;

	if (policy_target_read(text, &t, r->err) < 0)
		return -1;
	if (t.range.version != 0)
		return bad(r, "must be a name with or without a port");
	(void)snprintf(from, sizeof(from), "credentials %s:", c->variable);
	n = node_of(r, &t);
	return n != NULL ? add_entry(r, &n->credentials, c, t.port, from, text) : -1;
}

/* Returns true for a variable without which programs of the box would not work, or not safely. */
static bool
is_needed(const char *variable)
{
	static const char *const names[] = {"HOME", "IFS", "LANG", "LOGNAME", "PATH", "PWD",
	    "SHELL", "TERM", "TMPDIR", "USER", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
	    "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE", "PIP_CERT",
	    "CARGO_HTTP_CAINFO"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(variable, names[i]) == 0)
			return true;
	return strncmp(variable, "LD_", 3) == 0 || strncmp(variable, "LC_", 3) == 0 ||
	       strncmp(variable, "BASH", 4) == 0 || strncmp(variable, "HANDRAIL_", 9) == 0;
}

static int
credential(
    struct reading *r, struct policy_credential **at, const char *variable, struct json_object *o)
{
	const char *secret = hr_json_text_at(o, "secret");
	struct policy_credential *c;

	if (!is_identifier(variable, LETTERS DIGITS "_") || isdigit((unsigned char)*variable))
		return bad(r, "a variable's name must be at most 64 letters, digits and _");
	if (is_needed(variable))
		return bad(r, "programs need this variable for something else");
	if (secret == NULL || json_object_object_length(o) != 2 ||
	    hr_json_count(hr_json_at(o, "hosts")) == 0)
		return bad(r, "must be an object with only \"secret\" and \"hosts\", a list of at "
			      "least one host");
	c = *at = calloc(1, sizeof(*c));
	if (c == NULL)
		return hr_err_nomem(r->err);
	if (hr_text_set(&c->variable, variable, r->err) < 0 ||
	    hr_text_set(&c->secret, secret, r->err) < 0 ||
	    add_secret(r, secret, strlen(secret)) < 0)
		return -1;
	c->shown = (struct egress_credential){c->variable, c->secret};
	return each(r, hr_json_at(o, "hosts"), c, credential_host);
}

static int
credentials(struct reading *r, struct json_object *v)
{
	struct policy_credential **at = &r->p->credentials;

	if (hr_json_type(v) != HR_PY_DICT || json_object_object_length(v) > CREDENTIALS_MAX)
		return hr_err_set(r->err, HR_E_INVAL, "must be an object of at most %d variables",
		    CREDENTIALS_MAX);
	json_object_object_foreach(v, variable, o)
	{
		if (count(r) < 0 || credential(r, at, variable, o) < 0)
			return hr_err_prefix(r->err, "%.64s", variable);
		at = &(*at)->next;
	}
	return 0;
}

/* Reads what the policy must be within. Only entries can be compared exactly. */
static int
limit(struct reading *r, struct json_object *v)
{
	static const char *const excluded[] = {
	    "rules", "credentials", "dnsServers", "egressProxy", "limit"};
	size_t i;

	for (i = 0; i < sizeof(excluded) / sizeof(*excluded); i++)
		if (hr_json_at(v, excluded[i]) != NULL)
			return hr_err_set(
			    r->err, HR_E_INVAL, "\"%s\" cannot be in a limit", excluded[i]);
	r->limit = egress_policy_read(v, r->presets, r->err);
	return r->limit != NULL ? 0 : -1;
}

static int
proxy(struct reading *r, struct json_object *v)
{
	const struct egress_proxy *p = &r->p->proxy;

	return policy_proxy_read(v, &r->p->proxy, r->err) < 0 ? -1
	       : p->secret == NULL                            ? 0
				   : add_secret(r, p->secret, strlen(p->secret));
}

static const struct {
	const char *name;
	each_fn *entry; /* called for each string of a list, with the name of the member */
	int (*read)(struct reading *r, struct json_object *v);
} members[] = {
    {"allowInternetAccess", NULL, internet},
    {"allowOut", allow, NULL},
    {"allow_internet_access", NULL, internet},
    {"credentials", NULL, credentials},
    {"denyOut", deny, NULL},
    {"dnsServers", server, NULL},
    {"egressProxy", NULL, proxy},
    {"limit", NULL, limit},
    {"ports", NULL, default_ports},
    {"presets", preset, NULL},
    {"rules", NULL, rules},
};

static int
member(struct reading *r, const char *name, struct json_object *v)
{
	const char *known[sizeof(members) / sizeof(*members)];
	size_t i;
	int rc;

	for (i = 0; i < sizeof(members) / sizeof(*members); i++) {
		known[i] = members[i].name;
		if (strcmp(members[i].name, name) != 0)
			continue;
		if (v == NULL)
			return 0; /* null is no member */
		rc = members[i].entry != NULL
			 ? each(r, v, (void *)members[i].name, members[i].entry)
			 : members[i].read(r, v);
		return rc < 0 ? hr_err_prefix(r->err, "%s", name) : 0;
	}
	return unknown(r, name, known, i);
}

static int
whole(struct reading *r, struct json_object *o)
{
	if (hr_json_type(o) != HR_PY_DICT)
		return bad(r, "must be an object");
	if (hr_json_has_null(o))
		return bad(r, "a string contains a null character");
	json_object_object_foreach(o, name, v) if (member(r, name, v) < 0) return -1;
	/* allow beats deny */
	r->p->internet = r->allowed_all || (r->internet && !r->denied_all);
	return r->limit != NULL ? egress_policy_within(r->p, r->limit, r->err) : 0;
}

struct egress_policy *
egress_policy_read(struct json_object *o, const char *presets, struct hr_err *err)
{
	struct reading r = {.presets = presets, .err = err};
	int rc;

	r.p = calloc(1, sizeof(*r.p));
	if (r.p == NULL)
		return hr_err_null(err);
	r.p->ports = (struct policy_ports){.n = 2, .v = {80, 443}};
	rc = whole(&r, o);
	egress_policy_free(r.limit);
	if (rc == 0)
		return r.p;
	hr_err_prefix(err, "network");
	egress_policy_free(r.p);
	return NULL;
}
