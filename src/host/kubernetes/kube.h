/* hr_kube: calls of a Kubernetes API server. What cannot be reached, or is busy, is asked again
 * with growing, random waits until the caller's patience ends; an error says in words what the
 * server said. One thread uses one at a time. */
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
	char *base;                   /* the server as URLs have it */
	char *connect_to;             /* its address where TLS has another name; NULL */
	int watch_fd;                 /* see hr_kube_give_up() */
	struct hr_kube_status status; /* of the last call that failed; code 0: nobody answered */
};

/* patience_ms: as long a server is waited for that cannot be reached; 0: a minute. */
int hr_kube_init(struct hr_kube *k, const struct hr_config *c, const char *const *env,
    unsigned patience_ms, struct hr_err *err);
/* Readable: whatever is asked is given up; -1: never. */
void hr_kube_give_up(struct hr_kube *k, int watch_fd);
void hr_kube_done(struct hr_kube *k); /* of one that is zeroed or initialised */

/* What is sent, and how: the content types of a PATCH. */
enum hr_kube_verb {
	HR_KUBE_GET,
	HR_KUBE_CREATE, /* POST */
	HR_KUBE_MERGE,  /* PATCH with a merge patch */
	HR_KUBE_APPLY,  /* server-side apply, as the manager "handrail" */
	HR_KUBE_DELETE,
};

/* path: "/api/v1/namespaces/...". body: JSON text; NULL: none. *ret (may be NULL) is the answer,
 * the caller's. k->status has the server's reason. */
int hr_kube_call(struct hr_kube *k, enum hr_kube_verb verb, const char *path, const char *body,
    struct json_object **ret, struct hr_err *err);

/* Each item of a list, in pages; fn non-zero stops. selector: "labelSelector=..." escaped, or "".
 * version (may be NULL): of the list, at most cap bytes, for a watch. */
typedef int hr_kube_item_fn(void *arg, struct json_object *item);
int hr_kube_list(struct hr_kube *k, const char *path, const char *selector, hr_kube_item_fn *fn,
    void *arg, char *version, size_t cap, struct hr_err *err);

enum hr_kube_event {
	HR_KUBE_LIST,    /* a whole list comes, object NULL: what is not in it is gone */
	HR_KUBE_LISTED,  /* it is complete, object NULL */
	HR_KUBE_THERE,   /* is there, or has changed */
	HR_KUBE_DELETED, /* the object as it was last */
};

/* Lists, then watches from there, for as long as fn returns 0; goes on after a cut, and lists again
 * where the server has forgotten. 1: fn stopped it; -1 *err, also when it was given up. */
typedef int hr_kube_event_fn(void *arg, enum hr_kube_event event, struct json_object *o);
int hr_kube_watch(struct hr_kube *k, const char *path, const char *selector, hr_kube_event_fn *fn,
    void *arg, struct hr_err *err);

/* Lines of a log: what there is, or until fn returns non-zero or the container ends. query: what
 * follows "container=runtime", as "&tailLines=20". */
int hr_kube_logs(struct hr_kube *k, const char *pod_path, bool follow, const char *query,
    hr_line_fn *fn, void *arg, struct hr_err *err);

/* 1: this account may do that in the namespace, 0: it may not; -1: it cannot be asked. */
int hr_kube_may(struct hr_kube *k, const char *ns, const char *verb, const char *group,
    const char *resource, const char *sub, struct hr_err *err);

/* A connection in both directions, for exec, attach and port-forward. */
struct hr_ws *
hr_kube_socket(struct hr_kube *k, const char *path, const char *protocols, struct hr_err *err);

/* ---- for tests ---- */

/* One line of a watch. 1: *ret_event and *ret_object (the caller's) are set; 0: a bookmark, only
 * version is; -1: the server has forgotten, or says what is no event: k->status. version has `cap`
 * bytes. */
int hr_kube_watch_line(const char *p, size_t len, enum hr_kube_event *ret_event,
    struct json_object **ret_object, char *version, size_t cap, struct hr_kube_status *ret);

#endif
