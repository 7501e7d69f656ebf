/* Handles actions, observations and command output of back-ends without a server. */
#include "config.h"

#include "host/direct/direct_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "proto/json.h"
#include "proto/obs.h"
#include "shell/text.h"

#define KEEP (1u << 20)    /* bytes kept of each end of long output, far more than is shown */
#define LINE_MAX_LEN 65536 /* bytes passed to a subscriber at once */
#define PIECE 65536

/* ---- shared helpers ---- */

int
hr_direct_act(
    void *self, hr_direct_perform_fn *perform, const char *text, char **ret, struct hr_err *err)
{
	HR_PUT struct json_object *action = NULL;
	struct hr_err mine = {0};

	if (hr_json_decode(text, strlen(text), &action, NULL) < 0)
		return hr_err_set(err, HR_E_INVAL, "the action is not JSON");
	*ret = perform(self, action, &mine);
	/* reports a refusal to the agent */
	if (*ret == NULL && mine.code == HR_E_PERMISSION)
		*ret = hr_direct_error("", &mine, "%s", mine.msg);
	if (*ret == NULL && err != NULL)
		*err = mine;
	return *ret != NULL ? 0 : -1;
}

bool
hr_direct_is_true(struct json_object *o, const char *name)
{
	struct json_object *v = hr_json_at(o, name);

	return json_object_is_type(v, json_type_string)
		   ? strcmp(json_object_get_string(v), "true") == 0
		   : json_object_get_boolean(v);
}

char *
hr_direct_error(const char *id, struct hr_err *err, const char *fmt, ...)
{
	struct hr_obs_extra extras[] = {
	    {.name = "error_id", .kind = HR_OBS_STR, .str = {id, strlen(id)}}};
	struct hr_obs o = {
	    .type = "error", .extras = extras, .extras_n = 1, .bad = HR_JSON_REPLACE};
	HR_BUF(b, HR_DIRECT_TEXT_MAX);
	HR_FREE char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return hr_err_null(err);
	o.content = (struct hr_span){text, (size_t)n};
	o.message[0] = o.content;
	if (hr_obs_put(&b, &o) != 0)
		b.fail = HR_E_NOMEM;
	return hr_buf_end(&b, err);
}

/* ---- output ---- */

void
hr_direct_said_init(struct hr_direct_said *s, const struct hr_backend_host *h)
{
	*s = (struct hr_direct_said){.h = h};
	hr_buf_init(&s->text, 8 * (size_t)KEEP);
	hr_buf_init(&s->line, 2 * LINE_MAX_LEN + PIECE);
}

void
hr_direct_said_done(struct hr_direct_said *s)
{
	hr_buf_done(&s->text);
	hr_buf_done(&s->line);
}

/* Keeps both ends of output that is too long. */
static void
keep(struct hr_direct_said *s, const char *p, size_t n)
{
	size_t over;

	hr_buf_add(&s->text, p, n);
	if (s->text.fail != HR_OK || s->text.len < 4 * (size_t)KEEP)
		return;
	over = s->text.len - 2 * (size_t)KEEP;
	memmove(s->text.p + KEEP, s->text.p + KEEP + over, KEEP);
	s->text.len = 2 * (size_t)KEEP;
	s->cut = true;
}

static void
tell(struct hr_direct_said *s, const char *p, size_t n)
{
	const char *end;
	size_t part;

	if (s->h->output == NULL)
		return;
	for (; n > 0; p += part, n -= part) {
		end = memchr(p, '\n', n);
		part = end != NULL ? (size_t)(end - p) + 1 : n;
		hr_buf_add(&s->line, p, part);
		if (end != NULL || s->line.len >= LINE_MAX_LEN) {
			s->h->output(s->h->arg, hr_buf_str(&s->line), s->line.len);
			hr_buf_reset(&s->line);
		}
	}
}

void
hr_direct_said_add(struct hr_direct_said *s, const char *p, size_t n)
{
	size_t part;

	for (; n > 0; p += part, n -= part) {
		part = n < PIECE ? n : PIECE;
		keep(s, p, part);
		tell(s, p, part);
	}
}

/* Copies the output with a mark for a dropped middle. A hidden command's output is not shortened
 * for its length alone. */
static int
shorten(struct hr_direct_said *s, bool hidden, struct hr_buf *b)
{
	size_t head = KEEP, tail = KEEP;

	if (!s->cut &&
	    (hidden || !hr_shell_truncation(hr_buf_str(&s->text), s->text.len, &head, &tail))) {
		hr_buf_add(b, hr_buf_str(&s->text), s->text.len);
		return hr_buf_check(b, NULL);
	}
	if (s->cut && !hidden)
		(void)hr_shell_truncation(s->text.p, s->text.len, &head, &tail);
	hr_buf_add(b, s->text.p, head);
	hr_buf_adds(b, hr_shell_truncated_mark);
	hr_buf_add(b, s->text.p + tail, s->text.len - tail);
	return hr_buf_check(b, NULL);
}

char *
hr_direct_observe(struct hr_direct_said *s, const char *command, const char *dir, int code,
    double timed_out_s, bool hidden, struct hr_err *err)
{
	const struct hr_arg said = {.type = HR_PY_BOOL, .number = hidden};
	struct hr_run_result r = {.has_directory = true,
	    .exit_code = code,
	    .pid = -1,
	    .command = hr_span_of(command),
	    .working_dir = hr_span_of(dir)};
	HR_BUF(b, HR_DIRECT_TEXT_MAX);
	HR_BUF(content, HR_DIRECT_TEXT_MAX);
	char suffix[80] = "";

	if (s->line.len > 0 && s->h->output != NULL)
		s->h->output(s->h->arg, s->line.p, s->line.len);
	if (timed_out_s >= 0)
		(void)snprintf(suffix, sizeof(suffix),
		    "[The command timed out after %.1f seconds.]", timed_out_s);
	r.suffix = hr_span_of(suffix);
	if (shorten(s, hidden, &content) != 0)
		b.fail = HR_E_NOMEM;
	r.content = hr_span_of_buf(&content);
	if (b.fail == HR_OK && hr_obs_put_run(&b, &r, &said) != 0)
		b.fail = HR_E_NOMEM;
	return hr_buf_end(&b, err);
}
