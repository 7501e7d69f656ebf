/* hr_kube_why: judges a pod's progress, and explains why it is stuck. No I/O. */
#ifndef HR_HOST_KUBERNETES_WHY_H
#define HR_HOST_KUBERNETES_WHY_H

#include <stdbool.h>

struct json_object;

enum hr_kube_progress {
	HR_KUBE_COMING,
	HR_KUBE_STUCK,   /* no node accepts the pod, which may be temporary */
	HR_KUBE_RUNNING, /* the program runs and is not ready yet */
	HR_KUBE_READY,
	HR_KUBE_ENDING, /* the pod is being deleted */
	HR_KUBE_FAILED, /* the failure is final */
};

struct hr_kube_why {
	enum hr_kube_progress progress;
	bool ran;       /* there may be a log */
	char text[600]; /* explains STUCK, ENDING and FAILED */
	bool unbound;   /* no node accepts it before its claim has a volume */
};

/* Judges a pod object of the server, or anything else. */
void hr_kube_why(struct hr_kube_why *ret, struct json_object *pod);

#endif
