/* Sends requests to the service. Its answers are not trusted: types are checked, and an address
 * must be valid. */
#include "config.h"

#include "host/remote/remote_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "host/command.h"
#include "base/err.h"
#include "base/text/text.h"
#include "host/config/settings.h"
#include "proto/json.h"

#define PATH_MAX_LEN 4096
#define PORT 60000
#define ROUND_MS 2000
#define ALIVE_TIMEOUT_S 5

/* Appends "WHAT" and the escaped id. Returns false if it is too long or memory runs out. */
static bool
path_of(struct hr_buf *b, const char *what, const char *id)
{
	hr_buf_adds(b, what);
	hr_http_escape(b, id);
	return hr_buf_check(b, NULL) == 0;
}

static int
foreign(struct hr_err *err, const char *what)
{
	return hr_err_set(err, HR_E_RUNTIME, "Invalid response from runtime API: %s", what);
}

/* Accepts an address for requests with the key: if the service uses TLS, so must the sandbox. */
static bool
is_address(const struct hr_remote *remote, const char *url)
{
	const char *api = hr_config_text(remote->h->config, "sandbox.remote_runtime_api_url");
	const char *host, *p;

	for (p = url; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return false;
	if (strncasecmp(url, "https://", 8) == 0)
		return url[8] != '\0';
	if (strncasecmp(url, "http://", 7) != 0 || url[7] == '\0')
		return false;
	host = url + 7;
	return strncasecmp(api, "https://", 8) != 0 || strncmp(host, "127.0.0.1", 9) == 0 ||
	       strncmp(host, "localhost", 9) == 0;
}

/* Derives the editor's addresses from the sandbox's as the original does. */
static int
vscode_address(struct hr_remote *remote)
{
	const char *host = strstr(remote->url, "://") + 3, *path = host + strcspn(host, "/");
	size_t n = strlen(remote->id);

	if (*path == '/' && strncmp(path + 1, remote->id, n) == 0)
		return hr_text_setf(&remote->vscode, NULL, "%.*s/%s/vscode",
		    (int)(path - remote->url), remote->url, remote->id);
	return hr_text_setf(&remote->vscode, NULL, "%.*svscode-%.*s/", (int)(host - remote->url),
	    remote->url, (int)(path - host), host);
}

/* Takes over the session key in an answer, NULL if it has none. */
static int
take_key(struct hr_remote *remote, struct json_object *o, struct hr_err *err)
{
	const char *key = hr_json_text_at(o, "session_api_key"), *p;

	for (p = key; p != NULL && *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return foreign(err, "its session_api_key is not valid in a header");
	return hr_text_set(&remote->key, key, err);
}

/* Takes over the sandbox in an answer. */
static int
take_over(struct hr_remote *remote, struct json_object *o, struct hr_err *err)
{
	const char *id = hr_json_text_at(o, "runtime_id"), *url = hr_json_text_at(o, "url");
	struct json_object *hosts = hr_json_at(o, "work_hosts");
	HR_BUF(b, 1u << 16);
	int bad = 0;

	if (id == NULL || *id == '\0')
		return foreign(err, "it names no runtime_id");
	if (url == NULL || !is_address(remote, url))
		return foreign(err, "its url is not an address, or has no TLS");
	if (take_key(remote, o, err) != 0)
		return -1;
	if (hr_json_type(hosts) == HR_PY_DICT)
		bad |= hr_json_put(&b, hosts);
	bad |= hr_text_set(&remote->id, id, NULL);
	bad |= hr_text_set(&remote->url, url, NULL);
	free(remote->hosts);
	remote->hosts = b.len > 0 ? hr_buf_take(&b) : NULL;
	return bad != 0 || vscode_address(remote) < 0 ? hr_err_nomem(err) : 0;
}

int
hr_remote_session(struct hr_remote *remote, struct json_object **ret, struct hr_err *err)
{
	struct hr_err why = {0};
	HR_BUF(path, PATH_MAX_LEN);

	*ret = NULL;
	if (!path_of(&path, "/sessions/", remote->h->sid))
		return hr_err_nomem(err);
	if (hr_rest_get(remote->api, hr_buf_str(&path), ret, &why) == 0 || why.status == 404)
		return 0;
	return hr_err_pass(err, &why);
}

int
hr_remote_find(struct hr_remote *remote, enum hr_connected *ret, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	const char *status;
	char text[200];
	int r;

	if (hr_remote_session(remote, &o, err) != 0)
		return -1;
	status = hr_json_text_or(o, "status", "");
	*ret = strcmp(status, "paused") == 0 ? HR_SANDBOX_RESUMED : HR_SANDBOX_FOUND;
	if (strcmp(status, "running") == 0 || strcmp(status, "paused") == 0) {
		r = take_over(remote, o, err) == 0 ? 1 : -1;
	} else {
		r = 0;
		if (o != NULL && strcmp(status, "stopped") != 0) {
			(void)snprintf(text, sizeof(text),
			    "Invalid response from runtime API: status %.100s", status);
			remote->h->log(remote->h->arg, text);
		}
	}
	if (r == 1 && strcmp(status, "paused") == 0 && hr_remote_resume(remote, &why) != 0) {
		remote->h->log(remote->h->arg, why.msg);
		r = 0;
	}
	return r;
}

int
hr_remote_post(struct hr_remote *remote, const char *what, struct hr_err *err)
{
	HR_PUT struct json_object *body = hr_json_texts(err, "runtime_id", remote->id, NULL);
	struct hr_rest_call c = {.method = "POST", .path = what, .json = body, .idempotent = true};

	return body != NULL ? hr_rest_call(remote->api, &c, NULL, err) : -1;
}

int
hr_remote_resume(void *self, struct hr_err *err)
{
	struct hr_remote *remote = self;

	remote->h->status(remote->h->arg, "STATUS$STARTING_RUNTIME");
	return hr_remote_post(remote, "/resume", err) == 0 ? hr_remote_wait(remote, err) : -1;
}

static struct json_object *
command_of(struct hr_remote *remote, struct hr_err *err)
{
	const struct hr_command c = hr_command_in_image(remote->h, PORT);
	struct json_object *list = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv words = {0};

	if (hr_command_build(&words, &c, remote->h->config, remote->h->environ, err) == 0)
		list = hr_json_list(err, hr_strv_list(&words));
	return list;
}

/* ---- creation ---- */

static struct json_object *
environment_of(struct hr_remote *remote)
{
	struct json_object *given =
	    hr_config_value(remote->h->config, "sandbox.runtime_startup_env_vars");
	struct json_object *o = json_object_new_object();
	const char *debug = hr_env_get(remote->h->environ, "DEBUG");
	int bad = o == NULL;

	if (!bad && (hr_config_bool(remote->h->config, "core.debug") ||
			(debug != NULL && strcasecmp(debug, "true") == 0)))
		bad |= hr_json_set(o, "DEBUG", json_object_new_string("true"), NULL);
	if (!bad && hr_json_type(given) == HR_PY_DICT) {
		json_object_object_foreach(given, name, value)
		{
			bad |= hr_json_set(o, name,
			    json_object_new_string(
				value != NULL ? json_object_get_string(value) : ""),
			    NULL);
		}
	}
	if (bad) {
		json_object_put(o);
		return NULL;
	}
	return o;
}

static struct json_object *
start_body(struct hr_remote *remote, const char *image, struct hr_err *err)
{
	const struct hr_config *c = remote->h->config;
	const char *class = hr_config_text(c, "sandbox.remote_runtime_class");
	struct json_object *command = command_of(remote, err);
	struct json_object *user = hr_config_value(c, "sandbox.security.run_as_user");
	struct json_object *group = hr_config_value(c, "sandbox.security.run_as_group");
	bool sysbox = class != NULL && strcmp(class, "sysbox") == 0;

	if (command == NULL)
		return NULL;
	return hr_json_object(err, "image", json_object_new_string(image), "command", command,
	    "working_dir", json_object_new_string("/openhands/code/"), "environment",
	    environment_of(remote), "session_id", json_object_new_string(remote->h->sid),
	    "resource_factor",
	    json_object_new_int64(hr_config_int(c, "sandbox.remote_runtime_resource_factor")),
	    "runtime_class", hr_json_maybe(sysbox ? "sysbox-runc" : NULL), "run_as_user",
	    user != NULL ? json_object_get(user) : HR_JSON_NONE, "run_as_group",
	    group != NULL ? json_object_get(group) : HR_JSON_NONE, NULL);
}

/* Returns true if the answer was lost or a gateway timed out: the sandbox may exist. */
static bool
may_be_there(const struct hr_err *e)
{
	return e->code == HR_E_HTTP_TIMEOUT || e->code == HR_E_PROTO ||
	       (e->code == HR_E_HTTP_NETWORK && strcmp(hr_err_class(e), "ConnectError") != 0) ||
	       (e->code == HR_E_HTTP_STATUS && (e->status == 409 || e->status >= 500));
}

static int
look_for_it(struct hr_remote *remote, const struct hr_err *why, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	const char *status;

	if (may_be_there(why) && hr_remote_session(remote, &o, NULL) == 0 && o != NULL) {
		status = hr_json_text_or(o, "status", "");
		if (strcmp(status, "stopped") != 0 && strcmp(status, "error") != 0 &&
		    take_over(remote, o, NULL) == 0)
			return 0;
	}
	return hr_err_set(
	    err, why->code == HR_E_HTTP_STATUS ? HR_E_UNAVAILABLE : why->code, "%s", why->msg);
}

int
hr_remote_start(struct hr_remote *remote, enum hr_connected *ret, struct hr_err *err)
{
	const char *given = hr_config_text(remote->h->config, "sandbox.runtime_container_image");
	struct hr_build_options build = {.environ = remote->h->environ};
	HR_FREE char *image = given != NULL ? strdup(given) : hr_remote_build(remote, &build, err);
	HR_PUT struct json_object *body = NULL;
	HR_PUT struct json_object *answer = NULL;
	struct hr_err why = {0};
	int r = -1;

	if (image == NULL)
		return given != NULL ? hr_err_nomem(err) : -1;
	remote->h->status(remote->h->arg, "STATUS$STARTING_RUNTIME");
	body = start_body(remote, image, err);
	if (body == NULL)
		return -1;
	*ret = HR_SANDBOX_MADE;
	if (hr_rest_send(remote->api, "POST", "/start", body, &answer, &why) == 0) {
		r = take_over(remote, answer, err);
	} else {
		/* another process has just created the session */
		if (why.code == HR_E_HTTP_STATUS && why.status == 409)
			*ret = HR_SANDBOX_FOUND;
		r = look_for_it(remote, &why, err);
	}
	return r;
}

/* ---- waiting ---- */

static int
alive(struct hr_remote *remote, struct hr_err *err)
{
	struct hr_rest_options o = {.url = remote->url,
	    .rules = hr_rest_once,
	    .timeout_s = ALIVE_TIMEOUT_S,
	    .total_s = ALIVE_TIMEOUT_S,
	    .answer_max = 1u << 16,
	    .watch_fd = -1};
	struct hr_rest_call c = {
	    .method = "GET", .path = "/alive", .headers = remote->headers, .raw = true};
	struct hr_err why = {0};
	struct hr_rest *sandbox = hr_rest_new(&o, &why);
	int r = sandbox != NULL ? 0 : -1;

	if (r == 0 && remote->key != NULL)
		r = hr_rest_header(sandbox, "X-Session-API-Key", remote->key, true, &why);
	if (r == 0)
		r = hr_rest_call(sandbox, &c, NULL, &why);
	hr_rest_free(sandbox);
	if (r != 0)
		return hr_err_set(
		    err, HR_E_NOT_READY, "Runtime /alive failed to respond with 200: %s", why.msg);
	return 0;
}

enum pod { POD_READY, POD_COMING, POD_CRASHED, POD_LOST };

static const struct {
	const char *name;
	enum pod is;
} pods[] = {
    {"ready", POD_READY},
    {"not found", POD_COMING},
    {"pending", POD_COMING},
    {"running", POD_COMING},
    {"crashloopbackoff", POD_CRASHED},
    {"failed", POD_LOST},
    {"unknown", POD_LOST},
};

static int
look_at_pod(struct hr_remote *remote, const char *status, struct hr_err *err)
{
	char text[160];
	size_t i = 0;

	while (i < sizeof(pods) / sizeof(*pods) && strcasecmp(pods[i].name, status) != 0)
		i++;
	if (i == sizeof(pods) / sizeof(*pods)) {
		(void)snprintf(text, sizeof(text), "Unknown pod status: %.100s", status);
		remote->h->log(remote->h->arg, text);
		return hr_err_set(err, HR_E_NOT_READY, "%s", text);
	}
	switch (pods[i].is) {
	case POD_READY: return alive(remote, err);
	case POD_CRASHED:
		return hr_err_set(err, HR_E_UNAVAILABLE,
		    "Runtime crashed and is being restarted, potentially due to memory usage. "
		    "Please try again.");
	case POD_LOST:
		return hr_err_set(err, HR_E_UNAVAILABLE,
		    "Runtime is unavailable (status: %s). Please try again.", pods[i].name);
	default:
		return hr_err_set(err, HR_E_NOT_READY,
		    "Runtime (ID=%s) is not yet ready. Status: %s", remote->id, pods[i].name);
	}
}

/* Fails with HR_E_NOT_READY while the sandbox starts. */
static int
look(struct hr_remote *remote, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	const char *status;
	HR_BUF(path, PATH_MAX_LEN);

	if (!path_of(&path, "/runtime/", remote->id))
		return hr_err_nomem(err);
	if (hr_rest_get(remote->api, hr_buf_str(&path), &o, &why) != 0) {
		if (why.code == HR_E_HTTP_STATUS && why.status < 500 && why.status != 429)
			return hr_err_pass(err, &why);
		/* a short outage of the service does not lose the sandbox */
		return hr_err_set(err, HR_E_NOT_READY, "%s", why.msg);
	}
	status = hr_json_text_at(o, "pod_status");
	if (status == NULL || strcmp(hr_json_text_or(o, "runtime_id", ""), remote->id) != 0)
		return foreign(err, "it describes another runtime, or lacks pod_status");
	/* A resume may have replaced the key. Its own answer may be lost, and this one is not. */
	if (hr_json_text_at(o, "session_api_key") != NULL && take_key(remote, o, err) != 0)
		return -1;
	return look_at_pod(remote, status, err);
}

bool
hr_remote_has_new_key(struct hr_remote *remote)
{
	HR_FREE char *before = remote->key != NULL ? strdup(remote->key) : NULL;

	return look(remote, NULL) == 0 && remote->key != NULL &&
	       (before == NULL || strcmp(before, remote->key) != 0);
}

int
hr_remote_wait(struct hr_remote *remote, struct hr_err *err)
{
	long long patience =
	    hr_config_int(remote->h->config, "sandbox.remote_runtime_init_timeout");
	struct hr_err why = {0};
	struct timespec from, now;

	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	for (;;) {
		if (look(remote, &why) == 0)
			return 0;
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		if (why.code != HR_E_NOT_READY || now.tv_sec - from.tv_sec >= patience)
			break;
		/* the service offers only polling; poll as often as its clients do */
		(void)hr_rest_wait(-1, ROUND_MS);
	}
	return hr_err_pass(err, &why);
}
