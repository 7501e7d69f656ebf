/* hr_fleet_upgrade: the next image of the service in the place of this one, with the same process
 * id: the sockets stay open, and nginx goes on. What else there is is in the store. */
#ifndef HR_FLEET_UPGRADE_H
#define HR_FLEET_UPGRADE_H

#include <limits.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/process/handover.h"
#include "base/process/notify.h"
#include "fleet/edge.h"

struct hr_fleet_upgrade {
	struct hr_handover handed; /* from an image before this one */
	struct hr_notify notify;
	char *notify_socket;
	char program[PATH_MAX]; /* as it was called when it was started */
	char *const *argv;
};

/* Before any descriptor is opened. */
int hr_fleet_upgrade_begin(struct hr_fleet_upgrade *u, char *const *argv, struct hr_err *err);
/* nginx of the image before; -1: there is none. */
pid_t hr_fleet_upgrade_nginx(const struct hr_fleet_upgrade *u);
/* Would the program that is there now start with these options, and with what is kept? It is given
 * ten seconds to say so. */
int hr_fleet_upgrade_ask(const struct hr_fleet_upgrade *u, struct hr_err *err);
/* Which nginx listens at: what it inherits (fleet/edge.h). */
void hr_fleet_upgrade_listeners(struct hr_fleet_upgrade *u, int ret[HR_FLEET_LISTENERS]);
/* Descriptors and a process that are not there: -1. Returns if it cannot. */
int hr_fleet_upgrade_go(struct hr_fleet_upgrade *u, int requests,
    const int listeners[HR_FLEET_LISTENERS], pid_t nginx, struct hr_err *err);

#endif
