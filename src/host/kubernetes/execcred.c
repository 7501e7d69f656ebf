/* Implements the client.credentials protocol: the request is in a variable, the answer on
 * stdout. */
#include "config.h"

#include "host/kubernetes/execcred.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/err.h"
#include "proto/json.h"

#define PATIENCE_MS 60000

/* Reads all output until the program ends: a background process of the program may keep it open.
 * end_fd is readable when the program has ended; -1: it is taken to end when it closes its output.
 */
static int
drain(int fd, int end_fd, struct hr_buf *out, struct hr_err *err)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = end_fd, .events = POLLIN}};
	int64_t end = hr_now_ms() + PATIENCE_MS, left;
	char piece[4096];
	ssize_t n;
	int r;

	if (hr_fd_nonblock(fd, true, err) != 0)
		return -1;
	for (;;) {
		left = end - hr_now_ms();
		r = left > 0 ? poll(p, 2, (int)left) : 0;
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? hr_err_sys(err, errno, "poll")
				     : hr_err_set(
					   err, HR_E_RUNTIME_TIMEOUT, "it took more than a minute");
		if (p[0].fd < 0)
			return 0;
		n = hr_fd_read(fd, piece, sizeof(piece));
		if (n == 0 && end_fd >= 0 && p[1].revents == 0) {
			p[0].fd = -1; /* the program has closed its output and runs on */
			continue;
		}
		if (n == 0 || (n < 0 && errno == EAGAIN && p[1].revents != 0))
			return 0;
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n < 0)
			return hr_err_sys(err, errno, "read its output");
		hr_buf_add(out, piece, (size_t)n);
		if (hr_buf_check(out, NULL) != 0)
			return hr_err_set(err, HR_E_INVAL, "its output is too long");
	}
}

/* Returns the program's path; the caller frees it. A path is relative to the kubeconfig; a name is
 * searched on PATH. */
static char *
program(const char *command, const char *dir)
{
	return strchr(command, '/') != NULL ? hr_path_join(dir, command) : strdup(command);
}

int
hr_execcred_run(struct json_object *exec, const char *dir, const struct hr_strv *own_env,
    struct hr_buf *out, struct hr_err *err)
{
	const char *command = hr_json_text_or(exec, "command", "");
	struct json_object *args = hr_json_at(exec, "args"), *more = hr_json_at(exec, "env"), *o;
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	int pipes[2], status = 0, r;
	struct hr_err why = {0};
	HR_FREE char *path = NULL;
	pid_t pid = -1;
	HR_CLOSE int end_fd = -1;
	size_t i;

	if (*command == '\0')
		return hr_err_set(
		    err, HR_E_INVAL, "\"exec\" of the kubeconfig must have a \"command\"");
	path = program(command, dir);
	hr_strv_add(&argv, command);
	for (i = 0; i < hr_json_count(args); i++)
		if (hr_json_text(hr_json_entry(args, i)) != NULL)
			hr_strv_add(&argv, hr_json_text(hr_json_entry(args, i)));
	hr_strv_add_all(&env, hr_strv_list(own_env));
	for (i = 0; i < hr_json_count(more); i++) {
		o = hr_json_entry(more, i);
		hr_strv_set_envf(
		    &env, "%s=%s", hr_json_text_or(o, "name", ""), hr_json_text_or(o, "value", ""));
	}
	hr_strv_unset_env(&env, "KUBERNETES_EXEC_INFO");
	hr_strv_addf(&env,
	    "KUBERNETES_EXEC_INFO={\"apiVersion\":\"%s\",\"kind\":\"ExecCredential\",\"spec\":{"
	    "\"interactive\":false}}",
	    strstr(hr_json_text_or(exec, "apiVersion", ""), "v1beta1") != NULL
		? "client.authentication.k8s.io/v1beta1"
		: "client.authentication.k8s.io/v1");
	if (argv.failed || env.failed || path == NULL) {
		r = hr_err_nomem(err);
	} else if (pipe2(pipes, O_CLOEXEC) != 0) {
		r = hr_err_sys(err, errno, "pipe");
	} else {
		struct hr_spawn_fd fds[] = {{pipes[1], 1}, {2, 2}};
		struct hr_spawn sp = {.path = path,
		    .argv = hr_strv_list(&argv),
		    .envp = env.v,
		    .fds = fds,
		    .nfds = 2,
		    .alone = true,
		    .setpgid = true,
		    .pdeathsig = SIGTERM,
		    .umask = -1};

		pid = hr_spawn(&sp, &why);
		hr_fd_close(&pipes[1]);
		end_fd = pid >= 0 ? hr_pidfd_open(pid) : -1;
		r = pid >= 0 ? drain(pipes[0], end_fd, out, err)
			     : hr_err_set(err, HR_E_NOTFOUND, "%s", why.msg);
		hr_fd_close(&pipes[0]);
	}
	if (pid >= 0) {
		if (r != 0)
			(void)kill(-pid, SIGKILL);
		(void)hr_spawn_end(pid, &status);
		if (r == 0 && status != 0)
			r = hr_err_set(err, HR_E_RUNTIME, "it ended (%s)", hr_exit_words(status));
	}
	return r;
}
