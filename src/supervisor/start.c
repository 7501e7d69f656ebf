/* Turns settings into a running server. Steps are in the order in which they may fail, so that a
 * refusal comes before any work. */
#include "config.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/way.h"
#include "supervisor/children/childenv.h"
#include "supervisor/run/journaldir.h"
#include "supervisor/server.h"

#define DEFAULT_CONFIG HR_SYSCONFDIR "/handrail/handrail.conf.json"
#define BIND_TRIES 60 /* tries while a killed predecessor's nginx releases the port */
#define BIND_WAIT_MS 50
#define NOFILE_WANTED 65536

extern char **environ;

static int
pending_stop(void)
{
	static const int stops[] = {SIGTERM, SIGINT, SIGQUIT};
	sigset_t set;
	size_t i;

	if (sigpending(&set) != 0)
		return 0;
	for (i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		if (sigismember(&set, stops[i]) == 1)
			return stops[i];
	}
	return 0;
}

static bool
stop_is_pending(void)
{
	return pending_stop() != 0;
}

void
hr_server_log_failure(const struct hr_server *s, const char *prefix, const char *reason)
{
	hr_log(HR_LOG_ERROR, "%s%s", prefix, reason);
	if (s->log_fd < 0)
		return;
	hr_log_set_fd(STDERR_FILENO);
	hr_log(HR_LOG_ERROR, "%s%s", prefix, reason);
	hr_log_set_fd(s->log_fd);
}

int
hr_server_fail(const struct hr_server *s, int status, const struct hr_err *err)
{
	hr_server_log_failure(s, "", err->msg);
	return status;
}

/* Finds the page's directory; without it (--disable-www) there is no page. */
static int
find_www(struct hr_server *s, struct hr_err *err)
{
	const char *given = getenv("HANDRAIL_WWWDIR");

	s->ctx.www = given != NULL ? strdup(given) : hr_path_join(s->ctx.datadir, "www");
	if (s->ctx.www == NULL)
		return hr_err_nomem(err);
	if (access(s->ctx.www, X_OK) == 0)
		return 0;
	free(s->ctx.www);
	s->ctx.www = NULL;
	return 0;
}

int
hr_server_settings(struct hr_server *s, int *ret_status, struct hr_err *err)
{
	const char *libexecdir = getenv("HANDRAIL_LIBEXECDIR"),
		   *datadir = getenv("HANDRAIL_DATADIR");

	s->ctx.libexecdir = libexecdir != NULL ? libexecdir : HR_PKGLIBEXECDIR;
	s->ctx.datadir = datadir != NULL ? datadir : HR_PKGDATADIR;
	s->config_file = s->options.config_file;
	if (s->config_file == NULL && access(DEFAULT_CONFIG, F_OK) == 0)
		s->config_file = DEFAULT_CONFIG;
	if (hr_server_load(&s->ctx.settings, &s->options, s->config_file, ret_status, err) < 0)
		return -1;
	*ret_status = HR_EXIT_START;
	if (find_www(s, err) < 0)
		return -1;
	return hr_server_check_access_log(&s->ctx.settings, err) == 0 ? hr_server_open_log(s, err)
								      : -1;
}

