/* Decides. A name is looked up as itself and then as each end of it, the longest first: the first
 * of these that has rules, or an entry for the port, decides. Credentials hold beside that. */
#include "config.h"

#include "egress/policy_int.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/percent.h"

/* Returns true for a last label that makes resolvers take a name for an address: 127.1, 0x7f.1. */
static bool
is_number(const char *label)
{
	const bool hex = label[0] == '0' && label[1] == 'x';
	const char *digits = hex ? label + 2 : label;

	return digits[strspn(digits, hex ? "0123456789abcdef" : "0123456789")] == '\0';
}

bool
egress_name(const char *text, size_t len, char ret[EGRESS_NAME_MAX + 1])
{
	size_t i, label = 0; /* label: start of the current one */

	if (len > 0 && text[len - 1] == '.')
		len--;
	if (len == 0 || len > EGRESS_NAME_MAX || text[0] == '-')
		return false;
	for (i = 0; i < len; i++) {
		if (text[i] == '.') {
			if (i == label || i - label > 63)
				return false;
			label = i + 1;
		} else if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_') {
			return false;
		}
		ret[i] = (char)tolower((unsigned char)text[i]);
	}
	ret[len] = '\0';
	return len > label && len - label <= 63 && !is_number(ret + label);
}

static void
decide(struct egress_decision *ret, enum egress_verdict verdict, const char *rule)
{
	ret->verdict = verdict;
	snprintf(ret->rule, sizeof(ret->rule), "%s", rule);
}

static bool
has_port(const struct policy_ports *ports, int port)
{
	unsigned i = 0;

	while (i < ports->n && ports->v[i] != port)
		i++;
	return i < ports->n;
}

/* Returns true if rules or entries without a port are about this one. Where a secret is sent, port
 * 80 must be named. */
static bool
is_default(const struct egress_policy *p, int port, bool secret)
{
	return has_port(&p->ports, port) && !(secret && port == 80);
}

/* Returns true if allowInternetAccess is about this port: one that has a listener, since a client
 * of the proxies may ask for any. */
static bool
by_internet(const struct egress_policy *p, int port)
{
	return p->internet && (port == 80 || port == 443 || has_port(&p->ports, port) ||
				  has_port(&p->others, port));
}

/* Returns the first entry from `e` on that is about the port. */
static const struct policy_entry *
entry_for(const struct egress_policy *p, const struct policy_entry *e, int port)
{
	while (e != NULL &&
	       !(e->port == 0 ? is_default(p, port, e->credential != NULL) : e->port == port))
		e = e->next;
	return e;
}

static const struct policy_rule *
rule_for(const struct egress_policy *p, const struct policy_rule *r, int port)
{
	while (r != NULL &&
	       !(r->ports.n == 0 ? is_default(p, port, r->secret) : has_port(&r->ports, port)))
		r = r->next;
	return r;
}

const char *
policy_grant(const struct egress_policy *p, const struct policy_node *n, int port)
{
	const struct policy_rule *rule = rule_for(p, n->rules, port);
	const struct policy_entry *e = entry_for(p, n->allow, port);

	if (rule == NULL) /* only an entry that names the port counts beside rules */
		return e != NULL && (n->rules == NULL || e->port != 0) ? e->spelled : NULL;
	while (rule != NULL && rule->deny)
		rule = rule_for(p, rule->next, port);
	return rule != NULL ? rule->spelled : NULL;
}

/* Returns the node of the name or of the longest end of it that has a node, from *at on, which is
 * then what follows; NULL: none. */
static const struct policy_node *
next_node(const struct egress_policy *p, const char **at)
{
	const struct policy_node *n = NULL;

	for (; n == NULL && *at != NULL; *at = strchr(*at + 1, '.'))
		n = policy_find(p, *at, strlen(*at));
	return n;
}

bool
policy_covers(const struct egress_policy *p, const char *key, int port)
{
	const struct policy_node *n;

	while ((n = next_node(p, &key)) != NULL)
		if (entry_for(p, n->allow, port) != NULL)
			return true;
	return by_internet(p, port);
}

/* Decides by the rules of a host, whose own entries may name further ports. Returns the first rule
 * if requests must be inspected. */
static const struct policy_rule *
by_rules(const struct egress_policy *p, const struct policy_node *n, int port,
    struct egress_decision *ret)
{
	const struct policy_rule *rule = rule_for(p, n->rules, port);
	const struct policy_entry *e = entry_for(p, n->allow, port);

