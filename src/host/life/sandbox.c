/* Implements the part that is common to all back-ends' sandboxes. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/err.h"
#include "host/client/rest.h"
#include "host/common/statedir.h"
#include "host/backends.h"
#include "host/config/rules.h"
#include "host/kind.h"
#include "host/life/logstream.h"
#include "host/mask.h"
#include "host/records/namelock.h"
#include "host/life/pool.h"
#include "host/records/record.h"
#include "host/report.h"
#include "host/life/setup.h"
#include "host/life/tokens.h"

#define ANSWER_S 10 /* seconds that a recorded sandbox's server has for a response */

const char *
hr_version(void)
{
	return PACKAGE_VERSION;
}

static void
host_log(void *arg, const char *text)
{
	hr_sandbox_log(arg, "%s", text);
}

static void
host_status(void *arg, const char *status)
{
	hr_sandbox_report(arg, status, "");
}

static void
host_progress(void *arg, const char *what, unsigned long long done, unsigned long long total)
{
	struct hr_sandbox *s = arg;

	s->progress(s->progress_arg, what, done, total);
}

/* Returns true if there is no record yet. Marks s if the record is an unready one, which belongs to
 * this process: its maker has locked the name, or the pool. */
static bool
may_record(struct hr_sandbox *s)
{
	HR_CLEAN(hr_record_done) struct hr_record rec = {0};
	bool may;

	may = hr_record_load(s->state_dir, s->sid, &rec, NULL) == 0 &&
	      (rec.runtime == NULL || rec.unready);
	s->begun = may && rec.runtime != NULL;
	return may && !s->begun;
}

/* Records the sandbox before it is ready: a later process can then end it. */
static void
host_begun(void *arg)
{
	struct hr_sandbox *s = arg;
	struct hr_err e = {0};

	if (s->state_dir == NULL || s->ops->record == NULL || !may_record(s))
		return;
	s->begun = hr_record_save_begun(s, &e) == 0;
	if (!s->begun)
		hr_sandbox_log(s, "the sandbox is not recorded yet: %s", e.msg);
}

static void
host_left(void *arg)
{
	struct hr_sandbox *s = arg;

	s->left = true;
}

static void
host_secret(void *arg, const char *text)
{
	struct hr_sandbox *s = arg;

	hr_strv_addf(&s->secrets, "PROVIDER_KEY=%s", text);
}

/* Collects SANDBOX_ENV_*, the linter's switch, and the caller's variables, in this order. */
static void
initial_env(struct hr_sandbox *s, const struct hr_sandbox_options *o)
{
	static const char prefix[] = "SANDBOX_ENV_";
	const char *const *e;

	for (e = o->environ; e != NULL && *e != NULL; e++)
		if (strncmp(*e, prefix, sizeof(prefix) - 1) == 0 &&
		    strchr(*e, '=') != *e + sizeof(prefix) - 1)
			hr_strv_set_env(&s->env, *e + sizeof(prefix) - 1);
	if (hr_config_bool(s->config, "sandbox.enable_auto_lint"))
		hr_strv_set_env(&s->env, "ENABLE_AUTO_LINT=true");
	for (e = o->env; e != NULL && *e != NULL; e++)
		hr_strv_set_env(&s->env, *e);
}

static int
sandbox_init(struct hr_sandbox *s, const struct hr_config *c, const struct hr_sandbox_options *o,
    struct hr_err *err)
{
	const char *sid = o->sid != NULL ? o->sid : "default";

