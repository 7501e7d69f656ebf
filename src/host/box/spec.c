/* Composes the document of a box: the parts of the host that it sees, its limits, and the command
 * of its server. */
#include "config.h"

#include "host/box/box_int.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/account.h"
#include "base/err.h"
#include "base/path.h"
#include "base/text/text.h"
#include "host/box/layers.h"
#include "host/command.h"
#include "host/common/module.h"
#include "host/common/payload.h"
#include "host/config/settings.h"
#include "host/config/size.h"
#include "host/config/volumes.h"
#include "proto/json.h"

#define PORT 30000 /* port in the start command, on which nothing listens */
#define RUN_DIR "/run/handrail/server"
#define UID_FIRST 1000
#define UID_LAST 59999
#define STANDARD_MEMORY "4G"
#define STANDARD_PIDS 4096
#define STANDARD_QUOTA 100000
#define STANDARD_PERIOD 100000
#define STANDARD_FILES 65536

/* The document under construction; a failed call is remembered, and means out of memory. */
struct spec {
	const struct hr_box *b;
	const struct hr_config *c;
	const char *root; /* NULL: the host's programs */
	struct json_object *body, *mounts;
	struct hr_strv env;
	int bad;
};

static int
add_mount(struct spec *s, const char *source, const char *target, bool read_only)
{
	struct json_object *o = hr_json_object(NULL, "source", json_object_new_string(source),
	    "target", json_object_new_string(target), "read_only",
	    json_object_new_boolean(read_only), NULL);

	s->bad |= hr_json_append(s->mounts, o, NULL);
	return 0;
}

static void
put(struct spec *s, struct json_object *o, const char *name, struct json_object *v)
{
	s->bad |= hr_json_set(o, name, v, NULL);
}

/* ---- network and limits ---- */

static const char *const nets[] = {
    [HR_BOX_NONE] = "none", [HR_BOX_HOST] = "host", [HR_BOX_EGRESS] = "egress"};

const char *
hr_box_net_name(enum hr_box_net net)
{
	return nets[net];
}

int
hr_box_network(const struct hr_config *c, enum hr_box_net *ret, struct hr_err *err)
{
	const char *own = hr_config_text(c, "box.network");
	const char *mode = hr_config_text(c, "sandbox.security.network_mode");

	if (mode == NULL || strcmp(mode, "default") == 0)
		mode = hr_config_bool(c, "sandbox.use_host_network") ? "host" : own;
	if (mode == NULL)
		mode = "none";
	for (*ret = HR_BOX_NONE; *ret <= HR_BOX_EGRESS; (*ret)++)
		if (strcmp(mode, nets[*ret]) == 0)
			return 0;
	return hr_err_set(err, HR_E_INVAL,
	    "the network of a box can be none, host or egress, not \"%.40s\": set box.network or "
	    "sandbox.security.network_mode",
	    mode);
}

static int
show_file(void *arg, const char *source, const char *target)
{
	return add_mount(arg, source, target, true);
}

static bool
is_standard(const struct hr_config *c)
{
	const char *profile = hr_config_text(c, "sandbox.limits.profile");

	return profile != NULL && strcmp(profile, "standard") == 0;
}

/* Returns the limit, 0 for none, or -1 with *err set. */
static long long
number(const struct hr_config *c, const char *key, long long standard, struct hr_err *err)
{
	struct json_object *v = hr_config_value(c, key);
	long long n = v != NULL ? json_object_get_int64(v) : is_standard(c) ? standard : 0;

	if (v != NULL && n < 1)
		return hr_err_set(err, HR_E_INVAL, "Invalid value for %s: %lld", key, n);
	return n;
}

long long
hr_box_open_files(const struct hr_config *c, struct hr_err *err)
{
	long long n = number(c, "sandbox.limits.ulimit_nofile", STANDARD_FILES, err);

	/* the launcher holds a descriptor for each mount */
	if (n > 0 && n < 512)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.limits.ulimit_nofile is %lld: a box needs 512 or more", n);
	return n;
}

/* Reads the limit of memory. The launcher allows a box no swap, so memswap_limit can only ask for
 * that. */
