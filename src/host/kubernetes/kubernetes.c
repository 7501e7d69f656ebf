/* Implements the back-end "kubernetes": a pod, its claim, its services (doc/kubernetes.md). A
 * paused sandbox has no pod, and its claim says how to make it again. */
#include "config.h"

#include "host/kubernetes/kubernetes_int.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/text/text.h"
#include "host/common/recordtext.h"
#include "host/kubernetes/rules.h"
#include "host/kubernetes/why.h"
#include "proto/json.h"

#define PREFIX "openhands-runtime-"
/* maximum, since "openhands-runtime-SID-svc-code" may have 63 characters */
#define SID_MAX 36
#define STATE_PATIENCE_MS 3000

static void
kubernetes_free(void *self)
{
	struct hr_kubernetes *d = self;

	hr_forward_drop(&d->forward);
	hr_kube_done(&d->kube);
	free(d->name);
	free(d->ns);
	free(d->key);
	free(d->url);
	free(d);
}

/* Checks a Kubernetes name: DNS allows no capitals and no underscores. */
static bool
name_valid(const char *text, size_t most)
{
	size_t n = strlen(text);
	size_t i;

	if (n == 0 || n > most || text[0] == '-' || text[n - 1] == '-')
		return false;
	for (i = 0; i < n; i++)
		if (!islower((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) &&
		    text[i] != '-')
			return false;
	return true;
}

static int
set_name(struct hr_kubernetes *d, const char *ns, const char *name, struct hr_err *err)
{
	char *n = strdup(name), *s = strdup(ns), *u = NULL;

	if (asprintf(&u, "http://%s-svc.%s.svc.cluster.local:%d", name, ns, HR_KUBERNETES_PORT) < 0)
		u = NULL;
	if (n == NULL || s == NULL || u == NULL) {
		free(n);
		free(s);
		free(u);
		return hr_err_nomem(err);
	}
	free(d->name);
	free(d->ns);
	free(d->url);
	d->name = n;
	d->ns = s;
	d->url = u;
	return 0;
}

static int
set_own_name(struct hr_kubernetes *d, struct hr_err *err)
{
	char name[sizeof(PREFIX) + SID_MAX];

	(void)snprintf(name, sizeof(name), PREFIX "%s", d->h->sid);
	return set_name(d, hr_config_text(d->h->config, "kubernetes.namespace"), name, err);
}

static int
kubernetes_open(const struct hr_backend_host *h, void **ret_self, struct hr_err *err)
{
	const char *ns = hr_config_text(h->config, "kubernetes.namespace");
	struct hr_kubernetes *d;

	if (!name_valid(h->sid, SID_MAX))
		return hr_err_set(err, HR_E_INVAL,
		    "invalid pod name \"%s\": use at most %d of a-z, 0-9 and '-', and no '-' at "
		    "the start or end",
		    h->sid, SID_MAX);
	if (ns == NULL || !name_valid(ns, 63))
		return hr_err_set(err, HR_E_INVAL, "Invalid value for kubernetes.namespace: %s",
		    ns != NULL ? ns : "");
	if (!h->attach && hr_kubernetes_check_rules(h, err) < 0)
		return -1;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return hr_err_nomem(err);
	d->h = h;
	if (set_own_name(d, err) != 0) {
		kubernetes_free(d);
		return -1;
	}
	*ret_self = d;
	return 0;
}

static void
kubernetes_endpoint(void *self, struct hr_endpoint *ret)
{
	struct hr_kubernetes *d = self;

	ret->url = d->url;
	ret->key = d->key;
	if (d->forward != NULL)
		ret->unix_socket = hr_forward_socket(d->forward);
	ret->vscode_port = HR_KUBERNETES_VSCODE_PORT;
	ret->app_ports[0] = HR_KUBERNETES_APP_PORT1;
	ret->app_ports[1] = HR_KUBERNETES_APP_PORT2;
}

/* ---- finding ---- */

static int
on_taken(void *arg, struct json_object *o)
{
	char **name = arg;
	const char *text = hr_json_text_at(hr_json_at(o, "metadata"), "name");

	free(*name);
	*name = text != NULL ? strdup(text) : NULL;
	return 1;
}

/* Finds a sandbox from the pool, whose name differs. Returns 1, 0 if there is none, or -1: a
 * question without an answer must not become a second sandbox. */
static int
find_taken(struct hr_kubernetes *d, struct hr_err *err)
{
	char path[512], selector[128];
	HR_FREE char *name = NULL;
	int r = 0;

	hr_kubernetes_path(d, HR_POD, false, path);
	(void)snprintf(
	    selector, sizeof(selector), "labelSelector=handrail%%2Fsandbox%%3D%s", d->h->sid);
	if (hr_kube_list(&d->kube, path, selector, on_taken, &name, NULL, 0, err) != 0)
		r = -1;
	else if (name != NULL && name_valid(name, sizeof(PREFIX) + SID_MAX))
		r = set_name(d, d->ns, name, err) == 0 ? 1 : -1;
	return r;
}

/* Returns 1 for a usable pod of the name; 0 if there is none, after deleting one that has ended. */
static int
find(struct hr_kubernetes *d, struct hr_err *err)
{
	HR_PUT struct json_object *pod = NULL;
	struct hr_kube_why why;
	char uid[HR_KUBERNETES_UID];
	int r = hr_kubernetes_get(d, HR_POD, &pod, err);

	if (r == 0 && (r = find_taken(d, err)) == 1)
		r = hr_kubernetes_get(d, HR_POD, &pod, err);
	if (r <= 0)
		return r;
	if (hr_kubernetes_check_owner(d, pod, err) != 0)
		return -1;
	hr_kube_why(&why, pod);
	hr_kubernetes_uid(pod, uid);
	if (why.progress == HR_KUBE_FAILED || why.progress == HR_KUBE_ENDING) {
		if (d->h->attach)
			r = hr_err_set(err, HR_E_DISCONNECTED, "Pod %s: %s", d->name, why.text);
		else
			r = hr_kubernetes_end_pod(d, uid, err) == 0 ? 0 : -1;
	} else if ((why.progress != HR_KUBE_READY && hr_kubernetes_wait_ready(d, err) != 0) ||
		   (!d->h->attach && hr_kubernetes_replaced(pod) &&
		       hr_kubernetes_mark(d, err) != 0) ||
		   hr_kubernetes_read_key(d, err) != 0) {
		r = -1;
	}
	return r;
}

static int
kubernetes_connect(void *self, enum hr_connected *ret, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	struct hr_err e = {0};
	bool was = false;
	int r;

	*ret = HR_SANDBOX_FOUND;
	r = hr_kubernetes_open_kube(d, err) == 0 ? find(d, err) : -1;
	if (r < 0)
		return -1;
	if (r == 0 && d->h->attach)
		return hr_err_set(err, HR_E_DISCONNECTED, "Pod %s not found.", d->name);
	/* a paused sandbox resumes in its former form */
	if (r == 0 && hr_kubernetes_resume(d, &was, &e) == 0) {
		*ret = HR_SANDBOX_RESUMED;
	} else if (r == 0) {
		if (was)
			return hr_err_pass(err, &e);
		if (hr_kubernetes_make(d, ret, err) != 0)
			return -1;
	}
	if (hr_kubernetes_reach(d, false, err) == 0)
		return 0;
	hr_kubernetes_take_back(d);
	return -1;
}

/* Keeps an older claim, with the files in it. */
static int
kubernetes_undo(void *self, struct hr_err *err)
{
	struct hr_kubernetes *d = self;

	(void)err;
	hr_forward_drop(&d->forward);
	hr_kubernetes_take_back(d);
	return 0;
}

/* ---- records ---- */

#define CA_TEXT 17

/* Writes a hash of the CA certificates for the API server, or "" if none are named. */
static void
write_ca(const struct hr_kube_login *l, char text[CA_TEXT])
{
	text[0] = '\0';
	if (l->ca != NULL)
		(void)snprintf(
		    text, CA_TEXT, "%016" PRIx64, hr_hash(HR_HASH, l->ca, strlen(l->ca)));
}

static char *
kubernetes_record(void *self, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	char ca[CA_TEXT];
	HR_BUF(b, 1 << 16);

	if (hr_kubernetes_open_kube(d, NULL) == 0) {
		write_ca(&d->kube.login, ca);
		hr_record_put_text(&b, "cluster", d->kube.login.server);
		hr_record_put_text(&b, "ca", ca);
	}

	hr_record_put_text(&b, "name", d->name);
	hr_record_put_text(&b, "namespace", d->ns);
	hr_record_put_text(&b, "url", d->url);
	hr_record_put_text(&b, "key", d->key);
	return hr_record_take(&b, err);
}

/* Refuses another cluster, whose pod of that name says nothing about this sandbox. A cluster may
 * have several addresses, but not several authorities. */
static int
check_cluster(struct hr_kubernetes *d, struct json_object *record, struct hr_err *err)
{
	const char *server = hr_json_text_at(record, "cluster");
	const char *was = hr_json_text_or(record, "ca", "");
	char ca[CA_TEXT];

	/* each call fails with the reason if there are no credentials */
	if (server == NULL || hr_kubernetes_open_kube(d, NULL) != 0 ||
	    strcmp(server, d->kube.login.server) == 0)
		return 0;
	write_ca(&d->kube.login, ca);
	if (*was != '\0' && strcmp(was, ca) == 0)
		return 0;
	return hr_err_set(err, HR_E_UNSUPPORTED,
	    "sandbox \"%s\" is in the cluster of %.300s, and %.200s names %.300s: choose the first "
	    "one with KUBECONFIG or kubernetes.context, or another name with -n",
	    d->h->sid, server, d->kube.login.from, d->kube.login.server);
}

static int
load(struct hr_kubernetes *d, const char *record, struct hr_err *err)
{
	const char *name, *ns, *key;
	HR_PUT struct json_object *o = NULL;
	int r;

	if (hr_json_decode(record, strlen(record), &o, NULL) != 0)
		o = NULL;
	name = hr_json_text_or(o, "name", "");
	ns = hr_json_text_or(o, "namespace", "");
	key = hr_json_text_at(o, "key");
	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 ||
	    !name_valid(name, sizeof(PREFIX) + SID_MAX) || !name_valid(ns, 63))
		r = hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
	else
		r = check_cluster(d, o, err) == 0 ? set_name(d, ns, name, err) : -1;
	if (r == 0 && key != NULL)
		r = hr_text_set(&d->key, key, err);
	return r;
}

