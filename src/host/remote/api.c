/* What is asked of the service. Its answers are foreign: types are looked at, and an address counts
 * only if it is one. */
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
#include "host/config/settings.h"
#include "proto/json.h"

#define PATH_MAX_LEN 4096
#define PORT 60000
#define ROUND_MS 2000
#define ALIVE_TIMEOUT_S 5

/* "WHAT" with the escaped id behind it; false: too long, or no memory. */
static bool
path_of(struct hr_buf *b, const char *what, const char *id)
{
	hr_buf_init(b, PATH_MAX_LEN);
	hr_buf_adds(b, what);
	hr_http_escape(b, id);
	return hr_buf_check(b, NULL) == 0;
}

static int
foreign(struct hr_err *err, const char *what)
{
	return hr_err_set(err, HR_E_RUNTIME, "Invalid response from runtime API: %s", what);
}

/* An address that requests with the key may go to: TLS is not left on the way to the sandbox. */
static bool
is_address(const struct hr_remote *r, const char *url)
{
	const char *api = hr_config_text(r->h->config, "sandbox.remote_runtime_api_url");
	const char *host;

	for (const char *p = url; *p != '\0'; p++)
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

/* The places of the editor, as the original derives them from the sandbox's. */
static int
vscode_address(struct hr_remote *r)
{
	const char *host = strstr(r->url, "://") + 3, *path = host + strcspn(host, "/");
	size_t n = strlen(r->id);

	free(r->vscode);
	if (*path == '/' && strncmp(path + 1, r->id, n) == 0)
		return asprintf(&r->vscode, "%.*s/%s/vscode", (int)(path - r->url), r->url, r->id);
	return asprintf(
	    &r->vscode, "%.*svscode-%.*s/", (int)(host - r->url), r->url, (int)(path - host), host);
}

static int
replace(char **to, const char *text)
{
	free(*to);
	*to = text != NULL ? strdup(text) : NULL;
	return text == NULL || *to != NULL ? 0 : -1;
}

/* Takes the sandbox over that an answer tells of. */
static int
take_over(struct hr_remote *r, struct json_object *o, struct hr_err *err)
{
	const char *id = hr_json_text_at(o, "runtime_id"), *url = hr_json_text_at(o, "url");
	const char *key = hr_json_text_at(o, "session_api_key");
	struct json_object *hosts = hr_json_at(o, "work_hosts");
	struct hr_buf b;
	int bad = 0;

	if (id == NULL || *id == '\0')
		return foreign(err, "it names no runtime_id");
	if (url == NULL || !is_address(r, url))
		return foreign(err, "its url is no address, or one without TLS");
	for (const char *p = key; p != NULL && *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return foreign(err, "its session_api_key is no text of a header");
	hr_buf_init(&b, 1u << 16);
	if (hr_json_type(hosts) == HR_PY_DICT)
		bad |= hr_json_put(&b, hosts);
	bad |= replace(&r->id, id);
	bad |= replace(&r->url, url);
	bad |= replace(&r->key, key);
	free(r->hosts);
	r->hosts = b.len > 0 ? hr_buf_take(&b) : NULL;
	hr_buf_done(&b);
	return bad != 0 || vscode_address(r) < 0 ? hr_err_nomem(err) : 0;
}

int
hr_remote_session(struct hr_remote *r, struct json_object **ret, struct hr_err *err)
{
	struct hr_err why = {0};
	struct hr_buf path;
	int rc;

	*ret = NULL;
	if (!path_of(&path, "/sessions/", r->h->sid))
		rc = hr_err_nomem(&why);
	else
		rc = hr_rest_get(r->api, hr_buf_str(&path), ret, &why);
	hr_buf_done(&path);
	if (rc != 0 && why.status == 404)
		return 0;
	if (rc != 0 && err != NULL)
		*err = why;
	return rc;
}

int
hr_remote_find(struct hr_remote *r, struct hr_err *err)
{
	struct json_object *o = NULL;
	struct hr_err why = {0};
	const char *status;
	char text[200];
	int rc;

	if (hr_remote_session(r, &o, err) != 0)
		return -1;
	status = hr_json_text_or(o, "status", "");
	if (strcmp(status, "running") == 0 || strcmp(status, "paused") == 0) {
		rc = take_over(r, o, err) == 0 ? 1 : -1;
	} else {
		rc = 0;
		if (o != NULL && strcmp(status, "stopped") != 0) {
			(void)snprintf(text, sizeof(text),
			    "Invalid response from runtime API: status %.100s", status);
			r->h->log(r->h->arg, text);
		}
	}
	if (rc == 1 && strcmp(status, "paused") == 0 && hr_remote_resume(r, &why) != 0) {
		r->h->log(r->h->arg, why.msg);
		rc = 0;
	}
	json_object_put(o);
	return rc;
}

int
hr_remote_post(struct hr_remote *r, const char *what, struct hr_err *err)
{
	struct json_object *body = json_object_new_object();
	struct hr_rest_call c = {.method = "POST", .path = what, .json = body, .idempotent = true};
	int rc;

	if (body == NULL ||
	    json_object_object_add(body, "runtime_id", json_object_new_string(r->id)) != 0)
		rc = hr_err_nomem(err);
	else
		rc = hr_rest_call(r->api, &c, NULL, err);
	json_object_put(body);
	return rc;
}

int
hr_remote_resume(struct hr_remote *r, struct hr_err *err)
{
	r->h->status(r->h->arg, "STATUS$STARTING_RUNTIME");
	return hr_remote_post(r, "/resume", err) == 0 ? hr_remote_wait(r, err) : -1;
}

/* ---- making ---- */

static int
put(struct json_object *o, const char *name, struct json_object *value)
{
	if (value != NULL && json_object_object_add(o, name, value) == 0)
		return 0;
	json_object_put(value);
	return -1;
}

static struct json_object *
command_of(struct hr_remote *r, struct hr_err *err)
{
	static const char *const prefix[] = {"/openhands/micromamba/bin/micromamba", "run", "-n",
	    "openhands", "poetry", "run", "python", "-u", "-m",
	    "openhands.runtime.action_execution_server", NULL};
	struct hr_command c = {.prefix = prefix,
	    .plugins = r->h->plugins,
	    .user_id = -1,
	    .port = PORT,
	    .working_dir = hr_config_text(r->h->config, "core.workspace_mount_path_in_sandbox")};
	struct json_object *list = json_object_new_array();
	struct hr_strv words = {0};
	int bad = list == NULL;

	if (hr_command_build(&words, &c, r->h->config, r->h->environ, err) != 0)
		bad = 1;
	for (size_t i = 0; !bad && i < words.n; i++)
		bad |= json_object_array_add(list, json_object_new_string(words.v[i])) != 0;
	hr_strv_done(&words);
	if (bad) {
		json_object_put(list);
		return NULL;
	}
	return list;
}

static struct json_object *
environment_of(struct hr_remote *r)
{
	struct json_object *given =
	    hr_config_value(r->h->config, "sandbox.runtime_startup_env_vars");
	struct json_object *o = json_object_new_object();
	const char *debug = hr_env_get(r->h->environ, "DEBUG");
	int bad = o == NULL;

	if (!bad && (hr_config_bool(r->h->config, "core.debug") ||
			(debug != NULL && strcasecmp(debug, "true") == 0)))
		bad |= put(o, "DEBUG", json_object_new_string("true"));
	if (!bad && hr_json_type(given) == HR_PY_DICT) {
		json_object_object_foreach(given, name, value)
		{
			bad |= put(o, name,
			    json_object_new_string(
				value != NULL ? json_object_get_string(value) : ""));
		}
	}
	if (bad) {
		json_object_put(o);
		return NULL;
	}
	return o;
}

static struct json_object *
start_body(struct hr_remote *r, const char *image, struct hr_err *err)
{
	const struct hr_config *c = r->h->config;
	const char *class = hr_config_text(c, "sandbox.remote_runtime_class");
	struct json_object *o = json_object_new_object(), *command = command_of(r, err);
	struct json_object *user = hr_config_value(c, "sandbox.security.run_as_user");
	struct json_object *group = hr_config_value(c, "sandbox.security.run_as_group");
	int bad = o == NULL || command == NULL;

	if (!bad) {
		bad |= put(o, "image", json_object_new_string(image));
		bad |= put(o, "command", command);
		command = NULL;
		bad |= put(o, "working_dir", json_object_new_string("/openhands/code/"));
		bad |= put(o, "environment", environment_of(r));
		bad |= put(o, "session_id", json_object_new_string(r->h->sid));
		bad |= put(o, "resource_factor",
		    json_object_new_int64(
			hr_config_int(c, "sandbox.remote_runtime_resource_factor")));
		if (class != NULL && strcmp(class, "sysbox") == 0)
			bad |= put(o, "runtime_class", json_object_new_string("sysbox-runc"));
		if (user != NULL)
			bad |= put(o, "run_as_user", json_object_get(user));
		if (group != NULL)
			bad |= put(o, "run_as_group", json_object_get(group));
	}
	if (!bad)
		return o;
	json_object_put(command);
	json_object_put(o);
	if (err == NULL || err->code == HR_OK)
		(void)hr_err_nomem(err);
	return NULL;
}

/* The answer was lost on the way, or a gateway was not patient enough: it may be there. */
static bool
may_be_there(const struct hr_err *e)
{
	return e->code == HR_E_HTTP_TIMEOUT || e->code == HR_E_PROTO ||
	       (e->code == HR_E_HTTP_NETWORK && strcmp(hr_err_class(e), "ConnectError") != 0) ||
	       (e->code == HR_E_HTTP_STATUS && (e->status == 409 || e->status >= 500));
}

static int
look_for_it(struct hr_remote *r, const struct hr_err *why, struct hr_err *err)
{
	struct json_object *o = NULL;
	const char *status;
	int rc = -1;

	if (may_be_there(why) && hr_remote_session(r, &o, NULL) == 0 && o != NULL) {
		status = hr_json_text_or(o, "status", "");
		if (strcmp(status, "stopped") != 0 && strcmp(status, "error") != 0)
			rc = take_over(r, o, NULL);
	}
	json_object_put(o);
	if (rc != 0)
		(void)hr_err_set(err, why->code == HR_E_HTTP_STATUS ? HR_E_UNAVAILABLE : why->code,
		    "%s", why->msg);
	return rc;
}

int
hr_remote_start(struct hr_remote *r, struct hr_err *err)
{
	const char *given = hr_config_text(r->h->config, "sandbox.runtime_container_image");
	struct hr_build_options build = {.environ = r->h->environ};
	char *image = given != NULL ? strdup(given) : hr_remote_build(r, &build, err);
	struct json_object *body = NULL, *answer = NULL;
	struct hr_err why = {0};
	int rc = -1;

	if (image == NULL)
		return given != NULL ? hr_err_nomem(err) : -1;
	r->h->status(r->h->arg, "STATUS$STARTING_RUNTIME");
	body = start_body(r, image, err);
	free(image);
	if (body == NULL)
		return -1;
	if (hr_rest_send(r->api, "POST", "/start", body, &answer, &why) != 0)
		rc = look_for_it(r, &why, err);
	else
		rc = take_over(r, answer, err);
	json_object_put(body);
	json_object_put(answer);
	return rc;
}

/* ---- waiting ---- */

static int
alive(struct hr_remote *r, struct hr_err *err)
{
	static const struct hr_rest_rule once[] = {{0}};
	struct hr_rest_options o = {.url = r->url,
	    .rules = once,
	    .timeout_s = ALIVE_TIMEOUT_S,
	    .total_s = ALIVE_TIMEOUT_S,
	    .answer_max = 1u << 16,
	    .watch_fd = -1};
	struct hr_rest_call c = {
	    .method = "GET", .path = "/alive", .headers = r->headers, .raw = true};
	struct hr_err why = {0};
	struct hr_rest *sandbox = hr_rest_new(&o, &why);
	int rc = sandbox != NULL ? 0 : -1;

	if (rc == 0 && r->key != NULL)
		rc = hr_rest_header(sandbox, "X-Session-API-Key", r->key, true, &why);
	if (rc == 0)
		rc = hr_rest_call(sandbox, &c, NULL, &why);
	hr_rest_free(sandbox);
	if (rc != 0)
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
look_at_pod(struct hr_remote *r, const char *status, struct hr_err *err)
{
	char text[160];
	size_t i = 0;

	while (i < sizeof(pods) / sizeof(*pods) && strcasecmp(pods[i].name, status) != 0)
		i++;
	if (i == sizeof(pods) / sizeof(*pods)) {
		(void)snprintf(text, sizeof(text), "Unknown pod status: %.100s", status);
		r->h->log(r->h->arg, text);
		return hr_err_set(err, HR_E_NOT_READY, "%s", text);
	}
	switch (pods[i].is) {
	case POD_READY: return alive(r, err);
	case POD_CRASHED:
		return hr_err_set(err, HR_E_UNAVAILABLE,
		    "Runtime crashed and is being restarted, potentially due to memory usage. "
		    "Please try again.");
	case POD_LOST:
		return hr_err_set(err, HR_E_UNAVAILABLE,
		    "Runtime is unavailable (status: %s). Please try again.", pods[i].name);
	default:
		return hr_err_set(err, HR_E_NOT_READY,
		    "Runtime (ID=%s) is not yet ready. Status: %s", r->id, pods[i].name);
	}
}

/* HR_E_NOT_READY: not yet. */
static int
look(struct hr_remote *r, struct hr_err *err)
{
	struct json_object *o = NULL;
	struct hr_err why = {0};
	const char *status;
	struct hr_buf path;
	int rc = -1;

	if (!path_of(&path, "/runtime/", r->id)) {
		hr_buf_done(&path);
		return hr_err_nomem(err);
	}
	if (hr_rest_get(r->api, hr_buf_str(&path), &o, &why) != 0) {
		if (why.code == HR_E_HTTP_STATUS && why.status < 500 && why.status != 429) {
			if (err != NULL)
				*err = why;
		} else {
			/* a service that is down for a moment has not lost the sandbox */
			(void)hr_err_set(err, HR_E_NOT_READY, "%s", why.msg);
		}
	} else {
		status = hr_json_text_at(o, "pod_status");
		if (status == NULL || strcmp(hr_json_text_or(o, "runtime_id", ""), r->id) != 0)
			rc = foreign(err, "it tells of another runtime, or has no pod_status");
		else
			rc = look_at_pod(r, status, err);
	}
	json_object_put(o);
	hr_buf_done(&path);
	return rc;
}

int
hr_remote_wait(struct hr_remote *r, struct hr_err *err)
{
	long long patience = hr_config_int(r->h->config, "sandbox.remote_runtime_init_timeout");
	struct hr_err why = {0};
	struct timespec from, now;

	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	for (;;) {
		if (look(r, &why) == 0)
			return 0;
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		if (why.code != HR_E_NOT_READY || now.tv_sec - from.tv_sec >= patience)
			break;
		/* the service can only be asked again, as often as its clients do */
		(void)hr_rest_wait(-1, ROUND_MS);
	}
	if (err != NULL)
		*err = why;
	return -1;
}
