/* Pauses and resumes. A paused sandbox has no pod, and its claim keeps the pod's description, so
 * that any machine can resume it, whatever its settings are. */
#include "config.h"

#include "host/kubernetes/kubernetes_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "base/text/quote.h"
#include "proto/json.h"

#define POD_MAX (4u << 20)

const char *
hr_kubernetes_paused(struct json_object *claim)
{
	return hr_kube_note(claim, HR_KUBERNETES_PAUSED, "");
}

int
hr_kubernetes_read_key(struct hr_kubernetes *d, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	const char *text;
	HR_BUF(b, 65536);

	if (hr_kubernetes_get(d, HR_SECRET, &o, err) < 0)
		return -1;
	text = hr_json_text_or(hr_json_at(o, "data"), "SESSION_API_KEY", "");
	/* a sandbox of the original client has no key */
	free(d->key);
	d->key = NULL;
	if (hr_quote_unbase64(&b, text, strlen(text)) && b.len > 0 &&
	    (d->key = strdup(hr_buf_str(&b))) == NULL)
		return hr_err_nomem(err);
	return 0;
}

int
hr_kubernetes_merge(
    struct hr_kubernetes *d, enum hr_kubernetes_what what, struct hr_buf *b, struct hr_err *err)
{
	char path[512];
	int r;

	hr_kubernetes_path(d, what, true, path);
	r = hr_buf_check(b, NULL) == 0
		? hr_kube_call(&d->kube, HR_KUBE_MERGE, path, hr_buf_str(b), NULL, err)
		: hr_err_nomem(err);
	hr_buf_done(b);
	return r;
}

/* Sets the claim's note; text NULL removes it. */
static int
note_paused(struct hr_kubernetes *d, const char *text, struct hr_err *err)
{
	HR_BUF(b, 8u << 20);

	hr_buf_adds(&b, "{\"metadata\":{\"annotations\":{\"" HR_KUBERNETES_PAUSED "\":");
	if (text != NULL)
		(void)hr_json_put_str(&b, text, strlen(text), HR_JSON_REPLACE);
	else
		hr_buf_adds(&b, "null");
	hr_buf_adds(&b, "}}}");
	return hr_kubernetes_merge(d, HR_CLAIM, &b, err);
}

/* Makes the note that hr_kubernetes_paused_owner() reads. */
static char *
note_of(const char *owner, struct hr_err *err)
{
	HR_BUF(b, 1024);

	hr_buf_adds(&b, "{\"kind\":\"Sandbox\"");
	hr_json_put_named(&b, "uid", owner);
	hr_buf_addc(&b, '}');
	return hr_buf_end(&b, err);
}

/* Derives a new pod's body from the server's object: without the fields that the server added for
 * this one. */
static char *
pod_again(struct json_object *pod, struct hr_err *err)
{
	static const char *const own[] = {"nodeName", "priority", "preemptionPolicy"};
	struct json_object *meta = hr_json_at(pod, "metadata");
	HR_BUF(b, POD_MAX);
	HR_PUT struct json_object *copy = NULL;
	char *text;
	bool ok;
	size_t i;

	ok = json_object_deep_copy(hr_json_at(pod, "spec"), &copy, NULL) == 0;
	for (i = 0; ok && i < sizeof(own) / sizeof(*own); i++)
		json_object_object_del(copy, own[i]);
	hr_buf_adds(&b, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":");
	(void)hr_json_put(&b, hr_json_at(meta, "name"));
	hr_buf_adds(&b, ",\"labels\":");
	(void)hr_json_put(&b, hr_json_at(meta, "labels"));
	hr_buf_adds(&b, ",\"annotations\":");
	(void)hr_json_put(&b, hr_json_at(meta, "annotations"));
	hr_buf_adds(&b, "},\"spec\":");
	if (!ok || hr_json_put(&b, copy) != 0)
		ok = false;
	hr_buf_addc(&b, '}');
	text = ok ? hr_buf_take(&b) : NULL;
	return text != NULL ? text : hr_err_null(err);
}

