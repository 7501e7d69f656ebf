/* Implements the back-end "remote": a sandbox that a service creates (doc/host.md, "The
 * back-end remote"). api.c creates it and waits for it, build.c has images. */
#include "config.h"

#include "host/remote/remote_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "base/text/text.h"
#include "host/common/exam.h"
#include "host/common/recordtext.h"
#include "host/config/settings.h"
#include "host/backends.h"
#include "proto/json.h"

#define ATTEMPTS 3 /* attempts of a request without a connection */
#define BETWEEN_MS 4000
#define CAUSE_MAX 500 /* maximum bytes of an error within another */

/* Rules for retries: as in the original for 429 only; idempotent requests are repeated for other
 * reasons, too. */
static const struct hr_rest_rule rules[] = {
    {.failures = HR_REST_LIMITED,
	.always = HR_REST_LIMITED,
	.attempts = 3,
	.first_ms = 4000,
	.most_ms = 4000},
    {.failures = HR_REST_UNSENT | HR_REST_LOST | HR_REST_FAILED,
	.attempts = 4,
	.first_ms = 500,
	.most_ms = 4000,
	.jitter_percent = 50},
    {0},
};

static void
remote_free(void *self)
{
	struct hr_remote *remote = self;

	hr_rest_free(remote->api);
	free(remote->id);
	free(remote->url);
	free(remote->key);
	free(remote->hosts);
	free(remote->vscode);
	if (remote->key_line != NULL)
		explicit_bzero(remote->key_line, strlen(remote->key_line));
	free(remote->key_line);
	free(remote);
}

static int
check(const struct hr_config *c, struct hr_err *err)
{
	const char *class = hr_config_text(c, "sandbox.remote_runtime_class");
	long long factor = hr_config_int(c, "sandbox.remote_runtime_resource_factor");
	const char *url = hr_config_text(c, "sandbox.remote_runtime_api_url");

	if (hr_config_text(c, "sandbox.api_key") == NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "API key is required to use the remote runtime. Please set the API key in the "
		    "config (config.toml) or as an environment variable (SANDBOX_API_KEY).");
	if (url == NULL || *url == '\0')
		return hr_err_set(
		    err, HR_E_INVAL, "remote_runtime_api_url is required in the remote runtime.");
	if (class != NULL && strcmp(class, "sysbox") != 0 && strcmp(class, "gvisor") != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.remote_runtime_class must be sysbox or gvisor, not \"%.40s\"", class);
	if (factor != 1 && factor != 2 && factor != 4 && factor != 8)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.remote_runtime_resource_factor must be 1, 2, 4 or 8, not %lld",
		    factor);
	return 0;
}

static int
remote_open(const struct hr_backend_host *h, void **ret_self, struct hr_err *err)
{
	const char *key = hr_config_text(h->config, "sandbox.api_key");
	long long timeout = hr_config_int(h->config, "sandbox.remote_runtime_api_timeout");
	struct hr_rest_options o = {
	    .url = hr_config_text(h->config, "sandbox.remote_runtime_api_url"),
	    .rules = rules,
	    .timeout_s = timeout > 0 && timeout < 86400 ? (unsigned)timeout : 180,
	    .watch_fd = -1};
	struct hr_remote *remote;

	if (check(h->config, err) != 0)
		return -1;
	remote = calloc(1, sizeof(*remote));
	if (remote == NULL)
		return hr_err_nomem(err);
	remote->h = h;
	if (hr_text_setf(&remote->key_line, err, "X-API-Key: %s", key) != 0) {
		remote_free(remote);
		return -1;
	}
	remote->headers[0] = remote->key_line;
	remote->api = hr_rest_new(&o, err);
	if (remote->api == NULL || hr_rest_header(remote->api, "X-API-Key", key, true, err) != 0) {
		remote_free(remote);
		return -1;
	}
	*ret_self = remote;
	return 0;
}

static int
remote_connect(void *self, enum hr_connected *ret, struct hr_err *err)
{
	struct hr_remote *remote = self;
	int found = hr_remote_find(remote, ret, err), r;

	if (found < 0)
		return -1;
	if (found == 0 && remote->h->attach)
		return hr_err_set(err, HR_E_NO_SANDBOX,
		    "Could not find existing runtime for SID: %s", remote->h->sid);
	r = found == 1 ? 0 : hr_remote_start(remote, ret, err);
	if (r == 0 && *ret == HR_SANDBOX_MADE)
		remote->h->begun(remote->h->arg);
	if (r == 0)
		r = hr_remote_wait(remote, err);
	/* leaves a sandbox alone that others use */
	if (r != 0 && found == 0 && *ret == HR_SANDBOX_MADE && remote->id != NULL)
		(void)hr_remote_post(remote, "/stop", NULL);
	return r;
}

