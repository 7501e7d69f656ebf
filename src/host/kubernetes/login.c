/* Finds credentials: from a kubeconfig, a pod's service account, or variables. A kubeconfig's files
 * may change while handrail runs; a program's credentials expire. */
#include "config.h"

#include "host/kubernetes/login.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/trust.h"
#include "base/err.h"
#include "base/text/quote.h"
#include "base/text/text.h"
#include "host/config/settings.h"
#include "host/kubernetes/execcred.h"
#include "host/kubernetes/yaml.h"
#include "proto/json.h"

#define FILE_CAP (1u << 20)
#define REREAD_S 60
#define EARLY_S 60 /* maximum seconds of a renewal before credentials expire */
#define POD_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
#define NO_CLIENT                                                                                  \
	"Failed to initialize Kubernetes client. Make sure you have kubectl configured correctly " \
	"or are running in a Kubernetes cluster."

void
hr_kube_login_done(struct hr_kube_login *l)
{
	free(l->from);
	free(l->server);
	free(l->tls_name);
	free(l->proxy);
	free(l->ca);
	free(l->cert);
	free(l->key);
	free(l->token);
	free(l->token_file);
	free(l->cert_file);
	free(l->key_file);
	free(l->dir);
	json_object_put(l->exec);
	hr_strv_done(&l->environ);
	memset(l, 0, sizeof(*l));
}

static int
read_file(char **to, const char *path, struct hr_err *err)
{
	struct hr_err why = {0};
	HR_BUF(b, FILE_CAP);
	int r;

	r = hr_path_read(path, &b, &why);
	if (r != 0)
		(void)hr_err_from(err, HR_E_INVAL, &why);
	else if (memchr(hr_buf_str(&b), '\0', b.len) != NULL)
		r = hr_err_set(err, HR_E_INVAL, "%s is not a string", path);
	else
		r = hr_text_set(to, hr_buf_str(&b), err);
	return r;
}

/* Reads a token of one line. */
static int
read_token(struct hr_kube_login *l, struct hr_err *err)
{
	char *text = NULL;

	if (read_file(&text, l->token_file, err) != 0)
		return -1;
	text[strcspn(text, "\r\n")] = '\0';
	free(l->token);
	l->token = text;
	return 0;
}

/* ---- kubeconfig ---- */

static int
append(struct json_object *to, const char *list, struct json_object *entry, const char *dir)
{
	struct json_object *v = hr_json_at(to, list);

	if (v == NULL) {
		v = json_object_new_array();
		if (hr_json_set(to, list, v, NULL) != 0)
			return -1;
	}
	return hr_json_set(entry, "_dir", json_object_new_string(dir), NULL) == 0
		   ? hr_json_append(v, json_object_get(entry), NULL)
		   : -1;
}

int
hr_kube_login_merge(
    struct json_object **merged, const char *p, size_t len, const char *dir, struct hr_err *err)
{
	static const char *const lists[] = {"clusters", "contexts", "users"};
	struct json_object *v;
	HR_PUT struct json_object *o = NULL;
	const char *current, *name;
	int bad = 0;
	size_t i;

	if (hr_yaml_read(p, len, &o, err) != 0)
		return -1;
	if (o != NULL && !json_object_is_type(o, json_type_object))
		return hr_err_set(err, HR_E_INVAL, "the kubeconfig must be a map of YAML");
	if (*merged == NULL)
		*merged = json_object_new_object();
	bad = *merged == NULL;
	for (i = 0; bad == 0 && i < sizeof(lists) / sizeof(*lists); i++) {
		size_t j;

		v = hr_json_at(o, lists[i]);
		for (j = 0; bad == 0 && j < hr_json_count(v); j++) {
			name = hr_json_text_at(hr_json_entry(v, j), "name");
			if (name != NULL &&
			    hr_json_find(hr_json_at(*merged, lists[i]), "name", name) == NULL)
				bad = append(*merged, lists[i], hr_json_entry(v, j), dir);
		}
	}
	current = hr_json_text_or(o, "current-context", "");
	if (bad == 0 && *current != '\0' && hr_json_at(*merged, "current-context") == NULL)
		bad = json_object_object_add(
		    *merged, "current-context", json_object_new_string(current));
	return bad == 0 ? 0 : hr_err_nomem(err);
}

