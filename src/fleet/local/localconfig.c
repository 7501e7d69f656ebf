/* Makes the settings of a sandbox for the engine "local". */
#include "config.h"

#include "fleet/local/local_int.h"

#include <json-c/json.h>

#include "fleet/local/localwork.h"
#include "fleet/request.h"
#include "host/config/settings.h"
#include "proto/json.h"

#define PORT_PATHS "HANDRAIL_PORT_PATHS" /* both are settings of handraild(8) */
#define V1_DOOR "HANDRAIL_OPENHANDS_V1"

static int
set_member(struct hr_config *c, const char *key, struct json_object *value, struct hr_err *err)
{
	HR_BUF(b, 1u << 20);

	if (value == NULL)
		return 0;
	if (hr_json_type(value) == HR_PY_STR)
		hr_buf_adds(&b, hr_json_text(value));
	else
		(void)hr_json_put(&b, value);
	return hr_buf_check(&b, NULL) == 0 ? hr_config_set(c, key, hr_buf_str(&b), err)
					   : hr_err_nomem(err);
}

/* Adds the variable that prepares the server for a client of OpenHands V1 or E2B. */
static int
add_door(const struct hr_local_place *l, struct json_object *q, struct hr_err *err)
{
	/* a server at a Unix socket has the paths anyhow */
	bool e2b = hr_json_at(q, "e2b") != NULL && !l->only;
	struct json_object *env = hr_json_at(q, "environment");
	int v1 = hr_fleet_request_is_v1(q);
	struct json_object *set = hr_config_value(l->o->config, "sandbox.runtime_startup_env_vars");

	if (v1 < 0 || (v1 == 0 && !e2b))
		return v1 < 0 ? hr_err_nomem(err) : 0;
	if (hr_json_type(env) != HR_PY_DICT) {
		env = NULL; /* the operator's variables, which the new member replaces */
		if (set == NULL || json_object_deep_copy(set, &env, NULL) != 0)
			env = json_object_new_object();
		if (hr_json_set(q, "environment", env, err) != 0)
			return -1;
	}
	return hr_json_set(env, e2b ? PORT_PATHS : V1_DOOR, json_object_new_string("true"), err);
}

struct hr_config *
hr_local_config(const struct hr_local_place *l, const struct hr_fleet_row *row,
    struct json_object *q, struct hr_err *err)
{
	static const char *const keys[][2] = {{"sandbox.runtime_startup_env_vars", "environment"},
	    {"sandbox.security.run_as_user", "run_as_user"},
	    {"sandbox.security.run_as_group", "run_as_group"}};
	struct hr_config *c = hr_config_copy(l->o->config, err);
	struct json_object *e2b = hr_json_at(q, "e2b");
	HR_FREE char *workspace = hr_local_workspace(l->work, row->id);
	int bad = c == NULL;
	size_t i;

	if (!bad && workspace != NULL)
		bad |= hr_config_set(c, "core.workspace_base", workspace, err);
	if (!bad)
		bad |= hr_fleet_request_set(q, l->o, row->factor, c, err);
	if (!bad &&
	    l->work == NULL) /* otherwise it would become a line of the user's own ~/.bashrc */
		bad |= add_door(l, q, err);
	if (!bad && hr_json_text_at(e2b, "root") != NULL)
		bad |= hr_config_set(c, "box.root", hr_json_text_at(e2b, "root"), err);
	if (!bad && hr_json_text_at(q, "from") != NULL)
		bad |= hr_config_set(c, "box.from", hr_json_text_at(q, "from"), err);
	for (i = 0; !bad && i < sizeof(keys) / sizeof(*keys); i++)
		bad |= set_member(c, keys[i][0], hr_json_at(q, keys[i][1]), err);
	if (!bad && hr_json_at(q, "network") != NULL) {
		bad |= hr_config_set(
		    c, l->only ? "box.network" : "sandbox.security.network_mode", "egress", err);
		/* a container of a service that shares the host's network has its own, then */
		bad |= !l->only && hr_config_set(c, "sandbox.use_host_network", "false", err) < 0;
		bad |= set_member(c, "sandbox.network", hr_json_at(q, "network"), err);
	}
	if (bad) {
		hr_config_free(c);
		return NULL;
	}
	return c;
}
