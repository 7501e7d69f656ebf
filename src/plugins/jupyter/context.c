/* Runs executions. Invariant: the kernel has a cell exactly in the stages ASKING, INIT, SETTING,
 * RUNNING, LATE and TAKING. */
#include "config.h"

#include "plugins/jupyter/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "e2b/path.h"
#include "e2b/setup.h"
#include "plugins/jupyter/firstcell.h"
#include "plugins/jupyter/line.h"
#include "plugins/jupyter/spec.h"
#include "proto/json.h"

#define START_MS 60000 /* ms for the kernel's start and its first cell */
#define ASK_MS 1000    /* ms until a reply without its status makes the context ask again */
#define COUNT_MS 100   /* ms for which the number of the execution is held back */
#define LATE_MS 2000   /* ms after an interrupt, before the second one */
#define LATER_MS 5000  /* ms after the second interrupt, before the kernel is killed */
#define TAKE_MS 30000
#define CODE_MAX (16u << 20)
#define VARIABLES_MAX 16384 /* each is compared with those before */

static void advance(struct hr_context *c);

/* ---- executions ---- */

static void
emit(struct hr_exec *e, const struct hr_buf *line)
{
	if (line->fail == HR_OK && line->len > 0)
		e->line(e, line->p, line->len);
}

static void
emit_count(struct hr_exec *e)
{
	HR_CLEAN(hr_buf_done) struct hr_buf count = e->count;

	hr_buf_init(&e->count, HR_LINE_MAX);
	emit(e, &count);
}

/* Ends an execution that is not in the queue any more. */
static void
finish(struct hr_exec *e, const char *failure)
{
	hr_buf_done(&e->count);
	e->end(e, failure);
}

/* Ends the running execution whose kernel is gone. */
static void
finish_lost(struct hr_context *c, const char *name, const char *value)
{
	struct hr_exec *e = c->running;
	HR_BUF(line, HR_LINE_MAX);

	c->running = NULL;
	if (e == NULL)
		return;
	hr_line_put_error(&line, name, value);
	emit(e, &line);
	finish(e, NULL);
}

/* Passes a message of the running cell on. The number of the execution is held back: it follows the
 * error of a cell that cannot be parsed, and is left out if the cell ends its kernel at once. */
static void
on_message(void *arg, const struct hr_wire_message *m)
{
	struct hr_context *c = arg;
	struct hr_exec *e = c->running;
	HR_BUF(line, HR_LINE_MAX);
	enum hr_line_kind kind;

	if (e == NULL)
		return;
	kind = hr_line_put(&line, m);
	if (kind == HR_LINE_NONE || (c->stage == HR_CONTEXT_SETTING && kind < HR_LINE_ERROR))
		return;
	if (kind == HR_LINE_COUNT) {
		hr_buf_add(&e->count, line.p, line.len);
		(void)hr_watch_arm(c->timer, COUNT_MS, NULL);
		return;
	}
	if (kind >= HR_LINE_ERROR && e->errored)
		return;
	e->errored = e->errored || kind >= HR_LINE_ERROR;
	if (kind != HR_LINE_SYNTAX)
		emit_count(e);
	emit(e, &line);
	emit_count(e);
}

/* ---- the kernel ---- */

static void
set_stage(struct hr_context *c, enum hr_context_stage stage, int64_t limit_ms)
{
	c->stage = stage;
	if (limit_ms < 0)
		hr_watch_disarm(c->timer);
	else
		(void)hr_watch_arm(c->timer, limit_ms, NULL);
}

static void
lose_kernel(struct hr_context *c)
{
	size_t i;

	hr_watch_drop(&c->ended);
	for (i = 0; i < 2; i++)
		hr_watch_drop(&c->readable[i]);
	hr_kernel_kill(&c->kernel);
	hr_json_drop(&c->to_take);
	c->pressed = false;
	set_stage(c, HR_CONTEXT_NONE, -1);
}

/* Fails the first execution; the next one tries again. */
static void
start_failed(struct hr_context *c, const char *why)
{
	struct hr_exec *e = c->running != NULL ? c->running : TAILQ_FIRST(&c->queue);
	char text[600];

	(void)snprintf(text, sizeof(text), "Failed to create context: %.500s", why);
	hr_log(HR_LOG_ERROR, "cannot start a kernel for %s: %s", c->language, why);
	lose_kernel(c);
	if (e == NULL)
		return;
	if (e == c->running)
		c->running = NULL;
	else
		TAILQ_REMOVE(&c->queue, e, entry);
	finish(e, text);
}

