/* Implements the engine "kubernetes": each sandbox is one of libhandrail's with the back-end of
 * that name, "hrf-" and the id of its incarnation, and all its state is in the API server. So every
 * process that serves the fleet finds and continues another's work: two that start the same sandbox
 * both wait for the one pod. Nothing forks, so the calls run in the service's threads. */
#include "config.h"

#include "fleet/kubernetes/store.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/log.h"
#include "fleet/request.h"
#include "base/err.h"
#include "base/strv.h"
#include "host/config/settings.h"
#include "host/kubernetes/agents.h"
#include "host/kubernetes/kube.h"
#include "host/client/rest.h"
#include "host/handle.h"
#include "proto/json.h"

#define PREFIX "hrf-"
#define POD "openhands-runtime-" PREFIX
#define SID (sizeof(PREFIX) + HR_FLEET_ID)
#define PORT 8080
#define VSCODE_PORT 8081
#define APP_PORT1 30082
#define APP_PORT2 30083
#define AGAIN_MS 2000
#define LOG_LINES "100"
#define LOG_MAX (256u << 10)

struct engine {
	const struct hr_fleet_options *o;
	struct hr_config *config; /* configuration that all sandboxes share */
	char ns[64];
};

static void
say(void *arg, const char *text)
{
	(void)arg;
	hr_log(HR_LOG_DEBUG, "%s", text);
}

static void
sid_of(const char *id, char sid[SID])
{
	(void)snprintf(sid, SID, PREFIX "%.32s", id);
}

/* Returns the id in a sandbox's name, or NULL if it is not the fleet's. */
static const char *
id_of(const char *sid)
{
	return strncmp(sid, PREFIX, sizeof(PREFIX) - 1) == 0 &&
		       strspn(sid + sizeof(PREFIX) - 1, "0123456789abcdef") == HR_FLEET_ID - 1 &&
		       sid[sizeof(PREFIX) - 1 + HR_FLEET_ID - 1] == '\0'
		   ? sid + sizeof(PREFIX) - 1
		   : NULL;
}

/* ---- the request's settings ---- */

static struct hr_config *
config_of(const struct engine *e, const struct hr_fleet_row *row, struct json_object *q,
    struct hr_err *err)
{
	static const char *const users[][2] = {{"run_as_user", "sandbox.security.run_as_user"},
	    {"run_as_group", "sandbox.security.run_as_group"}};
	struct hr_config *c = hr_config_copy(e->config, err);
	const char *class = hr_json_text_at(q, "runtime_class");
	int r = c != NULL ? hr_fleet_request_set(q, e->o, row->factor, c, err) : -1;
	size_t i;

	/* clients of the original service ask for "sysbox-runc" without needing it */
	if (r == 0 && class != NULL && *class != '\0' && strcmp(class, "sysbox-runc") != 0)
		r = hr_config_set(c, "kubernetes.runtime_class", class, err);
	for (i = 0; r == 0 && i < sizeof(users) / sizeof(*users); i++)
		if (hr_json_typed_at(q, users[i][0], HR_PY_INT) != NULL)
			r = hr_fleet_set_number(
			    c, users[i][1], hr_json_int_at(q, users[i][0]), "", err);
	if (r != 0) {
		hr_config_free(c);
		c = NULL;
	}
	return c;
}

/* ---- one sandbox ---- */

static struct hr_sandbox *
open_one(const struct engine *e, const char *id, struct hr_err *err)
{
	struct hr_sandbox_options o = {.environ = e->o->environ,
	    .attach = true,
	    .headless = true,
	    .log = say,
	    .any_owner = true};
	char sid[SID];

	sid_of(id, sid);
	o.sid = sid;
	return hr_sandbox_open(e->config, &o, err);
}

