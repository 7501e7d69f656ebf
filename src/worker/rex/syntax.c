/* Checks whether bash can parse a text, with `bash -n` as the original does, so that nothing runs
 * if there is a mistake in the last line. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/account.h"
#include "base/fd.h"
#include "base/process/spawn.h"
#include "proto/python/repr.h"
#include "worker/rex/rex.h"

#define PATIENCE_MS 10000
#define SAID_MAX (64u << 10)

/* Returns the exit status as shells number it; -1: the process did not end. */
static int
collect(pid_t pid)
{
	struct pollfd p = {.fd = hr_pidfd_open(pid), .events = POLLIN};
	int status = 0, n;

	do
		n = poll(&p, p.fd >= 0, PATIENCE_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0 && p.fd >= 0)
		(void)kill(pid, SIGKILL);
	(void)hr_spawn_end(pid, &status);
	hr_fd_close(&p.fd);
	return n <= 0 ? -1 : hr_exit_code(status);
}

/* Returns the exit code with stderr in `said`, or -1 with *err set. */
static int
ask_bash(const struct hr_worker *w, struct hr_span text, struct hr_buf *said, struct hr_err *err)
{
	static const char *const argv[] = {"bash", "-n", NULL};
	static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", locale[] = "LC_ALL=C.UTF-8";
	char *const envp[] = {path, locale, NULL};
	struct hr_account shell;
	struct hr_spawn_user user;
	HR_CLOSE int in = hr_fd_of_bytes(text.p, text.len, NULL);
	HR_CLOSE int out = memfd_create("handrail", MFD_CLOEXEC);
	struct hr_spawn_fd fds[2] = {{in, STDIN_FILENO}, {out, STDERR_FILENO}};
	struct hr_spawn s = {.path = argv[0],
	    .argv = argv,
	    .envp = envp,
	    .fds = fds,
	    .nfds = 2,
	    .setsid = true,
	    .umask = -1,
	    .pdeathsig = SIGKILL};
	pid_t pid;
	ssize_t n;
	char *p;
	int code;

	if (in < 0 || out < 0)
		return hr_err_sys(err, errno, "memfd_create");
	if (geteuid() == 0) {
		hr_account_find(&shell, w->shell_uid);
		user = (struct hr_spawn_user){
		    shell.uid, shell.gid, shell.groups, (size_t)shell.ngroups};
		s.user = &user;
	}
	pid = hr_spawn(&s, err);
	if (pid < 0)
		return -1;
	code = collect(pid);
	p = hr_buf_reserve(said, SAID_MAX);
	n = p != NULL ? pread(out, p, SAID_MAX, 0) : -1;
	hr_buf_grew(said, n > 0 ? (size_t)n : 0);
	return code >= 0 ? code : hr_err_set(err, HR_E_TIMEOUT, "bash -n did not end");
}

static void
raise_syntax(struct hr_rex_call *c, struct hr_span command, int code, const struct hr_buf *raw)
{
	HR_BUF(said, SAID_MAX * 4);
	HR_BUF(text, HR_ANSWER_MAX);
	HR_BUF(extra, SAID_MAX * 26);

	hr_rex_decode(&said, hr_buf_str(raw), raw->len);
	hr_buf_addf(&text, "Error (exit code %d) while checking bash command \n", code);
	hr_pyrepr_str(&text, command.p, command.len);
	hr_buf_adds(&text, "\n---- Stderr ----\n");
	hr_buf_add(&text, hr_buf_str(&said), said.len);
	hr_buf_adds(&text, "\n---- Stdout ----\n");
	hr_buf_adds(&extra, "\"bash_stdout\":\"\",\"bash_stderr\":");
	(void)hr_json_put_str(&extra, hr_buf_str(&said), said.len, HR_JSON_REPLACE);
	if (said.fail != HR_OK || extra.fail != HR_OK)
		text.fail = HR_E_NOMEM;
	hr_rex_raise(
	    c->ret, "swerex.exceptions.BashIncorrectSyntaxError", &text, hr_buf_str(&extra));
}

/* Detects an unterminated here-document: bash only warns about it and would wait for the rest for
 * ever. Appended text becomes part of such a document, but not of one that ends inside $( ). */
static bool
is_open(const struct hr_worker *w, struct hr_span text, const struct hr_buf *said)
{
	static const char open_document[] = "delimited by end-of-file", wrong[] = "\n)\n";
	struct hr_err err = {0};
	HR_BUF(more, text.len + sizeof(wrong));
	HR_BUF(unused, SAID_MAX);
	int code = 0;

	if (strstr(hr_buf_str(said), open_document) == NULL)
		return false;
	hr_buf_add(&more, text.p, text.len);
	hr_buf_adds(&more, wrong);
	if (hr_buf_check(&more, NULL) == 0)
		code = ask_bash(w, hr_span_of_buf(&more), &unused, &err);
	return code <= 0;
}

bool
hr_rex_syntax(struct hr_rex_call *c, struct hr_span command)
{
	struct hr_err err = {0};
	HR_BUF(said, SAID_MAX);
	int code;

	code = ask_bash(c->w, command, &said, &err);
	if (code < 0)
		hr_rex_raisef(c->ret, "builtins.RuntimeError",
		    "the command cannot be checked, nothing was run: %s", err.msg);
	else if (code > 0 || is_open(c->w, command, &said))
		raise_syntax(c, command, code, &said);
	return c->ret->status == 200;
}