static int
kubernetes_restore(void *self, const char *record, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	bool was;
	int r;

	if (load(d, record, err) != 0)
		return -1;
	d->own = true;
	if (d->h->attach)
		return hr_kubernetes_reach(d, false, err);
	/* the caller needs the sandbox running: resume it */
	r = find(d, err);
	if (r == 0)
		r = hr_kubernetes_resume(d, &was, err) == 0 ? 1 : -1;
	return r == 1 ? hr_kubernetes_reach(d, false, err) : -1;
}

/* ---- pools ---- */

/* Writes the label of the sandbox that takes the pod. If the answers were lost, the pod decides. */
static int
label(struct hr_kubernetes *d, struct json_object **ret, struct hr_err *err)
{
	struct hr_err why = {0};
	char path[512], body[512];

	hr_kubernetes_path(d, HR_POD, true, path);
	(void)snprintf(body, sizeof(body),
	    "{\"metadata\":{\"labels\":{\"" HR_KUBERNETES_TAKEN "\":\"%s\"}}}", d->h->sid);
	if (hr_kube_call(&d->kube, HR_KUBE_MERGE, path, body, ret, &why) == 0)
		return 0;
	if (d->kube.status.code == 0 &&
	    hr_kube_call(&d->kube, HR_KUBE_GET, path, NULL, ret, NULL) == 0 &&
	    strcmp(hr_kube_label(*ret, HR_KUBERNETES_TAKEN, ""), d->h->sid) == 0)
		return 0;
	return hr_err_pass(err, &why);
}

