/* Saves a keeper's state at the end of each event, and restores it in the successor. */
#include "config.h"

#include "session/keeper_int.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/process/pid.h"
#include "session/confine.h"
#include "session/view/view.h"

/* ---- saving ---- */

/* Stores the terminal and all descriptors that a successor needs to reach the shell. */
void
resume_lay(struct hr_keeper *k)
{
	const int fds[HR_KEPT_FDS] = {-1, k->report_fd, k->exports_fd, k->ack_fd, k->line_fd,
	    k->shell_fd, k->shell.master, k->shell.slave, k->kept->outlog.fd,
	    k->kept->outlog.shared};
	struct hr_err err = {0};

	k->laid_file = k->kept->outlog.fd;
	k->laid_memory = k->kept->outlog.shared;
	k->kept->shell = k->shell.pid;
	if (snprintf(k->kept->dir, sizeof(k->kept->dir), "%s", k->dir) >= (int)sizeof(k->kept->dir))
		k->kept->dir[0] = '\0';
	k->laid = k->shell_fd >= 0 && hr_kept_put(&k->store, fds, &err) == 0;
	if (!k->laid)
		hr_log(HR_LOG_WARNING, "the shell will be lost if its keeper is killed: %s",
		    k->shell_fd >= 0 ? err.msg : "no descriptor of its process is available");
}

void
resume_lay_log(struct hr_keeper *k)
{
	const struct hr_outlog *o = &k->kept->outlog;

	if (hr_kept_outlives(&k->store) && k->is_ready && k->shell.pid > 0 &&
	    (k->laid_file != o->fd || k->laid_memory != o->shared))
		resume_lay(k);
}

/* Empties the store after the shell's end; the rest of the state is for the next shell. */
void
resume_unlay(struct hr_keeper *k)
{
	int fds[HR_KEPT_FDS], i;

	k->laid = false;
	if (k->kept == NULL) /* the store was not opened yet */
		return;
	for (i = 0; i < HR_KEPT_FDS; i++)
		fds[i] = -1;
	hr_kept_clear(&k->store);
	if (k->stopping || !k->kept->ready)
		return;
	fds[HR_KEPT_LOG_FILE] = k->kept->outlog.fd;
	fds[HR_KEPT_LOG_MEMORY] = k->kept->outlog.shared;
	if (hr_kept_put(&k->store, fds, NULL) < 0)
		hr_log(HR_LOG_WARNING, "the shell's state will be lost if its keeper is killed");
}

static bool
note_request(const struct hr_keeper *k)
{
	const struct client *c = k->active;
	struct hr_kept *p = k->kept;

	p->hidden = k->hidden;
	if (c == NULL) {
		p->key.len = 0;
		return !hr_core_busy(k->core);
	}
	p->attempt = c->attempt;
	if (c->key_len > sizeof(p->key.p))
		return false;
	if (c->key_len == p->key.len && memcmp(c->key, p->key.p, c->key_len) == 0)
		return true;
	memcpy(p->key.p, c->key, c->key_len);
	p->key.len = c->key_len;
	return true;
}

void
resume_note(struct hr_keeper *k)
{
	struct hr_kept *p = k->kept;
	bool sure;

	if (!hr_kept_outlives(&k->store) || !k->is_ready)
		return;
	resume_lay_log(k);
	hr_kept_sure(p, false);
	sure = hr_core_keep(k->core, &p->core) && note_request(k) && k->laid && !k->stopping &&
	       !k->restarted && k->shell.pid > 0 && k->typed.len == 0 && k->exports_in.len == 0 &&
	       k->reports.in.len == k->reports.used;
	p->given = k->given;
	p->said = k->said_pid;
	p->hides = k->hides;
	p->tells_hides = k->tells_hides;
	p->has_line = k->has_line;
	p->from_us = k->from_us;
	p->sent_away = k->sent_away;
	p->suspicious = k->suspicious;
	p->resized = k->resized;
	p->ready = true;
	hr_kept_stage(p, HR_KEPT_NO_REPORT);
	hr_kept_sure(p, sure);
}

void
resume_unsure(struct hr_keeper *k)
{
	hr_kept_sure(k->kept, false);
}

/* Starts a new report; the state saved last is valid until the shell is answered. */
void
resume_note_report(struct hr_keeper *k)
{
	struct hr_kept *p = k->kept;

	memset(p->report, 0, p->report_len);
	p->report_len = 0;
	if (atomic_load(&p->sure) != 0 && atomic_load(&p->stage) == HR_KEPT_NO_REPORT)
		hr_kept_stage(p, HR_KEPT_REPORT);
	else
		resume_unsure(k);
}

