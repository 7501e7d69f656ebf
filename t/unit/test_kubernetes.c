/* The parts of the kind "kubernetes" that need no cluster: YAML, kubeconfig, Status, watches, pods'
 * states, amounts, WebSocket's frames. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <json-c/json.h>

#include "host/handrail.h"
#include "host/kubernetes/execcred.h"
#include "host/kubernetes/forward.h"
#include "host/kubernetes/kube.h"
#include "host/kubernetes/login.h"
#include "host/kubernetes/quantity.h"
#include "host/kubernetes/status.h"
#include "host/kubernetes/why.h"
#include "host/kubernetes/yaml.h"
#include "proto/json.h"
#include "http/ws.h"

#define N(a) ((int)(sizeof(a) / sizeof(*(a))))

/* ---- YAML ---- */

static const struct {
	const char *yaml, *json; /* NULL: refused */
} yamls[] = {
    {"", "null"},
    {"a: 1\nb: [x, 'y', \"z\"]\n", "{\"a\":\"1\",\"b\":[\"x\",\"y\",\"z\"]}"},
    {"a:\n  - b: true\n    c: ~\n  - d:\n", "[1]"},
    {"{\"json\": {\"too\": null}}", "{\"json\":{\"too\":null}}"},
    {"a: 1\na: 2\n", "{\"a\":\"2\"}"},
    {"--- first\n--- second\n", "\"first\""},
    {"text: |\n  one\n  two\n", "{\"text\":\"one\\ntwo\\n\"}"},
    {"a: &x 1\nb: *x\n", NULL},
    {"a: [1\n", NULL},
    {"[a]: 1\n", NULL},
    {"\t- x", NULL},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", NULL},
};

START_TEST(yaml_as_json)
{
	HR_PUT struct json_object *o = NULL;
	HR_PUT struct json_object *want = NULL;
	struct hr_err err = {0};
	const char *json =
	    _i == 2 ? "{\"a\":[{\"b\":\"true\",\"c\":null},{\"d\":null}]}" : yamls[_i].json;
	int r = hr_yaml_read(yamls[_i].yaml, strlen(yamls[_i].yaml), &o, &err);

	ck_assert_int_eq(r, json == NULL ? -1 : 0);
	if (json == NULL) {
		ck_assert_ptr_nonnull(strstr(err.msg, "not valid YAML: "));
		ck_assert_ptr_nonnull(strstr(err.msg, " in line "));
		return;
	}
	want = json_tokener_parse(json);
	ck_assert(json_object_equal(o, want) || (o == NULL && want == NULL));
}
END_TEST

/* ---- kubeconfig ---- */

static const char first[] =
    "current-context: one\n"
    "clusters:\n"
    "- name: c\n"
    "  cluster: {server: 'https://a:6443/', certificate-authority-data: aG\n   k=, "
    "tls-server-name: kube, proxy-url: 'http://p:1'}\n"
    "- name: plain\n  cluster: {server: 'http://b', insecure-skip-tls-verify: true}\n"
    "- name: bad\n  cluster: {server: 'ftp://b'}\n"
    "- name: garbage\n  cluster: {server: 'https://b', certificate-authority-data: '***'}\n"
    "contexts:\n"
    "- {name: one, context: {cluster: c, user: u}}\n"
    "- {name: two, context: {cluster: plain, user: files}}\n"
    "- {name: nocluster, context: {cluster: x, user: u}}\n"
    "- {name: nouser, context: {cluster: c, user: x}}\n"
    "- {name: bad, context: {cluster: bad, user: u}}\n"
    "- {name: garbage, context: {cluster: garbage, user: u}}\n"
    "- {name: anonymous, context: {cluster: c}}\n"
    "- {name: old, context: {cluster: c, user: basic}}\n"
    "users:\n"
    "- {name: u, user: {token: secret}}\n"
    "- {name: files, user: {tokenFile: t, client-certificate: /abs/c, client-key: sub/k}}\n"
    "- {name: basic, user: {username: a, password: b}}\n";
