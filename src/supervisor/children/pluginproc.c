/* Runs the process of a plugin. Each variable of its environment comes from one source: a few of
 * the server's by name (LANG and the like), the account, the server's HANDRAIL_*, its own manifest,
 * or another plugin's `provides`. The session key is in none of them. */
#include "config.h"

#include "supervisor/children/pluginproc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/text/text.h"
#include "base/trust.h"
#include "supervisor/run/context.h"

#define OOM_PLUGIN 200 /* score: killed before the sandbox's servers, after the commands */
#define GROUPS_MAX 256
#define TEXT_MAX_BYTES (256u << 10)
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct hr_plugin *
hr_plugins_find(const struct hr_plugins *ps, const char *name)
{
	struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (strcmp(p->m.name, name) == 0)
			return p;
	}
	return NULL;
}

long long
hr_plugin_patience_s(const struct hr_plugin *p)
{
	long long all = p->all->ctx->settings.init_plugin_timeout;

	if (p->m.start == HR_MANIFEST_AT_START && all < p->m.ready_timeout_s)
		return all > 0 ? all : 1;
	return p->m.ready_timeout_s;
}

/* ---- the account ---- */

struct account {
	bool changes;
	char *name, *home, *shell;
	struct hr_spawn_user user;
	gid_t groups[GROUPS_MAX];
};

static int
account_init(struct account *a, const struct hr_plugin *p, struct hr_err *err)
{
	const struct hr_context *ctx = p->all->ctx;
	const char *home = getenv("HANDRAIL_HOME");
	const struct passwd *pw;
	int n = GROUPS_MAX;

	memset(a, 0, sizeof(*a));
	a->changes = ctx->id.shell_changes && !p->m.as_server;
	pw = a->changes ? getpwnam(ctx->id.shell_user) : getpwuid(geteuid());
	if (pw == NULL && a->changes)
		return hr_err_set(
		    err, HR_E_NOTFOUND, "there is no user \"%.64s\"", ctx->id.shell_user);
	a->name = strdup(pw != NULL ? pw->pw_name : "");
	/* a sandbox in its caller's account may use a home other than the account's */
	if (a->changes || home == NULL || home[0] != '/')
		home = pw != NULL ? pw->pw_dir : "/";
	a->home = strdup(home);
	a->shell = strdup(pw != NULL && pw->pw_shell[0] != '\0' ? pw->pw_shell : "/bin/sh");
	if (a->name == NULL || a->home == NULL || a->shell == NULL)
		return hr_err_nomem(err);
	if (!a->changes)
		return 0;
	if (getgrouplist(pw->pw_name, pw->pw_gid, a->groups, &n) < 0)
		n = GROUPS_MAX; /* an account with more groups has the first 256 */
	a->user = (struct hr_spawn_user){pw->pw_uid, pw->pw_gid, a->groups, (size_t)n};
	return 0;
}

static void
account_done(struct account *a)
{
	free(a->name);
	free(a->home);
	free(a->shell);
}

/* ---- arguments and variables ---- */

static void
variable_pass(struct hr_strv *w, const char *name)
{
	extern char **environ;
	size_t len = strcspn(name, "*"), i;

	for (i = 0; environ[i] != NULL; i++)
		if (strncmp(environ[i], name, len) == 0 &&
		    (name[len] == '*' || environ[i][len] == '=') &&
		    strncmp(environ[i], "SESSION_API_KEY=", 16) != 0)
			hr_strv_set_env(w, environ[i]);
}

static int
expand_all(struct hr_strv *w, const struct hr_strv *l, const struct hr_manifest_vars *vars,
    bool variables, struct hr_err *err)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		HR_BUF(b, TEXT_MAX_BYTES);

		if (hr_manifest_expand(&b, l->v[i], vars, err) < 0)
			return -1;
		if (variables)
			hr_strv_set_env(w, hr_buf_str(&b));
		else
			hr_strv_add(w, hr_buf_str(&b));
	}
	return w->failed ? hr_err_nomem(err) : 0;
}

struct numbers {
	char user_id[24];
};

static void
vars_fill(struct hr_manifest_vars *v, struct numbers *n, const struct hr_plugin *p)
{
	const struct hr_context *ctx = p->all->ctx;
	const char *runtime_id = getenv("RUNTIME_ID");

	(void)snprintf(n->user_id, sizeof(n->user_id), "%lu", (unsigned long)ctx->id.shell_uid);
	*v = (struct hr_manifest_vars){.plugin_dir = p->m.dir,
	    .state_dir = p->state_dir,
	    .workspace = ctx->settings.working_dir,
	    .username = ctx->id.shell_user != NULL ? ctx->id.shell_user : "",
	    .user_id = n->user_id,
	    .runtime_id = runtime_id != NULL ? runtime_id : "",
	    .libexecdir = ctx->libexecdir,
	    .datadir = ctx->datadir,
	    .vscode_port = ctx->settings.vscode_port,
	    .session_username = ctx->settings.username,
	    .runtime_username = ctx->settings.runtime_username};
}

