/* Handles POST /update_mcp_server, which a worker passes on. The new list replaces the old one; an
 * unchanged server continues. All servers are started at once, and the reply waits shortly for
 * failures, since a client looks for them only there. */
#include "config.h"

#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/flush.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "plugins/mcp/hub.h"
#include "proto/actin.h"
#include "proto/json.h"
#include "proto/mcpserver.h"

#define WAIT_MS 2000
#define LOG_MAX 65536
#define KEPT_MAX (64u << 20)

struct mcp_update {
	LIST_ENTRY(mcp_update) entry;
	struct mcp_hub *hub;
	int fd;
	struct hr_watch *watch, *timer; /* watch: of fd, for reading or, once answered, writing */
	struct hr_buf in, out;
	size_t sent;
	bool applied, answered;
};

static void
update_free(struct mcp_update *u)
{
	LIST_REMOVE(u, entry);
	hr_watch_free(u->watch);
	hr_watch_free(u->timer);
	hr_fd_close(&u->fd);
	hr_buf_done(&u->in);
	hr_buf_done(&u->out);
	free(u);
}

/* ---- the list ---- */

static struct mcp_child *
find_child(struct mcp_child_list *list, const char *name)
{
	struct mcp_child *c;

	TAILQ_FOREACH(c, list, entry)
	{
		if (strcmp(c->name, name) == 0)
			return c;
	}
	return NULL;
}

/* Normalises the list. A later entry replaces an earlier one of the same name. */
static struct json_object *
normal_list(struct json_object *servers)
{
	struct json_object *all, *config;
	size_t i;

	if (!json_object_is_type(servers, json_type_array))
		return NULL;
	all = json_object_new_object();
	for (i = 0; i < json_object_array_length(servers); i++) {
		config = hr_mcpserver(json_object_array_get_idx(servers, i), NULL);
		if (hr_json_set(all, hr_json_text_or(config, "name", ""), config, NULL) != 0) {
			json_object_put(all);
			return NULL;
		}
	}
	return all;
}

static void
replace(struct mcp_hub *hub, struct json_object *configs)
{
	struct mcp_child_list fresh = TAILQ_HEAD_INITIALIZER(fresh);
	struct mcp_child *c;

	json_object_object_foreach(configs, name, config)
	{
		c = find_child(&hub->children, name);
		if (c != NULL && json_object_equal(c->config, config))
			TAILQ_REMOVE(&hub->children, c, entry);
		else
			c = mcp_child_new(hub, json_object_get(config));
		if (c != NULL)
			TAILQ_INSERT_TAIL(&fresh, c, entry);
	}
	while ((c = TAILQ_FIRST(&hub->children)) != NULL) {
		TAILQ_REMOVE(&hub->children, c, entry);
		hr_log(HR_LOG_INFO, "MCP server %s is removed", c->name);
		mcp_child_free(c);
	}
	TAILQ_CONCAT(&hub->children, &fresh, entry);
	hub->mounted = hub->mounted || !TAILQ_EMPTY(&hub->children);
	mcp_hub_notify(hub, "notifications/tools/list_changed", NULL);
	TAILQ_FOREACH(c, &hub->children, entry)
	{
		mcp_child_start(c);
	}
}

/* ---- state for a later process ---- */

static char *
kept_file(void)
{
	const char *dir = getenv("HANDRAIL_STATE_DIR");

	return dir != NULL ? hr_path_join(dir, "servers.json") : NULL;
}

/* Saves the list with mode 0600: it holds secrets, which this user's processes can see anyway. */
static void
keep(struct json_object *configs)
{
	HR_FREE char *path = kept_file();
	HR_PUT struct json_object *all = json_object_new_array();
	struct hr_err err = {0};
	HR_FREE char *text = NULL;
	bool whole = all != NULL;

	json_object_object_foreach(configs, name, config)
	{
		(void)name;
		whole = whole && hr_json_append(all, json_object_get(config), NULL) == 0;
	}
	text = whole ? mcp_text(all) : NULL;
	if (text == NULL)
		hr_log(HR_LOG_WARNING, "cannot save the list of MCP servers: out of memory");
	else if (path != NULL && hr_path_write(path, text, strlen(text), 0600, &err) < 0)
		hr_log(HR_LOG_WARNING, "cannot save the list of MCP servers: %s", err.msg);
}

/* Continues with the list of an earlier process that was killed, alone or with the server: clients
 * have sent it once and do not know. */
static void
go_on(struct mcp_hub *hub)
{
	HR_BUF(b, KEPT_MAX);
	HR_FREE char *path = kept_file();
	HR_PUT struct json_object *all = NULL;
	HR_PUT struct json_object *configs = NULL;

	if (path != NULL && access(path, F_OK) == 0) {
		if (hr_path_read(path, &b, NULL) == 0 &&
		    hr_json_decode(hr_buf_str(&b), b.len, &all, NULL) == 0)
			configs = normal_list(all);
		if (configs == NULL)
			hr_log(HR_LOG_WARNING, "%s cannot be read: there are no MCP servers", path);
	}
	if (configs != NULL) {
		hub->mounted = true;
		replace(hub, configs);
	}
}

/* ---- the reply ---- */

