/* The kind "kubernetes" from inside: kubernetes.c is its table, make.c makes and ends what it
 * consists of, wait.c waits for it. */
#ifndef HR_HOST_KUBERNETES_KUBERNETES_INT_H
#define HR_HOST_KUBERNETES_KUBERNETES_INT_H

#include "host/handrail-backend.h"
#include "host/kubernetes/agents.h"
#include "host/kubernetes/forward.h"
#include "host/kubernetes/kube.h"

#define HR_KUBERNETES_PORT 8080
#define HR_KUBERNETES_VSCODE_PORT 8081
#define HR_KUBERNETES_APP_PORT1 30082
#define HR_KUBERNETES_APP_PORT2 30083
#define HR_KUBERNETES_CONTAINER "runtime"
#define HR_KUBERNETES_UID 64
#define HR_KUBERNETES_CALL_DIGITS 32
/* Annotations and labels of ours. */
#define HR_KUBERNETES_CALL "handrail/call"     /* who made the object: a random word */
#define HR_KUBERNETES_PAUSED "handrail/paused" /* of a claim: the pod that goes on with it */
#define HR_KUBERNETES_FIRST "handrail/first"   /* of a Sandbox's pod: we saw it come */
#define HR_KUBERNETES_TAKEN "handrail/sandbox" /* of one that was taken: as what */
#define HR_KUBERNETES_OWNER "handrail/owner"   /* whose it is, hr_owner() */

/* Kinds of objects. */
enum hr_kubernetes_what {
	HR_POD,
	HR_CLAIM,
	HR_SERVICE,
	HR_CODE_SERVICE,
	HR_INGRESS,
	HR_SECRET,
	HR_POLICY,
	HR_SANDBOX, /* only where d->agents says so */
	HR_KINDS,
};

/* Objects that hr_kubernetes_make() has made. */
struct hr_kubernetes_made {
	char call[HR_KUBERNETES_CALL_DIGITS + 1];
	char uid[HR_KINDS][HR_KUBERNETES_UID]; /* "": it made none */
};

struct hr_kubernetes {
	const struct hr_backend_host *h;
	bool own; /* a record leads to it, or its owner has been looked at */
	struct hr_kubernetes_made made;
	bool seen;                          /* state() has looked for the pod */
	char seen_pod[HR_KUBERNETES_UID];   /* uid of the pod that it saw; "": there was none */
	char seen_owner[HR_KUBERNETES_UID]; /* the same of the Sandbox, where h->as_seen is set */
	struct hr_kube kube;
	bool kube_there; /* it was looked for */
	char *name;      /* of the pod, and the beginning of all other names */
	char *ns, *key, *url;
	bool no_class;                  /* there is no storage class of the name in the settings */
	char agents[HR_AGENTS_VERSION]; /* of the Sandbox that makes the pod; "": none does */
	struct hr_forward
	    *forward; /* NULL: the cluster's network is ours, or nothing is there yet */
};

/* The path of an object, "/api/v1/namespaces/NS/pods/NAME", or of all of its kind; path has room
 * for 512. */
void hr_kubernetes_path(
    const struct hr_kubernetes *d, enum hr_kubernetes_what what, bool one, char *path);
const char *hr_kubernetes_kind(enum hr_kubernetes_what what);

/* ---- spec.c: the objects; *ret is the caller's ---- */

/* call: a random word, see above. NULL: *err. */
char *hr_kubernetes_body(
    struct hr_kubernetes *d, enum hr_kubernetes_what what, const char *call, struct hr_err *err);

/* ---- make.c ---- */

int hr_kubernetes_open_kube(struct hr_kubernetes *d, struct hr_err *err);
/* *ret: it made the pod, or found the one of another process. */
int hr_kubernetes_make(struct hr_kubernetes *d, enum hr_connected *ret, struct hr_err *err);
/* Deletes what the last hr_kubernetes_make() has made; each failure is logged. */
void hr_kubernetes_take_back(struct hr_kubernetes *d);
/* An object of that name may be used: it has this user's annotation, or a record leads to it, or
 * any owner's will do. -1: *err names its owner. */
int hr_kubernetes_check_owner(struct hr_kubernetes *d, struct json_object *o, struct hr_err *err);
/* Deletes all objects of the sandbox, or all but claim and Secret, as they are when it is called;
 * waits until the pod (and the claim) are gone. Returns 0, or -1 with *err set, also where
 * another pod has taken the name, of which nothing is deleted. */
