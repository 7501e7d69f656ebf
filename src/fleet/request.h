/* hr_fleet_request: validates the body of a start, and computes its shape. */
#ifndef HR_FLEET_REQUEST_H
#define HR_FLEET_REQUEST_H

#include "fleet/engine.h"
#include "base/strv.h"

struct json_object;

#define HR_FLEET_FACTOR_MOST 64

/* Decodes the request of a row. Returns 0, or -1 with *err set. */
int
hr_fleet_request_of(const struct hr_fleet_row *row, struct json_object **ret, struct hr_err *err);
/* Returns the error text, or NULL if the request is valid. */
const char *hr_fleet_request_wrong(struct json_object *request);
/* Returns resource_factor; 1 if the request has none. */
int64_t hr_fleet_request_factor(struct json_object *request);
/* Appends the plugins that the client's command names, "--plugins A B --username ...", and the
 * agent server of OpenHands V1 for its clients. */
void hr_fleet_request_plugins(struct json_object *request, struct hr_strv *v);
/* Appends the request's environment, as "NAME=value". */
void hr_fleet_request_env(struct json_object *request, struct hr_strv *env);
/* Sets the settings of the sandbox: its image (by default the service's), and limits for `factor`.
 */
int hr_fleet_request_set(struct json_object *request, const struct hr_fleet_options *o,
    int64_t factor, struct hr_config *c, struct hr_err *err);
int hr_fleet_set_number(
    struct hr_config *c, const char *key, int64_t n, const char *unit, struct hr_err *err);
/* Returns 1 if the command starts the agent server of OpenHands V1, whose client is then served; 0
 * if not; -1 without memory. */
int hr_fleet_request_is_v1(struct json_object *request);
/* Digests all that is fixed when a sandbox is created: image (`image` if the request names none,
 * NULL: none), plugins, type of client, limits, users. Returns -1 without memory. */
int hr_fleet_request_shape(
    struct json_object *request, const char *image, char ret[HR_FLEET_SHAPE], struct hr_err *err);

#endif