static void
run(struct hr_context *c, enum hr_context_stage stage, const char *code, size_t len,
    int64_t limit_ms)
{
	struct hr_err err = {0};

	if (hr_kernel_execute(&c->kernel,
		stage == HR_CONTEXT_RUNNING ? HR_KERNEL_COUNTED : HR_KERNEL_SILENT, code, len,
		&err) < 0)
		start_failed(c, err.msg);
	else
		set_stage(c, stage, limit_ms);
}

/* Appends the sandbox's variables, which the kernel's environment holds from its start. */
static int
add_variables(struct hr_context *c, const struct hr_e2b_setup *setup, struct hr_err *err)
{
	HR_PUT struct json_object *vars = hr_e2b_setup_variables(setup, NULL);

	if (vars == NULL)
		return 0;
	if (json_object_object_length(vars) > VARIABLES_MAX)
		return hr_err_set(
		    err, HR_E_TOOLARGE, "the sandbox has more than %d variables", VARIABLES_MAX);
	json_object_object_foreach(vars, name, v)
	{
		if (name[0] != '\0' && strchr(name, '=') == NULL && hr_json_text(v) != NULL)
			hr_strv_set_envf(&c->env, "%s=%s", name, hr_json_text(v));
	}
	return 0;
}

/* Replaces b by the directory that a client means. Returns false if it cannot be entered. */
static bool
enters(struct hr_buf *b, const char *path)
{
	char root[] = "/", *home = getenv("HOME");
	const struct hr_e2b_who who = {.name = root, .home = home != NULL ? home : root};
	struct stat st;
	HR_BUF(why, HR_E2B_PATH_MAX);

	hr_buf_reset(b);
	return hr_e2b_path(b, hr_span_of(path), &who, NULL, &why) == 0 &&
	       stat(hr_buf_str(b), &st) == 0 && S_ISDIR(st.st_mode) && access(b->p, X_OK) == 0;
}

static int
spawn(struct hr_context *c, struct hr_err *err)
{
	HR_CLEAN(hr_e2b_setup_done) struct hr_e2b_setup setup = {0};
	HR_FREE char *run_dir = hr_path_join(c->host->state_dir, "../..");
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	HR_CLEAN(hr_spec_done) struct hr_spec spec;
	struct hr_kernel_program program = {0};
	HR_BUF(dir, HR_E2B_PATH_MAX);

	if (hr_spec_find(&spec, c->language, c->host->python, err) < 0)
		return -1;
	hr_spec_argv(&argv, &spec, c->kernel.file);
	if (run_dir != NULL && hr_e2b_setup_read(&setup, run_dir, err) < 0)
		return -1;
	hr_strv_done(&c->env);
	hr_strv_add_all(&c->env, (const char *const *)c->host->envp);
	hr_strv_set_vars(&c->env, hr_strv_list(&spec.env), NULL);
	if (add_variables(c, &setup, err) < 0)
		return -1;
	if (run_dir == NULL || argv.failed || c->env.failed)
		return hr_err_nomem(err);
	c->kernel.asks_interrupt = spec.asks_interrupt;
	program.argv = hr_strv_list(&argv);
	program.envp = c->env.v;
	if (enters(&dir, c->cwd) || (setup.directory != NULL && enters(&dir, setup.directory)) ||
	    enters(&dir, ""))
		program.dir = dir.p;
	return hr_kernel_start(&c->kernel, &program, err);
}

static void pump(void *arg);
static void on_ended(void *arg);

static int
watch(struct hr_context *c, struct hr_err *err)
{
	int fds[2], i;

	if (hr_kernel_fds(&c->kernel, fds, err) < 0 ||
	    (c->ended = hr_loop_readable(c->host->loop, c->kernel.pidfd, on_ended, c, err)) == NULL)
		return -1;
	for (i = 0; i < 2; i++)
		if ((c->readable[i] = hr_loop_readable(c->host->loop, fds[i], pump, c, err)) ==
		    NULL)
			return -1;
	return 0;
}

static void
start(struct hr_context *c)
{
	struct hr_err err = {0};

	c->began_ms = hr_now_ms();
	if (spawn(c, &err) < 0 || watch(c, &err) < 0 || hr_kernel_ask(&c->kernel, &err) < 0)
		start_failed(c, err.msg);
	else
		set_stage(c, HR_CONTEXT_ASKING, ASK_MS);
}

static int64_t
start_left(const struct hr_context *c)
{
	int64_t left = c->began_ms + START_MS - hr_now_ms();

	return left > 0 ? left : 0;
}

