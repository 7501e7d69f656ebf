/* Checks a cluster. A missing right to check is reported as such, and is no fault. */
#include "config.h"

#include "host/kubernetes/kubernetes_int.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/err.h"
#include "host/common/exam.h"
#include "host/config/settings.h"
#include "host/kubernetes/quantity.h"
#include "host/kubernetes/why.h"
#include "proto/json.h"

#define PATIENCE_MS 5000

struct exam {
	struct hr_kube kube; /* a connection that has a short time limit */
	const struct hr_kubernetes *d;
	const struct hr_config *c;
	hr_finding_fn *fn;
	void *arg;
};

static const char *
setting(const struct exam *x, const char *name)
{
	const char *text = hr_config_text(x->c, name);

	return text != NULL && *text != '\0' ? text : NULL;
}

/* ---- rights ---- */

static const struct right {
	const char *group, *resource, *sub, *verbs;
	/* unless: a value of `setting` that makes the right unnecessary */
	const char *setting, *unless;
} rights[] = {
    {"", "pods", "", "create get list watch patch delete", NULL, NULL},
    {"", "pods", "log", "get", NULL, NULL},
    {"", "pods", "exec", "get create", NULL, NULL},
    {"", "pods", "portforward", "get create", "kubernetes.access", "service"},
    {"", "persistentvolumeclaims", "", "create get list watch patch delete", NULL, NULL},
    {"", "secrets", "", "create get patch delete", NULL, NULL},
    {"", "services", "", "create get delete", NULL, NULL},
    {"", "events", "", "list", NULL, NULL},
    {"networking.k8s.io", "ingresses", "", "create get delete", "kubernetes.ingress", "false"},
    {"networking.k8s.io", "networkpolicies", "", "create patch delete", "kubernetes.network_policy",
	"none"},
};

static bool
is_needed(const struct exam *x, const struct right *right)
{
	const char *text;

	if (right->setting == NULL)
		return true;
	if (strcmp(right->unless, "false") == 0)
		return hr_config_bool(x->c, right->setting);
	text = setting(x, right->setting);
	return text != NULL && strcmp(text, right->unless) != 0;
}

static int
one_right(struct exam *x, const struct right *right, struct hr_err *err)
{
	char missing[128] = "", what[64], verb[32];
	const char *p = right->verbs;
	size_t n;
	int r = 1;

	(void)snprintf(what, sizeof(what), "right to %s%s%s", right->resource,
	    *right->sub != '\0' ? "/" : "", right->sub);
	for (; *p != '\0' && r >= 0; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		(void)snprintf(verb, sizeof(verb), "%.*s", (int)n, p);
		r = hr_kube_may(
		    &x->kube, x->d->ns, verb, right->group, right->resource, right->sub, err);
		if (r == 0) {
			size_t len = strlen(missing);

			(void)snprintf(missing + len, sizeof(missing) - len, "%s%s",
			    len > 0 ? ", " : "", verb);
		}
	}
	if (r < 0)
		return -1;
	if (missing[0] == '\0')
		hr_exam_say(x->fn, x->arg, true, what, "%s", right->verbs);
	else
		hr_exam_say(x->fn, x->arg, false, what,
		    "this account has no right to %s in the namespace \"%s\"; a Role needs "
		    "apiGroups [\"%s\"], resources [\"%s%s%s\"] with these verbs",
		    missing, x->d->ns, right->group, right->resource,
		    *right->sub != '\0' ? "/" : "", right->sub);
	return 0;
}

static void
all_rights(struct exam *x)
{
	struct hr_err e = {0};
	size_t i;

	for (i = 0; i < sizeof(rights) / sizeof(*rights); i++)
		if (is_needed(x, &rights[i]) && one_right(x, &rights[i], &e) != 0) {
			hr_exam_say(x->fn, x->arg, false, "rights", "cannot check them: %s", e.msg);
			return;
		}
}

