/* Runs the keeper of a shell that many requests share, which workers reach through a socket: that
 * of the default session, and those of named ones (sessions.h). A keeper that dies is restarted. */
#ifndef HR_SUPERVISOR_CHILDREN_SESSION_H
#define HR_SUPERVISOR_CHILDREN_SESSION_H

#include <stdbool.h>

#include "base/err.h"
#include "proto/channel.h"
#include "supervisor/children/adopt.h"
#include "supervisor/children/service.h"

struct hr_handover;
struct hr_context;
struct hr_watch;

struct hr_session {
	struct hr_context *ctx;
	char name[HR_SESSION_NAME_MAX + 1];
	char socket[HR_SESSION_NAME_MAX + 24]; /* relative to the run directory */
	/* the record of hr_adopt, relative to the run directory */
	char record[HR_SESSION_NAME_MAX + 24];
	const char *dir; /* the shell's start directory; borrowed; NULL: the working directory */
	/* Called after a change of state, and after a failed start. Must not free the session. */
	void (*changed)(struct hr_session *k);
	void (*failed)(struct hr_session *k, const char *why);
	struct hr_service svc;
	bool renewed; /* the keeper was killed for a new one that is not ready yet */
	int listener; /* open while keepers come and go: its backlog holds requests */
	/* Both ends of a socket in which a keeper stores descriptors for its successor
	 * (session/kept.h); the supervisor only holds them. -1: none. */
	int store[2];
	struct hr_adopt adopted; /* a predecessor's keeper, until it ends */
	struct hr_watch *adopted_end;
	uint64_t digest; /* digest of the command line */
};

/* Initialises the default session; a named session then sets the differences. */
void hr_session_init(struct hr_session *k, struct hr_context *ctx);
/* Finds the keeper of a killed predecessor. Returns true if hr_session_start() will adopt it; its
 * files in the run directory must then stay. */
bool hr_session_find(struct hr_session *k);
int hr_session_open(struct hr_session *k, struct hr_err *err); /* Makes the socket. */
/* Repairs a damaged run directory: makes a new socket, and replaces the keeper, whose files may be
 * lost, by one that continues with the shell. */
int hr_session_renew(struct hr_session *k, struct hr_err *err);
int hr_session_start(struct hr_session *k, struct hr_err *err);
/* Stops the keeper; the state becomes HR_SERVICE_STOPPED. */
void hr_session_stop(struct hr_session *k, bool fast);
/* Hands socket and store to the next image of this process. */
int hr_session_hand_over(const struct hr_session *k, struct hr_handover *h, struct hr_err *err);
void hr_session_done(struct hr_session *k);

#endif
