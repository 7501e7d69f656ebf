/* Creates and deletes a sandbox's objects. Each object carries its call's random string, so that a
 * lost answer is not mistaken for another's object; deletion names its uid, so that a successor
 * stays. */
#include "config.h"

#include "host/kubernetes/kubernetes_int.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/random.h"
#include "host/command.h"
#include "host/common/owner.h"
#include "base/err.h"
#include "host/config/settings.h"
#include "host/kubernetes/rules.h"
#include "proto/json.h"

int
hr_kubernetes_open_kube(struct hr_kubernetes *d, struct hr_err *err)
{
	if (d->kube_there)
		return 0;
	if (hr_kube_init(&d->kube, d->h->config, d->h->environ, 0, err) != 0)
		return -1;
	d->kube_there = true;
	return 0;
}

int
hr_kubernetes_get(struct hr_kubernetes *d, enum hr_kubernetes_what what, struct json_object **ret,
    struct hr_err *err)
{
	struct hr_err e = {0};
	char path[512];

	if (hr_kubernetes_open_kube(d, err) != 0)
		return -1;
	hr_kubernetes_path(d, what, true, path);
	if (hr_kube_call(&d->kube, HR_KUBE_GET, path, NULL, ret, &e) == 0)
		return 1;
	if (d->kube.status.code == 404)
		return 0;
	return hr_err_pass(err, &e);
}

/* ---- making ---- */

int
hr_kubernetes_check_owner(struct hr_kubernetes *d, struct json_object *o, struct hr_err *err)
{
	const char *owner = hr_kube_note(o, HR_KUBERNETES_OWNER, NULL);
	char who[HR_OWNER];

	hr_owner(who);
	d->own = d->own || d->h->any_owner || (owner != NULL && strcmp(owner, who) == 0);
	if (d->own)
		return 0;
	return hr_err_set(err, HR_E_RUNTIME,
	    "%s in the namespace %s is not yours: its annotation " HR_KUBERNETES_OWNER " is "
	    "%s%.100s%s; choose another name with -n, or use it with --any-owner",
	    d->name, d->ns, owner != NULL ? "\"" : "", owner != NULL ? owner : "missing",
	    owner != NULL ? "\"" : "");
}

static bool
is_ours(struct json_object *o, const struct hr_kubernetes_made *m)
{
	return strcmp(hr_kube_note(o, HR_KUBERNETES_CALL, ""), m->call) == 0;
}

void
hr_kubernetes_uid(struct json_object *o, char uid[HR_KUBERNETES_UID])
{
	(void)snprintf(
	    uid, HR_KUBERNETES_UID, "%s", hr_json_text_or(hr_json_at(o, "metadata"), "uid", ""));
}

/* Returns true if handrail made the Sandbox: one of another program could run anything. */
static bool
is_handrails(struct json_object *o)
{
	return strcmp(hr_kube_label(o, "app", ""), "openhands-runtime") == 0;
}

/* Creates an object. Returns 0 without a uid if another process created it. Recognises its own
 * object if the answer to the request was lost. */
static int
create(struct hr_kubernetes *d, enum hr_kubernetes_what what, struct hr_kubernetes_made *m,
    struct hr_err *err)
{
	char path[512];
	HR_FREE char *body = hr_kubernetes_body(d, what, m->call, err);
	struct json_object *o = NULL;
	struct hr_err e = {0};
	int r = -1;

	if (body == NULL)
		return -1;
	hr_kubernetes_path(d, what, false, path);
	r = hr_kube_call(&d->kube, HR_KUBE_CREATE, path, body, &o, &e);
	if (r != 0 && hr_kube_status_is(&d->kube.status, "AlreadyExists")) {
		r = hr_kubernetes_get(d, what, &o, NULL) == 1 ? 0 : -1;
		if (r == 0 && what == HR_SANDBOX && !is_handrails(o))
			r = hr_err_set(&e, HR_E_NO_SANDBOX,
			    "the Sandbox %s exists, and handrail did not make it: choose another "
			    "name",
			    d->name);
		if (r == 0 && !is_ours(o, m))
			hr_json_drop(&o);
	}
	if (r == 0 && o != NULL)
		hr_kubernetes_uid(o, m->uid[what]);
	else if (r != 0 && err != NULL)
		*err = e;
	json_object_put(o);
	explicit_bzero(body, strlen(body)); /* body may hold the key */
	return r;
}