int
hr_kubernetes_pause(struct hr_kubernetes *d, struct hr_err *err)
{
	HR_PUT struct json_object *pod = NULL;
	HR_FREE char *text = NULL;
	char owner[HR_KUBERNETES_UID], uid[HR_KUBERNETES_UID];
	int r = hr_kubernetes_get(d, HR_POD, &pod, err);
	bool owned;

	if (r <= 0)
		return r;
	owned = hr_kubernetes_owner(pod, owner);
	text = owned ? note_of(owner, err) : pod_again(pod, err);
	if (text == NULL || note_paused(d, text, err) != 0)
		return -1;
	hr_kubernetes_uid(pod, uid);
	if (!owned)
		r = hr_kubernetes_end_pod(d, uid, err);
	else if ((r = hr_kubernetes_scale(d, owner, false, pod, err)) == 0)
		r = hr_kubernetes_wait_gone(d, HR_POD, uid, err);
	return r == 0 ? 1 : -1;
}

bool
hr_kubernetes_paused_owner(const char *text, char uid[HR_KUBERNETES_UID])
{
	HR_PUT struct json_object *o = NULL;
	bool owned;

	if (hr_json_decode(text, strlen(text), &o, NULL) != 0)
		return false;
	owned = hr_json_str_is(hr_json_at(o, "kind"), "Sandbox");
	if (owned)
		(void)snprintf(uid, HR_KUBERNETES_UID, "%s", hr_json_text_or(o, "uid", ""));
	return owned;
}

/* Makes the pod by the claim's note. `owner` is the Sandbox's uid, "" if there is none; the pod's
 * uid is in pod then. */
static int
begin_again(struct hr_kubernetes *d, const char *note, const char *owner,
    char pod[HR_KUBERNETES_UID], bool *ret_was, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err e = {0};
	char path[512];
	int r;

	if (*owner == '\0') {
		hr_kubernetes_path(d, HR_POD, false, path);
		r = hr_kube_call(&d->kube, HR_KUBE_CREATE, path, note, &o, &e);
		/* another process resumes the sandbox as well, or the first answer was lost */
		if (r != 0 && hr_kube_status_is(&d->kube.status, "AlreadyExists"))
			r = hr_kubernetes_get(d, HR_POD, &o, &e) < 0 ? -1 : 0;
		hr_kubernetes_uid(o, pod);
		if (r == 0)
			return 0;
	} else if (hr_kubernetes_scale(d, owner, true, NULL, &e) == 0) {
		return 0;
	} else if (d->kube.status.code == 404 && note_paused(d, NULL, &e) == 0) {
		*ret_was = false;
		(void)hr_err_set(&e, HR_E_NO_SANDBOX,
		    "The Sandbox %s is gone: it was deleted while it was paused; \"handrail "
		    "up\" makes a new one with its files",
		    d->name);
	}
	return hr_err_pass(err, &e);
}

/* Pauses the sandbox again: a pod that did not start would obstruct the next try. */
static void
pause_again(struct hr_kubernetes *d, const char *owner, const char *pod)
{
	if (*pod != '\0')
		(void)hr_kubernetes_end_pod(d, pod, NULL);
	else if (*owner != '\0' && hr_kubernetes_scale(d, owner, false, NULL, NULL) == 0)
		(void)hr_kubernetes_wait_gone(d, HR_POD, "", NULL);
}

int
hr_kubernetes_resume(struct hr_kubernetes *d, bool *ret_was, struct hr_err *err)
{
	char owner[HR_KUBERNETES_UID] = "", pod[HR_KUBERNETES_UID] = "";
	HR_PUT struct json_object *claim = NULL;
	const char *text;
	int r = hr_kubernetes_get(d, HR_CLAIM, &claim, err);

	text = hr_kubernetes_paused(claim);
	*ret_was = r < 0 || *text != '\0';
	/* these are files of a closed sandbox, which the next one of that name uses */
	if (r > 0 && !*ret_was && hr_kubernetes_check_owner(d, claim, err) != 0) {
		*ret_was = true;
		return -1;
	}
	if (r >= 0 && !*ret_was)
		r = hr_err_set(err, HR_E_NO_SANDBOX, "Pod %s not found, and not paused.", d->name);
	if (r > 0)
		r = hr_kubernetes_check_owner(d, claim, err) == 0 ? 1 : -1;
	if (r > 0) {
		(void)hr_kubernetes_paused_owner(text, owner);
		r = begin_again(d, text, owner, pod, ret_was, err);
		if (r == 0)
			r = hr_kubernetes_wait_ready(d, err);
		if (r == 0 && *owner != '\0')
			r = hr_kubernetes_mark(d, err);
		if (r != 0 && *ret_was)
			pause_again(d, owner, pod);
		if (r == 0)
			r = note_paused(d, NULL, err);
		if (r == 0 && d->key == NULL)
			r = hr_kubernetes_read_key(d, err);
	}
	return r == 0 ? 0 : -1;
}
