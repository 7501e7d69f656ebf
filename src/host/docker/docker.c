/* Implements the back-end "docker": a container of a Docker Engine (doc/host.md, "The
 * back-end docker"). make.c creates it. */
#include "config.h"

#include "host/docker/docker_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "host/docker/engine.h"
#include "base/err.h"
#include "base/text/text.h"
#include "host/common/recordtext.h"
#include "host/records/portlock.h"
#include "host/backends.h"
#include "proto/json.h"

#define PREFIX HR_CONTAINER_PREFIX

static void
release(struct hr_docker *d)
{
	size_t i;

	for (i = 0; i < 4; i++)
		hr_portlock_release(&d->locks[i]);
}

static void
docker_free(void *self)
{
	struct hr_docker *d = self;

	release(d);
	hr_engine_done(&d->engine);
	hr_docker_forget_rules(d);
	free(d->name);
	free(d->id);
	free(d->url);
	free(d->key);
	free(d);
}

static int
docker_open(const struct hr_backend_host *h, void **ret_self, struct hr_err *err)
{
	struct hr_docker *d;
	size_t i;

	if (!h->attach && hr_docker_check_rules(h, err) < 0)
		return -1;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return hr_err_nomem(err);
	d->h = d->side.h = h;
	d->side.watch = d->side.socket = -1;
	for (i = 0; i < 4; i++)
		d->locks[i] = (struct hr_portlock)HR_PORTLOCK_NONE;
	if (hr_text_setf(&d->name, err, PREFIX "%s", h->sid) != 0) {
		docker_free(d);
		return -1;
	}
	*ret_self = d;
	return 0;
}

/* Connects to the Engine at the first use: an action needs only the server. */
int
hr_docker_engine(struct hr_docker *d, struct hr_err *err)
{
	if (d->engine_there)
		return 0;
	if (hr_engine_init(&d->engine, d->h->environ, err) < 0) {
		hr_engine_done(&d->engine);
		return -1;
	}
	d->engine.watch_fd = d->h->stop_fd;
	d->engine_there = true;
	return 0;
}

const char *
hr_docker_ref(const struct hr_docker *d)
{
	return d->id != NULL && *d->id != '\0' ? d->id : d->name;
}

int
hr_docker_call(struct hr_docker *d, const char *method, const char *what, struct json_object **ret,
    struct hr_err *err)
{
	char path[512];

