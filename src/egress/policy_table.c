/* Implements the hash table of a policy. */
#include "config.h"

#include "egress/policy_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static size_t
bucket_of(const struct egress_policy *p, const void *key, size_t len)
{
	uint64_t h = hr_hash(HR_HASH, key, len);

	return (size_t)(h ^ h >> 32) & (p->nbuckets - 1);
}

struct policy_node *
policy_find(const struct egress_policy *p, const void *key, size_t len)
{
	struct policy_node *n = p->nbuckets > 0 ? p->buckets[bucket_of(p, key, len)] : NULL;

	while (n != NULL && (n->len != len || memcmp(n->key, key, len) != 0))
		n = n->next;
	return n;
}

/* Puts a node into its bucket. Returns false if the bucket is full. */
static bool
place(struct egress_policy *p, struct policy_node *n)
{
	struct policy_node **at = &p->buckets[bucket_of(p, n->key, n->len)];
	unsigned chain = 0;

	for (n->next = NULL; *at != NULL; at = &(*at)->next)
		chain++;
	*at = n;
	return chain < POLICY_CHAIN_MAX;
}

static int
grow(struct egress_policy *p, struct hr_err *err)
{
	size_t want = p->nbuckets == 0 ? 64 : p->nbuckets * 2;
	struct policy_node **buckets, *n;

	if (p->n < p->nbuckets)
		return 0;
	buckets = calloc(want, sizeof(struct policy_node *));
	if (buckets == NULL)
		return hr_err_nomem(err);
	free(p->buckets);
	p->buckets = buckets;
	p->nbuckets = want;
	for (n = p->first; n != NULL; n = n->later)
		(void)place(p, n); /* chains only become shorter */
	return 0;
}

struct policy_node *
policy_node(struct egress_policy *p, const void *key, size_t len, struct hr_err *err)
{
	struct policy_node *n = policy_find(p, key, len);

	if (n != NULL)
		return n;
	if (grow(p, err) < 0)
		return NULL;
	n = calloc(1, sizeof(*n) + len + 1);
	if (n == NULL)
		return hr_err_null(err);
	memcpy(n->key, key, len);
	n->len = len;
	if (p->last != NULL)
		p->last->later = n;
	else
		p->first = n;
	p->last = n;
	p->n++;
	if (place(p, n))
		return n;
	hr_err_set(err, HR_E_TOOLARGE, "the names of the policy were chosen to slow it down");
	return NULL;
}

bool
policy_node_range(const struct policy_node *n, struct policy_range *ret)
{
	if (n->len != sizeof(*ret))
		return false;
	memcpy(ret, n->key, sizeof(*ret));
	return ret->version == 4 || ret->version == 6; /* no name begins with these bytes */
}
