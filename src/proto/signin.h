/* hr_signin: who has signed in to the page of the sandbox, on the scoreboard, so that every worker
 * knows it, none is missed when it dies, and one that is ended is ended everywhere. Only sums of
 * what the browser holds are kept: who reads them can send nothing in its place. */
#ifndef HR_PROTO_SIGNIN_H
#define HR_PROTO_SIGNIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/keysum.h"

#define HR_SIGNINS 64 /* more push out those that end first */

enum hr_page_rights { HR_PAGE_NONE, HR_PAGE_LOOK, HR_PAGE_ACT };

struct hr_signin {
	unsigned char cookie[HR_KEYSUM]; /* of what the browser sends by itself */
	unsigned char token[HR_KEYSUM];  /* of what only the page sends */
	unsigned char key[HR_KEYSUM];    /* of the key that was given, as in struct hr_auth */
	int64_t until_ns;                /* CLOCK_MONOTONIC */
	uint32_t rights;                 /* enum hr_page_rights */
};

#define HR_SIGNIN_WORDS ((3 * HR_KEYSUM) / 8)

/* One place. `turn` is odd while it is written, and counts, so that a reader sees a change. */
struct hr_signin_place {
	_Atomic uint32_t turn;
	_Atomic uint32_t rights;
	_Atomic int64_t until_ns; /* 0: free */
	_Atomic uint64_t words[HR_SIGNIN_WORDS];
};

struct hr_signins {
	struct hr_signin_place v[HR_SIGNINS];
};

/* A place of its own for it. false: somebody else took each place that was tried. */
bool hr_signin_add(struct hr_signins *s, const struct hr_signin *what, int64_t now_ns);

/* The one whose cookie and token have these sums and whose time is not over. Looks at all places
 * and at every byte. */
bool hr_signin_find(const struct hr_signins *s, const unsigned char cookie[HR_KEYSUM],
    const unsigned char token[HR_KEYSUM], int64_t now_ns, struct hr_signin *ret);

/* Ends it; nothing if there is none of that cookie. */
void hr_signin_end(struct hr_signins *s, const unsigned char cookie[HR_KEYSUM]);

#endif
