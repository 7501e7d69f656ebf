/* Explains a policy in sentences, and frees it. */
#include "config.h"

#include "egress/policy_int.h"

#include "base/buf.h"

static void
list(struct hr_buf *b, const char *before, const struct hr_strv *texts)
{
	size_t i;

	for (i = 0; i < texts->n; i++)
		hr_buf_addf(b, "%s%s", i == 0 ? before : ", ", texts->v[i]);
}

static void
ports(struct hr_buf *b, const char *before, const struct policy_ports *ports)
{
	unsigned i;

	for (i = 0; i < ports->n; i++)
		hr_buf_addf(b, "%s%u", i == 0 ? before : ", ", ports->v[i]);
}

static void
rule(struct hr_buf *b, const struct policy_rule *r)
{
	size_t i;

	hr_buf_addf(b, "%s: %s", r->spelled, r->deny ? "refuse" : "allow");
	list(b, " ", &r->methods);
	hr_buf_adds(b, r->methods.n == 0 ? " every request" : " requests");
	list(b, " for ", &r->paths);
	ports(b, " on port ", &r->ports);
	/* the values are left out, since they may be secrets themselves */
	for (i = 0; i < r->headers.n; i++)
		hr_buf_addf(b, "%s%.*s", i == 0 ? ", with the header " : ", ",
		    (int)strcspn(r->headers.v[i], ":"), r->headers.v[i]);
	hr_buf_addc(b, '\n');
}

static void
entries(struct hr_buf *b, const struct policy_entry *e)
{
	for (; e != NULL; e = e->next) {
		hr_buf_adds(b, e->spelled);
		if (e->credential != NULL)
			hr_buf_addf(b, " gets the secret %s", e->credential->secret);
		hr_buf_addc(b, '\n');
	}
}

void
egress_policy_explain(const struct egress_policy *p, struct hr_buf *b)
{
	const struct policy_node *n;
	const struct policy_rule *r;

	hr_buf_adds(b, p->internet ? "every public destination is allowed\n"
				   : "what no line below allows is refused\n");
	ports(b, "ports of entries without a port: ", &p->ports);
	hr_buf_addc(b, '\n');
	list(b, "dnsServers ", &p->servers);
	if (p->servers.n > 0)
		hr_buf_addc(b, '\n');
	if (p->proxy.spelled != NULL)
		hr_buf_addf(b, "egressProxy %s%s%s\n", p->proxy.spelled,
		    p->proxy.user != NULL ? " as " : "",
		    p->proxy.user != NULL ? p->proxy.user : "");
	for (n = p->first; n != NULL; n = n->later) {
		entries(b, n->allow);
		entries(b, n->deny);
		for (r = n->rules; r != NULL; r = r->next)
			rule(b, r);
		entries(b, n->credentials);
	}
}

static void
free_entries(struct policy_entry *e)
{
	struct policy_entry *next;

	for (; e != NULL; e = next) {
		next = e->next;
		free(e->spelled);
		free(e);
	}
}

static void
free_node(struct policy_node *n)
{
	struct policy_rule *r;

	free_entries(n->allow);
	free_entries(n->deny);
	free_entries(n->credentials);
	while ((r = n->rules) != NULL) {
		n->rules = r->next;
		hr_strv_done(&r->methods);
		hr_strv_done(&r->paths);
		hr_strv_done(&r->headers);
		free(r->spelled);
		free(r);
	}
	free(n);
}

void
egress_policy_free(struct egress_policy *p)
{
	struct policy_credential *c;
	struct policy_node *n;

	if (p == NULL)
		return;
	while ((n = p->first) != NULL) {
		p->first = n->later;
		free_node(n);
	}
	while ((c = p->credentials) != NULL) {
		p->credentials = c->next;
		free(c->variable);
		free(c->secret);
		free(c);
	}
	hr_strv_done(&p->servers);
	hr_strv_done(&p->secrets);
	policy_proxy_done(&p->proxy);
	free(p->buckets);
	free(p);
}
