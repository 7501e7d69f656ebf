/* Creates, lists, uses and ends sessions besides the default one (doc/live.md). */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "base/account.h"
#include "base/fd.h"
#include "base/log.h"
#include "proto/channel.h"
#include "proto/json.h"
#include "worker/live.h"

#define LIST_TIMEOUT_MS 5000
/* the supervisor itself limits the start and the end of a shell */
#define WORK_TIMEOUT_MS (15 * 60 * 1000)

/* ---- listing ---- */

/* Appends a session; one that is not ready is listed without its state, which would block. */
static void
put_one(struct hr_worker *w, struct hr_buf *b, const char *name, bool ready)
{
	const struct hr_shell_place place = {
	    .run_dir = w->run_dir, .session = strcmp(name, "default") == 0 ? NULL : name};
	struct hr_session_state state = {.working_dir = {"", 0}, .reason = {"", 0}};
	HR_BUF(frame, HR_FRAME_MAX);

	if (ready && hr_shell_state(&place, &frame, &state, NULL) < 0)
		state = (struct hr_session_state){.working_dir = {"", 0}, .reason = {"", 0}};
	hr_live_put_state(b, name, &state);
}

/* Returns the next line "NAME STATE", or NULL at the end. */
static char *
next_line(char **text, char **ret_state)
{
	char *line = *text, *end = strchr(line, '\n');

	*ret_state = end != NULL ? memchr(line, ' ', (size_t)(end - line)) : NULL;
	if (*ret_state == NULL)
		return NULL;
	*(*ret_state)++ = '\0';
	*end = '\0';
	*text = end + 1;
	return line;
}

/* Returns false after sending an error. */
static bool
ask_list(struct hr_worker *w, struct hr_channel_answer *answer, struct hr_answer *ret)
{
	struct hr_err err = {0};

	if (hr_channel_ask(w->channel, HR_CHANNEL_SESSIONS, "", 0, HR_CHANNEL_SESSIONS_ANSWER,
		LIST_TIMEOUT_MS, answer, &err) < 0)
		return hr_live_refuse(ret, &err);
	hr_fd_close(&answer->fd);
	return true;
}

bool
hr_live_names(struct hr_worker *w, struct hr_buf *names, struct hr_answer *ret)
{
	struct hr_channel_answer answer;
	char *text = answer.text, *line, *state;

	if (!ask_list(w, &answer, ret))
		return false;
	while ((line = next_line(&text, &state)) != NULL)
		hr_buf_add(names, line, strlen(line) + 1);
	if (hr_buf_check(names, NULL) == 0)
		return true;
	return hr_answer_generic(ret);
}

void
hr_handle_live_sessions(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_channel_answer answer;
	char *text = answer.text, *line, *state;

	(void)r;
	if (!ask_list(w, &answer, ret))
		return;
	hr_buf_adds(&ret->body, "{\"sessions\":[");
	put_one(w, &ret->body, "default", true);
	while ((line = next_line(&text, &state)) != NULL) {
		hr_buf_addc(&ret->body, ',');
		put_one(w, &ret->body, line, strcmp(state, "ready") == 0);
	}
	hr_buf_adds(&ret->body, "]}");
}

/* ---- creating and ending ---- */

/* Returns true if the shell was ended by its last command, such as `exit`, so that its state is
 * lost anyway, and runs nothing. */
static bool
is_left(struct hr_worker *w, const char *name)
{
	const struct hr_shell_place place = {.run_dir = w->run_dir, .session = name};
	struct hr_command_state list[HR_COMMANDS_MAX];
	HR_BUF(frame, HR_FRAME_MAX);
	size_t n = 0;

	return hr_shell_commands(&place, &frame, list, &n, NULL) == 0 && n > 0 &&
	       list[n - 1].end == HR_COMMAND_SHELL_ENDED;
}

/* Ends an abandoned session. Returns false if there is none. */
static bool
make_room(struct hr_worker *w)
{
	HR_CLEAN(hr_answer_done) struct hr_answer inner;
	HR_BUF(names, HR_CHANNEL_ANSWER_MAX);
	size_t at;

	hr_answer_init(&inner);
	if (!hr_live_names(w, &names, &inner))
		return false;
	for (at = 0; at < names.len; at += strlen(names.p + at) + 1) {
		if (is_left(w, names.p + at) && hr_live_end(w, names.p + at, &inner))
			return true;
	}
	return false;
}

/* Asks the supervisor. Returns false after sending an error. */
static bool
ask(struct hr_worker *w, enum hr_channel_type type, const struct hr_buf *text,
    struct hr_answer *ret)
{
	struct hr_channel_answer answer;
	struct hr_err err = {0};

	if (hr_buf_check(text, NULL) < 0)
		return hr_answer_generic(ret);
	if (hr_channel_ask(w->channel, type, text->p, text->len, HR_CHANNEL_SESSION_ANSWER,
		WORK_TIMEOUT_MS, &answer, &err) < 0) {
		if (err.code != HR_E_TOOLARGE)
			return hr_live_refuse(ret, &err);
		return hr_answer_detail(ret, 400, "the working directory's name is too long");
	}
	hr_fd_close(&answer.fd);
	switch (answer.text[0]) {
	case HR_SESSION_OK: return true;
	case HR_SESSION_FULL:
		if (make_room(w))
			return ask(w, type, text, ret);
		return hr_answer_detail(ret, 409, answer.text + 1);
	case HR_SESSION_EXISTS: return hr_answer_detail(ret, 409, answer.text + 1);
	case HR_SESSION_UNKNOWN: return hr_answer_detail(ret, 404, answer.text + 1);
	case HR_SESSION_LATER: return hr_answer_later(ret, answer.text + 1);
	default: return hr_answer_detail(ret, 500, answer.len > 0 ? answer.text + 1 : "");
	}
}

