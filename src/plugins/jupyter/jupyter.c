/* Runs jobs. Invariant: the kernel has a cell exactly in the stages named after one, and CHDIR and
 * CELL work for the first job of the queue. */
#include "config.h"

#include "plugins/jupyter/jupyter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/text/floatrepr.h"
#include "base/log.h"
#include "base/process/spawn.h"
#include "plugins/jupyter/answer.h"
#include "proto/json.h"
#include "proto/python/repr.h"

#define START_MS 60000 /* ms for the kernel's start and its prologue */
#define ASK_MS 1000    /* ms until a reply without its status makes the plugin ask again */
#define CHDIR_MS 30000
#define LATE_MS 2000  /* ms after an interrupt, before the second one */
#define LATER_MS 5000 /* ms after the second interrupt, before the kernel is killed */
#define EXIT_MS 2000
#define TIMEOUT_MAX_S 1e9
#define OLD_BYTES_MAX (16u << 20)
#define OLD_MAX 16
#define DIR_MAX 65536

int
hr_jupyter_init(struct hr_jupyter *j, const char *state_dir, const char *python, char *const *envp,
    const char *init, bool anew, struct hr_err *err)
{
	memset(j, 0, sizeof(*j));
	TAILQ_INIT(&j->queue);
	TAILQ_INIT(&j->old);
	j->deadline_ms = -1;
	j->python = python;
	j->envp = envp;
	j->init = init;
	j->lost = anew ? "[The Jupyter kernel was restarted; its variables are gone.]\n" : NULL;
	return hr_kernel_init(&j->kernel, state_dir, err);
}

/* ---- jobs ---- */

static void
job_free(struct hr_job *job)
{
	free(job->key);
	free(job->dir);
	json_object_put(job->action);
	hr_buf_done(&job->answer);
	free(job);
}

static void
free_all(struct hr_job_list *list)
{
	struct hr_job *job;

	while ((job = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, job, entry);
		job_free(job);
	}
}

void
hr_jupyter_done(struct hr_jupyter *j)
{
	hr_kernel_done(&j->kernel);
	free_all(&j->queue);
	free_all(&j->old);
	free(j->path);
	free(j->dir);
	j->path = j->dir = NULL;
}

/* Drops old answers. The newest stays whatever its size: a worker may request it again. */
static void
drop_old(struct hr_jupyter *j)
{
	struct hr_job *job, *next;
	size_t bytes = 0, n = 0;

	for (job = TAILQ_LAST(&j->old, hr_job_list); job != NULL; job = next) {
		next = TAILQ_PREV(job, hr_job_list, entry);
		bytes += job->answer.len;
		if (job->users > 0 || n++ == 0 || (bytes <= OLD_BYTES_MAX && n <= OLD_MAX))
			continue;
		TAILQ_REMOVE(&j->old, job, entry);
		job_free(job);
	}
}

void
hr_jupyter_release(struct hr_jupyter *j, struct hr_job *job)
{
	hr_assert(job->users > 0);
	job->users--;
	if (job->key == NULL) {
		TAILQ_REMOVE(&j->old, job, entry);
		job_free(job);
		return;
	}
	drop_old(j);
}

static void
job_finish(struct hr_jupyter *j, struct hr_job *job, bool failed)
{
	if (job->cell > 0)
		hr_recent_end(&j->recent, job->cell, failed);
	job->done = true;
	hr_json_drop(&job->action);
	TAILQ_REMOVE(&j->queue, job, entry);
	TAILQ_INSERT_TAIL(&j->old, job, entry);
	drop_old(j);
}

static void
job_fail(struct hr_jupyter *j, struct hr_job *job, const char *why)
{
	hr_answer_put_error(&job->answer, why);
	job_finish(j, job, true);
}

static struct hr_job *
job_find(struct hr_job_list *list, const struct hr_act_request *req)
{
	struct hr_job *job;

	TAILQ_FOREACH(job, list, entry)
	{
		if (req->key.len > 0 && job->key_len == req->key.len &&
		    memcmp(job->key, req->key.p, job->key_len) == 0)
			return job;
	}
	return NULL;
}