	if (!hr_sid_valid(sid))
		return hr_err_set(
		    err, HR_E_INVAL, "invalid sandbox name \"%.200s\": " HR_SID_RULE, sid);
	s->config = hr_config_copy(c, err);
	if (s->config == NULL)
		return -1;
	s->sid = strdup(sid);
	s->state_dir = o->state_dir != NULL ? strdup(o->state_dir) : NULL;
	s->status = o->status;
	s->status_arg = o->status_arg;
	s->log = o->log;
	s->log_arg = o->log_arg;
	s->progress = o->progress;
	s->progress_arg = o->progress_arg;
	s->attach = o->attach;
	s->for_new = o->for_new;
	hr_strv_add_all(&s->plugins, o->plugins);
	if (!o->headless)
		hr_strv_add(&s->plugins, "vscode");
	hr_strv_add_all(&s->environ, o->environ);
	initial_env(s, o);
	hr_tokens_init(s);
	if (s->sid == NULL || (o->state_dir != NULL && s->state_dir == NULL) || s->plugins.failed ||
	    s->env.failed || s->environ.failed || s->tokens.failed)
		return hr_err_nomem(err);
	s->host = (struct hr_backend_host){
	    .config = s->config,
	    .sid = s->sid,
	    .plugins = hr_strv_list(&s->plugins),
	    .env = hr_strv_list(&s->env),
	    .environ = hr_strv_list(&s->environ),
	    .attach = o->attach,
	    .detach = o->detach,
	    .state_dir = s->state_dir,
	    .log = host_log,
	    .status = host_status,
	    .progress = o->progress != NULL ? host_progress : NULL,
	    .arg = s,
	    .begun = host_begun,
	    .config_text = hr_config_text,
	    .config_int = hr_config_int,
	    .config_bool = hr_config_bool,
	    .stop_fd = -1,
	    .left = host_left,
	    .secret = host_secret,
	    .any_owner = o->any_owner,
	};
	return 0;
}

struct hr_sandbox *
hr_sandbox_open(const struct hr_config *c, const struct hr_sandbox_options *o, struct hr_err *err)
{
	struct hr_sandbox *s = calloc(1, sizeof(*s));
	const char *name = hr_config_text(c, "core.runtime");
	HR_CLEAN(hr_record_done) struct hr_record recorded = {0};
	bool named = c->runtime_named;

	if (s == NULL)
		return hr_err_null(err);
	s->module = (struct hr_module)HR_MODULE_NONE;
	if (sandbox_init(s, c, o, err) < 0 ||
	    (s->state_dir != NULL && hr_state_directory(s->state_dir, false, err) < 0))
		goto fail;
	/* an existing sandbox keeps its back-end */
	if (o->attach && s->state_dir != NULL) {
		if (hr_record_load(s->state_dir, s->sid, &recorded, err) < 0)
			goto fail;
		if (recorded.runtime != NULL) {
			name = recorded.runtime;
			named = false;
		}
	}
	s->ops = hr_backend_find(name != NULL ? name : HR_KIND_DEFAULT, named, s->host.environ,
	    &s->module, s->log, s->log_arg, err);
	s->host.ops = s->ops;
	if (s->ops == NULL || hr_config_own(s->config, s->ops->name, s->ops->options, err) < 0 ||
	    (!s->attach && hr_rules_load(s->config, err) < 0) ||
	    (!s->attach && hr_config_heeded(s->config, s->ops->name, s->ops->heeds, s->log,
			       s->log_arg, err) < 0) ||
	    hr_sandbox_check_env(s, err) < 0 || s->ops->open(&s->host, &s->self, err) != 0)
		goto fail;
	return s;
fail:
	hr_sandbox_free(s);
	return NULL;
}

void
hr_sandbox_free(struct hr_sandbox *s)
{
	if (s == NULL)
		return;
	hr_sandbox_stop_log_stream(s);
	hr_client_done(&s->client);
	if (s->self != NULL)
		s->ops->free(s->self);
	hr_module_close(&s->module);
	hr_strv_done(&s->plugins);
	hr_strv_done(&s->env);
	hr_strv_done(&s->environ);
	hr_strv_done(&s->tokens);
	hr_strv_done(&s->secrets);
	json_object_put(s->mcp);
	hr_config_free(s->config);
	free(s->sid);
	free(s->state_dir);
	free(s);
}

static void
ask_endpoint(struct hr_sandbox *s)
{
	memset(&s->endpoint, 0, sizeof(s->endpoint));
	if (s->ops->endpoint != NULL)
		s->ops->endpoint(s->self, &s->endpoint);
}

