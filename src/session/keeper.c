/* Runs one shell and its loop: set-up, the commands before readiness, timers, the end. */
#include "config.h"

#include "session/keeper_int.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text/utf8.h"
#include "session/environ.h"

#define INIT_TIMEOUT_S 300.0
/* Most commands finish sooner. Meanwhile the terminal is left unread: five writes of readline then
 * cost one wake-up instead of five. */
#define QUICK_MS 2

extern char **environ;

static void
on_timer(void *arg)
{
	struct hr_keeper *k = arg;

	k->timer_at = INT64_MAX;
	shell_unstop(k);
	shell_look(k); /* reads output that no event has reported, see LOOK_MS in clocks.c */
	shell_answer(k);
	hr_core_timer(k->core, hr_now_ms());
	keeper_arm(k);
}

/* ---- readiness ---- */

static void
send_readiness(struct hr_keeper *k, const char *text)
{
	int fd = k->notify_fd;

	if (fd < 0)
		return;
	if (hr_fd_write_full(fd, text, strlen(text), NULL) < 0)
		hr_log(HR_LOG_WARNING, "cannot report readiness: handraild has gone");
	(void)close(fd);
	k->notify_fd = -1;
}

static void
fail_start(struct hr_keeper *k, const char *what, const char *why, size_t why_len)
{
	char line[400], *p;

	if (k->failure != NULL)
		return;
	(void)snprintf(
	    line, sizeof(line), "%s: %.*s", what, (int)(why_len < 300 ? why_len : 300), why);
	for (p = line; *p != '\0'; p++) {
		if (iscntrl((unsigned char)*p))
			*p = ' '; /* prints one line, safe for a terminal that shows the log */
	}
	k->failure = strdup(line);
	hr_log(HR_LOG_ERROR, "%s", line);
	(void)snprintf(line, sizeof(line), "failed %s\n", k->failure != NULL ? k->failure : what);
	send_readiness(k, line);
	keeper_stop(k);
}

void
keeper_ready(struct hr_keeper *k)
{
	k->is_ready = true;
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0); /* a successor can adopt the shell from now on */
	send_readiness(k, "ready\n");
}

/* Runs the next command before readiness, or reports readiness. */
static void
init_next(struct hr_keeper *k)
{
	struct hr_run_request r = {.blocking = true, .hidden = true, .timeout = INIT_TIMEOUT_S};

	if (k->init_next < k->config->n_init_commands) {
		r.command = hr_span_of(k->config->init_commands[k->init_next]);
		hr_core_request(k->core, &r, hr_now_ms());
		return;
	}
	keeper_ready(k);
}

static void
op_result(void *arg, const struct hr_run_result *r)
{
	struct hr_keeper *k = arg;

	if (k->active != NULL) {
		client_result(k, r);
		return;
	}
	if (r->is_error || r->exit_code != 0) {
		fail_start(k,
		    k->init_next < k->config->n_init_commands
			? k->config->init_commands[k->init_next]
			: "shell",
		    r->content.p, r->content.len);
		return;
	}
	k->init_next++;
}

static void
op_ready(void *arg)
{
	struct hr_keeper *k = arg;

	k->prompted = true;
}

/* Continues a pending start; called after every event, not from inside the core's callbacks. */
static void
keeper_step(struct hr_keeper *k)
{
	while (!k->is_ready && k->failure == NULL && !k->stopping && k->prompted &&
	       !hr_core_busy(k->core))
		init_next(k);
	if (!k->is_ready && !k->stopping && k->shell.pid == 0)
		fail_start(k, "shell", "it ended before its first prompt", 32);
}

void
keeper_request(struct hr_keeper *k, const struct hr_run_request *r)
{
	const char *p = r->command.p;
	size_t len = r->command.len;

	shell_unstop(k);
	k->hidden = r->hidden;
	k->hold.asked = r->whole && !r->is_input;
	if (hr_core_running(k->core))
		hr_shellproc_flow(&k->shell);
	hr_utf8_strip(&p, &len);
	if (len > 0 && !r->is_input)
		resume_returned(k);
	/* milliseconds are rounded down: no time-out may come early */
	hr_core_request(k->core, r, hr_now_ms() + 1);
}

/* Leaves the terminal unread for QUICK_MS: the end of a typed command may be near. */
static void
wait_quickly(struct hr_keeper *k)
{
	struct pollfd quick = {.fd = k->report_fd, .events = POLLIN};

	if (!k->quick)
		return;
	k->quick = false;
	if (hr_core_busy(k->core) && hr_core_typed(k->core) && k->typed.len == 0 &&
	    poll(&quick, 1, QUICK_MS) > 0) {
		prompt_read(k);
		keeper_step(k);
		client_next(k);
	}
}

void
keeper_arm(struct hr_keeper *k)
{
	int64_t at, now;
	struct hr_err err = {0};

	keeper_step(k);
	client_next(k);
	resume_note(k);
	wait_quickly(k);
	follow_wake(k);
	resume_note(k);
	at = hr_core_deadline(k->core);
	if (at == k->timer_at || k->timer == NULL)
		return;
	k->timer_at = at;
	if (at == INT64_MAX) {
		hr_watch_disarm(k->timer);
		return;
	}
	now = hr_now_ms();
	if (hr_watch_arm(k->timer, at > now ? at - now : 0, &err) < 0)
		hr_log(HR_LOG_ERROR, "cannot set a timer: %s", err.msg);
}

/* ---- the end ---- */