static int
memory(const struct hr_config *c, long long *ret, struct hr_err *err)
{
	const char *mem = hr_config_text(c, "sandbox.limits.mem_limit");
	const char *swap = hr_config_text(c, "sandbox.limits.memswap_limit");

	if (mem == NULL && is_standard(c))
		mem = STANDARD_MEMORY;
	*ret = mem != NULL ? hr_size_parse(mem) : 0;
	if (*ret < 0 || (mem != NULL && *ret == 0))
		return hr_err_set(
		    err, HR_E_INVAL, "Invalid value for sandbox.limits.mem_limit: %s", mem);
	if (swap != NULL && hr_size_parse(swap) != 0 && hr_size_parse(swap) != *ret)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.limits.memswap_limit is %s: a box with a limit of memory has no swap, "
		    "so only 0 and the value of sandbox.limits.mem_limit are possible",
		    swap);
	return 0;
}

static int
limits(struct spec *s, struct hr_err *err)
{
	const char *profile = hr_config_text(s->c, "sandbox.limits.profile");
	struct json_object *o = json_object_new_object();
	long long bytes, pids, quota, period;

	put(s, s->body, "limits", o);
	if (profile != NULL && strcmp(profile, "none") != 0 && !is_standard(s->c))
		return hr_err_set(
		    err, HR_E_INVAL, "Invalid value for sandbox.limits.profile: %s", profile);
	if (memory(s->c, &bytes, err) < 0 ||
	    (pids = number(s->c, "sandbox.limits.pids", STANDARD_PIDS, err)) < 0 ||
	    (quota = number(s->c, "sandbox.limits.cpu_quota", STANDARD_QUOTA, err)) < 0 ||
	    (period = number(s->c, "sandbox.limits.cpu_period", STANDARD_PERIOD, err)) < 0)
		return -1;
	if (bytes > 0)
		put(s, o, "memory_bytes", json_object_new_int64(bytes));
	if (pids > 0)
		put(s, o, "processes", json_object_new_int64(pids));
	if (quota > 0)
		put(s, o, "cpus",
		    json_object_new_double(
			(double)quota / (double)(period > 0 ? period : STANDARD_PERIOD)));
	return 0;
}

/* ---- the parts of the host that it sees ---- */

static int
one_volume(struct spec *s, const struct hr_volume *v, struct hr_err *err)
{
	const char *home = hr_env_get(s->b->h->environ, "HOME");
	bool read_only = strcmp(v->mode, "ro") == 0;
	HR_FREE char *path = NULL;
	char source[PATH_MAX];

	if (v->named)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.volumes: \"%.200s\" is the name of a volume, and a box has only "
		    "directories of this machine: give a path",
		    v->source);
	if (!read_only && strcmp(v->mode, "rw") != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.volumes: the mode of %.200s can be ro or rw for a box, not \"%.40s\"",
		    v->source, v->mode);
	path = strncmp(v->source, "~/", 2) == 0 && home != NULL ? hr_path_join(home, v->source + 2)
								: strdup(v->source);
	if (path == NULL)
		return hr_err_nomem(err);
	/* the path is resolved here, since the launcher follows no links: another account could
	 * change one meanwhile */
	if (realpath(path, source) == NULL)
		return hr_err_sys(err, errno, "sandbox.volumes: %s", path);
	return add_mount(s, source, v->target, read_only);
}

static int
volumes(struct spec *s, struct hr_err *err)
{
	const char *text = hr_config_text(s->c, "sandbox.volumes");
	const char *mount = hr_config_text(s->c, "core.workspace_mount_path");
	const char *base = hr_config_text(s->c, "core.workspace_base");
	const char *target = hr_config_text(s->c, "core.workspace_mount_path_in_sandbox");
	HR_FREE char *whole = NULL;
	HR_CLEAN(hr_volumes_done) struct hr_volumes v = {0};
	char source[PATH_MAX];
	size_t i;

	if (text != NULL && hr_volumes_parse(text, &v, err) != 0)
		return -1;
	for (i = 0; i < v.n; i++)
		if (one_volume(s, &v.v[i], err) < 0)
			return -1;
	if (text != NULL || (mount == NULL && base == NULL))
		return 0;
	whole = hr_path_absolute(mount != NULL ? mount : base, err);
	if (whole == NULL || hr_path_mkdirs_own(whole, 0755, NULL, err) < 0)
		return -1;
	if (realpath(whole, source) == NULL)
		return hr_err_sys(err, errno, "the workspace %s", whole);
	s->b->h->log(
	    s->b->h->arg, "The workspace is a directory of yours: commands can change it.");
	return add_mount(s, source, target, false);
}

