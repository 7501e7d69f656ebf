/* Exchanges messages with Chromium: JSON, each ended by a null byte. */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "plugins/browser/browser.h"
#include "plugins/browser/browser_int.h"
#include "proto/json.h"

#define EVAL_MS 10000 /* ms for an expression to run before its promise is awaited */

/* ---- patterns ---- */

static void
pattern_value(struct hr_buf *b, char kind, va_list *ap)
{
	const char *s;
	double f;

	switch (kind) {
	case 's':
		s = va_arg(*ap, const char *);
		(void)hr_json_put_str(b, s, strlen(s), HR_JSON_REPLACE);
		break;
	case 'b':
		s = va_arg(*ap, const char *);
		(void)hr_json_put_str(b, s, va_arg(*ap, size_t), HR_JSON_REPLACE);
		break;
	case 'r': hr_buf_adds(b, va_arg(*ap, const char *)); break;
	case 'd': hr_buf_addf(b, "%lld", (long long)va_arg(*ap, int64_t)); break;
	case 'f':
		f = va_arg(*ap, double);
		hr_buf_addf(b, "%.17g", isfinite(f) ? f : 0.0);
		break;
	default: hr_assert(!"a pattern of JSON");
	}
}

static void
put_pattern(struct hr_buf *b, const char *p, va_list *ap)
{
	for (; *p != '\0'; p++) {
		if (*p == '$')
			pattern_value(b, *++p, ap);
		else
			hr_buf_addc(b, *p);
	}
}

void
br_json(struct hr_buf *b, const char *pattern, ...)
{
	va_list ap;

	va_start(ap, pattern);
	put_pattern(b, pattern, &ap);
	va_end(ap);
}

/* ---- output ---- */

static int64_t
put_message(
    struct browser *b, const char *session, const char *method, const char *pattern, va_list *ap)
{
	int64_t id = ++b->next_id;

	br_json(&b->out, "{\"id\":$d,\"method\":$s,\"params\":", id, method);
	put_pattern(&b->out, pattern, ap);
	if (session[0] != '\0')
		br_json(&b->out, ",\"sessionId\":$s", session);
	hr_buf_adds(&b->out, "}");
	hr_buf_addc(&b->out, '\0');
	br_flush(b);
	return id;
}

int64_t
br_tell(struct browser *b, const char *session, const char *method, const char *pattern, ...)
{
	va_list ap;
	int64_t id;

	if (b->gone)
		return 0;
	va_start(ap, pattern);
	id = put_message(b, session, method, pattern, &ap);
	va_end(ap);
	return id;
}

static void
begin(struct browser *b, struct br_asking *a, const char *session, const char *method,
    const char *pattern, va_list *ap)
{
	*a = (struct br_asking){.id = 0};
	(void)snprintf(a->session, sizeof(a->session), "%s", session);
	TAILQ_INSERT_TAIL(&b->asking, a, entry);
	if (!b->gone)
		a->id = put_message(b, session, method, pattern, ap);
}

void
br_ask_begin(struct browser *b, struct br_asking *a, const char *session, const char *method,
    const char *pattern, ...)
{
	va_list ap;

	va_start(ap, pattern);
	begin(b, a, session, method, pattern, &ap);
	va_end(ap);
}

struct br_answer *
br_ask_end(struct browser *b, struct br_asking *a)
{
	int r = 0;

	while (!a->done && r == 0)
		r = br_wait(b, b->until_ms);
	TAILQ_REMOVE(&b->asking, a, entry);
	if (a->done && a->answer == NULL)
		b->err = a->err;
	return a->answer;
}

void
br_ask_give_up(struct browser *b, struct br_asking *a)
{
	TAILQ_REMOVE(&b->asking, a, entry);
	br_answer_free(a->answer);
}

struct br_answer *
br_ask(struct browser *b, const char *session, const char *method, const char *pattern, ...)
{
	struct br_asking a;
	va_list ap;

	va_start(ap, pattern);
	begin(b, &a, session, method, pattern, &ap);
	va_end(ap);
	return br_ask_end(b, &a);
}

int
br_do(struct browser *b, const char *session, const char *method, const char *pattern, ...)
{
	struct br_asking asking;
	struct br_answer *a;
	va_list ap;

	va_start(ap, pattern);
	begin(b, &asking, session, method, pattern, &ap);
	va_end(ap);
	a = br_ask_end(b, &asking);
	br_answer_free(a);
	return a != NULL ? 0 : -1;
}

