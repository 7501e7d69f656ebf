/* Implements the engine "local": each sandbox is one of libhandrail's, named by the id of its
 * incarnation and recorded in the fleet's directory, so that the next process finds it after a
 * crash. */
#include "config.h"

#include "fleet/local/local_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/account.h"
#include "base/log.h"
#include "base/err.h"
#include "base/strv.h"
#include "base/text/text.h"
#include "fleet/edge.h"
#include "fleet/helper.h"
#include "fleet/local/localwork.h"
#include "fleet/request.h"
#include "fleet/store/sqlite.h"
#include "host/command.h"
#include "host/config/settings.h"
#include "host/kind.h"
#include "host/handle.h"
#include "host/life/tokens.h"
#include "host/records/record.h"
#include "proto/json.h"

struct local {
	struct hr_local_place at;
	bool tells; /* true: the back-end can list sandboxes made with this state directory */
	struct hr_strv
	    environ; /* the service's, without its tokens for git, which are nobody else's */
	bool stays;  /* true: the back-end cannot pause */
	bool copies; /* true: boxes, whose files it copies */
	bool rules;  /* true: it enforces rules of a network, and the service has none */
};

static void
say(void *arg, const char *text)
{
	hr_log(HR_LOG_DEBUG, "sandbox %s: %s", (const char *)arg, text);
}

/* ---- one sandbox ---- */

/* Opens a recorded sandbox, without asking whether it still answers. */
static struct hr_sandbox *
open_one(const struct local *l, const char *id, struct hr_err *err)
{
	struct hr_sandbox_options o = {.sid = id,
	    .environ = hr_strv_list(&l->environ),
	    .attach = true,
	    .headless = true,
	    .state_dir = l->at.dir,
	    .log = say,
	    .log_arg = (void *)(uintptr_t)id};

	return hr_sandbox_open(l->at.o->config, &o, err);
}

/* Ends a recorded sandbox. *ret_recorded is set if a record existed. */
static int
end_recorded(const struct local *l, const char *id, bool *ret_recorded, struct hr_err *err)
{
	struct hr_err why = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(l, id, err);

	if (s == NULL)
		return -1;
	/* a sandbox that has ended is removed as any other */
	*ret_recorded = hr_sandbox_connect(s, &why) == 0 || why.code != HR_E_NO_SANDBOX;
	if (*ret_recorded && hr_sandbox_delete(s, err) != 0)
		return -1;
	/* these are remains of a call that was killed between its last steps */
	hr_record_remove(s);
	return hr_local_unlink(l->at.sockets, id, err) == 0
		   ? hr_local_remove_workspace(l->at.work, id, err)
		   : -1;
}

static int
local_stop(void *self, const char *id, struct hr_err *err)
{
	const struct local *l = self;
	bool recorded;

	if (end_recorded(l, id, &recorded, err) != 0)
		return -1;
	return recorded || !l->tells ? 0 : hr_local_end_stray(l->at.o, l->at.dir, id, err);
}

/* Sets the ports of work-1 and work-2 to those that the client names. The server of a sandbox at a
 * Unix socket reaches any port in the sandbox. */
static int
take_worker_ports(struct hr_fleet_row *row, struct hr_err *err)
{
	HR_PUT struct json_object *q = NULL;
	int i, port;

	if (hr_fleet_request_of(row, &q, err) != 0)
		return -1;
	for (i = 0; i < HR_WORKER_PORTS; i++) {
		if ((port = hr_command_worker_port(hr_json_at(q, "environment"), i)) > 0)
			row->app_ports[i] = port;
	}
	return 0;
}

static int
place(const struct local *l, struct hr_sandbox *s, struct hr_fleet_row *row, struct hr_err *err)
{
	const char *url = hr_sandbox_url(s), *key = hr_sandbox_session_api_key(s);

	if (s->endpoint.unix_socket != NULL) {
		if (l->at.sockets == NULL)
			return hr_err_set(err, HR_E_UNSUPPORTED,
			    "the service reaches sandboxes whose network has rules only as root, "
			    "and "
			    "with its own nginx");
		if (hr_local_link(l->at.sockets, row->id, s->endpoint.unix_socket, row->at,
			sizeof(row->at), err) < 0)
			return -1;
		if (l->copies)
			hr_local_link_direct(l->at.sockets, row->id, s->endpoint.url);
	} else if (url == NULL || strncmp(url, "http://", 7) != 0 ||
		   strlen(url + 7) >= sizeof(row->at) || strchr(url + 7, '/') != NULL) {
		return hr_err_set(err, HR_E_RUNTIME, "the new sandbox reported no address");
	} else {
		(void)snprintf(row->at, sizeof(row->at), "%s", url + 7);
	}
	if (key != NULL && strlen(key) >= sizeof(row->server_key))
		return hr_err_set(err, HR_E_RUNTIME, "a sandbox with a key that is too long");
	(void)snprintf(row->server_key, sizeof(row->server_key), "%s", key != NULL ? key : "");
	row->vscode_port = s->endpoint.vscode_port;
	memcpy(row->app_ports, s->endpoint.app_ports, sizeof(row->app_ports));
	return s->endpoint.unix_socket != NULL ? take_worker_ports(row, err) : 0;
}