static const char second[] = "current-context: late\nusers:\n- {name: u, user: {token: other}}\n"
			     "contexts:\n- {name: late, context: {cluster: c, user: u}}\n";

static int
choose(const char *context, struct hr_kube_login *l, struct hr_err *err)
{
	HR_PUT struct json_object *merged = NULL;

	memset(l, 0, sizeof(*l));
	ck_assert_int_eq(hr_kube_login_merge(&merged, first, sizeof(first) - 1, "/d1", err), 0);
	ck_assert_int_eq(hr_kube_login_merge(&merged, second, sizeof(second) - 1, "/d2", err), 0);
	return hr_kube_login_choose(l, merged, context, err);
}

START_TEST(contexts)
{
	struct hr_kube_login l;
	struct hr_err err = {0};

	ck_assert_int_eq(choose(NULL, &l, &err), 0);
	ck_assert_str_eq(l.server, "https://a:6443");
	ck_assert_str_eq(l.ca, "hi");
	ck_assert_str_eq(l.tls_name, "kube");
	ck_assert_str_eq(l.proxy, "http://p:1");
	ck_assert_str_eq(l.token, "secret"); /* of the first file */
	ck_assert(!l.insecure);
	hr_kube_login_done(&l);

	ck_assert_int_eq(choose("late", &l, &err), 0);
	ck_assert_str_eq(l.token, "secret");
	hr_kube_login_done(&l);

	ck_assert_int_eq(choose("two", &l, &err), 0);
	ck_assert(l.insecure);
	ck_assert_ptr_null(l.token);
	ck_assert_str_eq(l.token_file, "/d1/t");
	ck_assert_str_eq(l.cert_file, "/abs/c");
	ck_assert_str_eq(l.key_file, "/d1/sub/k");
	hr_kube_login_done(&l);

	ck_assert_int_eq(choose("anonymous", &l, &err), 0);
	ck_assert_ptr_null(l.token);
	hr_kube_login_done(&l);
}
END_TEST

static const struct {
	const char *context, *why;
} wrong[] = {{"none", "no context \"none\""}, {"nocluster", "no cluster \"x\""},
    {"nouser", "no user \"x\""}, {"bad", "has no server"}, {"garbage", "is not base64"},
    {"old", "has \"username\""}};

START_TEST(wrong_contexts)
{
	struct hr_kube_login l;
	struct hr_err err = {0};

	ck_assert_int_eq(choose(wrong[_i].context, &l, &err), -1);
	ck_assert_msg(strstr(err.msg, wrong[_i].why) != NULL, "%s", err.msg);
	hr_kube_login_done(&l);
}
END_TEST

START_TEST(no_kubeconfig)
{
	int i;

	static const char *const texts[] = {"- a\n", "a: [", "x"};
	struct json_object *merged = NULL;
	struct hr_err err = {0};

	for (i = 0; i < N(texts); i++)
		ck_assert_int_eq(
		    hr_kube_login_merge(&merged, texts[i], strlen(texts[i]), "/", &err), -1);
	json_object_put(merged);
}
END_TEST

static const struct {
	const char *printed, *why; /* why NULL: it is taken */
	int64_t expires_in;
} credentials[] = {
    {"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}", NULL, 0},
    {"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":"
     "\"1970-01-01T00:30:00Z\"}}",
	NULL, 800},
    {"{\"kind\":\"ExecCredential\",\"status\":{\"clientCertificateData\":\"c\",\"clientKeyData\":"
     "\"k\",\"expirationTimestamp\":\"1970-01-01T00:00:00Z\"}}",
	NULL, 1},
    {"{\"kind\":\"ExecCredential\",\"status\":{\"clientKeyData\":\"k\"}}", "neither", 0},
    {"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}}",
	"not a time", 0},
    {"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":"
     "\"1970-01-01T02:30:00+02:00\"}}",
	NULL, 800},
    {"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":"
     "\"1969-12-31T19:00:00.125-05:30\"}}",
	NULL, 800},
    {"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":"
     "\"1970-01-01T02:30:00+0200\"}}",
	"not a time", 0},
    {"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\",\"by\":\"caf\xe9\"}}", NULL, 0},
    {"{\"kind\":\"Other\"}", "no ExecCredential", 0},
    {"token", "no ExecCredential", 0},
    {"", "no ExecCredential", 0},
};

