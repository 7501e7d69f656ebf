/* Composes the create call's body. Explicit limits override the profile, docker_runtime_kwargs
 * override both. */
#include "config.h"

#include "host/docker/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/path.h"
#include "base/err.h"
#include "base/span.h"
#include "host/config/settings.h"
#include "host/config/size.h"
#include "base/strv.h"
#include "host/command.h"
#include "host/docker/engine.h"
#include "host/common/payload.h"
#include "host/config/volumes.h"
#include "host/sidecar/egress.h"
#include "proto/json.h"

#define LISTEN "HANDRAIL_LISTEN"

/* Holds the body under construction. A failed call sets `bad`, which means that memory ran out. */
struct spec {
	const struct hr_dockerspec *d;
	struct json_object *body, *host;
	int bad;
	struct hr_err *err;
};

static void
put(struct spec *s, struct json_object *o, const char *name, struct json_object *v)
{
	s->bad |= hr_json_set(o, name, v, NULL);
}

static void
add(struct spec *s, struct json_object *list, struct json_object *v)
{
	s->bad |= hr_json_append(list, v, NULL);
}

/* Returns a list with o alone; takes ownership of o. */
static struct json_object *
list_of(struct spec *s, struct json_object *o)
{
	struct json_object *list = json_object_new_array();

	add(s, list, o);
	return list;
}

static int
environment(struct spec *s)
{
	const struct hr_config *c = s->d->host->config;
	HR_CLEAN(hr_strv_done) struct hr_strv v = {0};

	hr_strv_add_all(&v, s->d->host->env);
	hr_strv_set_envf(&v, "port=%d", s->d->port);
	hr_command_env(&v, s->d->host, s->d->key, s->d->vscode_port, s->d->app_ports);
	if (hr_config_bool(c, "sandbox.use_host_network") &&
	    hr_json_at(hr_config_value(c, "sandbox.runtime_startup_env_vars"), LISTEN) == NULL)
		hr_strv_set_envf(
		    &v, LISTEN "=%s", hr_config_text(c, "sandbox.runtime_binding_address"));
	if (s->d->side != NULL) {
		/* no other way leads to a program of the container */
		hr_strv_set_env(&v, "HANDRAIL_PORT_PATHS=true");
		if (hr_egress_env(s->d->side, &v, s->err) < 0)
			return -1;
	}
	s->bad |= v.failed;
	put(s, s->body, "Env", hr_json_list(NULL, hr_strv_list(&v)));
	return 0;
}

static void
one_port(
    struct spec *s, struct json_object *exposed, struct json_object *bound, int inside, int port)
{
	const char *ip = hr_config_text(s->d->host->config, "sandbox.runtime_binding_address");
	char name[32], number[16];

	(void)snprintf(name, sizeof(name), "%d/tcp", inside);
	(void)snprintf(number, sizeof(number), "%d", port);
	put(s, exposed, name, json_object_new_object());
	put(s, bound, name,
	    list_of(s, hr_json_texts(
			   NULL, "HostIp", ip != NULL ? ip : "0.0.0.0", "HostPort", number, NULL)));
}

static void
ports(struct spec *s)
{
	struct json_object *exposed = json_object_new_object(), *bound = json_object_new_object();
	struct json_object *given =
	    hr_config_value(s->d->host->config, "sandbox.runtime_startup_env_vars");
	char key[32];
	int i, inside;

	one_port(s, exposed, bound, s->d->port, s->d->port);
	if (hr_is_one_of("vscode", s->d->host->plugins))
		one_port(s, exposed, bound, s->d->vscode_port, s->d->vscode_port);
	for (i = 0; i < HR_WORKER_PORTS; i++) {
		inside = hr_command_worker_port(given, i);
		(void)snprintf(key, sizeof(key), "%d/tcp", inside);
		if (hr_json_at(bound, key) != NULL)
			inside = 0; /* the server's, the editor's or the other one's */
		one_port(s, exposed, bound, inside > 0 ? inside : s->d->app_ports[i],
		    s->d->app_ports[i]);
	}
	put(s, s->body, "ExposedPorts", exposed);
	put(s, s->host, "PortBindings", bound);
}

