/* Paused a sandbox is scaled to zero: the pod is gone, and its claim keeps how it is made again, so
 * that any machine can resume it, whatever its settings are. */
#include "config.h"

#include "host/kubernetes/kubernetes_int.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "host/kubernetes/base64.h"
#include "proto/json.h"

const char *
hr_kubernetes_paused(struct json_object *claim)
{
	return hr_json_text_or(
	    hr_json_at(hr_json_at(claim, "metadata"), "annotations"), HR_KUBERNETES_PAUSED, "");
}

int
hr_kubernetes_read_key(struct hr_kubernetes *d, struct hr_err *err)
{
	struct json_object *o = NULL;
	const char *text;
	struct hr_buf b;
	int r = hr_kubernetes_get(d, HR_SECRET, &o, err);

	if (r < 0)
		return -1;
	text = hr_json_text_or(hr_json_at(o, "data"), "SESSION_API_KEY", "");
	hr_buf_init(&b, 65536);
	/* one that a client of the original made has none */
	r = 0;
	free(d->key);
	d->key = NULL;
	if (hr_base64_read(&b, text) && b.len > 0 && (d->key = strdup(hr_buf_str(&b))) == NULL)
		r = hr_err_nomem(err);
	hr_buf_done(&b);
	json_object_put(o);
	return r;
}

/* text NULL: it is no longer paused. */
static int
note_paused(struct hr_kubernetes *d, const char *text, struct hr_err *err)
{
	struct hr_buf b;
	char path[512];
	int r;

	hr_kubernetes_path(d, HR_CLAIM, true, path);
	hr_buf_init(&b, 8u << 20);
	hr_buf_adds(&b, "{\"metadata\":{\"annotations\":{\"" HR_KUBERNETES_PAUSED "\":");
	if (text != NULL)
		(void)hr_json_put_str(&b, text, strlen(text), HR_JSON_REPLACE);
	else
		hr_buf_adds(&b, "null");
	hr_buf_adds(&b, "}}}");
	r = hr_buf_check(&b, NULL) == 0
		? hr_kube_call(&d->kube, HR_KUBE_MERGE, path, hr_buf_str(&b), NULL, err)
		: hr_err_nomem(err);
	hr_buf_done(&b);
	return r;
}

int
hr_kubernetes_pause(struct hr_kubernetes *d, struct hr_err *err)
{
	struct json_object *pod = NULL;
	char *text = NULL;
	int r = hr_kubernetes_get(d, HR_POD, &pod, err);

	if (r <= 0)
		return r;
	text = hr_kubernetes_again(pod, err);
	r = text != NULL && note_paused(d, text, err) == 0 ? 0 : -1;
	if (r == 0)
		r = hr_kubernetes_end_pod(
		    d, hr_json_text_or(hr_json_at(pod, "metadata"), "uid", ""), err);
	free(text);
	json_object_put(pod);
	return r == 0 ? 1 : -1;
}

int
hr_kubernetes_resume(struct hr_kubernetes *d, bool *ret_was, struct hr_err *err)
{
	struct json_object *claim = NULL;
	struct hr_err e = {0};
	const char *text;
	char path[512];
	int r = hr_kubernetes_get(d, HR_CLAIM, &claim, err);

	text = hr_kubernetes_paused(claim);
	*ret_was = r < 0 || *text != '\0';
	if (r >= 0 && !*ret_was)
		r = hr_err_set(err, HR_E_NO_SANDBOX, "Pod %s not found, and not paused.", d->name);
	if (r > 0) {
		hr_kubernetes_path(d, HR_POD, false, path);
		r = hr_kube_call(&d->kube, HR_KUBE_CREATE, path, text, NULL, &e);
		/* another process resumes it as well */
		if (r != 0 && hr_kube_status_is(&d->kube.status, "AlreadyExists"))
			r = 0;
		else if (r != 0 && err != NULL)
			*err = e;
		if (r == 0)
			r = hr_kubernetes_wait_ready(d, err);
		/* it stays paused: the pod that did not come would be in the way of the next try */
		if (r != 0)
			(void)hr_kubernetes_end_pod(d, NULL, NULL);
		if (r == 0)
			r = note_paused(d, NULL, err);
		if (r == 0 && d->key == NULL)
			r = hr_kubernetes_read_key(d, err);
	}
	json_object_put(claim);
	return r == 0 ? 0 : -1;
}