/* Fills in the pod's address; the edge connects to it without a name look-up. */
static int
place(const struct engine *e, struct hr_fleet_row *row, struct hr_err *err)
{
	HR_PUT struct json_object *pod = NULL;
	HR_CLEAN(hr_kube_done) struct hr_kube kube = {.watch_fd = -1};
	char path[256];
	const char *ip;

	(void)snprintf(
	    path, sizeof(path), "/api/v1/namespaces/%s/pods/" POD "%.32s", e->ns, row->id);
	if (hr_kube_init(&kube, e->config, e->o->environ, 0, err) != 0 ||
	    hr_kube_call(&kube, HR_KUBE_GET, path, NULL, &pod, err) != 0)
		return -1;
	ip = hr_json_text_or(hr_json_at(pod, "status"), "podIP", "");
	if (*ip == '\0' || strlen(ip) + 8 >= sizeof(row->at))
		return hr_err_set(err, HR_E_RUNTIME, "the pod of the sandbox has no address");
	(void)snprintf(row->at, sizeof(row->at),
	    strchr(ip, ':') != NULL ? "[%.56s]:%d" : "%.56s:%d", ip, PORT);
	row->vscode_port = VSCODE_PORT;
	row->app_ports[0] = APP_PORT1;
	row->app_ports[1] = APP_PORT2;
	return 0;
}

static int
engine_stop(void *self, const char *id, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(self, id, err);

	return s != NULL ? hr_sandbox_delete(s, err) : -1;
}

/* Removes a sandbox's pod: files survive a pod that was evicted, deleted or killed, since they are
 * in the claim. */
static int
engine_clear(void *self, const char *id, bool (*sure)(void *arg), void *arg, struct hr_err *err)
{
	const struct engine *e = self;
	HR_CLEAN(hr_config_clean) struct hr_config *c = hr_config_copy(e->config, err);
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	struct engine with = *e;

	if (c == NULL || hr_config_set(c, "sandbox.keep_runtime_alive", "false", err) != 0)
		return -1;
	with.config = c;
	s = open_one(&with, id, err);
	if (s == NULL)
		return -1;
	s->host.as_seen = true;
	if (strcmp(hr_sandbox_state(s), "unknown") == 0)
		return hr_err_set(err, HR_E_UNAVAILABLE, "the API server does not answer");
	return sure(arg) ? s->ops->close(s->self, err) : 0;
}

static int
engine_start(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	const struct engine *e = self;
	/* the fleet owns a sandbox, whichever replica created it */
	struct hr_sandbox_options o = {
	    .headless = true, .detach = true, .log = say, .any_owner = true};
	HR_PUT struct json_object *q = NULL;
	HR_CLEAN(hr_config_clean) struct hr_config *c = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv plugins = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv environ = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	char sid[SID];

	/* this was a warm sandbox that could not take the request */
	if (row->state == HR_FLEET_STARTING && row->at[0] != '\0' &&
	    engine_stop(self, row->id, err) != 0)
		return -1;
	sid_of(row->id, sid);
	o.sid = sid;
	if (hr_fleet_request_of(row, &q, err) != 0)
		return -1;
	c = config_of(e, row, q, err);
	if (c == NULL)
		return -1;
	hr_fleet_request_plugins(q, &plugins);
	hr_fleet_request_env(q, &env);
	hr_strv_add_all(&environ, e->o->environ);
	/* the key is the row's: every process that creates the sandbox must give it the same one */
	hr_strv_unset_env(&environ, "SESSION_API_KEY");
	hr_strv_addf(&environ, "SESSION_API_KEY=%s", row->server_key);
	o.plugins = hr_strv_list(&plugins);
	o.environ = hr_strv_list(&environ);
	o.env = hr_strv_list(&env);
	if (plugins.failed || environ.failed || env.failed)
		return hr_err_nomem(err);
	s = hr_sandbox_open(c, &o, err);
	return s != NULL && hr_sandbox_connect(s, err) == 0 ? place(e, row, err) : -1;
}

static int
engine_claim(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	HR_PUT struct json_object *q = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;

	if (hr_fleet_request_of(row, &q, err) != 0)
		return -1;
	hr_fleet_request_env(q, &env);
	if (env.failed)
		return hr_err_nomem(err);
	if (env.n == 0)
		return 0;
	s = open_one(self, row->id, err);
	return s != NULL && hr_sandbox_connect(s, err) == 0
		   ? hr_sandbox_add_env(s, hr_strv_list(&env), err)
		   : -1;
}