static int
variables_fill(struct hr_strv *w, const struct hr_plugin *p, const struct account *a,
    const struct hr_manifest_vars *vars, struct hr_err *err)
{
	static const char *const passed[] = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"};
	struct hr_manifest_vars theirs;
	const struct hr_plugin *other;
	struct numbers n;
	size_t i;

	hr_strv_set_env(w, "PATH=" DEFAULT_PATH);
	for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		variable_pass(w, passed[i]);
	hr_strv_set_envf(w, "HOME=%s", a->home);
	hr_strv_set_envf(w, "USER=%s", a->name);
	hr_strv_set_envf(w, "LOGNAME=%s", a->name);
	hr_strv_set_envf(w, "SHELL=%s", a->shell);
	hr_strv_set_envf(w, "HANDRAIL_PLUGIN_NAME=%s", p->m.name);
	hr_strv_set_envf(w, "HANDRAIL_STATE_DIR=%s", p->state_dir);
	hr_strv_set_envf(w, "HANDRAIL_WORKSPACE=%s", vars->workspace);
	hr_strv_set_envf(w, "HANDRAIL_USERNAME=%s", vars->username);
	hr_strv_set_envf(w, "HANDRAIL_USER_ID=%s", vars->user_id);
	if (p->lost)
		hr_strv_set_env(w, "HANDRAIL_STATE_LOST=1");
	if (p->m.token)
		hr_strv_set_envf(w, "HANDRAIL_CONNECTION_TOKEN=%s", p->all->token.text);
	for (i = 0; i < p->m.pass_env.n; i++)
		variable_pass(w, p->m.pass_env.v[i]);
	TAILQ_FOREACH(other, &p->all->list, entry)
	{
		vars_fill(&theirs, &n, other);
		if (other != p && other->svc.state != HR_SERVICE_UNAVAILABLE &&
		    expand_all(w, &other->m.provides, &theirs, true, err) < 0)
			return -1;
	}
	return expand_all(w, &p->m.env, vars, true, err);
}

/* ---- requirements ---- */

static bool
program_found(const char *name)
{
	const char *dirs = getenv("PATH");
	HR_FREE char *path = NULL;

	if (strchr(name, '/') != NULL)
		return access(name, F_OK) == 0;
	path = hr_path_which(dirs != NULL ? dirs : DEFAULT_PATH, name);
	return path != NULL;
}

static int
check_needs(const struct hr_plugin *p, const struct hr_manifest_vars *vars, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv needs = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv exec = {0};
	size_t i;

	if (expand_all(&needs, &p->m.needs, vars, false, err) < 0)
		return -1;
	for (i = 0; i < needs.n; i++)
		if (!program_found(needs.v[i]))
			return hr_err_set(
			    err, HR_E_NOTFOUND, "%.160s is not installed", needs.v[i]);
	if (expand_all(&exec, &p->m.exec, vars, false, err) < 0)
		return -1;
	if (exec.n > 0 && !program_found(exec.v[0]))
		return hr_err_set(
		    err, HR_E_NOTFOUND, "the program %.160s does not exist", exec.v[0]);
	return 0;
}

int
hr_plugin_port(const struct hr_plugin *p, const struct hr_manifest_http *h)
{
	struct hr_manifest_vars vars;
	struct numbers n;
	HR_BUF(b, 64);
	long long port = 0;

	vars_fill(&vars, &n, p);
	if (hr_manifest_expand(&b, h->port, &vars, NULL) != 0 ||
	    hr_text_python_int(hr_buf_str(&b), &port) != 0 || port < 1 || port > 65535)
		port = 0;
	return (int)port;
}

/* ---- prepare and spawn ---- */

/* Makes DIR/plugin/NAME, which belongs to the account, unlike the sockets beside it. It may exist
 * from a killed predecessor. */