/* Decodes base64 that YAML may have broken into lines. */
static bool
decode(struct hr_buf *b, const char *data)
{
	HR_BUF(plain, FILE_CAP);

	for (; *data != '\0'; data++)
		if (strchr(" \t\r\n", *data) == NULL)
			hr_buf_addc(&plain, *data);
	return hr_quote_unbase64(b, hr_buf_str(&plain), plain.len) &&
	       hr_buf_check(&plain, NULL) == 0 && hr_buf_check(b, NULL) == 0;
}

/* Reads a PEM text of the kubeconfig: base64 in NAME-data, or a file in NAME. */
static int
pem(char **to, char **ret_file, struct json_object *o, const char *name, const char *dir,
    struct hr_err *err)
{
	const char *file = hr_json_text_at(o, name), *data;
	char field[64], *path;
	HR_BUF(b, FILE_CAP);
	int r;

	(void)snprintf(field, sizeof(field), "%s-data", name);
	data = hr_json_text_at(o, field);
	if (data != NULL && *data != '\0')
		return decode(&b, data) ? hr_text_set(to, hr_buf_str(&b), err)
					: hr_err_set(err, HR_E_INVAL, "%s is not base64", field);
	if (file == NULL || *file == '\0')
		return 0;
	path = hr_path_join(dir, file);
	if (path == NULL)
		return hr_err_nomem(err);
	if (ret_file == NULL) {
		r = read_file(to, path, err);
		free(path);
		return r;
	}
	free(*ret_file);
	*ret_file = path;
	return 0;
}

static bool
is_true(struct json_object *o, const char *name)
{
	return strcmp(hr_json_text_or(o, name, ""), "true") == 0;
}

static int
take_cluster(struct hr_kube_login *l, struct json_object *entry, struct hr_err *err)
{
	struct json_object *o = hr_json_at(entry, "cluster");
	const char *server = hr_json_text_or(o, "server", "");
	const char *name = hr_json_text_or(o, "tls-server-name", "");
	const char *proxy = hr_json_text_or(o, "proxy-url", "");
	size_t n;

	if (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0)
		return hr_err_set(err, HR_E_INVAL, "the cluster \"%s\" has no server",
		    hr_json_text_or(entry, "name", ""));
	if (hr_text_set(&l->server, server, err) != 0 ||
	    (*name != '\0' && hr_text_set(&l->tls_name, name, err) != 0) ||
	    (*proxy != '\0' && hr_text_set(&l->proxy, proxy, err) != 0))
		return -1;
	for (n = strlen(l->server); n > 0 && l->server[n - 1] == '/'; n--)
		l->server[n - 1] = '\0';
	l->insecure = is_true(o, "insecure-skip-tls-verify");
	return pem(
	    &l->ca, NULL, o, "certificate-authority", hr_json_text_or(entry, "_dir", ""), err);
}

static int
take_user(struct hr_kube_login *l, struct json_object *entry, struct hr_err *err)
{
	struct json_object *o = hr_json_at(entry, "user"), *exec = hr_json_at(o, "exec");
	const char *dir = hr_json_text_or(entry, "_dir", "");
	const char *token = hr_json_text_or(o, "token", "");
	const char *file = hr_json_text_or(o, "tokenFile", "");

	if (hr_json_at(o, "auth-provider") != NULL || hr_json_at(o, "username") != NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "the user \"%s\" has \"%s\", which API servers do not take any more: use a "
		    "token, a certificate or exec",
		    hr_json_text_or(entry, "name", ""),
		    hr_json_at(o, "username") != NULL ? "username" : "auth-provider");
	if (hr_text_set(&l->dir, dir, err) != 0 ||
	    (*token != '\0' && hr_text_set(&l->token, token, err) != 0))
		return -1;
	/* as in kubectl, the file takes precedence */
	if (*file != '\0' && (l->token_file = hr_path_join(dir, file)) == NULL)
		return hr_err_nomem(err);
	if (json_object_is_type(exec, json_type_object))
		l->exec = json_object_get(exec);
	return pem(&l->cert, &l->cert_file, o, "client-certificate", dir, err) == 0
		   ? pem(&l->key, &l->key_file, o, "client-key", dir, err)
		   : -1;
}

