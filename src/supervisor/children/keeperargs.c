/* Builds the command line of a keeper. */
#include "config.h"

#include "supervisor/children/keeperargs.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "base/process/spawn.h"
#include "supervisor/children/child.h"
#include "supervisor/run/context.h"

#define OOM_SHELL 500  /* more than the keeper's score, since the keeper reports the death */
#define OOM_KEEPER 300 /* score that lets programs of the sandbox die before its servers */

char *
hr_keeper_cd(const char *dir)
{
	HR_BUF(b, 8 + 4 * strlen(dir));

	hr_buf_adds(&b, dir[0] == '-' ? "cd -- " : "cd ");
	hr_quote_shell(&b, dir, strlen(dir));
	return hr_buf_end(&b, NULL);
}

static void
args_add(struct hr_keeper_args *a, const char *option, const char *value)
{
	hr_assert(a->n + 3 < HR_KEEPER_ARGS);
	a->v[a->n++] = option;
	if (value != NULL)
		a->v[a->n++] = value;
	a->v[a->n] = NULL;
}

static int
args_strings(struct hr_keeper_args *a, const struct hr_context *ctx, const char *name,
    const char *dir, struct hr_err *err)
{
	a->path = hr_path_join(ctx->libexecdir, "handrail-session");
	a->state_dir = hr_rundir_file(&ctx->run, "shell/%s", name);
	a->cd = hr_keeper_cd(dir);
	a->line = hr_path_join(ctx->libexecdir, "handrail-line.so");
	if (a->path == NULL || a->state_dir == NULL || a->cd == NULL || a->line == NULL)
		return hr_err_nomem(err);
	return 0;
}

static void
args_number(struct hr_keeper_args *a, const char *option, char text[24], uint64_t n)
{
	if (n == 0)
		return;
	(void)snprintf(text, sizeof(a->files), "%" PRIu64, n);
	args_add(a, option, text);
}

/* Adds limits per process for resources that no control group limits. */
static void
args_limits(struct hr_keeper_args *a, const struct hr_context *ctx)
{
	const struct hr_settings *c = &ctx->settings;
	int score;
	size_t i;

	for (i = 0; i < ctx->cgroup.n; i++)
		args_add(a, "--cgroup", ctx->cgroup.dirs[i]);
	if (!ctx->cgroup.has_memory)
		args_number(a, "--limit-memory", a->memory, hr_settings_memory(c));
	if (!ctx->cgroup.has_pids)
		args_number(a, "--limit-processes", a->processes, (uint64_t)c->max_processes);
	args_number(a, "--limit-files", a->files, (uint64_t)c->max_open_files);
	score = ctx->kids->oom_base + OOM_SHELL;
	if (score > 0)
		args_number(a, "--oom-score", a->oom, (uint64_t)(score < 1000 ? score : 1000));
	if (c->no_new_privileges)
		args_add(a, "--no-new-privileges", NULL);
}

int
hr_keeper_args_init(struct hr_keeper_args *a, const struct hr_context *ctx, const char *name,
    const char *dir, bool is_static, struct hr_err *err)
{
	long long timeout = ctx->settings.no_change_timeout;

	memset(a, 0, sizeof(*a));
	if (args_strings(a, ctx, name, dir, err) < 0)
		return -1;
	(void)snprintf(a->timeout, sizeof(a->timeout), "%lld", timeout > 0 ? timeout : 1);
	args_add(a, "handrail-session", NULL);
	args_add(a, "--name", name);
	args_add(a, "--user", ctx->id.shell_user);
	if (!ctx->id.shell_changes)
		args_add(a, "--stay", NULL);
	args_add(a, "--work-dir", dir);
	args_add(a, "--state-dir", a->state_dir);
	args_add(a, "--journal", ctx->journal);
	if (ctx->settings.journal_sync)
		args_add(a, "--journal-sync", NULL);
	args_add(a, "--no-change-timeout", a->timeout);
	args_number(a, "--output-log", a->log, (uint64_t)ctx->settings.output_log_bytes);
	if (ctx->settings.network_log[0] != '\0')
		args_add(a, "--network-log", ctx->settings.network_log);
	args_limits(a, ctx);
	if (is_static) {
		args_add(a, "--static", NULL);
		return 0;
	}
	/* a static keeper ends after one command: the module would cost more than it saves */
	args_add(a, "--line-module", a->line);
	args_add(a, "--init-command", "alias git=\"git --no-pager\"");
	if (ctx->id.user_id != 0)
		args_add(a, "--init-command", a->cd);
	return 0;
}

void
hr_keeper_args_done(struct hr_keeper_args *a)
{
	free(a->path);
	free(a->state_dir);
	free(a->cd);
	free(a->line);
	a->path = a->state_dir = a->cd = a->line = NULL;
}

int
hr_keeper_spawn(const struct hr_context *ctx, struct hr_child *c, const struct hr_keeper_args *a,
    int ready, int sock, const int store[2], void (*forked)(void *arg, pid_t pid), void *arg,
    struct hr_err *err)
{
	const struct hr_spawn_fd fds[] = {{ready, 3}, {sock, HR_KEEPER_SOCKET_FD},
	    {store != NULL ? store[0] : -1, HR_KEEPER_STORE_FD},
	    {store != NULL ? store[1] : -1, HR_KEEPER_STORE_FD + 1}};

	if (hr_rundir_shell(&ctx->run, a->state_dir, err) < 0)
		return -1;
	return hr_child_start(c,
	    &(const struct hr_spawn){.path = a->path,
		.argv = a->v,
		.envp = (char *const *)hr_strv_list(&ctx->child_env),
		.fds = fds,
		.nfds = store != NULL ? 4 : 2,
		.setsid = true,
		/* the keeper dies with its parent until it is ready, see PROTOCOL */
		.pdeathsig = SIGKILL,
		.umask = ctx->umask_given,
		.nofile = &ctx->nofile_given,
		.forked = forked,
		.arg = arg},
	    OOM_KEEPER, err);
}
