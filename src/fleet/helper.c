/* Implements both ends of a helper: {"request": TEXT, "factor": N} goes in; {"error": TEXT}, or the
 * result of a start, or a log comes out. */
#include "config.h"

#include "fleet/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/err.h"
#include "base/strv.h"
#include "proto/json.h"

#define TEXT_MAX (4u << 20)

/* ---- service ---- */

/* Makes a memfd: unlike a pipe, it needs no writer while the helper reads. */
static int
input(const struct hr_fleet_row *row, struct hr_err *err)
{
	struct hr_err e = {0};
	HR_BUF(b, TEXT_MAX);
	int fd = -1;

	hr_buf_addc(&b, '{');
	if (row != NULL)
		hr_json_put_named(&b, "request", row->request);
	hr_buf_addf(&b, "%s\"factor\":%lld}", row != NULL ? "," : "",
	    row != NULL ? (long long)row->factor : 0);
	if (hr_buf_check(&b, &e) == 0)
		fd = hr_fd_of_bytes(b.p, b.len, &e);
	if (fd < 0)
		(void)hr_err_from(err, HR_E_SYS, &e);
	return fd;
}

static int
understand(const struct hr_buf *b, int status, struct hr_fleet_row *row, char **ret_text,
    struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	const char *error;
	int r = 0;

	if (hr_json_decode(hr_buf_str(b), b->len, &o, NULL) != 0)
		o = NULL;
	error = hr_json_text_at(o, "error");
	if (error != NULL)
		r = hr_err_set(err,
		    hr_json_true_at(o, "unknown")     ? HR_E_NOTFOUND
		    : hr_json_true_at(o, "too_large") ? HR_E_TOOLARGE
						      : HR_E_RUNTIME,
		    "%s", error);
	else if (o == NULL || status != 0)
		r = hr_err_set(err, HR_E_RUNTIME, "engine helper exited (%s) without a result",
		    hr_exit_words(status));
	if (r == 0 && row != NULL) {
		(void)snprintf(row->at, sizeof(row->at), "%s", hr_json_text_or(o, "at", ""));
		(void)snprintf(row->server_key, sizeof(row->server_key), "%s",
		    hr_json_text_or(o, "server_key", ""));
		row->vscode_port = (int)hr_json_int_at(o, "vscode");
		row->app_ports[0] = (int)hr_json_int_at(o, "app1");
		row->app_ports[1] = (int)hr_json_int_at(o, "app2");
	}
	if (r == 0 && ret_text != NULL) {
		*ret_text = strdup(hr_json_text_or(o, "text", ""));
		r = *ret_text != NULL ? 0 : hr_err_nomem(err);
	}
	return r;
}

/* The running helpers. Each is started with the lock held until it has executed, so that a holder
 * of the lock has no child that could inherit a descriptor. */
static struct under_way {
	struct under_way *next;
	pid_t pid;
} * under_way;
static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;

void
hr_fleet_helper_hold(void (*fn)(void *arg, pid_t pid), void *arg)
{
	const struct under_way *u;

	(void)pthread_mutex_lock(&beginning);
	for (u = under_way; u != NULL; u = u->next)
		fn(arg, u->pid);
}

static int
begin(const struct hr_spawn *sp, struct under_way *u, struct hr_err *err)
{
	(void)pthread_mutex_lock(&beginning);
	u->pid = hr_spawn(sp, err);
	if (u->pid >= 0) {
		u->next = under_way;
		under_way = u;
	}
	(void)pthread_mutex_unlock(&beginning);
	return u->pid >= 0 ? 0 : -1;
}

/* Waits for a helper, and removes its entry before reaping it: afterwards the kernel may reuse the
 * pid. */
