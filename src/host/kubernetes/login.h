/* hr_kube_login: finds the API server's address and credentials (doc/kubernetes.md,
 * "Credentials"). */
#ifndef HR_HOST_KUBERNETES_LOGIN_H
#define HR_HOST_KUBERNETES_LOGIN_H

#include <stdint.h>

#include "base/strv.h"
#include "host/handrail.h"
#include "host/client/rest.h"

struct json_object;

struct hr_kube_login {
	char *from;     /* source of the settings, for messages */
	char *server;   /* "https://127.0.0.1:6443", without a slash at its end */
	char *tls_name; /* name in the server's certificate if it is not the address; or NULL */
	char *proxy;    /* NULL: the environment decides */
	char *ca, *cert, *key; /* texts in PEM */
	char *token;
	char *token_file, *cert_file, *key_file; /* files read again at intervals; NULL: none */
	char *dir; /* directory of the kubeconfig, where relative paths in it start */
	struct json_object *exec; /* a program that prints credentials; NULL: none */
	struct hr_strv environ;   /* environment of the program */
	bool insecure;
	bool inside;     /* this process is in the cluster */
	int64_t read_at; /* hr_now_ms() / 1000 when the files were read, or the program was run */
	int64_t expires_in; /* seconds after read_at, as the program printed; 0: unknown */
};

/* Finds the credentials, in this order: OH_K8S_API_URL, OH_K8S_TOKEN, OH_K8S_CA_FILE;
 * kubernetes.kubeconfig or KUBECONFIG (several with colons, merged); the service account of this
 * pod; ~/.kube/config. */
int hr_kube_login_init(
    struct hr_kube_login *l, const struct hr_config *c, const char *const *env, struct hr_err *err);
/* Frees l, which must be zeroed or initialised. */
void hr_kube_login_done(struct hr_kube_login *l);

/* Renews credentials that are old; with `now`, after a refusal, all that can change. */
int hr_kube_login_renew(struct hr_kube_login *l, bool now, struct hr_err *err);

/* Returns the TLS and proxy settings of a request; the strings belong to l. */
struct hr_rest_peer hr_kube_login_peer(const struct hr_kube_login *l);

/* Takes one context of a merged configuration, without its files and programs: for tests. */
int hr_kube_login_choose(
    struct hr_kube_login *l, struct json_object *merged, const char *context, struct hr_err *err);
/* Merges a kubeconfig's text; the first entry of a name counts. *merged may be NULL, for an empty
 * one. */
int hr_kube_login_merge(
    struct json_object **merged, const char *p, size_t len, const char *dir, struct hr_err *err);
/* Takes over an ExecCredential that a program printed. `now` is the Unix time. */
int hr_kube_login_take(
    struct hr_kube_login *l, const char *p, size_t len, int64_t now, struct hr_err *err);

#endif