static void
remote_endpoint(void *self, struct hr_endpoint *ret)
{
	struct hr_remote *remote = self;

	ret->url = remote->url;
	ret->key = remote->key;
	ret->headers = remote->headers;
}

static int
remote_vscode_url(void *self, char **ret, struct hr_err *err)
{
	struct hr_remote *remote = self;

	*ret = NULL;
	if (!hr_is_one_of("vscode", remote->h->plugins) || remote->vscode == NULL)
		return 0;
	return hr_text_set(ret, remote->vscode, err);
}

static int
remote_web_hosts(void *self, char **ret_json, struct hr_err *err)
{
	const struct hr_remote *remote = self;

	*ret_json = NULL;
	return hr_text_set(ret_json, remote->hosts != NULL ? remote->hosts : "{}", err);
}

/* ---- records ---- */

static char *
remote_record(void *self, struct hr_err *err)
{
	const struct hr_remote *remote = self;
	HR_BUF(b, 1u << 20);

	hr_record_put_text(&b, "runtime_id", remote->id);
	hr_record_put_text(&b, "url", remote->url);
	hr_record_put_text(&b, "key", remote->key);
	hr_record_put_text(&b, "vscode", remote->vscode);
	hr_record_put_text(&b, "hosts", remote->hosts);
	return hr_record_take(&b, err);
}

static int
remote_restore(void *self, const char *record, struct hr_err *err)
{
	struct hr_remote *remote = self;
	size_t i;
	struct {
		const char *name;
		char **to;
		bool needed;
	} texts[] = {{"runtime_id", &remote->id, true}, {"url", &remote->url, true},
	    {"key", &remote->key, false}, {"vscode", &remote->vscode, false},
	    {"hosts", &remote->hosts, false}};
	HR_PUT struct json_object *o = NULL;
	const char *text;
	int r = 0;

	if (hr_json_decode(record, strlen(record), &o, NULL) != 0)
		o = NULL;
	for (i = 0; r == 0 && i < sizeof(texts) / sizeof(*texts); i++) {
		text = hr_json_text_at(o, texts[i].name);
		if (text == NULL && texts[i].needed)
			r = hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
		if (hr_text_set(texts[i].to, text, err) != 0)
			r = -1;
	}
	return r;
}

static const char *
remote_state(void *self)
{
	struct hr_remote *remote = self;
	HR_PUT struct json_object *o = NULL;
	const char *status, *state = "exited";

	if (hr_remote_session(remote, &o, NULL) != 0)
		return "unknown";
	status = hr_json_text_or(o, "status", "");
	/* a sandbox created later under the same name is another one */
	if (o == NULL || (remote->id != NULL &&
			     strcmp(hr_json_text_or(o, "runtime_id", remote->id), remote->id) != 0))
		state = "gone";
	else if (strcmp(status, "running") == 0)
		state = "running";
	else if (strcmp(status, "paused") == 0)
		state = "paused";
	else if (strcmp(status, "starting") == 0)
		state = "starting";
	return state;
}

/* ---- pause and end ---- */

static int
remote_pause(void *self, struct hr_err *err)
{
	return hr_remote_post(self, "/pause", err);
}

static int
remote_destroy(void *self, struct hr_err *err)
{
	struct hr_remote *remote = self;
	struct hr_err why = {0};
	int r;

	if (remote->id == NULL || remote->stopped)
		return 0;
	r = hr_remote_post(remote, "/stop", &why);
	if (r != 0 && why.status == 404)
		r = 0; /* the session has already ended, as requested */
	remote->stopped = r == 0;
	return r != 0 ? hr_err_pass(err, &why) : 0;
}

static int
remote_close(void *self, struct hr_err *err)
{
	struct hr_remote *remote = self;

	if (!hr_config_bool(remote->h->config, "sandbox.keep_runtime_alive"))
		return remote_destroy(self, err);
	if (remote->id == NULL ||
	    !hr_config_bool(remote->h->config, "sandbox.pause_closed_runtimes"))
		return 0;
	return hr_remote_post(remote, "/pause", err);
}

