/* hr_fleet_upgrade: replaces the image of the service by the next one, with the same process id:
 * the sockets stay open, and nginx keeps running. All other state is in the store. */
#ifndef HR_FLEET_UPGRADE_H
#define HR_FLEET_UPGRADE_H

#include <limits.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/process/handover.h"
#include "base/process/notify.h"
#include "fleet/edge.h"

struct hr_fleet_upgrade {
	struct hr_handover handed; /* inherited from the previous image */
	struct hr_notify notify;
	char *notify_socket;
	char program[PATH_MAX]; /* path of the program at its start */
	char *const *argv;
};

/* Starts the upgrade's bookkeeping; called before any descriptor is opened. */
int hr_fleet_upgrade_begin(struct hr_fleet_upgrade *u, char *const *argv, struct hr_err *err);
/* Returns the nginx of the previous image, or -1 if there is none. */
pid_t hr_fleet_upgrade_nginx(const struct hr_fleet_upgrade *u);
/* Checks whether the program now at its path would start with these options and the present store.
 * Allows it ten seconds. */
int hr_fleet_upgrade_ask(const struct hr_fleet_upgrade *u, struct hr_err *err);
/* Fills in the listeners that nginx inherits (fleet/edge.h). */
void hr_fleet_upgrade_listeners(struct hr_fleet_upgrade *u, int ret[HR_FLEET_LISTENERS]);
/* Executes the next image; -1: no such descriptor or process. Returns only if that fails. */
int hr_fleet_upgrade_go(struct hr_fleet_upgrade *u, int requests,
    const int listeners[HR_FLEET_LISTENERS], pid_t nginx, struct hr_err *err);

#endif