static int
engine_state(void *self, const char *id, char ret[32], struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(self, id, err);
	const char *state;
	int r = 0;

	if (s == NULL)
		return -1;
	state = hr_sandbox_state(s);
	if (strcmp(state, "unknown") == 0)
		r = hr_err_set(err, HR_E_UNAVAILABLE, "the API server does not answer");
	/* a pod that replaces one on a lost node will run */
	(void)snprintf(ret, 32, "%s", strcmp(state, "created") == 0 ? "running" : state);
	return r;
}

static int
engine_pause(void *self, const char *id, enum hr_fleet_pause how, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(self, id, err);

	(void)how; /* a pod has one way */
	return s != NULL ? hr_sandbox_pause(s, err) : -1;
}

static int
engine_resume(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(self, row->id, err);

	return s != NULL && hr_sandbox_resume(s, err) == 0 ? place(self, row, err) : -1;
}

/* ---- all of them ---- */

struct each {
	hr_fleet_id_fn *fn;
	void *arg;
};

static int
on_claim(void *arg, struct json_object *o)
{
	const char *id = id_of(hr_kube_label(o, "session", ""));
	const struct each *x = arg;

	if (id != NULL)
		x->fn(x->arg, id);
	return 0;
}

/* Lists the claims, which are created first and deleted last. */
static int
engine_list(void *self, hr_fleet_id_fn *fn, void *arg, struct hr_err *err)
{
	const struct engine *e = self;
	struct each x = {fn, arg};
	HR_CLEAN(hr_kube_done) struct hr_kube kube = {.watch_fd = -1};
	char path[256];

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/persistentvolumeclaims", e->ns);
	if (hr_kube_init(&kube, e->config, e->o->environ, 0, err) != 0)
		return -1;
	return hr_kube_list(
	    &kube, path, "labelSelector=app%3Dopenhands-runtime", on_claim, &x, NULL, 0, err);
}

struct news {
	hr_fleet_news_fn *fn;
	void *arg;
};

static int
on_news(void *arg, const char *sid, const char *what, const char *detail)
{
	const struct news *n = arg;
	const char *id = id_of(sid);

	return id != NULL ? n->fn(n->arg, id, what, detail) : 0;
}

/* Watches all sandboxes with one watch. */
static int
engine_watch(void *self, hr_fleet_news_fn *fn, void *arg, struct hr_err *err)
{
	static const char none[HR_FLEET_ID] = "00000000000000000000000000000000";
	struct news n = {fn, arg};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = open_one(self, none, err);

	if (s == NULL)
		return -1;
	while (s->ops->events(s->self, on_news, &n, err) != 0) {
		hr_log(HR_LOG_WARNING, "sandboxes cannot be watched: %.600s", err->msg);
		(void)hr_rest_wait(-1, AGAIN_MS);
	}
	return 0;
}

static int
engine_image(void *self, const char *name, char **ret_json, struct hr_err *err)
{
	(void)self;
	(void)ret_json;
	return hr_err_set(err, HR_E_RUNTIME,
	    "only the cluster's nodes can check the image \"%.200s\": they ask its registry when a "
	    "sandbox starts",
	    name);
}

/* Keeps the newest lines, and of a long one its end: a sandbox prints what it likes. */
static int
on_line(void *arg, const char *line, size_t len)
{
	const size_t most = len < HR_FLEET_LOGS / 2 ? len : HR_FLEET_LOGS / 2;
	struct hr_buf *b = arg;

	if (b->len + most >= LOG_MAX)
		hr_buf_drop_front(b, b->len - HR_FLEET_LOGS);
	hr_buf_add(b, line + len - most, most);
	hr_buf_addc(b, '\n');
	return 0;
}

static int
engine_logs(void *self, const char *id, char **ret_text, struct hr_err *err)
{
	const struct engine *e = self;
	HR_CLEAN(hr_kube_done) struct hr_kube kube = {.watch_fd = -1};
	HR_BUF(b, LOG_MAX);
	char path[256], *end;
	int r;

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/" POD "%.32s", e->ns, id);
	if (hr_kube_init(&kube, e->config, e->o->environ, 0, err) != 0)
		return -1;
	r = hr_kube_logs(&kube, path, false, "&tailLines=" LOG_LINES, on_line, &b, err);
	/* keep whole lines at the end */
	if (b.len > HR_FLEET_LOGS) {
		hr_buf_drop_front(&b, b.len - HR_FLEET_LOGS);
		end = memchr(b.p, '\n', b.len);
		hr_buf_drop_front(&b, end != NULL ? (size_t)(end - b.p) + 1 : 0);
	}
	if (r == 0 || kube.status.code == 404) {
		*ret_text = b.len > 0 ? hr_buf_take(&b) : strdup("");
		r = *ret_text != NULL ? 0 : hr_err_nomem(err);
	}
	return r;
}

