/* hr_kube_login: which API server, and as whom (doc/kubernetes.md, "Credentials"). */
#ifndef HR_HOST_KUBERNETES_LOGIN_H
#define HR_HOST_KUBERNETES_LOGIN_H

#include <stdint.h>

#include "base/strv.h"
#include "host/handrail.h"
#include "host/client/rest.h"

struct json_object;

struct hr_kube_login {
	char *from;            /* where all of this stands, for messages */
	char *server;          /* "https://127.0.0.1:6443", no slash at its end */
	char *tls_name;        /* the server's, where that is not its address; NULL */
	char *proxy;           /* NULL: by the environment */
	char *ca, *cert, *key; /* PEM */
	char *token;
	char *token_file, *cert_file, *key_file; /* read again; NULL: there is none */
	char *dir;                /* of the kubeconfig: what it names is relative to it */
	struct json_object *exec; /* a program that gives credentials; NULL: there is none */
	struct hr_strv environ;   /* for that program */
	bool insecure;
	bool inside;        /* this process is in the cluster */
	int64_t read_at;    /* when the files were read, or the program run: hr_now_ms(), in s */
	int64_t expires_in; /* what the program gave, seconds after that; 0: it does not say */
};

/* In this order: OH_K8S_API_URL, OH_K8S_TOKEN, OH_K8S_CA_FILE; kubernetes.kubeconfig or KUBECONFIG
 * (several with colons, merged); the service account of this pod; ~/.kube/config. */
int hr_kube_login_init(
    struct hr_kube_login *l, const struct hr_config *c, const char *const *env, struct hr_err *err);
void hr_kube_login_done(struct hr_kube_login *l); /* of one that is zeroed or initialised */

/* What may have changed is read again when it is old; now: because it was refused. */
int hr_kube_login_renew(struct hr_kube_login *l, bool now, struct hr_err *err);

/* For a request's TLS and proxy; the texts are l's. */
struct hr_rest_peer hr_kube_login_peer(const struct hr_kube_login *l);

/* One context of a merged configuration, without what its files and programs say: for tests. */
int hr_kube_login_choose(
    struct hr_kube_login *l, struct json_object *merged, const char *context, struct hr_err *err);
/* Adds a kubeconfig's text to what there is; the first of a name counts. *merged NULL: nothing. */
int hr_kube_login_merge(
    struct json_object **merged, const char *p, size_t len, const char *dir, struct hr_err *err);
/* What a program printed, an ExecCredential, is taken over. now: Unix time. */
int hr_kube_login_take(
    struct hr_kube_login *l, const char *p, size_t len, int64_t now, struct hr_err *err);

#endif
