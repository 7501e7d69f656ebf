/* egress_keeper: the parent process of the broker. It reads no foreign bytes. It holds the
 * listeners in the box's network, so that a killed broker costs its open tunnels only. */
#ifndef HR_EGRESS_KEEPER_H
#define HR_EGRESS_KEEPER_H

#include <stddef.h>

#include "base/err.h"

struct egress_policy;

#define EGRESS_LISTENERS_MAX 128

/* The descriptors of a keeper and its broker. */
struct egress_held {
	int box;     /* pidfd of the box's first process */
	int control; /* listens on DIR/control */
	int peer;    /* the socket to the other process; -1: none */
	int listeners[EGRESS_LISTENERS_MAX];
	size_t n;
};

/* Makes the listeners that the policy needs, in the box's network, and the control socket, in the
 * current directory. A broker that has lost its keeper hands its listeners over, and ends with its
 * last tunnel. */
int egress_keeper_open(struct egress_held *h, const struct egress_policy *p, struct hr_err *err);
/* Takes the descriptors of the image that was replaced. */
int egress_keeper_inherit(struct egress_held *h, struct hr_err *err);
/* Runs until the box or a signal ends the process, which must lead a session of its own; returns
 * only with an error. `dir` is the current directory. */
int egress_keeper_run(struct egress_held *h, const char *dir, struct hr_err *err);

/* first argument of an image that replaces another one */
#define EGRESS_UPGRADED "--upgraded"

/* ---- the broker's side ---- */

enum egress_op {
	EGRESS_LISTEN = 'L',   /* the answer has the descriptor, or the text of the error */
	EGRESS_UNLISTEN = 'U', /* no answer */
	EGRESS_RETIRE = 'R',   /* to the broker: accept no more; the answer is the same */
};
struct egress_message {
	enum egress_op op;
	int port;
	char text[256]; /* "": no error */
};

#endif