/* ---- the order of cells ---- */

static void
begin(struct hr_context *c, struct hr_exec *e)
{
	HR_BUF(code, CODE_MAX);

	TAILQ_REMOVE(&c->queue, e, entry);
	if (e->code == NULL) {
		finish(e, NULL);
		return;
	}
	c->running = e;
	if (e->vars != NULL)
		hr_spec_set(&code, c->language, e->vars);
	if (code.len == 0 || code.fail != HR_OK) {
		run(c, HR_CONTEXT_RUNNING, e->code, e->code_len, -1);
		return;
	}
	c->to_take = json_object_get(e->vars);
	run(c, HR_CONTEXT_SETTING, code.p, code.len, -1);
}

/* Performs the work due now. */
static void
advance(struct hr_context *c)
{
	while (!TAILQ_EMPTY(&c->queue)) {
		if (c->stage == HR_CONTEXT_NONE)
			start(c);
		else if (c->stage == HR_CONTEXT_IDLE)
			begin(c, TAILQ_FIRST(&c->queue));
		else
			return;
	}
}

static void
take_back(struct hr_context *c)
{
	HR_BUF(code, CODE_MAX);

	c->pressed = false;
	if (c->kernel.cell.exiting) {
		lose_kernel(c);
		return;
	}
	if (c->to_take != NULL)
		hr_spec_take_back(&code, c->language, c->to_take, c->env.v);
	hr_json_drop(&c->to_take);
	if (code.len > 0 && code.fail == HR_OK)
		run(c, HR_CONTEXT_TAKING, code.p, code.len, TAKE_MS);
	else
		set_stage(c, HR_CONTEXT_IDLE, -1);
}

static void
cell_over(struct hr_context *c)
{
	struct hr_exec *e = c->running;

	switch (c->stage) {
	case HR_CONTEXT_ASKING:
		if (strcmp(c->language, "python") == 0)
			run(c, HR_CONTEXT_INIT, hr_first_cell, strlen(hr_first_cell),
			    start_left(c));
		else
			set_stage(c, HR_CONTEXT_IDLE, -1);
		return;
	case HR_CONTEXT_INIT:
	case HR_CONTEXT_TAKING: set_stage(c, HR_CONTEXT_IDLE, -1); return;
	case HR_CONTEXT_SETTING:
		if (!e->errored) {
			run(c, HR_CONTEXT_RUNNING, e->code, e->code_len, -1);
			return;
		}
		break;
	case HR_CONTEXT_RUNNING:
		if (c->kernel.cell.aborted && !e->again) {
			e->again = true;
			run(c, HR_CONTEXT_RUNNING, e->code, e->code_len, -1);
			return;
		}
		break;
	case HR_CONTEXT_LATE: break;
	default: return;
	}
	hr_kernel_hold(&c->kernel, false);
	c->running = NULL;
	take_back(c);
	if (e != NULL) {
		emit_count(e);
		finish(e, NULL);
	}
}

/* Handles some messages and the work due now, then lets the other contexts run. */
static void
pump(void *arg)
{
	struct hr_context *c = arg;

	while (hr_kernel_receive(&c->kernel))
		cell_over(c);
	advance(c);
	/* a kernel that fails to handle a cell publishes its end, but sends no reply */
	if (c->stage == HR_CONTEXT_RUNNING && c->kernel.cell.idle)
		(void)hr_watch_arm(c->timer, ASK_MS, NULL);
	if (hr_kernel_waits(&c->kernel))
		(void)hr_watch_arm(c->more, 0, NULL);
}

static void
on_ended(void *arg)
{
	struct hr_context *c = arg;
	bool starting = c->stage < HR_CONTEXT_IDLE;
	char why[300];

	if (hr_kernel_receive(&c->kernel) && !starting)
		cell_over(c);
	if (c->stage == HR_CONTEXT_NONE) {
		advance(c);
		return;
	}
	hr_kernel_ended(&c->kernel);
	hr_log(HR_LOG_WARNING, "the kernel of context %s ended (%s)", c->id,
	    hr_exit_words(c->kernel.status));
	if (starting) {
		(void)snprintf(why, sizeof(why), "the kernel of \"%.40s\" ended at once (%s)%s",
		    c->language, hr_exit_words(c->kernel.status),
		    strcmp(c->language, "python") == 0
			? "; on Debian: apt-get install python3-ipykernel"
			: "");
		start_failed(c, why);
	} else {
		lose_kernel(c);
		finish_lost(c, "ContextRestarting", "Context was restarted");
	}
	advance(c);
}