START_TEST(exec_credentials)
{
	HR_CLEAN(hr_kube_login_done) struct hr_kube_login l = {0};
	struct hr_err err = {0};
	const char *p = credentials[_i].printed;
	int r = hr_kube_login_take(&l, p, strlen(p), 1000, &err);

	ck_assert_int_eq(r, credentials[_i].why == NULL ? 0 : -1);
	if (credentials[_i].why != NULL)
		ck_assert_msg(strstr(err.msg, credentials[_i].why) != NULL, "%s", err.msg);
	else
		ck_assert_int_eq(l.expires_in, credentials[_i].expires_in);
}
END_TEST

/* The program's output alone counts; the sandbox's key is kept from the program. */
START_TEST(exec_program)
{
	struct json_object *exec = json_tokener_parse(
	    "{\"command\":\"sh\",\"args\":[\"-c\",\"echo \\\"$A ${SESSION_API_KEY-no} "
	    "$KUBERNETES_EXEC_INFO\\\"\"],\"env\":[{\"name\":\"A\",\"value\":\"b\"}],"
	    "\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}");
	struct json_object *fails =
	    json_tokener_parse("{\"command\":\"sh\",\"args\":[\"-c\",\"exit 3\"]}");
	HR_PUT struct json_object *missing = json_tokener_parse("{\"command\":\"./not-there\"}");
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	struct hr_err err = {0};
	HR_BUF(b, 4096);

	hr_strv_addf(&env, "PATH=%s", getenv("PATH"));
	ck_assert_int_eq(hr_execcred_run(exec, "/", &env, &b, &err), 0);
	ck_assert_msg(strncmp(hr_buf_str(&b),
			  "b no {\"apiVersion\":\"client.authentication.k8s.io/"
			  "v1beta1\"",
			  50) == 0,
	    "%s", hr_buf_str(&b));
	ck_assert_int_eq(hr_execcred_run(fails, "/", &env, &b, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "it ended (exit 3)"));
	ck_assert_int_eq(hr_execcred_run(missing, "/nowhere", &env, &b, &err), -1);
	ck_assert_int_eq(err.code, HR_E_NOTFOUND);
	json_object_put(exec);
	json_object_put(fails);
}
END_TEST

static bool impatient;

/* Shortens long limits of waits if a test is impatient, in place of the function of libc. */
int
poll(struct pollfd *p, nfds_t n, int limit_ms)
{
	const struct timespec t = {
	    .tv_sec = limit_ms / 1000 / 100, .tv_nsec = limit_ms % 100000 * 10000L};
	const struct timespec whole = {limit_ms / 1000, limit_ms % 1000 * 1000000L};

	return ppoll(p, n, limit_ms < 0 ? NULL : impatient && limit_ms > 1000 ? &t : &whole, NULL);
}

/* A program that closes its output and does not end is killed at the limit. */
START_TEST(exec_runs_on)
{
	HR_PUT struct json_object *closes =
	    json_tokener_parse("{\"command\":\"sh\",\"args\":[\"-c\",\"echo x; exec sleep 1000 "
			       ">/dev/null\"]}");
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	struct hr_err err = {0};
	HR_BUF(b, 4096);

	hr_strv_addf(&env, "PATH=%s", getenv("PATH"));
	impatient = true;
	ck_assert_int_eq(hr_execcred_run(closes, "/", &env, &b, &err), -1);
	impatient = false;
	ck_assert_str_eq(err.msg, "it took more than a minute");
}
END_TEST

/* A process that keeps the program's output open holds nobody up, and is left alone. A program that
 * is killed takes all that it started with it. */