/* Sets the process's descriptor limit, its adoption of orphans, and its protection. */
static void
set_process(struct hr_server *s)
{
	struct rlimit lim;

	s->ctx.umask_given = (int)umask(022);
	if (getrlimit(RLIMIT_NOFILE, &s->ctx.nofile_given) == 0) {
		lim = s->ctx.nofile_given;
		lim.rlim_cur = lim.rlim_max > NOFILE_WANTED ? NOFILE_WANTED : lim.rlim_max;
		if (lim.rlim_cur > s->ctx.nofile_given.rlim_cur)
			/* a failure only leaves fewer connections */
			(void)setrlimit(RLIMIT_NOFILE, &lim);
	}
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* every kernel since Linux 3.4 has it */
	/* this process holds the key: no other process may trace it, or read its memory or
	 * descriptors */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static struct hr_rundir_place
place(const struct hr_server *s)
{
	return (struct hr_rundir_place){.wanted = s->ctx.settings.run_dir,
	    .runstatedir = HR_RUNSTATEDIR,
	    .xdg_runtime_dir = getenv("XDG_RUNTIME_DIR"),
	    .tmpdir = getenv("TMPDIR"),
	    .port = s->ctx.settings.port,
	    .privileged = geteuid() == 0};
}

/* Checks what the original refuses before it starts anything. */
static int
check_request(struct hr_server *s, int *ret_status, struct hr_err *err)
{
	const struct hr_settings *c = &s->ctx.settings;

	*ret_status = HR_EXIT_REFUSED;
	if (hr_plugins_load(&s->plugins, err) < 0)
		return -1;
	*ret_status = HR_EXIT_START;
	if (c->working_dir[0] == '\0')
		return hr_err_set(err, HR_E_INVAL, "--working-dir is required");
	if (!c->enable_browser && c->browsergym_eval_env[0] != '\0')
		return hr_err_set(err, HR_E_INVAL,
		    "Browser environment is not enabled in config, but browsergym_eval_env is set");
	if (c->enable_browser && !hr_settings_browses(c))
		hr_log(HR_LOG_ERROR, "there is no browser: Unsupported browsergym eval env: %s",
		    c->browsergym_eval_env);
	return 0;
}

/* Ends a killed predecessor's nginx. Returns a descriptor that becomes readable when it has ended,
 * or -1 if that is unknown. */
static int
old_nginx(const struct hr_server *s)
{
	HR_BUF(text, 64);
	HR_FREE char *path = hr_rundir_file(&s->ctx.run, "nginx/group");
	pid_t pid = 0;
	int fd = -1;

	if (path != NULL && hr_path_read(path, &text, NULL) == 0)
		pid = (pid_t)strtol(hr_buf_str(&text), NULL, 10);
	if (pid > 1) {
		fd = hr_pidfd_open(pid);
		/* the master ends by itself, unless it was killed too */
		hr_nginx_quit_group(pid);
	}
	return fd;
}

/* Binds the address. An old nginx releases it as soon as it notices the signal, without an event;
 * only its end is an event. */
static int
bind_port(struct hr_server *s, struct hr_err *err)
{
	struct pollfd p = {.fd = -1, .events = POLLIN};
	int tries = s->ctx.run.inherited ? BIND_TRIES : 0;

	/* the old nginx serves until the next starts */
	s->site.listener =
	    hr_listen_take(&s->site.listen, hr_handover_take(&s->ctx.handed, "listener"));
	s->ctx.relieves = s->site.listener >= 0;
	if (s->site.listener < 0 && s->ctx.run.inherited)
		p.fd = old_nginx(s);
	while (s->site.listener < 0) {
		s->site.listener = hr_listen_bind(&s->site.listen, err);
		if (s->site.listener >= 0 || err->code != HR_E_BUSY || tries-- == 0 ||
		    stop_is_pending())
			break;
		if (poll(&p, 1, BIND_WAIT_MS) > 0)
			hr_fd_close(&p.fd);
		/* a master signalled during its start ignores it, and perhaps has not recorded its
		 * group */
		if (tries % 4 == 0) {
			hr_fd_close(&p.fd);
			p.fd = old_nginx(s);
		}
	}
	hr_fd_close(&p.fd);
	return s->site.listener >= 0 ? 0 : -1;
}

/* Claims the port and the run directory, so that a refusal comes before any work. */
static int
claim(struct hr_server *s, int *ret_status, struct hr_err *err)
{
	struct hr_rundir_place where = place(s);
	char before[PATH_MAX];

	*ret_status = HR_EXIT_USAGE;
	if (hr_keys_read_file(&s->site.keys, s->ctx.settings.session_api_key_file, err) < 0 ||
	    hr_listen_choose(&s->site.listen, &s->ctx.settings, s->site.keys.count > 0, err) < 0)
		return -1;
	*ret_status = HR_EXIT_REFUSED;
	if (hr_reexec_directory(s, before, sizeof(before)))
		where.before = before;
	if (hr_rundir_open(&s->ctx.run, &where, err) < 0)
		return -1;
	s->ctx.run.handed = &s->ctx.handed;
	s->ctx.relieves = s->ctx.handed.n > 0;
	if (!s->ctx.settings.start_nginx)
		return 0;
	if (bind_port(s, err) != 0)
		return -1;
	hr_viewer_open(
	    &s->site.viewer, &s->ctx.settings, hr_handover_take(&s->ctx.handed, "viewer"));
	s->pools.viewer_places = s->site.viewer.fd >= 0 ? HR_VIEWER_PLACES : 0;
	return 0;
}

/* Limits the shells' group. Its name is the same at each start: a surviving shell is in it. */
static void
limit_shells(struct hr_server *s)
{
	const struct hr_settings *c = &s->ctx.settings;
	const struct hr_cgroup_limits limits = {.memory = hr_settings_memory(c),
	    .pids = (uint64_t)c->max_processes,
	    .cpu_quota = (uint64_t)c->cpu_quota,
	    .cpu_period = (uint64_t)c->cpu_period};
	struct hr_err err = {0};
	char name[40];

	(void)snprintf(name, sizeof(name), "handrail-%lld", c->port);
	if (hr_cgroup_open(&s->ctx.cgroup, "/proc", name, &limits, &err) == 0)
		return;
	if (limits.cpu_quota > 0 && !s->ctx.cgroup.has_cpu)
		hr_log(HR_LOG_WARNING,
		    "cpu_quota has no effect, as no control group can be used: %s", err.msg);
	if ((limits.memory > 0 && !s->ctx.cgroup.has_memory) ||
	    (limits.pids > 0 && !s->ctx.cgroup.has_pids))
		hr_log(HR_LOG_WARNING,
		    "no control group for the shell's limits; each process is limited by itself: "
		    "%s",
		    err.msg);
}

/* Opens the scoreboard: the previous image's, which its workers use, or a new one. */
static int
open_board(struct hr_server *s, struct hr_err *err)
{
	int fd = hr_handover_take(&s->ctx.handed, "board");
	struct hr_err why = {0};

	if (fd >= 0) {
		s->ctx.board = hr_scoreboard_attach(fd, &why);
		if (s->ctx.board == NULL)
			hr_log(HR_LOG_NOTICE,
			    "cannot take over the scoreboard, so the old workers end at once: %s",
			    why.msg);
		else
			hr_scoreboard_renew(s->ctx.board);
	}
	if (s->ctx.board != NULL) {
		s->ctx.board_fd = fd;
	} else {
		hr_fd_close(&fd);
		s->ctx.board = hr_scoreboard_create(&s->ctx.board_fd, err);
	}
	if (s->ctx.board == NULL)
		return -1;
	atomic_store(&s->ctx.board->supervisor_pid, getpid());
	atomic_store(&s->ctx.board->started_ns, hr_wall_ns());
	return 0;
}

/* Warns if the account cannot read the files installed in `path`, without which `missing` does not
 * work. */
static void
warn_barred(const char *path, uid_t uid, const char *user, const char *role, const char *missing)
{
	struct hr_account account;
	char dir[PATH_MAX];

	hr_account_find(&account, uid);
	if (hr_way_barred(path, &account, dir))
		hr_log(HR_LOG_WARNING,
		    "no %s: %s, the account of %s, cannot enter %s, which leads to %s", missing,
		    user, role, dir, path);
}

/* Checks that the accounts of the shell and of nginx can enter the run directory. An nginx that
 * handrail does not run may have another account than the sockets. */
static int
check_ways(const struct hr_server *s, struct hr_err *err)
{
	const struct hr_identity *id = &s->ctx.id;
	struct hr_err why = {0};

	if (id->shell_changes &&
	    hr_rundir_check(&s->ctx.run, id->shell_uid, id->shell_user, "the shell", err) < 0)
		return -1;
	if (id->shell_changes && !TAILQ_EMPTY(&s->plugins.list))
		warn_barred(
		    s->ctx.libexecdir, id->shell_uid, id->shell_user, "the shell", "plugins");
	if (id->nginx_user == NULL)
		return 0;
	if (hr_rundir_check(&s->ctx.run, id->nginx_uid, id->nginx_user, "nginx", &why) < 0) {
		if (s->ctx.settings.start_nginx)
			return hr_err_from(err, why.code, &why);
		hr_log(HR_LOG_WARNING, "%s", why.msg);
	}
	if (s->ctx.www != NULL)
		warn_barred(s->ctx.www, id->nginx_uid, id->nginx_user, "nginx", "web page");
	return 0;
}

static int
prepare(struct hr_server *s, struct hr_err *err)
{
	if (hr_identity_prepare(
		&s->ctx.id, &s->ctx.settings, getenv("USER"), "/etc", stop_is_pending, err) < 0 ||
	    hr_token_init(&s->plugins.token, &s->ctx.run, err) < 0 ||
	    hr_viewer_choose(&s->site.viewer, &s->ctx.run, err) < 0 ||
	    hr_journaldir_choose(&s->ctx, err) < 0)
		return -1;
	hr_plugins_succeed(&s->plugins);
	/* the groups must exist before the search for a shell, whose command line names them */
	limit_shells(s);
	if (hr_rundir_prepare(&s->ctx.run, s->ctx.id.nginx_uid, hr_session_find(&s->session), err) <
		0 ||
	    check_ways(s, err) < 0 || hr_sessions_find(&s->sessions, err) < 0 ||
	    hr_journaldir_make(s->ctx.journal, err) < 0 ||
	    hr_token_show(&s->plugins.token, &s->ctx.run, false, err) != 0)
		return -1;
	if (s->ctx.settings.start_nginx)
		hr_viewer_announce(
		    &s->site.viewer, &s->ctx.run, &s->ctx.settings, s->ctx.id.shell_uid);
	if (hr_childenv_fill(&s->ctx.child_env, environ, err) < 0)
		return -1;
	return open_board(s, err);
}

/* Warns about a secret that everybody can read. Its directory may still protect it: only a
 * warning. */
static void
warn_readable(const char *setting, const char *path)
{
	struct stat st;

	if (path[0] != '\0' && stat(path, &st) == 0 && (st.st_mode & S_IROTH) != 0)
		hr_log(HR_LOG_WARNING, "%s: every account can read %s: chmod o-r", setting, path);
}

static void
announce(const struct hr_server *s)
{
	const struct hr_settings *c = &s->ctx.settings;

	hr_log(HR_LOG_NOTICE, "handraild %s, process %ld, run directory %s", PACKAGE_VERSION,
	    (long)getpid(), s->ctx.run.path);
	if (c->max_memory_gb > 0)
		hr_log(HR_LOG_INFO, "memory limit of the shell: %lld MB", c->max_memory_gb * 1024);
	warn_readable("session_api_key_file", c->session_api_key_file);
	warn_readable("tls_certificate_key", c->tls_certificate_key);
	if (!s->site.listen.public && s->site.keys.count == 0 && c->listen[0] == '\0' &&
	    c->start_nginx)
		hr_log(HR_LOG_NOTICE, "no session key: listening on loopback only; set "
				      "SESSION_API_KEY, or give --allow-unauthenticated");
	if (s->site.listen.public && s->site.keys.count == 0 && c->tls_client_ca[0] == '\0')
		hr_log(HR_LOG_WARNING, "%s is open to everybody: there is no session key",
		    s->site.listen.text);
	if (c->port_paths && s->site.keys.count == 0)
		hr_log(HR_LOG_WARNING,
		    "port_paths has no effect without a session key: set SESSION_API_KEY");
}

int
hr_server_serve(struct hr_server *s)
{
	struct hr_err err = {0};
	int status = HR_EXIT_START;

	set_process(s);
	if (hr_notify_open(&s->notify, getenv("NOTIFY_SOCKET"), &err) < 0)
		hr_log(HR_LOG_WARNING, "%s", err.msg);
	if (check_request(s, &status, &err) < 0 || claim(s, &status, &err) != 0)
		return hr_server_fail(s, status, &err);
	announce(s);
	if (prepare(s, &err) != 0) {
		s->exit_signal = pending_stop();
		return s->exit_signal != 0 ? 0 : hr_server_fail(s, HR_EXIT_START, &err);
	}
	if (hr_server_run(s, &err) < 0)
		return hr_server_fail(s, HR_EXIT_START, &err);
	return s->exit_status;
}

/* Checks the settings in a temporary run directory, which only nginx reads. */
int
hr_server_check(struct hr_server *s)
{
	struct hr_rundir_place where = place(s);
	struct hr_err err = {0};
	int status;

	where.wanted = "";
	where.privileged = false;
	where.xdg_runtime_dir = NULL;
	if (check_request(s, &status, &err) < 0)
		return hr_server_fail(s, status, &err);
	if (hr_keys_read_file(&s->site.keys, s->ctx.settings.session_api_key_file, &err) < 0 ||
	    hr_listen_choose(&s->site.listen, &s->ctx.settings, s->site.keys.count > 0, &err) < 0 ||
	    hr_identity_nginx(&s->ctx.id, s->ctx.settings.nginx_user, &err) < 0 ||
	    hr_rundir_open(&s->ctx.run, &where, &err) < 0 ||
	    hr_rundir_prepare(&s->ctx.run, s->ctx.id.nginx_uid, false, &err) < 0 ||
	    hr_nginx_configure(&s->site, &s->ctx.settings, &s->site.keys, true, &err) < 0)
		return hr_server_fail(s, HR_EXIT_USAGE, &err);
	(void)puts("handraild: the configuration is valid");
	return 0;
}

int
hr_server_print_nginx(struct hr_server *s)
{
	const struct hr_rundir_place where = place(s);
	struct hr_err err = {0};
	HR_BUF(text, 1 << 18);
	int ok;

	s->ctx.run.path = hr_rundir_name(&where, &err);
	ok = s->ctx.run.path != NULL && hr_plugins_load(&s->plugins, &err) == 0 &&
	     hr_keys_read_file(&s->site.keys, s->ctx.settings.session_api_key_file, &err) == 0 &&
	     hr_listen_choose(&s->site.listen, &s->ctx.settings, s->site.keys.count > 0, &err) ==
		 0 &&
	     hr_identity_nginx(&s->ctx.id, s->ctx.settings.nginx_user, &err) == 0 &&
	     hr_nginx_compose(
		 &text, s->options.nginx_part, &s->site, &s->ctx.settings, NULL, &err) == 0 &&
	     hr_fd_write_full(STDOUT_FILENO, hr_buf_str(&text), text.len, &err) == 0;
	return ok ? 0 : hr_server_fail(s, HR_EXIT_USAGE, &err);
}

void
hr_server_release(struct hr_server *s)
{
	hr_listen_close(&s->site.listen, &s->site.listener);
	hr_viewer_close(&s->site.viewer);
	hr_rundir_close(&s->ctx.run);
	hr_plugins_done(&s->plugins); /* has no effect after a run */
	hr_sessions_done(&s->sessions);
	free(s->ctx.journal);
	s->ctx.journal = NULL;
	hr_scoreboard_detach(s->ctx.board);
	hr_fd_close(&s->ctx.board_fd);
	hr_fd_close(&s->pools.image);
	hr_strv_done(&s->ctx.child_env);
	hr_identity_done(&s->ctx.id);
	hr_keys_done(&s->site.keys);
	hr_cgroup_close(&s->ctx.cgroup);
	hr_notify_close(&s->notify);
	hr_handover_done(&s->ctx.handed);
	hr_reexec_done(&s->reexec); /* has no effect after a run */
	hr_settings_done(&s->ctx.settings);
	hr_log_set_fd(STDERR_FILENO);
	hr_fd_close(&s->log_fd);
	hr_log_keep(NULL);
	hr_loglines_done(&s->log_lines);
}
