/* Runs actions at most once. Invariant: from enter to leave this worker holds the lock of the
 * request's entry; no answer is sent before it is in the journal. */
#include "config.h"

#include "worker/once.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/request/key.h"
#include "worker/repeat.h"
#include "worker/worker.h"

#define TAG_STATUS 0xffffu
#define TAG_JSON 0x10000u

static const char dropped_text[] =
    "The action was done, but its answer was too long to be kept and cannot be given again.";

static void
answer_again(struct hr_answer *ret, uint32_t tag)
{
	ret->status = (int)(tag & TAG_STATUS);
	if ((tag & TAG_JSON) == 0)
		ret->content_type = NULL;
	ret->replayed = true;
	hr_answer_settle(ret);
}

/* Handles an unwritable journal. A full disk must not prevent the client from making room, so the
 * action runs without it unless the operator requires the journal for it. Returns false after
 * sending an error. */
static bool
goes_unjournaled(
    struct hr_worker *w, bool required, const struct hr_err *err, struct hr_answer *ret)
{
	if (err->code == HR_E_INVAL)
		return hr_answer_detail(ret, 500, err->msg);
	if (!w->journal.failing)
		hr_log(HR_LOG_ERROR, "%s; actions are %s until it can be written", err->msg,
		    w->journal.required ? "refused" : "done without it");
	w->journal.failing = true;
	return !required ||
	       hr_answer_later(ret, "The journal of actions cannot be written; nothing was done.");
}

/* Enters the request. If it returns true, *ret_found is NEW or BEGUN. required: nothing is done
 * while the journal cannot be written. */
static bool
once_enter(struct hr_worker *w, struct hr_span key, bool required, enum hr_journal_found *ret_found,
    struct hr_answer *ret)
{
	struct hr_err err = {.code = HR_OK};
	uint32_t tag = 0;

	hr_answer_reset(ret);
	w->once_forget = key.len > 0 && key.p[0] == HR_KEY_OF_NGINX;
	if (hr_journal_enter(
		&w->journal, key.p, key.len, &w->once, ret_found, &tag, &ret->body, &err) < 0) {
		hr_answer_reset(ret);
		*ret_found = HR_JOURNAL_NEW;
		return goes_unjournaled(w, required, &err, ret);
	}
	if (*ret_found == HR_JOURNAL_NEW || *ret_found == HR_JOURNAL_BEGUN)
		return true;
	if (*ret_found == HR_JOURNAL_DONE)
		answer_again(ret, tag);
	else
		hr_answer_detail(ret, 500, dropped_text);
	hr_journal_leave(&w->journal, &w->once, false);
	return false;
}

bool
hr_once_enter(struct hr_worker *w, struct hr_span key, struct hr_answer *ret)
{
	enum hr_journal_found found;

	if (!once_enter(w, key, w->journal.required, &found, ret))
		return false;
	if (found == HR_JOURNAL_NEW)
		return true;
	hr_answer_detail(ret, 500, hr_answer_unknown);
	hr_once_leave(w, ret);
	return false;
}

static void
make_key(struct hr_worker *w, const struct hr_request *r, const char *path, struct hr_buf *key)
{
	static const struct hr_event none;

	hr_key_make(key, r, &none, &w->body);
	if (path != NULL)
		hr_buf_addf(key, ">%s", path);
}

bool
hr_once_open(
    struct hr_worker *w, const struct hr_request *r, const char *path, struct hr_answer *ret)
{
	HR_BUF(key, HR_KEY_MAX);

	make_key(w, r, path, &key);
	if (hr_buf_check(&key, NULL) < 0)
		return hr_answer_generic(ret);
	return hr_once_enter(w, hr_span_of_buf(&key), ret);
}

bool
hr_once_join(struct hr_worker *w, const struct hr_request *r, const char *path, struct hr_buf *key,
    struct hr_answer *ret)
{
	enum hr_journal_found found;

	if (key->len == 0)
		make_key(w, r, path, key);
	if (hr_buf_check(key, NULL) < 0)
		return hr_answer_generic(ret);
	if (!once_enter(w, hr_span_of_buf(key), w->journal.required, &found, ret))
		return false;
	w->once_again = found == HR_JOURNAL_BEGUN;
	hr_journal_mark(&w->journal, &w->once);
	return true;
}

bool
hr_once_begin(
    struct hr_worker *w, const struct hr_request *r, const char *path, struct hr_answer *ret)
{
	if (!hr_once_open(w, r, path, ret))
		return false;
	hr_journal_mark(&w->journal, &w->once);
	return true;
}

bool
hr_once_try(struct hr_worker *w, const struct hr_request *r, bool join, struct hr_answer *ret)
{
	enum hr_journal_found found;
	HR_BUF(key, HR_KEY_MAX);

	hr_key_of_nginx(&key, r);
	/* such a change makes room on a full disk, and nothing promises that it is in the journal
	 */
	if (!once_enter(w, hr_span_of_buf(&key), false, &found, ret))
		return false;
	w->once_again = found == HR_JOURNAL_BEGUN;
	if (join || !w->once_again)
		return true;
	hr_answer_detail(ret, 500, hr_answer_unknown);
	hr_once_leave(w, ret);
	return false;
}

/* Completes the entry. A 503 with Retry-After leaves it as it is: nothing was done and a retry
 * helps, or the result of a started action will be known later. An earlier attempt may still be on
 * its way to a shell, and would take a new entry for its own. A 503 without Retry-After is a
 * plugin's answer. */
void
hr_once_leave(struct hr_worker *w, const struct hr_answer *ret)
{
	uint32_t tag = (uint32_t)ret->status | (ret->content_type != NULL ? TAG_JSON : 0);
	bool later = ret->status == 503 && ret->retry_after_s > 0;

	if (!later)
		hr_journal_done(&w->journal, &w->once, tag, hr_buf_str(&ret->body), ret->body.len);
	else if (!w->once_forget) /* hr_once_sent() leaves the entry otherwise */
		hr_journal_leave(&w->journal, &w->once, false);
}

void
hr_once_perform(struct hr_worker *w, struct hr_action_env *env, const struct hr_event *ev,
    struct hr_answer *ret)
{
	enum hr_repeat repeat = hr_action_repeat(ev);
	enum hr_journal_found found;

	if (repeat == HR_REPEAT_FREE) {
		hr_action_perform(env, ev, ret);
		return;
	}
	if (!once_enter(w, env->key, w->journal.required, &found, ret))
		return;
	env->journal = &w->journal;
	env->entry = &w->once;
	env->again = found == HR_JOURNAL_BEGUN;
	if (env->again && repeat != HR_REPEAT_JOIN) {
		hr_answer_detail(ret, 500, hr_answer_unknown);
	} else {
		if (repeat == HR_REPEAT_NEVER)
			hr_journal_mark(&w->journal, &w->once);
		hr_action_perform(env, ev, ret);
	}
	hr_once_leave(w, ret);
}

void
hr_once_sent(struct hr_worker *w, bool sent)
{
	bool was_read = hr_repeat_sent(w, sent);

	hr_journal_leave(&w->journal, &w->once, was_read && w->once_forget);
	hr_journal_tidy(&w->journal, hr_now_ms());
}
