/* Declares the inside of a policy, for policy*.c. One hash table has everything that a name or an
 * address can find, so that a decision takes as many look-ups as the name has labels, or as there
 * are different lengths of ranges. */
#ifndef HR_EGRESS_POLICY_INT_H
#define HR_EGRESS_POLICY_INT_H

#include <stdint.h>

#include "base/strv.h"
#include "egress/policy.h"

#define POLICY_ENTRIES_MAX 100000
#define POLICY_CHAIN_MAX 32 /* nodes in a bucket; only chosen keys collide more often */

struct policy_ports { /* none: the default ports */
	unsigned n;
	uint16_t v[EGRESS_PORTS_MAX];
};

/* A range of addresses, bits beyond the length are 0. Its bytes are a key. */
struct policy_range {
	uint8_t version; /* 4 or 6; 0: none */
	uint8_t length;  /* bits */
	uint8_t a[16];
};

struct policy_target {             /* "HOST[:PORT]" */
	struct policy_range range; /* version 0: the entry is a name */
	char name[EGRESS_NAME_MAX + 2];
	int port; /* 0: none */
};

struct policy_entry { /* an item of allowOut, a preset, denyOut, or a credential's hosts */
	struct policy_entry *next;
	int port; /* 0: the default ports */
	char *spelled;
	const struct policy_credential *credential; /* NULL: none */
};

struct policy_rule {
	struct policy_rule *next;
	struct policy_ports ports;
	struct hr_strv methods, paths, headers;
	bool deny;
	bool secret; /* a header has one */
	char *spelled;
};

struct policy_credential {
	struct policy_credential *next;
	char *variable, *secret;
	struct egress_credential shown; /* borrows from these */
};

/* All that the policy says about a key: a name, the end of names with its dot (".example.com" for
 * "*.example.com"), a range, or a secret's name after a '$'. */
struct policy_node {
	struct policy_node *next;  /* next node of the bucket */
	struct policy_node *later; /* next node in the order of reading */
	struct policy_entry *allow, *deny, *credentials;
	struct policy_rule *rules;
	size_t len; /* bytes of the key, which a NUL follows */
	char key[];
};

struct egress_policy {
	struct policy_node **buckets;
	size_t nbuckets, n;
	struct policy_node *first, *last;
	bool v4[33], v6[129];       /* lengths of ranges that have a node */
	struct policy_ports ports;  /* the default ones */
	struct policy_ports others; /* all ports of the policy but 80 and 443 */
	bool internet;
	bool ruled; /* some host has rules */
	size_t entries;
	struct policy_credential *credentials;
	struct hr_strv servers, secrets;
	struct egress_proxy proxy; /* `spelled` is NULL: none */
};

struct policy_node *policy_find(const struct egress_policy *p, const void *key, size_t len);
/* Finds or makes a node; the error is NULL's. */
struct policy_node *
policy_node(struct egress_policy *p, const void *key, size_t len, struct hr_err *err);

/* Writes an address as a range. Returns its port, or -1 if it is none of IP. */
int policy_range_of(const struct sockaddr *a, struct policy_range *ret);
/* Clears the bits beyond the length. */
void policy_mask(struct policy_range *r);
/* Returns true if all of `r` is in `outer`. */
bool policy_contains(const struct policy_range *outer, struct policy_range r);
/* Replaces an IPv6 range that stands for IPv4 addresses (mapped, 64:ff9b::/96, 6to4) by these.
 * Returns false if there is none. */
bool policy_embedded(struct policy_range *r);
/* Returns true if no address of the range is a public one: private, loopback, link-local, shared,
 * multicast, reserved, or of a cloud's metadata service. */
bool policy_is_private(const struct policy_range *r);
/* Returns the ranges at whose ends an address is judged differently, one by one; NULL: no further.
 */
const struct policy_range *policy_special(size_t i);
/* Returns true if the node is one of addresses, and copies its range. */
bool policy_node_range(const struct policy_node *n, struct policy_range *ret);
/* Returns what lets some connection or request to the node's names through at the port, as it is
 * spelled; NULL: nothing of the node. */
const char *policy_grant(const struct egress_policy *p, const struct policy_node *n, int port);
/* Returns true if a policy without HTTP rules allows all names of a node's key; ".": all names. */
bool policy_covers(const struct egress_policy *p, const char *key, int port);
int policy_proxy_read(struct json_object *v, struct egress_proxy *ret, struct hr_err *err);
void policy_proxy_done(struct egress_proxy *p);
int policy_target_read(const char *text, struct policy_target *ret, struct hr_err *err);

#endif