	if (rule == NULL) {
		if (e != NULL && e->port != 0)
			decide(ret, EGRESS_ALLOW, e->spelled);
		else
			snprintf(ret->rule, sizeof(ret->rule), "rules %s%s: none for this port",
			    n->key[0] == '.' ? "*" : "", n->key);
		return NULL;
	}
	if (rule->methods.n == 0 && rule->paths.n == 0 && rule->headers.n == 0) {
		decide(ret, rule->deny ? EGRESS_DENY : EGRESS_ALLOW, rule->spelled);
		return NULL;
	}
	decide(ret, EGRESS_INSPECT, rule->spelled);
	return rule;
}

/* Puts into *ret the entry about the name but not the port, or about the names below it. */
static void
name_near(const struct egress_policy *p, const char *name, int port, struct egress_decision *ret)
{
	const struct policy_node *n = NULL;
	char below[EGRESS_NAME_MAX + 2];
	const char *at = name;

	do
		n = next_node(p, &at);
	while (n != NULL && n->allow == NULL);
	if (n != NULL) {
		snprintf(ret->rule, sizeof(ret->rule), "no rule for port %d, only %s", port,
		    n->allow->spelled);
		return;
	}
	snprintf(below, sizeof(below), ".%s", name);
	n = policy_find(p, below, strlen(below));
	if (n != NULL && n->allow != NULL)
		snprintf(ret->rule, sizeof(ret->rule), "no rule for the name itself, only %s",
		    n->allow->spelled);
}

/* Decides on a name. Returns the first rule for its requests; NULL: it has none. */
static const struct policy_rule *
by_name(const struct egress_policy *p, const char *text, int port, struct egress_decision *ret)
{
	const struct policy_rule *first = NULL;
	const struct policy_entry *e = NULL, *use = NULL;
	char name[EGRESS_NAME_MAX + 1];
	const struct policy_node *n;
	const char *at = name;

	ret->ruled = false;
	decide(ret, EGRESS_DENY, "no rule");
	if (!egress_name(text, strlen(text), name))
		return NULL;
	while ((n = next_node(p, &at)) != NULL) {
		if (use == NULL)
			use = entry_for(p, n->credentials, port);
		if (ret->ruled || e != NULL)
			continue;
		ret->ruled = n->rules != NULL;
		if (ret->ruled)
			first = by_rules(p, n, port, ret);
		else if ((e = entry_for(p, n->allow, port)) != NULL)
			decide(ret, EGRESS_ALLOW, e->spelled);
	}
	if (!ret->ruled && e == NULL && by_internet(p, port))
		decide(ret, EGRESS_ALLOW, "allowInternetAccess");
	else if (!ret->ruled && e == NULL)
		name_near(p, name, port, ret);
	if (use != NULL && ret->verdict == EGRESS_ALLOW)
		ret->verdict = EGRESS_INSPECT;
	else if (use != NULL && !ret->ruled)
		decide(ret, EGRESS_INSPECT, use->spelled);
	return first;
}

void
egress_policy_name(
    const struct egress_policy *p, const char *name, int port, struct egress_decision *ret)
{
	(void)by_name(p, name, port, ret);
}

bool
egress_policy_ruled(const struct egress_policy *p)
{
	return p->ruled;
}

/* ---- addresses ---- */

/* Finds the entry that allows an address, and the one that denies it, the longest range first. A
 * private address is only allowed by a range without public ones. For an address of a name
 * (`named`), whose port is allowed already, an entry without a port is about every port, and
 * 0.0.0.0/0 does not deny, since allow beats deny. Port 0: all entries are about it. */
static void
by_range(const struct egress_policy *p, const struct policy_range *a, int port, bool named,
    const struct policy_entry **allow, const struct policy_entry **deny)
{
	const bool private = policy_is_private(a), *used = a->version == 4 ? p->v4 : p->v6;
	const struct policy_entry *e;
	const struct policy_node *n;
	struct policy_range r = *a;
	int length;

	*allow = *deny = NULL;
	for (length = a->length; length >= 0; length--) {
		if (!used[length])
			continue;
		r.length = (uint8_t)length;
		policy_mask(&r);
		n = policy_find(p, &r, sizeof(r));
		if (n == NULL)
			continue;
		if (*deny == NULL && !(named && a->version == 4 && length == 0))
			*deny = n->deny;
		if (private && !policy_is_private(&r))
			continue;
		for (e = n->allow; e != NULL && *allow == NULL; e = e->next)
			if (port == 0 || e->port == port ||
			    (e->port == 0 && (named || is_default(p, port, false))))
				*allow = e;
	}
}