/* Creates an object, or updates the existing one by server-side apply. Records the uid only of an
 * object that this call has created. */
static int
apply(struct hr_kubernetes *d, enum hr_kubernetes_what what, struct hr_kubernetes_made *m,
    struct hr_err *err)
{
	char path[512];
	HR_FREE char *body = NULL;
	int r = create(d, what, m, err);

	if (r != 0 || m->uid[what][0] != '\0')
		return r;
	body = hr_kubernetes_body(d, what, m->call, err);
	if (body == NULL)
		return -1;
	hr_kubernetes_path(d, what, true, path);
	r = hr_kube_call(&d->kube, HR_KUBE_APPLY, path, body, NULL, err);
	explicit_bzero(body, strlen(body)); /* body may hold the key */
	return r;
}

int
hr_kubernetes_delete(struct hr_kubernetes *d, enum hr_kubernetes_what what, const char *uid,
    struct json_object **ret, struct hr_err *err)
{
	struct hr_err e = {0};
	char path[512], body[200];

	hr_kubernetes_path(d, what, true, path);
	(void)snprintf(body, sizeof(body), "{%s\"preconditions\":{\"uid\":\"%s\"}}",
	    what == HR_SANDBOX ? "\"propagationPolicy\":\"Foreground\"," : "", uid);
	if (hr_kube_call(&d->kube, HR_KUBE_DELETE, path, body, ret, &e) == 0 ||
	    d->kube.status.code == 404)
		return 0;
	return d->kube.status.code == 409 ? 1 : hr_err_pass(err, &e);
}

/* Deletes the objects that hr_kubernetes_make() has made, the claim, too: a new claim holds no
 * files. */
void
hr_kubernetes_take_back(struct hr_kubernetes *d)
{
	const struct hr_kubernetes_made *m = &d->made;
	struct hr_err e = {0};
	char text[1200];
	int i;

	for (i = 0; i < HR_KINDS; i++) {
		if (m->uid[i][0] == '\0' ||
		    hr_kubernetes_delete(d, (enum hr_kubernetes_what)i, m->uid[i], NULL, &e) >= 0)
			continue;
		(void)snprintf(text, sizeof(text), "the %s of %s could not be deleted: %s",
		    hr_kubernetes_kind((enum hr_kubernetes_what)i), d->name, e.msg);
		d->h->log(d->h->arg, text);
	}
	if (m->uid[HR_SANDBOX][0] != '\0')
		(void)hr_kubernetes_wait_gone(d, HR_SANDBOX, m->uid[HR_SANDBOX], NULL);
	if (m->uid[HR_POD][0] != '\0')
		(void)hr_kubernetes_wait_gone(d, HR_POD, m->uid[HR_POD], NULL);
	if (m->uid[HR_CLAIM][0] != '\0')
		(void)hr_kubernetes_wait_gone(d, HR_CLAIM, m->uid[HR_CLAIM], NULL);
}

static int
make_objects(struct hr_kubernetes *d, struct hr_kubernetes_made *m, enum hr_kubernetes_what maker,
    struct hr_err *err)
{
	const char *policy = hr_config_text(d->h->config, "kubernetes.network_policy");
	bool limited = hr_kubernetes_has_rules(d->h->config) ||
		       (policy != NULL && *policy != '\0' && strcmp(policy, "none") != 0);
	bool ingress = hr_config_bool(d->h->config, "kubernetes.ingress");

	/* objects that the pod needs come first; those that lead to it follow while it starts */
	if (create(d, HR_CLAIM, m, err) != 0 || apply(d, HR_SECRET, m, err) != 0 ||
	    (limited && apply(d, HR_POLICY, m, err) != 0) || create(d, maker, m, err) != 0 ||
	    create(d, HR_SERVICE, m, err) != 0)
		return -1;
	if (!ingress)
		return 0;
	return create(d, HR_CODE_SERVICE, m, err) == 0 ? create(d, HR_INGRESS, m, err) : -1;
}