START_TEST(exec_leaves_something)
{
	HR_PUT struct json_object *leaves =
	    json_tokener_parse("{\"command\":\"sh\",\"args\":[\"-c\",\"sleep 1000 & echo $!\"]}");
	HR_PUT struct json_object *floods = json_tokener_parse(
	    "{\"command\":\"sh\",\"args\":[\"-c\",\"exec 3>there; sleep 1000 & yes\"]}");
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	struct hr_err err = {0};
	struct pollfd gone = {.events = POLLIN};
	char dir[] = "/tmp/test_kubernetes.XXXXXX", fifo[64], was[4096];
	HR_BUF(b, 4096);
	pid_t pid;

	ck_assert_ptr_nonnull(getcwd(was, sizeof(was)));
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	(void)snprintf(fifo, sizeof(fifo), "%s/there", dir);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	gone.fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	hr_strv_addf(&env, "PATH=%s", getenv("PATH"));
	/* in less than the minute for which its output would be waited for */
	ck_assert_int_eq(hr_execcred_run(leaves, "/", &env, &b, &err), 0);
	pid = (pid_t)strtol(hr_buf_str(&b), NULL, 10);
	ck_assert_int_gt(pid, 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0); /* it is left alone */
	ck_assert_int_eq(hr_execcred_run(floods, "/", &env, &b, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "its output is too long"));
	ck_assert_int_eq(poll(&gone, 1, 30000), 1);
	ck_assert_int_ne(gone.revents & POLLHUP, 0);
	(void)close(gone.fd);
	(void)unlink(fifo);
	ck_assert_int_eq(chdir(was), 0);
	(void)rmdir(dir);
}
END_TEST

/* ---- port-forward ---- */

struct slow_server {
	int listener, held_fd; /* held_fd: readable once the first request is there, unanswered */
	unsigned n;
};

static void *
serve_slowly(void *arg)
{
	static const char refusal[] = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
				      "Content-Length: 2\r\nConnection: close\r\n\r\n{}";
	struct slow_server *x = arg;
	char piece[4096];
	int kept = -1, fd;

	while ((fd = accept(x->listener, NULL, NULL)) >= 0) {
		if (read(fd, piece, sizeof(piece)) > 0 && kept < 0) {
			kept = fd;
			(void)eventfd_write(x->held_fd, 1);
			continue;
		}
		(void)send(fd, refusal, strlen(refusal), MSG_NOSIGNAL);
		(void)close(fd);
	}
	(void)close(kept);
	return NULL;
}

