/* The calls of process.Process. The texts of errors are the original's: clients read some of them.
 */
#include "config.h"

#include "plugins/envd/calls.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/strv.h"
#include "base/text/quote.h"
#include "e2b/entry.h"
#include "e2b/path.h"
#include "plugins/envd/table.h"
#include "proto/json.h"

#define ANSWER_MAX (256u << 20)
#define ACCOUNT_MS 10000    /* delay of a change that neither file shows */
#define VARIABLES_MAX 16384 /* each is compared with those before */
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* ---- selection ---- */

struct envd_process *
envd_select(struct envd *envd, struct json_object *in, bool ended, struct hr_connect_error *e)
{
	struct json_object *o = hr_json_at(in, "process"), *pid = hr_json_at(o, "pid");
	struct hr_span tag = hr_json_span_or(o, "tag", NULL);
	struct envd_process *p;

	if (pid == NULL && tag.p == NULL) {
		(void)hr_connect_fail(
		    e, HR_CONNECT_UNIMPLEMENTED, "invalid input type *process.ProcessSelector");
		return NULL;
	}
	p = envd_table_find(envd->table, hr_json_int(pid), pid == NULL ? &tag : NULL, ended);
	if (p == NULL && pid != NULL)
		(void)hr_connect_fail(e, HR_CONNECT_NOT_FOUND, "process with pid %lld not found",
		    (long long)hr_json_int(pid));
	else if (p == NULL)
		(void)hr_connect_fail(e, HR_CONNECT_NOT_FOUND, "process with tag %.*s not found",
		    (int)tag.len, tag.p);
	return p;
}

/* ---- streams of events ---- */

/* The output of a process for one client. */
struct follower {
	struct envd_call *c;
	struct envd_reader r;
};

static struct follower *
follower_of(struct envd_reader *r)
{
	return (struct follower *)(void *)((char *)r - offsetof(struct follower, r));
}

/* Writes how a process has ended in the words of Go. */
static void
put_end(struct hr_buf *b, int status)
{
	static const char *const names[] = {NULL, "hangup", "interrupt", "quit",
	    "illegal instruction", "trace/breakpoint trap", "aborted", "bus error",
	    "floating point exception", "killed", "user defined signal 1", "segmentation fault",
	    "user defined signal 2", "broken pipe", "alarm clock", "terminated"};
	int code = WEXITSTATUS(status), sig = WTERMSIG(status);
	HR_BUF(text, 120);

	hr_buf_adds(b, "{\"event\":{\"end\":{");
	if (WIFSIGNALED(status)) {
		if ((size_t)sig < sizeof(names) / sizeof(*names))
			hr_buf_addf(&text, "signal: %s", names[sig]);
		else
			hr_buf_addf(&text, "signal: signal %d", sig);
		if (WCOREDUMP(status))
			hr_buf_adds(&text, " (core dumped)");
		hr_buf_adds(b, "\"exitCode\":-1,");
	} else {
		hr_buf_addf(&text, "exit status %d", code);
		if (code != 0)
			hr_buf_addf(b, "\"exitCode\":%d,", code);
		hr_buf_adds(b, "\"exited\":true,");
	}
	hr_buf_addf(b, "\"status\":\"%s\"", hr_buf_str(&text));
	if (status != 0)
		hr_buf_addf(b, ",\"error\":\"%s\"", hr_buf_str(&text));
	hr_buf_adds(b, "}}}");
}

static int
fail_start(struct hr_connect_error *e, struct json_object *process, int sys)
{
	struct json_object *args = hr_json_at(process, "args");
	HR_BUF(line, 1024);
	HR_BUF(why, 256);
	size_t i;

	hr_buf_adds(&line, hr_json_text_or(process, "cmd", ""));
	for (i = 0; i < hr_json_count(args); i++) {
		const char *arg = hr_json_text(hr_json_entry(args, i));

		hr_buf_addf(&line, " %s", arg != NULL ? arg : "");
	}
	hr_e2b_entry_errno(&why, sys);
	return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT,
	    "error starting process '%s': fork/exec /bin/sh: %s", hr_buf_str(&line),
	    hr_buf_str(&why));
}