static void
warn_ignored(struct hr_kubernetes *d)
{
	static const char *const keys[] = {
	    "sandbox.additional_networks", "sandbox.volumes", "sandbox.docker_runtime_kwargs"};
	struct json_object *v;
	char text[128];
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		v = hr_config_value(d->h->config, keys[i]);
		if (v == NULL || (json_object_is_type(v, json_type_array) && hr_json_count(v) == 0))
			continue;
		(void)snprintf(text, sizeof(text), "kubernetes runtime ignores %s", keys[i]);
		d->h->log(d->h->arg, text);
	}
}

/* Logs a missing storage class, which is no error yet: existing volumes may name a storage class
 * that does not exist. A namespaced account cannot read classes. */
static void
look_for_class(struct hr_kubernetes *d)
{
	const char *name = hr_config_text(d->h->config, "kubernetes.pvc_storage_class");
	char path[300], text[400];

	if (name == NULL || *name == '\0' || hr_kubernetes_open_kube(d, NULL) != 0)
		return;
	(void)snprintf(path, sizeof(path), "/apis/storage.k8s.io/v1/storageclasses/%.200s", name);
	d->no_class = hr_kube_call(&d->kube, HR_KUBE_GET, path, NULL, NULL, NULL) != 0 &&
		      d->kube.status.code == 404;
	if (!d->no_class)
		return;
	(void)snprintf(text, sizeof(text),
	    "there is no storage class \"%.200s\" (kubernetes.pvc_storage_class): the pod waits "
	    "until a volume is made for it",
	    name);
	d->h->log(d->h->arg, text);
}

int
hr_kubernetes_make(struct hr_kubernetes *d, enum hr_connected *ret, struct hr_err *err)
{
	struct hr_kubernetes_made *m = &d->made;
	enum hr_kubernetes_what maker;
	struct hr_err e = {0};

	warn_ignored(d);
	if (hr_command_key(d->h->environ, &d->key, err) != 0 || hr_kubernetes_choose(d, err) != 0)
		return -1;
	look_for_class(d);
	maker = d->agents[0] != '\0' ? HR_SANDBOX : HR_POD;
	*m = (struct hr_kubernetes_made){.call = ""};
	if (hr_random_hex(m->call, HR_KUBERNETES_CALL_DIGITS, err) != 0)
		return -1;
	d->h->begun(d->h->arg);
	if (make_objects(d, m, maker, &e) != 0) {
		hr_kubernetes_take_back(d);
		return hr_err_set(err, HR_E_NO_SANDBOX,
		    "Failed to initialize kubernetes resources: %.900s", e.msg);
	}
	d->h->status(d->h->arg, "STATUS$RUNTIME_STARTED");
	if (hr_kubernetes_wait_ready(d, err) == 0 &&
	    (maker == HR_POD || hr_kubernetes_mark(d, err) == 0)) {
		/* two processes may make the pod at the same time: both wait for the first one's
		 * pod */
		*ret = m->uid[maker][0] != '\0' ? HR_SANDBOX_MADE : HR_SANDBOX_FOUND;
		return *ret == HR_SANDBOX_MADE ? 0 : hr_kubernetes_read_key(d, err);
	}
	d->h->log(d->h->arg, "the pod did not become ready; deleting what was made");
	hr_kubernetes_take_back(d);
	return -1;
}

/* ---- ending ---- */

int
hr_kubernetes_end_pod(struct hr_kubernetes *d, const char *uid, struct hr_err *err)
{
	char owner[HR_KUBERNETES_UID];
	HR_PUT struct json_object *pod = NULL;
	int r = hr_kubernetes_open_kube(d, err) == 0
		    ? hr_kubernetes_delete(d, HR_POD, uid, &pod, err)
		    : -1;

	/* otherwise the controller would make the pod again */
	if (r == 0 && hr_kubernetes_owner(pod, owner))
		r = hr_kubernetes_end_owner(d, owner, err);
	else if (r > 0)
		return 0; /* another process has deleted the pod, and made its successor */
	return r == 0 ? hr_kubernetes_wait_gone(d, HR_POD, uid, err) : -1;
}

int
hr_kubernetes_find_owner(struct hr_kubernetes *d, char uid[HR_KUBERNETES_UID], struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;

	uid[0] = '\0';
	if (hr_kubernetes_open_kube(d, err) != 0 || hr_kubernetes_choose(d, err) != 0)
		return -1;
	if (d->agents[0] == '\0')
		return 0;
	if (hr_kubernetes_get(d, HR_SANDBOX, &o, err) < 0)
		return -1;
	if (is_handrails(o))
		hr_kubernetes_uid(o, uid);
	return 0;
}