/* Checks the rights for Sandboxes, which matter only if the settings choose them. */
static void
agents(struct exam *x)
{
	static const struct right right = {
	    HR_AGENTS_GROUP, "sandboxes", "", "create get list watch patch delete", NULL, NULL};
	const char *how = setting(x, "kubernetes.agent_sandbox");
	char version[HR_AGENTS_VERSION];
	struct hr_err e = {0};
	int r;

	if (how == NULL || strcmp(how, "never") == 0)
		return;
	r = hr_agents_find(&x->kube, x->d->ns, version, NULL, &e);
	if (r > 0)
		hr_exam_say(x->fn, x->arg, true, "agent-sandbox", HR_AGENTS_GROUP "/%s", version);
	else if (r == 0 && strcmp(how, "auto") == 0)
		hr_exam_say(x->fn, x->arg, true, "agent-sandbox",
		    "not served here: pods are made without it");
	else if (r == 0)
		hr_exam_say(x->fn, x->arg, false, "agent-sandbox",
		    "the cluster does not serve " HR_AGENTS_GROUP
		    ", which kubernetes.agent_sandbox requires: install it, or set \"auto\"");
	if (r < 0 || (r > 0 && one_right(x, &right, &e) != 0))
		hr_exam_say(x->fn, x->arg, false, "agent-sandbox", "%s", e.msg);
}

/* ---- required objects ---- */

/* Reports whether an object exists, if that can be known. `path` is NULL-terminated. */
static void
exists(struct exam *x, const char *what, const char *name, const char *path, const char *hint)
{
	struct hr_err e = {0};

	if (hr_kube_call(&x->kube, HR_KUBE_GET, path, NULL, NULL, &e) == 0)
		hr_exam_say(x->fn, x->arg, true, what, "%s", name);
	else if (x->kube.status.code == 404)
		hr_exam_say(
		    x->fn, x->arg, false, what, "there is no %s \"%s\": %s", what, name, hint);
	else if (x->kube.status.code == 403)
		hr_exam_say(
		    x->fn, x->arg, true, what, "%s (this account has no right to check it)", name);
	else
		hr_exam_say(x->fn, x->arg, false, what, "%s", e.msg);
}

static int
on_class(void *arg, struct json_object *o)
{
	char **name = arg;

	if (strcmp(hr_kube_note(o, "storageclass.kubernetes.io/is-default-class", ""), "true") != 0)
		return 0;
	*name = strdup(hr_json_text_or(hr_json_at(o, "metadata"), "name", "?"));
	return 1;
}

static void
storage(struct exam *x)
{
	const char *name = setting(x, "kubernetes.pvc_storage_class");
	struct hr_err e = {0};
	char path[512];
	HR_FREE char *standard = NULL;

	if (name != NULL) {
		(void)snprintf(
		    path, sizeof(path), "/apis/storage.k8s.io/v1/storageclasses/%.200s", name);
		exists(x, "storage class", name, path,
		    "set kubernetes.pvc_storage_class to an existing one");
	} else if (hr_kube_list(&x->kube, "/apis/storage.k8s.io/v1/storageclasses", "", on_class,
		       &standard, NULL, 0, &e) == 0) {
		if (standard != NULL)
			hr_exam_say(
			    x->fn, x->arg, true, "storage class", "%s, the default", standard);
		else
			hr_exam_say(x->fn, x->arg, false, "storage class",
			    "the cluster has no default; name one in "
			    "kubernetes.pvc_storage_class, or no claim is ever bound");
	} else if (x->kube.status.code == 403) {
		hr_exam_say(x->fn, x->arg, true, "storage class",
		    "the default (this account has no right to check it)");
	} else {
		hr_exam_say(x->fn, x->arg, false, "storage class", "%s", e.msg);
	}
}

static int
on_quota(void *arg, struct json_object *o)
{
	size_t i;

	static const struct {
		const char *name, *setting;
	} asked[] = {{"pods", NULL}, {"persistentvolumeclaims", NULL}, {"services", NULL},
	    {"requests.cpu", "kubernetes.resource_cpu_request"},
	    {"cpu", "kubernetes.resource_cpu_request"},
	    {"requests.memory", "kubernetes.resource_memory_request"},
	    {"memory", "kubernetes.resource_memory_request"},
	    {"limits.memory", "kubernetes.resource_memory_limit"},
	    {"requests.storage", "kubernetes.pvc_storage_size"}};
	struct exam *x = arg;
	struct json_object *status = hr_json_at(o, "status");
	const char *quota = hr_json_text_or(hr_json_at(o, "metadata"), "name", "?"), *hard, *used;
	double wanted;
	bool room = true;

	for (i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		hard = hr_json_text_at(hr_json_at(status, "hard"), asked[i].name);
		used = hr_json_text_or(hr_json_at(status, "used"), asked[i].name, "0");
		wanted = asked[i].setting != NULL
			     ? hr_kube_quantity(hr_config_text(x->c, asked[i].setting))
			     : 1;
		if (hard == NULL || hr_kube_quantity(used) + wanted <= hr_kube_quantity(hard))
			continue;
		room = false;
		hr_exam_say(x->fn, x->arg, false, "quota",
		    "\"%s\" has no room for another sandbox: %s: %s of %s are used; end other "
		    "sandboxes, or ask for a larger quota",
		    quota, asked[i].name, used, hard);
	}
	if (room)
		hr_exam_say(
		    x->fn, x->arg, true, "quota", "\"%s\" has room for another sandbox", quota);
	return 0;
}

