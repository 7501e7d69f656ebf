/* hr_signin: keeps the browsers signed in to the sandbox's page, on the scoreboard, so that every
 * worker knows them, a worker's death loses none, and signing out ends one everywhere. Only digests
 * of the browser's secrets are stored: a reader of the board cannot sign in with them. */
#ifndef HR_PROTO_SIGNIN_H
#define HR_PROTO_SIGNIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/keysum.h"

#define HR_SIGNINS 64 /* limit; further ones displace those that expire first */

enum hr_page_rights { HR_PAGE_NONE, HR_PAGE_LOOK, HR_PAGE_ACT };

struct hr_signin {
	/* digest of the cookie, which the browser sends by itself */
	unsigned char cookie[HR_KEYSUM];
	unsigned char token[HR_KEYSUM]; /* digest of the token, which only the page sends */
	unsigned char key[HR_KEYSUM];   /* digest of the session key used, as in struct hr_auth */
	int64_t until_ns;               /* expiry, CLOCK_MONOTONIC */
	uint32_t rights;                /* enum hr_page_rights */
};

#define HR_SIGNIN_WORDS ((3 * HR_KEYSUM) / 8)

/* A place for one sign-in. `turn` counts writes and is odd during one, so that a reader notices a
 * change. */
struct hr_signin_place {
	_Atomic uint32_t turn;
	_Atomic uint32_t rights;
	_Atomic int64_t until_ns; /* expiry; 0: free */
	_Atomic uint64_t words[HR_SIGNIN_WORDS];
};

struct hr_signins {
	struct hr_signin_place v[HR_SIGNINS];
};

/* Adds a sign-in in a place of its own. Returns false if other processes took each place that was
 * tried. */
bool hr_signin_add(struct hr_signins *s, const struct hr_signin *what, int64_t now_ns);

/* Finds the unexpired sign-in whose cookie and token have these digests. Compares all places and
 * every byte, for constant time. */
bool hr_signin_find(const struct hr_signins *s, const unsigned char cookie[HR_KEYSUM],
    const unsigned char token[HR_KEYSUM], int64_t now_ns, struct hr_signin *ret);

/* Ends the sign-in of that cookie, if there is one. */
void hr_signin_end(struct hr_signins *s, const unsigned char cookie[HR_KEYSUM]);

#endif