int
hr_kube_login_choose(
    struct hr_kube_login *l, struct json_object *merged, const char *context, struct hr_err *err)
{
	const char *cluster, *user, *name = context;
	struct json_object *o, *c;

	if (name == NULL)
		name = hr_json_text_or(merged, "current-context", "");
	if (*name == '\0')
		return hr_err_set(err, HR_E_INVAL,
		    "the kubeconfig has no current-context; name one in kubernetes.context");
	o = hr_json_at(hr_json_find(hr_json_at(merged, "contexts"), "name", name), "context");
	if (o == NULL)
		return hr_err_set(err, HR_E_INVAL, "the kubeconfig has no context \"%s\"", name);
	cluster = hr_json_text_or(o, "cluster", "");
	user = hr_json_text_or(o, "user", "");
	if ((c = hr_json_find(hr_json_at(merged, "clusters"), "name", cluster)) == NULL)
		return hr_err_set(err, HR_E_INVAL, "the kubeconfig has no cluster \"%s\"", cluster);
	if (take_cluster(l, c, err) != 0)
		return -1;
	c = hr_json_find(hr_json_at(merged, "users"), "name", user);
	if (c == NULL && *user != '\0')
		return hr_err_set(err, HR_E_INVAL, "the kubeconfig has no user \"%s\"", user);
	return c != NULL ? take_user(l, c, err) : 0;
}

/* Merges a kubeconfig; paths in it are relative to its directory. */
static int
merge_file(struct json_object **merged, const char *path, struct hr_err *err)
{
	struct hr_err why = {0};
	HR_BUF(b, FILE_CAP);
	char *slash;
	HR_FREE char *whole = hr_path_absolute(path, &why);
	int r = -1;

	if (whole == NULL) {
		(void)hr_err_from(err, HR_E_INVAL, &why);
	} else if (hr_trust_read(path, HR_TRUST_NOBODY, &b, &why) != 0) {
		/* files of a list may be missing */
		r = why.code == HR_E_SYS && why.sys == ENOENT ? 0
							      : hr_err_from(err, HR_E_INVAL, &why);
	} else {
		slash = strrchr(whole, '/');
		if (slash != NULL)
			slash[slash == whole] = '\0';
		r = hr_kube_login_merge(merged, hr_buf_str(&b), b.len, whole, err);
	}
	return r;
}

static int
from_kubeconfig(struct hr_kube_login *l, const char *files, const char *context, struct hr_err *err)
{
	HR_PUT struct json_object *merged = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv paths = {0};
	const char *end, *p;
	int r = 0;
	size_t i;

	for (p = files; *p != '\0'; p = *end == ':' ? end + 1 : end) {
		end = strchrnul(p, ':');
		if (end > p)
			hr_strv_addf(&paths, "%.*s", (int)(end - p), p);
	}
	for (i = 0; r == 0 && i < paths.n; i++)
		r = merge_file(&merged, paths.v[i], err);
	if (paths.failed)
		r = hr_err_nomem(err);
	if (r == 0 && merged == NULL)
		r = hr_err_set(err, HR_E_INVAL, NO_CLIENT " There is no %s.", files);
	if (r == 0)
		r = hr_kube_login_choose(l, merged, context, err);
	if (r == 0)
		r = hr_text_set(&l->from, files, err);
	return r;
}

/* ---- other sources ---- */