/* Shows a file or a directory with handrail's programs at its own place, unless it is there already
 * or does not exist. The variable, if there is one, leads to it. */
static int
show_program(struct spec *s, const char *path, const char *variable, char place[PATH_MAX],
    struct hr_err *err)
{
	if (realpath(path, place) == NULL)
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "%s", path);
	if (variable != NULL)
		hr_strv_set_envf(&s->env, "%s=%s", variable, place);
	return strncmp(place, "/usr/", 5) == 0 ? 0 : add_mount(s, place, place, true);
}

/* Sets *prefix to the start command's first words for the programs of this machine. */
static int
host_programs(struct spec *s, struct hr_strv *prefix, struct hr_err *err)
{
	static const char *const more[][2] = {
	    {"HANDRAIL_DATADIR", HR_PKGDATADIR}, {"HANDRAIL_WWWDIR", HR_PKGDATADIR "/www"}};
	const char *const *env = s->b->h->environ;
	const char *given = hr_env_get(env, "HANDRAIL_SERVER");
	const char *server = given != NULL ? given : HR_SBINDIR "/handraild";
	char place[PATH_MAX], other[PATH_MAX];
	size_t i;

	if (access(server, X_OK) != 0)
		return hr_err_set(err, HR_E_RUNTIME,
		    "handraild is not properly installed. %s cannot be executed.", server);
	if (show_program(s, server, NULL, place, err) < 0 ||
	    show_program(s, hr_module_dir(), "HANDRAIL_LIBEXECDIR", other, err) < 0)
		return -1;
	for (i = 0; i < sizeof(more) / sizeof(*more); i++) {
		given = hr_env_get(env, more[i][0]);
		/* the second directory is below the first, unless it is given */
		if ((given != NULL || i == 0) &&
		    show_program(s, given != NULL ? given : more[i][1], more[i][0], other, err) < 0)
			return -1;
	}
	hr_strv_add(prefix, place);
	return 0;
}

/* Does the same for a root directory, whose programs are its own or the payload's. */
static int
root_programs(struct spec *s, struct hr_strv *prefix, struct hr_err *err)
{
	struct hr_command c = hr_command_in_image(s->b->h, PORT);
	HR_FREE char *image = hr_path_join(s->root, &HR_PAYLOAD_START[1]);
	HR_FREE char *installed = hr_path_join(s->root, &HR_SBINDIR "/handraild"[1]);
	const char *payload;
	char place[PATH_MAX];

	if (hr_payload_given(s->c, &payload, err) < 0)
		return -1;
	if (image == NULL || installed == NULL)
		return hr_err_nomem(err);
	if (payload == NULL && access(image, F_OK) != 0 && access(installed, F_OK) == 0) {
		hr_strv_add(prefix, HR_SBINDIR "/handraild");
		return 0;
	}
	if (payload == NULL && access(image, F_OK) != 0)
		payload = hr_payload_installed();
	if (payload == NULL && access(image, F_OK) != 0)
		return hr_err_set(err, HR_E_NOTFOUND,
		    "%s has none of handrail's programs: install handrail-runtime in it, or set "
		    "sandbox.payload to a directory that \"packaging/payload DIR\" made",
		    s->root);
	if (payload != NULL && realpath(payload, place) == NULL)
		return hr_err_sys(err, errno, "%s", payload);
	hr_strv_add_all(prefix, c.prefix);
	return payload != NULL ? add_mount(s, place, HR_PAYLOAD_PLACE, true) : 0;
}

/* ---- the account and the command ---- */

/* Returns a user ID for the account that root's box makes: one that no account of the host has,
 * since the box sees the host's accounts, and its kernel is the host's. -1: the ID is as in an
 * image. */
static long
free_id(const struct spec *s)
{
	long id;

	if (s->root != NULL || !hr_config_bool(s->c, "core.run_as_openhands") ||
	    hr_env_get(s->b->h->environ, "RUNTIME_UID") != NULL || getpwnam("openhands") != NULL)
		return -1;
	for (id = UID_FIRST; id <= UID_LAST && getpwuid((uid_t)id) != NULL;)
		id++;
	return id;
}

