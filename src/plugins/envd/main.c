/* handrail-envd: runs as the plugin that E2B's clients know as envd (handrail-plugin(5)): the
 * server, or with --keeper the keeper of its processes. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "http/serve.h"
#include "plugins/envd/keep.h"
#include "plugins/envd/rpc.h"
#include "plugins/envd/table.h"
#include "proto/auth.h"

#define BODY_MAX (32u << 20)

enum { READY_FD = 3, KEEPER_FD = 3, HTTP_FD = 5, SUMS_FD = 6, DIRECT_FD = 7 };

struct server {
	struct envd envd;
	struct hr_serve *http, *direct; /* direct NULL: there is no such socket */
	bool ends, lost;
};

/* Handles TERM, which ends the sandbox; HUP ends only this server, as when another handraild takes
 * over. */
static void
on_term(void *arg)
{
	struct server *s = arg;

	s->ends = true;
	hr_loop_stop(s->envd.loop);
}

static void
on_hup(void *arg)
{
	struct server *s = arg;

	hr_loop_stop(s->envd.loop);
}

static void
on_lost(void *arg)
{
	struct server *s = arg;

	hr_log(HR_LOG_ERROR, "the keeper of processes has ended, and its processes with it");
	s->lost = true;
	hr_loop_stop(s->envd.loop);
}

/* Returns true for the session key. */
static bool
passes(const char *key)
{
	HR_CLEAN(hr_auth_done) struct hr_auth auth = {.have = 0};

	return hr_auth_read(&auth, SUMS_FD) && hr_auth_passes(&auth, key != NULL ? key : "");
}

/* Handles a request at the direct socket, whose key no nginx has checked. */
static void
on_direct(void *envd, struct hr_serve_request *q)
{
	static const char refusal[] = "{\"detail\":\"Invalid API Key\"}";

	if (passes(hr_serve_header(q, "X-Session-API-Key")))
		envd_rpc_request(envd, q);
	else
		hr_serve_answer(q, 403, "application/json", refusal, sizeof(refusal) - 1);
}

/* Returns the run directory, which is two levels above the plugin's; the caller frees. */
static char *
run_dir_of(const char *state_dir)
{
	char *dir = strdup(state_dir), *slash;
	int i;

	for (i = 0; dir != NULL && i < 2; i++)
		if ((slash = strrchr(dir, '/')) != NULL)
			*slash = '\0';
	return dir;
}

static int
open_server(struct server *s, char **run_dir, struct hr_err *err)
{
	const char *dir = getenv("HANDRAIL_STATE_DIR"), *uid = getenv("HANDRAIL_USER_ID");
	bool direct = hr_fd_cloexec(DIRECT_FD, NULL) == 0;

	if (dir == NULL || uid == NULL)
		return hr_err_set(err, HR_E_INVAL, "handraild must start this program");
	if (hr_fd_cloexec(READY_FD, err) < 0 || hr_fd_cloexec(HTTP_FD, err) < 0 ||
	    (direct && hr_fd_cloexec(SUMS_FD, err) < 0))
		return -1;
	s->envd.sandbox = (uid_t)strtoul(uid, NULL, 10);
	*run_dir = run_dir_of(dir);
	if (*run_dir == NULL)
		return hr_err_nomem(err);
	s->envd.run_dir = *run_dir;
	s->envd.loop = hr_loop_new(err);
	if (s->envd.loop == NULL ||
	    hr_loop_signal(s->envd.loop, SIGTERM, on_term, s, err) == NULL ||
	    hr_loop_signal(s->envd.loop, SIGHUP, on_hup, s, err) == NULL)
		return -1;
	s->envd.table = envd_table_open(s->envd.loop, dir, on_lost, s, err);
	if (s->envd.table == NULL)
		return -1;
	s->http = hr_serve_open(s->envd.loop, HTTP_FD, BODY_MAX, envd_rpc_request, &s->envd, err);
	if (s->http == NULL)
		return -1;
	if (!direct)
		return 0;
	s->direct = hr_serve_open(s->envd.loop, DIRECT_FD, BODY_MAX, on_direct, &s->envd, err);
	return s->direct != NULL ? 0 : -1;
}

int
main(int argc, char **argv)
{
	struct server s = {.ends = false};
	struct hr_err err = {0};
	char text[300] = "ready\n";
	char *run_dir = NULL;
	int ready = READY_FD, r;

	hr_log_setup("envd", HR_LOG_CHILD, HR_LOG_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	/* no directory of the sandbox is in use, so that its root can become a layer */
	if (chdir("/") != 0) {
		hr_log(HR_LOG_ERROR, "cannot enter /: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	if (argc > 1 && strcmp(argv[1], "--keeper") == 0)
		return envd_keep_run(KEEPER_FD);
	r = open_server(&s, &run_dir, &err);
	if (r != 0)
		(void)snprintf(text, sizeof(text), "failed %.240s\n", err.msg);
	(void)hr_fd_write_full(ready, text, strlen(text), NULL);
	hr_fd_close(&ready);
	if (r == 0)
		r = hr_loop_run(s.envd.loop, &err);
	envd_table_close(s.envd.table, s.ends);
	hr_e2b_setup_done(&s.envd.setup);
	free(run_dir);
	return r == 0 && !s.lost ? EXIT_SUCCESS : EXIT_FAILURE;
}