/* Tolerates a missing right that only creation needs. */
static bool
may_be_denied(const struct hr_kubernetes *d, int what)
{
	return (what == HR_POLICY || what == HR_INGRESS) && d->kube.status.code == 403;
}

static int
fail_replaced(const struct hr_kubernetes *d, struct hr_err *err)
{
	return hr_err_set(err, HR_E_UNAVAILABLE,
	    "Pod %s was replaced by another process; the new pod is left alone", d->name);
}

/* Returns true for the objects that an end deletes. If the pod that state() saw is meant (as_seen),
 * another process may start the sandbox again at any moment, with everything but its pod: a Service
 * used by both lives has one uid, so a late delete would hit it. */
static bool
is_ended(const struct hr_kubernetes *d, int what, bool claim)
{
	if (d->h->as_seen)
		return what == HR_POD;
	return claim || (what != HR_CLAIM && what != HR_SECRET);
}

/* Notes the uids of the objects with the sandbox's names, and the Sandbox that pod or claim name as
 * owner. If the pod that state() saw is meant and has a successor, it fails. */
static int
note_all(struct hr_kubernetes *d, bool claim, char uid[HR_KINDS][HR_KUBERNETES_UID],
    char owner[HR_KUBERNETES_UID], struct hr_err *err)
{
	struct hr_err e = {0};
	int i;

	for (i = 0; i < HR_SANDBOX; i++) {
		HR_PUT struct json_object *o = NULL;

		if (!is_ended(d, i, claim))
			continue;
		if (hr_kubernetes_get(d, (enum hr_kubernetes_what)i, &o, &e) < 0 &&
		    !may_be_denied(d, i))
			return hr_err_pass(err, &e);
		hr_kubernetes_uid(o, uid[i]);
		if (i == HR_POD)
			(void)hr_kubernetes_owner(o, owner);
		else if (i == HR_CLAIM && owner[0] == '\0')
			(void)hr_kubernetes_paused_owner(hr_kubernetes_paused(o), owner);
	}
	return d->h->as_seen && d->seen && uid[HR_POD][0] != '\0' &&
		       strcmp(uid[HR_POD], d->seen_pod) != 0
		   ? fail_replaced(d, err)
		   : 0;
}

int
hr_kubernetes_end(struct hr_kubernetes *d, bool claim, struct hr_err *err)
{
	char owner[HR_KUBERNETES_UID] = "", uid[HR_KINDS][HR_KUBERNETES_UID] = {{0}};
	struct hr_err e = {0};
	int r = 0, one;
	int i;

	if (hr_kubernetes_open_kube(d, err) != 0 || note_all(d, claim, uid, owner, err) != 0)
		return -1;
	/* comes before any deletion: afterwards another process may make the next Sandbox */
	if (d->h->as_seen)
		memcpy(owner, d->seen_owner, sizeof(owner));
	else if (owner[0] == '\0')
		r = hr_kubernetes_find_owner(d, owner, err);
	/* each object is deleted on its own: one failure must not keep the others */
	for (i = 0; i < HR_SANDBOX; i++) {
		if (uid[i][0] == '\0')
			continue;
		one = hr_kubernetes_delete(d, (enum hr_kubernetes_what)i, uid[i], NULL, &e);
		/* a successor uses the remaining objects */
		if (i == HR_POD && one > 0)
			return fail_replaced(d, err);
		if (one < 0 && !may_be_denied(d, i) && r == 0) {
			r = -1;
			if (err != NULL)
				*err = e;
		}
	}
	if (owner[0] != '\0' && hr_kubernetes_end_owner(d, owner, r == 0 ? err : NULL) != 0)
		r = -1;
	if (r == 0 && uid[HR_POD][0] != '\0')
		r = hr_kubernetes_wait_gone(d, HR_POD, uid[HR_POD], err);
	if (r == 0 && uid[HR_CLAIM][0] != '\0')
		r = hr_kubernetes_wait_gone(d, HR_CLAIM, uid[HR_CLAIM], err);
	return r;
}