	if (hr_docker_engine(d, err) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/containers/%s%s", hr_docker_ref(d), what);
	return hr_engine_call(&d->engine, method, path, NULL, ret, err);
}

/* ---- finding ---- */

/* Returns the port, or 0 if n is not a port. */
static int
port_of(long long n)
{
	return n > 0 && n <= 65535 ? (int)n : 0;
}

const char *
hr_docker_id(struct json_object *o, const char *name)
{
	const char *id = hr_json_text_or(o, name, "");

	return strspn(id, "0123456789abcdefABCDEF") == strlen(id) ? id : "";
}

static int
read_env(struct hr_docker *d, struct json_object *o, struct hr_err *err)
{
	struct json_object *env = hr_json_at(hr_json_at(o, "Config"), "Env");
	const char *key = NULL;
	size_t i;

	for (i = 0; i < hr_json_count(env); i++) {
		const char *e = hr_json_text(hr_json_entry(env, i));

		if (e == NULL)
			continue;
		if (strncmp(e, "port=", 5) == 0)
			d->port = port_of(strtoll(e + 5, NULL, 10));
		else if (strncmp(e, "VSCODE_PORT=", 12) == 0)
			d->vscode_port = port_of(strtoll(e + 12, NULL, 10));
		else if (strncmp(e, "APP_PORT_1=", 11) == 0)
			d->app_ports[0] = port_of(strtoll(e + 11, NULL, 10));
		else if (strncmp(e, "APP_PORT_2=", 11) == 0)
			d->app_ports[1] = port_of(strtoll(e + 11, NULL, 10));
		else if (strncmp(e, "SESSION_API_KEY=", 16) == 0)
			key = e + 16;
	}
	if (hr_text_set(&d->key, key, err) != 0 ||
	    hr_text_set(&d->id, hr_docker_id(o, "Id"), err) != 0)
		return -1;
	return hr_docker_set_url(d, err);
}

static int
start_again(struct hr_docker *d, struct json_object *o, struct hr_err *err)
{
	const char *status = hr_json_text_or(hr_json_at(o, "State"), "Status", "");
	struct timespec now;
	char since[64];

	if (strcmp(status, "running") == 0)
		return 0;
	if (strcmp(status, "paused") == 0)
		return hr_docker_call(d, "POST", "/unpause", NULL, err);
	/* uses nanoseconds: the container's first start may have been in this second */
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)snprintf(since, sizeof(since), "%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
	hr_docker_stop_rules(d);
	return hr_docker_call(d, "POST", "/start", NULL, err) == 0 &&
		       hr_docker_keep_rules(d, err) == 0
		   ? hr_docker_wait_ready(d, since, err)
		   : -1;
}

/* Accepts a recorded container, one with this user's label, or any if any owner is accepted. */
static int
check_owner(struct hr_docker *d, struct json_object *o, struct hr_err *err)
{
	const char *label =
	    hr_json_text_at(hr_json_at(hr_json_at(o, "Config"), "Labels"), HR_CONTAINER_LABEL);

	if (d->recorded || d->h->any_owner || hr_docker_is_users(label))
		return 0;
	return hr_err_set(err, HR_E_RUNTIME,
	    "the container %s is not yours: its label " HR_CONTAINER_LABEL " is %s%.100s%s; choose "
	    "another name with -n, or use this one with --any-owner",
	    d->name, label != NULL ? "\"" : "", label != NULL ? label : "missing",
	    label != NULL ? "\"" : "");
}

/* Uses the container that the record or the name leads to. Returns 1 with *ret_how (it ran, or was
 * restarted), or 0 if there is none. */
static int
find(struct hr_docker *d, enum hr_connected *ret_how, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	const char *status;

	if (hr_docker_call(d, "GET", "/json", &o, &why) < 0)
		return why.code == HR_E_NO_SANDBOX ? 0 : hr_err_pass(err, &why);
	if (check_owner(d, o, err) != 0)
		return -1;
	status = hr_json_text_or(hr_json_at(o, "State"), "Status", "");
	*ret_how = strcmp(status, "running") == 0 ? HR_SANDBOX_FOUND : HR_SANDBOX_RESUMED;
	return read_env(d, o, err) == 0 && start_again(d, o, err) == 0 &&
		       hr_docker_keep_rules(d, err) == 0 && hr_docker_open_socket(d, err) == 0
		   ? 1
		   : -1;
}

static int
docker_connect(void *self, enum hr_connected *ret, struct hr_err *err)
{
	struct hr_docker *d = self;
	int r;

	/* the record's container could not be used again */
	if (d->recorded && hr_text_set(&d->id, NULL, err) != 0)
		return -1;
	d->recorded = false;
	r = find(d, ret, err);
	if (r != 0)
		return r < 0 ? -1 : 0;
	if (d->h->attach)
		return hr_err_set(err, HR_E_DISCONNECTED, "Container %s not found.", d->name);
	if (hr_docker_make(d, err) < 0)
		return -1;
	hr_docker_join_networks(d);
	*ret = HR_SANDBOX_MADE;
	return 0;
}

static void
docker_endpoint(void *self, struct hr_endpoint *ret)
{
	struct hr_docker *d = self;

	ret->url = d->url;
	ret->unix_socket = d->side.dir != NULL ? d->side.at : NULL;
	ret->key = d->key;
	ret->vscode_port = d->vscode_port;
	memcpy(ret->app_ports, d->app_ports, sizeof(ret->app_ports));
}

/* ---- records ---- */

static char *
docker_record(void *self, struct hr_err *err)
{
	struct hr_docker *d = self;
	HR_BUF(b, 1 << 16);

	hr_record_put_text(&b, "id", d->id);
	hr_record_put_text(&b, "engine", hr_engine_at(d->h->environ));
	hr_record_put_int(&b, "port", d->port);
	hr_record_put_int(&b, "vscode_port", d->vscode_port);
	hr_record_put_int(&b, "app_port_1", d->app_ports[0]);
	hr_record_put_int(&b, "app_port_2", d->app_ports[1]);
	hr_record_put_text(&b, "key", d->key);
	hr_record_put_text(&b, "dir", d->side.dir);
	return hr_record_take(&b, err);
}

/* Refuses another Engine, whose container of that name says nothing about this one. */
static int
check_engine(const struct hr_docker *d, struct json_object *record, struct hr_err *err)
{
	const char *now = hr_engine_at(d->h->environ);
	const char *was = hr_json_text_or(record, "engine", now);

	if (strcmp(was, now) == 0)
		return 0;
	return hr_err_set(err, HR_E_UNSUPPORTED,
	    "sandbox \"%s\" is at the Engine %.300s, but DOCKER_HOST is %.300s: set DOCKER_HOST to "
	    "the first one, or choose another name with -n",
	    d->h->sid, was, now);
}

static int
docker_restore(void *self, const char *record, struct hr_err *err)
{
	struct hr_docker *d = self;
	HR_PUT struct json_object *o = NULL;
	enum hr_connected how;
	int r;

	if (hr_json_decode(record, strlen(record), &o, NULL) < 0 ||
	    port_of(hr_json_int_at(o, "port")) == 0)
		return hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
	if (check_engine(d, o, err) != 0)
		return -1;
	d->port = port_of(hr_json_int_at(o, "port"));
	d->vscode_port = port_of(hr_json_int_at(o, "vscode_port"));
	d->app_ports[0] = port_of(hr_json_int_at(o, "app_port_1"));
	d->app_ports[1] = port_of(hr_json_int_at(o, "app_port_2"));
	r = hr_text_set(&d->id, hr_docker_id(o, "id"), err);
	d->recorded = r == 0 && *d->id != '\0';
	if (r == 0 && hr_json_text_at(o, "key") != NULL)
		r = hr_text_set(&d->key, hr_json_text_at(o, "key"), err);
	if (r == 0)
		r = hr_text_set(&d->side.dir, hr_json_text_at(o, "dir"), err);
	if (r == 0)
		r = hr_docker_set_url(d, err);
	if (r == 0 && d->h->attach)
		hr_docker_find_rules(d);
	/* the caller needs it running, so start it */
	if (r != 0 || d->h->attach)
		return r;
	r = find(d, &how, err);
	if (r == 0)
		(void)hr_err_set(err, HR_E_NO_SANDBOX, "the Engine has no container %.12s (%s)",
		    hr_docker_ref(d), d->name);
	return r == 1 ? 0 : -1;
}

static int
docker_freeze(void *self, struct hr_err *err)
{
	return hr_docker_call(self, "POST", "/pause", NULL, err);
}

static const char *
docker_state(void *self)
{
	static const char *const names[] = {
	    "running", "paused", "created", "restarting", "exited", "dead"};
	HR_PUT struct json_object *o = NULL;
	const struct hr_docker *d = self;
	const char *state = "gone";
	struct hr_err err = {0};
	size_t i;

	if (hr_docker_call(self, "GET", "/json", &o, &err) != 0) {
		if (err.code == HR_E_NO_SANDBOX)
			return "gone";
		d->h->log(d->h->arg, err.msg);
		return "unknown";
	}
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(hr_json_text_or(hr_json_at(o, "State"), "Status", ""), names[i]) == 0)
			state = names[i];
	return state;
}