static void
on_started(struct envd_reader *r, pid_t pid, int sys)
{
	struct follower *f = follower_of(r);
	struct hr_connect_error e;
	char text[80];

	if (sys == 0) {
		(void)snprintf(
		    text, sizeof(text), "{\"event\":{\"start\":{\"pid\":%ld}}}", (long)pid);
		envd_call_send(f->c, hr_span_of(text));
		return;
	}
	(void)fail_start(&e, hr_json_at(f->c->in, "process"), sys);
	envd_call_end(f->c, &e);
	free(f);
}

static void
on_data(struct envd_reader *r, enum envd_stream stream, struct hr_span data)
{
	static const char *const names[] = {"stdout", "stderr", "pty"};
	HR_BUF(b, 1u << 17);

	hr_buf_addf(&b, "{\"event\":{\"data\":{\"%s\":\"", names[stream]);
	hr_quote_base64(&b, data.p, data.len);
	hr_buf_adds(&b, "\"}}}");
	envd_call_send(follower_of(r)->c, hr_span_of_buf(&b));
}

static void
on_ended(struct envd_reader *r, int status)
{
	struct follower *f = follower_of(r);
	HR_BUF(b, 1024);

	put_end(&b, status);
	envd_call_send(f->c, hr_span_of_buf(&b));
	envd_call_end(f->c, NULL);
	free(f);
}

static bool
on_behind(const struct envd_reader *r)
{
	return envd_call_pending(
		   ((const struct follower *)(const void *)((const char *)r -
							    offsetof(struct follower, r)))
		       ->c) > 0;
}

static void
on_cut(struct envd_reader *r)
{
	struct follower *f = follower_of(r);

	envd_reader_remove(r);
	envd_call_cut(f->c);
	free(f);
}

static void
on_over(void *arg)
{
	struct follower *f = arg;
	struct hr_connect_error e;

	if (!f->c->late) {
		on_cut(&f->r);
		return;
	}
	envd_reader_remove(&f->r);
	(void)hr_connect_fail(&e, HR_CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
	envd_call_end(f->c, &e);
	free(f);
}

static void
on_drained(void *arg)
{
	struct follower *f = arg;

	envd_reader_ready(&f->r);
}

static struct follower *
follow(struct envd_call *c, struct hr_connect_error *e)
{
	static const struct envd_events events = {.drained = on_drained, .over = on_over};
	struct follower *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		(void)hr_connect_fail(e, HR_CONNECT_UNKNOWN, "out of memory");
		return NULL;
	}
	f->c = c;
	f->r = (struct envd_reader){.started = on_started,
	    .data = on_data,
	    .ended = on_ended,
	    .behind = on_behind,
	    .cut = on_cut};
	envd_call_wait(c, &events, f);
	return f;
}

/* ---- Start ---- */

/* Opens the directory with the rights of the user, for the child. Returns -1 with *e. */
static int
open_directory(
    const struct envd_call *c, const struct hr_account *account, struct hr_connect_error *e)
{
	struct json_object *process = hr_json_at(c->in, "process");
	struct hr_span cwd = hr_json_span_or(process, "cwd", "");
	HR_BUF(path, HR_E2B_PATH_MAX);
	HR_BUF(why, 4096);
	struct hr_account_own own;
	struct stat st;
	int fd, sys;

	if (hr_e2b_path(&path, cwd, &c->who, c->envd->setup.directory, &why) != 0)
		return hr_connect_fail(e, HR_CONNECT_INVALID_ARGUMENT, "%s", hr_buf_str(&why));
	if (stat(hr_buf_str(&path), &st) != 0 && errno == ENOENT)
		return hr_connect_fail(
		    e, HR_CONNECT_INVALID_ARGUMENT, "cwd '%s' does not exist", hr_buf_str(&path));
	if (hr_account_enter(account, &own) != 0)
		return fail_start(e, process, errno);
	fd = open(hr_buf_str(&path), O_PATH | O_DIRECTORY | O_CLOEXEC);
	sys = errno;
	if (fd >= 0 && !hr_fd_may_run(fd)) {
		sys = EACCES;
		hr_fd_close(&fd);
	}
	hr_account_leave(&own);
	return fd >= 0 ? fd : fail_start(e, process, sys);
}

