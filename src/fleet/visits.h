/* hr_fleet_visits: the connections of clients to sandboxes of the E2B API. When a sandbox ends,
 * they are reset: older SDKs take another end of a stream for a fault of the network, and wait.
 * nginx itself cannot reset them. */
#ifndef HR_FLEET_VISITS_H
#define HR_FLEET_VISITS_H

#include <sys/types.h>

/* Records that the latest request on a client's connection is for the sandbox `id`; "": for none.
 * `client` is the two ends of the connection, the other one first, "ADDRESS PORT ADDRESS PORT". */
void hr_fleet_visit(const char *client, const char *id);

/* Resets the connections of nginx's workers whose latest request is for the sandbox, as far as the
 * kernel lets this process have them. nginx: the master, whose children are the workers. */
void hr_fleet_visits_reset(pid_t nginx, const char *id);

#endif