/* Checks the directory with the rights of the shell's user, since the shell would start elsewhere
 * otherwise. Returns false after sending an error. */
static bool
check_dir(const struct hr_worker *w, const char *p, size_t len, struct hr_answer *ret)
{
	struct hr_account_own own;
	struct hr_account shell;
	struct stat st;
	char detail[160];
	size_t i;
	int fd, sys = 0;

	for (i = 0; i < len; i++)
		if ((unsigned char)p[i] < ' ' || p[i] == 0x7f)
			return hr_answer_detail(ret, 400, "working_dir holds a control character");
	hr_account_find(&shell, w->shell_uid);
	if (hr_account_enter(&shell, &own) < 0) {
		hr_log(HR_LOG_ERROR, "cannot use the shell's account: %s", strerror(errno));
		return hr_answer_generic(ret);
	}
	fd = open(p, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatat(fd, ".", &st, 0) < 0) /* a look-up of "." needs search permission */
		sys = errno;
	hr_fd_close(&fd);
	hr_account_leave(&own);
	if (sys == 0)
		return true;
	(void)snprintf(detail, sizeof(detail), "working_dir: %s", strerror(sys));
	return hr_answer_detail(
	    ret, sys == EMFILE || sys == ENFILE || sys == ENOMEM ? 500 : 400, detail);
}

/* Composes NAME, or NAME and DIR. Returns false after sending an error. */
static bool
compose(struct hr_worker *w, struct json_object *body, struct hr_buf *text, struct hr_answer *ret)
{
	struct json_object *name = hr_json_typed_at(body, "name", HR_PY_STR),
			   *dir = hr_json_at(body, "working_dir");
	const char *p;
	size_t len;

	if (name == NULL)
		return hr_answer_detail(
		    ret, 400, "the body lacks a member, or it is of the wrong type");
	p = hr_json_str(name, &len);
	if (!hr_session_name_fits(p, len))
		return hr_answer_detail(ret, 400, "this cannot be the name of a session");
	hr_buf_add(text, p, len);
	if (dir == NULL)
		return true;
	p = hr_json_type(dir) == HR_PY_STR ? hr_json_str(dir, &len) : "";
	if (p[0] != '/' || memchr(p, '\0', len) != NULL)
		return hr_answer_detail(ret, 400, "working_dir must be an absolute path");
	if (!check_dir(w, p, len, ret))
		return false;
	hr_buf_addc(text, ' ');
	hr_buf_add(text, p, len);
	return true;
}

void
hr_handle_live_create(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_BUF(text, 2u << 20);
	HR_PUT struct json_object *body = hr_live_object(w, r, ret);
	char *blank;

	if (body == NULL || !compose(w, body, &text, ret))
		return;
	hr_journal_mark(&w->journal, &w->once);
	if (!ask(w, HR_CHANNEL_SESSION_NEW, &text, ret))
		return;
	blank = memchr(text.p, ' ', text.len);
	if (blank != NULL)
		*blank = '\0';
	ret->status = 201;
	put_one(w, &ret->body, hr_buf_str(&text), true);
}

static bool
ask_named(struct hr_worker *w, enum hr_channel_type type, const char *name, struct hr_answer *ret)
{
	HR_BUF(text, 256);

	hr_buf_adds(&text, name);
	return ask(w, type, &text, ret);
}

bool
hr_live_make(struct hr_worker *w, const char *name, struct hr_answer *ret)
{
	return ask_named(w, HR_CHANNEL_SESSION_NEW, name, ret);
}

bool
hr_live_end(struct hr_worker *w, const char *name, struct hr_answer *ret)
{
	return ask_named(w, HR_CHANNEL_SESSION_KILL, name, ret);
}

bool
hr_live_end_shell(const struct hr_shell_place *place, struct hr_answer *ret)
{
	const struct hr_press_request req = {.what = HR_PRESS_END, .text = {"", 0}};
	struct hr_session_state state;
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);

	return hr_shell_press(place, &req, &frame, &state, &err) == 0 || hr_live_refuse(ret, &err);
}

void
hr_handle_live_kill(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_shell_place place;

	if (!hr_live_place(w, r, &place, ret))
		return;
	/* the first try may have ended the shell, and this shell may be another client's */
	if (place.session == NULL && w->once_again) {
		hr_answer_detail(ret, 500, hr_answer_unknown);
		return;
	}
	hr_journal_mark(&w->journal, &w->once);
	if (place.session == NULL ? hr_live_end_shell(&place, ret)
				  : ask(w, HR_CHANNEL_SESSION_KILL, &w->session, ret)) {
		hr_buf_adds(&ret->body, "{}");
	} else if (w->once_again && ret->status == 404) { /* the first try has ended it */
		hr_answer_reset(ret);
		hr_buf_adds(&ret->body, "{}");
	}
}

/* ---- running ---- */

void
hr_handle_live_run(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_shell_place place;
	struct hr_err err = {0};
	int fd;

	if (!hr_live_place(w, r, &place, ret))
		return;
	/* this check comes before the action is in the journal: a refused action was not done and
	 * can be sent again */
	fd = place.session != NULL ? hr_shell_connect(&place, &err) : -1;
	if (fd < 0 && place.session != NULL) {
		hr_live_refuse(ret, &err);
		return;
	}
	hr_fd_close(&fd);
	hr_execute(w, r, place.session, HR_RULES_OWN, ret);
}