/* Returns true for a name that a shell passes on: the original starts programs by one. */
static bool
is_variable(const char *name)
{
	const char *p = name;

	while (isalnum((unsigned char)*p) || *p == '_')
		p++;
	return *p == '\0' && p > name && !isdigit((unsigned char)*name);
}

static void
set_all(struct hr_strv *env, struct json_object *map)
{
	json_object_object_foreach(map, name, value)
	{
		if (is_variable(name))
			hr_strv_set_envf(env, "%s=%s", name, json_object_get_string(value));
	}
}

/* Returns 0 or an error of errno. */
static int
fill_env(struct hr_strv *env, const struct envd_call *c)
{
	struct json_object *envs = hr_json_at(hr_json_at(c->in, "process"), "envs");
	HR_PUT struct json_object *given = hr_e2b_setup_variables(&c->envd->setup, NULL);
	const char *path = getenv("PATH");

	if (given == NULL)
		return ENOMEM;
	if (json_object_object_length(given) +
		(envs != NULL ? json_object_object_length(envs) : 0) >
	    VARIABLES_MAX)
		return E2BIG;
	hr_strv_set_envf(env, "PATH=%s", path != NULL ? path : DEFAULT_PATH);
	hr_strv_set_envf(env, "HOME=%s", c->who.home);
	hr_strv_set_envf(env, "USER=%s", c->who.name);
	hr_strv_set_envf(env, "LOGNAME=%s", c->who.name);
	set_all(env, given);
	if (envs != NULL)
		set_all(env, envs);
	return env->failed ? ENOMEM : 0;
}

/* Appends what List shows of a process: the members that are not empty. */
static void
put_config(struct hr_buf *b, struct json_object *process)
{
	static const char *const names[] = {"cmd", "args", "envs", "cwd"};
	struct json_object *v;
	const char *comma = "";
	size_t i;

	hr_buf_addc(b, '{');
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		v = hr_json_at(process, names[i]);
		if (v == NULL || (i == 0 && *json_object_get_string(v) == '\0') ||
		    (i == 1 && hr_json_count(v) == 0) ||
		    (i == 2 && json_object_object_length(v) == 0))
			continue;
		hr_buf_addf(b, "%s\"%s\":", comma, names[i]);
		hr_json_put_whole(b, v);
		comma = ",";
	}
	hr_buf_addc(b, '}');
}

static void
fill_arguments(struct hr_strv *argv, struct json_object *process)
{
	struct json_object *args = hr_json_at(process, "args");
	size_t i;

	hr_strv_add(argv, hr_json_text_or(process, "cmd", ""));
	for (i = 0; i < hr_json_count(args); i++)
		hr_strv_add(argv, hr_json_text(hr_json_entry(args, i)));
}

static int
start_process(struct envd_call *c, const struct hr_account *account, int cwd, struct follower **f,
    struct hr_connect_error *e)
{
	struct json_object *process = hr_json_at(c->in, "process"),
			   *terminal = hr_json_at(c->in, "pty"),
			   *dimensions = hr_json_at(terminal, "size"),
			   *has_stdin = hr_json_at(c->in, "stdin");
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_BUF(text, ENVD_RECORD_MAX);
	struct envd_record record = {.uid = c->who.uid,
	    .gid = c->who.gid,
	    .groups = account->groups,
	    .ngroups = (uint32_t)account->ngroups,
	    .identity = geteuid() == 0,
	    .pty = terminal != NULL,
	    .has_stdin = has_stdin == NULL || json_object_get_boolean(has_stdin),
	    .deadline_ms = c->timeout_ms >= 0 ? hr_now_ms() + c->timeout_ms : 0,
	    .tag = hr_json_span_or(c->in, "tag", NULL)};
	struct hr_err err = {0};
	int sys = fill_env(&env, c);