/* Hides secrets that the answer has repeated, and asks the back-end whether to retry. */
static bool
request_failed(void *arg, unsigned attempt, struct hr_err *err)
{
	struct hr_sandbox *s = arg;
	HR_FREE char *before = NULL;
	bool again = false;

	if (s->state_dir != NULL && s->ops->record != NULL)
		before = s->ops->record(s->self, NULL);
	if (s->ops->failed != NULL)
		s->ops->failed(s->self, attempt, &again, err);
	hr_mask_error(s, err);
	if (!again)
		return false;
	ask_endpoint(s);
	/* The next process reads the record. A full disk is no reason to give up the request. */
	if (before != NULL)
		(void)hr_record_renew(s, before, NULL);
	return hr_client_point(&s->client, &s->endpoint, err) == 0;
}

static int
use_endpoint(struct hr_sandbox *s, struct hr_err *err)
{
	hr_client_done(&s->client);
	ask_endpoint(s);
	if (hr_client_init(&s->client, &s->endpoint, err) < 0)
		return -1;
	s->client.failed = request_failed;
	s->client.failed_arg = s;
	return 0;
}

/* Ends a sandbox whose maker, or taker from the pool, has died: this process holds its name. */
static int
settle(struct hr_sandbox *s, struct hr_err *err)
{
	HR_CLEAN(hr_record_done) struct hr_record rec = {0};

	if (s->state_dir == NULL || s->attach ||
	    hr_record_load(s->state_dir, s->sid, &rec, NULL) != 0 || !rec.unready)
		return 0;
	return hr_pool_end(s, s->state_dir, s->sid, err);
}

/* Checks the kind of a record, which is replaced only by one of its own back-end. */
static int
check_kind(const struct hr_sandbox *s, const struct hr_record *rec, struct hr_err *err)
{
	if (rec->runtime == NULL || strcmp(rec->runtime, s->ops->name) == 0)
		return 0;
	return hr_err_set(err, HR_E_RUNTIME,
	    "\"%s\" is a sandbox of the back-end %s already: choose another name for one of the "
	    "back-end %s, or end the sandbox first with \"handrail down -n %s\"",
	    s->sid, rec->runtime, s->ops->name, s->sid);
}

/* Restores the sandbox from the record of another process. Returns 1, 0 if there is none, or -1
 * with *err set. *ret_useless is set if another sandbox may be made in its place. */
static int
restore(struct hr_sandbox *s, bool *ret_useless, struct hr_err *err)
{
	HR_CLEAN(hr_record_done) struct hr_record rec = {0};
	struct hr_err e = {0};
	int r;

	if (s->state_dir == NULL)
		return 0;
	if (hr_record_load(s->state_dir, s->sid, &rec, err) < 0 || check_kind(s, &rec, err) != 0)
		return -1;
	s->recorded = rec.runtime != NULL;
	if (rec.backend == NULL || s->ops->restore == NULL)
		return 0;
	r = s->ops->restore(s->self, rec.backend, &e);
	s->elsewhere = r != 0 && e.code == HR_E_UNSUPPORTED;
	if (r != 0)
		(void)hr_err_pass(err, &e);
	if (s->elsewhere)
		return -1;
	*ret_useless = !s->attach && r != 0;
	/* an unready sandbox can only be ended */
	if (rec.unready)
		r = hr_err_set(err, HR_E_DISCONNECTED,
		    "sandbox \"%s\" is not ready yet, or its start was interrupted: \"handrail "
		    "up\" starts it again, \"handrail down\" removes it",
		    s->sid);
	return r == 0 ? 1 : -1;
}

/* Refuses creation options for an existing sandbox instead of ignoring them. */
static int
check_new(const struct hr_sandbox *s, struct hr_err *err)
{
	if (s->for_new == NULL)
		return 0;
	return hr_err_set(err, HR_E_INVAL,
	    "sandbox \"%s\" exists already, and %s %s only for a new one: leave %s out, or end the "
	    "sandbox first with \"handrail down -n %s\"",
	    s->sid, s->for_new, strchr(s->for_new, ',') != NULL ? "count" : "counts",
	    strchr(s->for_new, ',') != NULL ? "them" : "it", s->sid);
}