static int
connect_to(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* A connection for which the API server takes its time holds up no other one. */
START_TEST(forward_one_is_slow)
{
	struct slow_server x = {.held_fd = eventfd(0, EFD_CLOEXEC)};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	char url[64], said[512];
	const char *env[] = {url, NULL};
	struct hr_config *c = hr_config_new(NULL);
	struct pollfd p = {.events = POLLIN};
	struct hr_err err = {0};
	struct hr_forward *f;
	pthread_t t;
	int slow, other;
	ssize_t n;

	x.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(x.listener, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(x.listener, 16), 0);
	ck_assert_int_eq(getsockname(x.listener, (struct sockaddr *)&a, &len), 0);
	ck_assert_int_eq(pthread_create(&t, NULL, serve_slowly, &x), 0);
	(void)snprintf(url, sizeof(url), "OH_K8S_API_URL=http://127.0.0.1:%d", ntohs(a.sin_port));
	f = hr_forward_new(c, env, "/api/v1/namespaces/n/pods/it", 8080, false, &err);
	ck_assert_msg(f != NULL, "%s", err.msg);
	slow = connect_to(hr_forward_socket(f));
	p.fd = x.held_fd;
	ck_assert_int_eq(poll(&p, 1, 20000), 1);
	other = connect_to(hr_forward_socket(f));
	p.fd = other;
	ck_assert_int_eq(poll(&p, 1, 20000), 1);
	n = read(other, said, sizeof(said) - 1);
	ck_assert_int_gt((int)n, 0);
	said[n] = '\0';
	ck_assert_msg(
	    strstr(said, "503") != NULL && strstr(said, "does not exist") != NULL, "%s", said);
	p.fd = slow;
	ck_assert_int_eq(poll(&p, 1, 0), 0); /* it still waits */
	hr_forward_drop(&f);                 /* and its thread ends with it */
	(void)close(slow);
	(void)close(other);
	(void)shutdown(x.listener, SHUT_RDWR);
	(void)pthread_join(t, NULL);
	(void)close(x.listener);
	(void)close(x.held_fd);
	hr_config_free(c);
}
END_TEST

/* ---- Status ---- */

#define STATUS(code, reason, message)                                                              \
	"{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason "\",\"message\":\"" message  \
	"\"}"

static const struct {
	int http;
	const char *body, *text;
	enum hr_errc code;
} statuses[] = {
    {403,
	STATUS("403", "Forbidden",
	    "pods is forbidden: User \\\"eve\\\" cannot create resource \\\"pods\\\" in API group "
	    "\\\"\\\" in the namespace \\\"n\\\""),
	"eve has no right to create pods in the namespace \"n\": a Role must grant it (\"handrail "
	"doctor -r kubernetes\" prints all missing rights)",
	HR_E_PERMISSION},
    {403,
	STATUS("403", "Forbidden",
	    "pods \\\"x\\\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, "
	    "limited: "
	    "pods=2"),
	"the quota \"q\" of the namespace is used up: requested pods=1, used pods=2 of pods=2; "
	"end other sandboxes, or ask for a larger quota",
	HR_E_UNAVAILABLE},
    {403,
	STATUS(
	    "403", "Forbidden", "pods \\\"x\\\" is forbidden: violates PodSecurity \\\"r\\\": a"),
	"the namespace's Pod Security does not allow such a pod: it violates PodSecurity \"r\": a "
	"(settings sandbox.security.* and kubernetes.privileged)",
	HR_E_PERMISSION},
    {403, STATUS("403", "Forbidden", "no"), "the API server forbids it: no", HR_E_PERMISSION},
    {401, "",
	"the API server does not know these credentials (401): they have expired, or are for "
	"another cluster",
	HR_E_PERMISSION},
    {404, STATUS("404", "NotFound", "pods \\\"x\\\" not found"), "pods \"x\" not found",
	HR_E_NO_SANDBOX},
    {409, STATUS("409", "Conflict", "changed"), "another client changed it first: changed",
	HR_E_RUNTIME},
    {422, STATUS("422", "Invalid", "spec: no"), "the API server does not take it: spec: no",
	HR_E_INVAL},
    {422, STATUS("422", "Invalid", "caf\xe9"), "the API server does not take it: caf\xef\xbf\xbd",
	HR_E_INVAL},
    {500, "plain\x1b[31m\ntext", "the API server answered 500: plain\\x1b[31m\\x0atext",
	HR_E_UNAVAILABLE},
    {502, "", "the API server answered 502: no details", HR_E_UNAVAILABLE},
    {418, "{\"kind\":7}", "the API server answered 418: {\"kind\":7}", HR_E_RUNTIME},
};

START_TEST(status_in_words)
{
	struct hr_kube_status s;
	struct hr_err err = {0};

	hr_kube_status_read(&s, statuses[_i].http, statuses[_i].body, strlen(statuses[_i].body));
	ck_assert_int_eq(hr_kube_status_error(&s, &err), -1);
	ck_assert_str_eq(err.msg, statuses[_i].text);
	ck_assert_int_eq(err.code, statuses[_i].code);
	ck_assert_int_eq(err.status, statuses[_i].http);
}
END_TEST

/* ---- a watch ---- */

static const struct {
	const char *line;
	int r;
	enum hr_kube_event event;
	const char *version, *told;
} lines[] = {
    {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\"}}}", 1, HR_KUBE_THERE,
	"5", ""},
    {"{\"type\":\"MODIFIED\",\"object\":{}}", 1, HR_KUBE_THERE, "1", ""},
    {"{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"6\"}}}", 1,
	HR_KUBE_DELETED, "6", ""},
    {"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}", 0, 0, "7",
	""},
    {"{\"type\":\"ERROR\",\"object\":" STATUS("410", "Expired", "too old") "}", -1, 0, "1",
	"too old"},
    {"{\"type\":\"ADDED\",\"object\":{\"a\":\"caf\xe9\",\"metadata\":{\"resourceVersion\":\"8\"}}}",
	1, HR_KUBE_THERE, "8", ""},
    {"{\"type\":\"ERROR\"}", -1, 0, "1", "no known type"},
    {"{\"type\":\"ADDED\"}", -1, 0, "1", "without an object"},
    {"{\"type\":\"ADDED\",\"object\":[]}", -1, 0, "1", "without an object"},
    {"{\"type\":", -1, 0, "1", "not JSON"},
    {"null", -1, 0, "1", "no known type"},
};

START_TEST(watch_lines)
{
	enum hr_kube_event event = 0;
	HR_PUT struct json_object *o = NULL;
	struct hr_kube_status s;
	char version[16] = "1";

	ck_assert_int_eq(hr_kube_watch_line(lines[_i].line, strlen(lines[_i].line), &event, &o,
			     version, sizeof(version), &s),
	    lines[_i].r);
	ck_assert_str_eq(version, lines[_i].version);
	ck_assert(lines[_i].r != 1 || event == lines[_i].event);
	ck_assert_int_eq(o != NULL, lines[_i].r == 1);
	ck_assert_msg(strstr(s.message, lines[_i].told) != NULL, "%s", s.message);
}
END_TEST

/* ---- pods ---- */

#define POD(phase, more) "{\"metadata\":{},\"status\":{\"phase\":\"" phase "\"" more "}}"
#define STATE(text) ",\"containerStatuses\":[{\"image\":\"i:1\",\"state\":{" text "}}]"
#define WAITS(reason, message)                                                                     \
	POD("Pending", STATE("\"waiting\":{\"reason\":\"" reason "\",\"message\":\"" message "\""  \
			     "}"))

static const struct {
	const char *pod;
	enum hr_kube_progress progress;
	const char *text;
} pods[] = {
    {"null", HR_KUBE_COMING, ""},
    {POD("Pending", ""), HR_KUBE_COMING, ""},
    {WAITS("ContainerCreating", ""), HR_KUBE_COMING, ""},
    {WAITS("ErrImagePull", "connection refused"), HR_KUBE_COMING, ""},
    {WAITS("ErrImagePull", "manifest unknown: not found"), HR_KUBE_FAILED,
	"its image i:1 is not available (ErrImagePull): manifest unknown: not found"},
    {WAITS("ImagePullBackOff", "back\\noff"), HR_KUBE_FAILED,
	"its image i:1 is not available (ImagePullBackOff): back\\x0aoff"},
    {WAITS("CreateContainerConfigError", "secret \\\"s\\\" not found"), HR_KUBE_FAILED,
	"its container cannot be started (CreateContainerConfigError): secret \"s\" not found"},
    {POD("Pending", ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
		    "\"Unschedulable\",\"message\":\"0/1 nodes: Insufficient cpu\"}]"),
	HR_KUBE_STUCK, "no node takes it: 0/1 nodes: Insufficient cpu"},
    {POD("Pending", ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
		    "\"Unschedulable\",\"message\":\"unbound immediate PersistentVolumeClaims\"}]"),
	HR_KUBE_COMING, ""},
    {POD("Running", STATE("\"running\":{}")), HR_KUBE_RUNNING, ""},
    {POD("Running",
	 ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]" STATE("\"running\":{}")),
	HR_KUBE_READY, ""},
    {"{\"metadata\":{\"deletionTimestamp\":\"now\"},\"status\":{\"phase\":\"Running\"}}",
	HR_KUBE_ENDING, "it is being deleted"},
    {POD("Failed", STATE("\"terminated\":{\"reason\":\"OOMKilled\",\"exitCode\":137}")),
	HR_KUBE_FAILED,
	"it ran out of memory and was killed; kubernetes.resource_memory_limit is its limit"},
    {POD("Failed", STATE("\"terminated\":{\"reason\":\"Error\",\"exitCode\":3}")), HR_KUBE_FAILED,
	"its program has ended with status 3"},
    {POD("Succeeded", STATE("\"terminated\":{\"reason\":\"Completed\",\"exitCode\":0}")),
	HR_KUBE_FAILED, "its program has ended with status 0"},
    {POD("Failed",
	 STATE("\"terminated\":{\"reason\":\"StartError\",\"message\":\"no such file\"}")),
	HR_KUBE_FAILED, "its program cannot be started: no such file"},
    {POD("Failed", ",\"reason\":\"Evicted\",\"message\":\"low on ephemeral-storage\""),
	HR_KUBE_FAILED,
	"its node was short of something and sent it away: Evicted: low on ephemeral-storage"},
};

