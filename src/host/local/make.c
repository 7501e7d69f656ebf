/* Starts a sandbox of the back-end "local": its workspace, key, ports and process (doc/host.md,
 * "The back-end local"). */
#include "config.h"

#include "host/common/envquote.h"
#include "host/common/logfile.h"
#include "host/common/statedir.h"
#include "host/local/local_int.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/random.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"
#include "host/command.h"
#include "base/err.h"
#include "base/text/text.h"
#include "host/common/proc.h"
#include "host/common/ready.h"
#include "host/records/record.h"

#define NAME_DIGITS 16 /* hexadecimal digits of a run directory's name */
#define USER_MAX 256

static int
make_workspace(struct hr_local *l, struct hr_err *err)
{
	const char *base = hr_config_text(l->h->config, "core.workspace_base");
	const char *tmp = hr_env_get(l->h->environ, "TMPDIR");
	struct hr_err e = {0};

	if (base != NULL) {
		if (hr_path_mkdirs_own(base, 0755, NULL, &e) < 0)
			return hr_err_from(err, HR_E_SYS, &e);
		l->h->log(
		    l->h->arg, "The workspace is a directory of yours: commands can change it.");
		return hr_text_set(&l->workspace, base, err);
	}
	if (hr_text_setf(&l->workspace, err, "%s/openhands_workspace_%s_XXXXXX",
		tmp != NULL ? tmp : "/tmp", l->h->sid) != 0)
		return -1;
	if (mkdtemp(l->workspace) == NULL)
		return hr_err_sys(err, errno, "create %s", l->workspace);
	l->own_workspace = true;
	return 0;
}

/* Returns true for a sandbox of the pool, whose record moves to another name once it is taken. */
static bool
may_move(const char *state_dir)
{
	size_t n = strlen(state_dir), m = strlen(HR_POOL_BELOW);

	return n > m && strcmp(state_dir + n - m, HR_POOL_BELOW) == 0;
}

/* Creates the sandbox's own directory for files that programs keep in a home directory. */
static int
make_home(struct hr_local *l, struct hr_err *err)
{
	const char *tmp = hr_env_get(l->h->environ, "TMPDIR");
	struct stat st;

	if (!l->in_home)
		l->h->log(l->h->arg, "The home directory is your own: commands can change what is "
				     "in it.");
	if (l->h->state_dir == NULL || may_move(l->h->state_dir)) {
		if (hr_text_setf(
			&l->home, err, "%s/handrail-home-XXXXXX", tmp != NULL ? tmp : "/tmp") != 0)
			return -1;
		if (mkdtemp(l->home) == NULL)
			return hr_err_sys(err, errno, "create %s", l->home);
		l->new_home = true;
		return 0;
	}
	if (hr_state_directory(l->h->state_dir, true, err) < 0)
		return -1;
	l->home = hr_record_path(l->h->state_dir, l->h->sid, HR_RECORD_HOME);
	if (l->home == NULL)
		return hr_err_nomem(err);
	l->new_home = mkdir(l->home, 0700) == 0;
	if (l->new_home)
		return 0;
	/* a sandbox that ended and was not removed left the directory */
	if (errno != EEXIST || lstat(l->home, &st) != 0)
		return hr_err_sys(err, errno, "create %s", l->home);
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid()
		   ? 0
		   : hr_err_set(
			 err, HR_E_INVAL, "%s must be a directory that belongs to you", l->home);
}

void
hr_local_set_home(const struct hr_local *l, struct hr_strv *env)
{
	/* the variables that name directories or files in a home directory */
	static const char *const names[] = {"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
	    "XDG_STATE_HOME", "GIT_CONFIG_GLOBAL", "PYTHONUSERBASE", "PIP_CACHE_DIR",
	    "PIP_CONFIG_FILE", "PYTHON_HISTORY", "IPYTHONDIR", "JUPYTER_CONFIG_DIR",
	    "JUPYTER_DATA_DIR", "NPM_CONFIG_CACHE", "npm_config_cache", "NPM_CONFIG_USERCONFIG",
	    "npm_config_userconfig", "LESSHISTFILE", "NODE_REPL_HISTORY", "SQLITE_HISTORY",
	    "MYSQL_HISTFILE", "PSQL_HISTORY", "ZDOTDIR"};
	size_t i;

	hr_strv_unset_env(env, "HISTFILE");
	hr_strv_addf(env, "HISTFILE=%s/.bash_history", l->home);
	if (!l->in_home) {
		/* the kernel creates its profile at its start, even without a command */
		if (hr_env_get(hr_strv_list(env), "IPYTHONDIR") == NULL)
			hr_strv_addf(env, "IPYTHONDIR=%s/.ipython", l->home);
		return;
	}
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		hr_strv_unset_env(env, names[i]);
	hr_strv_unset_env(env, "HOME");
	hr_strv_addf(env, "HOME=%s", l->home);
}

