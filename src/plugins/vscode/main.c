/* handrail-vscode: runs as the plugin for a VS Code server (handrail-vscode(8),
 * handrail-plugin(5)). Invariant: the server and its children are in this process group, which ends
 * with this process. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "plugins/vscode/words.h"

#define READY_FD 3
#define USUAL_SERVER "/openhands/.openvscode-server/bin/openvscode-server"
#define READY_LINE "available at"
#define LINE_MAX_BYTES 4096
#define SETTINGS_MAX (64u << 10)

struct editor {
	struct hr_loop *loop;
	struct hr_watch *readable, *term, *chld;
	int ready, out; /* ready: gets the readiness line; out: the server's output; -1: closed */
	int port;
	const char *server, *token;
	pid_t pid; /* 0: the server has ended */
	bool ending;
	int status;
	char last[200]; /* last line of output, for an error message */
	struct hr_buf line;
};

/* ---- messages to handraild ---- */

static void
say(struct editor *e, const char *what, const char *why)
{
	char text[240];
	int n = snprintf(
	    text, sizeof(text), "%s%s%s", what, why != NULL ? " " : "", why != NULL ? why : "");

	if (e->ready < 0)
		return;
	if (n >= (int)sizeof(text))
		n = (int)sizeof(text) - 1;
	text[n] = '\n'; /* the newline replaces the NUL */
	(void)hr_fd_write_full(e->ready, text, (size_t)n + 1, NULL);
	hr_fd_close(&e->ready);
}

/* ---- before the start ---- */

static const char *
variable(const char *name, const char *usual)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : usual;
}

/* Rewrites the settings at each start, as the original does. The editor starts even if the
 * workspace is not writable. */
static int
write_settings(struct hr_err *err)
{
	const char *from = variable("HANDRAIL_VSCODE_SETTINGS", NULL);
	HR_FREE char *dir = hr_path_join(
	    variable("WORKSPACE_BASE", variable("HANDRAIL_WORKSPACE", ".")), ".vscode");
	HR_FREE char *path = dir != NULL ? hr_path_join(dir, "settings.json") : NULL;
	HR_BUF(b, SETTINGS_MAX);

	if (path == NULL)
		return hr_err_nomem(err);
	if (from == NULL)
		return hr_err_set(err, HR_E_NOTFOUND, "HANDRAIL_VSCODE_SETTINGS is not set");
	if (hr_path_read(from, &b, err) != 0 || hr_path_mkdirs(dir, 0777, NULL, err) != 0 ||
	    hr_path_write(path, hr_buf_str(&b), b.len, 0666, err) != 0)
		return -1;
	return chmod(path, 0666) == 0 ? 0 : hr_err_sys(err, errno, "%s", path);
}

static bool
port_free(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int on = 1;
	HR_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* an earlier server's connections may still be closing */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0 || errno != EADDRINUSE;
}

static bool
can_run(struct editor *e)
{
	struct hr_err err = {0};
	char why[200];

	if (!hr_vscode_user_ok(
		variable("HANDRAIL_SESSION_USERNAME", ""), getenv("HANDRAIL_RUNTIME_USERNAME"))) {
		say(e, "unavailable",
		    "VSCodePlugin is only supported for root or openhands user. It is not yet "
		    "supported for other users (i.e., when running LocalRuntime).");
		return false;
	}
	if (write_settings(&err) < 0)
		hr_log(HR_LOG_WARNING, "cannot write the editor's settings: %s", err.msg);
	e->port = hr_vscode_port(getenv("HANDRAIL_VSCODE_PORT"));
	if (e->port == 0) {
		say(e, "unavailable",
		    "VSCODE_PORT environment variable not set or invalid. VSCode plugin will be "
		    "disabled.");
		return false;
	}
	e->server = variable("HANDRAIL_VSCODE_SERVER", USUAL_SERVER);
	if (access(e->server, X_OK) != 0) {
		(void)snprintf(why, sizeof(why), "the program %s does not exist", e->server);
		say(e, "unavailable", why);
		return false;
	}
	if (!port_free(e->port)) {
		(void)snprintf(why, sizeof(why),
		    "Port %d is not available. VSCode plugin will be disabled.", e->port);
		say(e, "failed", why);
		return false;
	}
	return true;
}

/* ---- the server ---- */

/* Makes the environment of a fresh login, like the original, without other plugins' variables. */
static void
environment(char **env, size_t n)
{
	static const char *const names[] = {
	    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ"};
	extern char **environ;
	size_t i, k, at = 0, len;

	for (i = 0; environ[i] != NULL; i++)
		for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			len = strlen(names[k]);
			if (strncmp(environ[i], names[k], len) == 0 && environ[i][len] == '=' &&
			    at + 1 < n)
				env[at++] = environ[i];
		}
	env[at] = NULL;
}

