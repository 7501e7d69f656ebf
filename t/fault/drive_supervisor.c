/* supervisor: command line, configuration, run directory, keys, nginx's files. */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "failcalls.h"
#include "fault.h"
#include "supervisor/edge/nginxconf.h"
#include "supervisor/children/child.h"
#include "supervisor/children/childenv.h"
#include "supervisor/children/keeperargs.h"
#include "supervisor/run/keys.h"
#include "supervisor/edge/listen.h"
#include "supervisor/run/rundir.h"
#include "supervisor/server.h"
#include "supervisor/settings/settings.h"

static const char file_text[] =
    "{\n// a comment\n\"listen\": \"127.0.0.1\", \"action_workers\": 3,\n"
    "\"plugins\": [\"jupyter\", \"vscode\"], \"su_to_user\": false}\n";

static const char *
environment(const char *name)
{
	return strcmp(name, "LOG_LEVEL") == 0          ? "debug"
	       : strcmp(name, "RUNTIME_USERNAME") == 0 ? "me"
						       : NULL;
}

static int
settings_of(struct hr_settings *c, const char *path, struct hr_err *err)
{
	char port[] = "3000", dir_option[] = "--working-dir", dir[] = "/w", plugins[] = "--plugins",
	     name[] = "agent_skills", program[] = "handraild";
	char *argv[] = {program, port, dir_option, dir, plugins, name, NULL};
	struct hr_options o;

	if (hr_options_parse(&o, 6, argv, err) != 0 || hr_settings_init(c, err) != 0)
		return -1;
	if (hr_settings_read(c, path, err) == 0 &&
	    hr_settings_environment(c, environment, err) == 0 &&
	    hr_options_apply(&o, c, err) == 0 && hr_settings_check(c, err) == 0)
		return 0;
	hr_settings_done(c);
	return -1;
}

static int
settings(struct hr_err *err)
{
	struct hr_settings c;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/conf", fault_dir());
	if (hr_path_write(path, file_text, sizeof(file_text) - 1, 0600, err) != 0 ||
	    settings_of(&c, path, err) != 0)
		return -1;
	fault_tell("%s %lld %zu %s %d %s", c.listen, c.action_workers, c.plugins.n, c.plugins.v[0],
	    c.su_to_user, c.log_level);
	hr_settings_done(&c);
	return 0;
}

static int
wrong_settings(struct hr_err *err)
{
	struct hr_settings c;
	struct hr_err why = {0};
	int r;

	if (hr_settings_init(&c, err) != 0)
		return -1;
	r = hr_settings_parse(&c, "{\"lissten\": 1}", 14, &why);
	hr_settings_done(&c);
	if (r == 0 || why.code == HR_E_INVAL) {
		fault_tell("%d %s", r, why.msg);
		return 0;
	}
	*err = why;
	return -1;
}

static int
run_directory(struct hr_err *err)
{
	char path[128];
	const struct hr_rundir_place where = {
	    .wanted = path, .runstatedir = "/run", .port = 3000, .privileged = false};
	HR_CLEAN(hr_rundir_close) struct hr_rundir r = {.lock = -1};
	int sock = -1, ok = -1;

	(void)snprintf(path, sizeof(path), "%s/run", fault_dir());
	if (hr_rundir_open(&r, &where, err) == 0 &&
	    hr_rundir_prepare(&r, geteuid(), false, err) == 0) {
		sock = hr_rundir_listen(&r, "session.sock", geteuid(), err);
		ok = sock < 0 ? -1 : 0;
	}
	hr_fd_close(&sock);
	return ok;
}

static int
key_file(struct hr_err *err)
{
	HR_CLEAN(hr_keys_done) struct hr_keys k = {.count = 0};
	HR_CLEAN(hr_keys_done) struct hr_keys next = {.count = 0};
	char path[128];
	int fd = -1, r;

	(void)snprintf(path, sizeof(path), "%s/keys", fault_dir());
	r = hr_path_write(path, "one\ntwo\n", 8, 0600, err);
	if (r == 0)
		r = hr_keys_read_file(&k, path, err);
	if (r == 0) {
		fault_tell("%zu", k.count);
		fd = hr_keys_hand_over(&k, err);
		r = fd < 0 ? -1 : hr_keys_inherit(&next, fd, err);
	}
	if (r == 0)
		fault_tell(" %zu", next.count);
	hr_fd_close(&fd);
	return r;
}

