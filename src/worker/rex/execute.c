/* Runs a command outside all sessions, with separate output streams. It is a `run` in a static
 * session whose output goes to two files that no other process can name; they are read through the
 * descriptors that created them. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/account.h"
#include "base/fd.h"
#include "files/place/spool.h"
#include "proto/python/repr.h"
#include "shell/quote.h"
#include "worker/rex/rex.h"

#define TEXT_MAX (HR_JSON_BODY_MAX * 4)
/* exit code of env if the program is missing; with 126 the program cannot be started */
#define NOT_FOUND 127

struct stream {
	char name[HR_SPOOL_NAME];
	int fd;
};

struct execution {
	const char *tmp; /* directory of both files */
	int dir;
	struct stream out, err;
};

/* ---- the files ---- */

static int
stream_open(struct stream *s, int dir, uid_t owner)
{
	if (hr_spool_name(s->name, "rex") < 0)
		return -1;
	hr_tempfiles_note(dir, s->name);
	s->fd = openat(dir, s->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->fd >= 0 && geteuid() == 0 && fchown(s->fd, owner, (gid_t)-1) < 0)
		return -1;
	return s->fd >= 0 ? 0 : -1;
}

/* Returns 0, or -1 with errno set. */
static int
open_files(struct execution *x, uid_t owner)
{
	*x = (struct execution){.tmp = "/tmp", .dir = -1, .out = {.fd = -1}, .err = {.fd = -1}};
	x->dir = open(x->tmp, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return x->dir < 0 || stream_open(&x->out, x->dir, owner) < 0 ||
		       stream_open(&x->err, x->dir, owner) < 0
		   ? -1
		   : 0;
}

static void
close_files(struct execution *x)
{
	if (x->out.fd >= 0)
		(void)unlinkat(x->dir, x->out.name, 0);
	if (x->err.fd >= 0)
		(void)unlinkat(x->dir, x->err.name, 0);
	hr_tempfiles_forget();
	hr_fd_close(&x->out.fd);
	hr_fd_close(&x->err.fd);
	hr_fd_close(&x->dir);
}

/* Decodes the stream into text. Returns 0, or -1 with errno set. */
static int
stream_read(const struct stream *s, struct hr_buf *text)
{
	struct stat st;
	HR_FREE char *p = NULL;

	if (fstat(s->fd, &st) < 0)
		return -1;
	if ((uint64_t)st.st_size > HR_REX_OUTPUT_MAX) {
		errno = EFBIG;
		return -1;
	}
	p = malloc((size_t)st.st_size + 1);
	if (p == NULL || hr_fd_pread_full(s->fd, p, (size_t)st.st_size, 0) < 0)
		return -1;
	hr_rex_decode(text, p, (size_t)st.st_size);
	return 0;
}

/* ---- the command ---- */

/* Appends a quoted argument. Returns false after raising an exception. */
static bool
put_word(struct hr_rex_call *c, struct hr_buf *text, struct hr_span s)
{
	if (memchr(s.p, '\0', s.len) != NULL)
		return hr_rex_raisef(c->ret, "builtins.ValueError", "embedded null byte");
	hr_buf_addc(text, ' ');
	hr_shell_quote(text, s.p, s.len);
	return true;
}

static struct hr_span
listed(struct json_object *list, size_t i)
{
	struct hr_span s;

	s.p = hr_json_str(hr_json_entry(list, i), &s.len);
	return s;
}

static bool
put_environment(struct hr_rex_call *c, struct json_object *env, struct hr_buf *text)
{
	HR_BUF(word, HR_JSON_BODY_MAX);
	HR_BUF(tmp, HR_JSON_BODY_MAX);
	struct hr_span s;

	json_object_object_foreach(env, key, value)
	{
		s.p = hr_json_key(key, &tmp, &s.len);
		if (s.len == 0 || memchr(s.p, '=', s.len) != NULL)
			return hr_rex_raisef(
			    c->ret, "builtins.ValueError", "illegal environment variable name");
		hr_buf_reset(&word);
		hr_buf_add(&word, s.p, s.len);
		hr_buf_addc(&word, '=');
		s.p = hr_json_str(value, &s.len);
		hr_buf_add(&word, s.p, s.len);
		if (!put_word(c, text, hr_span_of_buf(&word)))
			return false;
	}
	if (word.fail != HR_OK || tmp.fail != HR_OK)
		text->fail = HR_E_NOMEM;
	return true;
}

/* Returns the program as the request names it. */
static struct hr_span
program(const struct hr_rex_call *c)
{
	struct json_object *v = hr_json_at(c->body, "command");

	return hr_json_type(v) == HR_PY_STR ? hr_rex_str(c, "command") : listed(v, 0);
}

/* Composes the command. Returns false after raising an exception. */
static bool
compose(struct hr_rex_call *c, const struct execution *x, struct hr_buf *text)
{
	struct json_object *v = hr_json_at(c->body, "command"), *env = hr_json_at(c->body, "env");
	size_t i;

	hr_buf_addf(text, "(exec </dev/null >|%s/%s", x->tmp, x->out.name);
	if (hr_rex_true(c, "merge_output_streams"))
		hr_buf_adds(text, " 2>&1");
	else
		hr_buf_addf(text, " 2>|%s/%s", x->tmp, x->err.name);
	hr_buf_addf(text, "; exec env%s --", env != NULL ? " -i" : "");
	if (env != NULL && !put_environment(c, env, text))
		return false;
	if (hr_rex_true(c, "shell"))
		hr_buf_adds(text, " /bin/sh -c");
	else if (memchr(program(c).p, '=', program(c).len) != NULL)
		hr_buf_adds(text,
		    " sh -c 'exec \"$0\" \"$@\"'"); /* env would take the name for a variable */
	if (hr_json_type(v) == HR_PY_STR && !put_word(c, text, hr_rex_str(c, "command")))
		return false;
	for (i = 0; i < hr_json_count(v); i++)
		if (!put_word(c, text, listed(v, i)))
			return false;
	hr_buf_addc(text, ')');
	return hr_buf_check(text, NULL) == 0 || hr_answer_generic(c->ret);
}

/* Checks the directory with the rights of the shell's user. Returns false after raising an
 * exception. */
static bool
check_directory(struct hr_rex_call *c, struct hr_span cwd)
{
	struct hr_account_own own;
	struct hr_account shell;
	int fd, sys = 0;

	if (memchr(cwd.p, '\0', cwd.len) != NULL)
		return hr_rex_raisef(c->ret, "builtins.ValueError", "embedded null byte");
	hr_account_find(&shell, c->w->shell_uid);
	if (hr_account_enter(&shell, &own) < 0)
		return hr_rex_raise_os(c->ret, errno, NULL);
	fd = open(cwd.p, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(fd, ".", X_OK, AT_EACCESS) < 0)
		sys = errno;
	hr_fd_close(&fd);
	hr_account_leave(&own);
	return sys == 0 || hr_rex_raise_os(c->ret, sys, cwd.p);
}

/* ---- the answer ---- */

static bool
is_at(int dir, const char *way, size_t len, const char *name)
{
	struct stat st;
	char *path;
	bool r = true;

	if (asprintf(&path, "%.*s%s%s", (int)len, way, len > 0 ? "/" : "", name) >= 0) {
		r = fstatat(dir, path, &st, 0) == 0;
		free(path);
	}
	return r;
}

/* Returns true if the shell's user can find the program: env reports the same error for a script
 * whose interpreter is missing. */
static bool
is_there(const struct hr_rex_call *c, const char *name)
{
	const char *own_path = getenv("PATH"), *way = own_path != NULL ? own_path : "/usr/bin:/bin";
	struct hr_span cwd = hr_rex_str(c, "cwd");
	struct json_object *env = hr_json_at(c->body, "env");
	struct hr_account_own own;
	struct hr_account shell;
	bool r = false;
	size_t n;
	int dir;

	if (env != NULL && hr_json_text_at(env, "PATH") != NULL)
		way = hr_json_text_at(env, "PATH");
	hr_account_find(&shell, c->w->shell_uid);
	if (hr_account_enter(&shell, &own) < 0)
		return true;
	dir = open(cwd.p != NULL ? cwd.p : c->w->work_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (strchr(name, '/') != NULL)
		r = is_at(dir, "", 0, name);
	for (; strchr(name, '/') == NULL && !r; way += n + 1) {
		n = strcspn(way, ":");
		r = is_at(dir, way, n, name);
		if (way[n] == '\0')
			break;
	}
	hr_fd_close(&dir);
	hr_account_leave(&own);
	return r;
}

/* Recognises env's error message about this program, for which the original raises an exception. */
static bool
could_not_start(const struct hr_rex_call *c, int64_t code, const struct hr_buf *err)
{
	static const char head[] = "env: ";
	const char *last =
	    code == NOT_FOUND ? ": No such file or directory\n" : ": Permission denied\n";
	const char *text = hr_buf_str(err), *said = strstr(text, last);
	struct hr_span name = program(c);

	if (hr_rex_true(c, "shell") || (code != NOT_FOUND && code != NOT_FOUND - 1) ||
	    strncmp(text, head, sizeof(head) - 1) != 0 || said == NULL)
		return false;
	/* env may add a hint after the message */
	return memchr(text, '\n', (size_t)(said - text)) == NULL &&
	       memmem(text, (size_t)(said - text), name.p, name.len) != NULL &&
	       (code != NOT_FOUND || !is_there(c, name.p));
}

static void
raise_status(
    struct hr_rex_call *c, int64_t code, const struct hr_buf *out, const struct hr_buf *err)
{
	HR_BUF(text, HR_ANSWER_MAX);

	hr_rex_put_failed(&text, c, code);
	hr_buf_adds(&text, "Stdout:\n");
	hr_pyrepr_str(&text, hr_buf_str(out), out->len);
	hr_buf_adds(&text, "\nStderr:\n");
	hr_pyrepr_str(&text, hr_buf_str(err), err->len);
	hr_rex_raise(c->ret, "swerex.exceptions.NonZeroExitCodeError", &text, "");
}

static void
answer(struct hr_rex_call *c, const struct execution *x, int64_t code)
{
	struct hr_buf *b = &c->ret->body;
	HR_BUF(out, HR_ANSWER_MAX);
	HR_BUF(err, HR_ANSWER_MAX);

	if (stream_read(&x->out, &out) < 0 || stream_read(&x->err, &err) < 0) {
		hr_rex_raisef(c->ret, "builtins.OSError",
		    "the command was run, but its output cannot be read: %s", strerror(errno));
	} else if (could_not_start(c, code, hr_rex_true(c, "merge_output_streams") ? &out : &err)) {
		hr_rex_raise_os(c->ret, code == NOT_FOUND ? ENOENT : EACCES, program(c).p);
	} else if (code != 0 && hr_rex_true(c, "check")) {
		raise_status(c, code, &out, &err);
	} else {
		hr_buf_addc(b, '{');
		hr_json_put_member(b, "stdout", hr_span_of_buf(&out));
		hr_json_put_member(b, "stderr", hr_span_of_buf(&err));
		hr_buf_addf(b, ",\"exit_code\":%lld}", (long long)code);
	}
	if (out.fail != HR_OK || err.fail != HR_OK)
		hr_answer_generic(c->ret);
}

static void
raise_late(struct hr_rex_call *c)
{
	HR_BUF(text, 1024);

	hr_buf_adds(&text, "Timeout (");
	hr_pyrepr(&text, hr_json_at(c->body, "timeout"));
	hr_buf_adds(&text, "s) exceeded while running command");
	hr_rex_raise(c->ret, "swerex.exceptions.CommandTimeoutError", &text, "");
}

static void
execute(struct hr_rex_call *c)
{
	struct hr_span cwd = hr_rex_str(c, "cwd");
	HR_CLEAN(hr_rex_result_done) struct hr_rex_result result = {0};
	double limit_s = hr_rex_limit_s(c);
	struct execution x;
	HR_BUF(text, TEXT_MAX);

	if (cwd.p != NULL && !check_directory(c, cwd))
		return;
	if (open_files(&x, c->w->shell_uid) < 0)
		hr_rex_raise_os(c->ret, errno, x.tmp);
	else if (compose(c, &x, &text) &&
		 hr_rex_run(c, NULL, cwd.p, hr_span_of_buf(&text), limit_s,
		     limit_s > 0 ? HR_SHELL_READY_S : 0, hr_span_of("swerex:execute"), &result)) {
		if (result.exit_code < 0)
			raise_late(c);
		else
			answer(c, &x, result.exit_code);
	}
	close_files(&x);
}

void
hr_rex_execute(struct hr_rex_call *c)
{
	struct json_object *v = hr_json_at(c->body, "command");

	if (hr_json_type(v) == HR_PY_LIST && hr_json_count(v) == 0) {
		hr_rex_raisef(c->ret, "builtins.IndexError", "list index out of range");
	} else if (!hr_rex_true(c, "shell") && program(c).len == 0) {
		hr_rex_raise_os(c->ret, EACCES, "");
	} else if (hr_rex_enter(c)) {
		execute(c);
		hr_rex_leave(c);
	}
}