static int
find_branch(const struct local *l, struct hr_fleet_row *row, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(l, row->id, err);

	if (s == NULL)
		return -1;
	return hr_sandbox_connect(s, err) == 0 ? place(l, s, row, err)
					       : hr_err_prefix(err, "the fork did not complete");
}

/* Starts a sandbox; a box has the files of an earlier one that is recorded. */
static int
start(const struct local *l, struct hr_fleet_row *row, struct hr_err *err)
{
	struct hr_sandbox_options o = {.sid = row->id,
	    .environ = hr_strv_list(&l->environ),
	    .headless = true,
	    .detach = true,
	    .state_dir = l->at.dir,
	    .log = say,
	    .log_arg = row->id};
	HR_PUT struct json_object *q = NULL;
	HR_CLEAN(hr_config_clean) struct hr_config *c = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv plugins = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	const char *user;

	if (hr_fleet_request_of(row, &q, err) != 0 ||
	    (c = hr_local_config(&l->at, row, q, err)) == NULL)
		return -1;
	user = hr_json_text_at(hr_json_at(q, "e2b"), "user");
	if (user != NULL) { /* the server makes the account */
		hr_strv_add_all(&env, o.environ);
		hr_strv_set_envf(&env, "RUNTIME_USERNAME=%s", user);
		o.environ = hr_strv_list(&env);
	}
	hr_fleet_request_plugins(q, &plugins);
	o.plugins = hr_strv_list(&plugins);
	if (plugins.failed || env.failed)
		return hr_err_nomem(err);
	s = hr_sandbox_open(c, &o, err);
	return s != NULL && hr_sandbox_connect(s, err) == 0 ? place(l, s, row, err) : -1;
}

static int
local_start(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	const struct local *l = self;
	HR_PUT struct json_object *q = NULL;
	bool recorded;

	if (hr_fleet_request_of(row, &q, NULL) == 0 && hr_json_at(q, "fork") != NULL)
		return find_branch(l, row, err); /* the fork has started it */
	return end_recorded(l, row->id, &recorded, err) == 0 ? start(l, row, err) : -1;
}

/* Sets up a warm sandbox as libhandrail sets up a fresh one. */
static int
local_claim(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	HR_PUT struct json_object *q = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;

	if (hr_fleet_request_of(row, &q, err) != 0)
		return -1;
	hr_fleet_request_env(q, &env);
	if (env.failed)
		return hr_err_nomem(err);
	s = open_one(self, row->id, err);
	return s != NULL && hr_sandbox_connect(s, err) == 0 &&
		       hr_sandbox_add_env(s, hr_strv_list(&env), err) == 0
		   ? place(self, s, row, err)
		   : -1;
}

static int
with_one(const struct local *l, const char *id,
    int (*what)(struct hr_sandbox *s, struct hr_err *err), struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(l, id, err);

	return s != NULL && hr_sandbox_connect(s, err) == 0 ? what(s, err) : -1;
}

/* Returns true for the error of a box that has ended, or whose end was interrupted. */
static bool
has_ended(const struct hr_err *why)
{
	return why->code == HR_E_DISCONNECTED || why->sys == ENOENT;
}

/* Pauses a box for a client of the E2B API. Without the memory its processes end. The rest of one
 * that has ended is paused in this way, too: a service that was killed meanwhile repeats the pause
 * as one with memory. `c` is the configuration of *l. */
static int
pause_box(const struct local *l, struct hr_config *c, const char *id, enum hr_fleet_pause how,
    struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	struct hr_err why = {0};
	bool runs;

	if (hr_config_set(c, "sandbox.keep_runtime_alive", "false", err) < 0 ||
	    (s = open_one(l, id, err)) == NULL)
		return -1;
	runs = hr_sandbox_connect(s, &why) == 0;
	if (!runs && !has_ended(&why))
		return hr_err_pass(err, &why);
	return runs && how == HR_PAUSE_MEMORY ? hr_sandbox_pause(s, err)
					      : s->ops->close(s->self, err);
}