/* Parses a job. Returns NULL, or the reason why it cannot be run. */
static const char *
job_read(struct hr_job *job, const struct hr_act_request *req)
{
	struct json_object *args, *code, *extra = NULL, *timeout;
	HR_BUF(why, 1024);

	if (hr_json_decode(req->action.p, req->action.len, &job->action, NULL) < 0 ||
	    (args = hr_json_typed_at(job->action, "args", HR_PY_DICT)) == NULL)
		return "the action cannot be read";
	code = hr_json_typed_at(args, "code", HR_PY_STR);
	if (code == NULL)
		return "the code of a cell must be a string";
	job->code = hr_json_str(code, &job->code_len);
	job->include_extra =
	    !json_object_object_get_ex(args, "include_extra", &extra) || hr_py_truthy(extra);
	timeout = hr_json_at(job->action, "timeout");
	if (timeout == NULL)
		return NULL;
	job->limited = hr_py_float(timeout, &job->timeout_s, &why) == 0;
	return job->limited ? NULL : "the limit of a cell must be a number";
}

struct hr_job *
hr_jupyter_submit(struct hr_jupyter *j, const struct hr_act_request *req, struct hr_err *err)
{
	struct hr_job *job = job_find(&j->queue, req);
	const char *why;

	if (job == NULL)
		job = job_find(&j->old, req);
	if (job != NULL) {
		job->users++;
		return job;
	}
	job = calloc(1, sizeof(*job));
	if (job == NULL)
		return hr_err_null(err);
	hr_buf_init(&job->answer, HR_FRAME_MAX + HR_FRAME_HEADER);
	job->key = malloc(req->key.len + 1);
	job->dir = strndup(req->working_dir.p, req->working_dir.len);
	if (job->key == NULL || job->dir == NULL) {
		job_free(job);
		return hr_err_null(err);
	}
	memcpy(job->key, req->key.p, req->key.len);
	job->key_len = req->key.len;
	job->users = 1;
	TAILQ_INSERT_TAIL(&j->queue, job, entry);
	if (req->again) {
		hr_answer_put_unknown(&job->answer);
		job_finish(j, job, true);
		return job;
	}
	why = job_read(job, req);
	if (why != NULL)
		job_fail(j, job, why);
	return job;
}

struct hr_job *
hr_jupyter_list(struct hr_jupyter *j, struct hr_err *err)
{
	struct hr_job *job = calloc(1, sizeof(*job));
	HR_BUF(body, HR_FRAME_MAX);

	if (job == NULL)
		return hr_err_null(err);
	hr_buf_init(&job->answer, HR_FRAME_MAX + HR_FRAME_HEADER);
	hr_recent_put(&body, &j->recent);
	hr_answer_put_json(&job->answer, 200, &body);
	job->users = 1;
	job->done = true;
	TAILQ_INSERT_HEAD(&j->old, job, entry);
	return job;
}

/* ---- stages ---- */

static void
set_stage(struct hr_jupyter *j, enum hr_jupyter_stage stage, int64_t limit_ms)
{
	j->stage = stage;
	j->deadline_ms = limit_ms < 0 ? -1 : hr_now_ms() + limit_ms;
}

static void
lose_kernel(struct hr_jupyter *j)
{
	hr_kernel_kill(&j->kernel);
	free(j->dir);
	j->dir = NULL;
	j->exiting = j->pressed = false;
	set_stage(j, HR_JUPYTER_NONE, -1);
}

/* Fails the first job; the next one tries again. */
static void
start_failed(struct hr_jupyter *j, const char *why)
{
	char text[sizeof(j->failure) + 64];

	(void)snprintf(j->failure, sizeof(j->failure), "%s", why);
	hr_log(HR_LOG_ERROR, "cannot start a kernel: %s", why);
	(void)snprintf(text, sizeof(text), "There is no Jupyter kernel: %s", j->failure);
	lose_kernel(j);
	if (!TAILQ_EMPTY(&j->queue))
		job_fail(j, TAILQ_FIRST(&j->queue), text);
}

static void
start(struct hr_jupyter *j)
{
	const char *argv[] = {j->python, "-m", "ipykernel_launcher", "-f", j->kernel.file, NULL};
	struct hr_err err = {0};

	j->began_ms = hr_now_ms();
	if (hr_kernel_start(&j->kernel,
		&(const struct hr_kernel_program){.argv = argv, .envp = j->envp}, &err) < 0 ||
	    hr_kernel_ask(&j->kernel, &err) < 0)
		start_failed(j, err.msg);
	else
		set_stage(j, HR_JUPYTER_ASKING, ASK_MS);
}

static void
run(struct hr_jupyter *j, enum hr_jupyter_stage stage, const char *code, size_t len,
    int64_t limit_ms)
{
	struct hr_err err = {0};

	if (hr_kernel_execute(&j->kernel, HR_KERNEL_UNCOUNTED, code, len, &err) < 0)
		start_failed(j, err.msg);
	else
		set_stage(j, stage, limit_ms);
}