static int
child_environment(struct hr_err *err)
{
	char a[] = "PATH=/bin", b[] = "SESSION_API_KEY=x", c[] = "HOME=/";
	char *env[] = {a, b, c, NULL};
	HR_CLEAN(hr_strv_done) struct hr_strv made = {0};
	int r = hr_childenv_fill(&made, env, err);
	HR_FREE char *cd = hr_keeper_cd("it's");

	if (cd == NULL)
		r = hr_err_nomem(err);
	if (r == 0)
		fault_tell("%s %s", made.v[0], cd);
	return r;
}

static int
compose(struct hr_server *s, struct hr_err *err)
{
	const char *top = getenv("abs_top_srcdir");
	char data[512], run[] = "/run/x";
	HR_BUF(text, 1 << 20);
	int r;

	(void)snprintf(data, sizeof(data), "%s/conf", top != NULL ? top : ".");
	s->ctx.datadir = data;
	s->ctx.run.path = run;
	r = hr_listen_choose(&s->site.listen, &s->ctx.settings, false, err);
	if (r == 0)
		r = hr_nginx_compose(&text, "all", &s->site, &s->ctx.settings, NULL, err);
	if (r == 0)
		r = hr_buf_check(&text, err);
	fault_tell_bytes(text.p, text.len);
	hr_buf_done(&text);
	s->ctx.run.path = NULL;
	return r;
}

static int
nginx_files(struct hr_err *err)
{
	static struct hr_server s;
	char port[] = "3000";
	int r;

	hr_server_init(&s);
	if (hr_settings_init(&s.ctx.settings, err) != 0)
		return -1;
	r = hr_settings_set(&s.ctx.settings, "port", port, err);
	if (r == 0)
		r = compose(&s, err);
	hr_settings_done(&s.ctx.settings);
	return r;
}

static int
port(struct hr_err *err)
{
	struct hr_settings c;
	struct hr_listen l;
	int fd = -1, r = -1;

	if (hr_settings_init(&c, err) != 0)
		return -1;
	c.port = 1; /* replaced below: any free one */
	if (hr_listen_choose(&l, &c, false, err) == 0) {
		((struct sockaddr_in *)&l.addr)->sin_port = 0;
		fd = hr_listen_bind(&l, err);
		r = fd < 0 ? -1 : hr_listen_start(fd, &l, err);
	}
	hr_fd_close(&fd);
	hr_settings_done(&c);
	return r;
}

/* No file stays, whatever fails. */
static int
unix_socket(struct hr_err *err)
{
	struct hr_settings c;
	struct hr_listen l;
	char at[160];
	int fd = -1, r = -1;

	if (hr_settings_init(&c, err) != 0)
		return -1;
	(void)snprintf(at, sizeof(at), "unix:%s/sock", fault_dir());
	if (hr_settings_set(&c, "listen", at, err) == 0 &&
	    hr_listen_choose(&l, &c, false, err) == 0) {
		fd = hr_listen_bind(&l, err);
		r = fd < 0 ? -1 : hr_listen_start(fd, &l, err);
	}
	if (r == 0) /* for the next image */
		fd = hr_listen_take(&l, fd);
	if (r == 0)
		fault_tell("%d %zu", fd >= 0, strlen(l.nginx) - strlen(l.text));
	if (fd >= 0)
		hr_listen_close(&l, &fd);
	hr_settings_done(&c);
	return r;
}

/* Whatever fails, all are found: in the kernel's list of children, or in the one of all processes.
 */
static int
strays(struct hr_err *err)
{
	unsigned n;
	pid_t pid;

	(void)err;
	failcalls_spare(true);
	pid = fork();
	if (pid == 0)
		for (;;)
			(void)pause();
	failcalls_spare(false);
	n = hr_children_signal_all(SIGTERM);
	failcalls_spare(true);
	if (pid > 0 && n != 1)
		(void)kill(pid, SIGKILL);
	if (n != 1)
		fault_wrong("%u of 1 found", n);
	if (waitpid(pid, NULL, 0) != pid) /* it ended by that signal, or we hang */
		fault_wrong("not waited for");
	failcalls_spare(false);
	return 0;
}

const struct fault_scenario fault_scenarios[] = {{"settings", settings, 0},
    {"wrong settings", wrong_settings, 0}, {"run directory", run_directory, 0},
    {"keys", key_file, 0}, {"child environment", child_environment, 0},
    {"nginx configuration", nginx_files, 0}, {"port", port, 0}, {"unix socket", unix_socket, 0},
    {"strays", strays, 0}, {NULL, NULL, 0}};