static int
from_variables(struct hr_kube_login *l, const char *url, const char *const *env, struct hr_err *err)
{
	const char *token = hr_env_get(env, "OH_K8S_TOKEN"),
		   *ca = hr_env_get(env, "OH_K8S_CA_FILE");
	size_t n;

	if (hr_text_set(&l->from, "OH_K8S_API_URL", err) != 0 ||
	    hr_text_set(&l->server, url, err) != 0 ||
	    (token != NULL && hr_text_set(&l->token, token, err) != 0) ||
	    (ca != NULL && read_file(&l->ca, ca, err) != 0))
		return -1;
	for (n = strlen(l->server); n > 0 && l->server[n - 1] == '/'; n--)
		l->server[n - 1] = '\0';
	return 0;
}

static int
from_pod(struct hr_kube_login *l, const char *host, const char *port, struct hr_err *err)
{
	bool v6 = strchr(host, ':') != NULL;
	struct hr_err why = {0};

	if (hr_text_setf(&l->server, err, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
		port) != 0)
		return -1;
	l->inside = true;
	if (hr_text_set(&l->from, POD_DIR, err) != 0 ||
	    hr_text_set(&l->token_file, POD_DIR "/token", err) != 0)
		return -1;
	if (read_file(&l->ca, POD_DIR "/ca.crt", &why) != 0)
		return hr_err_set(err, HR_E_INVAL, NO_CLIENT " %s", why.msg);
	return 0;
}

int
hr_kube_login_init(
    struct hr_kube_login *l, const struct hr_config *c, const char *const *env, struct hr_err *err)
{
	const char *url = hr_env_get(env, "OH_K8S_API_URL"), *home = hr_env_get(env, "HOME");
	const char *files = hr_config_text(c, "kubernetes.kubeconfig");
	const char *context = hr_config_text(c, "kubernetes.context");
	const char *host = hr_env_get(env, "KUBERNETES_SERVICE_HOST");
	const char *port = hr_env_get(env, "KUBERNETES_SERVICE_PORT");
	HR_FREE char *standard = NULL;
	int r;

	memset(l, 0, sizeof(*l));
	hr_strv_add_all(&l->environ, env);
	/* the variable is reserved for the sandbox */
	hr_strv_unset_env(&l->environ, "SESSION_API_KEY");
	if (files == NULL)
		files = hr_env_get(env, "KUBECONFIG");
	if (l->environ.failed)
		r = hr_err_nomem(err);
	else if (url != NULL)
		r = from_variables(l, url, env, err);
	else if (files != NULL)
		r = from_kubeconfig(l, files, context, err);
	else if (host != NULL && port != NULL && access(POD_DIR "/token", R_OK) == 0)
		r = from_pod(l, host, port, err);
	else if (home == NULL)
		r = hr_err_set(err, HR_E_INVAL, NO_CLIENT);
	else if ((r = hr_text_setf(&standard, err, "%s/.kube/config", home)) == 0)
		r = from_kubeconfig(l, standard, context, err);
	/* otherwise the first use would take the credentials for new ones */
	l->read_at = -REREAD_S;
	if (r != 0)
		hr_kube_login_done(l);
	return r;
}

/* ---- renewal ---- */

/* Parses the zone of an RFC 3339 time, after the seconds: *ret is seconds east of UTC, 0 without a
 * zone. Returns -1 for anything else. */
