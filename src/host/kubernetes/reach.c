/* Connects to the server in the pod, and diagnoses failures. */
#include "config.h"

#include "host/kubernetes/kubernetes_int.h"

#include <string.h>

#include "base/err.h"
#include "base/text/text.h"
#include "host/kubernetes/why.h"
#include "host/client/rest.h"
#include "proto/json.h"

#define TRIES 9 /* number of tries, which take 13 seconds in all */
#define FIRST_MS 25

/* Connects to the pod's address, which changes with each resume. */
static int
reach_pod(struct hr_kubernetes *d, struct hr_err *err)
{
	HR_PUT struct json_object *pod = NULL;
	const char *ip;
	int r = hr_kubernetes_get(d, HR_POD, &pod, err);

	ip = hr_json_text_or(hr_json_at(pod, "status"), "podIP", "");
	if (r < 0)
		r = -1;
	else if (*ip == '\0')
		r = hr_err_set(err, HR_E_DISCONNECTED, "Pod %s has no address", d->name);
	else
		r = hr_text_setf(&d->url, err,
		    strchr(ip, ':') != NULL ? "http://[%s]:%d" : "http://%s:%d", ip,
		    HR_KUBERNETES_PORT);
	return r;
}

int
hr_kubernetes_reach(struct hr_kubernetes *d, bool early, struct hr_err *err)
{
	const char *how = hr_config_text(d->h->config, "kubernetes.access");
	char path[512];

	if (hr_kubernetes_open_kube(d, err) != 0)
		return -1;
	hr_forward_drop(&d->forward);
	if (strcmp(how, "pod") == 0)
		return reach_pod(d, err);
	if (strcmp(how, "service") == 0 || (strcmp(how, "auto") == 0 && d->kube.login.inside))
		return 0;
	if (strcmp(how, "auto") != 0 && strcmp(how, "forward") != 0)
		return hr_err_set(err, HR_E_INVAL, "Invalid value for kubernetes.access: %s", how);
	hr_kubernetes_path(d, HR_POD, true, path);
	d->forward =
	    hr_forward_new(d->h->config, d->h->environ, path, HR_KUBERNETES_PORT, early, err);
	return d->forward != NULL ? 0 : -1;
}

/* Handles a failed request. Inside a cluster, nodes learn of a pod shortly after it is ready, and
 * again after a resume. A retry is safe where no connection was made; if the pod does not exist any
 * more, the error says so. */
void
hr_kubernetes_failed(void *self, unsigned attempt, bool *ret_again, struct hr_err *err)
{
	struct hr_kubernetes *d = self;
	HR_PUT struct json_object *pod = NULL;
	struct hr_kube_why why;

	if (d->forward != NULL || err->code != HR_E_HTTP_NETWORK || attempt > TRIES)
		return;
	switch (hr_kubernetes_get(d, HR_POD, &pod, NULL)) {
	case 0: /* the pod does not exist, and port-forward itself answered */
		(void)hr_err_set(err, HR_E_DISCONNECTED, "Pod %s is gone: it was deleted", d->name);
		break;
	case 1:
		hr_kube_why(&why, pod);
		if (why.progress == HR_KUBE_FAILED || why.progress == HR_KUBE_ENDING)
			(void)hr_err_set(err, HR_E_DISCONNECTED, "Pod %s: %s", d->name, why.text);
		else
			*ret_again = !hr_rest_wait(-1, FIRST_MS << (attempt - 1));
		break;
	default: break;
	}
}