/* Opens the connection to the pod while its label is written. */
static int
take(struct hr_kubernetes *d, const char *record, struct hr_err *err)
{
	HR_PUT struct json_object *pod = NULL;
	struct hr_kube_why why;

	if (load(d, record, err) != 0 || hr_kubernetes_reach(d, true, err) != 0 ||
	    label(d, &pod, err) != 0)
		return -1;
	hr_kube_why(&why, pod);
	return why.progress == HR_KUBE_READY || why.progress == HR_KUBE_RUNNING
		   ? 0
		   : hr_err_set(err, HR_E_DISCONNECTED, "Pod %s: %s", d->name,
			 why.text[0] != '\0' ? why.text : "it does not run");
}

/* Takes over a waiting sandbox. If this fails, the handle has its own name again, by which another
 * sandbox is taken or made. */
static int
kubernetes_adopt(void *self, const char *sid, const char *record, struct hr_err *err)
{
	struct hr_kubernetes *d = self;

	(void)sid; /* the record names the sandbox */
	if (take(d, record, err) == 0)
		return 0;
	hr_forward_drop(&d->forward);
	free(d->key);
	d->key = NULL;
	(void)set_own_name(d, NULL);
	return -1;
}

/* ---- life ---- */

static const char *
kubernetes_state(void *self)
{
	struct hr_kubernetes *d = self;
	HR_PUT struct json_object *o = NULL;
	const char *state = "unknown";
	HR_CLEAN(hr_kube_done) struct hr_kube kube = {0};
	struct hr_kube_why why;
	struct hr_err e = {0};
	char path[512], text[700];

	/* a list must not wait for a minute */
	if (hr_kube_init(&kube, d->h->config, d->h->environ, STATE_PATIENCE_MS, &e) != 0) {
		d->h->log(d->h->arg, e.msg);
		return state;
	}
	hr_kubernetes_path(d, HR_POD, true, path);
	d->seen = false;
	d->seen_owner[0] = '\0';
	if (hr_kube_call(&kube, HR_KUBE_GET, path, NULL, &o, &e) == 0) {
		d->seen = true;
		hr_kubernetes_uid(o, d->seen_pod);
		(void)hr_kubernetes_owner(o, d->seen_owner);
		hr_kube_why(&why, o);
		if (why.progress == HR_KUBE_READY || why.progress == HR_KUBE_RUNNING)
			state = hr_kubernetes_replaced(o) ? "exited" : "running";
		else
			state = why.progress == HR_KUBE_FAILED || why.progress == HR_KUBE_ENDING
				    ? "exited"
				    : "created";
	} else if (kube.status.code == 404 &&
		   (!d->h->as_seen || hr_kubernetes_find_owner(d, d->seen_owner, &e) == 0)) {
		d->seen = true;
		d->seen_pod[0] = '\0';
		hr_kubernetes_path(d, HR_CLAIM, true, path);
		if (hr_kube_call(&kube, HR_KUBE_GET, path, NULL, &o, &e) == 0)
			state = *hr_kubernetes_paused(o) != '\0' ? "paused" : "gone";
		else if (kube.status.code == 404)
			state = "gone";
	}
	if (strcmp(state, "unknown") == 0) {
		(void)snprintf(text, sizeof(text), "the state of %.100s: %.500s", d->name, e.msg);
		d->h->log(d->h->arg, text);
	}
	return state;
}