static int
zone_of(const char *p, long *ret)
{
	int hours, minutes, n = 0;

	*ret = 0;
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	if (*p == '\0' || strcmp(p, "Z") == 0 || strcmp(p, "z") == 0)
		return 0;
	if ((*p != '+' && *p != '-') || strspn(p + 1, "0123456789:") != strlen(p + 1) ||
	    sscanf(p + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 || p[1 + n] != '\0' || n != 5 ||
	    hours > 23 || minutes > 59)
		return -1;
	*ret = (*p == '-' ? -1L : 1L) * (hours * 3600L + minutes * 60L);
	return 0;
}

int
hr_kube_login_take(
    struct hr_kube_login *l, const char *p, size_t len, int64_t now, struct hr_err *err)
{
	struct json_object *s;
	HR_PUT struct json_object *o = NULL;
	const char *token, *cert, *key, *end, *rest;
	struct tm t = {0};
	int64_t ends;
	long zone = 0;
	int r = 0;

	if (hr_json_decode_foreign(p, len, &o, NULL) != 0 ||
	    strcmp(hr_json_text_or(o, "kind", ""), "ExecCredential") != 0)
		return hr_err_set(err, HR_E_INVAL, "it printed no ExecCredential");
	s = hr_json_at(o, "status");
	token = hr_json_text_or(s, "token", "");
	cert = hr_json_text_or(s, "clientCertificateData", "");
	key = hr_json_text_or(s, "clientKeyData", "");
	end = hr_json_text_or(s, "expirationTimestamp", "");
	l->expires_in = 0;
	if (*token == '\0' && (*cert == '\0' || *key == '\0'))
		r = hr_err_set(err, HR_E_INVAL, "it gave neither a token nor a certificate");
	else if (*end != '\0' && ((rest = strptime(end, "%Y-%m-%dT%H:%M:%S", &t)) == NULL ||
				     zone_of(rest, &zone) != 0))
		r = hr_err_set(err, HR_E_INVAL, "its expirationTimestamp is not a time: %s", end);
	if (r == 0 && *token != '\0')
		r = hr_text_set(&l->token, token, err);
	if (r == 0 && *cert != '\0')
		r = hr_text_set(&l->cert, cert, err) == 0 ? hr_text_set(&l->key, key, err) : -1;
	if (r == 0 && *end != '\0') {
		ends = (int64_t)timegm(&t) - zone;
		l->expires_in = ends > now ? ends - now : 1;
	}
	return r;
}

static int
run_program(struct hr_kube_login *l, struct hr_err *err)
{
	struct hr_err why = {0};
	HR_BUF(b, FILE_CAP);
	int r;

	r = hr_execcred_run(l->exec, l->dir, &l->environ, &b, &why);
	if (r == 0)
		r = hr_kube_login_take(l, hr_buf_str(&b), b.len, time(NULL), &why);
	if (r != 0)
		(void)hr_err_set(err, HR_E_PERMISSION,
		    "the program that gives credentials, %s of %s: %s",
		    hr_json_text_or(l->exec, "command", "?"), l->from, why.msg);
	return r;
}

int
hr_kube_login_renew(struct hr_kube_login *l, bool now, struct hr_err *err)
{
	int64_t age = hr_now_ms() / 1000 - l->read_at;
	/* short-lived credentials are renewed after three quarters of their life: otherwise the
	 * program would run for each request */
	int64_t early = l->expires_in / 4 < EARLY_S ? l->expires_in / 4 : EARLY_S;
	bool first = l->token == NULL && l->cert == NULL, old = now || first || age >= REREAD_S;

	if (l->exec != NULL) {
		if (!now && !first && (l->expires_in == 0 || age < l->expires_in - early))
			return 0;
		if (run_program(l, err) != 0)
			return -1;
		l->read_at = hr_now_ms() / 1000;
		return 0;
	}
	if (!old)
		return 0;
	if ((l->token_file != NULL && read_token(l, err) != 0) ||
	    (l->cert_file != NULL && read_file(&l->cert, l->cert_file, err) != 0) ||
	    (l->key_file != NULL && read_file(&l->key, l->key_file, err) != 0))
		return -1;
	l->read_at = hr_now_ms() / 1000;
	return 0;
}

struct hr_rest_peer
hr_kube_login_peer(const struct hr_kube_login *l)
{
	return (struct hr_rest_peer){
	    .insecure = l->insecure,
	    .ca_pem = l->ca,
	    /* certificate and key are set together or not at all */
	    .cert_pem = l->key != NULL ? l->cert : NULL,
	    .key_pem = l->cert != NULL ? l->key : NULL,
	    .proxy = l->proxy,
	};
}