static void
end(const struct under_way *u, int *ret_status)
{
	struct under_way **at = &under_way;
	siginfo_t info;

	while (waitid(P_PID, (id_t)u->pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
		;
	(void)pthread_mutex_lock(&beginning);
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	(void)hr_spawn_end(u->pid, ret_status);
	(void)pthread_mutex_unlock(&beginning);
}

static int
call(struct hr_fleet_helper *h, const char *what, const char *id, struct hr_fleet_row *row,
    char **ret_text, struct hr_err *err)
{
	int out[2], status = 0, r;
	HR_CLOSE int in = input(row, err);
	HR_CLOSE int answer = -1;
	struct hr_spawn_fd fds[3] = {{in, 0}, {-1, 1}, {2, 2}};
	struct hr_spawn sp = {.path = "/proc/self/exe",
	    .fds = fds,
	    .nfds = 3,
	    .setpgid = true,
	    .pdeathsig = SIGKILL,
	    .umask = -1};
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	struct hr_err e = {0};
	struct under_way helper;
	HR_BUF(b, TEXT_MAX);
	int i;

	for (i = 0; i < h->argc; i++)
		hr_strv_add(&argv, h->argv[i]);
	hr_strv_add(&argv, "--call");
	hr_strv_add(&argv, what);
	hr_strv_add(&argv, id);
	if (in < 0)
		return -1;
	if (argv.failed || pipe2(out, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "a helper");
	answer = out[0];
	fds[1].from = out[1];
	sp.argv = (const char *const *)argv.v;
	r = begin(&sp, &helper, &e);
	hr_fd_close(&out[1]);
	if (r != 0)
		return hr_err_from(err, HR_E_SYS, &e);
	(void)hr_path_read_fd(answer, "its answer", &b, NULL);
	end(&helper, &status);
	return understand(&b, status, row, ret_text, err);
}

static int
helper_start(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	return call(self, "start", row->id, row, NULL, err);
}

/* Claims a warm sandbox in the service: that forks nothing, takes a few milliseconds, and no client
 * has used the sandbox yet. Starting a process would take longer than all the rest. */
static int
helper_claim(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	struct hr_fleet_helper *h = self;

	return h->engine->claim(h->self, row, err);
}

static const char *const pauses[] = {[HR_PAUSE_USUAL] = "pause",
    [HR_PAUSE_MEMORY] = "pause_memory",
    [HR_PAUSE_FILES] = "pause_files"};

static int
helper_pause(void *self, const char *id, enum hr_fleet_pause how, struct hr_err *err)
{
	return call(self, pauses[how], id, NULL, NULL, err);
}

static int
helper_resume(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	return call(self, "resume", row->id, row, NULL, err);
}

static int
helper_stop(void *self, const char *id, struct hr_err *err)
{
	return call(self, "stop", id, NULL, NULL, err);
}

static int
helper_state(void *self, const char *id, char ret[32], struct hr_err *err)
{
	struct hr_fleet_helper *h = self;

	return h->engine->state(h->self, id, ret, err);
}

static int
helper_tidy(void *self, struct hr_err *err)
{
	struct hr_fleet_helper *h = self;

	return h->engine->tidy != NULL ? h->engine->tidy(h->self, err) : 0;
}

static int
helper_list(void *self, hr_fleet_id_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_fleet_helper *h = self;

	return h->engine->list(h->self, fn, arg, err);
}

static int
helper_watch(void *self, hr_fleet_news_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_fleet_helper *h = self;

	return h->engine->watch(h->self, fn, arg, err);
}

static int
helper_image(void *self, const char *name, char **ret_json, struct hr_err *err)
{
	struct hr_fleet_helper *h = self;

	return h->engine->image(h->self, name, ret_json, err);
}

static int
helper_logs(void *self, const char *id, char **ret_text, struct hr_err *err)
{
	return call(self, "logs", id, NULL, ret_text, err);
}

static int
helper_network(void *self, const struct hr_fleet_row *row, struct hr_err *err)
{
	struct hr_fleet_row sent = *row; /* the answer, which is without an address, fills a row */

	return call(self, "network", row->id, &sent, NULL, err);
}

static int
helper_network_log(void *self, const char *id, char **ret_text, struct hr_err *err)
{
	return call(self, "network_log", id, NULL, ret_text, err);
}

static int
helper_copies(void *self, const char *what, const char *id, const char *args, char **ret_json,
    struct hr_err *err)
{
	struct hr_fleet_helper *h = self;
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row sent = {.request = strdup(args)};

	if (sent.request == NULL)
		return hr_err_nomem(err);
	return strcmp(what, HR_COPIES_LIST) == 0
		   ? h->engine->copies(h->self, what, id, args, ret_json, err)
		   : call(h, what, id, &sent, ret_json, err);
}

static int
helper_build(void *self, const char *id, struct hr_err *err)
{
	return call(self, "build", id, NULL, NULL, err);
}

const struct hr_fleet_engine hr_fleet_helper = {
    .start = helper_start,
    .claim = helper_claim,
    .pause = helper_pause,
    .resume = helper_resume,
    .stop = helper_stop,
    .state = helper_state,
    .tidy = helper_tidy,
    .list = helper_list,
    .watch = helper_watch,
    .image = helper_image,
    .logs = helper_logs,
    .build = helper_build,
    .network = helper_network,
    .network_log = helper_network_log,
    .copies = helper_copies,
};

/* ---- helper ---- */

static int
do_it(const struct hr_fleet_engine *engine, void *self, const char *what, struct hr_fleet_row *row,
    char **ret_text, struct hr_err *err)
{
	enum hr_fleet_pause how;

	if (strcmp(what, "logs") == 0 && engine->logs != NULL)
		return engine->logs(self, row->id, ret_text, err);
	if (strcmp(what, "build") == 0 && engine->build != NULL)
		return engine->build(self, row->id, err);
	if (strcmp(what, "network") == 0 && engine->network != NULL)
		return engine->network(self, row, err);
	if (strcmp(what, "network_log") == 0 && engine->network_log != NULL)
		return engine->network_log(self, row->id, ret_text, err);
	if (strcmp(what, "start") == 0)
		return engine->start(self, row, err);
	for (how = HR_PAUSE_USUAL; how <= HR_PAUSE_FILES; how++)
		if (strcmp(what, pauses[how]) == 0)
			return engine->pause(self, row->id, how, err);
	if (strcmp(what, "resume") == 0)
		return engine->resume(self, row, err);
	if (strcmp(what, "stop") == 0)
		return engine->stop(self, row->id, err);
	if (engine->copies != NULL)
		return engine->copies(self, what, row->id, row->request, ret_text, err);
	return hr_err_set(err, HR_E_INVAL, "an engine does not do \"%.40s\"", what);
}

int
hr_fleet_helper_main(
    const struct hr_fleet_engine *engine, void *self, const char *what, const char *id)
{
	HR_PUT struct json_object *o = NULL;
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_err err = {0};
	HR_BUF(b, TEXT_MAX);
	HR_FREE char *text = NULL;
	int r = -1;

	(void)snprintf(row.id, sizeof(row.id), "%s", id);
	if (hr_path_read_fd(0, "stdin", &b, NULL) != 0 ||
	    hr_json_decode(hr_buf_str(&b), b.len, &o, NULL) != 0)
		(void)hr_err_set(&err, HR_E_INVAL, "stdin is not a call of an engine");
	else if ((row.request = strdup(hr_json_text_or(o, "request", "{}"))) == NULL)
		(void)hr_err_nomem(&err);
	else {
		row.factor = hr_json_int_at(o, "factor");
		r = do_it(engine, self, what, &row, &text, &err);
	}
	hr_buf_reset(&b);
	hr_buf_addc(&b, '{');
	if (r != 0) {
		hr_json_put_named(&b, "error", err.msg);
		hr_buf_adds(&b, err.code == HR_E_NOTFOUND   ? ",\"unknown\":true"
				: err.code == HR_E_TOOLARGE ? ",\"too_large\":true"
							    : "");
	} else {
		hr_json_put_named(&b, "at", row.at);
		hr_json_put_named(&b, "server_key", row.server_key);
		if (text != NULL)
			hr_json_put_named(&b, "text", text);
	}
	hr_buf_addf(&b, ",\"vscode\":%d,\"app1\":%d,\"app2\":%d}\n", row.vscode_port,
	    row.app_ports[0], row.app_ports[1]);
	if (hr_buf_check(&b, NULL) != 0 || hr_fd_write_full(1, b.p, b.len, NULL) != 0)
		r = -1;
	else
		r = 0; /* the output contains the error */
	return r == 0 ? 0 : 1;
}
