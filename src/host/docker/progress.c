/* Implements hr_engine_progress: see its header. */
#include "config.h"

#include "host/docker/progress.h"

#include <string.h>

#include <json-c/json_object.h>

#include "proto/json.h"

#define BUILD_SILENCE_S 1800 /* seconds without a byte of output */
#define LINE_MAX_BYTES (1u << 20)

/* The state of reading the answer. Progress and errors are JSON objects, one a line. Output of a
 * build step arrives in pieces of any length; the Engine colours those of its stderr. */
#define RED "\033[91m"
#define PLAIN "\033[0m"

struct progress {
	hr_engine_say_fn *say;
	void *say_arg;
	struct hr_buf line;
	struct hr_buf said; /* a step's output after its last complete line */
	char failed[400];   /* the Engine's last error; "": none */
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
progress_line(struct progress *p)
{
	HR_PUT struct json_object *o = NULL;
	const char *text = NULL;

	if (p->line.len > 0 && hr_json_decode_foreign(p->line.p, p->line.len, &o, NULL) == 0) {
		hr_engine_told_error(o, p->failed, sizeof(p->failed));
		if (hr_json_at(o, "error") != NULL)
			text = p->failed;
		else if (hr_json_at(o, "stream") != NULL)
			say_step(p, hr_json_text_or(o, "stream", ""));
		else
			text = hr_json_text_at(o, "status");
	}
	if (text != NULL)
		say(p, text);
	hr_buf_reset(&p->line);
}

static int
on_progress(void *arg, const char *s, size_t len)
{
	struct progress *p = arg;

	for (; len > 0; s++, len--) {
		if (*s == '\n')
			progress_line(p);
		else
			hr_buf_addc(&p->line, *s);
	}
	return 0;
}

int
hr_engine_progress(struct hr_engine *e, const char *path, hr_http_source_fn *source,
    void *source_arg, hr_engine_say_fn *fn, void *fn_arg, struct hr_err *err)
{
	struct progress p = {.say = fn, .say_arg = fn_arg};
	int r;

	hr_buf_init(&p.line, LINE_MAX_BYTES);
	hr_buf_init(&p.said, LINE_MAX_BYTES);
	r = hr_engine_stream(e, "POST", path, source, source_arg, on_progress, &p,
	    source != NULL ? BUILD_SILENCE_S : 0, err);
	progress_line(&p);
	if (p.said.len > 0)
		say(&p, hr_buf_str(&p.said));
	hr_buf_done(&p.said);
	hr_buf_done(&p.line);
	/* a status of 200 only means that the work was started */
	if (r == 0 && p.failed[0] != '\0')
		r = hr_err_set(err, HR_E_BUILD, "%s", p.failed);
	return r;
}
