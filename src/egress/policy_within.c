/* Compares two policies. Whether an address is allowed can only change where a range of one of
 * them, or a special range, begins or has ended. So the first address of each range and the one
 * after its last stand for all others, and are decided as the broker decides. A wildcard has names
 * without end, so that only a wildcard contains it. */
#include "config.h"

#include "egress/policy_int.h"

#include <arpa/inet.h>
#include <string.h>

#define TESTS_MAX 200000 /* ranges and names, by ports; a test takes up to some microseconds */

struct comparison {
	const struct egress_policy *p, *most;
	int port;
	bool names; /* p allows some name at this port */
	struct hr_err *err;
};

static int
more(const struct comparison *c, const char *what)
{
	return hr_err_set(c->err, HR_E_PERMISSION,
	    "%s asks for more, at port %d, than the limit allows", what, c->port);
}

/* Compares the two for one address, a range of its full length. */
static int
compare_at(const struct comparison *c, const struct policy_range *r)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)c->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = in.sin_port};
	const struct sockaddr *a = r->version == 4 ? (const struct sockaddr *)(const void *)&in
						   : (const struct sockaddr *)(const void *)&in6;
	char text[INET6_ADDRSTRLEN];
	struct egress_decision mine, theirs;

	memcpy(&in.sin_addr, r->a, sizeof(in.sin_addr));
	memcpy(&in6.sin6_addr, r->a, sizeof(in6.sin6_addr));
	if (r->version == 4) {
		egress_policy_address(c->p, in.sin_addr, c->port, &mine);
		egress_policy_address(c->most, in.sin_addr, c->port, &theirs);
		if (mine.verdict != EGRESS_DENY && theirs.verdict == EGRESS_DENY)
			return more(c, mine.rule);
	}
	if (!c->names || !egress_policy_result(c->p, a) || egress_policy_result(c->most, a))
		return 0;
	return hr_err_set(c->err, HR_E_PERMISSION,
	    "names may lead to %s, which the limit denies: have its entries of denyOut, "
	    "too",
	    inet_ntop(a->sa_family, r->a, text, sizeof(text)));
}

/* Compares at the range's first address, and at the one after its last. */
static int
compare_ends(const struct comparison *c, struct policy_range r)
{
	unsigned bit = r.length, most = r.version == 4 ? 32 : 128;

	r.length = (uint8_t)most;
	if (compare_at(c, &r) < 0)
		return -1;
	/* adds 1 to the bits of the range's length */
	while (bit > 0) {
		bit--;
		r.a[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		if ((r.a[bit / 8] & 0x80 >> bit % 8) != 0)
			return compare_at(c, &r);
	}
	return 0; /* the range is the last one */
}

static int
compare_ranges(const struct comparison *c, const struct egress_policy *of)
{
	const struct policy_node *n;
	struct policy_range r;

	for (n = of->first; n != NULL; n = n->later)
		if (policy_node_range(n, &r) && compare_ends(c, r) < 0)
			return -1;
	return 0;
}

static int
compare_port(struct comparison *c)
{
	static const struct policy_range all[] = {{.version = 4}, {.version = 6}};
	const struct policy_range *special;
	const struct policy_node *n;
	struct policy_range r;
	const char *grant;
	size_t i;

	c->names = c->p->internet;
	if (c->names && !policy_covers(c->most, ".", c->port))
		return more(c, "allowInternetAccess");
	for (n = c->p->first; n != NULL; n = n->later) {
		grant = policy_node_range(n, &r) ? NULL : policy_grant(c->p, n, c->port);
		if (grant != NULL && !policy_covers(c->most, n->key, c->port))
			return more(c, grant);
		c->names = c->names || grant != NULL;
	}
	for (i = 0; i < 2; i++)
		if (compare_ends(c, all[i]) < 0)
			return -1;
	for (i = 0; (special = policy_special(i)) != NULL; i++)
		if (compare_ends(c, *special) < 0)
			return -1;
	return compare_ranges(c, c->p) < 0 || compare_ranges(c, c->most) < 0 ? -1 : 0;
}

int
egress_policy_within(
    const struct egress_policy *p, const struct egress_policy *most, struct hr_err *err)
{
	struct comparison c = {.p = p, .most = most, .err = err};
	int ports[EGRESS_PORTS_MAX + 2];
	size_t i, n = egress_policy_ports(p, ports);

	if (p->servers.n > 0 || p->secrets.n > 0 || p->proxy.spelled != NULL)
		return hr_err_set(err, HR_E_PERMISSION,
		    "dnsServers, egressProxy and secrets belong to the settings of this service: "
		    "leave %.400s out",
		    p->proxy.spelled != NULL ? "egressProxy" : egress_policy_private(p));
	if (n * (p->n + most->n) > TESTS_MAX)
		return hr_err_set(err, HR_E_TOOLARGE,
		    "the rules are too many to be compared with the limit: use ranges and "
		    "wildcards, or fewer ports");
	for (i = 0; i < n; i++) {
		c.port = ports[i];
		if (compare_port(&c) < 0)
			return -1;
	}
	return 0;
}