void
br_unanswered(struct browser *b, const char *session, const char *why)
{
	struct br_asking *a;

	TAILQ_FOREACH(a, &b->asking, entry)
	{
		if (a->done || strcmp(a->session, session) != 0)
			continue;
		a->done = true;
		(void)hr_err_set(&a->err, HR_E_NOTFOUND, "%s", why);
	}
}

static struct br_asking *
asking_find(struct browser *b, int64_t id)
{
	struct br_asking *a;

	TAILQ_FOREACH(a, &b->asking, entry)
	{
		if (a->id == id && !a->done)
			return a;
	}
	return NULL;
}

/* ---- input ---- */

void
br_answer_free(struct br_answer *a)
{
	if (a == NULL)
		return;
	br_tape_done(&a->tape);
	free(a->text);
	free(a);
}

char *
br_answer_take(struct br_answer *a, size_t *ret_len)
{
	char *text = a->text;

	*ret_len = a->len;
	a->text = NULL;
	br_answer_free(a);
	return text;
}

static struct br_answer *
copy_answer(const char *text, size_t len)
{
	struct br_answer *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->text = malloc(len + 1);
	if (a->text != NULL) {
		memcpy(a->text, text, len);
		a->text[len] = '\0';
		a->len = len;
		if (br_tape_parse(&a->tape, a->text, len, NULL) == 0)
			return a;
	}
	br_answer_free(a);
	return NULL;
}

static void
take_answer(struct br_asking *asking, const char *text, size_t len, const struct br_tape *t)
{
	uint32_t error = br_tape_at(t, 0, "error");
	char *message;

	asking->done = true;
	if (error != BR_TAPE_NONE) {
		message = br_tape_strdup(t, br_tape_at(t, error, "message"));
		(void)hr_err_set(&asking->err, HR_E_PROTO, "%s",
		    message != NULL ? message : "no reason is given");
		free(message);
		return;
	}
	asking->answer = copy_answer(text, len);
	if (asking->answer == NULL)
		(void)hr_err_nomem(&asking->err);
	else
		asking->answer->result = br_tape_at(&asking->answer->tape, 0, "result");
}

static void
take_message(struct browser *b, const char *text, size_t len)
{
	HR_CLEAN(br_tape_done) struct br_tape t = {0};
	struct hr_err err = {0};
	uint32_t method;
	HR_FREE char *name = NULL;
	HR_FREE char *session = NULL;

	if (br_tape_parse(&t, text, len, &err) != 0) {
		hr_log(HR_LOG_WARNING, "Chromium sent a message that is not JSON: %s", err.msg);
		return;
	}
	method = br_tape_at(&t, 0, "method");
	if (method == BR_TAPE_NONE) {
		int64_t id = br_tape_int(&t, br_tape_at(&t, 0, "id"), -1);
		struct br_asking *a = asking_find(b, id);

		if (a != NULL)
			take_answer(a, text, len, &t);
		else
			br_told(b, id, &t, br_tape_at(&t, 0, "result"));
		return;
	}
	name = br_tape_strdup(&t, method);
	session = br_tape_strdup(&t, br_tape_at(&t, 0, "sessionId"));
	if (name != NULL)
		br_event(b, session != NULL ? session : "", name, &t, br_tape_at(&t, 0, "params"));
}

/* Fails the call that a message of too many bytes answers. Only the head of the message is kept;
 * it has the number of the call. */
static void
too_long(struct browser *b)
{
	struct br_asking *a;
	long long id = -1;

	b->skipping = true;
	if (sscanf(hr_buf_str(&b->in), "{\"id\":%lld", &id) != 1)
		return;
	a = asking_find(b, id);
	if (a == NULL)
		return;
	a->done = true;
	(void)hr_err_set(&a->err, HR_E_TOOLARGE,
	    "the page is too large: the answer has more than %u MB", BR_TAPE_TEXT_MAX >> 20);
}

void
br_take(struct browser *b)
{
	size_t start = 0;

	for (;;) {
		char *p = b->in.p + b->scanned, *end = memchr(p, '\0', b->in.len - b->scanned);

		if (end == NULL)
			break;
		if (!b->skipping)
			take_message(b, b->in.p + start, (size_t)(end - b->in.p) - start);
		b->skipping = false;
		if (b->gone)
			return;
		start = b->scanned = (size_t)(end - b->in.p) + 1;
	}
	hr_buf_drop_front(&b->in, start);
	b->scanned = b->in.len;
	if (b->in.len > BR_TAPE_TEXT_MAX && !b->skipping)
		too_long(b);
	if (b->skipping || (b->in.len == 0 && b->in.room > (1u << 20))) {
		/* frees the memory that one large message took */
		size_t cap = b->in.cap;

		hr_buf_done(&b->in);
		hr_buf_init(&b->in, cap);
		b->scanned = 0;
	}
}

