/* egress_policy: decides what a box may reach (handrail-egress(8), "The rules"). It makes no system
 * call; the broker, `handrail net test` and the fleet ask the same code. Look-ups do not depend on
 * the number of rules. */
#ifndef HR_EGRESS_POLICY_H
#define HR_EGRESS_POLICY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct egress_policy;
struct json_object;

#define EGRESS_POLICY_MAX (1u << 20) /* maximum bytes of a policy's text */
#define EGRESS_NAME_MAX 253          /* maximum bytes of a name, without a final dot */
#define EGRESS_PORTS_MAX 64          /* maximum number of different ports that a policy names */

/* An address with a port, in a fifth of the bytes of struct sockaddr_storage. */
union egress_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

enum egress_verdict {
	EGRESS_DENY,
	EGRESS_ALLOW, /* a tunnel: its bytes are not looked at, except the name in a TLS greeting */
	EGRESS_INSPECT, /* HTTP rules apply: nginx ends the connection */
};

struct egress_decision {
	enum egress_verdict verdict;
	bool ruled;     /* a name: its host has rules, which decided */
	char rule[320]; /* the entry that decided, as `handrail net show` spells it, such as
			   "allowOut *.example.com"; "no rule" */
};

/* Reads a network object. `presets` is the directory of the preset files, or NULL if presets are an
 * error. Anything that this version does not enforce is an error that names the member; more than
 * the object's own limit is HR_E_PERMISSION. The policy is the caller's; NULL: *err is set. */
struct egress_policy *
egress_policy_read(struct json_object *o, const char *presets, struct hr_err *err);
void egress_policy_free(struct egress_policy *p); /* Does nothing with NULL. */

/* Reads a host name: ASCII letters, digits, '-', '_' and '.', one final dot allowed; writes it in
 * lower case without that dot. Returns false if it is none; resolvers take a name whose last label
 * is a number for an address, so it is none. */
bool egress_name(const char *text, size_t len, char ret[EGRESS_NAME_MAX + 1]);

/* Decides on a connection to a name, or to an address that no name stands for. */
void egress_policy_name(
    const struct egress_policy *p, const char *name, int port, struct egress_decision *ret);
void egress_policy_address(
    const struct egress_policy *p, struct in_addr a, int port, struct egress_decision *ret);

/* Returns true if some host has rules, which no connection to its address may evade. */
bool egress_policy_ruled(const struct egress_policy *p);

/* Returns true if a connection to a name may go to this address and port (0: any): allowOut has the
 * address, or it is public and no range of denyOut but 0.0.0.0/0 contains it. A private
 * address must be in a range that has only such. An entry without a port is about every port. */
bool egress_policy_result(const struct egress_policy *p, const struct sockaddr *a);
/* Returns true if allowOut has the address, or a range of it other than 0.0.0.0/0 and ::/0, for
 * this port (0: any). The broker asks it about an address of its own machine. */
bool egress_policy_names(const struct egress_policy *p, const struct sockaddr *a);

/* Decides on one request of an inspected host: never EGRESS_INSPECT. `path` is the raw request
 * target without its query. An ambiguous path (dot segments, backslashes, control characters, also
 * encoded; broken escapes; a fragment) is denied where rules have paths; so is one with ';' where a
 * rule denies paths. */
void egress_policy_request(const struct egress_policy *p, const char *name, int port,
    const char *method, const char *path, struct egress_decision *ret);

/* nginx enforces these for an inspected host, in the order of the rules; the first one that matches
 * decides. */
struct egress_http_rule {
	bool deny;
	const char *const *methods; /* upper case, NULL-terminated; NULL: all */
	const char *const *paths;   /* patterns: '*' stands for any bytes, '/' included, everything
				       else for itself; NULL: all */
	const char *const *headers; /* "Name: value", the value with ${secrets.NAME}; NULL: none */
	const char *spelled;        /* as in egress_decision.rule */
};
struct egress_credential {
	const char *variable; /* name in the box, such as GITHUB_TOKEN */
	const char *secret;   /* name of the secret */
};
/* Calls `rule` for each rule and `credential` for each credential that holds for name:port. A host
 * that is inspected has at least one rule: where only credentials are the reason, it allows all.
 * Returns 0, or what a function returned if that is not 0, after which no other call is made. */
int egress_policy_http(const struct egress_policy *p, const char *name, int port,
    int (*rule)(void *arg, const struct egress_http_rule *r),
    int (*credential)(void *arg, const struct egress_credential *c), void *arg);

/* Calls fn for each credential of the policy, for the variables of a box. */
int egress_policy_credentials(const struct egress_policy *p,
    int (*fn)(void *arg, const struct egress_credential *c), void *arg);
/* Calls fn with the name of each secret that the policy uses, each once. */
int egress_policy_secrets(
    const struct egress_policy *p, int (*fn)(void *arg, const char *secret), void *arg);

/* Writes the ports on which the broker must listen: 80, 443 and those that entries name. Returns
 * their number. */
size_t egress_policy_ports(const struct egress_policy *p, int ret[EGRESS_PORTS_MAX + 2]);
/* Returns the policy's own DNS servers as text "ADDRESS[:PORT]", NULL-terminated; NULL: those of
 * the machine. */
const char *const *egress_policy_servers(const struct egress_policy *p);

/* The operator's proxy, to which the broker leaves each connection after it has resolved the name
 * and judged the address. */
struct egress_proxy {
	bool http;                      /* CONNECT; false: SOCKS5 */
	char name[EGRESS_NAME_MAX + 1]; /* "": an address */
	union egress_address address;   /* includes the port */
	int port;
	char *spelled;
	char *user, *secret; /* the secret is the password; NULL: neither */
};
/* NULL: connections leave directly. */
const struct egress_proxy *egress_policy_proxy(const struct egress_policy *p);
#define EGRESS_SOCKS_MAX 255    /* bytes of a user or a password that SOCKS5 can send */
#define EGRESS_CONNECT_MAX 4096 /* bytes of a password for CONNECT */
/* Checks that the proxy's password, one of the secrets, can be sent. Returns 0, or -1 with *err
 * set. */
int egress_policy_password(
    const struct egress_policy *p, struct json_object *secrets, struct hr_err *err);

/* Returns an entry that leads to more than public addresses by public resolvers, or that sends a
 * secret: only the owner of these decides about it. Borrowed; NULL: there is none. */
const char *egress_policy_private(const struct egress_policy *p);

/* Checks that `most` allows each connection that p allows, to names and to addresses, and that a
 * name leads to no address with p that it does not lead to with `most`. Rules for the requests of a
 * host count as an entry for it. `most` has no such rules, no credentials, dnsServers or proxy.
 * Returns 0, or -1 with *err, HR_E_PERMISSION, which names the entry that asks for more. */
int egress_policy_within(
    const struct egress_policy *p, const struct egress_policy *most, struct hr_err *err);

struct hr_buf;
/* Appends the policy in sentences, a line each, with the entries of the presets spelled out, for
 * `handrail net show`. No secret is in it. */
void egress_policy_explain(const struct egress_policy *p, struct hr_buf *b);

#endif