static int
network(struct spec *s)
{
	const struct hr_config *c = s->d->host->config;
	const char *mode = hr_config_text(c, "sandbox.security.network_mode");
	bool host = hr_config_bool(c, "sandbox.use_host_network") ||
		    (mode != NULL && strcmp(mode, "host") == 0);

	if (s->d->side != NULL) {
		put(s, s->host, "NetworkMode", json_object_new_string("none"));
		return 0;
	}
	if (mode != NULL && strcmp(mode, "none") == 0)
		return hr_err_set(s->err, HR_E_INVAL,
		    "Invalid value for sandbox.security.network_mode: none (the server could not "
		    "be "
		    "reached)");
	put(s, s->host, "NetworkMode",
	    json_object_new_string(host           ? "host"
				   : mode != NULL ? mode
						  : "default"));
	if (host)
		s->d->host->log(s->d->host->arg, "The sandbox uses the host's network.");
	else
		ports(s);
	return 0;
}

static void
one_volume(struct spec *s, const struct hr_volume *v, struct json_object *binds,
    struct json_object *volumes)
{
	const char *home = hr_env_get(s->d->host->environ, "HOME");
	HR_FREE char *text = NULL;
	HR_FREE char *source = NULL;

	if (strstr(v->mode, "overlay") != NULL) {
		s->d->host->log(s->d->host->arg, "Overlay mounts are not supported; left out.");
		return;
	}
	if (v->named)
		source = strdup(v->source);
	else if (strncmp(v->source, "~/", 2) == 0 && home != NULL)
		source = hr_path_join(home, v->source + 2);
	else
		source = hr_path_absolute(v->source, NULL);
	if (source == NULL || asprintf(&text, "%s:%s:%s", source, v->target, v->mode) < 0) {
		s->bad = 1;
	} else {
		add(s, binds, json_object_new_string(text));
		put(s, volumes, v->target, json_object_new_object());
	}
}

/* Adds a volume that no setting names. */
static void
own_volume(struct spec *s, const char *source, const char *target, const char *mode,
    struct json_object *binds, struct json_object *volumes)
{
	struct hr_volume v = {
	    .source = strdup(source), .target = strdup(target), .mode = strdup(mode)};

	if (v.source == NULL || v.target == NULL || v.mode == NULL)
		s->bad = 1;
	else
		one_volume(s, &v, binds, volumes);
	free(v.source);
	free(v.target);
	free(v.mode);
}

/* The lists of mounts, for files of a network with rules. */
struct lists {
	struct spec *s;
	struct json_object *binds, *volumes;
};

static int
show_file(void *arg, const char *source, const char *target)
{
	const struct lists *l = arg;

	own_volume(l->s, source, target, "ro", l->binds, l->volumes);
	return 0;
}

/* Mounts the files of a network with rules, and the directory of the server's socket. */
static int
rules(struct spec *s, struct json_object *binds, struct json_object *volumes)
{
	struct lists l = {s, binds, volumes};
	HR_FREE char *edge = hr_sidecar_path(s->d->side, "edge");

	if (edge == NULL)
		return hr_err_nomem(s->err);
	own_volume(s, edge, HR_SIDECAR_EDGE, "rw", binds, volumes);
	return hr_egress_files(s->d->side, show_file, &l, s->err);
}

static int
mounts(struct spec *s)
{
	const struct hr_config *c = s->d->host->config;
	const char *text = hr_config_text(c, "sandbox.volumes");
	const char *mount = hr_config_text(c, "core.workspace_mount_path");
	HR_CLEAN(hr_volumes_done) struct hr_volumes v = {0};
	struct json_object *binds, *volumes;
	size_t i;
	int r;

	if (text != NULL && hr_volumes_parse(text, &v, s->err) != 0)
		return -1;
	binds = json_object_new_array();
	volumes = json_object_new_object();
	if (text == NULL && mount != NULL)
		own_volume(s, mount, hr_config_text(c, "core.workspace_mount_path_in_sandbox"),
		    "rw", binds, volumes);
	for (i = 0; i < v.n; i++)
		one_volume(s, &v.v[i], binds, volumes);
	if (s->d->payload != NULL)
		own_volume(s, s->d->payload, HR_PAYLOAD_PLACE, "ro", binds, volumes);
	r = s->d->side != NULL ? rules(s, binds, volumes) : 0;
	if (hr_json_count(binds) > 0) {
		put(s, s->host, "Binds", binds);
		put(s, s->body, "Volumes", volumes);
	} else {
		json_object_put(binds);
		json_object_put(volumes);
	}
	return r;
}

/* ---- limits and hardening ---- */

static int
invalid(struct spec *s, const char *key, const char *value)
{
	return hr_err_set(s->err, HR_E_INVAL, "Invalid value for sandbox.%s: %s", key, value);
}

