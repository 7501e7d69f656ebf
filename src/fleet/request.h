/* hr_fleet_request: what a start asks for: what is wrong with it, and its shape. */
#ifndef HR_FLEET_REQUEST_H
#define HR_FLEET_REQUEST_H

#include "fleet/engine.h"
#include "base/strv.h"

struct json_object;

#define HR_FLEET_FACTOR_MOST 64

/* NULL: nothing is. */
const char *hr_fleet_request_wrong(struct json_object *request);
/* resource_factor; 1 where it says none. */
int64_t hr_fleet_request_factor(struct json_object *request);
/* The plugins that the client's command names, "--plugins A B --username ...". */
void hr_fleet_request_plugins(struct json_object *request, struct hr_strv *v);
/* Its environment, as "NAME=value". */
void hr_fleet_request_env(struct json_object *request, struct hr_strv *env);
/* Settings of its sandbox: the image, which may be the service's, and limits of so many factors. */
int hr_fleet_request_set(struct json_object *request, const struct hr_fleet_options *o,
    int64_t factor, struct hr_config *c, struct hr_err *err);
int hr_fleet_set_number(
    struct hr_config *c, const char *key, int64_t n, const char *unit, struct hr_err *err);
/* 1: the command starts the agent server of OpenHands V1, so its client is to be served; 0; -1: out
 * of memory. */
int hr_fleet_request_is_v1(struct json_object *request);
/* A digest of all that is settled when a sandbox is made: image (image: the one of requests that
 * name none, NULL: none), plugins, whose client, limits,
 * users. -1: out of memory. */
int hr_fleet_request_shape(
    struct json_object *request, const char *image, char ret[HR_FLEET_SHAPE], struct hr_err *err);

#endif