static void
on_writable(void *arg)
{
	struct mcp_update *u = arg;

	if (u->out.fail != HR_OK || hr_flush(u->fd, &u->out, &u->sent) != 0)
		update_free(u);
}

/* Lets the loop send the answer and free the update. */
static void
send_answer(struct mcp_update *u, int status, const struct hr_buf *body)
{
	const struct hr_act_answer a = {.status = status, .body = {hr_buf_str(body), body->len}};

	hr_frame_put_answer(&u->out, &a);
	u->answered = true;
	hr_watch_free(u->watch);
	u->watch = hr_loop_writable(u->hub->loop, u->fd, on_writable, u, NULL);
	if (u->watch == NULL) {
		hr_log(HR_LOG_ERROR, "out of memory: an update of MCP servers is not answered");
		hr_fd_close(&u->fd);
	}
}

static bool
settled(const struct mcp_hub *hub)
{
	const struct mcp_child *c;

	TAILQ_FOREACH(c, &hub->children, entry)
	{
		if (c->state != MCP_CHILD_READY &&
		    (c->state != MCP_CHILD_OFF || hr_watch_is_armed(c->timer)))
			return false;
	}
	return LIST_EMPTY(&hub->ending);
}

static void
answer(struct mcp_update *u)
{
	const struct mcp_child *c;
	HR_BUF(log, LOG_MAX);
	HR_BUF(body, 7 * LOG_MAX); /* JSON writes a byte in six at most */

	TAILQ_FOREACH(c, &u->hub->children, entry)
	{
		/* a running server's refusal is reported at its first use, as clients expect */
		if (c->state == MCP_CHILD_OFF && c->reason[0] != '\0' && !c->refused)
			hr_buf_addf(&log, "%s%s: %s", log.len > 0 ? "; " : "", c->name, c->reason);
	}
	hr_buf_adds(&body, "{\"detail\":\"MCP server updated successfully\",\"router_error_log\":");
	(void)hr_json_put_str(&body, hr_buf_str(&log), log.len, HR_JSON_REPLACE);
	hr_buf_addc(&body, '}');
	send_answer(u, 200, &body);
}

void
mcp_update_changed(struct mcp_hub *hub)
{
	struct mcp_update *u;

	LIST_FOREACH(u, &hub->updating, entry)
	{
		if (u->applied && !u->answered && settled(hub))
			answer(u);
	}
}

static void
waited(void *arg)
{
	struct mcp_update *u = arg;

	if (!u->answered)
		answer(u);
}

static void
apply(struct mcp_update *u, const struct hr_act_request *req)
{
	HR_PUT struct json_object *action = NULL;
	HR_PUT struct json_object *configs = NULL;
	HR_BUF(body, 200);

	if (hr_json_decode(req->action.p, req->action.len, &action, NULL) == 0)
		configs = normal_list(hr_json_at(hr_json_at(action, "args"), "servers"));
	if (configs == NULL) {
		hr_buf_adds(&body,
		    "{\"detail\":\"An unexpected error occurred. Please try again later.\"}");
		send_answer(u, 500, &body);
	} else {
		u->applied = true;
		replace(u->hub, configs);
		if (u->hub->mounted)
			keep(configs);
		if (settled(u->hub))
			answer(u);
		else
			(void)hr_watch_arm(u->timer, WAIT_MS, NULL);
	}
}

/* Handles the request; a worker that hangs up, or sends more, is dropped. */
static void
on_readable(void *arg)
{
	struct mcp_update *u = arg;
	struct hr_act_request req;
	int r = u->applied ? -1 : hr_actin_read(u->fd, &u->in, &req, NULL);

	if (r < 0)
		update_free(u);
	else if (r > 0)
		apply(u, &req);
}

static void
on_connection(void *arg)
{
	struct mcp_hub *hub = arg;
	int fd = hr_fd_accept(hub->listener, SOCK_NONBLOCK, -1);
	struct mcp_update *u = fd >= 0 ? calloc(1, sizeof(*u)) : NULL;

	if (fd < 0 && errno != EAGAIN)
		hr_log(HR_LOG_ERROR, "cannot accept a connection: %s", strerror(errno));
	if (u == NULL) {
		hr_fd_close(&fd);
		return;
	}
	u->hub = hub;
	u->fd = fd;
	hr_buf_init(&u->in, HR_ACTIN_MAX);
	hr_buf_init(&u->out, 8 * LOG_MAX);
	LIST_INSERT_HEAD(&hub->updating, u, entry);
	u->timer = hr_loop_timer(hub->loop, waited, u, NULL);
	u->watch = hr_loop_readable(hub->loop, fd, on_readable, u, NULL);
	if (u->timer == NULL || u->watch == NULL)
		update_free(u);
}

int
mcp_update_open(struct mcp_hub *hub, int listener, struct hr_err *err)
{
	hub->listener = listener;
	hub->accepts = hr_loop_readable(hub->loop, listener, on_connection, hub, err);
	if (hub->accepts == NULL)
		return -1;
	go_on(hub);
	return 0;
}

void
mcp_update_done(struct mcp_hub *hub)
{
	while (!LIST_EMPTY(&hub->updating))
		update_free(LIST_FIRST(&hub->updating));
	hr_watch_drop(&hub->accepts);
}
