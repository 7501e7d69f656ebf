/* Runs commands of the OpenHands V1 API: each is a process that the default session's keeper starts
 * and that outlives it, this worker and an upgrade. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/random.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "shell/quote.h"
#include "shell/split.h"
#include "worker/live.h"
#include "worker/once.h"
#include "worker/request/key.h"
#include "worker/v1/command.h"

#define WHOLE_MAX ((uint64_t)16 << 20) /* maximum bytes per stream of execute_bash_command */
#define COMMANDS_MAX 64
#define RUNNING_MAX 16
#define KEPT_MAX ((uint64_t)512 << 20) /* bytes of output of all commands that have ended */
#define UNWATCHED_MS 200  /* the wait between two looks at a command that cannot be watched */
#define OVERTIME_MS 10000 /* after its limit the keeper ends a command that its minder cannot */

static const struct hr_rex_field bash_fields[] = {
    {"command", HR_REX_STR, true, false, NULL},
    {"cwd", HR_REX_STR, false, true, NULL},
    {"timeout", HR_REX_INT, false, false, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
const struct hr_rex_model hr_v1_bash_model = {NULL, NULL, bash_fields, NULL};

/* ---- start ---- */

/* Removes the leftovers of starts that failed. */
static void
remove_unstarted(struct hr_rex_call *c, int dir)
{
	HR_CLOSEDIR DIR *d = hr_dir_take(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	size_t len;

	while (d != NULL && (e = hr_dir_next(d)) != NULL) {
		len = strlen(e->d_name);
		if (len > 0 && e->d_name[len - 1] == '~')
			(void)hr_v1_remove(c, e->d_name);
	}
}

/* Makes room for a command by removing those that ended first. Returns false if too many run. */
static bool
make_room(struct hr_rex_call *c)
{
	HR_BUF(list, HR_V1_LIST_MAX);
	size_t n = hr_v1_list(c, &list), running = 0, i;
	struct hr_v1_entry *e = (struct hr_v1_entry *)(void *)list.p;
	uint64_t bytes = 0, sizes[COMMANDS_MAX * 2];

	n = n < COMMANDS_MAX * 2 ? n : COMMANDS_MAX * 2;
	for (i = 0; i < n; i++) {
		running += !e[i].state.over;
		bytes += sizes[i] = e[i].state.over ? hr_v1_bytes(c, e[i].m.id) : 0;
	}
	while (running < RUNNING_MAX && (n >= COMMANDS_MAX || bytes > KEPT_MAX)) {
		size_t first = n;

		for (i = 0; i < n; i++)
			if (e[i].state.over &&
			    (first == n || e[i].state.ended_us < e[first].state.ended_us))
				first = i;
		(void)hr_v1_remove(c, e[first].m.id);
		bytes -= sizes[first];
		e[first] = e[--n];
		sizes[first] = sizes[n];
	}
	return running < RUNNING_MAX;
}

static bool
new_id(struct hr_v1_command *m)
{
	struct hr_err err = {0};

	if (hr_random_uuid(m->id, &err) < 0) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		return false;
	}
	memcpy(m->id + HR_V1_ID - 5, "0000", 4);
	return true;
}

/* Returns the directory of all commands, locked, or -1 with errno. */
static int
lock_all(const struct hr_rex_call *c)
{
	HR_FREE char *path = hr_v1_path(c->w, "", "");
	int fd;

	if (path == NULL || (mkdir(path, 0700) < 0 && errno != EEXIST))
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	while (fd >= 0 && flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			hr_fd_close(&fd);
	return fd;
}

/* Makes the files. Returns false after sending an error. */
static bool
make(struct hr_rex_call *c, const struct hr_v1_command *m, const struct hr_buf *request, int all)
{
	if (all >= 0 && !make_room(c))
		return hr_answer_later(
		    c->ret, "too many commands run at the same time; end one of them");
	if (all >= 0 && hr_v1_make_files(c, m->id, request) == 0)
		return true;
	hr_log(HR_LOG_ERROR, "no files for the output of a command: %s", strerror(errno));
	return hr_answer_generic(c->ret);
}

/* Asks the keeper to start the command. It is started if and only if its directory has lost the
 * ~, whatever became of the question. Returns false after sending an error. */
static bool
ask_keeper(struct hr_rex_call *c, const struct hr_v1_command *m, struct hr_exec_request *r)
{
	const struct hr_shell_place place = {.run_dir = c->w->run_dir};
	HR_FREE char *path = hr_v1_path(c->w, m->id, ""), *fresh = hr_v1_path(c->w, m->id, "~");
	HR_FREE char *refused = hr_v1_path(c->w, "refused~", "");
	HR_BUF(minder, 4096);
	HR_BUF(none, 1);
	struct hr_err err = {0};
	int64_t code;
	bool begun;

	hr_buf_addf(&minder, "%s/handrail-bound", c->w->libexec_dir);
	if (path == NULL || fresh == NULL || refused == NULL || minder.fail != HR_OK)
		return hr_answer_generic(c->ret);
	r->kept = hr_span_of(path);
	r->minder = hr_span_of_buf(&minder);
	if (hr_shell_exec(&place, r, &none, &none, &code, &begun, &err) == 0)
		return true;
	if (rename(fresh, refused) < 0)
		return errno == ENOENT || hr_answer_detail(c->ret, 500,
					      "it is not known whether the command was started");
	(void)hr_v1_remove(c, "refused~");
	return hr_answer_later(c->ret, err.msg);
}

static bool
has_null(struct hr_span s)
{
	return s.p != NULL && memchr(s.p, '\0', s.len) != NULL;
}

/* Returns the time limit in seconds; 0 ends the command at once. */
static int64_t
wanted_limit(const struct hr_rex_call *c)
{
	double s = hr_rex_number(c, "timeout", 300);

	return s < 0 ? 0 : s > HR_EXEC_LIMIT_MAX ? HR_EXEC_LIMIT_MAX : (int64_t)s;
}

/* Starts the command of `r`, whose directory is set. Returns false after sending an error. */
static bool
begin(struct hr_rex_call *c, struct hr_span key, struct hr_v1_command *m, double timeout_s,
    struct hr_exec_request *r)
{
	HR_BUF(request, HR_ANSWER_MAX);
	HR_CLOSE int all = -1;

	hr_buf_addf(&request, "{\"timeout\":%.0f", timeout_s);
	hr_json_put_member(&request, "command", hr_rex_str(c, "command"));
	hr_json_put_member(&request, "cwd", hr_rex_str(c, "cwd"));
	hr_json_put_member(&request, "key", key);
	hr_buf_addc(&request, '}');
	if (hr_buf_check(&request, NULL) < 0 || !new_id(m))
		return hr_answer_generic(c->ret);
	all = lock_all(c);
	if (all >= 0)
		remove_unstarted(
		    c, all); /* a keeper that is slow can start none of them any more */
	if (c->w->once_again && hr_v1_find(c, key, m))
		return true;
	return make(c, m, &request, all) && ask_keeper(c, m, r);
}

bool
hr_v1_begin_named(struct hr_rex_call *c, struct hr_span key, struct hr_v1_command *m)
{
	struct hr_span command = hr_rex_str(c, "command"), cwd = hr_rex_str(c, "cwd");
	HR_BUF(plain, HR_JSON_BODY_MAX);
	struct hr_exec_request r = {.limit_s = HR_EXEC_LIMIT_MAX};

	hr_shell_add_unix(&plain, command.p, command.len);
	if (plain.fail != HR_OK)
		return hr_answer_generic(c->ret);
	if (has_null(command) || has_null(cwd))
		return hr_answer_detail(c->ret, 422, "embedded null byte");
	r.command = hr_span_of_buf(&plain);
	r.working_dir = cwd.p != NULL ? cwd : (struct hr_span){"", 0};
	return begin(c, key, m, HR_EXEC_LIMIT_MAX, &r);
}

/* Finds the reason for which the original starts no process. Returns false if there is none. */
static bool
cannot_start(struct hr_span command, struct hr_span cwd, struct hr_buf *dir, struct hr_buf *why)
{
	struct hr_account_own own;
	HR_CLOSE int fd = -1;
	int sys = 0;

	if (has_null(command) || has_null(cwd)) {
		hr_buf_adds(why, "embedded null byte");
	} else if (dir->len > 0 && hr_reach_enter(&own) == 0) {
		hr_buf_adds(dir, "/."); /* entering a directory takes more than opening it */
		fd = open(hr_buf_str(dir), O_PATH | O_DIRECTORY | O_CLOEXEC);
		sys = errno;
		hr_account_leave(&own);
		if (fd < 0)
			(void)hr_oserror_put(why, sys, cwd.p);
	}
	return why->len > 0;
}

/* Starts the command of a request. One that the original does not start gets its events, too: a
 * shell prints the reason and ends with -1. Returns false after sending an error. */
static bool
begin_asked(struct hr_rex_call *c, struct hr_span key, struct hr_v1_command *m)
{
	struct hr_span command = hr_rex_str(c, "command"), cwd = hr_rex_str(c, "cwd");
	double asked_s = hr_rex_number(c, "timeout", 300), most = 9e18;
	HR_BUF(plain, HR_JSON_BODY_MAX);
	HR_BUF(dir, HR_JSON_BODY_MAX);
	HR_BUF(why, HR_ANSWER_MAX);
	struct hr_exec_request r = {.limit_s = wanted_limit(c)};
	/* handrail-bash-events has no such directory, nor the rules of the shell's account */
	bool checks = c->w->work_dir != NULL;

	if (cwd.len > 0 && cwd.p[0] != '/' && checks)
		hr_buf_addf(&dir, "%s/", c->w->work_dir);
	hr_buf_add(&dir, cwd.p, cwd.len);
	if (checks && cannot_start(command, cwd, &dir, &why)) {
		hr_buf_reset(&dir);
		hr_buf_adds(&plain, "printf 'Error executing command: %s' ");
		hr_shell_quote(&plain, hr_buf_str(&why), why.len);
		hr_buf_adds(&plain, " >&2; kill -HUP $$");
	} else {
		hr_shell_add_unix(&plain, command.p, command.len);
	}
	if (!checks && (has_null(command) || has_null(cwd)))
		return hr_answer_detail(c->ret, 422, "embedded null byte");
	if (plain.fail != HR_OK || dir.fail != HR_OK || why.fail != HR_OK)
		return hr_answer_generic(c->ret);
	r.command = hr_span_of_buf(&plain);
	r.working_dir = hr_span_of_buf(&dir);
	asked_s = asked_s > most ? most : asked_s < -most ? -most : asked_s;
	return begin(c, key, m, asked_s, &r);
}

bool
hr_v1_begin(struct hr_rex_call *c)
{
	struct hr_v1_command m;

	return begin_asked(c, (struct hr_span){NULL, 0}, &m);
}

void
hr_v1_start(struct hr_rex_call *c)
{
	struct hr_v1_state state = {0};
	struct hr_v1_command m;
	HR_BUF(key, HR_KEY_MAX);

	if (!hr_once_join(c->w, c->r, hr_buf_str(c->r->path), &key, c->ret))
		return;
	if (begin_asked(c, hr_span_of_buf(&key), &m)) {
		if (hr_v1_look(c, m.id, &state) <= 0)
			state.started_us = hr_wall_ns() / 1000;
		hr_v1_put_command(&c->ret->body, c, &m, state.started_us / 1000);
	}
	hr_rex_leave(c);
}

/* ---- execute ---- */

/* Returns the worker's descriptor of inotify(7), or -1. The kernel takes some 20 ms to close one.
 */
static int
watcher(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	return fd;
}

int
hr_v1_wait(const struct hr_rex_call *c, const char *id, int64_t until_ms, struct pollfd *fds,
    size_t n, struct hr_v1_state *state)
{
	HR_FREE char *path = hr_v1_path(c->w, id, "/status");
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool leaves = false;
	int64_t left, most;
	size_t i;
	int watch, found;

	fds[0] = (struct pollfd){.fd = watcher(), .events = POLLIN};
	watch =
	    path != NULL ? inotify_add_watch(fds[0].fd, path, IN_CLOSE_WRITE | IN_DELETE_SELF) : -1;
	most = watch >= 0 ? INT32_MAX : UNWATCHED_MS;
	while ((found = hr_v1_look(c, id, state)) > 0 && !state->over && !leaves &&
	       (watch >= 0 || n > 1) && (left = until_ms - hr_now_ms()) > 0) {
		if (poll(fds, (nfds_t)n, (int)(left < most ? left : most)) <= 0)
			continue;
		while (read(fds[0].fd, events, sizeof(events)) > 0)
			;
		for (i = 1; i < n; i++)
			leaves = leaves || fds[i].revents != 0;
	}
	if (watch >= 0)
		(void)inotify_rm_watch(fds[0].fd, watch);
	return found;
}

/* Waits for the end of the command. Returns false after sending an error. */
static bool
wait_end(struct hr_rex_call *c, const struct hr_v1_command *m, int64_t limit_s,
    struct hr_v1_state *state)
{
	struct pollfd events;
	int found =
	    hr_v1_wait(c, m->id, hr_now_ms() + limit_s * 1000 + OVERTIME_MS, &events, 1, state);

	if (found > 0 && state->over)
		return true;
	if (found == 0)
		return hr_answer_detail(c->ret, 500, "the command was removed while it ran");
	return hr_answer_detail(
	    c->ret, 500, "the end of the command cannot be awaited: ask for its events instead");
}

static void
put_whole(struct hr_rex_call *c, const struct hr_v1_command *m, const struct hr_v1_state *state)
{
	HR_CLEAN(hr_v1_streams_close) struct hr_v1_streams s = {.out = -1, .err = -1};
	HR_BUF(out, HR_ANSWER_MAX);
	HR_BUF(errors, HR_ANSWER_MAX);

	hr_v1_streams_open(c, m->id, &s);
	if (s.out_size > WHOLE_MAX || s.err_size > WHOLE_MAX) {
		hr_answer_detail(c->ret, 500,
		    "more than 16 MiB of output are not answered at once: ask for the command's "
		    "events, or use start_bash_command");
		return;
	}
	hr_v1_put_part(&out, s.out, 0, s.out_size);
	hr_v1_put_part(&errors, s.err, 0, s.err_size);
	hr_v1_put_output(&c->ret->body, m, hr_v1_outputs(c, m->id) - 1, &state->code, &out, &errors,
	    state->ended_us / 1000);
	if (hr_buf_check(&c->ret->body, NULL) < 0)
		hr_answer_generic(c->ret);
}

void
hr_v1_execute(struct hr_rex_call *c)
{
	struct hr_v1_state state = {0};
	struct hr_v1_command m;
	HR_BUF(key, HR_KEY_MAX);

	if (!hr_once_join(c->w, c->r, hr_buf_str(c->r->path), &key, c->ret))
		return;
	if (begin_asked(c, hr_span_of_buf(&key), &m) && wait_end(c, &m, wanted_limit(c), &state))
		put_whole(c, &m, &state);
	hr_rex_leave(c);
}

/* ---- programs of the server's own ---- */

bool
hr_v1_run(struct hr_rex_call *c, struct hr_span command, int64_t limit_s, struct hr_buf *out,
    int64_t *ret_code)
{
	const struct hr_shell_place place = {.run_dir = c->w->run_dir};
	const struct hr_exec_request req = {
	    .command = command, .working_dir = {"", 0}, .limit_s = limit_s};
	HR_BUF(errors, WHOLE_MAX);
	int64_t began = hr_now_ms();
	struct hr_err err = {0};
	bool begun;

	if (hr_shell_exec(&place, &req, out, &errors, ret_code, &begun, &err) == 0) {
		/* the limit ends it with 124, or 137 after SIGKILL */
		if (hr_now_ms() - began >= limit_s * 1000 && (*ret_code == 124 || *ret_code == 137))
			*ret_code = -1;
		return true;
	}
	if (!begun)
		return hr_live_refuse(c->ret, &err);
	if (err.code == HR_E_TOOLARGE)
		return hr_answer_detail(c->ret, 500,
		    "git was ended, as more than 16 MiB of its output are not answered");
	/* the status is one that no client takes for a reason to retry */
	hr_log(HR_LOG_ERROR, "git beside the shell: %s", err.msg);
	return hr_answer_detail(c->ret, 500, "the shell's keeper was lost over git: try again");
}

/* ---- clear ---- */

void
hr_v1_clear(struct hr_rex_call *c)
{
	HR_BUF(list, HR_V1_LIST_MAX);
	size_t n = hr_v1_list(c, &list);
	const struct hr_v1_entry *e = (const struct hr_v1_entry *)(const void *)list.p;
	uint64_t cleared = 0, events;

	for (; n > 0; n--, e++) {
		if (!e->state.over)
			continue;
		events = 1 + hr_v1_outputs(c, e->m.id); /* the command itself counts as one event */
		if (hr_v1_remove(c, e->m.id))
			cleared += events;
	}
	hr_buf_addf(&c->ret->body, "{\"cleared_count\":%" PRIu64 "}", cleared);
}

/* ---- stop ---- */

void
hr_v1_stop(struct hr_rex_call *c, struct hr_span id)
{
	struct hr_v1_state state = {0};
	const struct hr_v1_input in = {"path", "command_id", id};
	struct hr_v1_command m;
	int found;

	if (!hr_v1_uuid(c, &in, &id))
		return;
	found = hr_v1_parse_id(&m, id) ? hr_v1_look(c, m.id, &state) : 0;
	/* a command that has ended counts as success, too; what it has left is stopped */
	if (found == 0 && !hr_v1_is_output(c, id)) /* the original does not tell the two apart */
		hr_answer_detail(c->ret, 404, "Not Found");
	else if (found < 0 || (found > 0 && (!state.over || hr_v1_is_minded(c, m.id)) &&
				  hr_v1_stop_file(c, m.id) < 0))
		hr_answer_later(c->ret, "the command's files cannot be used now");
	else
		hr_buf_adds(&c->ret->body, "{\"success\":true}");
}
