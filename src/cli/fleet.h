/* Calls of handrail-fleetd, which the commands of the group fleet share. */
#ifndef HR_CLI_FLEET_H
#define HR_CLI_FLEET_H

#include "base/buf.h"
#include "cli/cli.h"

struct json_object;

/* Makes a call, and gets the answer. Takes `body`. Returns CLI_OK, or another exit status after it
 * has reported the error. */
int cli_fleet_ask(struct cli *c, const char *method, const char *path, struct json_object *body,
    struct json_object **ret);
/* Makes a call, and prints the answer: as JSON, or with `show` unless that is NULL. */
int cli_fleet_call(struct cli *c, const char *method, const char *path, struct json_object *body,
    void (*show)(struct hr_buf *b, struct json_object *o));
/* Reads a network object from a file, "none" is none. Returns CLI_OK, or CLI_ERROR after it has
 * reported the error. */
int cli_fleet_read_rules(const char *file, struct json_object **ret);

#endif