/* Prints the output that the service has kept. */
static int
remote_logs(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_remote *remote = self;
	HR_PUT struct json_object *o = NULL;
	const char *text, *end;
	int enough = 0;

	if (follow)
		return hr_err_set(err, HR_E_RUNTIME,
		    "remote runtime does not support following logs: its service only returns the "
		    "last lines");
	if (hr_remote_session(remote, &o, err) != 0)
		return -1;
	text = hr_json_text_or(o, "pod_logs", "");
	for (; *text != '\0' && !enough; text = *end != '\0' ? end + 1 : end) {
		end = strchrnul(text, '\n');
		enough = fn(arg, text, (size_t)(end - text));
	}
	return 0;
}

/* ---- failed requests to the sandbox ---- */

static void
say(struct hr_err *err, const char *what)
{
	char cause[CAUSE_MAX];

	(void)snprintf(cause, sizeof(cause), "%.*s", CAUSE_MAX - 1, err->msg);
	(void)hr_err_set(err, HR_E_DISCONNECTED, "%s Original error: %s", what, cause);
}

/* Resumes at most once per request: a second refusal is final. */
static bool
resume_for(struct hr_remote *remote, unsigned attempt, struct hr_err *err)
{
	struct hr_err why = *err;

	if (attempt == 1 || remote->resumed_for.code == HR_OK) {
		remote->resumed_for = *err;
		if (hr_remote_resume(remote, &why) == 0)
			return true;
	}
	(void)hr_err_set(err, HR_E_DISCONNECTED,
	    "Runtime is paused and could not be resumed. Original error: %.300s, Resume error: "
	    "%.300s",
	    remote->resumed_for.msg, why.msg);
	return false;
}

static bool
reach_again(struct hr_remote *remote, unsigned attempt, struct hr_err *err)
{
	if (!hr_config_bool(remote->h->config, "sandbox.remote_runtime_enable_retries"))
		return false;
	if (attempt >= ATTEMPTS) {
		say(err, "The runtime cannot be reached.");
		return false;
	}
	remote->h->log(remote->h->arg, "the runtime cannot be reached; trying again");
	(void)hr_rest_wait(-1, BETWEEN_MS);
	return true;
}

static void
remote_failed(void *self, unsigned attempt, bool *ret_again, struct hr_err *err)
{
	struct hr_remote *remote = self;

	if (attempt == 1)
		remote->resumed_for.code = HR_OK;
	if (err->code == HR_E_HTTP_NETWORK)
		*ret_again = reach_again(remote, attempt, err);
	if (err->code != HR_E_HTTP_STATUS)
		return;
	if (err->status == 503 && hr_config_bool(remote->h->config, "sandbox.keep_runtime_alive"))
		*ret_again = resume_for(remote, attempt, err);
	else if (err->status == 401)
		*ret_again = attempt == 1 && hr_remote_has_new_key(remote);
	else if (err->status == 404)
		say(err, "Runtime is not responding. This may be temporary, please try again.");
	else if (err->status >= 502 && err->status <= 504)
		say(err, "Runtime is temporarily unavailable. This may be due to a restart or "
			 "network issue, please try again.");
}

static int
remote_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_remote *remote = self;
	const char *url = hr_config_text(remote->h->config, "sandbox.remote_runtime_api_url");
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};

	(void)err;
	if (hr_rest_get(remote->api, "/registry_prefix", &o, &why) == 0)
		fn(arg, true, "service", url);
	else
		hr_exam_say(fn, arg, false, "service",
		    "%s; SANDBOX_API_KEY=KEY and \"-s sandbox.remote_runtime_api_url=URL\" set its "
		    "key and its address",
		    why.msg);
	return 0;
}

static int
remote_build(void *self, const struct hr_build_options *o, char **ret_name, struct hr_err *err)
{
	*ret_name = hr_remote_build(self, o, err);
	return *ret_name != NULL ? 0 : -1;
}

static const char *const heeds[] = {
    "sandbox.security.run_as_user", "sandbox.security.run_as_group", NULL};

const struct hr_sandbox_ops hr_backend_remote = {
    .abi = HR_BACKEND_ABI,
    .name = "remote",
    .flags = HR_KIND_FINDS,
    .heeds = heeds,
    .open = remote_open,
    .free = remote_free,
    .connect = remote_connect,
    .endpoint = remote_endpoint,
    .record = remote_record,
    .restore = remote_restore,
    .state = remote_state,
    .pause = remote_pause,
    .resume = hr_remote_resume,
    .close = remote_close,
    .destroy = remote_destroy,
    .logs = remote_logs,
    .failed = remote_failed,
    .vscode_url = remote_vscode_url,
    .web_hosts = remote_web_hosts,
    .doctor = remote_doctor,
    .build = remote_build,
};
