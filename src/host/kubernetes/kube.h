/* hr_kube: calls a Kubernetes API server. Retries an unreachable or busy server with growing,
 * random waits until the caller's time limit; errors explain the server's refusal. One thread at a
 * time may use an object. */
#ifndef HR_HOST_KUBERNETES_KUBE_H
#define HR_HOST_KUBERNETES_KUBE_H

#include "host/handrail.h"
#include "host/kubernetes/login.h"
#include "host/kubernetes/status.h"
#include "http/ws.h"

struct json_object;

struct hr_kube {
	struct hr_rest *rest;
	struct hr_kube_login login;
	char *base;                   /* the server's base URL */
	char *connect_to;             /* server's address if TLS uses another name; or NULL */
	int watch_fd;                 /* see hr_kube_give_up() */
	struct hr_kube_status status; /* status of the last failed call; code 0: no answer */
};

/* Initialises *k; patience_ms is how long to retry an unreachable server; 0: a minute. */
int hr_kube_init(struct hr_kube *k, const struct hr_config *c, const char *const *env,
    unsigned patience_ms, struct hr_err *err);
/* Makes calls fail once watch_fd is readable; -1: never. */
void hr_kube_give_up(struct hr_kube *k, int watch_fd);
void hr_kube_done(struct hr_kube *k); /* Frees k, which must be zeroed or initialised. */

/* the methods, with the content types of a PATCH */
enum hr_kube_verb {
	HR_KUBE_GET,
	HR_KUBE_CREATE, /* method POST */
	HR_KUBE_MERGE,  /* method PATCH with a merge patch */
	HR_KUBE_APPLY,  /* server-side apply, as the manager "handrail" */
	HR_KUBE_DELETE,
};

/* Sends a request to path, "/api/v1/namespaces/...", with body (JSON; NULL: none). *ret (ret may be
 * NULL) is the answer, which the caller owns. k->status has the server's reason. */
int hr_kube_call(struct hr_kube *k, enum hr_kube_verb verb, const char *path, const char *body,
    struct json_object **ret, struct hr_err *err);

/* Lists all items, in pages, until fn returns non-zero. If that is negative, fn has no memory, and
 * the list fails. selector is "labelSelector=..." escaped, or "". version (may be NULL) gets the
 * list's version, at most cap bytes, for a watch. */
typedef int hr_kube_item_fn(void *arg, struct json_object *item);
int hr_kube_list(struct hr_kube *k, const char *path, const char *selector, hr_kube_item_fn *fn,
    void *arg, char *version, size_t cap, struct hr_err *err);

enum hr_kube_event {
	/* a full list follows, object NULL: items missing from it have been deleted */
	HR_KUBE_LIST,
	HR_KUBE_LISTED,  /* the list is complete, object NULL */
	HR_KUBE_THERE,   /* the object exists, or has changed */
	HR_KUBE_DELETED, /* the object's last state */
};

/* Lists, then watches, as long as fn returns 0; resumes after a cut, and lists again if the server
 * has dropped the version. Returns 1 if fn stopped it; -1 with *err set, also after
 * hr_kube_give_up(). */
typedef int hr_kube_event_fn(void *arg, enum hr_kube_event event, struct json_object *o);
int hr_kube_watch(struct hr_kube *k, const char *path, const char *selector, hr_kube_event_fn *fn,
    void *arg, struct hr_err *err);

/* Returns a label or an annotation of an object, or `otherwise` without one. */
const char *hr_kube_label(struct json_object *o, const char *name, const char *otherwise);
const char *hr_kube_note(struct json_object *o, const char *name, const char *otherwise);

/* Passes lines of a log to fn: the existing ones, or with `follow` until fn returns non-zero or the
 * container ends. `query` follows "container=runtime", such as "&tailLines=20". */
int hr_kube_logs(struct hr_kube *k, const char *pod_path, bool follow, const char *query,
    hr_line_fn *fn, void *arg, struct hr_err *err);

/* Returns 1 if this account may do that in the namespace, 0 if not, -1 if the question failed. */
int hr_kube_may(struct hr_kube *k, const char *ns, const char *verb, const char *group,
    const char *resource, const char *sub, struct hr_err *err);

/* Opens a connection in both directions, for exec, attach and port-forward. */
struct hr_ws *
hr_kube_socket(struct hr_kube *k, const char *path, const char *protocols, struct hr_err *err);

/* ---- tests only ---- */

/* Parses a line of a watch. Returns 1 with *ret_event and *ret_object (which the caller owns); 0
 * for a bookmark, with only version set; -1 with k->status if the server has dropped the version,
 * or sent no event. version has `cap` bytes. */
int hr_kube_watch_line(const char *p, size_t len, enum hr_kube_event *ret_event,
    struct json_object **ret_object, char *version, size_t cap, struct hr_kube_status *ret);

#endif