void
resume_note_answer(struct hr_keeper *k)
{
	/* The first answer of a successor repeats the one during which its predecessor was
	 * killed. */
	if (k->answered_before || atomic_load(&k->kept->stage) == HR_KEPT_REPORT)
		hr_kept_stage(k->kept, HR_KEPT_ANSWERING);
	else
		resume_unsure(k);
}

/* Handles the report that the predecessor had read, and may not have handled. */
static void
take_report(struct hr_keeper *k)
{
	static const char end = '\0';
	struct hr_kept *p = k->kept;
	size_t n = p->report_len;
	unsigned stage = atomic_load(&p->stage);

	if (stage == HR_KEPT_NO_REPORT)
		return;
	k->answered_before = stage == HR_KEPT_ANSWERING;
	if (n > 0 && n <= sizeof(p->report)) {
		hr_report_feed(&k->reports, p->report, n);
	} else {
		n = hr_kept_read_length(p->report, sizeof(p->report));
		hr_report_feed(&k->reports, p->report, n);
		hr_report_feed(&k->reports, &end, n > 0);
	}
	prompt_take(k);
	k->answered_before = false;
}

void
resume_note_exports(struct hr_keeper *k)
{
	struct hr_kept *p = k->kept;

	p->exports_len = 0;
	atomic_signal_fence(memory_order_seq_cst);
	if (k->exports.len > sizeof(p->exports))
		return;
	memcpy(p->exports, hr_buf_str(&k->exports), k->exports.len);
	atomic_signal_fence(memory_order_seq_cst);
	p->exports_len = k->exports.len;
}

void
resume_note_result(struct hr_keeper *k, const struct client *c)
{
	struct hr_kept *p = k->kept;

	p->result_len = 0;
	atomic_signal_fence(memory_order_seq_cst);
	if (c->key_len > sizeof(p->result_key.p) || c->out.fail != HR_OK ||
	    c->out.len > sizeof(p->result))
		return;
	memcpy(p->result_key.p, c->key, c->key_len);
	p->result_key.len = c->key_len;
	memcpy(p->result, hr_buf_str(&c->out), c->out.len);
	atomic_signal_fence(memory_order_seq_cst);
	p->result_len = c->out.len;
}

/* ---- a predecessor's state ---- */

/* Adds the bytes of the read during which the keeper was killed: no other process can get them from
 * the kernel. */
static void
complete_log(struct hr_kept *p)
{
	size_t n = p->read_len, have;

	if (n == 0 || n > sizeof(p->read))
		n = hr_kept_read_length(p->read, sizeof(p->read));
	have = p->outlog.end > p->read_at ? (size_t)(p->outlog.end - p->read_at) : 0;
	if (have < n)
		hr_outlog_add(&p->outlog, p->read + have, n - have);
	memset(p->read, 0, sizeof(p->read));
	p->read_len = 0;
}

/* Ends a predecessor's shell that cannot be continued. */
static void
end_shell(struct hr_keeper *k, int fds[HR_KEPT_FDS])
{
	struct hr_shellproc old = {
	    .pid = k->kept->shell, .master = fds[HR_KEPT_MASTER], .slave = fds[HR_KEPT_SLAVE]};
	int i;

	resume_unlay(k);
	hr_shellproc_hangup(&old, false);
	fds[HR_KEPT_MASTER] = fds[HR_KEPT_SLAVE] = -1;
	if (fds[HR_KEPT_SHELL] >= 0)
		(void)hr_pid_signal(fds[HR_KEPT_SHELL], SIGKILL);
	for (i = 0; i < HR_KEPT_FDS; i++) {
		if (i != HR_KEPT_LOG_FILE && i != HR_KEPT_LOG_MEMORY)
			hr_fd_close(&fds[i]);
	}
}

static const char *
why_not(const struct hr_kept *p, const int fds[HR_KEPT_FDS])
{
	int i;

	for (i = HR_KEPT_REPORTS; i <= HR_KEPT_SLAVE; i++) {
		if (fds[i] < 0)
			return "a descriptor is missing";
	}
	if (atomic_load(&p->tries) > 2 * HR_KEPT_CRASH)
		return "those that went on with it died";
	if (atomic_load(&p->sure) == 0)
		return "it was killed in the middle of a step";
	return p->shell > 0 ? NULL : "there was none";
}