/* Ends a sandbox that connect() or the pool has made, and no other. An older record stays. */
static void
undo(struct hr_sandbox *s, bool taken)
{
	int (*end)(void *self, struct hr_err *err) =
	    taken || s->ops->undo == NULL ? s->ops->destroy : s->ops->undo;
	struct hr_err why = {0};

	s->closed = true;
	if (end != NULL && end(s->self, &why) != 0)
		hr_sandbox_log(s, "sandbox \"%s\" could not be ended: %s", s->sid, why.msg);
	else if (s->state_dir != NULL && !s->recorded)
		hr_record_remove(s);
}

/* Returns true if every sandbox of this back-end has a record: without one, there is none. */
static bool
needs_record(const struct hr_sandbox *s)
{
	return s->attach && s->state_dir != NULL && s->ops->restore != NULL &&
	       (s->ops->flags & HR_KIND_FINDS) == 0;
}

/* Gets the sandbox without a record: from the pool, where may_take allows it (*ret_taken), or as
 * the back-end finds or makes it. */
static int
find_or_make(struct hr_sandbox *s, bool may_take, bool *ret_taken, struct hr_err *err)
{
	enum hr_connected how = HR_SANDBOX_FOUND;
	int r;

	hr_sandbox_report(s, "STATUS$STARTING_RUNTIME", "");
	r = may_take && !s->attach && !s->fresh && s->set_up == NULL ? hr_pool_take(s, err) : 0;
	*ret_taken = r == 1;
	if (r == 0)
		r = s->ops->connect(s->self, &how, err);
	if (r < 0) {
		/* the sandbox was ended */
		if (s->begun && !s->left)
			hr_record_remove(s);
		return -1;
	}
	s->made = *ret_taken || how == HR_SANDBOX_MADE;
	return 0;
}

/* Waits until the server of a recorded sandbox sends a response, with any status. It may still be
 * starting. Its process may be stopped, too, or another program may listen at its address. */
static int
await_answer(struct hr_sandbox *s, struct hr_err *err)
{
	const int64_t end = hr_now_ms() + ANSWER_S * 1000;
	const int stop_fd = s->host.stop_fd;
	struct hr_err why;
	unsigned pause_ms;
	int64_t left;

	for (pause_ms = 50; (left = end - hr_now_ms()) > 0; pause_ms += pause_ms) {
		const struct hr_http_request q = {.method = "GET",
		    .url = "/alive",
		    .timeout_s = (unsigned)left / 1000 + 1,
		    .watch_fd = stop_fd};
		HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};

		why = (struct hr_err){0};
		if (hr_client_send_once(&s->client, &q, &a, &why) == 0 || a.status > 0)
			return 0;
		if (a.fault == HR_HTTP_CANCELLED || hr_rest_wait(stop_fd, pause_ms))
			return hr_err_set(err, HR_E_RUNTIME, "given up");
	}
	return hr_err_set(err, HR_E_DISCONNECTED,
	    "sandbox \"%s\" is there, but its server does not answer: %s; \"handrail logs -n %s\" "
	    "prints its log, \"handrail down -n %s\" ends the sandbox",
	    s->sid, why.msg, s->sid, s->sid);
}

/* Makes a found or created sandbox ready; one without a record is set up and recorded. */
static int
make_ready(struct hr_sandbox *s, bool recorded, bool taken, struct hr_err *err)
{
	if ((!s->made && check_new(s, err) != 0) || use_endpoint(s, err) != 0)
		return -1;
	s->connected = true;
	hr_tokens_place(s);
	if (s->attach)
		return 0;
	if (recorded)
		return s->endpoint.url != NULL ? await_answer(s, err) : 0;
	if ((s->set_up != NULL ? s->set_up(s, s->set_up_arg, err)
			       : hr_sandbox_set_up(s, taken, err)) != 0)
		return -1;
	return s->state_dir != NULL ? hr_record_save(s, err) : 0;
}