static int
number_limit(struct spec *s, const char *key, const char *field, long long standard, long long min)
{
	const struct hr_config *c = s->d->host->config;
	const char *profile = hr_config_text(c, "sandbox.limits.profile");
	char full[64], shown[32];
	struct json_object *v;
	long long n = 0;

	(void)snprintf(full, sizeof(full), "sandbox.%s", key);
	v = hr_config_value(c, full);
	if (v != NULL)
		n = json_object_get_int64(v);
	else if (profile != NULL && strcmp(profile, "standard") == 0)
		n = standard;
	else
		return 0;
	(void)snprintf(shown, sizeof(shown), "%lld", n);
	if (n < min)
		return invalid(s, key, shown);
	if (strcmp(field, "Ulimits") != 0) {
		put(s, s->host, field, json_object_new_int64(n));
		return 0;
	}
	put(s, s->host, field,
	    list_of(s, hr_json_object(NULL, "Name", json_object_new_string("nofile"), "Soft",
			   json_object_new_int64(n), "Hard", json_object_new_int64(n), NULL)));
	return 0;
}

static int
memory_limits(struct spec *s)
{
	const struct hr_config *c = s->d->host->config;
	const char *profile = hr_config_text(c, "sandbox.limits.profile");
	const char *mem = hr_config_text(c, "sandbox.limits.mem_limit");
	const char *swap = hr_config_text(c, "sandbox.limits.memswap_limit");
	long long m = 0, w;

	if (profile != NULL && strcmp(profile, "standard") == 0) {
		mem = mem != NULL ? mem : "4G";
		swap = swap != NULL ? swap : "0";
	} else if (profile != NULL && strcmp(profile, "none") != 0) {
		return invalid(s, "limits.profile", profile);
	}
	if (mem != NULL) {
		m = hr_size_parse(mem);
		if (m <= 0)
			return invalid(s, "limits.mem_limit", mem);
		put(s, s->host, "Memory", json_object_new_int64(m));
	}
	if (swap != NULL) {
		w = strcmp(swap, "-1") == 0 ? -1 : hr_size_parse(swap);
		if (w < 0 && strcmp(swap, "-1") != 0)
			return invalid(s, "limits.memswap_limit", swap);
		if (w > 0 && w < m)
			return invalid(s, "limits.memswap_limit", swap);
		/* 0 means no swap, which the Engine expresses as the memory's size */
		put(s, s->host, "MemorySwap", json_object_new_int64(w == 0 ? m : w));
	}
	return 0;
}

static void
copy_list(struct spec *s, const char *key, const char *field)
{
	struct json_object *v = hr_config_value(s->d->host->config, key);

	if (json_object_is_type(v, json_type_array) && json_object_array_length(v) > 0)
		put(s, s->host, field, json_object_get(v));
}

static int
devices(struct spec *s)
{
	struct json_object *v = hr_config_value(s->d->host->config, "sandbox.security.devices");
	struct json_object *list;
	size_t n = hr_json_count(v);
	size_t i;

	if (n == 0)
		return 0;
	list = json_object_new_array();
	for (i = 0; i < n; i++) {
		const char *text = hr_json_text(hr_json_entry(v, i));
		char host[256], inside[256], perm[16];
		int parts =
		    text != NULL ? sscanf(text, "%255[^:]:%255[^:]:%15s", host, inside, perm) : 0;

		if (parts < 1 || strncmp(host, "/dev/", 5) != 0 || strstr(host, "..") != NULL) {
			json_object_put(list);
			return invalid(s, "security.devices", text != NULL ? text : "no text");
		}
		add(s, list,
		    hr_json_texts(NULL, "PathOnHost", host, "PathInContainer",
			parts > 1 ? inside : host, "CgroupPermissions", parts > 2 ? perm : "rwm",
			NULL));
	}
	put(s, s->host, "Devices", list);
	return 0;
}

static void
read_only_root(struct spec *s)
{
	static const char *const places[][2] = {
	    {"/tmp", "rw,exec,nosuid,nodev,size=1g,mode=1777"},
	    {"/run", "rw,nosuid,nodev,size=64m"},
	    {"/var/tmp", ""},
	    {"/openhands/logs", ""},
	    /* the server and nginx write in this directory */
	    {"/openhands/var", ""},
	    {"/home/openhands", "rw,exec,nosuid,nodev,mode=0777"},
	    {"/root", "rw,exec,nosuid,nodev,mode=0700"},
	};
	struct json_object *tmpfs = json_object_new_object();
	size_t i;

	put(s, s->host, "ReadonlyRootfs", json_object_new_boolean(true));
	for (i = 0; i < sizeof(places) / sizeof(*places); i++)
		put(s, tmpfs, places[i][0], json_object_new_string(places[i][1]));
	put(s, s->host, "Tmpfs", tmpfs);
}

