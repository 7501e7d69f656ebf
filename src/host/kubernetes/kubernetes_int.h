/* Internals of the back-end "kubernetes": kubernetes.c is its table, make.c creates and deletes its
 * objects, wait.c waits for them. */
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
/* ---- handrail's annotations and labels ---- */
#define HR_KUBERNETES_CALL "handrail/call" /* random string of the call that made the object */
/* annotation of a claim: the pod that resumes it */
#define HR_KUBERNETES_PAUSED "handrail/paused"
/* annotation of a Sandbox's pod: handrail has seen it */
#define HR_KUBERNETES_FIRST "handrail/first"
/* label of a warm pod that was taken: its sandbox */
#define HR_KUBERNETES_TAKEN "handrail/sandbox"
#define HR_KUBERNETES_OWNER "handrail/owner" /* the owner, as hr_owner() writes it */

/* the types of objects */
enum hr_kubernetes_what {
	HR_POD,
	HR_CLAIM,
	HR_SERVICE,
	HR_CODE_SERVICE,
	HR_INGRESS,
	HR_SECRET,
	HR_POLICY,
	HR_SANDBOX, /* used only if d->agents is set */
	HR_KINDS,
};

/* The objects made by hr_kubernetes_make(). */
struct hr_kubernetes_made {
	char call[HR_KUBERNETES_CALL_DIGITS + 1];
	char uid[HR_KINDS][HR_KUBERNETES_UID]; /* uids of the objects; "": not made */
};

struct hr_kubernetes {
	const struct hr_backend_host *h;
	bool own; /* a record names the sandbox, or its owner was checked */
	struct hr_kubernetes_made made;
	bool seen;                        /* state() has looked for the pod */
	char seen_pod[HR_KUBERNETES_UID]; /* uid of the pod that state() found; "": none */
	/* uid of the Sandbox that state() found, if h->as_seen is set */
	char seen_owner[HR_KUBERNETES_UID];
	struct hr_kube kube;
	bool kube_there; /* kube was initialised, successfully or not */
	char *name;      /* pod's name, and prefix of all other names */
	char *ns, *key, *url;
	bool no_class;                  /* the storage class in the settings does not exist */
	char agents[HR_AGENTS_VERSION]; /* version of the Sandbox that makes the pod; "": none */
	struct hr_forward
	    *forward; /* NULL: the cluster's network is reachable, or there is no connection yet */
};

/* Writes the path of an object, "/api/v1/namespaces/NS/pods/NAME", or of all objects of its type;
 * path has room for 512 bytes. */
void hr_kubernetes_path(
    const struct hr_kubernetes *d, enum hr_kubernetes_what what, bool one, char *path);
const char *hr_kubernetes_kind(enum hr_kubernetes_what what);

/* ---- spec.c: request bodies; the caller owns *ret ---- */

/* Returns an object's body; `call` is a random string, see above. Returns NULL with *err set. */
char *hr_kubernetes_body(
    struct hr_kubernetes *d, enum hr_kubernetes_what what, const char *call, struct hr_err *err);

/* ---- make.c ---- */

int hr_kubernetes_open_kube(struct hr_kubernetes *d, struct hr_err *err);
/* Creates all objects. *ret says whether this call made the pod, or found another process's. */
int hr_kubernetes_make(struct hr_kubernetes *d, enum hr_connected *ret, struct hr_err *err);
/* Deletes what the last hr_kubernetes_make() has made; each failure is logged. */
void hr_kubernetes_take_back(struct hr_kubernetes *d);
/* Checks that the object may be used: it has this user's annotation, or a record names it, or any
 * owner is accepted. Returns -1 with *err naming its owner. */
int hr_kubernetes_check_owner(struct hr_kubernetes *d, struct json_object *o, struct hr_err *err);
/* Deletes all objects of the sandbox, or all except claim and Secret, that exist when it is called;
 * waits until the pod (and the claim) no longer exist. Returns 0, or -1 with *err set, also if
 * another pod has taken the name, of which nothing is deleted. */
int hr_kubernetes_end(struct hr_kubernetes *d, bool claim, struct hr_err *err);
/* Deletes the pod with this uid, and waits until it no longer exists; leaves a successor of its
 * name. */
int hr_kubernetes_end_pod(struct hr_kubernetes *d, const char *uid, struct hr_err *err);
/* Finds the Sandbox of the name, if handrail made it; uid becomes "" if there is none. */
int
hr_kubernetes_find_owner(struct hr_kubernetes *d, char uid[HR_KUBERNETES_UID], struct hr_err *err);
/* Deletes the object with this uid. Returns 0, also if there is none; 1 if another object has its
 * name, which is left alone; or -1 with *err set. *ret (ret may be NULL) is its last state, which
 * the caller owns. A Sandbox counts as deleted when its pod is. */