static void
on_timer(void *arg)
{
	struct hr_context *c = arg;

	switch (c->stage) {
	case HR_CONTEXT_ASKING:
		if (start_left(c) > 0) {
			if (c->kernel.cell.replied)
				(void)hr_kernel_ask(&c->kernel, NULL);
			set_stage(c, HR_CONTEXT_ASKING, ASK_MS);
			break;
		}
		/* fall through */
	case HR_CONTEXT_INIT: start_failed(c, "the kernel does not answer"); break;
	case HR_CONTEXT_RUNNING:
		emit_count(c->running);
		if (c->kernel.cell.idle)
			cell_over(c);
		break;
	case HR_CONTEXT_LATE:
		if (!c->pressed) {
			hr_kernel_interrupt(&c->kernel);
			c->pressed = true;
			set_stage(c, HR_CONTEXT_LATE, LATER_MS);
			break;
		}
		/* fall through */
	case HR_CONTEXT_TAKING:
		hr_log(
		    HR_LOG_WARNING, "the kernel of context %s does not react and is killed", c->id);
		lose_kernel(c);
		break;
	default: break;
	}
	pump(c);
}

/* ---- the context ---- */

struct hr_context *
hr_context_new(const struct hr_context_host *host, unsigned number, const char *language,
    const char *cwd, struct hr_err *err)
{
	struct hr_context *c = calloc(1, sizeof(*c));
	HR_FREE char *dir = NULL;
	char name[24];

	if (c == NULL)
		return hr_err_null(err);
	(void)snprintf(name, sizeof(name), "%u", number);
	TAILQ_INIT(&c->queue);
	c->host = host;
	c->kernel.pidfd = -1;
	c->language = strdup(language);
	c->cwd = strdup(cwd);
	dir = hr_path_join(host->state_dir, name);
	if (c->language == NULL || c->cwd == NULL || dir == NULL) {
		(void)hr_err_nomem(err);
	} else if (hr_path_mkdirs(dir, 0700, NULL, err) == 0 &&
		   hr_kernel_init(&c->kernel, dir, err) == 0 && hr_random_uuid(c->id, err) == 0 &&
		   (c->timer = hr_loop_timer(host->loop, on_timer, c, err)) != NULL &&
		   (c->more = hr_loop_timer(host->loop, pump, c, err)) != NULL) {
		c->kernel.sink = on_message;
		c->kernel.sink_arg = c;
		return c;
	}
	hr_context_free(c);
	return NULL;
}

void
hr_context_free(struct hr_context *c)
{
	struct hr_exec *e;

	if (c == NULL)
		return;
	lose_kernel(c);
	finish_lost(c, "UnexpectedEndOfExecution", "The context was removed");
	while ((e = TAILQ_FIRST(&c->queue)) != NULL) {
		TAILQ_REMOVE(&c->queue, e, entry);
		c->running = e;
		finish_lost(c, "UnexpectedEndOfExecution", "The context was removed");
	}
	hr_watch_free(c->timer);
	hr_watch_free(c->more);
	if (c->kernel.dir != NULL)
		(void)rmdir(c->kernel.dir);
	hr_kernel_done(&c->kernel);
	hr_strv_done(&c->env);
	free(c->language);
	free(c->cwd);
	free(c);
}

void
hr_context_run(struct hr_context *c, struct hr_exec *e)
{
	hr_buf_init(&e->count, HR_LINE_MAX);
	TAILQ_INSERT_TAIL(&c->queue, e, entry);
	pump(c);
}

void
hr_context_restart(struct hr_context *c, struct hr_exec *e)
{
	lose_kernel(c);
	finish_lost(c, "ContextRestarting", "Context was restarted");
	hr_buf_init(&e->count, HR_LINE_MAX);
	TAILQ_INSERT_HEAD(&c->queue, e, entry);
	pump(c);
}

void
hr_context_leave(struct hr_context *c, struct hr_exec *e)
{
	hr_buf_done(&e->count);
	if (e != c->running) {
		TAILQ_REMOVE(&c->queue, e, entry);
		return;
	}
	c->running = NULL;
	hr_kernel_interrupt(&c->kernel);
	set_stage(c, HR_CONTEXT_LATE, LATE_MS);
}

void
hr_context_hold(struct hr_context *c, const struct hr_exec *e, bool hold)
{
	if (e == c->running)
		hr_kernel_hold(&c->kernel, hold);
}
