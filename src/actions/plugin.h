/* hr_plugin_act: makes a worker's exchange with a plugin: one connection, one HR_FRAME_ACT, one
 * answer. */
#ifndef HR_ACTIONS_PLUGIN_H
#define HR_ACTIONS_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "actions/action.h"
#include "base/err.h"

struct json_object;

/* Connects to the plugin that performs actions of this type. Starts the plugin if it is not
 * running. Returns a descriptor that the caller closes, or -1 (HR_E_NOTFOUND: no such plugin;
 * HR_E_TIMEOUT: it takes no connections now). */
int hr_plugin_connect(const char *run_dir, const char *type, size_t len, struct hr_err *err);

/* Connects in the same way for a client. Returns 1 with *ret_fd, which the caller closes, 0 if no
 * plugin can be reached, or -1 after an answer that the client shall try later. */
int hr_plugin_reach(
    const char *run_dir, const char *type, size_t len, int *ret_fd, struct hr_answer *ret);

/* Sends an action (any JSON value) and waits for the answer; if the plugin must keep a limit
 * (limit_s > 0), only some seconds longer. Fills ret in any case. */
void hr_plugin_perform(const struct hr_action_env *env, int fd, const char *type,
    struct json_object *action, double limit_s, struct hr_answer *ret);

/* Returns true if a plugin performs the action, whose type the contract does not know, as far as
 * can be seen without asking the plugin. `action` is the whole object. */
bool hr_plugin_takes(const char *run_dir, struct json_object *action);
/* Performs the action and returns true if a plugin takes it. Marks env->entry before sending. */
bool hr_plugin_custom(
    const struct hr_action_env *env, struct json_object *action, struct hr_answer *ret);

#endif