/* Chooses a port: the given one, or a free one that no other sandbox gets. */
static int
choose_port(
    struct hr_local *l, enum hr_port_use use, const char *given, int *ret, struct hr_err *err)
{
	int min, max;

	if (given != NULL && (*ret = (int)strtol(given, NULL, 10)) > 0)
		return 0;
	hr_port_range(use, &min, &max);
	if (hr_portlock_find(&l->locks[use], NULL, min, max, 20, "127.0.0.1",
		use == HR_PORT_SERVER ? &l->reserved : NULL, err) < 0)
		return -1;
	*ret = l->locks[use].port;
	return 0;
}

static int
choose_ports(struct hr_local *l, struct hr_strv *env, struct hr_err *err)
{
	const char *const *e = l->h->environ;
	const char *app1 = hr_env_get(e, "WORK_PORT_1"), *app2 = hr_env_get(e, "WORK_PORT_2");

	l->port = (int)hr_config_int(l->h->config, "local.port");
	if ((l->port == 0 && choose_port(l, HR_PORT_SERVER, NULL, &l->port, err) < 0) ||
	    choose_port(l, HR_PORT_VSCODE, hr_env_get(e, "VSCODE_PORT"), &l->vscode_port, err) !=
		0 ||
	    choose_port(l, HR_PORT_APP1, app1 != NULL ? app1 : hr_env_get(e, "APP_PORT_1"),
		&l->app_ports[0], err) < 0 ||
	    choose_port(l, HR_PORT_APP2, app2 != NULL ? app2 : hr_env_get(e, "APP_PORT_2"),
		&l->app_ports[1], err) < 0)
		return -1;
	hr_strv_set_envf(env, "VSCODE_PORT=%d", l->vscode_port);
	hr_strv_set_envf(env, "APP_PORT_1=%d", l->app_ports[0]);
	hr_strv_set_envf(env, "APP_PORT_2=%d", l->app_ports[1]);
	return 0;
}

/* Chooses the run directory here, so that a later command can clean up after a killed server. Each
 * server has its own, because the previous one at the same port may not have ended yet. The server
 * creates it and refuses one of another user; the name cannot be guessed. */
static int
choose_run_dir(struct hr_local *l, struct hr_err *err)
{
	char name[NAME_DIGITS + 1] = "";

	if (hr_random_hex(name, NAME_DIGITS, err) < 0)
		return -1;
	return hr_text_setf(
	    &l->run_dir, err, "%s/handrail-%s", hr_local_run_base(l->h->environ), name);
}

static int
user_name(char name[USER_MAX], struct hr_err *err)
{
	struct passwd pw, *found = NULL;
	char room[4096];

	if (getpwuid_r(getuid(), &pw, room, sizeof(room), &found) != 0 || found == NULL)
		return hr_err_set(err, HR_E_RUNTIME,
		    "user ID %ld has no account on this machine: add one to /etc/passwd",
		    (long)getuid());
	(void)snprintf(name, USER_MAX, "%s", found->pw_name);
	return 0;
}