static void
run_text(struct hr_jupyter *j, enum hr_jupyter_stage stage, const char *code, int64_t limit_ms)
{
	run(j, stage, code, strlen(code), limit_ms);
}

static int64_t
start_left(const struct hr_jupyter *j)
{
	int64_t left = j->began_ms + START_MS - hr_now_ms();

	return left > 0 ? left : 0;
}

static void
run_cell(struct hr_jupyter *j, struct hr_job *job)
{
	int64_t limit = -1;

	if (job->limited && !(job->timeout_s > TIMEOUT_MAX_S)) /* NaN means no limit */
		limit = job->timeout_s > 0 ? (int64_t)ceil(job->timeout_s * 1000) : 0;
	if (job->cell == 0)
		job->cell = hr_recent_begin(&j->recent, job->code, job->code_len);
	run(j, HR_JUPYTER_CELL, job->code, job->code_len, limit);
}

static void
run_chdir(struct hr_jupyter *j, struct hr_job *job)
{
	HR_BUF(code, DIR_MAX);

	free(j->dir);
	j->dir = strdup(job->dir);
	hr_buf_adds(&code, "import os; os.chdir(");
	hr_pyrepr_str(&code, job->dir, strlen(job->dir));
	hr_buf_addc(&code, ')');
	if (j->dir == NULL || code.fail != HR_OK)
		run_cell(j, job); /* retries the job with the next cell */
	else
		run(j, HR_JUPYTER_CHDIR, code.p, code.len, CHDIR_MS);
}

static void
begin_job(struct hr_jupyter *j)
{
	struct hr_job *job = TAILQ_FIRST(&j->queue);

	if (job->dir[0] != '\0' && (j->dir == NULL || strcmp(j->dir, job->dir) != 0))
		run_chdir(j, job);
	else
		run_cell(j, job);
}

void
hr_jupyter_advance(struct hr_jupyter *j, bool wanted)
{
	if (j->stage == HR_JUPYTER_NONE && (wanted || !TAILQ_EMPTY(&j->queue))) {
		start(j);
		return;
	}
	if (TAILQ_EMPTY(&j->queue))
		return;
	if (j->stage == HR_JUPYTER_IDLE && j->exiting)
		set_stage(j, HR_JUPYTER_EXITING, EXIT_MS);
	else if (j->stage == HR_JUPYTER_IDLE)
		begin_job(j);
	else if (j->stage == HR_JUPYTER_LATE && j->deadline_ms < 0)
		set_stage(j, HR_JUPYTER_LATE, LATE_MS);
}

/* ---- events of the kernel ---- */

static void
answer(struct hr_jupyter *j, struct hr_job *job, const char *last_words)
{
	struct hr_cell_answer a = {.code = job->code,
	    .code_len = job->code_len,
	    .cell = &j->kernel.cell,
	    .last_words = last_words,
	    .first_words = j->lost != NULL ? j->lost : "",
	    .include_extra = job->include_extra,
	    .dir = job->dir,
	    .path = j->path != NULL ? j->path : ""};

	j->lost = NULL;
	hr_answer_put_cell(&job->answer, &a);
	job_finish(j, job, a.cell->failed || last_words[0] != '\0');
}

static void
timed_out(struct hr_jupyter *j)
{
	struct hr_job *job = TAILQ_FIRST(&j->queue);
	HR_BUF(text, 256);

	hr_kernel_interrupt(&j->kernel);
	hr_buf_adds(&text, "[Execution timed out (");
	hr_float_repr(&text, job->timeout_s);
	hr_buf_adds(&text, " seconds).]");
	/* the output so far is not shown */
	hr_cell_done(&j->kernel.cell);
	hr_buf_init(&j->kernel.cell.text, HR_CELL_TEXT_MAX);
	hr_buf_init(&j->kernel.cell.images, HR_CELL_TEXT_MAX);
	j->kernel.cell.failed = true; /* later output is not shown either */
	answer(j, job, hr_buf_str(&text));
	set_stage(j, HR_JUPYTER_LATE, -1);
}

static void
take_path(struct hr_jupyter *j)
{
	const char *p = hr_buf_str(&j->kernel.cell.text);
	size_t len = strcspn(p, "\r\n");

	free(j->path);
	j->path = strndup(p, len);
}

static void
log_init(const struct hr_jupyter *j)
{
	if (j->kernel.cell.failed)
		hr_log(HR_LOG_WARNING, "a first cell of the kernel failed: %s",
		    hr_buf_str(&j->kernel.cell.text));
}

