/* Starts the process of a worker: its program, options and descriptors (proto/PROTOCOL). */
#include "config.h"

#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/process/image.h"
#include "base/process/spawn.h"
#include "proto/workerargs.h"
#include "supervisor/children/pool.h"
#include "supervisor/run/context.h"

#define OOM_WORKER (-200)

/* Makes an unreadable image of the worker where the shell may share this account, so that commands
 * cannot inspect a starting worker. Root's workers are protected, but not from root. */
static const int *
worker_image(struct hr_pools *all, const char *path)
{
	struct hr_err err = {0};

	if (geteuid() == 0 || all->plain_image)
		return NULL;
	if (all->image < 0)
		all->image = hr_image_open(path, "handrail-worker", 0100, &err);
	if (all->image >= 0)
		return &all->image;
	all->plain_image = true; /* tries this only once */
	hr_log(HR_LOG_WARNING,
	    "other processes of this account can read a worker's memory while it starts: %s",
	    err.msg);
	return NULL;
}

static void
worker_args(const struct hr_pool_worker *w, struct hr_worker_argv *ret)
{
	const struct hr_context *ctx = w->pool->ctx;
	const struct hr_settings *c = &ctx->settings;

	hr_worker_args_write(&(const struct hr_worker_args){.pool = w->pool->name,
				 .slot = (unsigned long)w->slot,
				 .run_dir = ctx->run.path,
				 .work_dir = c->working_dir,
				 .libexec_dir = ctx->libexecdir,
				 .hidden = {c->session_api_key_file, c->tls_certificate_key},
				 .user_id = ctx->id.user_id,
				 .shell_uid = ctx->id.shell_uid,
				 .edge_uid = ctx->id.nginx_uid,
				 .edge_gid = ctx->id.nginx_gid,
				 .max_requests = (unsigned long)c->worker_max_requests,
				 .unpack_bytes = (unsigned long)c->unpack_max_bytes,
				 .unpack_entries = (unsigned long)c->unpack_max_entries,
				 .office_converter = c->office_converter,
				 .network_log = c->network_log,
				 .page_rights = ctx->www != NULL ? c->page_rights : "none",
				 .page_lifetime = (unsigned long)c->page_lifetime,
				 .journal = c->journal_entries > 0 ? ctx->journal : NULL,
				 .journal_entries = (unsigned long)c->journal_entries,
				 .journal_bytes = (unsigned long)c->journal_bytes,
				 .journal_age = (unsigned long)c->journal_age,
				 .journal_sync = c->journal_sync,
				 .journal_required = c->journal_required},
	    ret);
}

int
hr_pool_spawn_worker(struct hr_pool_worker *w, int channel, struct hr_err *err)
{
	const struct hr_context *ctx = w->pool->ctx;
	const struct hr_spawn_fd fds[] = {{w->pool->listener, 0}, {channel, 3}, {ctx->board_fd, 4}};
	HR_FREE char *path = hr_path_join(ctx->libexecdir, "handrail-worker");
	struct hr_worker_argv argv;

	if (path == NULL)
		return hr_err_nomem(err);
	worker_args(w, &argv);
	return hr_child_start(&w->child,
	    &(const struct hr_spawn){.path = path,
		.image = worker_image(w->pool->all, path),
		.argv = argv.v,
		.envp = (char *const *)hr_strv_list(&ctx->child_env),
		.fds = fds,
		.nfds = sizeof(fds) / sizeof(fds[0]),
		.setsid = true,
		.umask = ctx->umask_given},
	    OOM_WORKER, err);
}
