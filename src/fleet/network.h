/* hr_fleet_network: the rules of sandboxes' networks (doc/fleet.md, "Rules of a network"): checks of a
 * client's rules, the limit that a key has for them, and changes while a sandbox runs. All interfaces
 * to sandboxes use these functions, which take the lock. */
#ifndef HR_FLEET_NETWORK_H
#define HR_FLEET_NETWORK_H

#include "fleet/fleet.h"

struct json_object;

/* Checks the member "network" of the body of a start by `key`. If the body has none and the key has
 * a limit, adds the limit as the member, so call this before hr_fleet_request_shape(). Returns
 * HR_FLEET_OK, or with *err: HR_FLEET_INVALID if the rules are wrong or cannot be enforced (400),
 * HR_FLEET_REFUSED if they ask for more than the key's limit (403), HR_FLEET_BROKEN. */
enum hr_fleet_result hr_fleet_network_check(
    struct hr_fleet *f, int64_t key, struct json_object *body, struct hr_err *err);

/* Replaces the rules of the sandbox `id` of `key` (0: of any key): `rules` is a whole network
 * object, borrowed, with the same checks as at a start. They are in force when this returns; of a
 * paused sandbox when it is resumed. The row keeps them. Blocks for the engine. Fills *row, also for
 * HR_FLEET_CONFLICT (the sandbox neither runs nor is paused), which needs hr_fleet_row_done().
 * Results are as above, and HR_FLEET_NOT_FOUND, _CONFLICT, _LATE, _LEAVING; after each but
 * HR_FLEET_OK the earlier rules hold. A sandbox that was started without rules gets none:
 * HR_FLEET_INVALID. */
enum hr_fleet_result hr_fleet_network_set(struct hr_fleet *f, int64_t key, const char *id,
    struct json_object *rules, struct hr_fleet_row *row, struct hr_err *err);

/* Returns the rules of the row, which the caller frees; NULL: it has none, or without memory. */
struct json_object *hr_fleet_network_of(const struct hr_fleet_row *row);

#endif
