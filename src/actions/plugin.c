/* Performs actions of plugins. DIR/action/TYPE leads to the socket of the performer
 * (supervisor/run/rundir.h): the plugin, or the supervisor, which reports why the plugin is not
 * available. */
#include "config.h"

#include "actions/plugin.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <json-c/json.h>

#include "actions/shell.h"
#include "base/fd.h"
#include "proto/frame.h"
#include "proto/json.h"

#define FIRST_READ (64u << 10) /* bytes to read before the length of the answer is known */
#define GRACE_S 30             /* seconds more than the limit that the plugin keeps itself */
#define CONNECT_S 30           /* seconds that a stopped plugin may leave a connection waiting */
#define LIMIT_MAX_S 1e9
#define TYPE_MAX 64

static bool
type_fits(const char *type, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!((type[i] >= '0' && type[i] <= '9') ||
			((type[i] | 0x20) >= 'a' && (type[i] | 0x20) <= 'z') || type[i] == '_' ||
			type[i] == '-'))
			return false;
	return len > 0 && len <= TYPE_MAX;
}

/* Returns 0, or -1 if no plugin can have such a socket. */
static int
socket_path(struct sockaddr_un *sa, const char *run_dir, const char *type, size_t len)
{
	int n =
	    snprintf(sa->sun_path, sizeof(sa->sun_path), "%s/action/%.*s", run_dir, (int)len, type);

	return n < 0 || (size_t)n >= sizeof(sa->sun_path) ? -1 : 0;
}

int
hr_plugin_connect(const char *run_dir, const char *type, size_t len, struct hr_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd;

	if (!type_fits(type, len))
		return hr_err_set(err, HR_E_NOTFOUND, "no plugin can have such a type");
	if (socket_path(&sa, run_dir, type, len) < 0)
		return hr_err_set(err, HR_E_NOTFOUND, "no plugin can have such a name");
	fd = hr_fd_connect(&sa, CONNECT_S);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return hr_err_set(err, HR_E_NOTFOUND, "no plugin takes such actions");
	if (errno == EAGAIN)
		return hr_err_set(err, HR_E_TIMEOUT, "the plugin does not answer");
	return hr_err_sys(err, errno, "the plugin cannot be reached");
}

int
hr_plugin_reach(
    const char *run_dir, const char *type, size_t len, int *ret_fd, struct hr_answer *ret)
{
	struct hr_err err = {0};

	*ret_fd = hr_plugin_connect(run_dir, type, len, &err);
	if (*ret_fd < 0 && err.code == HR_E_TIMEOUT)
		(void)hr_answer_later(ret, err.msg);
	return *ret_fd >= 0 ? 1 : err.code == HR_E_TIMEOUT ? -1 : 0;
}

static int
plugin_send(const struct hr_action_env *env, int fd, const char *type, struct json_object *action,
    struct hr_err *err)
{
	struct hr_act_request req = {
	    .type = {type, strlen(type)}, .key = env->key, .again = env->again};
	struct hr_session_state state = {.working_dir = {"", 0}};
	HR_BUF(json, HR_FRAME_MAX);
	HR_BUF(frame, HR_FRAME_MAX + HR_FRAME_HEADER);
	HR_BUF(shell, HR_FRAME_MAX + HR_FRAME_HEADER + FIRST_READ);

	if (hr_json_put(&json, action) < 0)
		return hr_err_set(err, HR_E_INVAL, "the action cannot be written as JSON");
	if (hr_buf_check(&json, err) < 0)
		return -1;
	/* If this fails the plugin uses the directory it knows. */
	(void)hr_shell_state(
	    &(const struct hr_shell_place){.run_dir = env->run_dir}, &shell, &state, NULL);
	req.action = hr_span_of_buf(&json);
	req.working_dir = state.working_dir;
	hr_frame_put_act(&frame, &req);
	if (hr_buf_check(&frame, err) < 0)
		return -1;
	if (env->journal != NULL)
		hr_journal_mark(env->journal, env->entry);
	if (hr_fd_write_full(fd, frame.p, frame.len, err) == 0)
		return 0;
	if (err->sys == EAGAIN)
		return hr_err_set(err, HR_E_TIMEOUT, "the plugin did not read the action in time");
	/* A refusal may come before the whole action is read: the reason can be read all the
	 * same. */
	return err->sys == EPIPE ? 0 : -1;
}

static int
plugin_receive(
    int fd, struct hr_buf *frame, uint32_t *ret_type, struct hr_act_answer *ret, struct hr_err *err)
{
	const char *payload = NULL;
	size_t len = 0, used;
	struct hr_err cause = {0};
	int r = hr_frame_read(fd, frame, ret_type, &payload, &len, &used, &cause);

	if (r < 0 && cause.sys == EAGAIN)
		return hr_err_set(err, HR_E_TIMEOUT, "the plugin did not answer in time");
	if (r == 0)
		return hr_err_set(err, HR_E_GONE, "the plugin ended while it performed the action");
	if (r < 0) {
		*err = cause;
		return -1;
	}
	if (*ret_type != HR_FRAME_ANSWER && *ret_type != HR_FRAME_REFUSED)
		return hr_err_set(err, HR_E_PROTO, "the plugin sent a frame of type %u", *ret_type);
	return hr_frame_get_answer(payload, len, ret, err);
}