static int
kubernetes_pause(void *self, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	int r = hr_kubernetes_pause(d, err);

	/* not found means that the sandbox may have been paused before */
	if (r == 0 && strcmp(kubernetes_state(d), "paused") != 0)
		return hr_err_set(err, HR_E_NO_SANDBOX, "Pod %s not found.", d->name);
	return r < 0 ? -1 : 0;
}

static int
kubernetes_resume(void *self, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	HR_PUT struct json_object *pod = NULL;
	struct hr_kube_why why = {.progress = HR_KUBE_FAILED};
	bool was, other;
	int r = hr_kubernetes_get(d, HR_POD, &pod, err);

	if (r < 0)
		return -1;
	if (r == 1)
		hr_kube_why(&why, pod);
	other = hr_kubernetes_replaced(pod);
	/* another process pauses the sandbox: the claim already says what to make again */
	if (r == 1 && why.progress == HR_KUBE_ENDING) {
		if (hr_kubernetes_wait_gone(d, HR_POD, "", err) != 0)
			return -1;
		r = 0;
	}
	if (r == 1 && why.progress != HR_KUBE_FAILED) {
		if (why.progress != HR_KUBE_READY && hr_kubernetes_wait_ready(d, err) != 0)
			return -1;
		return other ? hr_kubernetes_mark(d, err) : 0;
	}
	if (r == 1)
		return hr_err_set(err, HR_E_DISCONNECTED,
		    "Pod %s: %s; \"handrail up\" makes a new one", d->name, why.text);
	return hr_kubernetes_resume(d, &was, err) == 0 ? hr_kubernetes_reach(d, false, err) : -1;
}

static int
kubernetes_close(void *self, struct hr_err *err)
{
	struct hr_kubernetes *d = self;

	hr_forward_drop(&d->forward);
	if (hr_config_bool(d->h->config, "sandbox.keep_runtime_alive"))
		return 0;
	return hr_kubernetes_end(d, false, err);
}