void
egress_policy_address(
    const struct egress_policy *p, struct in_addr a, int port, struct egress_decision *ret)
{
	struct policy_range r = {.version = 4, .length = 32};
	const struct policy_entry *allow, *deny;

	ret->ruled = false;
	memcpy(r.a, &a, sizeof(a));
	by_range(p, &r, port, false, &allow, &deny);
	if (allow != NULL)
		decide(ret, EGRESS_ALLOW, allow->spelled);
	else if (deny != NULL)
		decide(ret, EGRESS_DENY, deny->spelled);
	else if (p->internet && policy_is_private(&r))
		decide(ret, EGRESS_DENY, "no rule names the private address");
	else
		decide(ret, by_internet(p, port) ? EGRESS_ALLOW : EGRESS_DENY,
		    by_internet(p, port) ? "allowInternetAccess" : "no rule");
}

int
policy_range_of(const struct sockaddr *a, struct policy_range *ret)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (a == NULL || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
		return -1;
	if (a->sa_family == AF_INET) {
		memcpy(&in, a, sizeof(in));
		*ret = (struct policy_range){.version = 4, .length = 32};
		memcpy(ret->a, &in.sin_addr, sizeof(in.sin_addr));
		return ntohs(in.sin_port);
	}
	memcpy(&in6, a, sizeof(in6));
	*ret = (struct policy_range){.version = 6, .length = 128};
	memcpy(ret->a, &in6.sin6_addr, sizeof(in6.sin6_addr));
	policy_embedded(ret);
	return ntohs(in6.sin6_port);
}

bool
egress_policy_result(const struct egress_policy *p, const struct sockaddr *a)
{
	const struct policy_entry *allow, *deny;
	struct policy_range r;
	int port = policy_range_of(a, &r);

	if (port < 0)
		return false;
	by_range(p, &r, port, true, &allow, &deny);
	return allow != NULL || (deny == NULL && !policy_is_private(&r));
}

bool
egress_policy_names(const struct egress_policy *p, const struct sockaddr *a)
{
	const struct policy_entry *allow, *deny, *e;
	const struct policy_node *all;
	struct policy_range r;
	int port = policy_range_of(a, &r);

	if (port < 0)
		return false;
	by_range(p, &r, port, true, &allow, &deny);
	r.length = 0;
	policy_mask(&r);
	all = policy_find(p, &r, sizeof(r));
	for (e = all != NULL ? all->allow : NULL; e != NULL && e != allow;)
		e = e->next;
	return allow != NULL && e == NULL;
}

/* ---- requests ---- */

/* Appends the path with its escapes decoded and without double slashes. Returns false if servers
 * may read it differently: dot segments, also before parameters (";"), backslashes, fragments,
 * control characters, broken escapes. */
static bool
plain_path(const char *path, struct hr_buf *b)
{
	const char *at, *end;
	int c;

	if (*path != '/')
		return strcmp(path, "*") == 0;
	for (at = path; *at != '\0'; at++) {
		c = (unsigned char)*at;
		if (c == '%') {
			c = hr_hex_value(at[1]) < 0 || hr_hex_value(at[2]) < 0
				? 0
				: hr_hex_value(at[1]) << 4 | hr_hex_value(at[2]);
			at += 2;
		}
		if (c < ' ' || c == 0x7F || c == '\\' || *at == '#')
			return false;
		if (c != '/' || b->len == 0 || b->p[b->len - 1] != '/')
			hr_buf_addc(b, (char)c);
	}
	if (hr_buf_check(b, NULL) < 0)
		return false;
	for (at = b->p; at != NULL; at = strchr(at, '/')) {
		at++;
		end = at + strspn(at, ".");
		if (end - at >= 1 && end - at <= 2 && (*end == '/' || *end == ';' || *end == '\0'))
			return false;
	}
	return true;
}