int
resume_open(struct hr_keeper *k, struct hr_err *err)
{
	int fds[HR_KEPT_FDS];
	struct hr_kept *p;
	const char *why;
	bool found;

	if (hr_kept_open(&k->store, fds, &found, err) < 0)
		return -1;
	p = k->kept = k->store.page;
	if (found && !p->ready) { /* readiness was not announced */
		end_shell(k, fds);
		hr_fd_close(&fds[HR_KEPT_LOG_FILE]);
		hr_fd_close(&fds[HR_KEPT_LOG_MEMORY]);
		memset(p, 0, sizeof(*p));
		hr_kept_layout(p->layout);
		found = false;
	}
	if (!found) {
		hr_outlog_init(&p->outlog, k->config->output_log, &k->state);
		return 0;
	}
	hr_kept_try(p);
	hr_outlog_resume(&p->outlog, k->config->output_log, &k->state, fds[HR_KEPT_LOG_FILE],
	    fds[HR_KEPT_LOG_MEMORY]);
	complete_log(p);
	k->after = KEEPER_RESUMES;
	why = why_not(p, fds);
	if (why != NULL) {
		hr_log(HR_LOG_WARNING, "the shell of a killed keeper is replaced: %s", why);
		k->after = KEEPER_REPLACES;
		end_shell(k, fds);
		memset(&p->secrets, 0, sizeof(p->secrets));
	}
	k->report_fd = fds[HR_KEPT_REPORTS];
	k->exports_fd = fds[HR_KEPT_EXPORT];
	k->ack_fd = fds[HR_KEPT_ACK];
	k->line_fd = fds[HR_KEPT_LINE];
	k->shell_fd = fds[HR_KEPT_SHELL];
	k->shell.master = fds[HR_KEPT_MASTER];
	k->shell.slave = fds[HR_KEPT_SLAVE];
	return 0;
}

/* ---- the predecessor's screen ---- */

struct replay {
	struct hr_keeper *k;
	uint64_t at;
};

/* Returns the end of the command that is in the log at `at`, or 0 if none is there. *ret_next is
 * the start of the next one. */
static uint64_t
given_at(const struct hr_kept *p, uint64_t at, uint64_t *ret_next)
{
	unsigned i;

	*ret_next = UINT64_MAX;
	for (i = 0; i < p->ngiven && i < HR_KEPT_GIVEN; i++) {
		if (at >= p->given_from[i] && at < p->given_to[i])
			return p->given_to[i];
		if (p->given_from[i] > at && p->given_from[i] < *ret_next)
			*ret_next = p->given_from[i];
	}
	return 0;
}

/* Feeds the log to the view for hr_core_replay(), without the commands in it, which are not
 * output. */
static void
feed(void *arg, struct hr_view *v, uint64_t fed)
{
	struct replay *r = arg;
	struct hr_kept *p = r->k->kept;
	uint64_t to = fed == HR_CORE_ALL ? p->outlog.end : fed, limit, next;
	const char *bytes;
	size_t len;

	while (r->at < to) {
		limit = given_at(p, r->at, &next);
		if (limit > 0) {
			r->at = limit;
			continue;
		}
		limit = next < to ? next : to;
		bytes = hr_outlog_read(&p->outlog, &r->at, &len);
		if (len == 0)
			break;
		if (r->at >= limit)
			continue;
		len = len < limit - r->at ? len : (size_t)(limit - r->at);
		hr_view_place(v, r->at);
		hr_view_feed(v, bytes, len);
		r->at += len;
	}
	hr_view_place(v, r->at);
}

/* Returns the point to replay from: the last time the screen was cleared. */
static struct replay
replay_from(struct hr_keeper *k, uint64_t reset)
{
	struct replay r = {.k = k, .at = reset};

	if (r.at < hr_outlog_start(&k->kept->outlog))
		r.at = hr_outlog_start(&k->kept->outlog);
	return r;
}

static void
replay(struct hr_keeper *k)
{
	struct hr_kept *p = k->kept;
	struct replay r = replay_from(k, p->core.points.reset);

	hr_view_begin(hr_core_view(k->core), p->core.points.reset);
	if (r.at > p->core.points.reset)
		hr_view_lose(hr_core_view(k->core));
	hr_core_replay(k->core, &p->core, feed, &r);
}

void
resume_returned(struct hr_keeper *k)
{
	struct hr_view_points points;
	struct replay r;

	hr_view_points(hr_core_view(k->core), &points);
	/* Repeat the output rather than lose it if the log no longer has all of it. */
	if (k->kept->returned <= points.reset ||
	    k->kept->returned < hr_outlog_start(&k->kept->outlog))
		return;
	r = replay_from(k, points.reset);
	resume_unsure(k);
	hr_core_returned(k->core, k->kept->returned, feed, &r);
}

/* Adds a command to the log as a terminal would have shown it. The terminal may show something
 * else: readline's drawing, which only the view gets. */
