/* hr_plugin_act: a worker's talk with a plugin: one connection, one HR_FRAME_ACT, one answer. */
#ifndef HR_ACTIONS_PLUGIN_H
#define HR_ACTIONS_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "actions/action.h"
#include "base/err.h"

struct json_object;

/* A connection to the plugin that takes actions of this type; -1: HR_E_NOTFOUND if none does. The
 * caller closes it. Starts the plugin if it is not running. */
int hr_plugin_connect(const char *run_dir, const char *type, size_t len, struct hr_err *err);

/* Sends an action (any JSON value) and waits for the answer: with a limit only if the plugin is to
 * keep one (limit_s > 0), then some seconds longer. Fills ret, whatever happens. */
void hr_plugin_perform(const struct hr_action_env *env, int fd, const char *type,
    struct json_object *action, double limit_s, struct hr_answer *ret);

/* For an action of a type that the contract does not know; `action` is the whole of it. Whether a
 * plugin takes it, as far as can be known without asking that. */
bool hr_plugin_takes(const char *run_dir, struct json_object *action);
/* Performs it, and returns true, if a plugin takes it. env->entry is marked before it is sent. */
bool hr_plugin_custom(
    const struct hr_action_env *env, struct json_object *action, struct hr_answer *ret);

#endif
