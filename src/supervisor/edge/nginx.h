/* hr_nginx: runs the front end of the server: nginx's configuration, its process, its successors.
 * nginx inherits the listening socket (by the NGINX variable of its own binary upgrade). When its
 * master is killed, the orphaned workers get SIGQUIT and finish their requests, and a new master
 * starts on the same socket: no connection is refused and no request is cut. An upgrade in place
 * works the same way: the old master serves until the new one starts, if a new one is needed. */
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
	struct hr_service svc; /* WAITING: nginx is held; only signals to end it are safe */
	struct hr_barrier hold;
	bool reopen; /* reopen the logs once nginx is up */
	struct hr_probe probe;
	bool worker_asked;               /* the probe's answer comes from a worker */
	pid_t orphans[HR_NGINX_ORPHANS]; /* process groups of masters that are dead or inherited */
	unsigned norphans;
};

void hr_nginx_init(struct hr_nginx *n, struct hr_context *ctx, struct hr_site *site);
/* Starts nginx as far as possible without the port, after hr_nginx_configure(): the state becomes
 * HR_SERVICE_WAITING, or nginx is not started if it cannot be held. */
int hr_nginx_prepare(struct hr_nginx *n, struct hr_err *err);
/* Lets nginx serve; the socket must be listening. */
int hr_nginx_start(struct hr_nginx *n, struct hr_err *err);
/* Reloads the configuration; call it after hr_nginx_configure(). */
void hr_nginx_reload(struct hr_nginx *n);
void hr_nginx_reopen_logs(struct hr_nginx *n);
/* Stops nginx gracefully: current requests are completed. With `fast` it stops at once. The state
 * becomes STOPPED. */
void hr_nginx_stop(struct hr_nginx *n, bool fast);
void hr_nginx_kill(struct hr_nginx *n);
/* Drops orphans that have ended; call after unknown processes were reaped. */
void hr_nginx_check_orphans(struct hr_nginx *n);
/* Returns true if nginx has stopped, and no orphan is left. */
bool hr_nginx_gone(const struct hr_nginx *n);
void hr_nginx_done(struct hr_nginx *n);

/* Hands nginx and the orphans to the next image of this process, and takes over the previous
 * image's (nginxover.c), before hr_nginx_configure(): an nginx that would be restarted unchanged
 * continues; any other gets SIGQUIT when its successor starts. */
int hr_nginx_hand_over(const struct hr_nginx *n, struct hr_handover *h, struct hr_err *err);
void hr_nginx_succeed(struct hr_nginx *n, struct hr_handover *h);
void hr_nginx_orphan(struct hr_nginx *n, pid_t group); /* Adds a group to wait for at the end. */

/* Sends SIGQUIT to the nginx processes in the group of a killed supervisor's master, which are no
 * children of this process. Workers outlive a killed master, continue to accept, and hold the port
 * for ever. Skips other programs, since the number may have been reused. */
void hr_nginx_quit_group(pid_t master);

#endif