static void
become_idle(struct hr_jupyter *j)
{
	if (!j->was_ready || hr_log_enabled(HR_LOG_DEBUG))
		hr_log(HR_LOG_INFO, "%s answers after %lld ms",
		    j->path != NULL ? j->path : j->python, (long long)(hr_now_ms() - j->began_ms));
	j->was_ready = true;
	j->failure[0] = '\0';
	set_stage(j, HR_JUPYTER_IDLE, -1);
}

static void
cell_over(struct hr_jupyter *j)
{
	struct hr_job *job = TAILQ_FIRST(&j->queue);

	j->exiting = j->exiting || j->kernel.cell.exiting;
	switch (j->stage) {
	case HR_JUPYTER_ASKING:
		run_text(j, HR_JUPYTER_COLOURS, "%colors nocolor", start_left(j));
		return;
	case HR_JUPYTER_COLOURS:
		run_text(j, HR_JUPYTER_PATH, "import sys; print(sys.executable)", start_left(j));
		return;
	case HR_JUPYTER_PATH:
		take_path(j);
		if (j->init[0] != '\0')
			run_text(j, HR_JUPYTER_INIT, j->init, start_left(j));
		else
			become_idle(j);
		return;
	case HR_JUPYTER_INIT:
		log_init(j);
		become_idle(j);
		return;
	case HR_JUPYTER_CHDIR:
		log_init(j);
		run_cell(j, job);
		return;
	case HR_JUPYTER_CELL:
		if (j->kernel.cell.aborted && !job->again) {
			job->again = true;
			run_cell(j, job);
			return;
		}
		answer(j, job, "");
		break;
	default: break;
	}
	j->pressed = false;
	set_stage(j, HR_JUPYTER_IDLE, -1);
}

void
hr_jupyter_received(struct hr_jupyter *j)
{
	if (hr_kernel_receive(&j->kernel))
		cell_over(j);
}

void
hr_jupyter_ended(struct hr_jupyter *j)
{
	struct hr_job *job = TAILQ_FIRST(&j->queue);
	enum hr_jupyter_stage stage = j->stage;
	char why[200];

	hr_kernel_ended(&j->kernel);
	hr_log(j->exiting ? HR_LOG_INFO : HR_LOG_WARNING, "the kernel ended (%s)",
	    hr_exit_words(j->kernel.status));
	lose_kernel(j);
	if (stage == HR_JUPYTER_CELL) {
		(void)snprintf(why, sizeof(why),
		    "[Jupyter kernel died (%s); a new kernel will be started.]",
		    hr_exit_words(j->kernel.status));
		answer(j, job, why);
	} else if (stage == HR_JUPYTER_CHDIR && !job->again) {
		job->again = true; /* the cell itself has not started */
	} else if (stage < HR_JUPYTER_IDLE || stage == HR_JUPYTER_CHDIR) {
		(void)snprintf(why, sizeof(why),
		    "%.100s -m ipykernel_launcher ended at once (%s); on Debian: apt-get install "
		    "python3-ipykernel",
		    j->python, hr_exit_words(j->kernel.status));
		start_failed(j, why);
	}
}

void
hr_jupyter_late(struct hr_jupyter *j)
{
	switch (j->stage) {
	case HR_JUPYTER_ASKING:
		/* the plugin subscribed after the reply's status was published */
		if (start_left(j) > 0) {
			if (j->kernel.cell.replied)
				(void)hr_kernel_ask(&j->kernel, NULL);
			set_stage(j, HR_JUPYTER_ASKING, ASK_MS);
			return;
		}
		/* fall through */
	case HR_JUPYTER_COLOURS:
	case HR_JUPYTER_PATH:
	case HR_JUPYTER_INIT:
	case HR_JUPYTER_CHDIR: start_failed(j, "it does not answer"); return;
	case HR_JUPYTER_CELL: timed_out(j); return;
	case HR_JUPYTER_LATE:
		if (!j->pressed) {
			hr_kernel_interrupt(&j->kernel);
			j->pressed = true;
			set_stage(j, HR_JUPYTER_LATE, LATER_MS);
			return;
		}
		hr_log(HR_LOG_WARNING, "the kernel does not react to interrupts and is killed");
		lose_kernel(j);
		j->lost = "[The Jupyter kernel did not react to an interrupt and was replaced; its "
			  "variables are gone.]\n";
		return;
	case HR_JUPYTER_EXITING: lose_kernel(j); return;
	default: j->deadline_ms = -1; return;
	}
}
