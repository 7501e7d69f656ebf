/* Sends archives of directories. handrail-git makes them with the rights of the shell's account,
 * beside the shell; its first line has the answer's headers, and the rest is passed on as it
 * comes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "base/text/percent.h"
#include "shell/quote.h"
#include "worker/live.h"
#include "worker/v1/command.h"

#define LIMIT_S 3600
#define SILENCE_S 300    /* git may wait for ever: its hooks and files are the agent's */
#define PATTERNS_MAX 187 /* handrail-git takes 200 with those below */
#define PATTERN_MAX 4096
#define TEXT_MAX (2u << 20)
/* the characters of headers; others are encoded */
#define PRINTABLE " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

static const char *const usual[] = {".git/", "node_modules/", ".venv/", "venv/", "__pycache__/",
    ".mypy_cache/", ".pytest_cache/", ".ruff_cache/", "dist/", "build/", ".next/", "target/",
    "*.pyc", NULL};

struct archive {
	int fd;
	struct hr_buf frame, out, errors;
	int64_t code;
	bool begun, ended;
};

static void
archive_free(void *arg)
{
	struct archive *a = arg;

	hr_fd_close(&a->fd);
	hr_buf_done(&a->frame);
	hr_buf_done(&a->out);
	hr_buf_done(&a->errors);
	free(a);
}

/* Takes the next output into a->out. Returns 0, or -1 with *err set. */
static int
take(struct archive *a, struct hr_err *err)
{
	struct hr_buf *const streams[2] = {&a->out, &a->errors};
	int r = hr_shell_exec_take(a->fd, &a->frame, streams, &a->code, &a->begun, err);

	a->ended = r == 0;
	if (a->ended && a->code != 0)
		return hr_err_set(
		    err, HR_E_GONE, "the archive is not whole: %.200s", hr_buf_str(&a->errors));
	return r < 0 ? -1 : 0;
}

static int
send_rest(void *arg, struct hr_sink *sink, struct hr_err *err)
{
	struct archive *a = arg;

	for (;;) {
		if (a->out.len > 0 && sink->write(sink, a->out.p, a->out.len) < 0)
			return -1;
		hr_buf_reset(&a->out);
		if (a->ended)
			return 0;
		if (take(a, err) < 0)
			return -1;
	}
}

/* ---- the command ---- */

static bool
put_pattern(struct hr_rex_call *c, struct hr_buf *text, const struct hr_buf *pattern)
{
	if (pattern->fail != HR_OK || strlen(hr_buf_str(pattern)) != pattern->len)
		return hr_answer_detail(
		    c->ret, 422, "exclude: must have at most 4096 bytes, none of them null");
	hr_buf_addc(text, ' ');
	hr_shell_quote(text, hr_buf_str(pattern), pattern->len);
	return true;
}

/* Appends the command. Returns false after sending an error. */
static bool
put_command(
    struct hr_rex_call *c, const struct hr_buf *path, bool tar, bool excludes, struct hr_buf *text)
{
	HR_BUF(ref, PATTERN_MAX);
	HR_BUF(one, PATTERN_MAX);
	size_t i;

	hr_shell_quote(text, c->w->libexec_dir, strlen(c->w->libexec_dir));
	hr_buf_addf(text, "/handrail-git v1-archive %s ", tar ? "tar.gz" : "git-delta");
	hr_shell_quote(text, path->p, path->len);
	if (hr_request_query(c->r, "base_ref", &ref)) {
		if (ref.fail != HR_OK || strlen(hr_buf_str(&ref)) != ref.len)
			return hr_answer_detail(
			    c->ret, 422, "base_ref must be the name of a commit");
		hr_buf_adds(text, " --ref=");
		hr_shell_quote(text, hr_buf_str(&ref), ref.len);
	}
	hr_buf_adds(text, " --");
	for (i = 0; excludes && usual[i] != NULL; i++)
		hr_buf_addf(text, " '%s'", usual[i]);
	for (i = 0; hr_request_query_at(c->r, "exclude", i, &one); i++) {
		if (i == PATTERNS_MAX)
			return hr_answer_detail(c->ret, 422, "exclude: too many patterns");
		if (!put_pattern(c, text, &one))
			return false;
		hr_buf_reset(&one);
	}
	return hr_buf_check(text, NULL) == 0 || hr_answer_generic(c->ret);
}