static int
local_pause(void *self, const char *id, enum hr_fleet_pause how, struct hr_err *err)
{
	struct local as = *(const struct local *)self;
	struct hr_fleet_options o = *as.at.o;
	HR_CLEAN(hr_config_clean) struct hr_config *c = hr_config_copy(o.config, err);

	if (c == NULL)
		return -1;
	as.at.o = &o;
	o.config = c;
	if (as.copies && how != HR_PAUSE_USUAL)
		return pause_box(&as, c, id, how, err);
	/* containers alone heed this setting */
	if (how != HR_PAUSE_USUAL && hr_config_set(c, "sandbox.docker_pause_mode",
					 how == HR_PAUSE_FILES ? "stop" : "freeze", err) < 0)
		return -1;
	return with_one(&as, id, hr_sandbox_pause, err);
}

/* Leaves a running sandbox alone: resuming it would wait as for a fresh start. */
static int
resume(struct hr_sandbox *s, struct hr_err *err)
{
	return strcmp(hr_sandbox_state(s), "running") == 0 ? 0 : hr_sandbox_resume(s, err);
}

static int
local_network(void *self, const struct hr_fleet_row *row, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(self, row->id, err);

	return s != NULL && hr_sandbox_connect(s, err) == 0 ? hr_local_set_rules(s, row, err) : -1;
}

static int
local_resume(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	const struct local *l = self;
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(l, row->id, err);
	struct hr_err why = {0};

	if (s == NULL)
		return -1;
	if (hr_sandbox_connect(s, &why) != 0)
		/* a box that was paused without its memory, or before a reboot */
		return l->copies && has_ended(&why) && strstr(row->request, "\"e2b\":{") != NULL
			   ? start(l, row, err)
			   : hr_err_pass(err, &why);
	return hr_local_set_rules(s, row, err) == 0 && resume(s, err) == 0 ? place(l, s, row, err)
									   : -1;
}

static int
local_state(void *self, const char *id, char ret[32], struct hr_err *err)
{
	struct hr_err why = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(self, id, err);

	if (s == NULL)
		return -1;
	if (hr_sandbox_connect(s, &why) == 0)
		(void)snprintf(ret, 32, "%s", hr_sandbox_state(s));
	else if (s->elsewhere || why.code == HR_E_UNAVAILABLE)
		return hr_err_pass(err, &why);
	else
		(void)snprintf(ret, 32, "%s", why.code == HR_E_NO_SANDBOX ? "gone" : "exited");
	return strcmp(ret, "unknown") != 0
		   ? 0
		   : hr_err_set(err, HR_E_UNAVAILABLE, "no process answers that knows its state");
}

/* ---- all of them ---- */

static int
local_tidy(void *self, struct hr_err *err)
{
	const struct local *l = self;

	return hr_local_tidy(l->at.dir, l->at.work, l->at.sockets, err);
}

static int
local_list(void *self, hr_fleet_id_fn *fn, void *arg, struct hr_err *err)
{
	const struct local *l = self;
	struct hr_err why = {0};

	if (hr_local_list_recorded(l->at.dir, fn, arg, err) != 0)
		return -1;
	if (l->tells && hr_local_list_strays(l->at.o, l->at.dir, fn, arg, &why) != 0)
		hr_log(HR_LOG_WARNING, "cannot look for sandboxes without a record: %s", why.msg);
	return 0;
}

static int
local_watch(void *self, hr_fleet_news_fn *fn, void *arg, struct hr_err *err)
{
	const struct local *l = self;

	return hr_sandbox_events(l->at.o->config, l->at.dir, l->at.o->environ, -1, fn, arg, err);
}

static int
local_logs(void *self, const char *id, char **ret_text, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(self, id, err);

	return s != NULL ? hr_local_log(s, ret_text, err) : -1;
}

static int
local_network_log(void *self, const char *id, char **ret_text, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(self, id, err);

	return s != NULL ? hr_local_network_log(s, ret_text, err) : -1;
}

static int
local_copies(void *self, const char *what, const char *id, const char *args, char **ret_json,
    struct hr_err *err)
{
	const struct local *l = self;
	const struct hr_local_copies with = {
	    .o = l->at.o, .dir = l->at.dir, .environ = hr_strv_list(&l->environ)};

	return hr_local_copies(&with, what, id, args, ret_json, err);
}

static int
local_image(void *self, const char *name, char **ret_json, struct hr_err *err)
{
	return hr_local_image(((const struct local *)self)->at.o, name, ret_json, err);
}

static int
local_build(void *self, const char *id, struct hr_err *err)
{
	return hr_local_build(((const struct local *)self)->at.o, id, err);
}

static const struct hr_fleet_engine engine = {
    .start = local_start,
    .claim = local_claim,
    .pause = local_pause,
    .resume = local_resume,
    .stop = local_stop,
    .state = local_state,
    .tidy = local_tidy,
    .list = local_list,
    .watch = local_watch,
    .image = local_image,
    .logs = local_logs,
    .build = local_build,
    .network = local_network,
    .network_log = local_network_log,
    .copies = local_copies,
};

/* ---- the service's side ---- */

