/* Reads "HOST[:PORT]", and knows which ranges of addresses are private. */
#include "config.h"

#include "egress/policy_int.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "egress/wire.h"

void
policy_mask(struct policy_range *r)
{
	size_t i = r->length / 8;

	if (r->length % 8 != 0)
		r->a[i++] &= (uint8_t)(0xFF00 >> r->length % 8);
	memset(r->a + i, 0, sizeof(r->a) - i);
}

bool
policy_contains(const struct policy_range *outer, struct policy_range r)
{
	if (outer->version != r.version || outer->length > r.length)
		return false;
	r.length = outer->length;
	policy_mask(&r);
	return memcmp(outer->a, r.a, sizeof(r.a)) == 0;
}

/* These ranges are judged before all others: first those of IPv6 that stand for IPv4 addresses,
 * then the public part of IPv6, then the private ranges in the public parts. */
static const struct policy_range special[] = {
    {6, 96, {[10] = 0xFF, [11] = 0xFF}},
    {6, 96, {0, 0x64, 0xFF, 0x9B}},
    {6, 16, {0x20, 0x02}},
    {6, 3, {0x20}},
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
    {6, 23, {0x20, 0x01}}, /* Teredo and others */
    {6, 32, {0x20, 0x01, 0x0D, 0xB8}},
    {6, 20, {0x3F, 0xFF}},
};
#define SPECIAL (sizeof(special) / sizeof(*special))
#define PUBLIC6 3 /* index of the public part of IPv6 */

const struct policy_range *
policy_special(size_t i)
{
	return i < SPECIAL ? &special[i] : NULL;
}

bool
policy_embedded(struct policy_range *r)
{
	/* the number of bytes before the IPv4 address, of each of the first special ranges */
	static const uint8_t skips[PUBLIC6] = {12, 12, 2};
	struct policy_range v4 = {.version = 4};
	size_t i;

	for (i = 0; i < PUBLIC6; i++)
		if (policy_contains(&special[i], *r)) {
			v4.length = (uint8_t)(r->length - 8 * skips[i]);
			if (v4.length > 32)
				v4.length = 32; /* 6to4: the rest is the network behind it */
			memcpy(v4.a, r->a + skips[i], 4);
			*r = v4;
			return true;
		}
	return false;
}

bool
policy_is_private(const struct policy_range *r)
{
	size_t i;

	if (r->version == 6 && r->length >= special[PUBLIC6].length &&
	    !policy_contains(&special[PUBLIC6], *r))
		return true;
	for (i = PUBLIC6 + 1; i < SPECIAL; i++)
		if (policy_contains(&special[i], *r))
			return true;
	return false;
}

/* Reads "ADDRESS[/LENGTH]". Returns 1, 0 if text is no address, or -1. */
static int
range_of(const char *text, struct policy_range *ret, struct hr_err *err)
{
	char plain[INET6_ADDRSTRLEN], right[INET6_ADDRSTRLEN], *end;
	size_t n = strcspn(text, "/");
	struct policy_range exact;
	int family = memchr(text, ':', n) != NULL ? AF_INET6 : AF_INET;
	unsigned long length, most = family == AF_INET6 ? 128 : 32;

	if (n >= sizeof(plain))
		return 0;
	memcpy(plain, text, n);
	plain[n] = '\0';
	*ret = (struct policy_range){.version = family == AF_INET6 ? 6 : 4};
	if (inet_pton(family, plain, ret->a) != 1)
		return 0;
	length = most;
	if (text[n] == '/') {
		length = strtoul(text + n + 1, &end, 10);
		if (!isdigit((unsigned char)text[n + 1]) || *end != '\0' || length > most)
			return hr_err_set(err, HR_E_INVAL,
			    "the length after \"/\" must be 0 to 32, or 0 to 128 for IPv6");
	}
	ret->length = (uint8_t)length;
	exact = *ret;
	policy_mask(ret);
	if (memcmp(exact.a, ret->a, sizeof(exact.a)) != 0)
		return hr_err_set(err, HR_E_INVAL, "the range must be written as %s/%lu",
		    inet_ntop(family, ret->a, right, sizeof(right)), length);
	if (policy_embedded(&exact))
		return hr_err_set(
		    err, HR_E_INVAL, "the range must be written with its IPv4 addresses");
	return 1;
}

static int
name_of(const char *text, char ret[EGRESS_NAME_MAX + 2], struct hr_err *err)
{
	const bool wild = strncmp(text, "*.", 2) == 0;
	const char *at;

	for (at = text; *at != '\0'; at++)
		if ((unsigned char)*at >= 0x80)
			return hr_err_set(err, HR_E_INVAL,
			    "a name must be in ASCII: write other letters in the form \"xn--...\"");
	if (strcmp(text, "*") == 0)
		return hr_err_set(
		    err, HR_E_INVAL, "must not be \"*\": use \"allowInternetAccess\": true");
	ret[0] = '.';
	if (!egress_name(wild ? text + 2 : text, strlen(text) - (wild ? 2 : 0), ret + wild))
		return hr_err_set(err, HR_E_INVAL,
		    "must be a name, \"*.\" and a name, an address or a range, "
		    "without scheme and path");
	return 0;
}

int
policy_target_read(const char *text, struct policy_target *ret, struct hr_err *err)
{
	const char *host = text, *end = strchrnul(text, ':'), *rest;
	HR_FREE char *copy = NULL;
	int got;

	*ret = (struct policy_target){0};
	if (*text == '[') {
		host = text + 1;
		end = strchrnul(host, ']');
		rest = *end == ']' ? end + 1 : text;
	} else {
		if (*end != '\0' && strchr(end + 1, ':') != NULL)
			end = strchr(text, '\0'); /* IPv6 without a port */
		rest = end;
	}
	if (*rest != '\0' && (*rest != ':' || !egress_port(rest + 1, strlen(rest + 1), &ret->port)))
		return hr_err_set(err, HR_E_INVAL,
		    "after the host only \":\" and a port from 1 to 65535 can follow");
	copy = strndup(host, (size_t)(end - host));
	if (copy == NULL)
		return hr_err_nomem(err);
	got = range_of(copy, &ret->range, err);
	if (got != 0)
		return got > 0 ? 0 : -1;
	ret->range.version = 0;
	return name_of(*text == '[' ? text : copy, ret->name, err);
}