/* Gives the account the number that run_as_user asks for. A box sees the host's accounts: the
 * server makes no second account of a number, and would run commands as root under another name. */
static int
numbered(struct spec *s, long long id, struct hr_command *c, struct hr_err *err)
{
	const struct passwd *p;

	if (id < 0 || id >= UINT32_MAX)
		return hr_err_set(
		    err, HR_E_INVAL, "Invalid value for sandbox.security.run_as_user: %lld", id);
	if (!hr_account_is_root() && id != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.security.run_as_user is %lld, but the box of an ordinary user has the "
		    "account 0 alone: unset it, or start the box as root",
		    id);
	c->user_id = (long)id;
	c->username = id == 0 ? "root" : "openhands";
	if (id == 0 || s->root != NULL)
		return 0;
	if ((p = getpwuid((uid_t)id)) != NULL && strcmp(p->pw_name, c->username) != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.security.run_as_user is %lld, the account %.40s of this machine, "
		    "whose "
		    "accounts the box shares: choose a number without an account, or set box.root",
		    id, p->pw_name);
	if (p == NULL && (p = getpwnam(c->username)) != NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.security.run_as_user is %lld, but the account openhands of this "
		    "machine, "
		    "which the box shares, has the number %lu: use that, or set box.root",
		    id, (unsigned long)p->pw_uid);
	return 0;
}

/* Appends the option that gives the account the group of run_as_group, if that is set. */
static int
grouped(struct spec *s, struct hr_strv *argv, struct hr_err *err)
{
	struct json_object *asked = hr_config_value(s->c, "sandbox.security.run_as_group");
	long long id = json_object_get_int64(asked);

	if (asked == NULL)
		return 0;
	if (id < 0 || id >= UINT32_MAX)
		return hr_err_set(
		    err, HR_E_INVAL, "Invalid value for sandbox.security.run_as_group: %lld", id);
	if (!hr_account_is_root() && id != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.security.run_as_group is %lld, but the box of an ordinary user has "
		    "the group 0 alone: unset it, or start the box as root",
		    id);
	hr_strv_add(argv, "--group-id");
	hr_strv_addf(argv, "%lld", id);
	return 0;
}

/* Composes the account: an ordinary user's box can use the user's account alone, which is its
 * root. */
static int
account(struct spec *s, struct hr_command *c, struct hr_err *err)
{
	static const char *const root[] = {
	    "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash"};
	struct json_object *asked = hr_config_value(s->c, "sandbox.security.run_as_user");
	size_t i;

	for (i = 0; i < sizeof(root) / sizeof(*root); i++)
		hr_strv_set_env(&s->env, root[i]);
	c->user_id = hr_account_is_root() ? free_id(s) : 0;
	if (asked != NULL && numbered(s, json_object_get_int64(asked), c, err) < 0)
		return -1;
	if (!hr_account_is_root()) {
		c->username = "root";
		hr_strv_set_env(&s->env, "SU_TO_USER=false");
	}
	return 0;
}

static int
command(struct spec *s, struct hr_err *err)
{
	static const char *const more[] = {"--listen",
	    "unix:" HR_SIDECAR_EDGE "/" HR_SIDECAR_SOCKET, "--run-dir", RUN_DIR, "--state-dir",
	    HR_BOX_STATE_DIR, NULL};
	const struct hr_backend_host *h = s->b->h;
	struct hr_command c = hr_command_in_image(h, PORT);
	HR_CLEAN(hr_strv_done) struct hr_strv prefix = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	int r = s->root != NULL ? root_programs(s, &prefix, err) : host_programs(s, &prefix, err);

	if (r < 0 || account(s, &c, err) < 0)
		return -1;
	c.prefix = hr_strv_list(&prefix);
	if (hr_command_build(&argv, &c, s->c, h->environ, err) < 0 || grouped(s, &argv, err) < 0)
		return -1;
	hr_strv_add_all(&argv, more);
	s->bad |= prefix.failed || argv.failed;
	put(s, s->body, "argv", hr_json_list(NULL, hr_strv_list(&argv)));
	return 0;
}

int
hr_box_port(const struct hr_box *b, int i)
{
	/* all ports are free in a network of the box's own */
	static const int own[HR_BOX_PORTS] = {40000, 50000, 55000};

	return b->ports[i] != 0 ? b->ports[i] : own[i];
}