static void
quotas(struct exam *x)
{
	struct hr_err e = {0};
	char path[512];

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/resourcequotas", x->d->ns);
	if (hr_kube_list(&x->kube, path, "", on_quota, x, NULL, 0, &e) != 0 &&
	    x->kube.status.code != 403)
		hr_exam_say(x->fn, x->arg, false, "quota", "%s", e.msg);
}

struct nodes {
	const char *image;
	unsigned ready, with;
};

static int
on_node(void *arg, struct json_object *o)
{
	struct nodes *n = arg;
	struct json_object *status = hr_json_at(o, "status"), *list, *names;
	size_t i;

	list = hr_json_find(hr_json_at(status, "conditions"), "type", "Ready");
	n->ready += strcmp(hr_json_text_or(list, "status", ""), "True") == 0;
	list = hr_json_at(status, "images");
	for (i = 0; n->image != NULL && i < hr_json_count(list); i++) {
		size_t j;

		names = hr_json_at(hr_json_entry(list, i), "names");
		for (j = 0; j < hr_json_count(names); j++)
			if (hr_json_str_is(hr_json_entry(names, j), n->image)) {
				n->with++;
				i = hr_json_count(list);
				break;
			}
	}
	return 0;
}

static void
image_and_nodes(struct exam *x)
{
	const char *image = setting(x, "sandbox.runtime_container_image");
	struct nodes n = {.image = image};
	struct hr_err e = {0};
	bool known = hr_kube_list(&x->kube, "/api/v1/nodes", "", on_node, &n, NULL, 0, &e) == 0;

	if (known && n.ready == 0)
		hr_exam_say(x->fn, x->arg, false, "nodes", "no node is ready to run pods");
	else if (known)
		hr_exam_say(x->fn, x->arg, true, "nodes", "%u ready", n.ready);
	if (image == NULL)
		hr_exam_say(x->fn, x->arg, false, "image",
		    "sandbox.runtime_container_image is not set: set it to an image that "
		    "\"handrail image build\" made, in a registry that the nodes reach");
	else if (known && n.with == 0)
		hr_exam_say(x->fn, x->arg, true, "image",
		    "%s (no node has it yet: the first one will pull it)", image);
	else
		hr_exam_say(x->fn, x->arg, true, "image", "%s", image);
}

int
hr_kubernetes_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	struct exam x = {.d = d, .c = d->h->config, .fn = fn, .arg = arg};
	HR_PUT struct json_object *o = NULL;
	struct hr_err e = {0};
	const char *name;
	char path[512];

	(void)err; /* every fault is a finding */
	if (hr_kube_init(&x.kube, d->h->config, d->h->environ, PATIENCE_MS, &e) != 0) {
		hr_exam_say(x.fn, x.arg, false, "credentials", "%s", e.msg);
		return 0;
	}
	hr_exam_say(x.fn, x.arg, true, "credentials", "%s", x.kube.login.from);
	if (hr_kube_call(&x.kube, HR_KUBE_GET, "/version", NULL, &o, &e) != 0) {
		hr_exam_say(x.fn, x.arg, false, "API server", "%s", e.msg);
		hr_kube_done(&x.kube);
		return 0;
	}
	hr_exam_say(x.fn, x.arg, true, "API server", "version %s at %s",
	    hr_json_text_or(o, "gitVersion", "unknown"), x.kube.login.server);
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s", d->ns);
	exists(&x, "namespace", d->ns, path, "make it, or name another in kubernetes.namespace");
	all_rights(&x);
	agents(&x);
	storage(&x);
	quotas(&x);
	image_and_nodes(&x);
	if ((name = setting(&x, "kubernetes.image_pull_secret")) != NULL) {
		(void)snprintf(
		    path, sizeof(path), "/api/v1/namespaces/%s/secrets/%.200s", d->ns, name);
		exists(&x, "image pull secret", name, path,
		    "make it with \"kubectl create secret docker-registry\"");
	}
	if ((name = setting(&x, "kubernetes.runtime_class")) != NULL) {
		(void)snprintf(
		    path, sizeof(path), "/apis/node.k8s.io/v1/runtimeclasses/%.200s", name);
		exists(&x, "runtime class", name, path, "kubernetes.runtime_class names it");
	}
	if ((name = setting(&x, "kubernetes.service_account")) != NULL) {
		(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/serviceaccounts/%.200s",
		    d->ns, name);
		exists(&x, "service account", name, path, "kubernetes.service_account names it");
	}
	hr_kube_done(&x.kube);
	return 0;
}