static int
connect_it(struct hr_sandbox *s, struct hr_err *err)
{
	bool taken = false, useless = false;
	int found, r;

	s->made = false;
	if (settle(s, err) != 0)
		return -1;
	found = restore(s, &useless, err);
	if (found < 0 && !useless)
		return -1;
	if (useless && err != NULL)
		hr_sandbox_log(
		    s, "the recorded sandbox \"%s\" cannot be used: %s", s->sid, err->msg);
	if (found == 0 && needs_record(s)) {
		hr_record_remove_start(s->state_dir, s->sid);
		return hr_err_set(err, HR_E_NO_SANDBOX, "there is no sandbox \"%s\"", s->sid);
	}
	/* a useless sandbox may still exist, and its record leads to it */
	if (found != 1 && find_or_make(s, !useless, &taken, err) != 0)
		return -1;
	r = make_ready(s, found == 1, taken, err);
	if (r != 0) {
		/* a sandbox without a record could never be found again: end it if it is new */
		if (s->made)
			undo(s, taken);
		s->connected = false;
	}
	if (r != 0)
		return -1;
	hr_logstream_debug(s);
	hr_sandbox_report(
	    s, s->ops->ready_status != NULL ? s->ops->ready_status : "STATUS$READY", "");
	return 0;
}

int
hr_sandbox_connect(struct hr_sandbox *s, struct hr_err *err)
{
	struct hr_namelock lock = {.fd = -1};
	int r = 0;

	/* two processes would make one each, of which only one could be found again */
	if (s->state_dir != NULL && !s->attach && !s->fresh)
		r = hr_namelock_take(&lock, s->state_dir, s->sid, err);
	if (r == 0 && lock.fd >= 0)
		hr_record_clean(s->state_dir, s->sid);
	if (r == 0)
		r = connect_it(s, err);
	hr_namelock_drop(&lock);
	if (r != 0)
		hr_mask_error(s, err);
	return r;
}

static void
host_output(void *arg, const char *line, size_t len)
{
	struct hr_sandbox *s = arg;

	s->output(s->output_arg, line, len);
}

bool
hr_sandbox_subscribe_output(struct hr_sandbox *s, hr_output_fn *fn, void *arg)
{
	if ((s->ops->flags & HR_KIND_OUTPUT) == 0)
		return false;
	s->output = fn;
	s->output_arg = arg;
	s->host.output = fn != NULL ? host_output : NULL;
	return true;
}

static int
unsupported(struct hr_sandbox *s, const char *what, struct hr_err *err)
{
	return hr_err_set(err, HR_E_RUNTIME, "%s runtime does not support %s", s->ops->name, what);
}

int
hr_sandbox_pause(struct hr_sandbox *s, struct hr_err *err)
{
	return s->ops->pause != NULL ? s->ops->pause(s->self, err) : unsupported(s, "pause", err);
}

int
hr_sandbox_resume(struct hr_sandbox *s, struct hr_err *err)
{
	if (s->ops->resume == NULL)
		return unsupported(s, "resume", err);
	if (s->ops->resume(s->self, err) != 0)
		return -1;
	if (!s->connected)
		return 0;
	/* the address may have changed */
	if (use_endpoint(s, err) != 0)
		return -1;
	return s->state_dir != NULL ? hr_record_renew(s, NULL, err) : 0;
}

int
hr_sandbox_logs(struct hr_sandbox *s, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	return s->ops->logs != NULL ? s->ops->logs(s->self, follow, fn, arg, err)
				    : unsupported(s, "logs", err);
}

int
hr_sandbox_exec(struct hr_sandbox *s, const char *const *argv, int *ret_status, struct hr_err *err)
{
	return s->ops->exec != NULL ? s->ops->exec(s->self, argv, ret_status, err)
				    : unsupported(s, "a terminal", err);
}

const char *
hr_sandbox_state(struct hr_sandbox *s)
{
	const char *state = s->connected ? "running" : "gone";

	if (s->ops->state != NULL)
		state = s->ops->state(s->self);
	(void)snprintf(s->state, sizeof(s->state), "%s", state);
	return s->state;
}

const char *
hr_sandbox_url(const struct hr_sandbox *s)
{
	return s->endpoint.url;
}

const char *
hr_sandbox_id(const struct hr_sandbox *s)
{
	return s->sid;
}

const char *
hr_sandbox_session_api_key(const struct hr_sandbox *s)
{
	return s->endpoint.key;
}

const char *
hr_sandbox_status(const struct hr_sandbox *s)
{
	return s->runtime_status;
}