int hr_kubernetes_end(struct hr_kubernetes *d, bool claim, struct hr_err *err);
/* Deletes the pod of this uid, and waits until it is gone; one that has taken its name stays. */
int hr_kubernetes_end_pod(struct hr_kubernetes *d, const char *uid, struct hr_err *err);
/* Finds the Sandbox of the name, if handrail made it; uid "": there is none. */
int
hr_kubernetes_find_owner(struct hr_kubernetes *d, char uid[HR_KUBERNETES_UID], struct hr_err *err);
/* Deletes the object of this uid: 0 also if there is none, 1 if another one has its name, which is
 * left alone, or -1 with *err set. *ret (may be NULL) is the object as it was, the caller's. A
 * Sandbox is gone when its pod is. */
int hr_kubernetes_delete(struct hr_kubernetes *d, enum hr_kubernetes_what what, const char *uid,
    struct json_object **ret, struct hr_err *err);
/* The uid of an object; "": NULL, or it has none. */
void hr_kubernetes_uid(struct json_object *o, char uid[HR_KUBERNETES_UID]);
/* Is it there? 1, 0, -1; *ret (may be NULL) is the caller's. */
int hr_kubernetes_get(struct hr_kubernetes *d, enum hr_kubernetes_what what,
    struct json_object **ret, struct hr_err *err);

/* ---- pause.c ---- */

/* 1 it is paused now, 0 there was no pod, -1 *err. */
int hr_kubernetes_pause(struct hr_kubernetes *d, struct hr_err *err);
/* *ret_was: it was paused; -1 without it: there is nothing to resume. */
int hr_kubernetes_resume(struct hr_kubernetes *d, bool *ret_was, struct hr_err *err);
/* How the pod of a claim is made again; "": it is not paused. Borrowed. */
const char *hr_kubernetes_paused(struct json_object *claim);
/* A merge patch of one; the text is done with, whatever comes of it. */
int hr_kubernetes_merge(
    struct hr_kubernetes *d, enum hr_kubernetes_what what, struct hr_buf *b, struct hr_err *err);
/* true: that is by a Sandbox, of this uid. */
bool hr_kubernetes_paused_owner(const char *text, char uid[HR_KUBERNETES_UID]);
/* The key of one that another process made. */
int hr_kubernetes_read_key(struct hr_kubernetes *d, struct hr_err *err);

/* ---- agents.c ---- */

/* Sets d->agents by the setting, for one that is made. */
int hr_kubernetes_choose(struct hr_kubernetes *d, struct hr_err *err);
/* true: a Sandbox makes this pod, of that uid. */
bool hr_kubernetes_owner(struct json_object *pod, char uid[HR_KUBERNETES_UID]);
/* The pod of a Sandbox that came is marked, for its controller makes another one where that goes:
 * one without our mark. */
int hr_kubernetes_mark(struct hr_kubernetes *d, struct hr_err *err);
bool hr_kubernetes_replaced(struct json_object *pod);
/* The Sandbox has a pod or none from now on. pod (may be NULL): what it was. */
int hr_kubernetes_scale(struct hr_kubernetes *d, const char *uid, bool run, struct json_object *pod,
    struct hr_err *err);
/* Deletes a Sandbox, and waits until it is gone with its pod. */
int hr_kubernetes_end_owner(struct hr_kubernetes *d, const char *uid, struct hr_err *err);

/* ---- wait.c ---- */

/* Until its server answers, of a Sandbox (d->agents) from before there is a pod; an error says why
 * it does not, with the last lines of its log. */
int hr_kubernetes_wait_ready(struct hr_kubernetes *d, struct hr_err *err);
/* Waits until the object with that uid is gone, whose name another one may have by then; "": until
 * there is none of that kind. */
int hr_kubernetes_wait_gone(
    struct hr_kubernetes *d, enum hr_kubernetes_what what, const char *uid, struct hr_err *err);

/* ---- reach.c ---- */

/* In the cluster by its service; from elsewhere through the API server, early: at once. */
int hr_kubernetes_reach(struct hr_kubernetes *d, bool early, struct hr_err *err);
/* As in the table. */
void hr_kubernetes_failed(void *self, unsigned attempt, bool *ret_again, struct hr_err *err);

/* ---- exec.c ---- */

/* argv in the pod, with our terminal or our files. */
int hr_kubernetes_exec(
    struct hr_kubernetes *d, const char *const *argv, int *ret_status, struct hr_err *err);

#endif
