/* Reads the state of a command of the V1 API, which its keeper knows, and its two output streams.
 * These are files in the shell's directory in the run directory, where only the server can create
 * files: they outlive workers and are removed with the shell. */
#include "config.h"

#include "worker/v1/command.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text/utf8.h"
#include "proto/channel.h"
#include "worker/live.h"
#include "worker/v1/bound.h"

#define REQUEST_MAX (HR_JSON_BODY_MAX + 1024u)

/* ---- ids ---- */

void
hr_v1_name(struct hr_v1_command *m)
{
	size_t i, n = sizeof(HR_V1_SHELLS) - 1;

	memcpy(m->name, HR_V1_SHELLS, n);
	for (i = 0; n < sizeof(m->name) - 1; i++)
		if (m->id[i] != '-')
			m->name[n++] = m->id[i];
	m->name[n] = '\0';
}

bool
hr_v1_parse_id(struct hr_v1_command *m, struct hr_span s)
{
	static const char form[] = "00000000-0000-0000-0000-000000000000";
	size_t i, j = 0;

	for (i = 0; i < sizeof(form) - 1; i++) {
		if (form[i] == '-') {
			m->id[i] = '-';
			j += j < s.len && s.p[j] == '-';
		} else if (j < s.len && isxdigit((unsigned char)s.p[j])) {
			m->id[i] = (char)tolower((unsigned char)s.p[j++]);
		} else {
			return false;
		}
	}
	m->id[i] = '\0';
	hr_v1_name(m);
	return j == s.len && strcmp(m->id + i - 4, "0000") == 0;
}

struct hr_shell_place
hr_v1_place(const struct hr_rex_call *c, const char *name)
{
	return (struct hr_shell_place){.run_dir = c->w->run_dir, .session = name};
}

int
hr_v1_look(const struct hr_rex_call *c, const char *name, struct hr_buf *frame,
    struct hr_command_state *ret)
{
	const struct hr_shell_place place = hr_v1_place(c, name);
	struct hr_command_state list[HR_COMMANDS_MAX];
	struct hr_v1_command m;
	struct hr_err err = {0};
	size_t n = 0;

	hr_buf_reset(frame);
	if (hr_shell_commands(&place, frame, list, &n, &err) < 0)
		return err.code == HR_E_NOTFOUND ? 0 : -1;
	if (n == 0)
		return 0;
	*ret = list[0];
	return hr_v1_parse_id(&m, list[0].key) && strcmp(m.name, name) == 0;
}

void
hr_v1_walk_init(struct hr_v1_walk *w, struct hr_rex_call *c)
{
	HR_CLEAN(hr_answer_done) struct hr_answer inner;

	w->c = c;
	w->at = 0;
	hr_buf_init(&w->names, HR_CHANNEL_ANSWER_MAX);
	hr_buf_init(&w->frame, HR_FRAME_MAX);
	hr_answer_init(&inner);
	if (!hr_live_names(c->w, &w->names, &inner))
		w->names.len = 0;
}

void
hr_v1_walk_done(struct hr_v1_walk *w)
{
	hr_buf_done(&w->names);
	hr_buf_done(&w->frame);
}

const char *
hr_v1_walk_next(struct hr_v1_walk *w, struct hr_command_state *ret)
{
	const char *name;

	while (w->at < w->names.len) {
		name = w->names.p + w->at;
		w->at += strlen(name) + 1;
		if (strncmp(name, HR_V1_SHELLS, sizeof(HR_V1_SHELLS) - 1) == 0 &&
		    hr_v1_look(w->c, name, &w->frame, ret) > 0)
			return name;
	}
	return NULL;
}

static long long
limit_of(const struct hr_command_state *s)
{
	long long limit = 0;
	char head[40];

	(void)snprintf(head, sizeof(head), "%.*s", (int)s->text.len, s->text.p);
	return sscanf(head, HR_V1_LIMIT_HEAD, &limit) == 1 ? limit : 0;
}

/* Returns the exit code; timeout(1) exits with 124, or 137 after SIGKILL. */
int64_t
hr_v1_exit_code(const struct hr_command_state *s)
{
	bool late = s->elapsed >= limit_of(s) * 1000;

	return s->end == HR_COMMAND_SHELL_ENDED                       ? -1
	       : late && (s->exit_code == 124 || s->exit_code == 137) ? -1
								      : s->exit_code;
}

/* ---- the two files ---- */

static int
directory(const struct hr_rex_call *c, const char *name)
{
	char *path;
	int fd = -1;

	if (asprintf(&path, "%s/shell/%s", c->w->run_dir, name) >= 0) {
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		free(path);
	}
	return fd;
}

static int
make_file(const struct hr_rex_call *c, int dir, const char *file)
{
	HR_CLOSE int fd =
	    openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 || (geteuid() == 0 && fchown(fd, c->w->shell_uid, (gid_t)-1) < 0) ? -1 : 0;
}

