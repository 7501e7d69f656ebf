/* hr_kube_why: how far a pod is, and in words why it does not come. Pure. */
#ifndef HR_HOST_KUBERNETES_WHY_H
#define HR_HOST_KUBERNETES_WHY_H

#include <stdbool.h>

struct json_object;

enum hr_kube_progress {
	HR_KUBE_COMING,
	HR_KUBE_STUCK,   /* no node takes it: that may pass */
	HR_KUBE_RUNNING, /* its program runs; it is not ready yet */
	HR_KUBE_READY,
	HR_KUBE_ENDING, /* it is being deleted */
	HR_KUBE_FAILED, /* it will not come any more */
};

struct hr_kube_why {
	enum hr_kube_progress progress;
	bool ran;       /* there may be a log */
	char text[600]; /* of STUCK, ENDING and FAILED */
	bool unbound;   /* no node takes it before its claim has a volume */
};

/* pod: as the server has it, or anything else. */
void hr_kube_why(struct hr_kube_why *ret, struct json_object *pod);

#endif