int hr_kubernetes_delete(struct hr_kubernetes *d, enum hr_kubernetes_what what, const char *uid,
    struct json_object **ret, struct hr_err *err);
/* Writes an object's uid, or "" if the object is NULL or has none. */
void hr_kubernetes_uid(struct json_object *o, char uid[HR_KUBERNETES_UID]);
/* Returns 1 if the object exists, 0 if not, or -1. The caller owns *ret (ret may be NULL). */
int hr_kubernetes_get(struct hr_kubernetes *d, enum hr_kubernetes_what what,
    struct json_object **ret, struct hr_err *err);

/* ---- pause.c ---- */

/* Returns 1 after pausing the sandbox, 0 if there was no pod, or -1 with *err set. */
int hr_kubernetes_pause(struct hr_kubernetes *d, struct hr_err *err);
/* Resumes a paused sandbox. *ret_was is set if it was paused; -1 without it means that there was
 * nothing to resume. */
int hr_kubernetes_resume(struct hr_kubernetes *d, bool *ret_was, struct hr_err *err);
/* Returns a claim's note on how to make the pod again, or "" if it is not paused; borrowed. */
const char *hr_kubernetes_paused(struct json_object *claim);
/* Sends a merge patch for an object; frees the text in any case. */
int hr_kubernetes_merge(
    struct hr_kubernetes *d, enum hr_kubernetes_what what, struct hr_buf *b, struct hr_err *err);
/* Returns true if the note names a Sandbox, with its uid. */
bool hr_kubernetes_paused_owner(const char *text, char uid[HR_KUBERNETES_UID]);
/* Reads the key of a sandbox that another process made. */
int hr_kubernetes_read_key(struct hr_kubernetes *d, struct hr_err *err);

/* ---- agents.c ---- */

/* Sets d->agents by the setting, for a new sandbox. */
int hr_kubernetes_choose(struct hr_kubernetes *d, struct hr_err *err);
/* Returns true if a Sandbox makes this pod, with its uid. */
bool hr_kubernetes_owner(struct json_object *pod, char uid[HR_KUBERNETES_UID]);
/* Marks the present pod of a Sandbox: if it goes, its controller makes another one, without the
 * mark. */
int hr_kubernetes_mark(struct hr_kubernetes *d, struct hr_err *err);
bool hr_kubernetes_replaced(struct json_object *pod);
/* Scales the Sandbox to one pod or none. `pod` (may be NULL) is its former pod. */
int hr_kubernetes_scale(struct hr_kubernetes *d, const char *uid, bool run, struct json_object *pod,
    struct hr_err *err);
/* Deletes a Sandbox, and waits until it and its pod no longer exist. */
int hr_kubernetes_end_owner(struct hr_kubernetes *d, const char *uid, struct hr_err *err);

/* ---- wait.c ---- */

/* Waits until the sandbox's server answers; for a Sandbox (d->agents), also for its pod. The error
 * says why it does not, with the last lines of its log. */
int hr_kubernetes_wait_ready(struct hr_kubernetes *d, struct hr_err *err);
/* Waits until the object with that uid no longer exists, even if another has its name by then; with
 * "" until there is none of that type. */
int hr_kubernetes_wait_gone(
    struct hr_kubernetes *d, enum hr_kubernetes_what what, const char *uid, struct hr_err *err);

/* ---- reach.c ---- */

/* Connects to the server: in the cluster by its service; elsewhere through the API server, with
 * `early` at once. */
int hr_kubernetes_reach(struct hr_kubernetes *d, bool early, struct hr_err *err);
/* Implements the table's call. */
void hr_kubernetes_failed(void *self, unsigned attempt, bool *ret_again, struct hr_err *err);

/* ---- exec.c ---- */

/* Runs argv in the pod, with this process's terminal or descriptors. */
int hr_kubernetes_exec(
    struct hr_kubernetes *d, const char *const *argv, int *ret_status, struct hr_err *err);

/* ---- look.c: members of the table ---- */

/* Reports on server, rights, storage, quota and image, even after a fault. */
int hr_kubernetes_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err);
/* Reports events of all of handrail's pods, by one watch, until stop_fd or fn ends it. */
int hr_kubernetes_events(void *self, hr_event_fn *fn, void *arg, struct hr_err *err);

#endif