	if (sys == E2BIG)
		return fail_start(e, process, sys);
	put_config(&text, process);
	fill_arguments(&argv, process);
	if (sys != 0 || argv.failed || text.fail != HR_OK)
		return hr_connect_fail(e, HR_CONNECT_UNKNOWN, "out of memory");
	record.argv = argv.v;
	record.env = env.v;
	record.config = hr_span_of_buf(&text);
	*f = follow(c, e);
	if (*f == NULL)
		return -1;
	if (envd_table_start(c->envd->table, &record, cwd,
		(unsigned)hr_json_int_at(dimensions, "rows"),
		(unsigned)hr_json_int_at(dimensions, "cols"), &(*f)->r, &err) != NULL)
		return 0;
	free(*f);
	return hr_connect_fail(e, HR_CONNECT_INTERNAL, "%s", err.msg);
}

/* Finds an account, or knows it from the last call: the groups alone take 90 system calls where
 * systemd is asked, too. */
static void
find_account(struct hr_account *a, uid_t uid)
{
	static struct hr_account known;
	static struct stat was[2];
	static int64_t until_ms;
	struct stat now[2] = {{.st_ino = 0}};
	bool same = stat("/etc/passwd", &now[0]) == 0 && stat("/etc/group", &now[1]) == 0 &&
		    known.uid == uid && hr_now_ms() < until_ms;
	int i;

	for (i = 0; i < 2; i++)
		same = same && now[i].st_ino == was[i].st_ino &&
		       now[i].st_mtim.tv_sec == was[i].st_mtim.tv_sec &&
		       now[i].st_mtim.tv_nsec == was[i].st_mtim.tv_nsec;
	if (!same) {
		hr_account_find(&known, uid);
		memcpy(was, now, sizeof(was));
		until_ms = hr_now_ms() + ACCOUNT_MS;
	}
	*a = known;
}