static int
limits(struct spec *s)
{
	const struct hr_config *c = s->d->host->config;
	struct json_object *user = hr_config_value(c, "sandbox.security.run_as_user");
	struct json_object *group = hr_config_value(c, "sandbox.security.run_as_group");
	static const char *const no_new[] = {"no-new-privileges:true", NULL};
	char text[64];

	if (memory_limits(s) != 0 ||
	    number_limit(s, "limits.cpu_period", "CpuPeriod", 100000, 1000) != 0 ||
	    number_limit(s, "limits.cpu_quota", "CpuQuota", 100000, 1000) != 0 ||
	    number_limit(s, "limits.pids", "PidsLimit", 4096, 1) != 0 ||
	    number_limit(s, "limits.ulimit_nofile", "Ulimits", 65536, 1) != 0 || devices(s) != 0)
		return -1;
	if (hr_config_bool(c, "sandbox.security.readonly_root_fs"))
		read_only_root(s);
	if (hr_config_bool(c, "sandbox.security.no_new_privileges"))
		put(s, s->host, "SecurityOpt", hr_json_list(NULL, no_new));
	copy_list(s, "sandbox.security.cap_drop", "CapDrop");
	copy_list(s, "sandbox.security.cap_add", "CapAdd");
	if (user != NULL) {
		(void)snprintf(text, sizeof(text), "%lld:%lld",
		    (long long)json_object_get_int64(user),
		    (long long)(group != NULL ? json_object_get_int64(group)
					      : json_object_get_int64(user)));
		put(s, s->body, "User", json_object_new_string(text));
	}
	return 0;
}

/* Requests GPUs as the original's client does: all, or the named ones. */
static void
gpus(struct spec *s)
{
	static const char *const gpu[] = {"gpu", NULL};
	const char *named = hr_config_text(s->d->host->config, "sandbox.cuda_visible_devices");
	struct json_object *ids, *request;
	size_t n;

	if (!hr_config_bool(s->d->host->config, "sandbox.enable_gpu"))
		return;
	ids = json_object_new_array();
	request = json_object_new_object();
	put(s, request, "Driver", json_object_new_string(""));
	put(s, request, "Count", json_object_new_int(named != NULL && *named != '\0' ? 0 : -1));
	while (named != NULL && *named != '\0') {
		n = strcspn(named, ",");
		add(s, ids, json_object_new_string_len(named, (int)n));
		named += n + (named[n] == ',');
	}
	put(s, request, "DeviceIDs", ids);
	put(s, request, "Capabilities", list_of(s, hr_json_list(NULL, gpu)));
	put(s, request, "Options", json_object_new_object());
	put(s, s->host, "DeviceRequests", list_of(s, request));
}

/* ---- docker_runtime_kwargs: names of the Engine's fields by Python's ---- */

enum kwarg_form { AS_IS, SIZE, IN_BODY };

static const struct {
	const char *name, *field;
	enum kwarg_form form;
} kwargs[] = {
    {"mem_limit", "Memory", SIZE},
    {"memswap_limit", "MemorySwap", SIZE},
    {"mem_reservation", "MemoryReservation", SIZE},
    {"kernel_memory", "KernelMemory", SIZE},
    {"shm_size", "ShmSize", SIZE},
    {"mem_swappiness", "MemorySwappiness", AS_IS},
    {"cpu_period", "CpuPeriod", AS_IS},
    {"cpu_quota", "CpuQuota", AS_IS},
    {"cpu_shares", "CpuShares", AS_IS},
    {"nano_cpus", "NanoCpus", AS_IS},
    {"cpuset_cpus", "CpusetCpus", AS_IS},
    {"cpuset_mems", "CpusetMems", AS_IS},
    {"pids_limit", "PidsLimit", AS_IS},
    {"oom_kill_disable", "OomKillDisable", AS_IS},
    {"oom_score_adj", "OomScoreAdj", AS_IS},
    {"read_only", "ReadonlyRootfs", AS_IS},
    {"tmpfs", "Tmpfs", AS_IS},
    {"cap_add", "CapAdd", AS_IS},
    {"cap_drop", "CapDrop", AS_IS},
    {"privileged", "Privileged", AS_IS},
    {"security_opt", "SecurityOpt", AS_IS},
    {"userns_mode", "UsernsMode", AS_IS},
    {"cgroupns", "CgroupnsMode", AS_IS},
    {"cgroup_parent", "CgroupParent", AS_IS},
    {"group_add", "GroupAdd", AS_IS},
    {"dns", "Dns", AS_IS},
    {"dns_opt", "DnsOptions", AS_IS},
    {"dns_search", "DnsSearch", AS_IS},
    {"ipc_mode", "IpcMode", AS_IS},
    {"pid_mode", "PidMode", AS_IS},
    {"uts_mode", "UTSMode", AS_IS},
    {"sysctls", "Sysctls", AS_IS},
    {"runtime", "Runtime", AS_IS},
    {"init", "Init", AS_IS},
    {"restart_policy", "RestartPolicy", AS_IS},
    {"auto_remove", "AutoRemove", AS_IS},
    {"storage_opt", "StorageOpt", AS_IS},
    {"log_config", "LogConfig", AS_IS},
    {"user", "User", IN_BODY},
    {"hostname", "Hostname", IN_BODY},
    {"domainname", "Domainname", IN_BODY},
    {"labels", "Labels", IN_BODY},
    {"stop_signal", "StopSignal", IN_BODY},
};

