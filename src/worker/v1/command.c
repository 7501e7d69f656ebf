/* Keeps commands of the V1 API in files. RUN/v1/ID has `request`, `out`, `err` and `status`: the
 * start in microseconds since 1970 and then, once the command has ended, its exit code and the end.
 * handrail-bound, which minds the command, locks `status` until then: without the lock and without
 * an end it was killed. The directory is locked while its minder runs. A directory
 * whose name ends with ~ is that of a command that was not started (see struct hr_exec_request).
 * Only the server reaches these directories. */
#include "config.h"

#include "worker/v1/command.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text/utf8.h"
#include "worker/v1/bound.h"

#define REQUEST_MAX (HR_JSON_BODY_MAX + 1024u)

/* ---- ids ---- */

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
			m->id[0] = '\0';
			return false;
		}
	}
	m->id[i] = '\0';
	return j == s.len && strcmp(m->id + i - 4, "0000") == 0;
}

/* ---- states ---- */

char *
hr_v1_path(const struct hr_worker *w, const char *id, const char *rest)
{
	char *path;

	return asprintf(&path, "%s/v1/%s%s", w->run_dir, id, rest) < 0 ? NULL : path;
}

static int
directory(const struct hr_rex_call *c, const char *id)
{
	HR_FREE char *path = hr_v1_path(c->w, id, "");

	return path != NULL ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

/* Reads the state. Returns the number of fields in the file. */
static int
read_status(int fd, struct hr_v1_state *ret)
{
	char text[160];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	int fields;

	text[n > 0 ? n : 0] = '\0';
	fields = sscanf(
	    text, "%" SCNd64 " %" SCNd64 " %" SCNd64, &ret->started_us, &ret->code, &ret->ended_us);
	ret->over = fields == 3 && strchr(text, '\n') != NULL;
	return fields;
}

/* Records the end of a command whose minder was killed, so that all see the same end. A full disk
 * may cut the record: without its line feed, the next caller writes it again. */
static void
record_loss(const char *path, struct hr_v1_state *io)
{
	HR_CLOSE int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	HR_BUF(text, 160);

	io->code = HR_BOUND_NO_CODE;
	io->ended_us = hr_wall_ns() / 1000;
	io->over = true;
	hr_buf_addf(
	    &text, "%" PRId64 " %d %" PRId64 "\n", io->started_us, HR_BOUND_NO_CODE, io->ended_us);
	if (fd >= 0)
		(void)hr_fd_write_full(fd, hr_buf_str(&text), text.len, NULL);
}

int
hr_v1_look(const struct hr_rex_call *c, const char *id, struct hr_v1_state *ret)
{
	HR_FREE char *path = hr_v1_path(c->w, id, "/status");
	/* not for writing: the end of that is an event for those that wait for the minder's */
	HR_CLOSE int fd =
	    path != NULL ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (read_status(fd, ret) < 1)
		return 0;
	/* the minder writes before it releases the lock */
	if (!ret->over && flock(fd, LOCK_EX | LOCK_NB) == 0 && read_status(fd, ret) > 0 &&
	    !ret->over)
		record_loss(path, ret);
	return 1;
}

bool
hr_v1_is_minded(const struct hr_rex_call *c, const char *id)
{
	HR_CLOSE int dir = directory(c, id);

	return dir >= 0 && flock(dir, LOCK_SH | LOCK_NB) < 0;
}

uint64_t
hr_v1_bytes(const struct hr_rex_call *c, const char *id)
{
	static const char *const files[] = {"/out", "/err"};
	uint64_t bytes = 0;
	struct stat st;
	size_t i;

	for (i = 0; i < 2; i++) {
		HR_FREE char *path = hr_v1_path(c->w, id, files[i]);

		if (path != NULL && lstat(path, &st) == 0)
			bytes += (uint64_t)st.st_size;
	}
	return bytes;
}

static int
earlier(const void *a, const void *b)
{
	const struct hr_v1_entry *x = a, *y = b;

	if (x->state.started_us != y->state.started_us)
		return x->state.started_us < y->state.started_us ? -1 : 1;
	return strcmp(x->m.id, y->m.id);
}

size_t
hr_v1_list(const struct hr_rex_call *c, struct hr_buf *list)
{
	HR_CLOSEDIR DIR *d = hr_dir_take(directory(c, ""));
	struct hr_v1_entry one;
	struct dirent *e;
	size_t n;

	while (d != NULL && (e = hr_dir_next(d)) != NULL)
		if (hr_v1_parse_id(&one.m, hr_span_of(e->d_name)) &&
		    hr_v1_look(c, one.m.id, &one.state) > 0)
			hr_buf_add(list, &one, sizeof(one));
	n = list->fail == HR_OK ? list->len / sizeof(one) : 0;
	if (n > 0)
		qsort(list->p, n, sizeof(one), earlier);
	return n;
}

bool
hr_v1_remove(const struct hr_rex_call *c, const char *id)
{
	HR_FREE char *path = hr_v1_path(c->w, id, "");

	return path != NULL && hr_path_remove(path, NULL) == 0;
}

/* ---- the files ---- */

static int
make_file(const struct hr_rex_call *c, int dir, const char *file, const struct hr_buf *text)
{
	HR_CLOSE int fd =
	    openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	if (text != NULL)
		return hr_fd_write_full(fd, hr_buf_str(text), text->len, NULL);
	/* the command may open its output again, as /dev/stdout */
	return geteuid() == 0 ? fchown(fd, c->w->shell_uid, (gid_t)-1) : 0;
}

int
hr_v1_make_files(const struct hr_rex_call *c, const char *id, const struct hr_buf *request)
{
	HR_FREE char *path = hr_v1_path(c->w, id, "~");
	HR_CLOSE int dir = -1;
	HR_BUF(start, 64);

	hr_buf_addf(&start, "%" PRId64 " ", hr_wall_ns() / 1000);
	if (path == NULL || mkdir(path, 0700) < 0)
		return -1;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir < 0 || make_file(c, dir, "out", NULL) < 0 ||
		       make_file(c, dir, "err", NULL) < 0 ||
		       make_file(c, dir, "request", request) < 0 ||
		       make_file(c, dir, "status", &start) < 0
		   ? -1
		   : 0;
}

int
hr_v1_stop_file(const struct hr_rex_call *c, const char *id)
{
	HR_CLOSE int dir = directory(c, id);
	HR_CLOSE int fd = -1;

	if (dir >= 0)
		fd = openat(dir, HR_BOUND_STOP, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : 0;
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
hr_v1_streams_open(const struct hr_rex_call *c, const char *id, struct hr_v1_streams *s)
{
	HR_CLOSE int dir = directory(c, id);

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
		hr_buf_addf(b, ",\"exit_code\":%" PRId64, *code == HR_BOUND_NO_CODE ? -1 : *code);
	else
		hr_buf_adds(b, ",\"exit_code\":null");
	put_text(b, "stdout", out);
	put_text(b, "stderr", err);
	hr_buf_adds(b, ",\"kind\":\"BashOutput\"}");
}

/* Returns the object, owned by the caller, or NULL. Programs of the shell's account may have
 * replaced the file. */
static struct json_object *
read_request(const struct hr_rex_call *c, const char *id)
{
	HR_CLOSE int dir = directory(c, id);
	uint64_t size;
	HR_CLOSE int fd = open_file(dir, "request", REQUEST_MAX, &size);
	HR_BUF(text, REQUEST_MAX);
	struct json_object *o = NULL;

	if (fd >= 0 && hr_path_read_fd(fd, "request", &text, NULL) == 0)
		(void)hr_json_decode(hr_buf_str(&text), text.len, &o, NULL);
	return o;
}

bool
hr_v1_find(const struct hr_rex_call *c, struct hr_span key, struct hr_v1_command *ret)
{
	HR_BUF(list, HR_V1_LIST_MAX);
	size_t n = hr_v1_list(c, &list);
	const struct hr_v1_entry *e = (const struct hr_v1_entry *)(const void *)list.p;
	bool found = false;

	for (; n > 0 && !found; n--, e++) {
		HR_PUT struct json_object *o = read_request(c, e->m.id);

		found = key.len > 0 && hr_span_equal(hr_json_span_or(o, "key", ""), key);
		if (found)
			*ret = e->m;
	}
	return found;
}

void
hr_v1_put_command(
    struct hr_buf *b, const struct hr_rex_call *c, const struct hr_v1_command *m, int64_t ms)
{
	HR_PUT struct json_object *o = read_request(c, m->id);
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
