/* A pool of workers as the supervisor has it: its socket, its processes, which are stand-ins, the
 * channel to them, and their end. Whatever fails, the pool is empty when it was told to stop, and
 * no place on the scoreboard is lost. */
#include "config.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"
#include "base/path.h"
#include "failcalls.h"
#include "fault.h"
#include "supervisor/server.h"

static const char stand_in[] = "#!/bin/sh\nexec sleep 600\n";
static struct hr_server s;

static struct hr_pool *
pool(void)
{
	return &s.pools.v[1];
}

static void
on_child(void *arg)
{
	(void)arg;
	hr_children_reap(&s.kids);
	if (hr_service_ends(&pool()->svc) && hr_pool_gone(pool()))
		hr_loop_stop(s.ctx.loop);
}

/* What the pool needs, with nothing failing. */
static int
prepare(char *dir, size_t cap, struct hr_err *err)
{
	static char path[128], port[] = "3000";
	static const struct hr_rundir_place where = {
	    .wanted = path, .runstatedir = "/run", .port = 3000, .privileged = false};
	char program[256], keys[128];

	hr_server_init(&s);
	(void)snprintf(dir, cap, "%s/libexec", fault_dir());
	(void)snprintf(path, sizeof(path), "%s/run", fault_dir());
	(void)snprintf(program, sizeof(program), "%s/handrail-worker", dir);
	(void)snprintf(keys, sizeof(keys), "%s/keys", fault_dir());
	s.ctx.libexecdir = dir;
	s.stage = HR_SERVER_RUNNING;
	s.ctx.umask_given = -1;
	s.ctx.id.nginx_uid = geteuid();
	if (hr_settings_init(&s.ctx.settings, err) != 0 ||
	    hr_settings_set(&s.ctx.settings, "port", port, err) != 0 ||
	    hr_path_mkdirs(dir, 0755, NULL, err) != 0 ||
	    hr_path_write(program, stand_in, sizeof(stand_in) - 1, 0755, err) != 0 ||
	    hr_path_write(keys, "one\n", 4, 0600, err) != 0 ||
	    hr_keys_read_file(&s.site.keys, keys, err) != 0 ||
	    hr_rundir_open(&s.ctx.run, &where, err) != 0 ||
	    hr_rundir_prepare(&s.ctx.run, geteuid(), false, err) != 0)
		return -1;
	s.ctx.board = hr_scoreboard_create(&s.ctx.board_fd, err);
	return s.ctx.board != NULL ? 0 : -1;
}

static void
release(void)
{
	hr_pool_close(pool());
	hr_watch_free(s.signals[0]);
	hr_loop_free(s.ctx.loop);
	hr_scoreboard_detach(s.ctx.board);
	hr_fd_close(&s.ctx.board_fd);
	hr_rundir_close(&s.ctx.run);
	hr_keys_done(&s.site.keys);
	hr_settings_done(&s.ctx.settings);
}

/* None may stay: neither a process nor what it had on the scoreboard. */
static void
check_gone(void)
{
	size_t i;

	for (i = 0; i < HR_SCOREBOARD_SLOTS; i++)
		if (s.pools.slot_used[i] || atomic_load(&s.ctx.board->slots[i].pid) != 0)
			fault_wrong("place %zu is lost", i);
	if (!hr_pool_gone(pool()) || atomic_load(&s.ctx.board->pools[1].size) != 0)
		fault_wrong("a worker is left");
}

static int
serve(struct hr_err *err)
{
	int r;

	s.ctx.loop = hr_loop_new(err);
	if (s.ctx.loop == NULL)
		return -1;
	hr_children_init(&s.kids, s.ctx.loop);
	s.signals[0] = hr_loop_signal(s.ctx.loop, SIGCHLD, on_child, NULL, err);
	if (s.signals[0] == NULL || hr_pool_open(pool(), err) != 0)
		return -1;
	hr_pool_fill(pool());
	fault_tell("%u ", hr_pool_count(pool(), NULL));
	hr_pool_full(pool());
	fault_tell("%u ", hr_pool_count(pool(), NULL));
	hr_pool_recycle(pool());
	fault_tell("%u ", hr_pool_count(pool(), NULL));
	hr_pool_stop(pool(), true);
	r = hr_pool_gone(pool()) ? 0 : hr_loop_run(s.ctx.loop, err);
	/* where the loop itself failed, the supervisor would end, and its workers with it */
	failcalls_spare(true);
	if (r != 0)
		(void)hr_loop_run(s.ctx.loop, NULL);
	failcalls_spare(false);
	return r;
}

static int
workers(struct hr_err *err)
{
	char dir[160];
	int r;

	failcalls_spare(true);
	r = prepare(dir, sizeof(dir), err);
	failcalls_spare(false);
	if (r == 0) {
		r = serve(err);
		check_gone();
	}
	release();
	return r;
}

const struct fault_scenario fault_scenarios[] = {
    {"workers", workers, FAULT_LOSSY}, {NULL, NULL, 0}};
