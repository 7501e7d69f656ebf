/* egress_event: what is said about a connection or a request of a box. */
#ifndef HR_EGRESS_EVENT_H
#define HR_EGRESS_EVENT_H

#include <netinet/in.h>
#include <stdbool.h>

struct egress_event {
	bool allow;
	const char *kind;          /* "tcp", "http", "proxy", "dns", "error" */
	const char *name;          /* NULL: none */
	struct in_addr address;    /* 0.0.0.0: none */
	int port;                  /* 0: none */
	const char *method, *path; /* NULL: none */
	const char *rule;          /* the entry that decided, or the error */
};

#endif