uint32_t
br_at(const struct br_answer *a, const char *name)
{
	return br_tape_at(&a->tape, a->result, name);
}

void
br_text_at(const struct br_answer *a, const char *name, char *ret, size_t cap)
{
	br_copy(&a->tape, br_at(a, name), ret, cap);
}

void
br_copy(const struct br_tape *t, uint32_t i, char *ret, size_t cap)
{
	HR_FREE char *s = br_tape_strdup(t, i);

	/* an id that does not fit is unknown anyway */
	(void)snprintf(ret, cap, "%s", s != NULL && strlen(s) < cap ? s : "");
}

/* ---- waiting ---- */

static int
sleep_until(struct browser *b, int64_t until_ms)
{
	int64_t left = until_ms - hr_now_ms();
	int r;

	if (b->gone)
		return hr_err_set(&b->err, HR_E_GONE, "%s", b->why);
	if (b->interrupted != NULL && b->interrupted(b->arg))
		return hr_err_set(&b->err, HR_E_GONE, "the browser is being ended");
	if (left <= 0)
		return 1;
	if (hr_watch_arm(b->timer, left, &b->err) != 0)
		return -1;
	r = hr_loop_run(b->loop, &b->err);
	hr_watch_disarm(b->timer);
	return r;
}

int
br_wait(struct browser *b, int64_t until_ms)
{
	int r = sleep_until(b, until_ms);

	return r == 1 ? hr_err_set(&b->err, HR_E_TIMEOUT, "the page did not answer in time") : r;
}

void
br_limit(struct browser *b, int64_t ms)
{
	int64_t until = hr_now_ms() + ms;

	b->until_ms = until < b->step_ms ? until : b->step_ms;
}

int
br_pause(struct browser *b, int64_t until_ms)
{
	int r;

	do
		r = sleep_until(b, until_ms);
	while (r == 0);
	return r == 1 ? 0 : -1;
}

/* ---- scripts ---- */

static struct br_answer *
look_for_exception(struct browser *b, struct br_answer *a)
{
	uint32_t details;
	HR_FREE char *text = NULL;

	if (a == NULL)
		return NULL;
	details = br_at(a, "exceptionDetails");
	if (details == BR_TAPE_NONE)
		return a;
	text = br_tape_strdup(&a->tape,
	    br_tape_at(&a->tape, br_tape_at(&a->tape, details, "exception"), "description"));
	(void)hr_err_set(&b->err, HR_E_PROTO, "%s", text != NULL ? text : "a script failed");
	br_answer_free(a);
	return NULL;
}

void
br_eval_begin(struct browser *b, struct br_asking *a, const char *session, int64_t context,
    const char *code, bool by_value)
{
	br_ask_begin(b, a, session, "Runtime.evaluate",
	    "{\"expression\":$s,\"contextId\":$d,\"awaitPromise\":true,\"returnByValue\":$r,"
	    "\"timeout\":$d,\"objectGroup\":\"handrail\"}",
	    code, context, by_value ? "true" : "false", (int64_t)EVAL_MS);
}

struct br_answer *
br_eval_end(struct browser *b, struct br_asking *a)
{
	return look_for_exception(b, br_ask_end(b, a));
}

struct br_answer *
br_eval(struct browser *b, const char *session, int64_t context, const char *code, bool by_value)
{
	struct br_asking a;

	if (context == 0) {
		(void)hr_err_set(&b->err, HR_E_NOTFOUND, "the document takes no script");
		return NULL;
	}
	br_eval_begin(b, &a, session, context, code, by_value);
	return br_eval_end(b, &a);
}

struct br_answer *
br_call_on(struct browser *b, const char *session, const char *object, const char *function,
    const char *args)
{
	HR_BUF(code, 64u << 20);

	hr_buf_addf(&code, "function(){return handrail.%s(this%s%s)}", function,
	    args[0] != '\0' ? "," : "", args);
	if (hr_buf_check(&code, &b->err) != 0)
		return NULL;
	return look_for_exception(
	    b, br_ask(b, session, "Runtime.callFunctionOn",
		   "{\"functionDeclaration\":$s,\"objectId\":$s,\"awaitPromise\":true,"
		   "\"returnByValue\":true,\"objectGroup\":\"handrail\"}",
		   hr_buf_str(&code), object));
}

uint32_t
br_value(const struct br_answer *a)
{
	return br_tape_at(&a->tape, br_at(a, "result"), "value");
}
