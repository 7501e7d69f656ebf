/* egress_held: defines the descriptors that a keeper and its broker share, and their messages. */
#ifndef HR_EGRESS_HELD_H
#define HR_EGRESS_HELD_H

#include <stddef.h>

#define EGRESS_LISTENERS_MAX 128

/* The descriptors of a keeper and its broker. */
struct egress_held {
	int box;     /* pidfd of the box's first process */
	int control; /* listens on DIR/control */
	int peer;    /* the socket to the other process; -1: none */
	int listeners[EGRESS_LISTENERS_MAX];
	size_t n;
};

/* A message between the two, of one packet. */
enum egress_op {
	EGRESS_LISTEN = 'L',   /* the answer has the descriptor, or the text of the error */
	EGRESS_UNLISTEN = 'U', /* no answer */
	EGRESS_RETIRE = 'R',   /* sent to the broker: accept no more; the answer is the same */
};
struct egress_message {
	enum egress_op op;
	int port;
	char text[256]; /* "": no error */
};

#endif