/* ---- the answer ---- */

static void
put_headers(struct hr_rex_call *c, struct json_object *head, bool tar)
{
	static const char *const names[] = {"X-Archive-Repo-Remote", "X-Archive-Branch",
	    "X-Archive-Head-Commit", "X-Archive-Repo-Root", "X-Archive-Base-Commit",
	    "X-Archive-Base-Ref"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = hr_json_text_at(head, names[i]);
		HR_BUF(text, TEXT_MAX);

		if (value == NULL)
			continue;
		hr_percent_encode(&text, value, PRINTABLE);
		hr_answer_header(c->ret, names[i], hr_buf_str(&text));
	}
	hr_answer_disposition(c->ret, hr_json_text_at(head, "name"), "");
	c->ret->content_type = tar ? "application/gzip" : "text/x-patch; charset=utf-8";
}

/* Reads the first line. Returns its object, owned by the caller, or NULL after sending an error. */
static struct json_object *
read_head(struct hr_rex_call *c, struct archive *a, struct hr_err *err)
{
	struct json_object *head = NULL;
	const char *end = NULL, *detail;
	int r = a->fd < 0 ? -1 : 0, status;

	while (r == 0 && !a->ended && end == NULL) {
		r = take(a, err);
		end = memchr(hr_buf_str(&a->out), '\n', a->out.len);
	}
	if (!a->begun) {
		(void)hr_live_refuse(c->ret, err);
		return NULL;
	}
	if (end != NULL && hr_json_decode(a->out.p, (size_t)(end - a->out.p), &head, NULL) == 0)
		hr_buf_drop_front(&a->out, (size_t)(end - a->out.p) + 1);
	detail = hr_json_text_at(head, "detail");
	status = (int)hr_json_int_at(head, "status");
	if (hr_json_text_at(head, "name") != NULL)
		return head;
	if (detail != NULL)
		hr_answer_detail(c->ret, status == 400 || status == 404 ? status : 500, detail);
	else
		hr_answer_detail(c->ret, 500, "Failed to archive directory");
	json_object_put(head);
	return NULL;
}

void
hr_v1_archive(struct hr_rex_call *c, const struct hr_buf *path, bool tar, bool excludes)
{
	const struct hr_shell_place place = {.run_dir = c->w->run_dir};
	const struct timeval silence = {.tv_sec = SILENCE_S};
	struct hr_stream s = {.send = send_rest, .done = archive_free, .length = -1};
	HR_PUT struct json_object *head = NULL;
	struct hr_exec_request req = {.limit_s = LIMIT_S, .working_dir = {"", 0}};
	HR_BUF(text, TEXT_MAX);
	struct hr_err err = {0};
	struct archive *a;

	if (!put_command(c, path, tar, excludes, &text))
		return;
	req.command = hr_span_of_buf(&text);
	a = calloc(1, sizeof(*a));
	if (a == NULL) {
		hr_answer_generic(c->ret);
		return;
	}
	hr_buf_init(&a->frame, HR_SHELL_FRAME);
	hr_buf_init(&a->out, TEXT_MAX);
	hr_buf_init(&a->errors, TEXT_MAX);
	a->fd = hr_shell_exec_open(&place, &req, &err);
	a->begun = a->fd >= 0;
	if (a->begun)
		(void)setsockopt(a->fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
	head = read_head(c, a, &err);
	if (head == NULL) {
		archive_free(a);
		return;
	}
	put_headers(c, head, tar);
	s.arg = a;
	hr_answer_stream(c->ret, &s);
}

void
hr_v1_trajectory(struct hr_rex_call *c)
{
	struct hr_span id = c->rest;
	const struct hr_v1_input in = {"path", "conversation_id", id};

	if (id.len == 0 || memchr(id.p, '/', id.len) != NULL)
		hr_answer_detail(c->ret, 404, "Not Found");
	else if (hr_v1_uuid(c, &in, &id))
		hr_answer_detail(c->ret, 404, "Conversation not found");
}