static int
make_state_dir(struct hr_plugin *p, struct hr_err *err)
{
	const struct hr_context *ctx = p->all->ctx;

	p->state_dir = hr_rundir_file(&ctx->run, "plugin/%s", p->m.name);
	if (p->state_dir == NULL)
		return hr_err_nomem(err);
	if (mkdir(p->state_dir, 0700) != 0 && errno != EEXIST)
		return hr_err_sys(err, errno, "%s", p->state_dir);
	if (ctx->id.shell_changes && !p->m.as_server &&
	    lchown(p->state_dir, ctx->id.shell_uid, (gid_t)-1) != 0)
		return hr_err_sys(err, errno, "%s", p->state_dir);
	return 0;
}

/* Returns true for the browse actions: without a link no plugin takes them, which is the contract's
 * reply to a client. */
static bool
is_browse(const char *type)
{
	return strcmp(type, "browse") == 0 || strcmp(type, "browse_interactive") == 0;
}

static bool
takes(const struct hr_plugin *p, const char *type)
{
	size_t i;

	if (!hr_settings_browses(&p->all->ctx->settings) && is_browse(type))
		return false;
	for (i = 0; i < p->m.actions.n; i++) {
		if (strcmp(p->m.actions.v[i], type) == 0)
			return true;
	}
	return false;
}

static bool
leads_to(const struct hr_plugin *p, int dir, const char *link)
{
	char target[96], is[sizeof(target)];
	int n = snprintf(target, sizeof(target), "../plugin/%s.sock", p->m.name);

	return readlinkat(dir, link, is, sizeof(is)) == n && memcmp(is, target, (size_t)n) == 0;
}

bool
hr_plugin_owns_link(const struct hr_plugins *ps, int dir, const char *type)
{
	const struct hr_plugin *p;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		if (takes(p, type))
			return leads_to(p, dir, type);
	}
	return false;
}

/* Links an action's type, which a worker looks up: DIR/action/TYPE leads to the plugin's socket. */
static int
link_action(const struct hr_plugin *p, const char *type, struct hr_err *err)
{
	char target[96];
	HR_FREE char *path = hr_rundir_file(&p->all->ctx->run, "action/%s", type);
	int r = 0;

	(void)snprintf(target, sizeof(target), "../plugin/%s.sock", p->m.name);
	if (path == NULL)
		return hr_err_nomem(err);
	if (symlink(target, path) != 0 && !(errno == EEXIST && leads_to(p, AT_FDCWD, path)))
		r = errno == EEXIST ? hr_err_set(err, HR_E_BUSY,
					  "another plugin takes actions of type \"%s\"", type)
				    : hr_err_sys(err, errno, "%s", path);
	return r;
}

/* Makes a socket; flags of an inherited one are reset, since the previous image's plugin may have
 * set them. */
static int
listen_named(const struct hr_plugin *p, const char *name, uid_t uid, struct hr_err *err)
{
	int fd = hr_rundir_listen(&p->all->ctx->run, name, uid, err);

	if (fd >= 0 && hr_fd_nonblock(fd, false, err) < 0)
		hr_fd_close(&fd);
	return fd;
}

static int
listen_at(const struct hr_plugin *p, const char *suffix, uid_t uid, struct hr_err *err)
{
	char name[96];

	(void)snprintf(name, sizeof(name), "plugin/%s.%s", p->m.name, suffix);
	return listen_named(p, name, uid, err);
}

/* Makes the socket beside the server's own Unix socket, for a proxy that is as trusted as this
 * server: it needs no nginx here. All paths also lead through nginx, so a failure is only logged.
 */
static void
open_direct(struct hr_plugin *p)
{
	static const char prefix[] = "unix:";
	const struct hr_settings *c = &p->all->ctx->settings;
	struct hr_err err = {0};
	struct stat st;

	if (!p->m.direct || !c->start_nginx || strncmp(c->listen, prefix, sizeof(prefix) - 1) != 0)
		return;
	/* a descriptor is handed over by its path, and such a name has no "=" */
	if (strchr(c->listen, '=') != NULL)
		(void)hr_err_set(&err, HR_E_INVAL, "%s has a \"=\"", c->listen);
	else if (hr_text_setf(&p->direct_path, &err, "%s.%s", c->listen + sizeof(prefix) - 1,
		     p->m.name) == 0 &&
		 lstat(p->direct_path, &st) == 0 && !S_ISSOCK(st.st_mode))
		(void)hr_err_set(&err, HR_E_INVAL, "%s is no socket", p->direct_path);
	else if (err.code == HR_OK)
		p->direct = listen_named(p, p->direct_path, geteuid(), &err);
	if (p->direct < 0)
		hr_log(HR_LOG_WARNING, "plugin %s has no direct socket: %s", p->m.name, err.msg);
}

