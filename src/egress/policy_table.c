/* The table of a policy, and the arithmetic of ranges. */
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

void
policy_mask(struct policy_range *r)
{
	size_t i = r->length / 8;

	if (r->length % 8 != 0)
		r->a[i++] &= (uint8_t)(0xFF00 >> r->length % 8);
	memset(r->a + i, 0, sizeof(r->a) - i);
}

static bool
contains(const struct policy_range *outer, struct policy_range r)
{
	if (outer->version != r.version || outer->length > r.length)
		return false;
	r.length = outer->length;
	policy_mask(&r);
	return memcmp(outer->a, r.a, sizeof(r.a)) == 0;
}

bool
policy_embedded(struct policy_range *r)
{
	/* each with the number of bytes before the IPv4 address */
	static const struct {
		struct policy_range range;
		uint8_t skip;
	} kinds[] = {
	    {{6, 96, {[10] = 0xFF, [11] = 0xFF}}, 12},
	    {{6, 96, {0, 0x64, 0xFF, 0x9B}}, 12},
	    {{6, 16, {0x20, 0x02}}, 2},
	};
	struct policy_range v4 = {.version = 4};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (contains(&kinds[i].range, *r)) {
			v4.length = (uint8_t)(r->length - 8 * kinds[i].skip);
			if (v4.length > 32)
				v4.length = 32; /* 6to4: the rest is the network behind it */
			memcpy(v4.a, r->a + kinds[i].skip, 4);
			*r = v4;
			return true;
		}
	return false;
}

bool
policy_is_private(const struct policy_range *r)
{
	static const struct policy_range all[] = {
	    {4, 8, {0}},
	    {4, 8, {10}},
	    {4, 10, {100, 64}},
	    {4, 8, {127}},
	    {4, 32, {168, 63, 129, 16}}, /* a cloud's metadata service at a public address */
	    {4, 16, {169, 254}},
	    {4, 12, {172, 16}},
	    {4, 24, {192, 0, 0}},
	    {4, 24, {192, 0, 2}},
	    {4, 24, {192, 88, 99}},
	    {4, 16, {192, 168}},
	    {4, 15, {198, 18}},
	    {4, 24, {198, 51, 100}},
	    {4, 24, {203, 0, 113}},
	    {4, 4, {224}},
	    {4, 4, {240}},
	    {6, 23, {0x20, 0x01}}, /* among them Teredo */
	    {6, 32, {0x20, 0x01, 0x0D, 0xB8}},
	    {6, 20, {0x3F, 0xFF}},
	};
	size_t i;

	/* IPv6 has public addresses in 2000::/3 only */
	if (r->version == 6 && r->length >= 3 && (r->a[0] & 0xE0) != 0x20)
		return true;
	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (contains(&all[i], *r))
			return true;
	return false;
}