static int
start_server(struct editor *e, struct hr_err *err)
{
	char port[16], *env[16];
	const char *argv[] = {e->server, "--host", "0.0.0.0", "--connection-token", e->token,
	    "--port", port, "--disable-workspace-trust", NULL, NULL, NULL};
	struct hr_spawn_fd fds[2];
	HR_BUF(base, 4096);
	int p[2];

	hr_vscode_base_path(&base, getenv("OPENVSCODE_SERVER_BASE_PATH"), getenv("RUNTIME_URL"),
	    getenv("RUNTIME_ID"));
	if (base.len > 0) {
		argv[8] = "--server-base-path";
		argv[9] = hr_buf_str(&base);
	}
	(void)snprintf(port, sizeof(port), "%d", e->port);
	environment(env, sizeof(env) / sizeof(env[0]));
	if (hr_buf_check(&base, err) < 0 || pipe2(p, O_CLOEXEC) != 0) {
		if (err->code == HR_OK)
			(void)hr_err_sys(err, errno, "pipe");
		return -1;
	}
	fds[0] = (struct hr_spawn_fd){p[1], STDOUT_FILENO};
	fds[1] = (struct hr_spawn_fd){p[1], STDERR_FILENO};
	e->out = p[0];
	e->pid = hr_spawn(&(const struct hr_spawn){.path = e->server,
			      .argv = argv,
			      .envp = env,
			      .fds = fds,
			      .nfds = 2,
			      .pdeathsig = SIGTERM,
			      .umask = -1,
			      .dir = getenv("WORKSPACE_MOUNT_PATH_IN_SANDBOX")},
	    err);
	hr_fd_close(&p[1]);
	if (e->pid < 0)
		e->pid = 0;
	return e->pid > 0 ? 0 : -1;
}

static void
end_line(struct editor *e)
{
	HR_BUF(b, (size_t)2 * LINE_MAX_BYTES);

	if (e->line.len == 0)
		return;
	hr_vscode_line(&b, hr_buf_str(&e->line), e->token);
	hr_log(HR_LOG_INFO, "%s", hr_buf_str(&b));
	(void)snprintf(e->last, sizeof(e->last), "%s", hr_buf_str(&b));
	if (strstr(hr_buf_str(&b), READY_LINE) != NULL)
		say(e, "ready", NULL);
	hr_buf_reset(&e->line);
}

static void
on_output(void *arg)
{
	struct editor *e = arg;
	char text[4096];
	ssize_t n = hr_fd_read(e->out, text, sizeof(text)), i;

	for (i = 0; i < n; i++) {
		if (text[i] == '\n')
			end_line(e);
		else if (e->line.len < LINE_MAX_BYTES)
			hr_buf_addc(&e->line, text[i]);
	}
	if (n > 0)
		return;
	end_line(e);
	hr_watch_drop(&e->readable);
	hr_fd_close(&e->out);
	if (e->pid == 0) /* no process is left that could print */
		hr_loop_stop(e->loop);
}

static void
on_term(void *arg)
{
	struct editor *e = arg;

	if (e->ending)
		return;
	e->ending = true;
	/* a script that starts the server perhaps does not forward the signal */
	(void)kill(0, SIGTERM);
}

static void
on_child(void *arg)
{
	struct editor *e = arg;

	if (e->pid == 0 || waitpid(e->pid, &e->status, WNOHANG) != e->pid)
		return;
	e->pid = 0;
	/* after SIGTERM its children get time, until handraild kills this process */
	if (!e->ending || e->out < 0)
		hr_loop_stop(e->loop);
}

/* Reports the exit. The last output may still be in the pipe. */
static int
report_end(struct editor *e)
{
	char why[280];

	if (e->out >= 0 && hr_fd_nonblock(e->out, true, NULL) == 0)
		on_output(e);
	if (e->ending)
		return EXIT_SUCCESS;
	(void)snprintf(
	    why, sizeof(why), "the server ended (%s): %s", hr_exit_words(e->status), e->last);
	hr_log(HR_LOG_ERROR, "%s", why);
	say(e, "failed", why);
	return EXIT_FAILURE;
}

static int
run(struct editor *e, struct hr_err *err)
{
	e->loop = hr_loop_new(err);
	if (e->loop == NULL)
		return -1;
	e->term = hr_loop_signal(e->loop, SIGTERM, on_term, e, err);
	e->chld = e->term != NULL ? hr_loop_signal(e->loop, SIGCHLD, on_child, e, err) : NULL;
	if (e->chld == NULL || start_server(e, err) < 0)
		return -1;
	e->readable = hr_loop_readable(e->loop, e->out, on_output, e, err);
	return e->readable != NULL ? hr_loop_run(e->loop, err) : -1;
}

int
main(void)
{
	struct editor e = {.ready = READY_FD, .out = -1};
	struct hr_err err = {0};
	int status = EXIT_FAILURE;

	hr_log_setup("vscode", HR_LOG_CHILD, HR_LOG_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	hr_buf_init(&e.line, LINE_MAX_BYTES);
	e.token = getenv("HANDRAIL_CONNECTION_TOKEN");
	if (e.token == NULL || hr_fd_cloexec(READY_FD, &err) < 0) {
		(void)fprintf(stderr, "handrail-vscode: is started by handraild\n");
		return EXIT_FAILURE;
	}
	if (can_run(&e)) {
		if (run(&e, &err) == 0)
			status = report_end(&e);
		else
			say(&e, "failed", err.msg);
	}
	hr_watch_free(e.readable);
	hr_watch_free(e.term);
	hr_watch_free(e.chld);
	hr_loop_free(e.loop);
	hr_fd_close(&e.out);
	hr_fd_close(&e.ready);
	hr_buf_done(&e.line);
	return status;
}
