/* Composes the objects in the answers of the Runtime API (doc/fleet.md, "Calls"): sandboxes and
 * events. */
#include "config.h"

#include "fleet/api/api_int.h"

#include <string.h>

#include "proto/json.h"

/* the names of the states for clients */
static const struct {
	const char *status, *pod;
} shown[HR_FLEET_STATES] = {
    [HR_FLEET_STARTING] = {"starting", "pending"},
    [HR_FLEET_RUNNING] = {"running", "ready"},
    [HR_FLEET_PAUSING] = {"paused", "not found"},
    [HR_FLEET_PAUSED] = {"paused", "not found"},
    [HR_FLEET_RESUMING] = {"running", "pending"},
    [HR_FLEET_STOPPING] = {"stopped", "not found"},
    [HR_FLEET_STOPPED] = {"stopped", "not found"},
    [HR_FLEET_DIED] = {"error", "failed"},
    [HR_FLEET_WARMING] = {"starting", "pending"},
    [HR_FLEET_WARM] = {"running", "ready"},
};

/* Returns the ":PORT" of the client's address, or "". The console has its own port. */
static const char *
port_of(const struct hr_fleet_request *q)
{
	const char *port = strrchr(q->host, ':');

	return q->signed_in == NULL && port != NULL &&
		       strspn(port + 1, "0123456789") == strlen(port + 1)
		   ? port
		   : "";
}

/* Appends an address of the same form as the client's, so that the client can reach it. */
static void
put_url(struct hr_buf *b, const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const char *id)
{
	HR_BUF(url, 4096);

	if (api->by_name && api->domain != NULL)
		hr_buf_addf(&url, "%s://%s.%s%s", q->scheme, id, api->domain, port_of(q));
	else if (api->public_url != NULL)
		hr_buf_addf(&url, "%s/%s", api->public_url, id);
	else
		hr_buf_addf(&url, "%s://%s/%s", q->scheme, q->host, id);
	hr_json_put_named(b, "url", hr_buf_str(&url));
}

static void
put_hosts(struct hr_buf *b, const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct hr_fleet_row *row)
{
	const char *comma = "";
	int i;

	hr_buf_adds(b, ",\"work_hosts\":{");
	for (i = 0; i < 2 && api->domain != NULL; i++) {
		if (row->app_ports[i] <= 0)
			continue;
		hr_buf_addf(b, "%s\"%s://work-%d-%s.%s%s\":%d", comma, q->scheme, i + 1, row->id,
		    api->domain, port_of(q), row->app_ports[i]);
		comma = ",";
	}
	hr_buf_addc(b, '}');
}

const char *
hr_fleet_status(enum hr_fleet_state s)
{
	return shown[s].status;
}

void
hr_fleet_put_origin(struct hr_buf *b, const struct hr_fleet_row *row)
{
	HR_PUT struct json_object *request = NULL;
	const char *of, *name;

	/* most sandboxes have neither, and lists are long */
	if (row->request == NULL ||
	    (strstr(row->request, "\"fork\":") == NULL &&
		strstr(row->request, "\"from\":") == NULL) ||
	    hr_json_decode(row->request, strlen(row->request), &request, NULL) != 0)
		return;
	of = hr_json_text_at(request, "fork");
	name = strchr(hr_json_text_or(request, "from", ""), '.'); /* after the key's number */
	if (of != NULL)
		hr_json_put_named(b, "fork_of", of);
	else if (name != NULL)
		hr_json_put_named(b, "snapshot", name + 1);
}

void
hr_fleet_put_object(struct hr_buf *b, const struct hr_fleet_api *api,
    const struct hr_fleet_request *q, const struct hr_fleet_row *row)
{
	hr_buf_addc(b, '{');
	hr_json_put_named(b, "runtime_id", row->id);
	hr_json_put_named(b, "session_id", row->session);
	if (q->signed_in == NULL) /* the console does not need the key */
		hr_json_put_named(b, "session_api_key", row->session_key);
	hr_json_put_named(b, "status", shown[row->state].status);
	hr_json_put_named(b, "pod_status", shown[row->state].pod);
	hr_json_put_named(b, "state", hr_fleet_state_name(row->state));
	hr_json_put_named(b, "reason", row->reason);
	/* the console's address differs from that of its sandboxes */
	if (q->signed_in == NULL || (api->public_url != NULL && !api->by_name))
		put_url(b, api, q, row->id);
	put_hosts(b, api, q, row);
	hr_buf_addf(b,
	    ",\"resource_factor\":%lld,\"created\":%lld,\"active\":%lld,\"resumed\":%lld,"
	    "\"restart_count\":0,\"restart_reasons\":[]",
	    (long long)row->factor, (long long)row->created, (long long)row->active,
	    (long long)row->resumed);
	hr_fleet_put_origin(b, row);
}

void
hr_fleet_put_event(
    struct hr_buf *b, int64_t seq, int64_t at, const char *id, const char *what, const char *detail)
{
	hr_buf_addf(b, "{\"id\":%lld,\"time\":%lld", (long long)seq, (long long)at);
	hr_json_put_named(b, "runtime_id", id);
	hr_json_put_named(b, "what", what);
	hr_json_put_named(b, "detail", detail);
	hr_buf_addc(b, '}');
}
