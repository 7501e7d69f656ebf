/* Builds error answers. The generic one is a constant, so that it needs no memory. */
#include "config.h"

#include "proto/httperr.h"

#include <string.h>

#include "proto/json.h"

#define KEEP_MAX (1u << 20) /* a larger buffer is freed after its answer */

static const char json_media[] = "application/json";

static const struct {
	int status;
	const char *reason;
} reasons[] = {
    {200, "OK"},
    {204, "No Content"},
    {206, "Partial Content"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {409, "Conflict"},
    {413, "Request Entity Too Large"},
    {416, "Range Not Satisfiable"},
    {422, "Unprocessable Entity"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {511, "Network Authentication Required"},
};

const char *
hr_answer_reason(int status)
{
	size_t i;

	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

const char hr_answer_unknown[] =
    "The action was started, but its result is not known: the process that did it was killed. "
    "It is not done a second time.";

void
hr_answer_init(struct hr_answer *a)
{
	memset(a, 0, sizeof(*a));
	hr_buf_init(&a->body, HR_ANSWER_MAX);
	hr_buf_init(&a->location, 64 * 1024);
	hr_buf_init(&a->key, 4096);
	hr_buf_init(&a->headers, 256 * 1024);
	hr_answer_reset(a);
}

static void
stream_drop(struct hr_answer *a)
{
	if (a->stream.done != NULL)
		a->stream.done(a->stream.arg);
	memset(&a->stream, 0, sizeof(a->stream));
}

void
hr_answer_done(struct hr_answer *a)
{
	stream_drop(a);
	hr_buf_done(&a->body);
	hr_buf_done(&a->location);
	hr_buf_done(&a->key);
	hr_buf_done(&a->headers);
}

void
hr_answer_reset(struct hr_answer *a)
{
	stream_drop(a);
	if (a->body.room > KEEP_MAX)
		hr_buf_done(&a->body);
	hr_buf_reset(&a->body);
	hr_buf_reset(&a->location);
	hr_buf_reset(&a->headers);
	a->status = 200;
	a->content_type = json_media;
	a->retry_after_s = 0;
	memset(&a->note, 0, sizeof(a->note));
	hr_buf_reset(&a->key);
	a->trace[0] = '\0';
	a->replayed = a->held = false;
}

bool
hr_answer_generic(struct hr_answer *a)
{
	hr_answer_reset(a);
	a->status = 500;
	hr_buf_adds(
	    &a->body, "{\"detail\":\"An unexpected error occurred. Please try again later.\"}");
	return false;
}

void
hr_answer_settle(struct hr_answer *a)
{
	if (a->body.fail != HR_OK || a->location.fail != HR_OK || a->headers.fail != HR_OK)
		hr_answer_generic(a);
}

void
hr_answer_header(struct hr_answer *a, const char *name, const char *value)
{
	const char *p;

	for (p = value; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7F)
			a->headers.fail = HR_E_INVAL;
	hr_buf_addf(&a->headers, "%s: %s\r\n", name, value);
}

void
hr_answer_stream(struct hr_answer *a, const struct hr_stream *s)
{
	stream_drop(a);
	hr_buf_reset(&a->body);
	a->stream = *s;
}

/* Answers {"detail":"<prefix><text>"<more>}. */
static bool
answer_text(struct hr_answer *a, int status, const char *prefix, const char *text, size_t len)
{
	hr_answer_reset(a);
	a->status = status;
	hr_buf_adds(&a->body, "{\"detail\":\"");
	hr_buf_adds(&a->body, prefix);
	if (hr_json_put_text(&a->body, text, len, HR_JSON_REFUSE) < 0)
		return hr_answer_generic(a);
	hr_buf_adds(&a->body, "\"}");
	hr_answer_settle(a);
	return false;
}

bool
hr_answer_detail(struct hr_answer *a, int status, const char *text)
{
	return answer_text(a, status, "", text, strlen(text));
}

bool
hr_answer_later(struct hr_answer *a, const char *text)
{
	(void)hr_answer_detail(a, 503, text);
	a->retry_after_s = 1;
	return false;
}

bool
hr_answer_internal(struct hr_answer *a, const struct hr_buf *text)
{
	if (text->fail != HR_OK)
		return hr_answer_generic(a);
	return answer_text(a, 500, "Internal server error: ", hr_buf_str(text), text->len);
}

bool
hr_answer_invalid(struct hr_answer *a, const struct hr_buf *errors)
{
	hr_answer_reset(a);
	a->status = 422;
	hr_buf_adds(&a->body, "{\"detail\":\"Invalid request parameters\",\"errors\":");
	if (errors->fail != HR_OK ||
	    hr_json_put_str(&a->body, hr_buf_str(errors), errors->len, HR_JSON_REFUSE) < 0)
		return hr_answer_generic(a);
	hr_buf_addc(&a->body, '}');
	hr_answer_settle(a);
	return false;
}
