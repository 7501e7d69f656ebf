/* Explains a pod's status, with a remedy. */
#include "config.h"

#include "host/kubernetes/why.h"

#include <stdio.h>
#include <string.h>

#include "base/span.h"
#include "host/kubernetes/status.h"
#include "proto/json.h"

#define SHOWN 360

static const char *
words(char to[SHOWN], const char *text)
{
	hr_kube_status_text(to, SHOWN, text, strlen(text));
	return to;
}

static struct json_object *
condition(struct json_object *status, const char *type)
{
	return hr_json_find(hr_json_at(status, "conditions"), "type", type);
}

static void
terminated(struct hr_kube_why *ret, struct json_object *t)
{
	const char *reason = hr_json_text_or(t, "reason", "");
	char text[SHOWN];

	ret->progress = HR_KUBE_FAILED;
	ret->ran = true;
	if (strcmp(reason, "OOMKilled") == 0)
		(void)snprintf(ret->text, sizeof(ret->text),
		    "it ran out of memory and was killed; kubernetes.resource_memory_limit is its "
		    "limit");
	else if (strcmp(reason, "StartError") == 0 || strcmp(reason, "ContainerCannotRun") == 0)
		(void)snprintf(ret->text, sizeof(ret->text), "its program cannot be started: %s",
		    words(text, hr_json_text_or(t, "message", "")));
	else
		(void)snprintf(ret->text, sizeof(ret->text), "its program has ended with status %d",
		    (int)hr_json_int_at(t, "exitCode"));
}

static void
waiting(struct hr_kube_why *ret, struct json_object *container, struct json_object *w)
{
	static const char *const image[] = {"ImagePullBackOff", "InvalidImageName",
	    "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", NULL};
	static const char *const start[] = {"CreateContainerConfigError", "CreateContainerError",
	    "RunContainerError", "CrashLoopBackOff", NULL};
	const char *reason = hr_json_text_or(w, "reason", "");
	const char *message = hr_json_text_or(w, "message", "");
	bool final = strstr(message, "not found") != NULL || strstr(message, "denied") != NULL ||
		     strstr(message, "unauthorized") != NULL;
	char name[SHOWN], text[SHOWN];

	/* a failed pull may succeed later, but not if the image does not exist */
	if (hr_is_one_of(reason, image) || (strcmp(reason, "ErrImagePull") == 0 && final)) {
		ret->progress = HR_KUBE_FAILED;
		(void)snprintf(ret->text, sizeof(ret->text),
		    "its image %.160s is not available (%s): %s",
		    words(name, hr_json_text_or(container, "image", "")), reason,
		    words(text, message));
	} else if (hr_is_one_of(reason, start)) {
		ret->progress = HR_KUBE_FAILED;
		ret->ran = strcmp(reason, "CrashLoopBackOff") == 0;
		(void)snprintf(ret->text, sizeof(ret->text),
		    "its container cannot be started (%s): %s", reason, words(text, message));
	}
}

static void
scheduled(struct hr_kube_why *ret, struct json_object *status)
{
	struct json_object *c = condition(status, "PodScheduled");
	const char *message = hr_json_text_or(c, "message", "");
	char text[SHOWN];

	if (strcmp(hr_json_text_or(c, "status", ""), "False") != 0 ||
	    strcmp(hr_json_text_or(c, "reason", ""), "Unschedulable") != 0)
		return;
	/* the volume is being provisioned */
	ret->unbound = strcasestr(message, "persistentvolumeclaim") != NULL;
	if (ret->unbound)
		return;
	ret->progress = HR_KUBE_STUCK;
	(void)snprintf(ret->text, sizeof(ret->text), "no node takes it: %s", words(text, message));
}

static void
ended(struct hr_kube_why *ret, struct json_object *status, struct json_object *container)
{
	struct json_object *t = hr_json_at(hr_json_at(container, "state"), "terminated");
	const char *reason = hr_json_text_or(status, "reason", "");
	char text[SHOWN], shown[SHOWN];

	ret->progress = HR_KUBE_FAILED;
	if (strcmp(reason, "Evicted") == 0 || t == NULL)
		(void)snprintf(ret->text, sizeof(ret->text), "%s%.100s: %s",
		    strcmp(reason, "Evicted") == 0 ? "its node was short of something and sent it "
						     "away: "
						   : "it has failed: ",
		    words(shown, reason), words(text, hr_json_text_or(status, "message", "")));
	else
		terminated(ret, t);
}

void
hr_kube_why(struct hr_kube_why *ret, struct json_object *pod)
{
	struct json_object *status = hr_json_at(pod, "status"), *container, *state;
	const char *phase = hr_json_text_or(status, "phase", "");
	bool ready = strcmp(hr_json_text_or(condition(status, "Ready"), "status", ""), "True") == 0;

	memset(ret, 0, sizeof(*ret));
	container = hr_json_entry(hr_json_at(status, "containerStatuses"), 0);
	state = hr_json_at(container, "state");
	ret->ran = hr_json_at(state, "running") != NULL;
	if (strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0) {
		ended(ret, status, container);
	} else if (hr_json_at(hr_json_at(pod, "metadata"), "deletionTimestamp") != NULL) {
		ret->progress = HR_KUBE_ENDING;
		(void)snprintf(ret->text, sizeof(ret->text), "it is being deleted");
	} else if (strcmp(phase, "Running") == 0 && ready) {
		ret->progress = HR_KUBE_READY;
	} else if (hr_json_at(state, "terminated") != NULL) {
		terminated(ret, hr_json_at(state, "terminated"));
	} else if (ret->ran) {
		ret->progress = HR_KUBE_RUNNING;
	} else if (hr_json_at(state, "waiting") != NULL) {
		waiting(ret, container, hr_json_at(state, "waiting"));
	} else {
		scheduled(ret, status);
	}
}