int
hr_v1_make_files(const struct hr_rex_call *c, const char *name, const struct hr_buf *request)
{
	HR_CLOSE int dir = directory(c, name);
	HR_CLOSE int fd =
	    dir < 0 || make_file(c, dir, "out") < 0 || make_file(c, dir, "err") < 0
		? -1
		: openat(dir, "request", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -1 : hr_fd_write_full(fd, request->p, request->len, NULL);
}

static int
open_file(int dir, const char *file, uint64_t most, uint64_t *ret_size)
{
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	*ret_size = 0;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		*ret_size = (uint64_t)st.st_size;
	else
		hr_fd_close(&fd); /* the shell's user may have removed the file: return no output */
	if (*ret_size > most)     /* handrail-bound is about to truncate the file */
		*ret_size = most;
	return fd;
}

void
hr_v1_streams_open(const struct hr_rex_call *c, const char *name, struct hr_v1_streams *s)
{
	HR_CLOSE int dir = directory(c, name);

	s->out = open_file(dir, "out", HR_BOUND_BYTES, &s->out_size);
	s->err = open_file(dir, "err", HR_BOUND_BYTES + sizeof(HR_BOUND_NOTE) - 1, &s->err_size);
}

void
hr_v1_streams_close(struct hr_v1_streams *s)
{
	hr_fd_close(&s->out);
	hr_fd_close(&s->err);
}

static bool
is_middle(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

void
hr_v1_put_part(struct hr_buf *text, int fd, uint64_t from, uint64_t to)
{
	uint64_t begin = from < 3 ? 0 : from - 3;
	size_t head = (size_t)(from - begin), len, back, i;
	HR_BUF(raw, (size_t)(to - begin) + 2);
	ssize_t n = -1;
	char *p;

	if (fd < 0 || from >= to)
		return;
	p = hr_buf_reserve(&raw, (size_t)(to - begin) + 1);
	if (p != NULL)
		n = pread(fd, p, (size_t)(to - begin) + 1, (off_t)begin);
	if (p == NULL)
		text->fail = raw.fail;
	len = n > 0 ? (size_t)n : 0;
	/* the byte after the end shows whether a character is cut there; the same holds at the
	 * start */
	i = head;
	for (back = 0; back < 3 && i > 0 && i < len && is_middle(p[i]); back++)
		i--;
	if (len > (size_t)(to - begin)) {
		len = (size_t)(to - begin);
		for (back = 0; back < 3 && len > i && is_middle(p[len]); back++)
			len--;
	}
	if (i < len)
		hr_utf8_replace(text, p + i, len - i);
}

/* ---- events ---- */

void
hr_v1_put_time(struct hr_buf *b, int64_t ms)
{
	char text[HR_WALL_TEXT];

	hr_wall_text(ms, text);
	hr_buf_addf(b, "\"timestamp\":\"%s\"", text);
}

static void
put_text(struct hr_buf *b, const char *name, const struct hr_buf *text)
{
	hr_buf_addf(b, ",\"%s\":", name);
	if (text->len > 0)
		(void)hr_json_put_str(b, hr_buf_str(text), text->len, HR_JSON_REPLACE);
	else
		hr_buf_adds(b, "null");
	if (text->fail != HR_OK)
		b->fail = text->fail;
}

void
hr_v1_put_id(struct hr_buf *b, const struct hr_v1_command *m, uint64_t order)
{
	hr_buf_addf(b, "\"%.*s%04" PRIx64 "\"", HR_V1_ID - 5, m->id, (order + 1) & 0xffff);
}

void
hr_v1_put_output(struct hr_buf *b, const struct hr_v1_command *m, uint64_t order,
    const int64_t *code, const struct hr_buf *out, const struct hr_buf *err, int64_t ms)
{
	hr_buf_adds(b, "{\"id\":");
	hr_v1_put_id(b, m, order);
	hr_buf_addc(b, ',');
	hr_v1_put_time(b, ms);
	hr_buf_addf(b, ",\"command_id\":\"%s\",\"order\":%" PRIu64, m->id, order);
	if (code != NULL)
		hr_buf_addf(b, ",\"exit_code\":%" PRId64, *code);
	else
		hr_buf_adds(b, ",\"exit_code\":null");
	put_text(b, "stdout", out);
	put_text(b, "stderr", err);
	hr_buf_adds(b, ",\"kind\":\"BashOutput\"}");
}

/* Returns the object, owned by the caller, or NULL. Programs of the shell's account may have
 * replaced the file. */
static struct json_object *
read_request(const struct hr_rex_call *c, const char *name)
{
	HR_CLOSE int dir = directory(c, name);
	uint64_t size;
	HR_CLOSE int fd = open_file(dir, "request", REQUEST_MAX, &size);
	HR_BUF(text, REQUEST_MAX);
	struct json_object *o = NULL;

	if (fd >= 0 && hr_path_read_fd(fd, "request", &text, NULL) == 0)
		(void)hr_json_decode(hr_buf_str(&text), text.len, &o, NULL);
	return o;
}

void
hr_v1_put_command(
    struct hr_buf *b, const struct hr_rex_call *c, const struct hr_v1_command *m, int64_t ms)
{
	HR_PUT struct json_object *o = read_request(c, m->name);
	struct json_object *cwd = hr_json_at(o, "cwd");
	struct hr_span none = {NULL, 0};

	hr_buf_addf(b, "{\"id\":\"%s\",", m->id);
	hr_v1_put_time(b, ms);
	hr_json_put_member(b, "command", hr_json_span_or(o, "command", ""));
	hr_json_put_member(
	    b, "cwd", hr_json_type(cwd) == HR_PY_STR ? hr_json_span_or(o, "cwd", "") : none);
	hr_buf_addf(
	    b, ",\"timeout\":%" PRId64 ",\"kind\":\"BashCommand\"}", hr_json_int_at(o, "timeout"));
}

void
hr_v1_put_event(struct hr_buf *b, const struct hr_v1_command *m, const struct hr_v1_streams *s,
    const struct hr_v1_event *e, int64_t ms)
{
	HR_BUF(out, HR_ANSWER_MAX);
	HR_BUF(err, HR_ANSWER_MAX);

	hr_v1_put_part(&out, s->out, e->out_from, e->out_to);
	hr_v1_put_part(&err, s->err, e->err_from, e->err_to);
	hr_v1_put_output(b, m, e->order, e->code, &out, &err, ms);
}