/* ---- events ---- */

struct told {
	hr_event_fn *fn;
	void *arg;
	/* keys are names of pods; a value is a digit for the progress, then the sandbox's name */
	struct json_object *pods;
	struct json_object *before; /* during a list: the pods known before */
	bool begun;                 /* the first list describes the past */
};

/* Reports pods missing from a list: they ended while the watch was interrupted. */
static int
tell_gone(struct told *t)
{
	int r = 0;

	json_object_object_foreach(t->before, name, was)
	{
		if (r == 0 && hr_json_at(t->pods, name) == NULL)
			r = t->fn(t->arg, hr_json_text(was) + 1, "destroy", "");
	}
	hr_json_drop(&t->before);
	t->begun = true;
	return r;
}

static int
tell_one(struct told *t, const char *name, const char *sid, struct json_object *o)
{
	/* a digit, since the string is freed with its replacement */
	char was = *hr_json_text_or(t->pods, name, hr_json_text_or(t->before, name, ""));
	struct hr_kube_why why;
	const char *what = NULL;
	char now[80];

	hr_kube_why(&why, o);
	(void)snprintf(now, sizeof(now), "%d%s", (int)why.progress, sid);
	(void)json_object_object_add(t->pods, name, json_object_new_string(now));
	if (!t->begun || was == *now)
		return 0;
	if (why.progress == HR_KUBE_RUNNING)
		what = "start";
	else if (why.progress == HR_KUBE_READY)
		what = was == '0' + HR_KUBE_RUNNING ? "ready" : "start";
	else if (why.progress == HR_KUBE_FAILED)
		what = strstr(why.text, "out of memory") != NULL ? "oom" : "die";
	else if (why.progress == HR_KUBE_STUCK)
		what = "waiting";
	return what != NULL ? t->fn(t->arg, sid, what, why.text) : 0;
}

static int
tell(void *arg, enum hr_kube_event event, struct json_object *o)
{
	struct told *t = arg;
	const char *name = hr_json_text_or(hr_json_at(o, "metadata"), "name", "");
	const char *sid = hr_kube_label(o, HR_KUBERNETES_TAKEN, hr_kube_label(o, "session", ""));

	if (event == HR_KUBE_LISTED)
		return tell_gone(t);
	if (event == HR_KUBE_LIST) {
		json_object_put(t->before);
		t->before = t->pods;
		t->pods = json_object_new_object();
		return t->pods == NULL;
	}
	if (*name == '\0' || *sid == '\0')
		return 0;
	if (event == HR_KUBE_DELETED) {
		json_object_object_del(t->pods, name);
		return t->fn(t->arg, sid, "destroy", "");
	}
	return tell_one(t, name, sid, o);
}

int
hr_kubernetes_events(void *self, hr_event_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	struct told t = {.fn = fn, .arg = arg};
	char path[512];
	int r;

	if (hr_kubernetes_open_kube(d, err) != 0)
		return -1;
	t.pods = json_object_new_object();
	if (t.pods == NULL)
		return hr_err_nomem(err);
	hr_kubernetes_path(d, HR_POD, false, path);
	hr_kube_give_up(&d->kube, d->h->stop_fd);
	r = hr_kube_watch(&d->kube, path, "labelSelector=app%3Dopenhands-runtime", tell, &t, err);
	hr_kube_give_up(&d->kube, -1);
	json_object_put(t.before);
	json_object_put(t.pods);
	return r < 0 ? -1 : 0;
}
