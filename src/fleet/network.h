/* hr_fleet_network: the rules of sandboxes' networks (doc/fleet.md, "Rules of a network"): checks
 * of a client's rules, the limit that a key has for them, and changes while a sandbox runs. All
 * interfaces to sandboxes use these functions, which take the lock. */
#ifndef HR_FLEET_NETWORK_H
#define HR_FLEET_NETWORK_H

#include "fleet/fleet.h"

struct json_object;

/* Checks the member "network" of the body of a start by `key`, and adds the key's limit to it. If
 * the body has none, the limit becomes its rules. So call this before hr_fleet_request_shape().
 * Returns HR_FLEET_OK, or with *err: HR_FLEET_INVALID if the rules are wrong or cannot be enforced
 * (400), HR_FLEET_REFUSED if they ask for more than the key's limit (403), or HR_FLEET_BROKEN. */
enum hr_fleet_result hr_fleet_network_check(
    struct hr_fleet *f, int64_t key, struct json_object *body, struct hr_err *err);

/* A change: all rules; or with `network` NULL lists of entries to add, and to take back after that.
 * Members are borrowed; NULL: none. */
struct hr_fleet_network_change {
	struct json_object *network, *allow, *deny;
};
/* Changes the rules of the sandbox `id` of `key` (0: of any key), with the checks of a start. They
 * are in force when this returns, and the row keeps them for later resumes. Blocks for the engine.
 * Fills *row, also for HR_FLEET_CONFLICT (the sandbox neither runs nor is paused), which needs
 * hr_fleet_row_done(). Returns the results above, or HR_FLEET_NOT_FOUND, _CONFLICT, _LATE or
 * _LEAVING; after each but HR_FLEET_OK the earlier rules hold. A sandbox that was started without
 * rules gets none: HR_FLEET_INVALID. */
enum hr_fleet_result hr_fleet_network_edit(struct hr_fleet *f, int64_t key, const char *id,
    const struct hr_fleet_network_change *change, struct hr_fleet_row *row, struct hr_err *err);
/* Replaces the rules by a whole network object, as hr_fleet_network_edit() does. */
enum hr_fleet_result hr_fleet_network_set(struct hr_fleet *f, int64_t key, const char *id,
    struct json_object *rules, struct hr_fleet_row *row, struct hr_err *err);

/* Returns the rules of the row, without the limit of its key. The caller frees them; NULL: the row
 * has none, or without memory. */
struct json_object *hr_fleet_network_of(const struct hr_fleet_row *row);

/* Stores what the network of the key's sandboxes cannot exceed, for later starts and changes: a
 * network object, borrowed, without "rules", "credentials" and "dnsServers"; NULL: no limit. Fails
 * with HR_E_INVAL for a wrong one. Called with the lock, as is the next one. */
int hr_fleet_network_limit(
    struct hr_fleet *f, int64_t key, struct json_object *limit, struct hr_err *err);
/* Checks an object for the function above. */
int
hr_fleet_network_may_limit(const struct hr_fleet *f, struct json_object *limit, struct hr_err *err);
/* Stores the key's limit as JSON, which the caller frees; NULL: it has none. */
int hr_fleet_network_limit_of(struct hr_fleet *f, int64_t key, char **ret_json, struct hr_err *err);

#endif
