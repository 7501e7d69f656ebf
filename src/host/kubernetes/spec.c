/* Composes the objects of a sandbox (doc/kubernetes.md, "Objects"): as the original's client makes
 * them, followed by handrail's additions. They are written as text, so that this file shows what is
 * sent. */
#include "config.h"

#include "host/kubernetes/kubernetes_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "host/command.h"
#include "host/common/owner.h"
#include "base/err.h"
#include "base/span.h"
#include "base/strv.h"
#include "host/config/settings.h"
#include "host/config/size.h"
#include "host/kubernetes/rules.h"
#include "host/kubernetes/yaml.h"
#include "proto/json.h"

#define BODY_MAX (4u << 20)
#define APP "openhands-runtime"

static const struct {
	const char *api, *kind, *plural, *suffix;
} kinds[HR_KINDS] = {
    [HR_POD] = {"v1", "Pod", "pods", ""},
    [HR_CLAIM] = {"v1", "PersistentVolumeClaim", "persistentvolumeclaims", "-pvc"},
    [HR_SERVICE] = {"v1", "Service", "services", "-svc"},
    [HR_CODE_SERVICE] = {"v1", "Service", "services", "-svc-code"},
    [HR_INGRESS] = {"networking.k8s.io/v1", "Ingress", "ingresses", "-ingress-code"},
    [HR_SECRET] = {"v1", "Secret", "secrets", "-key"},
    [HR_POLICY] = {"networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "-policy"},
    [HR_SANDBOX] = {NULL, "Sandbox", "sandboxes", ""},
};

/* Writes the API version of a type; the cluster decides a Sandbox's version. */
static void
api(const struct hr_kubernetes *d, enum hr_kubernetes_what what, char text[64])
{
	(void)snprintf(text, 64, "%s%s",
	    kinds[what].api != NULL ? kinds[what].api : HR_AGENTS_GROUP "/",
	    kinds[what].api != NULL ? "" : d->agents);
}

void
hr_kubernetes_path(
    const struct hr_kubernetes *d, enum hr_kubernetes_what what, bool one, char *path)
{
	char text[64];

	api(d, what, text);
	(void)snprintf(path, 512, "/%s/%s/namespaces/%s/%s%s%s%s",
	    strchr(text, '/') != NULL ? "apis" : "api", text, d->ns, kinds[what].plural,
	    one ? "/" : "", one ? d->name : "", one ? kinds[what].suffix : "");
}

const char *
hr_kubernetes_kind(enum hr_kubernetes_what what)
{
	return kinds[what].kind;
}

struct spec {
	const struct hr_kubernetes *d;
	const struct hr_config *c;
	struct hr_buf b;
	struct hr_err *err;
};

static void
str(struct spec *s, const char *text)
{
	(void)hr_json_put_str(&s->b, text, strlen(text), HR_JSON_REPLACE);
}

/* Appends ,"name":"text", or nothing without a text. */
static void
field(struct spec *s, const char *name, const char *text)
{
	if (text == NULL || *text == '\0')
		return;
	hr_buf_addf(&s->b, ",\"%s\":", name);
	str(s, text);
}

static void
texts(struct spec *s, const char *const *list)
{
	size_t i;

	hr_buf_addc(&s->b, '[');
	for (i = 0; list[i] != NULL; i++) {
		hr_buf_adds(&s->b, i > 0 ? "," : "");
		str(s, list[i]);
	}
	hr_buf_addc(&s->b, ']');
}

static const char *
setting(const struct spec *s, const char *name)
{
	const char *text = hr_config_text(s->c, name);

	return text != NULL && *text != '\0' ? text : NULL;
}

/* Appends the annotations of the sandbox. */
static void
marks(struct spec *s, const char *call, const char *annotations)
{
	char who[HR_OWNER];

	hr_owner(who);
	hr_buf_addf(&s->b,
	    "\"labels\":{\"app\":\"" APP "\",\"session\":\"%s\"},"
	    "\"annotations\":{\"" HR_KUBERNETES_CALL "\":\"%s\",\"" HR_KUBERNETES_OWNER
	    "\":\"%s\"%s}}",
	    s->d->name + sizeof(APP), call, who, annotations);
}

/* Appends name, namespace, and the labels by which handrail's objects are found. */
static void
metadata(struct spec *s, enum hr_kubernetes_what what, const char *call, const char *annotations)
{
	char text[64];

	api(s->d, what, text);
	hr_buf_addf(&s->b,
	    "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s%s\","
	    "\"namespace\":\"%s\",",
	    text, kinds[what].kind, s->d->name, kinds[what].suffix, s->d->ns);
	marks(s, call, annotations);
}

static void
selector(struct spec *s)
{
	hr_buf_addf(&s->b, "{\"app\":\"" APP "\",\"session\":\"%s\"}", s->d->name + sizeof(APP));
}

/* ---- the pod ---- */

static int
invalid(struct spec *s, const char *key, const char *value)
{
	return hr_err_set(s->err, HR_E_INVAL, "Invalid value for %s: %s", key, value);
}

static int
command(struct spec *s)
{
	struct json_object *uid = hr_config_value(s->c, "sandbox.security.run_as_user");
	struct hr_command c = hr_command_in_image(s->d->h, HR_KUBERNETES_PORT);
	HR_CLEAN(hr_strv_done) struct hr_strv words = {0};
	int r;

	c.username = uid != NULL ? "openhands" : "root";
	c.user_id = uid != NULL ? (long)json_object_get_int64(uid) : 0;
	r = hr_command_build(&words, &c, s->c, s->d->h->environ, s->err);
	hr_buf_adds(&s->b, ",\"command\":");
	texts(s, hr_strv_list(&words));
	return r;
}

static void
variable(struct spec *s, const char *name, const char *value)
{
	hr_buf_adds(&s->b, ",{\"name\":");
	str(s, name);
	hr_buf_adds(&s->b, ",\"value\":");
	str(s, value);
	hr_buf_addc(&s->b, '}');
}

/* Appends the environment. The key and the caller's variables come from the Secret, so that a
 * reader of pods does not see them. */
static void
environment(struct spec *s)
{
	struct json_object *map = hr_config_value(s->c, "sandbox.runtime_startup_env_vars");
	long long gb = hr_config_int(s->c, "sandbox.limits.max_memory_gb");
	char number[32];

	hr_buf_addf(&s->b,
	    ",\"env\":[{\"name\":\"port\",\"value\":\"%d\"},{\"name\":\"PYTHONUNBUFFERED\","
	    "\"value\":\"1\"},{\"name\":\"VSCODE_PORT\",\"value\":\"%d\"}",
	    HR_KUBERNETES_PORT, HR_KUBERNETES_VSCODE_PORT);
	if (hr_config_bool(s->c, "core.debug"))
		variable(s, "DEBUG", "true");
	(void)snprintf(number, sizeof(number), "%lld", gb);
	if (gb > 0)
		variable(s, "RUNTIME_MAX_MEMORY_GB", number);
	if (json_object_is_type(map, json_type_object)) {
		json_object_object_foreach(map, name, value)
		{
			variable(s, name, value != NULL ? json_object_get_string(value) : "");
		}
	}
	hr_buf_addf(&s->b, "],\"envFrom\":[{\"secretRef\":{\"name\":\"%s%s\"}}]", s->d->name,
	    kinds[HR_SECRET].suffix);
}

static void
ports(struct spec *s)
{
	hr_buf_addf(
	    &s->b, ",\"ports\":[{\"containerPort\":%d,\"name\":\"http\"}", HR_KUBERNETES_PORT);
	if (hr_is_one_of("vscode", s->d->h->plugins))
		hr_buf_addf(&s->b, ",{\"containerPort\":%d,\"name\":\"vscode\"}",
		    HR_KUBERNETES_VSCODE_PORT);
	hr_buf_addf(&s->b, ",{\"containerPort\":%d},{\"containerPort\":%d}]",
	    HR_KUBERNETES_APP_PORT1, HR_KUBERNETES_APP_PORT2);
}

/* the directories that must be writable on a read-only root */
static const char *const written[] = {
    "/tmp", "/run", "/var/tmp", "/openhands/logs", "/openhands/var", "/home/openhands", "/root"};
#define WRITTEN (sizeof(written) / sizeof(*written))

static int
resources(struct spec *s)
{
	const char *profile = setting(s, "sandbox.limits.profile");
	const char *mem = setting(s, "sandbox.limits.mem_limit");
	bool standard = profile != NULL && strcmp(profile, "standard") == 0;
	long long quota = hr_config_int(s->c, "sandbox.limits.cpu_quota");
	long long period = hr_config_int(s->c, "sandbox.limits.cpu_period"), bytes;

	if (mem == NULL && standard)
		mem = "4G";
	hr_buf_adds(&s->b, ",\"resources\":{\"limits\":{\"memory\":");
	if (mem != NULL) {
		bytes = hr_size_parse(mem);
		if (bytes <= 0)
			return invalid(s, "sandbox.limits.mem_limit", mem);
		hr_buf_addf(&s->b, "\"%lld\"", bytes);
	} else {
		str(s, hr_config_text(s->c, "kubernetes.resource_memory_limit"));
	}
	if (quota > 0 || standard) {
		quota = quota > 0 ? quota : 100000;
		period = period > 0 ? period : 100000;
		hr_buf_addf(&s->b, ",\"cpu\":\"%lldm\"", (1000 * quota + period - 1) / period);
	}
	hr_buf_adds(&s->b, "},\"requests\":{\"cpu\":");
	str(s, hr_config_text(s->c, "kubernetes.resource_cpu_request"));
	hr_buf_adds(&s->b, ",\"memory\":");
	str(s, hr_config_text(s->c, "kubernetes.resource_memory_request"));
	hr_buf_adds(&s->b, "}}");
	return 0;
}

static void
capabilities(struct spec *s, const char *key, const char *name, bool *ret_any)
{
	struct json_object *list = hr_config_value(s->c, key);

	if (hr_json_count(list) == 0)
		return;
	hr_buf_addf(&s->b, "%s\"%s\":", *ret_any ? "," : ",\"capabilities\":{", name);
	(void)hr_json_put(&s->b, list);
	*ret_any = true;
}

static void
security(struct spec *s)
{
	bool privileged = hr_config_bool(s->c, "kubernetes.privileged"), any = false;

	hr_buf_addf(
	    &s->b, ",\"securityContext\":{\"privileged\":%s", privileged ? "true" : "false");
	if (hr_config_bool(s->c, "sandbox.security.readonly_root_fs"))
		hr_buf_adds(&s->b, ",\"readOnlyRootFilesystem\":true");
	if (hr_config_bool(s->c, "sandbox.security.no_new_privileges"))
		hr_buf_adds(&s->b, ",\"allowPrivilegeEscalation\":false");
	if (!privileged)
		hr_buf_adds(&s->b, ",\"seccompProfile\":{\"type\":\"RuntimeDefault\"}");
	capabilities(s, "sandbox.security.cap_drop", "drop", &any);
	capabilities(s, "sandbox.security.cap_add", "add", &any);
	hr_buf_adds(&s->b, any ? "}}" : "}");
}

static int
container(struct spec *s)
{
	const char *image = setting(s, "sandbox.runtime_container_image");
	bool read_only = hr_config_bool(s->c, "sandbox.security.readonly_root_fs");
	size_t i;

	if (image == NULL)
		image = setting(s, "sandbox.base_container_image");
	if (image == NULL)
		return hr_err_set(s->err, HR_E_INVAL,
		    "sandbox.runtime_container_image is not set: it is the image of the pod");
	hr_buf_adds(&s->b, "{\"name\":\"" HR_KUBERNETES_CONTAINER "\"");
	field(s, "image", image);
	if (command(s) != 0)
		return -1;
	hr_buf_adds(&s->b, ",\"workingDir\":\"/openhands/code/\"");
	environment(s);
	ports(s);
	hr_buf_adds(&s->b, ",\"volumeMounts\":[{\"name\":\"workspace-volume\"");
	field(s, "mountPath", hr_config_text(s->c, "core.workspace_mount_path_in_sandbox"));
	hr_buf_addc(&s->b, '}');
	for (i = 0; read_only && i < WRITTEN; i++)
		hr_buf_addf(
		    &s->b, ",{\"name\":\"written-%zu\",\"mountPath\":\"%s\"}", i, written[i]);
	hr_buf_addc(&s->b, ']');
	if (resources(s) != 0)
		return -1;
	hr_buf_addf(&s->b,
	    ",\"readinessProbe\":{\"httpGet\":{\"path\":\"/alive\",\"port\":%d},"
	    "\"initialDelaySeconds\":5,\"periodSeconds\":10,\"timeoutSeconds\":5,"
	    "\"successThreshold\":1,\"failureThreshold\":3}",
	    HR_KUBERNETES_PORT);
	security(s);
	hr_buf_addc(&s->b, '}');
	return 0;
}

/* Reads a list of flat maps, with the original's names or Kubernetes' names. As in the original, it
 * logs and skips invalid ones. */
static void
tolerations(struct spec *s)
{
	static const char *const names[][2] = {{"key", "key"}, {"operator", "operator"},
	    {"value", "value"}, {"effect", "effect"}, {"toleration_seconds", "tolerationSeconds"},
	    {"tolerationSeconds", "tolerationSeconds"}};
	const char *text = setting(s, "kubernetes.tolerations_yaml"), *v;
	struct json_object *one;
	HR_PUT struct json_object *list = NULL;
	struct hr_err why = {0};
	char told[512];
	bool any;
	size_t i;

	if (text == NULL)
		return;
	if (hr_yaml_read(text, strlen(text), &list, &why) != 0 ||
	    !json_object_is_type(list, json_type_array)) {
		(void)snprintf(told, sizeof(told),
		    "Error parsing tolerations YAML: %.300s; there are none",
		    why.msg[0] != '\0' ? why.msg : "it is not a list");
		s->d->h->log(s->d->h->arg, told);
		return;
	}
	hr_buf_adds(&s->b, ",\"tolerations\":[");
	for (i = 0; i < hr_json_count(list); i++) {
		size_t j;

		one = hr_json_entry(list, i);
		hr_buf_adds(&s->b, i > 0 ? ",{" : "{");
		any = false;
		for (j = 0; j < sizeof(names) / sizeof(*names); j++) {
			v = hr_json_text_at(one, names[j][0]);
			if (v == NULL)
				continue;
			hr_buf_addf(&s->b, "%s\"%s\":", any ? "," : "", names[j][1]);
			if (j < 4)
				str(s, v);
			else
				hr_buf_addf(&s->b, "%lld", strtoll(v, NULL, 10));
			any = true;
		}
		hr_buf_addc(&s->b, '}');
	}
	hr_buf_addc(&s->b, ']');
}

static void
identity(struct spec *s)
{
	struct json_object *user = hr_config_value(s->c, "sandbox.security.run_as_user");
	struct json_object *group = hr_config_value(s->c, "sandbox.security.run_as_group");
	long long uid = json_object_get_int64(user),
		  gid = group != NULL ? json_object_get_int64(group) : uid;

	if (user == NULL)
		return;
	hr_buf_addf(&s->b,
	    ",\"securityContext\":{\"runAsUser\":%lld,\"runAsGroup\":%lld,\"fsGroup\":%lld%s}", uid,
	    gid, gid, uid != 0 ? ",\"runAsNonRoot\":true" : "");
}

static int
pod(struct spec *s)
{
	const char *secret = setting(s, "kubernetes.image_pull_secret");
	const char *key = setting(s, "kubernetes.node_selector_key");
	const char *value = setting(s, "kubernetes.node_selector_val");
	bool read_only = hr_config_bool(s->c, "sandbox.security.readonly_root_fs");
	size_t i;

	hr_buf_adds(&s->b, ",\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[");
	if (container(s) != 0)
		return -1;
	hr_buf_addf(&s->b,
	    "],\"volumes\":[{\"name\":\"workspace-volume\",\"persistentVolumeClaim\":{"
	    "\"claimName\":\"%s%s\"}}",
	    s->d->name, kinds[HR_CLAIM].suffix);
	for (i = 0; read_only && i < WRITTEN; i++)
		hr_buf_addf(&s->b, ",{\"name\":\"written-%zu\",\"emptyDir\":{}}", i);
	hr_buf_addc(&s->b, ']');
	if (secret != NULL) {
		hr_buf_adds(&s->b, ",\"imagePullSecrets\":[{\"name\":");
		str(s, secret);
		hr_buf_adds(&s->b, "}]");
	}
	if (key != NULL && value != NULL) {
		hr_buf_adds(&s->b, ",\"nodeSelector\":{");
		str(s, key);
		hr_buf_addc(&s->b, ':');
		str(s, value);
		hr_buf_addc(&s->b, '}');
	}
	tolerations(s);
	identity(s);
	hr_buf_adds(&s->b, ",\"automountServiceAccountToken\":false,"
			   "\"enableServiceLinks\":false");
	field(s, "serviceAccountName", setting(s, "kubernetes.service_account"));
	field(s, "runtimeClassName", setting(s, "kubernetes.runtime_class"));
	hr_buf_addc(&s->b, '}');
	return 0;
}

/* Wraps the same pod in a Sandbox. */
static int
sandbox(struct spec *s, const char *call)
{
	int r;

	hr_buf_adds(&s->b, ",\"spec\":{\"podTemplate\":{\"metadata\":{");
	marks(s, call, "");
	r = pod(s);
	hr_buf_adds(&s->b, "}}");
	return r;
}

/* ---- other objects ---- */

static int
claim(struct spec *s)
{
	hr_buf_adds(&s->b,
	    ",\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{"
	    "\"storage\":");
	str(s, hr_config_text(s->c, "kubernetes.pvc_storage_size"));
	hr_buf_adds(&s->b, "}}");
	field(s, "storageClassName", setting(s, "kubernetes.pvc_storage_class"));
	hr_buf_addc(&s->b, '}');
	return 0;
}

static int
service(struct spec *s, bool code)
{
	/* the probe starts late, and fails while all processors are busy: the server would answer
	 * all the same */
	hr_buf_adds(&s->b, ",\"spec\":{\"type\":\"ClusterIP\",\"publishNotReadyAddresses\":true,"
			   "\"selector\":");
	selector(s);
	hr_buf_addf(&s->b, ",\"ports\":[{\"name\":\"%s\",\"port\":%d,\"targetPort\":\"%s\"}]}",
	    code ? "code" : "execution-server",
	    code ? HR_KUBERNETES_VSCODE_PORT : HR_KUBERNETES_PORT, code ? "vscode" : "http");
	return 0;
}

/* Composes the Ingress; its host name is made from the setting, which could be anything. */
static int
ingress(struct spec *s, const char *call)
{
	const char *secret = setting(s, "kubernetes.ingress_tls_secret");
	HR_BUF(host, 4096);
	HR_BUF(note, 8192);

	hr_buf_addf(&host, "%s.%s", s->d->name + sizeof(APP),
	    hr_config_text(s->c, "kubernetes.ingress_domain"));
	hr_buf_adds(&note, ",\"external-dns.alpha.kubernetes.io/hostname\":");
	(void)hr_json_put_str(&note, hr_buf_str(&host), host.len, HR_JSON_REPLACE);
	metadata(s, HR_INGRESS, call, hr_buf_str(&note));
	hr_buf_adds(&s->b, ",\"spec\":{\"rules\":[{\"host\":");
	str(s, hr_buf_str(&host));
	hr_buf_addf(&s->b,
	    ",\"http\":{\"paths\":[{\"path\":\"/\",\"pathType\":\"Prefix\",\"backend\":{"
	    "\"service\":{\"name\":\"%s%s\",\"port\":{\"number\":%d}}}}]}}],\"tls\":[",
	    s->d->name, kinds[HR_CODE_SERVICE].suffix, HR_KUBERNETES_VSCODE_PORT);
	if (secret != NULL) {
		hr_buf_adds(&s->b, "{\"hosts\":[");
		str(s, hr_buf_str(&host));
		hr_buf_adds(&s->b, "],\"secretName\":");
		str(s, secret);
		hr_buf_addc(&s->b, '}');
	}
	hr_buf_adds(&s->b, "]}");
	return 0;
}

/* Composes the Secret; the API server encodes stringData. */
static int
secret(struct spec *s)
{
	const char *const *e;
	const char *eq;

	hr_buf_adds(&s->b, ",\"type\":\"Opaque\",\"stringData\":{");
	for (e = s->d->h->env; *e != NULL; e++) {
		eq = strchr(*e, '=');
		if (eq == NULL || strncmp(*e, "SESSION_API_KEY=", 16) == 0)
			continue;
		(void)hr_json_put_str(&s->b, *e, (size_t)(eq - *e), HR_JSON_REPLACE);
		hr_buf_addc(&s->b, ':');
		str(s, eq + 1);
		hr_buf_addc(&s->b, ',');
	}
	hr_buf_adds(&s->b, "\"SESSION_API_KEY\":");
	str(s, s->d->key);
	hr_buf_addc(&s->b, '}');
	return 0;
}

/* Composes the network policy: sandboxes cannot reach each other; with "closed" not the cluster
 * either, with "offline" nothing; rules of the network replace both. */
static int
policy(struct spec *s)
{
	static const char nobody_inside[] =
	    "{\"to\":[{\"ipBlock\":{\"cidr\":\"0.0.0.0/0\",\"except\":[\"10.0.0.0/8\","
	    "\"100.64.0.0/10\",\"169.254.0.0/16\",\"172.16.0.0/12\",\"192.168.0.0/16\"]}}]},"
	    "{\"to\":[{\"ipBlock\":{\"cidr\":\"::/0\",\"except\":[\"fc00::/7\",\"fe80::/10\"]}}]},"
	    "{\"ports\":[{\"protocol\":\"UDP\",\"port\":53},{\"protocol\":\"TCP\",\"port\":53}]}";
	const char *which = hr_config_text(s->c, "kubernetes.network_policy");
	bool offline = which != NULL && strcmp(which, "offline") == 0;
	bool rules = hr_kubernetes_has_rules(s->c);

	if (!rules && !offline && strcmp(which, "closed") != 0)
		return invalid(s, "kubernetes.network_policy", which);
	hr_buf_adds(&s->b, ",\"spec\":{\"podSelector\":{\"matchLabels\":");
	selector(s);
	hr_buf_addf(&s->b,
	    "},\"policyTypes\":[\"Ingress\",\"Egress\"],\"ingress\":[{\"from\":[{\"podSelector\":{"
	    "\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"NotIn\",\"values\":[\"" APP
	    "\"]}]}}]}],\"egress\":[%s",
	    offline || rules ? "" : nobody_inside);
	if (rules)
		hr_kubernetes_put_rules(s->c, &s->b);
	hr_buf_adds(&s->b, "]}");
	return 0;
}

static char *
finish(struct spec *s, int r)
{
	char *text = NULL;

	hr_buf_addc(&s->b, '}');
	if (r == 0 && (text = hr_buf_take(&s->b)) == NULL)
		(void)hr_err_nomem(s->err);
	hr_buf_done(&s->b);
	return text;
}

char *
hr_kubernetes_body(
    struct hr_kubernetes *d, enum hr_kubernetes_what what, const char *call, struct hr_err *err)
{
	struct spec s = {.d = d, .c = d->h->config, .err = err};
	int r = 0;

	hr_buf_init(&s.b, BODY_MAX);
	if (what != HR_INGRESS)
		metadata(&s, what, call, "");
	switch (what) {
	case HR_POD: r = pod(&s); break;
	case HR_CLAIM: r = claim(&s); break;
	case HR_SERVICE:
	case HR_CODE_SERVICE: r = service(&s, what == HR_CODE_SERVICE); break;
	case HR_INGRESS: r = ingress(&s, call); break;
	case HR_SECRET: r = secret(&s); break;
	case HR_SANDBOX: r = sandbox(&s, call); break;
	default: r = policy(&s); break;
	}
	return finish(&s, r);
}