/* Returns true if the text fits the pattern, in which '*' stands for any bytes. */
static bool
matches(const char *pattern, const char *text)
{
	const char *star = NULL, *from = text;

	while (*text != '\0') {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == *text) {
			pattern++;
			text++;
		} else if (star != NULL) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

/* Judges the decoded path, too, if the rule denies: the server may decode it. */
static bool
rule_matches(
    const struct policy_rule *rule, const char *method, const char *path, const char *decoded)
{
	HR_BUF(pattern, 1 << 16);
	size_t i;

	for (i = 0; i < rule->methods.n && strcasecmp(rule->methods.v[i], method) != 0;)
		i++;
	if (i == rule->methods.n && i > 0)
		return false;
	for (i = 0; i < rule->paths.n; i++) {
		if (matches(rule->paths.v[i], path))
			return true;
		if (!rule->deny)
			continue;
		hr_buf_reset(&pattern);
		hr_percent_decode(&pattern, rule->paths.v[i], strlen(rule->paths.v[i]), false);
		if (hr_buf_check(&pattern, NULL) < 0 || matches(hr_buf_str(&pattern), decoded))
			return true;
	}
	return rule->paths.n == 0;
}

void
egress_policy_request(const struct egress_policy *p, const char *name, int port, const char *method,
    const char *path, struct egress_decision *ret)
{
	const struct policy_rule *rule = by_name(p, name, port, ret), *first = rule;
	HR_BUF(decoded, 1 << 16);
	bool plain = plain_path(path, &decoded), paths = false, denies = false;

	if (ret->verdict != EGRESS_INSPECT)
		return;
	ret->verdict = rule == NULL ? EGRESS_ALLOW : EGRESS_DENY;
	for (; rule != NULL; rule = rule_for(p, rule->next, port)) {
		paths = paths || rule->paths.n > 0;
		denies = denies || (rule->deny && rule->paths.n > 0);
	}
	/* some servers drop a ";" and the rest of its part of the path */
	if ((paths && !plain) || (denies && strchr(hr_buf_str(&decoded), ';') != NULL)) {
		decide(ret, EGRESS_DENY, "ambiguous path");
		return;
	}
	for (rule = first; rule != NULL; rule = rule_for(p, rule->next, port))
		if (rule_matches(rule, method, path, hr_buf_str(&decoded))) {
			decide(ret, rule->deny ? EGRESS_DENY : EGRESS_ALLOW, rule->spelled);
			return;
		}
	if (first != NULL)
		snprintf(ret->rule, sizeof(ret->rule), "no rule of %s matches", name);
}

int
egress_policy_http(const struct egress_policy *p, const char *name, int port,
    int (*rule)(void *arg, const struct egress_http_rule *r),
    int (*credential)(void *arg, const struct egress_credential *c), void *arg)
{
	char plain[EGRESS_NAME_MAX + 1];
	const char *at = plain;
	const struct policy_node *n;
	const struct policy_entry *use;
	struct egress_decision d;
	const struct policy_rule *r = by_name(p, name, port, &d);
	int rc = 0;

	if (d.verdict != EGRESS_INSPECT || !egress_name(name, strlen(name), plain))
		return 0;
	if (r == NULL)
		rc = rule(arg, &(struct egress_http_rule){.spelled = d.rule});
	for (; rc == 0 && r != NULL; r = rule_for(p, r->next, port))
		rc = rule(arg, &(struct egress_http_rule){.deny = r->deny,
				   .methods = (const char *const *)r->methods.v,
				   .paths = (const char *const *)r->paths.v,
				   .headers = (const char *const *)r->headers.v,
				   .spelled = r->spelled});
	while (rc == 0 && (n = next_node(p, &at)) != NULL)
		for (use = entry_for(p, n->credentials, port); rc == 0 && use != NULL;
		     use = entry_for(p, use->next, port))
			rc = credential(arg, &use->credential->shown);
	return rc;
}

/* ---- all of it ---- */

int
egress_policy_credentials(const struct egress_policy *p,
    int (*fn)(void *arg, const struct egress_credential *c), void *arg)
{
	const struct policy_credential *c;
	int rc = 0;

	for (c = p->credentials; rc == 0 && c != NULL; c = c->next)
		rc = fn(arg, &c->shown);
	return rc;
}

int
egress_policy_secrets(
    const struct egress_policy *p, int (*fn)(void *arg, const char *secret), void *arg)
{
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < p->secrets.n; i++)
		rc = fn(arg, p->secrets.v[i]);
	return rc;
}

size_t
egress_policy_ports(const struct egress_policy *p, int ret[EGRESS_PORTS_MAX + 2])
{
	unsigned i;

	ret[0] = 80;
	ret[1] = 443;
	for (i = 0; i < p->others.n; i++)
		ret[2 + i] = p->others.v[i];
	return 2 + i;
}

const char *
egress_policy_private(const struct egress_policy *p)
{
	const struct policy_entry *e;
	const struct policy_node *n;
	struct policy_range r;

	if (p->servers.n > 0)
		return "dnsServers";
	if (policy_range_of(&p->proxy.address.any, &r) >= 0 && policy_is_private(&r))
		return "egressProxy";
	for (n = p->first; n != NULL; n = n->later) {
		if (n->credentials != NULL)
			return n->credentials->spelled;
		e = n->allow;
		if (e != NULL && policy_node_range(n, &r) && policy_is_private(&r))
			return e->spelled;
	}
	return p->secrets.n > 0 ? p->secrets.v[0] : NULL;
}

const char *const *
egress_policy_servers(const struct egress_policy *p)
{
	return (const char *const *)p->servers.v;
}