static int
open_sockets(struct hr_plugin *p, struct hr_err *err)
{
	size_t i;

	if (p->m.actions.n > 0) {
		p->action = listen_at(p, "sock", 0, err);
		if (p->action < 0)
			return -1;
	}
	for (i = 0; i < p->m.actions.n; i++)
		if (takes(p, p->m.actions.v[i]) && link_action(p, p->m.actions.v[i], err) < 0)
			return -1;
	for (i = 0; i < p->m.nhttp && p->m.http[i].port != NULL; i++)
		;
	if (i == p->m.nhttp)
		return 0;
	p->http = listen_at(p, "http", p->all->ctx->id.nginx_uid, err);
	if (p->http < 0)
		return -1;
	open_direct(p);
	return 0;
}

/* Makes the file of sums. The program reads it through a descriptor of its own. */
static int
make_sums(struct hr_plugin *p, struct hr_err *err)
{
	p->sums = memfd_create("handrail-plugin-sums", MFD_CLOEXEC);
	if (p->sums < 0 || fchmod(p->sums, S_IRUSR | S_IWUSR) != 0)
		return hr_err_sys(err, errno, "memfd_create");
	return 0;
}

int
hr_plugin_prepare(struct hr_plugin *p, struct hr_err *err)
{
	struct hr_manifest_vars vars;
	struct numbers n;

	/* comes first, so that clients of an unavailable plugin get an error */
	if (make_state_dir(p, err) < 0 || open_sockets(p, err) < 0)
		return -1;
	if (p->m.unavailable != NULL)
		return hr_err_set(err, HR_E_UNSUPPORTED, "%s", p->m.unavailable);
	if ((p->m.v1 || p->direct >= 0) && make_sums(p, err) < 0)
		return -1;
	vars_fill(&vars, &n, p);
	return check_needs(p, &vars, err);
}

static int
spawn_as(struct hr_plugin *p, const struct account *a, const struct hr_strv *exec,
    const struct hr_strv *env, int ready, struct hr_err *err)
{
	const struct hr_context *ctx = p->all->ctx;
	struct hr_spawn_fd fds[5] = {{ready, HR_PLUGIN_READY_FD}};
	HR_CLOSE int sums = -1;
	size_t nfds = 1;
	char path[40];

	if (p->action >= 0)
		fds[nfds++] = (struct hr_spawn_fd){p->action, HR_PLUGIN_ACTION_FD};
	if (p->http >= 0)
		fds[nfds++] = (struct hr_spawn_fd){p->http, HR_PLUGIN_HTTP_FD};
	if (p->direct >= 0)
		fds[nfds++] = (struct hr_spawn_fd){p->direct, HR_PLUGIN_DIRECT_FD};
	if (p->sums >= 0) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", p->sums);
		sums = open(path, O_RDONLY | O_CLOEXEC);
		if (sums < 0)
			return hr_err_sys(err, errno, "%s", path);
		fds[nfds++] = (struct hr_spawn_fd){sums, HR_PLUGIN_SUMS_FD};
	}
	return hr_child_start(&p->svc.child,
	    &(const struct hr_spawn){.path = exec->v[0],
		.argv = (const char *const *)exec->v,
		.envp = env->v,
		.fds = fds,
		.nfds = nfds,
		.setsid = true,
		.pdeathsig = p->m.outlives ? SIGHUP : SIGTERM,
		.umask = a->changes ? 022 : ctx->umask_given,
		.nofile = &ctx->nofile_given,
		.user = a->changes ? &a->user : NULL,
		.dir = ctx->settings.working_dir},
	    OOM_PLUGIN, err);
}

/* Checks the program: root's plugins may run only trusted files. */
static int
check_program(const char *path, struct hr_err *err)
{
	struct hr_trusted t;

	if (strchr(path, '/') == NULL)
		return 0;
	if (hr_trust_open(&t, path, hr_trust_program_owner(), err) != 0)
		return -1;
	hr_trusted_done(&t);
	return 0;
}

int
hr_plugin_spawn(struct hr_plugin *p, int ready, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv exec = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	struct hr_manifest_vars vars;
	struct account a;
	struct numbers n;
	int r;

	vars_fill(&vars, &n, p);
	r = account_init(&a, p, err);
	if (r == 0)
		r = variables_fill(&env, p, &a, &vars, err);
	if (r == 0)
		r = expand_all(&exec, &p->m.exec, &vars, false, err);
	if (r == 0 && !a.changes)
		r = check_program(exec.v[0], err);
	if (r == 0)
		r = spawn_as(p, &a, &exec, &env, ready, err);
	account_done(&a);
	return r;
}
