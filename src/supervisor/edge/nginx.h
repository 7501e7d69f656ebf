/* hr_nginx: the front of the server: its configuration, its process, its successors.
 *
 * nginx inherits the listening socket from us (the NGINX variable of its own binary upgrade). When
 * its master is killed, its orphaned workers are told to finish what they have and a new master
 * starts on the same socket: no connection is refused and no request under way is cut. The same
 * takes place at an upgrade in place, where the old master serves until the new one starts, if
 * there is to be another one. */
#ifndef HR_SUPERVISOR_EDGE_NGINX_H
#define HR_SUPERVISOR_EDGE_NGINX_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "supervisor/children/service.h"
#include "supervisor/edge/barrier.h"
#include "supervisor/edge/probe.h"

struct hr_handover;
struct hr_context;
struct hr_site;

#define HR_NGINX_ORPHANS 16

struct hr_nginx {
	struct hr_context *ctx;
	struct hr_site *site;
	struct hr_service svc; /* WAITING: held; it takes no signal but to end */
	struct hr_barrier hold;
	bool reopen; /* its logs, when it is up */
	struct hr_probe probe;
	bool worker_asked;               /* the probe's answer is that of a worker */
	pid_t orphans[HR_NGINX_ORPHANS]; /* process groups of masters that are dead or not ours */
	unsigned norphans;
};

void hr_nginx_init(struct hr_nginx *n, struct hr_context *ctx, struct hr_site *site);
/* So far as it can go without the port, after hr_nginx_configure(): ends in HR_SERVICE_WAITING, or
 * is not started where it could not be held. */
int hr_nginx_prepare(struct hr_nginx *n, struct hr_err *err);
int hr_nginx_start(struct hr_nginx *n, struct hr_err *err); /* the socket must be listening */
void hr_nginx_reload(struct hr_nginx *n);                   /* after hr_nginx_configure() */
void hr_nginx_reopen_logs(struct hr_nginx *n);
/* Gracefully: requests under way are answered. fast: at once. Ends in HR_SERVICE_STOPPED. */
void hr_nginx_stop(struct hr_nginx *n, bool fast);
void hr_nginx_kill(struct hr_nginx *n);
/* After unknown processes were reaped: forgets orphans that are gone. */
void hr_nginx_check_orphans(struct hr_nginx *n);
bool hr_nginx_gone(const struct hr_nginx *n); /* stopped, and no orphan is left */
void hr_nginx_done(struct hr_nginx *n);

/* nginxover.c: who it is, and whoever before it still answers, for the next image of us; and that
 * one's part, before hr_nginx_configure(): an nginx that would be started again as it is goes on,
 * any other is told to end when its successor is about to start. */
int hr_nginx_hand_over(const struct hr_nginx *n, struct hr_handover *h, struct hr_err *err);
void hr_nginx_succeed(struct hr_nginx *n, struct hr_handover *h);
void hr_nginx_orphan(struct hr_nginx *n, pid_t group); /* is waited for at the end */

#endif