/* Checks that the plugin's answer is JSON before a client gets it. */
static int
take_answer(const struct hr_act_answer *a, struct hr_answer *ret, struct hr_err *err)
{
	struct hr_json_facts facts;
	struct hr_json_error e;

	if (a->status < 200 || a->status > 599)
		return hr_err_set(
		    err, HR_E_PROTO, "the plugin answered with status %lld", (long long)a->status);
	if (hr_json_scan(a->body.p, a->body.len, &facts, &e) < 0)
		return hr_err_set(err, HR_E_PROTO, "the plugin's answer is not JSON");
	ret->status = (int)a->status;
	hr_buf_add(&ret->body, a->body.p, a->body.len);
	hr_answer_settle(ret);
	return 0;
}

/* Limits each wait for the plugin, which a command may have stopped: it then neither reads nor
 * answers. */
static void
set_limit(int fd, double limit_s)
{
	struct timeval tv = {0};

	/* 0: none */
	if (limit_s > 0 && isfinite(limit_s) && limit_s <= LIMIT_MAX_S)
		tv.tv_sec = (time_t)limit_s + GRACE_S;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
}

/* Notes the plugin's name: the link in DIR/action leads to "../plugin/NAME.sock". */
static void
note_plugin(const char *run_dir, const char *type, bool failed, struct hr_note *note)
{
	static const char suffix[] = ".sock";
	char target[HR_METRICS_NAME + 32], *name;
	struct sockaddr_un sa;
	ssize_t n;
	size_t len;

	if (socket_path(&sa, run_dir, type, strlen(type)) < 0)
		return;
	n = readlink(sa.sun_path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	name = strrchr(target, '/');
	name = name != NULL ? name + 1 : target;
	len = strlen(name);
	if (len <= sizeof(suffix) - 1 || len >= sizeof(note->plugin) ||
	    strcmp(name + len - (sizeof(suffix) - 1), suffix) != 0)
		return;
	len -= sizeof(suffix) - 1;
	memcpy(note->plugin, name, len);
	note->plugin[len] = '\0';
	note->plugin_failed = failed;
}

void
hr_plugin_perform(const struct hr_action_env *env, int fd, const char *type,
    struct json_object *action, double limit_s, struct hr_answer *ret)
{
	struct hr_err err = {.code = HR_OK};
	struct hr_act_answer answer;
	HR_BUF(frame, HR_FRAME_MAX + HR_FRAME_HEADER + FIRST_READ);
	HR_BUF(why, sizeof(err.msg) + HR_FRAME_HEADER);
	uint32_t kind = 0;
	int r;

	hr_answer_reset(ret);
	set_limit(fd, limit_s);
	r = plugin_send(env, fd, type, action, &err);
	if (r == 0)
		r = plugin_receive(fd, &frame, &kind, &answer, &err);
	if (r == 0 && kind == HR_FRAME_REFUSED) {
		hr_buf_add(&why, answer.reason.p, answer.reason.len);
		hr_answer_internal(ret, &why);
	} else if (r == 0) {
		r = take_answer(&answer, ret, &err);
	}
	if (r < 0) {
		hr_answer_reset(ret);
		hr_action_error(ret, err.msg, strlen(err.msg));
	}
	note_plugin(env->run_dir, type, r < 0 || kind == HR_FRAME_REFUSED, &ret->note);
}

/* Returns a type that the contract does not know and a plugin may; otherwise NULL. */
static const char *
custom_type(struct json_object *action, size_t *ret_len)
{
	struct json_object *type = hr_json_typed_at(action, "action", HR_PY_STR);
	const char *name;

	if (type == NULL)
		return NULL;
	name = hr_json_str(type, ret_len);
	return type_fits(name, *ret_len) && hr_action_class(name, *ret_len) == NULL ? name : NULL;
}

bool
hr_plugin_takes(const char *run_dir, struct json_object *action)
{
	struct sockaddr_un sa;
	const char *name;
	size_t len;

	name = custom_type(action, &len);
	return name != NULL && socket_path(&sa, run_dir, name, len) == 0 &&
	       access(sa.sun_path, F_OK) == 0;
}

bool
hr_plugin_custom(const struct hr_action_env *env, struct json_object *action, struct hr_answer *ret)
{
	struct json_object *timeout;
	double limit_s = 0;
	const char *name;
	char text[TYPE_MAX + 1];
	size_t len;
	HR_CLOSE int fd = -1;
	int r;

	name = custom_type(action, &len);
	if (name == NULL)
		return false;
	r = hr_plugin_reach(env->run_dir, name, len, &fd, ret);
	if (r <= 0)
		return r < 0;
	memcpy(text, name, len);
	text[len] = '\0';
	timeout = hr_json_at(action, "timeout");
	if (hr_json_type(timeout) == HR_PY_INT || hr_json_type(timeout) == HR_PY_FLOAT)
		limit_s = json_object_get_double(timeout);
	hr_plugin_perform(env, fd, text, action, limit_s, ret);
	return true;
}