START_TEST(pods_in_words)
{
	HR_PUT struct json_object *o = json_tokener_parse(pods[_i].pod);
	struct hr_kube_why why;

	hr_kube_why(&why, o);
	ck_assert_int_eq(why.progress, pods[_i].progress);
	ck_assert_str_eq(why.text, pods[_i].text);
}
END_TEST

static const struct {
	const char *text;
	double n;
} amounts[] = {{"1", 1}, {"500m", 0.5}, {"2Gi", 2147483648.0}, {"1.5k", 1500}, {"1e3", 1000},
    {"", 0}, {"x", 0}, {"1X", 0}, {"-1", 0}, {"1e999", 0}};

START_TEST(quantities)
{
	ck_assert_double_eq(hr_kube_quantity(amounts[_i].text), amounts[_i].n);
	ck_assert_double_eq(hr_kube_quantity(NULL), 0);
}
END_TEST

/* ---- frames ---- */

struct got {
	struct hr_buf b;
	unsigned n, stop_at;
};

static int
on_message(void *arg, enum hr_ws_op op, const char *p, size_t len)
{
	struct got *g = arg;

	hr_buf_addf(&g->b, "%d:", (int)op);
	hr_buf_add(&g->b, p, len);
	hr_buf_addc(&g->b, ' ');
	return ++g->n == g->stop_at;
}