static void
call_start(struct envd_call *c)
{
	struct json_object *process = hr_json_at(c->in, "process");
	struct hr_account account;
	struct hr_connect_error e = {.code = HR_CONNECT_OK};
	struct follower *f;
	HR_CLOSE int cwd = -1;
	int r = 0;

	find_account(&account, c->who.uid);
	account.gid = c->who.gid;
	if (c->timeout_ms == 0)
		r = hr_connect_fail(&e, HR_CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
	else if (hr_json_has_null(process))
		r = fail_start(&e, process, EINVAL);
	else if ((cwd = open_directory(c, &account, &e)) < 0)
		r = -1;
	else if (geteuid() != 0 && c->who.uid != geteuid())
		r = fail_start(&e, process, EPERM);
	if (r != 0 || start_process(c, &account, cwd, &f, &e) != 0)
		envd_call_end(c, &e);
}

/* ---- the other calls ---- */

static void
call_connect(struct envd_call *c)
{
	struct hr_connect_error e;
	struct envd_process *p = envd_select(c->envd, c->in, true, &e);
	struct follower *f = p != NULL ? follow(c, &e) : NULL;

	if (f == NULL)
		envd_call_end(c, &e);
	else
		envd_process_read(p, &f->r);
}

static void
call_list(struct envd_call *c)
{
	struct envd_process *p = NULL;
	HR_BUF(b, ANSWER_MAX);
	struct hr_span tag, text;
	const char *comma = "{\"processes\":[";

	while ((p = envd_table_next(c->envd->table, p)) != NULL) {
		text = envd_process_config(p);
		tag = envd_process_tag(p);
		hr_buf_addf(&b, "%s{\"config\":%.*s,\"pid\":%ld", comma, (int)text.len, text.p,
		    (long)envd_process_pid(p));
		if (tag.p != NULL) {
			hr_buf_adds(&b, ",\"tag\":");
			hr_quote_json(&b, tag.p, tag.len);
		}
		hr_buf_addc(&b, '}');
		comma = ",";
	}
	hr_buf_adds(&b, b.len > 0 ? "]}" : "{}");
	envd_call_answer(c, hr_span_of_buf(&b));
}

static void
call_signal(struct envd_call *c)
{
	struct hr_connect_error e;
	struct envd_process *p = envd_select(c->envd, c->in, false, &e);
	int sig = (int)hr_json_int_at(c->in, "signal");
	int r = p != NULL ? 0 : -1;

	if (r == 0 && sig != SIGTERM && sig != SIGKILL)
		r = sig != 0
			? hr_connect_fail(&e, HR_CONNECT_UNIMPLEMENTED, "invalid signal: %d", sig)
			: hr_connect_fail(
			      &e, HR_CONNECT_UNIMPLEMENTED, "invalid signal: SIGNAL_UNSPECIFIED");
	/* a process that is dying is gone, as in the original */
	if (r == 0 && envd_process_killed(p))
		r = hr_connect_fail(&e, HR_CONNECT_NOT_FOUND, "process with pid %ld not found",
		    (long)envd_process_pid(p));
	if (r == 0)
		envd_process_signal(p, sig);
	envd_call_end(c, r == 0 ? NULL : &e);
}

static void
call_close(struct envd_call *c)
{
	struct hr_connect_error e;
	struct envd_process *p = envd_select(c->envd, c->in, false, &e);
	int r = p != NULL ? 0 : -1;

	if (r == 0 && envd_process_has_pty(p))
		r = hr_connect_fail(&e, HR_CONNECT_UNKNOWN,
		    "error closing stdin: cannot close stdin for PTY process "
		    "\xE2\x80\x94 send Ctrl+D (0x04) instead");
	if (r == 0)
		envd_process_close_input(p);
	envd_call_end(c, r == 0 ? NULL : &e);
}

static void
call_update(struct envd_call *c)
{
	struct hr_connect_error e;
	struct envd_process *p = envd_select(c->envd, c->in, false, &e);
	struct json_object *terminal = hr_json_at(c->in, "pty"),
			   *dimensions = hr_json_at(terminal, "size");
	int r = p != NULL ? 0 : -1;

	if (r == 0 && terminal != NULL && !envd_process_has_pty(p))
		r = hr_connect_fail(
		    &e, HR_CONNECT_INTERNAL, "error resizing tty: tty not assigned to process");
	else if (r == 0 && terminal != NULL &&
		 envd_process_resize(p, (unsigned)hr_json_int_at(dimensions, "rows"),
		     (unsigned)hr_json_int_at(dimensions, "cols")) != 0)
		r = hr_connect_fail(
		    &e, HR_CONNECT_INTERNAL, "error resizing tty: %s", strerror(errno));
	envd_call_end(c, r == 0 ? NULL : &e);
}

#define SERVICE "/process.Process/"
#define KEEPALIVE "{\"event\":{\"keepalive\":{}}}"

const struct envd_method envd_process_methods[] = {
    {SERVICE "Start", ENVD_STREAM, &envd_start_request, call_start, KEEPALIVE},
    {SERVICE "Connect", ENVD_STREAM, &envd_connect_request, call_connect, KEEPALIVE},
    {SERVICE "List", ENVD_UNARY, &envd_list_request, call_list, NULL},
    {SERVICE "SendSignal", ENVD_UNARY, &envd_signal_request, call_signal, NULL},
    {SERVICE "SendInput", ENVD_UNARY, &envd_send_request, envd_call_input, NULL},
    {SERVICE "StreamInput", ENVD_INPUT, &envd_stream_request, envd_call_stream, NULL},
    {SERVICE "CloseStdin", ENVD_UNARY, &envd_close_request, call_close, NULL},
    {SERVICE "Update", ENVD_UNARY, &envd_update_request, call_update, NULL},
    {.path = NULL},
};