static int
kubernetes_destroy(void *self, struct hr_err *err)
{
	struct hr_kubernetes *d = self;

	hr_forward_drop(&d->forward);
	return hr_kubernetes_end(d, true, err);
}

static int
kubernetes_logs(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	char path[512];
	int r;

	if (hr_kubernetes_open_kube(d, err) != 0)
		return -1;
	hr_kubernetes_path(d, HR_POD, true, path);
	hr_kube_give_up(&d->kube, d->h->stop_fd);
	r = hr_kube_logs(&d->kube, path, follow, "", fn, arg, err);
	hr_kube_give_up(&d->kube, -1);
	return hr_fd_is_readable(d->h->stop_fd) ? 0 : r;
}

static int
kubernetes_exec(void *self, const char *const *argv, int *ret_status, struct hr_err *err)
{
	struct hr_kubernetes *d = self;

	return hr_kubernetes_open_kube(d, err) == 0 ? hr_kubernetes_exec(d, argv, ret_status, err)
						    : -1;
}

/* ---- addresses for people ---- */

static int
kubernetes_vscode_url(void *self, char **ret, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	const char *tls = hr_config_text(d->h->config, "kubernetes.ingress_tls_secret");

	*ret = NULL;
	if (!hr_config_bool(d->h->config, "kubernetes.ingress"))
		return 0;
	if (hr_text_setf(ret, err, "%s://%s.%s/", tls != NULL && *tls != '\0' ? "https" : "http",
		d->name + sizeof(PREFIX) - 1,
		hr_config_text(d->h->config, "kubernetes.ingress_domain")) != 0)
		return -1;
	return 0;
}

static int
kubernetes_web_hosts(void *self, char **ret_json, struct hr_err *err)
{
	struct hr_kubernetes *d = self;

	*ret_json = NULL;
	return hr_text_setf(ret_json, err,
	    "{\"http://%s-svc.%s.svc.cluster.local:%d\":%d,"
	    "\"http://%s-svc.%s.svc.cluster.local:%d\":%d}",
	    d->name, d->ns, HR_KUBERNETES_APP_PORT1, HR_KUBERNETES_APP_PORT1, d->name, d->ns,
	    HR_KUBERNETES_APP_PORT2, HR_KUBERNETES_APP_PORT2);
}

static const char *const heeds[] = {"sandbox.limits.profile", "sandbox.limits.cpu_period",
    "sandbox.limits.cpu_quota", "sandbox.limits.mem_limit", "sandbox.limits.max_memory_gb",
    "sandbox.security.run_as_user", "sandbox.security.run_as_group",
    "sandbox.security.readonly_root_fs", "sandbox.security.no_new_privileges",
    "sandbox.security.cap_drop", "sandbox.security.cap_add", "sandbox.security.network_mode=egress",
    "sandbox.network",
    /* the back-end reports these settings itself */
    "sandbox.additional_networks", "sandbox.docker_runtime_kwargs", NULL};

static const struct hr_sandbox_ops kubernetes_ops = {
    .abi = HR_BACKEND_ABI,
    .name = "kubernetes",
    .flags = HR_KIND_FINDS | HR_KIND_STOPS,
    .log_prefix = "[inside pod] ",
    .heeds = heeds,
    .open = kubernetes_open,
    .free = kubernetes_free,
    .connect = kubernetes_connect,
    .undo = kubernetes_undo,
    .endpoint = kubernetes_endpoint,
    .failed = hr_kubernetes_failed,
    .record = kubernetes_record,
    .restore = kubernetes_restore,
    .state = kubernetes_state,
    .pause = kubernetes_pause,
    .resume = kubernetes_resume,
    .close = kubernetes_close,
    .destroy = kubernetes_destroy,
    .logs = kubernetes_logs,
    .exec = kubernetes_exec,
    .adopt = kubernetes_adopt,
    .vscode_url = kubernetes_vscode_url,
    .web_hosts = kubernetes_web_hosts,
    .events = hr_kubernetes_events,
    .doctor = hr_kubernetes_doctor,
};

const struct hr_sandbox_ops *
hr_backend_entry(unsigned abi)
{
	return abi == HR_BACKEND_ABI ? &kubernetes_ops : NULL;
}
