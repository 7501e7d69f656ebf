/* Handles pods made by a Sandbox of agent-sandbox (doc/kubernetes.md, "Sandboxes of
 * agent-sandbox"). Existing objects show their maker: a pod by its owner, a paused claim by its
 * note. The setting counts only for new sandboxes. */
#include "config.h"

#include "host/kubernetes/agents.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "host/kubernetes/kubernetes_int.h"
#include "proto/json.h"

/* the known versions, the newest first */
static const char *const versions[] = {"v1beta1", "v1alpha1"};
#define VERSIONS (sizeof(versions) / sizeof(*versions))

static bool
is_known(const char *version)
{
	size_t i;

	for (i = 0; i < VERSIONS; i++)
		if (strcmp(version, versions[i]) == 0)
			return true;
	return false;
}

int
hr_agents_find(struct hr_kube *k, const char *ns, char version[HR_AGENTS_VERSION], bool *ret_may,
    struct hr_err *err)
{
	HR_PUT struct json_object *group = NULL;
	struct hr_err e = {0};
	int r = 0;
	size_t i;

	version[0] = '\0';
	if (hr_kube_call(k, HR_KUBE_GET, "/apis/" HR_AGENTS_GROUP, NULL, &group, &e) != 0) {
		if (k->status.code == 404)
			return 0;
		return hr_err_pass(err, &e);
	}
	for (i = 0; i < VERSIONS && r == 0; i++)
		if (hr_json_find(hr_json_at(group, "versions"), "version", versions[i]) != NULL) {
			(void)snprintf(version, HR_AGENTS_VERSION, "%s", versions[i]);
			r = 1;
		}
	if (r == 1 && ret_may != NULL) {
		int may = hr_kube_may(k, ns, "create", HR_AGENTS_GROUP, "sandboxes", "", err);

		*ret_may = may == 1;
		r = may < 0 ? -1 : 1;
	}
	return r;
}

int
hr_kubernetes_choose(struct hr_kubernetes *d, struct hr_err *err)
{
	const char *how = hr_config_text(d->h->config, "kubernetes.agent_sandbox");
	bool may = true;

	d->agents[0] = '\0';
	if (how == NULL || *how == '\0' || strcmp(how, "never") == 0)
		return 0;
	if (is_known(how)) {
		(void)snprintf(d->agents, sizeof(d->agents), "%s", how);
		return 0;
	}
	if (strcmp(how, "auto") != 0)
		return hr_err_set(
		    err, HR_E_INVAL, "Invalid value for kubernetes.agent_sandbox: %s", how);
	if (hr_agents_find(&d->kube, d->ns, d->agents, &may, err) < 0)
		return -1;
	if (!may) {
		d->agents[0] = '\0';
		d->h->log(d->h->arg,
		    "this account has no right to create sandboxes." HR_AGENTS_GROUP
		    ", which the cluster serves; the pod is made without one");
	}
	return 0;
}

bool
hr_kubernetes_owner(struct json_object *pod, char uid[HR_KUBERNETES_UID])
{
	struct json_object *meta = hr_json_at(pod, "metadata"),
			   *list = hr_json_at(meta, "ownerReferences"), *one;
	size_t i;

	for (i = 0; i < hr_json_count(list); i++) {
		one = hr_json_entry(list, i);
		if (strncmp(hr_json_text_or(one, "apiVersion", ""), HR_AGENTS_GROUP "/",
			sizeof(HR_AGENTS_GROUP)) != 0 ||
		    strcmp(hr_json_text_or(one, "kind", ""), "Sandbox") != 0 ||
		    strcmp(hr_json_text_or(one, "name", ""), hr_json_text_or(meta, "name", "?")) !=
			0)
			continue;
		(void)snprintf(uid, HR_KUBERNETES_UID, "%s", hr_json_text_or(one, "uid", ""));
		return true;
	}
	return false;
}

bool
hr_kubernetes_replaced(struct json_object *pod)
{
	char uid[HR_KUBERNETES_UID];

	return hr_kubernetes_owner(pod, uid) &&
	       hr_kube_note(pod, HR_KUBERNETES_FIRST, NULL) == NULL;
}

int
hr_kubernetes_mark(struct hr_kubernetes *d, struct hr_err *err)
{
	char path[512];

	hr_kubernetes_path(d, HR_POD, true, path);
	return hr_kube_call(&d->kube, HR_KUBE_MERGE, path,
	    "{\"metadata\":{\"annotations\":{\"" HR_KUBERNETES_FIRST "\":\"\"}}}", NULL, err);
}

/* Finds the version that the cluster serves, for an existing Sandbox. */
static int
know(struct hr_kubernetes *d, struct hr_err *err)
{
	if (d->agents[0] == '\0' && hr_agents_find(&d->kube, d->ns, d->agents, NULL, err) < 0)
		return -1;
	return d->agents[0] != '\0' ? 0
				    : hr_err_set(err, HR_E_UNAVAILABLE,
					  "the cluster no longer serves " HR_AGENTS_GROUP
					  ", to which the Sandbox of the pod %s belongs",
					  d->name);
}

int
hr_kubernetes_scale(
    struct hr_kubernetes *d, const char *uid, bool run, struct json_object *pod, struct hr_err *err)
{
	const char *taken = hr_kube_label(pod, HR_KUBERNETES_TAKEN, NULL);
	HR_BUF(b, 4096);

	if (know(d, err) != 0)
		return -1;
	hr_buf_adds(&b, "{\"metadata\":{\"uid\":");
	(void)hr_json_put_str(&b, uid, strlen(uid), HR_JSON_REPLACE);
	hr_buf_adds(&b, "},\"spec\":{");
	if (strcmp(d->agents, "v1alpha1") == 0)
		hr_buf_addf(&b, "\"replicas\":%d", run);
	else
		hr_buf_addf(&b, "\"operatingMode\":\"%s\"", run ? "Running" : "Suspended");
	/* this is a pod from the pool: only its label names its sandbox */
	if (taken != NULL) {
		hr_buf_adds(
		    &b, ",\"podTemplate\":{\"metadata\":{\"labels\":{\"" HR_KUBERNETES_TAKEN "\":");
		(void)hr_json_put_str(&b, taken, strlen(taken), HR_JSON_REPLACE);
		hr_buf_adds(&b, "}}}");
	}
	hr_buf_adds(&b, "}}");
	return hr_kubernetes_merge(d, HR_SANDBOX, &b, err);
}

int
hr_kubernetes_end_owner(struct hr_kubernetes *d, const char *uid, struct hr_err *err)
{
	int r = know(d, err) == 0 ? hr_kubernetes_delete(d, HR_SANDBOX, uid, NULL, err) : -1;

	return r == 0 ? hr_kubernetes_wait_gone(d, HR_SANDBOX, uid, err) : r < 0 ? -1 : 0;
}
