/* Gives a container a network with rules. The container has a loopback interface only, which takes
 * all addresses, and handrail-egress(8) listens there from outside. Until it does, nothing is
 * reachable. The server is reached by a Unix socket. Both need this machine's root: its network
 * namespace is entered, and its socket is owned by root. */
#include "config.h"

#include "host/docker/docker_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/account.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "base/text/text.h"
#include "host/common/statedir.h"
#include "host/life/urls.h"
#include "host/records/record.h"
#include "proto/json.h"

#define EDGE "edge" /* below the sandbox's directory: HR_SIDECAR_EDGE of the container */
#define MODE "sandbox.security.network_mode"
#define QUESTION_S 10 /* limit of a call that no sandbox needs */
#define INSTEAD "use the back-end box: \"handrail up -r box --network egress\""

/* ---- before anything is made ---- */

static bool
wants_rules(const struct hr_backend_host *h)
{
	const char *mode = hr_config_text(h->config, MODE);

	return mode != NULL && strcmp(mode, "egress") == 0;
}

/* Refuses what would lead around the rules, or break them. */
static int
check_others(const struct hr_backend_host *h, struct hr_err *err)
{
	static const char *const kwargs[] = {
	    "privileged", "pid_mode", "userns_mode", "dns", "dns_opt", "dns_search", "runtime"};
	struct json_object *map = hr_config_value(h->config, "sandbox.docker_runtime_kwargs");
	size_t i;

	if (hr_config_bool(h->config, "sandbox.use_host_network"))
		return hr_err_set(err, HR_E_INVAL,
		    "the network of the container has rules, and sandbox.use_host_network is true: "
		    "unset one");
	if (hr_json_count(hr_config_value(h->config, "sandbox.additional_networks")) > 0)
		return hr_err_set(err, HR_E_INVAL,
		    "the network of the container has rules, which do not hold for "
		    "sandbox.additional_networks: unset one");
	for (i = 0; i < sizeof(kwargs) / sizeof(*kwargs); i++)
		if (hr_json_at(map, kwargs[i]) != NULL)
			return hr_err_set(err, HR_E_INVAL,
			    "the network of the container has rules, which cannot be held with %s "
			    "in sandbox.docker_runtime_kwargs: unset one",
			    kwargs[i]);
	return 0;
}

int
hr_docker_check_rules(const struct hr_backend_host *h, struct hr_err *err)
{
	const char *mode = hr_config_text(h->config, MODE);

	if (mode == NULL)
		mode = hr_config_bool(h->config, "sandbox.use_host_network") ? "host" : "default";
	if (hr_egress_check(h, mode, err) < 0)
		return -1;
	if (!wants_rules(h))
		return 0;
	if (!hr_account_is_root())
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "only root can enforce rules of a container's network: " INSTEAD);
	if (strncmp(hr_engine_at(h->environ), "unix://", strlen("unix://")) != 0)
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "DOCKER_HOST names an Engine of another machine, and handrail cannot enforce "
		    "rules of a network there: " INSTEAD);
	if (h->state_dir == NULL)
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "the rules of a container's network need a state directory");
	return check_others(h, err);
}

/* Refuses an Engine whose containers have another root than this machine's: the container could
 * not make its server's socket. */
static int
check_engine(struct hr_docker *d, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct json_object *list;
	const char *text;
	size_t i;

	if (hr_docker_engine(d, err) < 0 ||
	    hr_engine_call(&d->engine, "GET", "/info", NULL, &o, err) < 0)
		return -1;
	list = hr_json_at(o, "SecurityOptions");
	for (i = 0; i < hr_json_count(list); i++) {
		text = hr_json_text(hr_json_entry(list, i));
		if (text != NULL &&
		    (strstr(text, "name=rootless") != NULL || strstr(text, "name=userns") != NULL))
			return hr_err_set(err, HR_E_UNSUPPORTED,
			    "the Engine runs containers in a user namespace (%s), where their "
			    "networks' rules are not supported: " INSTEAD,
			    text);
	}
	return 0;
}

int
hr_docker_holds_rules(void *self, struct hr_err *err)
{
	struct hr_docker *d = self;

	if (hr_docker_engine(d, err) < 0)
		return -1;
	d->engine.timeout_s = QUESTION_S;
	return check_engine(d, err);
}

/* ---- a container ---- */

static char *
edge_of(const struct hr_docker *d, struct hr_err *err)
{
	char *path = hr_sidecar_path(&d->side, EDGE);

	return path != NULL ? path : hr_err_null(err);
}

int
hr_docker_prepare_rules(struct hr_docker *d, struct hr_err *err)
{
	HR_FREE char *path = NULL;
	HR_FREE char *edge = NULL;
	bool ignored;

	if (!wants_rules(d->h))
		return 0;
	if (check_engine(d, err) < 0 || hr_state_directory(d->h->state_dir, true, err) < 0)
		return -1;
	path = hr_record_path(d->h->state_dir, d->h->sid, HR_RECORD_HOME);
	free(d->side.dir);
	d->side.dir = path != NULL ? hr_path_absolute(path, err) : hr_err_null(err);
	edge = d->side.dir != NULL ? edge_of(d, err) : NULL;
	if (edge == NULL)
		return -1;
	d->h->begun(d->h->arg);
	return hr_sidecar_make_directory(d->side.dir, &ignored, err) < 0 ||
		       hr_sidecar_make_edge(edge, err) < 0
		   ? -1
		   : hr_egress_prepare(&d->side, true, err);
}