static const struct {
	const char *bytes;
	size_t len;
	int r;
	const char *got;
} frames[] = {
    {"\x82\x02hi\x81\x00", 6, 0, "2:hi 1: "},
    {"\x02\x01"
     "a\x89\x01p\x00\x01"
     "b\x80\x01"
     "c",
	12, 0, "9:p 2:abc "},
    {"\x82\x7e\x00\x03xyz", 7, 0, "2:xyz "},
    {"\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x01x", 11, 0, "2:x "},
    {"\x82\x7f\x00\x00\x00\x00\xff\x00\x00\x01x", 11, -1, ""},
    {"\x82\x82xxxxhi", 8, -1, ""},   /* masked */
    {"\xc2\x02hi", 4, -1, ""},       /* a bit of an extension */
    {"\x83\x02hi", 4, -1, ""},       /* an unknown kind */
    {"\x8b\x00", 2, -1, ""},         /* the same of control */
    {"\x09\x01p", 3, -1, ""},        /* a control frame in parts */
    {"\x89\x7e\x00\x80", 4, -1, ""}, /* one that is too long */
    {"\x80\x01"
     "a",
	3, -1, ""}, /* a part of nothing */
    {"\x02\x01"
     "a\x82\x01"
     "b",
	6, -1, ""}, /* a message within another */
};

/* Whole, and byte by byte. */
START_TEST(frames_of_a_server)
{
	size_t piece;

	for (piece = 1; piece <= frames[_i].len; piece += frames[_i].len - 1) {
		struct got g = {.stop_at = 99};
		struct hr_wsframes f;
		struct hr_err err = {0};
		int r = 0;
		size_t at;

		hr_buf_init(&g.b, 1000);
		hr_wsframes_init(&f);
		for (at = 0; r == 0 && at < frames[_i].len; at += piece)
			r = hr_wsframes_feed(
			    &f, frames[_i].bytes + at, piece, on_message, &g, &err);
		ck_assert_int_eq(r, frames[_i].r);
		ck_assert_str_eq(hr_buf_str(&g.b), frames[_i].got);
		hr_wsframes_done(&f);
		hr_buf_done(&g.b);
		if (frames[_i].len == 1)
			break;
	}
}
END_TEST