static struct hr_store *
local_open_store(const struct hr_fleet_options *o, bool make, struct hr_err *err)
{
	return hr_sqlite_open(o->dir, make, err);
}

static void
close_it(struct local *l)
{
	free(l->at.dir);
	free(l->at.work);
	free(l->at.sockets);
	hr_strv_done(&l->environ);
	memset(l, 0, sizeof(*l));
}

static void
own_environment(struct local *l)
{
	size_t i;

	hr_strv_add_all(&l->environ, l->at.o->environ);
	for (i = 0; i < HR_PROVIDERS; i++)
		hr_strv_unset_env(&l->environ, hr_token_names[i]);
}

/* Sandboxes on this machine's file system have their workspaces in the fleet's directory. */
static int
open_it(struct local *l, const struct hr_fleet_options *o, struct hr_err *err)
{
	struct hr_err why = {0};
	struct hr_kind kind;
	unsigned flags;
	bool sockets;
	int r = 0;

	memset(l, 0, sizeof(*l));
	l->at.o = o;
	own_environment(l);
	if (l->environ.failed) {
		close_it(l);
		return hr_err_nomem(err);
	}
	if (hr_kind_open(&kind, NULL, o->config, o->environ, NULL, &why) != 0)
		return hr_err_set(err, HR_E_INVAL, "%.200s", why.msg);
	flags = kind.ops->flags;
	l->tells = (flags & HR_KIND_OF_STATE) != 0;
	l->stays = kind.ops->pause == NULL;
	l->at.only = (flags & HR_KIND_SOCKET) != 0;
	l->copies = strcmp(kind.ops->name, "box") == 0;
	/* root alone enters the network of a container; its server has a socket then */
	sockets =
	    l->at.only || (kind.ops->network != NULL && hr_account_is_root() && !o->other_nginx);
	l->rules = sockets && hr_config_value(o->config, "sandbox.network") == NULL &&
		   (l->at.only || hr_local_may_have_rules(o->config));
	if (l->at.only && o->other_nginx)
		r = hr_err_set(err, HR_E_INVAL,
		    "--no-nginx: only the service's own nginx reaches sandboxes of the back-end "
		    "%s, which have Unix sockets and no ports",
		    kind.ops->name);
	hr_kind_close(&kind);
	if (r == 0)
		r = hr_text_setf(&l->at.dir, err, "%s/sandboxes", o->dir);
	if (r == 0 && (flags & HR_KIND_HERE) != 0)
		r = hr_text_setf(&l->at.work, err, "%s/work", o->dir);
	if (r == 0 && sockets)
		r = hr_text_setf(&l->at.sockets, err, "%s/" HR_FLEET_SOCKETS, o->dir);
	if (r != 0)
		close_it(l);
	return r;
}

static int
local_open_engine(const struct hr_fleet_options *o, const struct hr_fleet_engine **ret,
    void **ret_self, struct hr_err *err)
{
	static struct local self; /* static, because the threads use it until the process ends */
	static struct hr_fleet_helper helper = {.engine = &engine, .self = &self};
	static struct hr_fleet_engine here;

	if (open_it(&self, o, err) != 0)
		return -1;
	if (hr_fleet_directory(self.at.dir, err) != 0 ||
	    (self.at.work != NULL && hr_fleet_directory(self.at.work, err) != 0)) {
		close_it(&self);
		return -1;
	}
	self.rules = self.rules && hr_local_rules_hold(o);
	if (self.at.work != NULL)
		hr_log(HR_LOG_WARNING,
		    "the back-end %s isolates nothing: every client with a key runs commands "
		    "as this user, on this machine",
		    hr_config_text(o->config, "core.runtime"));
	helper.argv = o->argv;
	helper.argc = o->argc;
	here = hr_fleet_helper;
	here.stays = self.stays;
	here.rules = self.rules;
	if (!self.copies)
		here.copies = NULL;
	*ret = &here;
	*ret_self = &helper;
	return 0;
}

static int
local_check(const struct hr_fleet_options *o, struct hr_err *err)
{
	struct local l;

	if (open_it(&l, o, err) != 0)
		return -1;
	close_it(&l);
	return hr_sqlite_check(o->dir, err);
}

static int
local_call(const struct hr_fleet_options *o, const char *what, const char *id)
{
	struct hr_err err = {0};
	struct local self;
	int r;

	if (open_it(&self, o, &err) != 0) {
		(void)fprintf(stderr, "handrail-fleetd: %s\n", err.msg);
		return 1;
	}
	r = hr_fleet_helper_main(&engine, &self, what, id);
	close_it(&self);
	return r;
}

const struct hr_fleet_backing hr_fleet_local = {
    .name = "local",
    .open_store = local_open_store,
    .open_engine = local_open_engine,
    .check = local_check,
    .call = local_call,
};