static int
one_kwarg(struct spec *s, const char *name, struct json_object *v)
{
	size_t i;

	for (i = 0; i < sizeof(kwargs) / sizeof(*kwargs); i++) {
		long long n;

		if (strcmp(kwargs[i].name, name) != 0)
			continue;
		if (kwargs[i].form != SIZE || !json_object_is_type(v, json_type_string)) {
			put(s, kwargs[i].form == IN_BODY ? s->body : s->host, kwargs[i].field,
			    json_object_get(v));
			return 0;
		}
		n = hr_size_parse(json_object_get_string(v));
		if (n < 0)
			return hr_err_set(s->err, HR_E_INVAL,
			    "%s: must be a number with one of the units b, k, m, g, t, not: %s",
			    name, json_object_get_string(v));
		put(s, s->host, kwargs[i].field, json_object_new_int64(n));
		return 0;
	}
	return hr_err_set(
	    s->err, HR_E_INVAL, "run() got an unexpected keyword argument '%s'", name);
}

static int
all_kwargs(struct spec *s)
{
	struct json_object *map =
	    hr_config_value(s->d->host->config, "sandbox.docker_runtime_kwargs");

	if (!json_object_is_type(map, json_type_object))
		return 0;
	json_object_object_foreach(map, name, v)
	{
		if (one_kwarg(s, name, v) != 0)
			return -1;
	}
	return 0;
}

/* Adds the label to the user's; the Engine refuses labels of another form. */
static void
label(struct spec *s)
{
	struct json_object *given = hr_json_at(s->body, "Labels"), *all;

	if (s->d->owner == NULL || (given != NULL && !json_object_is_type(given, json_type_object)))
		return;
	all = json_object_new_object();
	if (given != NULL && all != NULL) {
		json_object_object_foreach(given, name, value)
		{
			/* null stays null */
			s->bad |= json_object_object_add(all, name, json_object_get(value));
		}
	}
	put(s, all, HR_CONTAINER_LABEL, json_object_new_string(s->d->owner));
	put(s, s->body, "Labels", all);
}

struct json_object *
hr_dockerspec_build(const struct hr_dockerspec *d, struct hr_err *err)
{
	struct spec s = {.d = d, .err = err};
	int r;

	s.body = json_object_new_object();
	s.host = json_object_new_object();
	if (s.body == NULL || s.host == NULL) {
		json_object_put(s.body);
		json_object_put(s.host);
		return hr_err_null(err);
	}
	put(&s, s.body, "HostConfig", s.host);
	put(&s, s.body, "Image", json_object_new_string(d->image));
	put(&s, s.body, "Cmd", hr_json_list(NULL, d->command));
	/* the list is empty, not null: null would keep the image's own */
	put(&s, s.body, "Entrypoint", json_object_new_array());
	put(&s, s.body, "WorkingDir", json_object_new_string("/openhands/code/"));
	r = environment(&s);
	if (r == 0)
		r = network(&s);
	if (r == 0)
		r = mounts(&s);
	if (r == 0)
		r = limits(&s);
	if (r == 0) {
		gpus(&s);
		r = all_kwargs(&s);
	}
	if (r == 0)
		label(&s);
	if (r == 0 && s.bad != 0)
		r = hr_err_nomem(err);
	if (r != 0) {
		json_object_put(s.body);
		return NULL;
	}
	return s.body;
}