START_TEST(frames_of_ours)
{
	static const unsigned char mask[4] = {1, 2, 3, 4};
	static const size_t lens[] = {0, 1, 125, 126, 65535, 65536};
	HR_FREE char *p = calloc(1, 65536);
	struct hr_buf b;
	int i;

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < N(lens); i++) {
		size_t head = lens[i] < 126 ? 6 : lens[i] < 65536 ? 8 : 14, j;

		hr_buf_init(&b, 1 << 20);
		hr_wsframe_put(&b, HR_WS_BINARY, mask, p, lens[i]);
		ck_assert_uint_eq(b.len, head + lens[i]);
		ck_assert_int_eq((unsigned char)b.p[0], 0x82);
		ck_assert_int_eq((unsigned char)b.p[1], 0x80 | (lens[i] < 126        ? (int)lens[i]
								   : lens[i] < 65536 ? 126
										     : 127));
		for (j = 0; j < lens[i]; j++)
			ck_assert_int_eq(b.p[head + j], mask[j & 3]);
		hr_buf_done(&b);
	}
}
END_TEST

/* A message that its fn stops at leaves nothing behind; one without an end is refused. */
START_TEST(frames_end)
{
	struct got g = {.stop_at = 1};
	struct hr_wsframes f;
	struct hr_err err = {0};
	HR_FREE char *p = calloc(1, 60000);
	int r = 0, i;

	ck_assert_ptr_nonnull(p);
	hr_buf_init(&g.b, 1000);
	hr_wsframes_init(&f);
	ck_assert_int_eq(hr_wsframes_feed(&f, "\x82\x01x\x82\x01y", 6, on_message, &g, &err), 1);
	ck_assert_str_eq(hr_buf_str(&g.b), "2:x ");
	hr_wsframes_done(&f);
	hr_wsframes_init(&f);
	for (i = 0; i < 200 && r == 0; i++) {
		char head[4] = {i == 0 ? 2 : 0, 126, (char)(59996 >> 8), (char)(59996 & 255)};

		r = hr_wsframes_feed(&f, head, 4, on_message, &g, &err);
		if (r == 0)
			r = hr_wsframes_feed(&f, p, 59996, on_message, &g, &err);
	}
	ck_assert_int_eq(r, -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	hr_wsframes_done(&f);
	hr_buf_done(&g.b);
}
END_TEST

/* The example of RFC 6455. */
START_TEST(accept_key)
{
	char got[64];

	hr_ws_accept("dGhlIHNhbXBsZSBub25jZQ==", got);
	ck_assert_str_eq(got, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("kubernetes");
	TCase *t = tcase_create("kubernetes");
	TCase *native = tcase_create("native");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, yaml_as_json, 0, N(yamls));
	tcase_add_test(t, contexts);
	tcase_add_loop_test(t, wrong_contexts, 0, N(wrong));
	tcase_add_test(t, no_kubeconfig);
	tcase_add_loop_test(t, exec_credentials, 0, N(credentials));
	tcase_add_test(t, exec_program);
	tcase_set_tags(native, "no-valgrind"); /* it knows no pidfd_open */
	tcase_add_test(native, exec_leaves_something);
	tcase_add_test(native, exec_runs_on);
	tcase_add_test(t, forward_one_is_slow);
	tcase_add_loop_test(t, status_in_words, 0, N(statuses));
	tcase_add_loop_test(t, watch_lines, 0, N(lines));
	tcase_add_loop_test(t, pods_in_words, 0, N(pods));
	tcase_add_loop_test(t, quantities, 0, N(amounts));
	tcase_add_loop_test(t, frames_of_a_server, 0, N(frames));
	tcase_add_test(t, frames_of_ours);
	tcase_add_test(t, frames_end);
	tcase_add_test(t, accept_key);
	suite_add_tcase(s, t);
	suite_add_tcase(s, native);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