static const struct hr_fleet_engine engine = {
    .start = engine_start,
    .claim = engine_claim,
    .pause = engine_pause,
    .resume = engine_resume,
    .stop = engine_stop,
    .clear = engine_clear,
    .state = engine_state,
    .list = engine_list,
    .watch = engine_watch,
    .image = engine_image,
    .logs = engine_logs,
};

/* ---- the backing ---- */

/* Chooses sandboxes of agent-sandbox if the cluster has them, unless the settings decide; checked
 * once. */
static int
choose_agents(struct engine *e, struct hr_err *err)
{
	const char *how = hr_config_text(e->config, "kubernetes.agent_sandbox");
	char version[HR_AGENTS_VERSION];
	HR_CLEAN(hr_kube_done) struct hr_kube kube = {.watch_fd = -1};
	bool may = true;
	int r;

	if (how != NULL && *how != '\0' && strcmp(how, "auto") != 0)
		return 0;
	if (hr_kube_init(&kube, e->config, e->o->environ, 0, err) != 0)
		return -1;
	r = hr_agents_find(&kube, e->ns, version, &may, err);
	if (r == 1)
		hr_log(may ? HR_LOG_INFO : HR_LOG_WARNING,
		    may ? "the cluster serves " HR_AGENTS_GROUP
			  "/%s: sandboxes are made of its objects"
			: "the cluster serves " HR_AGENTS_GROUP
			  "/%s, but this account has no right to create "
			  "sandboxes of it: pods are made without",
		    version);
	return r < 0 ? -1
		     : hr_config_set(e->config, "kubernetes.agent_sandbox",
			   r == 1 && may ? version : "never", err);
}

static int
open_engine(const struct hr_fleet_options *o, const struct hr_fleet_engine **ret, void **ret_self,
    struct hr_err *err)
{
	static struct engine self; /* static, because the threads use it until the process ends */
	const char *ns = hr_config_text(o->config, "kubernetes.namespace");
	struct hr_err why = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;

	self.o = o;
	(void)snprintf(self.ns, sizeof(self.ns), "%s", ns != NULL ? ns : "");
	self.config = hr_config_copy(o->config, &why);
	/* the edge routes to the pods directly */
	if (self.config == NULL ||
	    hr_config_set(self.config, "core.runtime", "kubernetes", &why) != 0 ||
	    hr_config_set(self.config, "kubernetes.ingress", "false", &why) != 0 ||
	    (strcmp(hr_config_text(o->config, "kubernetes.access"), "auto") == 0 &&
		hr_config_set(self.config, "kubernetes.access", "pod", &why) != 0))
		return hr_err_set(err, HR_E_INVAL, "%.220s", why.msg);
	if (choose_agents(&self, &why) != 0)
		return hr_err_set(err, HR_E_UNAVAILABLE, "%.220s", why.msg);
	/* reports faulty settings now */
	s = open_one(&self, "00000000000000000000000000000000", &why);
	if (s == NULL)
		return hr_err_set(err, HR_E_INVAL, "%.220s", why.msg);
	*ret = &engine;
	*ret_self = &self;
	return 0;
}

static struct hr_store *
open_store(const struct hr_fleet_options *o, bool make, struct hr_err *err)
{
	(void)make; /* the store exists wherever there is an API server */
	return hr_kube_store_open(o, err);
}

static int
check(const struct hr_fleet_options *o, struct hr_err *err)
{
	struct hr_store *s = hr_kube_store_open(o, err);
	const struct hr_fleet_engine *e;
	void *self;

	if (s == NULL)
		return -1;
	hr_store_close(s);
	return open_engine(o, &e, &self, err);
}

const struct hr_fleet_backing hr_fleet_kubernetes = {
    .name = "kubernetes",
    .open_store = open_store,
    .open_engine = open_engine,
    .check = check,
};
