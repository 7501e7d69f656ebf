/* What a sandbox says of itself. Its answers are those of whoever works in it. */
#include "config.h"

#include "fleet/fleet.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <json-c/json_object.h>

#include "fleet/edge.h"
#include "host/rest.h"
#include "proto/json.h"

#define PATIENCE_S 5

struct hr_rest *
hr_fleet_asker(const char *at)
{
	static const struct hr_rest_rule once[] = {{0}};
	bool is_unix = strncmp(at, HR_FLEET_UNIX, strlen(HR_FLEET_UNIX)) == 0;
	char url[300];
	struct hr_rest_options o = {.url = url,
	    .unix_socket = is_unix ? at + strlen(HR_FLEET_UNIX) : NULL,
	    .rules = once,
	    .timeout_s = PATIENCE_S,
	    .total_s = PATIENCE_S,
	    .answer_max = 1u << 16,
	    .watch_fd = -1};

	(void)snprintf(url, sizeof(url), "http://%s", is_unix ? "localhost" : at);
	return hr_rest_new(&o, NULL);
}

int64_t
hr_fleet_ask_active(const struct hr_fleet_row *row)
{
	struct hr_rest *r = hr_fleet_asker(row->at);
	struct json_object *info = NULL, *session = NULL;
	int64_t now = (int64_t)time(NULL), active = -1;
	double idle;

	if (r == NULL || hr_rest_header(r, "X-Session-API-Key", row->server_key, true, NULL) != 0 ||
	    hr_rest_get(r, "/server_info", &info, NULL) != 0)
		goto out;
	idle = hr_json_number_at(info, "idle_time");
	active = idle > 0 && idle < (double)now ? now - (int64_t)idle : now;
	/* a command that runs is activity; a server of another make may not tell */
	if (hr_rest_get(r, "/handrail/v1/session", &session, NULL) == 0 &&
	    hr_json_true_at(session, "running"))
		active = now;
out:
	json_object_put(info);
	json_object_put(session);
	hr_rest_free(r);
	return active;
}
