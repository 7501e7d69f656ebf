/* hr_tunnel: carries bytes between a client and a server, both ways, after its owner has looked at
 * the client's first bytes. Memory is only used for bytes that a slow receiver does not take, and
 * nothing is read while there are such bytes. */
#ifndef HR_BASE_TUNNEL_H
#define HR_BASE_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct hr_loop;
struct hr_tunnel;

#define HR_TUNNEL_PIECE 16384 /* bytes: maximum of one read, and of the client's first bytes */

/* The owner's verdict on the client's first bytes. */
enum hr_tunnel_look {
	HR_TUNNEL_MORE, /* Call it again when there are more. */
	HR_TUNNEL_WAIT, /* Read no more, and call it again after hr_tunnel_lead(). */
	HR_TUNNEL_PASS, /* All bytes are for the server, which hr_tunnel_lead() sets. */
	HR_TUNNEL_OVER, /* The owner has called hr_tunnel_answer() or ended the tunnel. */
};

struct hr_tunnel_with {
	int client;
	/* Looks at all bytes so far, which hr_tunnel_skip() may drop, with `last` set if no more
	 * can come: the client has ended its direction, or the room is used up. HR_TUNNEL_MORE then
	 * ends the tunnel. */
	enum hr_tunnel_look (*look)(void *arg, const char *p, size_t len, bool last);
	/* Called when the tunnel ends by itself, not by hr_tunnel_free(); the tunnel is freed after
	 * the call. */
	void (*ended)(void *arg);
	void *arg;
	/* milliseconds without a byte after which a tunnel ends of which one direction has ended:
	 * the server's, or the client's */
	int linger_ms, half_ms;
	size_t room; /* maximum bytes that may wait for the client; 0: two pieces */
	bool resets; /* a broken connection breaks the other one, instead of ending it in order */
};

/* Returns a tunnel that owns the client's non-blocking socket; NULL with *err set: the socket stays
 * the caller's. */
struct hr_tunnel *
hr_tunnel_new(struct hr_loop *loop, const struct hr_tunnel_with *with, struct hr_err *err);
/* Ends the connections; does nothing with NULL. */
void hr_tunnel_free(struct hr_tunnel *t);
/* Does the same with a reset (RST), so that no client takes the end for that of an answer. */
void hr_tunnel_reset(struct hr_tunnel *t);

/* Makes a broken connection end the other one in order from now on. */
void hr_tunnel_no_resets(struct hr_tunnel *t);

/* Sets the server's non-blocking socket, which may still be connecting, and owns it. The server's
 * bytes pass at once, those of the client after HR_TUNNEL_PASS. Outside `look` the tunnel may end
 * in this call. */
void hr_tunnel_lead(struct hr_tunnel *t, int server);

void hr_tunnel_skip(struct hr_tunnel *t, size_t n); /* Drops the first bytes of the client. */
/* Replaces the first n bytes of the client by others. Returns -1 without memory. */
int hr_tunnel_replace(struct hr_tunnel *t, size_t n, const void *p, size_t len);
/* Sends bytes to the client. Returns -1 if it is gone or takes too few. */
int hr_tunnel_say(struct hr_tunnel *t, const void *p, size_t n);
/* Sends the last bytes to a client that has no server. The tunnel ends later, with the client,
 * since a reset of what the client still sends would destroy the answer. */
void hr_tunnel_answer(struct hr_tunnel *t, const void *p, size_t n);

#endif