void
resume_log_given(struct hr_keeper *k, const char *p, size_t len)
{
	struct hr_kept *kept = k->kept;
	struct hr_view_points points;
	const char *nl;
	unsigned i, n = 0;

	hr_view_points(hr_core_view(k->core), &points);
	for (i = 0; i < kept->ngiven; i++) {
		if (kept->given_to[i] <= points.reset)
			continue;
		kept->given_from[n] = kept->given_from[i];
		kept->given_to[n++] = kept->given_to[i];
	}
	/* a full list: the last two commands become one, with the output between them */
	if (n == HR_KEPT_GIVEN)
		n--;
	else
		kept->given_from[n] = kept->outlog.end;
	while ((nl = memchr(p, '\n', len)) != NULL) {
		hr_outlog_add(&kept->outlog, p, (size_t)(nl - p));
		hr_outlog_add(&kept->outlog, "\r\n", 2);
		len -= (size_t)(nl + 1 - p);
		p = nl + 1;
	}
	hr_outlog_add(&kept->outlog, p, len);
	hr_outlog_add(&kept->outlog, "\r\n", 2);
	kept->given_to[n] = kept->outlog.end;
	kept->ngiven = n + 1;
	hr_core_place(k->core, kept->outlog.end);
}

/* ---- continuing ---- */

static int
take_over(struct hr_keeper *k, struct hr_err *err)
{
	const struct hr_kept *p = k->kept;

	if (p->exports_len <= sizeof(p->exports))
		hr_buf_add(&k->exports, p->exports, p->exports_len);
	k->init_next = k->config->n_init_commands;
	if (p->result_len <= sizeof(p->result) && p->result_key.len <= sizeof(p->result_key.p))
		client_take_result(k, p->result_key.p, p->result_key.len, p->result, p->result_len);
	return hr_buf_check(&k->exports, err);
}

static int
restore_state(struct hr_keeper *k, struct hr_err *err)
{
	struct hr_kept *p = k->kept;

	k->shell.pid = p->shell;
	k->given = p->given;
	k->has_line = p->has_line;
	k->from_us = p->from_us;
	k->sent_away = p->sent_away;
	k->suspicious = p->suspicious;
	k->resized = p->resized;
	k->hidden = p->hidden;
	hr_confine_begin(k->config->confine); /* earlier counts are lost */
	k->prompted = true;
	k->said_pid = p->said;
	k->hides = p->hides & (HR_HIDES_OUTPUT | HR_HIDES_ERRORS);
	k->tells_hides = p->tells_hides;
	p->dir[sizeof(p->dir) - 1] = '\0';
	k->dir = strdup(p->dir[0] != '\0' ? p->dir : "/");
	if (k->dir == NULL)
		return hr_err_nomem(err);
	if (shell_watch(k, true, err) < 0)
		return -1;
	if (atomic_load(&p->tries) > HR_KEPT_CRASH) { /* the state may be the cause of the deaths */
		hr_view_begin(hr_core_view(k->core), p->outlog.end);
		hr_view_lose(hr_core_view(k->core));
	} else {
		replay(k);
	}
	hr_core_resume(k->core, &p->core);
	if (hr_core_busy(k->core) &&
	    client_resume(
		k, p->key.p, p->key.len <= sizeof(p->key.p) ? p->key.len : 0, p->attempt, err) < 0)
		return -1;
	k->laid = true; /* the descriptors are still in the store */
	k->laid_file = p->outlog.fd;
	k->laid_memory = p->outlog.shared;
	hr_log(HR_LOG_NOTICE, "continuing with the shell of a killed keeper (process %d)",
	    (int)k->shell.pid);
	keeper_ready(k);
	take_report(k);
	hr_kept_succeeded(p);
	return 0;
}

int
resume_shell(struct hr_keeper *k, struct hr_err *err)
{
	struct hr_kept *p = k->kept;
	const char *dir = k->config->work_dir;

	if (k->after != KEEPER_STARTS && take_over(k, err) < 0)
		return -1;
	if (k->after == KEEPER_RESUMES)
		return restore_state(k, err);
	if (k->after == KEEPER_REPLACES) {
		dir = hr_core_kept_dir(&p->core);
		hr_commands_end(
		    &p->commands, HR_COMMAND_SHELL_ENDED, -1, hr_now_ms(), p->outlog.end);
		hr_view_begin(hr_core_view(k->core), p->outlog.end); /* skips all old output */
		hr_core_succeed(k->core, &p->core);
		k->restarted = true;
		hr_kept_succeeded(p);
	}
	if (shell_start(k, dir[0] == '/' ? dir : "/", err) < 0)
		return -1;
	hr_core_started(k->core, k->dir, hr_now_ms());
	return 0;
}
