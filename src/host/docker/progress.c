/* Reads an Engine's messages about its work: JSON objects, one a line. */
#include "config.h"

#include "host/docker/progress.h"

#include <stdio.h>
#include <string.h>

#include "proto/json.h"

#define BUILD_SILENCE_S 1800 /* seconds without a byte of output */
#define LINE_MAX_BYTES (1u << 20)

struct messages {
	hr_engine_message_fn *fn;
	void *arg;
	struct hr_buf line;
	char failed[400]; /* the Engine's last error; "": none */
};

/* Handles a message. One that does not fit counts as an error, since it may be one. */
static void
take_line(struct messages *m)
{
	HR_PUT struct json_object *o = NULL;
	struct json_object *error;
	const char *text;

	if (hr_buf_check(&m->line, NULL) < 0)
		(void)snprintf(m->failed, sizeof(m->failed),
		    "a message of the Engine is longer than %u bytes", LINE_MAX_BYTES);
	else if (m->line.len > 0 && hr_json_decode_foreign(m->line.p, m->line.len, &o, NULL) == 0) {
		error = hr_json_at(o, "error");
		text = hr_json_text(error);
		if (error != NULL && (text == NULL || *text != '\0'))
			(void)snprintf(m->failed, sizeof(m->failed), "%s",
			    text != NULL ? text : "an error without a message");
		m->fn(m->arg, o, m->failed);
	}
	hr_buf_reset(&m->line);
}

static int
on_bytes(void *arg, const char *s, size_t len)
{
	struct messages *m = arg;

	for (; len > 0; s++, len--) {
		if (*s == '\n')
			take_line(m);
		else
			hr_buf_addc(&m->line, *s);
	}
	return 0;
}

int
hr_engine_messages(struct hr_engine *e, const char *path, hr_http_source_fn *source,
    void *source_arg, hr_engine_message_fn *fn, void *fn_arg, enum hr_errc code, struct hr_err *err)
{
	struct messages m = {.fn = fn, .arg = fn_arg};
	int r;

	hr_buf_init(&m.line, LINE_MAX_BYTES);
	r = hr_engine_stream(e, "POST", path, source, source_arg, on_bytes, &m,
	    source != NULL ? BUILD_SILENCE_S : 0, err);
	take_line(&m);
	hr_buf_done(&m.line);
	/* a status of 200 only means that the work was started */
	return r == 0 && m.failed[0] != '\0' ? hr_err_set(err, code, "%s", m.failed) : r;
}

/* ---- lines that people read ---- */

/* Output of a build step arrives in pieces of any length; the Engine colours those of its
 * stderr. */
#define RED "\033[91m"
#define PLAIN "\033[0m"

struct progress {
	hr_engine_say_fn *say;
	void *say_arg;
	struct hr_buf said; /* a step's output after its last complete line */
};

static void
say(const struct progress *p, const char *text)
{
	if (p->say != NULL)
		p->say(p->say_arg, text);
}

static void
say_step(struct progress *p, const char *text)
{
	size_t len = strlen(text);
	const char *end;

	if (strncmp(text, RED, strlen(RED)) == 0) {
		text += strlen(RED);
		len -= strlen(RED);
		if (len >= strlen(PLAIN) && strcmp(text + len - strlen(PLAIN), PLAIN) == 0)
			len -= strlen(PLAIN);
	}
	for (; (end = memchr(text, '\n', len)) != NULL; text = end + 1) {
		hr_buf_add(&p->said, text, (size_t)(end - text));
		len -= (size_t)(end - text) + 1;
		say(p, hr_buf_str(&p->said));
		hr_buf_reset(&p->said);
	}
	hr_buf_add(&p->said, text, len);
}

static void
on_message(void *arg, struct json_object *o, const char *failed)
{
	struct progress *p = arg;
	const char *text = NULL;

	if (hr_json_at(o, "error") != NULL)
		text = failed;
	else if (hr_json_at(o, "stream") != NULL)
		say_step(p, hr_json_text_or(o, "stream", ""));
	else
		text = hr_json_text_at(o, "status");
	if (text != NULL)
		say(p, text);
}

int
hr_engine_progress(struct hr_engine *e, const char *path, hr_http_source_fn *source,
    void *source_arg, hr_engine_say_fn *fn, void *fn_arg, struct hr_err *err)
{
	struct progress p = {.say = fn, .say_arg = fn_arg};
	int r;

	hr_buf_init(&p.said, LINE_MAX_BYTES);
	r = hr_engine_messages(e, path, source, source_arg, on_message, &p, HR_E_BUILD, err);
	if (p.said.len > 0)
		say(&p, hr_buf_str(&p.said));
	hr_buf_done(&p.said);
	return r;
}
