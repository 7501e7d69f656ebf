/* Declares the parts of the broker. */
#ifndef HR_EGRESS_BROKER_INT_H
#define HR_EGRESS_BROKER_INT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/loop.h"
#include "egress/broker.h"
#include "egress/dial.h"
#include "egress/log.h"
#include "egress/names.h"
#include "egress/policy.h"
#include "egress/resolve.h"
#include "egress/wire.h"

struct json_object;
struct egress_conn;
struct egress_client;
struct egress_inspect;

#define EGRESS_TUNNELS_MAX 1024
#define EGRESS_PENDING_MAX 64

struct egress_listener {
	struct egress_broker *b;
	struct hr_watch *watch;
	int fd, port;
};

struct egress_broker {
	struct egress_held *held;
	struct hr_loop *loop;
	struct hr_watch *end, *asked, *clients;
	struct egress_listener *listeners[EGRESS_LISTENERS_MAX];
	size_t nlisteners;
	struct egress_policy *policy;
	struct json_object *secrets, *placeholders; /* NULL: none */
	struct egress_names *names;
	struct egress_log *log;
	struct egress_resolver *resolver;
	struct egress_inspect *inspect;
	size_t tunnels, peak;          /* peak: the most since there was none */
	struct egress_conn *conns;     /* the last one first */
	size_t pending;                /* connections before a verdict */
	struct egress_client *viewers; /* control clients that follow the log */
	bool retired;
};

/* ---- broker.c ---- */

/* Reads the policy and the secrets again. Returns the number of connections that were cut, since
 * the policy no longer allows them, or -1 with *err set and nothing changed. */
int egress_broker_reload(struct egress_broker *b, struct hr_err *err);
/* Closes the listeners; the process ends with its last tunnel. */
void egress_broker_retire(struct egress_broker *b);
/* Counts one tunnel less. */
void egress_broker_less(struct egress_broker *b);

/* ---- dns.c ---- */

/* Answers the questions that have arrived. */
void egress_dns_datagrams(struct egress_broker *b, int fd);
/* Answers one question. Returns the length of the answer; 0: none. */
size_t
egress_dns_reply(struct egress_broker *b, const void *p, size_t len, uint8_t ret[EGRESS_DNS_MAX]);

/* ---- conn.c ---- */

/* Takes a connection of the box, which this function owns. */
void egress_conn_accept(struct egress_broker *b, int fd);
/* Cuts the connections that the policy no longer allows. Returns their number. */
int egress_conn_judge(struct egress_broker *b);
/* Takes a connection of the inspecting nginx, which leads to that name and port only. */
void egress_conn_out(struct egress_broker *b, int fd, const char *name, int port);

/* ---- inspect.c: the nginx of the broker, which ends HTTP for hosts whose requests have rules ----
 */

/* A connection that waits for nginx; zeroed but for fn and arg. */
struct egress_wait {
	/* Called with the socket that leads to nginx, which is the function's own, or with -1 and
	 * the reason. */
	void (*fn)(void *arg, int fd, const char *why);
	void *arg;
	struct egress_wait *next, **at; /* `at` is NULL while it does not wait */
};

struct egress_inspect *egress_inspect_new(struct egress_broker *b, struct hr_err *err);

/* Waits until nginx serves that host; never calls the function within this call. Returns false if
 * there are too many hosts, or the broker has retired. */
bool egress_inspect(
    struct egress_inspect *i, struct egress_wait *w, const char *name, int port, bool tls);
void egress_inspect_cancel(struct egress_wait *w);

/* Applies the broker's policy and secrets to the hosts that are served. Returns 0, or -1 with *err
 * set and nothing changed. */
int egress_inspect_reload(struct egress_inspect *i, struct hr_err *err);
/* Ends nginx with its last request. The broker has retired. */
void egress_inspect_retire(struct egress_inspect *i);

/* ---- control.c ---- */

void egress_control_accept(struct egress_broker *b, int fd);
/* Sends a line of the log to all viewers. */
void egress_control_line(void *broker, const char *line, size_t len);

#endif