/* Returns true if the process sees the directory of the server's socket at its place, and so is one
 * of this container. An Engine of another machine, behind a socket of this one, has other
 * processes. */
static bool
is_inside(const struct hr_docker *d, pid_t pid)
{
	HR_FREE char *edge = edge_of(d, NULL);
	char place[64];
	struct stat here, there;

	(void)snprintf(place, sizeof(place), "/proc/%ld/root" HR_SIDECAR_EDGE, (long)pid);
	return edge != NULL && stat(edge, &here) == 0 && stat(place, &there) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

int
hr_docker_keep_rules(struct hr_docker *d, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	long long pid;

	if (d->side.dir == NULL)
		return 0;
	if (hr_docker_call(d, "GET", "/json", &o, err) < 0)
		return -1;
	pid = (long long)hr_json_int_at(hr_json_at(o, "State"), "Pid");
	hr_fd_close(&d->side.watch);
	if (pid > 1 && pid <= INT32_MAX)
		(void)hr_sidecar_watch(&d->side, (pid_t)pid, hr_pid_started((pid_t)pid));
	if (pid <= 1)
		return hr_err_set(err, HR_E_DISCONNECTED, "Container %s does not run.", d->name);
	if (d->side.watch < 0 || !is_inside(d, (pid_t)pid))
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "the container runs on another machine, and handrail cannot enforce rules of a "
		    "network there: " INSTEAD);
	return hr_egress_keep(&d->side, err);
}

int
hr_docker_open_socket(struct hr_docker *d, struct hr_err *err)
{
	HR_FREE char *edge = d->side.dir != NULL ? edge_of(d, err) : NULL;

	if (d->side.dir == NULL)
		return 0;
	return edge != NULL ? hr_sidecar_open_socket(&d->side, edge, err) : -1;
}

void
hr_docker_find_rules(struct hr_docker *d)
{
	struct hr_err e = {0};

	if (d->side.dir == NULL)
		return;
	if (hr_docker_keep_rules(d, &e) < 0) {
		if (e.code != HR_E_DISCONNECTED && e.code != HR_E_NO_SANDBOX)
			d->h->log(d->h->arg, e.msg);
		return;
	}
	(void)hr_docker_open_socket(d, NULL);
}

void
hr_docker_stop_rules(const struct hr_docker *d)
{
	HR_FREE char *socket =
	    d->side.dir != NULL ? hr_sidecar_path(&d->side, EDGE "/" HR_SIDECAR_SOCKET) : NULL;

	if (socket == NULL)
		return;
	hr_sidecar_end_forwards(&d->side);
	hr_egress_stop(&d->side);
	(void)unlink(socket);
}

void
hr_docker_end_rules(struct hr_docker *d)
{
	struct hr_err e = {0};

	if (d->side.dir == NULL)
		return;
	hr_sidecar_end_forwards(&d->side);
	hr_egress_end(&d->side);
	if (hr_path_remove(d->side.dir, &e) < 0)
		d->h->log(d->h->arg, e.msg);
	hr_docker_forget_rules(d);
}

void
hr_docker_forget_rules(struct hr_docker *d)
{
	hr_fd_close(&d->side.watch);
	hr_fd_close(&d->side.socket);
	free(d->side.dir);
	d->side.dir = NULL;
}

/* ---- the table's calls ---- */

int
hr_docker_web_url(void *self, char **ret, struct hr_err *err)
{
	const struct hr_docker *d = self;
	int port;

	if (d->side.dir == NULL)
		return hr_text_set(ret, d->url, err);
	port = hr_sidecar_forward(&d->side, false, 0, err);
	return port < 0 ? -1 : hr_text_setf(ret, err, "http://127.0.0.1:%d", port);
}

int
hr_docker_vscode_url(void *self, char **ret, struct hr_err *err)
{
	const struct hr_docker *d = self;

	if (d->vscode_port <= 0)
		return 0;
	if (d->side.dir != NULL && hr_sidecar_forward(&d->side, true, d->vscode_port, err) < 0)
		return -1;
	return hr_text_setf(ret, err, "http://%s:%d/",
	    d->side.dir != NULL ? "127.0.0.1" : "localhost", d->vscode_port);
}

/* Returns the addresses; another machine's Engine has its ports on that machine. Those of a network
 * with rules are not reachable from outside. */
int
hr_docker_web_hosts(void *self, char **ret_json, struct hr_err *err)
{
	static const int none[2] = {0, 0};
	const struct hr_docker *d = self;
	const char *host = hr_env_get(d->h->environ, "DOCKER_HOST_ADDR");

	return hr_web_hosts_at(host != NULL ? host : "localhost",
	    d->side.dir != NULL ? none : d->app_ports, ret_json, err);
}

int
hr_docker_rules(void *self, char **ret_json, struct hr_err *err)
{
	const struct hr_docker *d = self;

	return hr_egress_rules(&d->side, ret_json, err);
}

int
hr_docker_set_rules(void *self, const char *json, struct hr_err *err)
{
	struct hr_docker *d = self;
	struct hr_err e = {0};

	if (d->side.watch < 0 && hr_docker_keep_rules(d, &e) < 0 && e.code != HR_E_DISCONNECTED)
		return hr_err_pass(err, &e);
	return hr_egress_set_rules(&d->side, json, err);
}

int
hr_docker_rules_log(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	const struct hr_docker *d = self;

	return hr_egress_log(&d->side, follow, fn, arg, err);
}