void
keeper_stop(struct hr_keeper *k)
{
	if (k->stopping)
		return;
	k->stopping = true;
	hr_loop_stop(k->loop);
}

static void
on_sigterm(void *arg)
{
	keeper_stop(arg);
}

/* ---- set-up ---- */

static int
open_loop(struct hr_keeper *k, struct hr_err *err)
{
	k->loop = hr_loop_new_few(err);
	if (k->loop == NULL)
		return -1;
	k->timer = hr_loop_timer(k->loop, on_timer, k, err);
	k->sigchld = hr_loop_signal(k->loop, SIGCHLD, shell_on_child, k, err);
	k->sigterm = hr_loop_signal(k->loop, SIGTERM, on_sigterm, k, err);
	k->sigint = hr_loop_signal(k->loop, SIGINT, on_sigterm, k, err);
	return k->timer != NULL && k->sigchld != NULL && k->sigterm != NULL && k->sigint != NULL
		   ? 0
		   : -1;
}

static int
open_core(struct hr_keeper *k, struct hr_err *err)
{
	struct hr_core_config config = {
	    .no_change_ms = k->config->no_change_ms, .hostname = k->hostname, .hook = &k->hook};
	struct hr_core_ops ops = shell_ops;

	ops.result = op_result;
	ops.ready = op_ready;
	if (gethostname(k->hostname, sizeof(k->hostname) - 1) < 0)
		return hr_err_sys(err, errno, "gethostname");
	k->hostname[strcspn(k->hostname, ".")] = '\0';
	k->core = hr_core_new(&config, &ops, k, err);
	return k->core != NULL ? 0 : -1;
}

static int
keeper_open(struct hr_keeper *k, struct hr_err *err)
{
	if (hr_shell_user_find(&k->user, k->config->user, k->config->change_user, err) < 0)
		return -1;
	k->user.confine = k->config->confine;
	k->netlog.path = k->config->network_log;
	hr_account_find(&k->account, k->user.uid);
	if (resume_open(k, err) < 0)
		return -1;
	k->user.stays = hr_kept_outlives(&k->store);
	k->journal.sync = k->config->journal_sync;
	/* The journal is required: without it the actions that were started would be unknown
	 * later. */
	if (k->config->journal != NULL && hr_journal_open(&k->journal, k->config->journal, err) < 0)
		return -1;
	if (hr_environ_for_shell(&k->environ, environ, &k->user, k->config->bash, err) < 0 ||
	    open_loop(k, err) < 0 || files_open(k, err) < 0 || prompt_open(k, err) < 0 ||
	    open_core(k, err) < 0 || resume_shell(k, err) < 0)
		return -1;
	if (k->config->is_static)
		return client_add(k, k->config->serve_fd, err);
	return client_listen(k, err);
}

static void
keeper_done(struct hr_keeper *k)
{
	k->leaves = k->after == KEEPER_RESUMES && !k->is_ready;
	client_free_all(k);
	follow_free_all(k);
	exec_free_all(k);
	hr_journal_close(&k->journal);
	shell_close(k, !k->config->is_static);
	hr_core_free(k->core);
	hr_watch_free(k->timer);
	hr_watch_free(k->hold.late);
	hr_watch_free(k->sigchld);
	hr_watch_free(k->sigterm);
	hr_watch_free(k->sigint);
	hr_loop_free(k->loop);
	hr_report_reader_done(&k->reports);
	hr_buf_done(&k->typed);
	hr_buf_done(&k->exports);
	hr_buf_done(&k->exports_in);
	hr_buf_done(&k->py_path);
	hr_strv_done(&k->environ);
	hr_shell_user_done(&k->user);
	free(k->known_name);
	free(k->dir);
	free(k->failure);
	if (k->kept != NULL)
		hr_outlog_done(&k->kept->outlog);
	hr_kept_close(&k->store);
}

int
hr_keeper_run(const struct hr_keeper_config *config, struct hr_err *err)
{
	struct hr_keeper k = {.config = config,
	    .notify_fd = config->notify_fd,
	    .report_fd = -1,
	    .exports_fd = -1,
	    .ack_fd = -1,
	    .line_fd = -1,
	    .shell_fd = -1,
	    .laid_file = -1,
	    .laid_memory = -1,
	    .store = {.in = config->keep_in, .out = config->keep_out, .page_fd = -1},
	    .exports_at = hr_now_ms(), /* a new shell reports its exports by itself */
	    .timer_at = INT64_MAX};
	char line[300];
	int result = -1;

	TAILQ_INIT(&k.clients);
	TAILQ_INIT(&k.followers);
	TAILQ_INIT(&k.execs);
	hr_journal_init(&k.journal);
	hr_shellproc_init(&k.shell);
	hr_statedir_init(&k.state);
	hr_report_reader_init(&k.reports);
	hr_buf_init(&k.typed, 128u << 20);
	hr_buf_init(&k.exports, HR_REPORT_MAX);
	hr_buf_init(&k.exports_in, HR_REPORT_MAX);
	hr_buf_init(&k.py_path, 1u << 20);
	if (keeper_open(&k, err) < 0) {
		(void)snprintf(line, sizeof(line), "failed %.240s\n", err->msg);
		send_readiness(&k, line);
	} else {
		keeper_arm(&k);
		result = hr_loop_run(k.loop, err);
		if (k.failure != NULL)
			result = hr_err_set(err, HR_E_GONE, "%s", k.failure);
	}
	keeper_done(&k);
	return result;
}
