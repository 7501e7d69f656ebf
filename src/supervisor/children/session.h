/* The keeper of a shell that many requests share, reached by workers through a socket: that of the
 * default session, and those of named ones (sessions.h). It is started again when it dies. */
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
	char socket[HR_SESSION_NAME_MAX + 24]; /* below the run directory */
	char record[HR_SESSION_NAME_MAX + 24]; /* the same, for hr_adopt */
	const char *dir; /* where its shell starts; borrowed; NULL: the working directory */
	/* After a change of state, and after a start that came to nothing. Neither may free it. */
	void (*changed)(struct hr_session *k);
	void (*failed)(struct hr_session *k, const char *why);
	struct hr_service svc;
	bool renewed; /* its keeper was killed for another one, which is not ready yet */
	int listener; /* stays while keepers come and go: requests wait in its queue */
	/* Both ends of a socket in which a keeper lays by what its successor needs
	 * (session/kept.h): we only hold them. -1: none. */
	int store[2];
	struct hr_adopt adopted; /* a predecessor's, until it ends */
	struct hr_watch *adopted_end;
	uint64_t digest; /* of the command line */
};

/* Of the default session; a named one then sets what is different. */
void hr_session_init(struct hr_session *k, struct hr_context *ctx);
/* Looks for the keeper of a killed predecessor; true: hr_session_start() will take it over, what it
 * uses in the run directory must stay. */
bool hr_session_find(struct hr_session *k);
int hr_session_open(struct hr_session *k, struct hr_err *err); /* makes the socket */
/* After damage to the run directory: makes the socket again, and has another keeper go on with the
 * shell, since the present one may use files that are gone. */
int hr_session_renew(struct hr_session *k, struct hr_err *err);
int hr_session_start(struct hr_session *k, struct hr_err *err);
void hr_session_stop(struct hr_session *k, bool fast); /* ends in HR_SERVICE_STOPPED */
/* Its socket and the store, for the next image of us. */
int hr_session_hand_over(const struct hr_session *k, struct hr_handover *h, struct hr_err *err);
void hr_session_done(struct hr_session *k);

#endif
