/* GET /ready and what is like it: a worker asks the supervisor, which has the answer but never
 * waits.
 */
#include "config.h"

#include "worker/ready.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <json-c/json.h>

#include "proto/channel.h"
#include "proto/json.h"
#include "worker/worker.h"

#define TIMEOUT_MS 5000

/* As df counts: what only root may take is not there. -1: not known, or somebody else looks. */
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

/* The supervisor says "status":"ready" when everything answers. */
static bool
says_ready(const struct hr_channel_answer *a)
{
	struct json_object *v = NULL, *status = NULL;
	struct hr_json_error e;
	bool ready;

	if (hr_json_decode(a->text, a->len, &v, &e) < 0)
		return false;
	ready = hr_json_type(v) == HR_PY_DICT && json_object_object_get_ex(v, "status", &status) &&
		hr_json_str_is(status, "ready");
	json_object_put(v);
	return ready;
}

static void
refuse(struct hr_answer *ret, const struct hr_err *why)
{
	hr_buf_adds(&ret->body, "{\"status\":\"not ready\",\"reason\":");
	(void)hr_json_put_str(
	    &ret->body, why->msg, strlen(why->msg), HR_JSON_REPLACE); /* cannot refuse */
	hr_buf_addc(&ret->body, '}');
	ret->status = 503;
}

void
hr_handle_ready(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_channel_answer a;
	struct hr_err err = {.code = HR_OK};

	(void)r;
	if (hr_ready_ask(w, TIMEOUT_MS, &a, &err) < 0) {
		refuse(ret, &err);
	} else {
		hr_buf_add(&ret->body, a.text, a.len);
		ret->status = says_ready(&a) ? 200 : 503;
	}
	if (ret->status == 503)
		ret->retry_after_s = 1;
}

/* The resources are looked at first, and then told of. */
void
hr_handle_alerts(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_channel_answer a;
	struct hr_err err = {.code = HR_OK};

	(void)r;
	if (hr_ready_ask(w, TIMEOUT_MS, &a, &err) < 0 ||
	    hr_channel_ask(w->channel, HR_CHANNEL_ALERTS, "", 0, HR_CHANNEL_ALERTS_ANSWER,
		TIMEOUT_MS, &a, &err) < 0) {
		refuse(ret, &err);
		ret->retry_after_s = 1;
		return;
	}
	hr_buf_add(&ret->body, a.text, a.len);
}