static void
environment(struct spec *s)
{
	const struct hr_box *b = s->b;
	const int apps[] = {hr_box_port(b, HR_BOX_APP1), hr_box_port(b, HR_BOX_APP2)};
	const char *const *e;

	hr_strv_set_env(
	    &s->env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	hr_strv_set_env(&s->env, "LANG=C.UTF-8");
	for (e = b->h->env; *e != NULL; e++)
		hr_strv_set_env(&s->env, *e);
	hr_command_env(&s->env, b->h, b->key, hr_box_port(b, HR_BOX_VSCODE), apps);
	/* no other way leads to a program of the box */
	hr_strv_set_env(&s->env, "HANDRAIL_PORT_PATHS=true");
	/* the parent's server has set the owners, and the copy has kept them */
	if (b->prepared != NULL)
		hr_strv_set_env(&s->env, "HANDRAIL_KEEP_OWNERS=true");
	/* set after the user's variables, which must not replace the key: without a key every
	 * account could use the server through its forwarder */
	hr_strv_set_envf(&s->env, "SESSION_API_KEY=%s", b->key);
	hr_strv_set_env(&s->env, "NOTIFY_SOCKET=" HR_SIDECAR_EDGE "/" HR_BOX_NOTIFY);
}

static int
fill(struct spec *s, struct hr_err *err)
{
	const struct hr_box *b = s->b;
	HR_FREE char *storage = hr_sidecar_path(&b->side, "storage");
	HR_CLEAN(hr_strv_done) struct hr_strv below = {0};
	HR_FREE char *journal = NULL;
	char place[PATH_MAX], edge[PATH_MAX], root[PATH_MAX];
	enum hr_box_net net;

	if (storage == NULL)
		return hr_err_nomem(err);
	if (realpath(storage, place) == NULL || realpath(b->edge, edge) == NULL)
		return hr_err_sys(err, errno, "%s", storage);
	if (s->root != NULL && realpath(s->root, root) == NULL)
		return hr_err_sys(err, errno, "box.root: %s", s->root);
	if (hr_box_network(s->c, &net, err) < 0)
		return -1;
	put(s, s->body, "name", json_object_new_string(b->name));
	put(s, s->body, "storage", json_object_new_string(place));
	if (s->root != NULL)
		put(s, s->body, "root", json_object_new_string(root));
	put(s, s->body, "network", json_object_new_string(hr_box_net_name(net)));
	if (hr_box_below(b->h->state_dir, place, &below, err) < 0 ||
	    hr_text_setf(&journal, err, "%s/" HR_BOX_JOURNAL, place) < 0)
		return -1;
	if (below.n > 0)
		put(s, s->body, "below", hr_json_list(NULL, hr_strv_list(&below)));
	(void)add_mount(s, edge, HR_SIDECAR_EDGE, false);
	(void)add_mount(s, journal, HR_BOX_STATE_DIR, false);
	environment(s);
	/* the other variables must be complete */
	if (net == HR_BOX_EGRESS && (hr_egress_files(&b->side, show_file, s, err) < 0 ||
					hr_egress_env(&b->side, &s->env, err) < 0))
		return -1;
	if (volumes(s, err) < 0 || limits(s, err) < 0 || command(s, err) < 0)
		return -1;
	s->bad |= s->env.failed;
	put(s, s->body, "env", hr_json_list(NULL, hr_strv_list(&s->env)));
	return 0;
}

int
hr_box_document(const struct hr_box *b, struct hr_buf *ret, struct hr_err *err)
{
	HR_PUT struct json_object *body = json_object_new_object();
	struct spec s = {.b = b,
	    .c = b->h->config,
	    .root = hr_config_text(b->h->config, "box.root"),
	    .body = body,
	    .mounts = json_object_new_array()};
	int r;

	if (hr_json_set(body, "mounts", s.mounts, err) < 0)
		return -1;
	r = fill(&s, err);
	hr_strv_done(&s.env);
	if (r == 0 && s.bad != 0)
		r = hr_err_nomem(err);
	if (r == 0 && (hr_json_put(ret, body) != 0 || hr_buf_check(ret, NULL) != 0))
		r = hr_err_set(err, HR_E_INVAL,
		    "a setting or a variable of the box is not UTF-8, or all of them are too long");
	return r;
}