/* Adds a variable for the sandbox unless it would affect the server itself. */
static void
give(struct hr_strv *env, const char *entry)
{
	static const char *const kept[] = {"PATH=", "HOME=", "HANDRAIL_", "LD_",
	    "NOTIFY_SOCKET=", "LISTEN_",
	    "SESSION_API_KEY=", "TMPDIR=", "XDG_RUNTIME_DIR=", "GLIBC_TUNABLES=", "MALLOC_"};
	size_t n = hr_env_name(entry);
	HR_FREE char *own = strdup(entry);
	size_t i;

	if (own == NULL) {
		env->failed = true;
		return;
	}
	for (i = 0; i < n; i++)
		own[i] = (char)toupper((unsigned char)own[i]);
	for (i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (strncmp(own, kept[i], strlen(kept[i])) == 0)
			return;
	hr_strv_set_env(env, own);
}

static void
child_environment(struct hr_local *l, struct hr_strv *env, const char *user, const char *notify)
{
	long long gb = hr_config_int(l->h->config, "sandbox.limits.max_memory_gb");

	const char *const *e;

	hr_strv_add_all(env, l->h->environ);
	/* named shells and kernels need them; the first shell gets all of them exactly */
	for (e = l->h->env; *e != NULL; e++)
		give(env, *e);
	hr_local_set_home(l, env);
	hr_strv_unset_env(env, "HANDRAIL_HOME");
	if (l->in_home)
		hr_strv_addf(env, "HANDRAIL_HOME=%s", l->home);
	hr_strv_unset_env(env, "SESSION_API_KEY");
	hr_strv_addf(env, "SESSION_API_KEY=%s", l->key);
	hr_strv_set_env(env, "LOCAL_RUNTIME_MODE=1");
	hr_strv_set_envf(env, "OPENHANDS_SESSION_ID=%s", l->h->sid);
	/* the shell keeps the caller's environment: a login would set another home */
	hr_strv_set_env(env, "SU_TO_USER=false");
	hr_strv_set_envf(env, "USER=%s", user);
	hr_strv_unset_env(env, "NOTIFY_SOCKET");
	hr_strv_addf(env, "NOTIFY_SOCKET=%s", notify);
	hr_strv_unset_env(env, "WATCHDOG_USEC");
	if (gb > 0)
		hr_strv_set_envf(env, "RUNTIME_MAX_MEMORY_GB=%lld", gb);
}

static const char *
server_program(const struct hr_local *l)
{
	const char *given = hr_env_get(l->h->environ, "HANDRAIL_SERVER");

	return given != NULL ? given : HR_SBINDIR "/handraild";
}

/* Makes a log beside that of an earlier server, which hr_logfile_keep() replaces. */
static int
open_log(struct hr_local *l, struct hr_err *err)
{
	int fd;

	if (l->h->state_dir != NULL) {
		if (hr_state_directory(l->h->state_dir, true, err) < 0)
			return -1;
		l->log = hr_record_path(l->h->state_dir, l->h->sid, HR_RECORD_NEW_LOG);
		fd = l->log != NULL
			 ? open(l->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600)
			 : -1;
	} else {
		l->log = strdup("/tmp/openhands_server_XXXXXX");
		fd = l->log != NULL ? mkostemp(l->log, O_CLOEXEC | O_APPEND) : -1;
	}
	if (fd < 0)
		return hr_err_sys(err, errno, "create a log");
	return fd;
}

/* Records the server before the child becomes it: if this process is killed now, a record leads to
 * the server. */
static void
note_server(void *arg, pid_t pid)
{
	struct hr_local *l = arg;

	l->pid = pid;
	l->started = hr_pid_started(l->pid);
	l->h->begun(l->h->arg);
}

static int
set_url(struct hr_local *l, struct hr_err *err)
{
	const char *base = hr_config_text(l->h->config, "sandbox.local_runtime_url");

	/* otherwise localhost would be looked up for each connection */
	if (base == NULL || strcmp(base, "http://localhost") == 0)
		base = "http://127.0.0.1";
	return hr_text_setf(&l->url, err, "%s:%d", base, l->port);
}

static int
spawn_server(struct hr_local *l, const char *notify, struct hr_err *err)
{
	const char *program = server_program(l);
	const char *const prefix[] = {program, NULL};
	const char *place[] = {"--listen", "127.0.0.1", "--run-dir", NULL, NULL};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	char user[USER_MAX];
	struct hr_command c = {.prefix = prefix,
	    .plugins = l->h->plugins,
	    .username = user,
	    .user_id = (long)getuid(),
	    .working_dir = l->workspace};
	struct hr_spawn sp = {.path = program,
	    .setsid = true,
	    .umask = -1,
	    .nfds = 2,
	    .forked = note_server,
	    .arg = l,
	    .pdeathsig = l->h->detach ? 0 : SIGTERM};
	struct hr_spawn_fd fds[2];
	struct hr_err e = {0};
	HR_CLOSE int log = -1;
	pid_t pid;

	if (access(program, X_OK) != 0)
		return hr_err_set(err, HR_E_RUNTIME,
		    "handraild is not properly installed. %s cannot be executed.", program);
	if (user_name(user, err) < 0)
		return -1;
	child_environment(l, &env, user, notify);
	if (choose_ports(l, &env, err) < 0 || choose_run_dir(l, err) < 0)
		return -1;
	c.port = l->port;
	place[3] = l->run_dir;
	if (hr_command_build(&argv, &c, l->h->config, l->h->environ, err) < 0)
		return -1;
	hr_strv_add_all(&argv, place);
	if (argv.failed || env.failed)
		return hr_err_nomem(err);
	log = open_log(l, err);
	if (log < 0 || set_url(l, err) < 0)
		return -1;
	fds[0] = (struct hr_spawn_fd){log, 1};
	fds[1] = (struct hr_spawn_fd){log, 2};
	sp.fds = fds;
	sp.argv = (const char *const *)argv.v;
	sp.envp = env.v;
	pid = hr_spawn(&sp, &e);
	if (pid < 0) {
		l->pid = 0;
		return hr_err_from(err, HR_E_RUNTIME, &e);
	}
	l->watch = hr_proc_watch(l->pid, l->started);
	return 0;
}

int
hr_local_make(struct hr_local *l, struct hr_err *err)
{
	char name[HR_READY_NAME];
	int r;
	HR_CLOSE int notify = hr_ready_open(-1, NULL, name, err);

	if (notify < 0)
		return -1;
	r = make_workspace(l, err);
	if (r == 0)
		r = make_home(l, err);
	if (r == 0)
		r = hr_command_key(l->h->environ, &l->key, err);
	if (r == 0)
		r = spawn_server(l, name, err);
	if (r == 0)
		r = hr_ready_wait(notify, l->pid, l->watch, l->log, err);
	if (r == 0 && l->h->state_dir != NULL)
		r = hr_logfile_keep(l->log, err);
	hr_fd_close(&l->reserved);
	return r;
}