/* Returns true if the Engine reports that the container neither runs nor is paused. */
static bool
is_dead(struct hr_docker *d)
{
	const char *state = docker_state(d);

	return strcmp(state, "gone") == 0 || strcmp(state, "created") == 0 ||
	       strcmp(state, "exited") == 0 || strcmp(state, "dead") == 0;
}

/* Gives the container d->id the name of a sandbox. A rename whose answer was lost may have been
 * done, so after an error the container's name decides. */
static int
take_name(struct hr_docker *d, const char *sid, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	char name[256], what[300];

	(void)snprintf(name, sizeof(name), "/" PREFIX "%s", sid);
	(void)snprintf(what, sizeof(what), "/rename?name=%s", name + 1);
	if (hr_docker_call(d, "POST", what, NULL, &why) == 0)
		return 0;
	if (hr_docker_call(d, "GET", "/json", &o, NULL) == 0 &&
	    strcmp(hr_json_text_or(o, "Name", ""), name) == 0)
		return 0;
	return hr_err_pass(err, &why);
}

/* Uses the container that now has this sandbox's name. On failure it gets its old name back: it is
 * kept if it merely could not be used this time. */
static int
use_taken(struct hr_docker *d, const char *sid, struct hr_err *err)
{
	struct hr_err why = {0};
	enum hr_connected how;
	int r = find(d, &how, &why);

	if (r == 1)
		return 0;
	if (r == 0)
		(void)hr_err_set(&why, HR_E_NO_SANDBOX, "Container %s not found.", d->name);
	else if (is_dead(d))
		why.code = HR_E_DISCONNECTED;
	/* connect() would find it by this sandbox's name, and the pool has its record */
	if (take_name(d, sid, NULL) != 0 && why.code == HR_E_RUNTIME)
		why.code = HR_E_UNAVAILABLE;
	return hr_err_pass(err, &why);
}

