/* The process of a worker: its program, its options, its descriptors (proto/PROTOCOL). */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/spawn.h"
#include "proto/workerargs.h"
#include "supervisor/children/image.h"
#include "supervisor/children/pool.h"
#include "supervisor/server.h"

#define OOM_WORKER (-200)

/* Where the shell may have our own account, what runs in it may not look into a worker that starts.
 * Root's are out of reach of others, and not of itself. */
static const int *
worker_image(struct hr_server *s, const char *path)
{
	struct hr_err err = {0};

	if (geteuid() == 0 || s->plain_image)
		return NULL;
	if (s->worker_image < 0)
		s->worker_image = hr_image_open(path, &err);
	if (s->worker_image >= 0)
		return &s->worker_image;
	s->plain_image = true; /* once is enough */
	hr_log(HR_LOG_WARNING, "workers can be looked into while they start: %s", err.msg);
	return NULL;
}

static void
worker_args(const struct hr_pool_worker *w, struct hr_worker_argv *ret)
{
	const struct hr_server *s = w->pool->server;
	const struct hr_settings *c = &s->settings;

	hr_worker_args_write(&(const struct hr_worker_args){.pool = w->pool->name,
				 .slot = (unsigned long)w->slot,
				 .run_dir = s->run.path,
				 .work_dir = c->working_dir,
				 .libexec_dir = s->libexecdir,
				 .hidden = {c->session_api_key_file, c->tls_certificate_key},
				 .user_id = s->id.user_id,
				 .shell_uid = s->id.shell_uid,
				 .edge_uid = s->id.nginx_uid,
				 .edge_gid = s->id.nginx_gid,
				 .max_requests = (unsigned long)c->worker_max_requests,
				 .unpack_bytes = (unsigned long)c->unpack_max_bytes,
				 .unpack_entries = (unsigned long)c->unpack_max_entries,
				 .office_converter = c->office_converter,
				 .page_rights = s->www != NULL ? c->page_rights : "none",
				 .page_lifetime = (unsigned long)c->page_lifetime,
				 .journal = c->journal_entries > 0 ? s->journal : NULL,
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
	struct hr_server *s = w->pool->server;
	const struct hr_spawn_fd fds[] = {{w->pool->listener, 0}, {channel, 3}, {s->board_fd, 4}};
	char *path = hr_path_join(s->libexecdir, "handrail-worker");
	struct hr_worker_argv argv;
	int r;

	if (path == NULL)
		return hr_err_nomem(err);
	worker_args(w, &argv);
	r = hr_child_start(&w->child,
	    &(const struct hr_spawn){.path = path,
		.image = worker_image(s, path),
		.argv = argv.v,
		.envp = s->child_env,
		.fds = fds,
		.nfds = sizeof(fds) / sizeof(fds[0]),
		.setsid = true,
		.umask = s->umask_given},
	    OOM_WORKER, err);
	free(path);
	return r;
}
