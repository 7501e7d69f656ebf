/* Answers GET /ready and similar paths: a worker asks the supervisor, which answers from memory
 * without waiting, and then the keeper of the default shell, which alone knows about its shell. */
#include "config.h"

#include "worker/ready.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <json-c/json.h>

#include "actions/shell.h"
#include "proto/channel.h"
#include "proto/json.h"
#include "worker/worker.h"

#define TIMEOUT_MS 5000

/* Counts as df does, without root's reserved blocks. Returns -1 if the figure is unknown or another
 * worker is reading it. */
static int
disk_percent(struct hr_worker *w)
{
	int32_t nobody = 0;
	uint64_t used, all;
	struct statvfs st;
	int percent = -1;

	if (!atomic_compare_exchange_strong(&w->board->disk_looker, &nobody, (int32_t)getpid()))
		return -1;
	if (statvfs(w->work_dir, &st) == 0 && st.f_blocks > 0) {
		used = st.f_blocks - st.f_bfree;
		all = used + st.f_bavail;
		percent = all > 0 ? (int)((used * 100 + all - 1) / all) : 0;
	}
	atomic_store(&w->board->disk_looker, 0);
	return percent;
}

int
hr_ready_ask(struct hr_worker *w, int timeout_ms, struct hr_channel_answer *ret, struct hr_err *err)
{
	int percent = disk_percent(w);
	char text[16] = "";

	if (percent >= 0)
		(void)snprintf(text, sizeof(text), "%d", percent);
	return hr_channel_ask(w->channel, HR_CHANNEL_READY, text, strlen(text),
	    HR_CHANNEL_READY_ANSWER, timeout_ms, ret, err);
}

/* Asks the keeper of the default shell; `why` is the reason why the shell does not work, or "". */
static void
ask_shell(const struct hr_worker *w, struct hr_buf *why)
{
	const struct hr_shell_place place = {.run_dir = w->run_dir};
	struct hr_session_state state;
	struct hr_err err = {0};
	HR_BUF(frame, HR_FRAME_MAX);

	if (hr_shell_state(&place, &frame, &state, &err) < 0)
		hr_buf_addf(why, "the keeper of the shell does not answer: %s", err.msg);
	else if (!state.ready)
		hr_buf_add(why, state.reason.p, state.reason.len);
}

static void
put_reason(struct json_object *v, const struct hr_buf *why)
{
	json_object_object_add(
	    v, "reason", json_object_new_string_len(hr_buf_str(why), (int)why->len));
}

/* Marks the shell as not ready in the supervisor's answer. */
static void
correct(struct json_object *v, const struct hr_buf *why)
{
	struct json_object *session = hr_json_at(hr_json_at(v, "components"), "session");

	json_object_object_add(v, "status", json_object_new_string("not ready"));
	put_reason(v, why);
	if (session == NULL)
		return;
	json_object_object_add(session, "state", json_object_new_string("not answering"));
	put_reason(session, why);
}

/* Fills in the body. Returns true if everything is ready. */
static bool
put_answer(const struct hr_worker *w, const struct hr_channel_answer *a, struct hr_answer *ret)
{
	HR_BUF(why, HR_CHANNEL_MAX);
	HR_PUT struct json_object *v = NULL;
	bool ready;

	/* the supervisor reports ready if all components that it can see answer */
	ready = hr_json_decode(a->text, a->len, &v, NULL) == 0 &&
		hr_json_str_is(hr_json_at(v, "status"), "ready");
	if (ready)
		ask_shell(w, &why);
	if (why.len == 0) {
		hr_buf_add(&ret->body, a->text, a->len);
		return ready;
	}
	correct(v, &why);
	(void)hr_json_put(&ret->body, v); /* handrail made the value, so it has a JSON form */
	return false;
}

static void
refuse(struct hr_answer *ret, const struct hr_err *why)
{
	hr_buf_adds(&ret->body, "{\"status\":\"not ready\"");
	hr_json_put_named(&ret->body, "reason", why->msg);
	hr_buf_addc(&ret->body, '}');
	ret->status = 503;
	ret->retry_after_s = 1;
}

void
hr_handle_ready(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_channel_answer a;
	struct hr_err err = {.code = HR_OK};

	(void)r;
	if (hr_ready_ask(w, TIMEOUT_MS, &a, &err) < 0) {
		refuse(ret, &err);
	} else if (!put_answer(w, &a, ret)) {
		ret->status = 503;
		ret->retry_after_s = 1;
	}
}

/* Checks the resources first, then lists the alerts. */
void
hr_handle_alerts(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_channel_answer a;
	struct hr_err err = {.code = HR_OK};

	(void)r;
	if (hr_ready_ask(w, TIMEOUT_MS, &a, &err) < 0 ||
	    hr_channel_ask(w->channel, HR_CHANNEL_ALERTS, "", 0, HR_CHANNEL_ALERTS_ANSWER,
		TIMEOUT_MS, &a, &err) < 0)
		refuse(ret, &err);
	else
		hr_buf_add(&ret->body, a.text, a.len);
}

void
hr_handle_log(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_channel_answer a;
	struct hr_err err = {.code = HR_OK};
	HR_BUF(after, 24);

	(void)hr_request_query(r, "after", &after);
	if (after.fail != HR_OK || strspn(hr_buf_str(&after), "0123456789") != after.len) {
		hr_answer_detail(ret, 400, "after is not a number");
	} else if (hr_channel_ask(w->channel, HR_CHANNEL_LOG, hr_buf_str(&after), after.len,
		       HR_CHANNEL_LOG_ANSWER, TIMEOUT_MS, &a, &err) < 0) {
		refuse(ret, &err);
	} else {
		hr_buf_add(&ret->body, a.text, a.len);
		hr_answer_header(ret, "Cache-Control", "no-store");
	}
}