static int
docker_adopt(void *self, const char *sid, const char *record, struct hr_err *err)
{
	struct hr_docker *d = self;
	HR_PUT struct json_object *o = NULL;
	int r;

	if (hr_json_decode(record, strlen(record), &o, NULL) < 0 || *hr_docker_id(o, "id") == '\0')
		return hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
	d->recorded = false;
	r = hr_text_set(&d->id, hr_docker_id(o, "id"), err);
	if (r == 0)
		r = hr_text_set(&d->side.dir, hr_json_text_at(o, "dir"), err);
	/* the id finds it also after a rename that was done without an answer */
	if (r == 0)
		r = take_name(d, d->h->sid, err);
	if (r == 0)
		r = use_taken(d, sid, err);
	/* connect() must search by name, not for this container */
	if (r != 0)
		(void)hr_text_set(&d->id, NULL, NULL);
	return r;
}

/* ---- the rest of its life ---- */

static bool
freezes(const struct hr_docker *d)
{
	const char *mode = hr_config_text(d->h->config, "sandbox.docker_pause_mode");

	return mode != NULL && strcmp(mode, "freeze") == 0;
}

static int
docker_pause(void *self, struct hr_err *err)
{
	struct hr_docker *d = self;

	return hr_docker_call(d, "POST", freezes(d) ? "/pause" : "/stop", NULL, err);
}

static int
docker_resume(void *self, struct hr_err *err)
{
	struct hr_docker *d = self;
	enum hr_connected how;
	int r = find(d, &how, err);

	return r == 0   ? hr_err_set(err, HR_E_NO_SANDBOX, "Container %s not found.", d->name)
	       : r == 1 ? 0
			: -1;
}

static int
docker_close(void *self, struct hr_err *err)
{
	struct hr_docker *d = self;

	release(d);
	if (hr_config_bool(d->h->config, "sandbox.keep_runtime_alive"))
		return 0;
	return hr_docker_call(d, "POST", "/stop", NULL, err);
}

static int
docker_destroy(void *self, struct hr_err *err)
{
	struct hr_docker *d = self;
	struct hr_err why = {0};
	struct timespec now;
	char path[256];

	release(d);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (hr_docker_engine(d, err) < 0)
		return -1;
	/* a record from before the create call returned has only a name, which may belong to
	 * another container */
	if (d->id == NULL || *d->id == '\0') {
		if (hr_docker_end_named(d, &now, err) < 0)
			return -1;
	} else {
		(void)snprintf(path, sizeof(path), "/containers/%.80s" HR_CONTAINER_REMOVE, d->id);
		if (hr_engine_call(&d->engine, "DELETE", path, NULL, NULL, &why) != 0 &&
		    why.code != HR_E_NO_SANDBOX)
			return hr_err_pass(err, &why);
	}
	hr_docker_end_rules(d);
	return 0;
}

static const char *const heeds[] = {"sandbox.limits.", "sandbox.security.", "sandbox.enable_gpu",
    "sandbox.cuda_visible_devices", "sandbox.additional_networks", "sandbox.docker_runtime_kwargs",
    "sandbox.use_host_network", "sandbox.runtime_binding_address", "sandbox.network", NULL};

const struct hr_sandbox_ops hr_backend_docker = {
    .abi = HR_BACKEND_ABI,
    .name = "docker",
    .flags = HR_KIND_OF_STATE,
    .heeds = heeds,
    .log_prefix = "[inside container] ",
    .open = docker_open,
    .free = docker_free,
    .connect = docker_connect,
    .endpoint = docker_endpoint,
    .record = docker_record,
    .restore = docker_restore,
    .state = docker_state,
    .pause = docker_pause,
    .resume = docker_resume,
    .close = docker_close,
    .destroy = docker_destroy,
    .logs = hr_docker_logs,
    .stats = hr_docker_stats,
    .exec = hr_docker_exec,
    .freeze = docker_freeze,
    .adopt = docker_adopt,
    .vscode_url = hr_docker_vscode_url,
    .web_url = hr_docker_web_url,
    .web_hosts = hr_docker_web_hosts,
    .network = hr_docker_rules,
    .set_network = hr_docker_set_rules,
    .network_log = hr_docker_rules_log,
    .holds_network = hr_docker_holds_rules,
    .events = hr_docker_events,
    .doctor = hr_docker_doctor,
    .build = hr_docker_build,
    .snapshot = hr_docker_snapshot,
    .found = hr_docker_found,
    .end_found = hr_docker_end_found,
};
