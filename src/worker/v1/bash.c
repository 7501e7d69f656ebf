/* Commands of the V1 door. Each is the one command of a named shell, with its streams in two files
 * of that shell's directory in the run directory, which only the server can make files in: they
 * outlive workers, and go with the shell. What is known of a command is asked of its keeper. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/random.h"
#include "base/utf8.h"
#include "proto/channel.h"
#include "shell/quote.h"
#include "worker/live.h"
#include "worker/v1/v1.h"

#define NAME "v1-"                /* all of our shells begin with it */
#define DIGITS 28                 /* of the id, behind it; the last four are 0 */
#define KEPT_MS 60000             /* so long a result is kept, and longer where there is room */
#define PIECE ((uint64_t)1 << 20) /* of output, in one event */
#define PAGE 8                    /* events in one answer */
#define WHOLE_MAX ((uint64_t)16 << 20)   /* of each stream in the answer of execute_bash_command */
#define TEXT_MAX (HR_JSON_BODY_MAX * 5u) /* a command in quotes */
#define LIMIT_HEAD "(limit=%lld;"        /* begins the text of a command */
#define LIMIT_MAX 2000000000.0           /* seconds */
#define SOON_S 0.001                     /* the answer to "start" is not waited for */

static const struct hr_rex_field bash_fields[] = {
    {"command", HR_REX_STR, true, false, NULL},
    {"cwd", HR_REX_STR, false, true, NULL},
    {"timeout", HR_REX_INT, false, false, NULL},
    {NULL, HR_REX_STR, false, false, NULL},
};
const struct hr_rex_model hr_v1_bash_model = {NULL, NULL, bash_fields, NULL};

struct command {
	char id[HR_V1_ID];
	char name[sizeof(NAME) + DIGITS];
};

/* ---- ids ---- */

static void
name_of(struct command *m)
{
	size_t i, n = sizeof(NAME) - 1;

	memcpy(m->name, NAME, n);
	for (i = 0; n < sizeof(m->name) - 1; i++)
		if (m->id[i] != '-')
			m->name[n++] = m->id[i];
	m->name[n] = '\0';
}

/* With dashes and without. False: no id of ours. */
static bool
parse_id(struct command *m, struct hr_span s)
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
	name_of(m);
	return j == s.len && strcmp(m->id + i - 4, "0000") == 0;
}

static struct hr_shell_place
place_of(const struct hr_rex_call *c, const char *name)
{
	return (struct hr_shell_place){.run_dir = c->w->run_dir, .session = name};
}

/* The one command of that shell. 1; 0: there is none, or it is no shell of ours: others may give
 * such names, too, and type into ours; -1: it cannot be asked. */
static int
look(const struct hr_rex_call *c, const char *name, struct hr_buf *frame,
    struct hr_command_state *ret)
{
	const struct hr_shell_place place = place_of(c, name);
	struct hr_command_state list[HR_COMMANDS_MAX];
	struct command m;
	struct hr_err err = {0};
	size_t n = 0;

	hr_buf_reset(frame);
	if (hr_shell_commands(&place, frame, list, &n, &err) < 0)
		return err.code == HR_E_NOTFOUND ? 0 : -1;
	*ret = list[0];
	return n > 0 && parse_id(&m, list[0].key) && strcmp(m.name, name) == 0;
}

static long long
limit_of(const struct hr_command_state *s)
{
	long long limit = 0;
	char head[40];

	(void)snprintf(head, sizeof(head), "%.*s", (int)s->text.len, s->text.p);
	return sscanf(head, LIMIT_HEAD, &limit) == 1 ? limit : 0;
}

/* timeout(1) says 124, or 137 where it had to kill. */
static int64_t
exit_code(const struct hr_command_state *s)
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
	int fd = openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 || (geteuid() == 0 && fchown(fd, c->w->shell_uid, (gid_t)-1) < 0) ? -1 : 0;

	hr_fd_close(&fd);
	return r;
}

/* -1 with errno. */
static int
make_files(const struct hr_rex_call *c, const char *name)
{
	int dir = directory(c, name), sys;
	int r = dir < 0 || make_file(c, dir, "out") < 0 || make_file(c, dir, "err") < 0 ? -1 : 0;

	sys = errno;
	hr_fd_close(&dir);
	errno = sys;
	return r;
}

struct streams {
	int out, err;
	uint64_t out_size, err_size;
};

static int
open_file(int dir, const char *file, uint64_t *ret_size)
{
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	*ret_size = 0;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		*ret_size = (uint64_t)st.st_size;
	else
		hr_fd_close(&fd); /* the shell's user may have removed it: nothing was written */
	return fd;
}

static void
streams_open(const struct hr_rex_call *c, const char *name, struct streams *s)
{
	int dir = directory(c, name);

	s->out = open_file(dir, "out", &s->out_size);
	s->err = open_file(dir, "err", &s->err_size);
	hr_fd_close(&dir);
}

static void
streams_close(struct streams *s)
{
	hr_fd_close(&s->out);
	hr_fd_close(&s->err);
}

static bool
is_middle(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Of what stands from one boundary to another: a boundary lies between two characters. */
static void
put_part(struct hr_buf *text, int fd, uint64_t from, uint64_t to)
{
	uint64_t begin = from < 3 ? 0 : from - 3;
	size_t head = (size_t)(from - begin), len, back, i;
	struct hr_buf raw;
	ssize_t n = -1;
	char *p;

	if (fd < 0 || from >= to)
		return;
	hr_buf_init(&raw, (size_t)(to - begin) + 2);
	p = hr_buf_reserve(&raw, (size_t)(to - begin) + 1);
	if (p != NULL)
		n = pread(fd, p, (size_t)(to - begin) + 1, (off_t)begin);
	if (p == NULL)
		text->fail = raw.fail;
	len = n > 0 ? (size_t)n : 0;
	/* the byte behind the end tells whether a character is cut there; so at the beginning */
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
	hr_buf_done(&raw);
}

/* ---- events ---- */

static void
put_time(struct hr_buf *b, int64_t ms)
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

/* Where an output ends, and what its number is; one that goes on has no code. */
struct event {
	uint64_t order, out_from, out_to, err_from, err_to;
	const int64_t *code;
};

/* Another id for each of a command's outputs, and the same one whenever it is asked for. */
static void
put_id(struct hr_buf *b, const struct command *m, uint64_t order)
{
	hr_buf_addf(b, "\"%.*s%04" PRIx64 "\"", HR_V1_ID - 5, m->id, (order + 1) & 0xffff);
}

static void
put_event(struct hr_buf *b, const struct command *m, const struct streams *s, const struct event *e,
    int64_t ms)
{
	struct hr_buf text;

	hr_buf_init(&text, HR_ANSWER_MAX);
	hr_buf_adds(b, "{\"id\":");
	put_id(b, m, e->order);
	hr_buf_addc(b, ',');
	put_time(b, ms);
	hr_buf_addf(b, ",\"command_id\":\"%s\",\"order\":%" PRIu64, m->id, e->order);
	if (e->code != NULL)
		hr_buf_addf(b, ",\"exit_code\":%" PRId64, *e->code);
	else
		hr_buf_adds(b, ",\"exit_code\":null");
	put_part(&text, s->out, e->out_from, e->out_to);
	put_text(b, "stdout", &text);
	hr_buf_reset(&text);
	put_part(&text, s->err, e->err_from, e->err_to);
	put_text(b, "stderr", &text);
	hr_buf_adds(b, ",\"kind\":\"BashOutput\"}");
	hr_buf_done(&text);
}

/* All whole pieces but the last one. */
static uint64_t
pieces(uint64_t size)
{
	return size > 0 ? (size - 1) / PIECE : 0;
}

/* Whole pieces of stdout, then those of stderr, then the rest of both with the code. While the
 * command runs there are only the first. */
static struct event
event_at(const struct streams *s, uint64_t order, bool over, const int64_t *code)
{
	uint64_t out = pieces(s->out_size), err = over ? pieces(s->err_size) : 0;
	struct event e = {.order = order};

	if (order < out) {
		e.out_from = order * PIECE;
		e.out_to = e.out_from + PIECE;
	} else if (order < out + err) {
		e.err_from = (order - out) * PIECE;
		e.err_to = e.err_from + PIECE;
	} else {
		e.out_from = out * PIECE;
		e.out_to = s->out_size;
		e.err_from = err * PIECE;
		e.err_to = s->err_size;
		e.code = code;
	}
	return e;
}

/* A number of the query; false: it is none. */
static bool
number(const struct hr_request *r, const char *name, long long *io)
{
	struct hr_buf text;
	char *end = NULL;
	bool ok = true;

	hr_buf_init(&text, 64);
	if (hr_request_query(r, name, &text)) {
		errno = 0;
		*io = strtoll(hr_buf_str(&text), &end, 10);
		ok = text.fail == HR_OK && text.len > 0 && *end == '\0' && errno == 0;
	}
	hr_buf_done(&text);
	return ok;
}

/* The newest command, if none is named. */
static void
newest(struct hr_rex_call *c, struct command *m)
{
	struct hr_command_state s;
	struct hr_answer inner;
	struct hr_buf names, frame;
	int64_t best = -1;
	const char *p;

	m->name[0] = '\0';
	hr_buf_init(&names, HR_CHANNEL_ANSWER_MAX);
	hr_buf_init(&frame, HR_FRAME_MAX);
	hr_answer_init(&inner);
	if (!hr_live_names(c->w, &names, &inner))
		names.len = 0;
	for (p = hr_buf_str(&names); p < names.p + names.len; p += strlen(p) + 1) {
		if (strncmp(p, NAME, sizeof(NAME) - 1) != 0 || look(c, p, &frame, &s) <= 0 ||
		    s.started <= best || !parse_id(m, s.key))
			continue;
		best = s.started;
	}
	hr_answer_done(&inner);
	hr_buf_done(&names);
	hr_buf_done(&frame);
}

static void
refuse_query(struct hr_rex_call *c, const char *said)
{
	hr_answer_detail(c->ret, 422, said);
}

/* Of that page of events, and its order; false: it is none of that command's (m->name "": any). */
static bool
parse_page(struct command *m, struct hr_span page, long long *ret_order)
{
	struct command of;
	char id[HR_V1_ID], *end;

	if (page.len != HR_V1_ID - 1 || memchr(page.p, '\0', page.len) != NULL)
		return false;
	memcpy(id, page.p, page.len);
	id[page.len] = '\0';
	*ret_order = strtoll(id + page.len - 4, &end, 16) - 1;
	memcpy(id + page.len - 4, "0000", 4);
	if (end == id + page.len && *ret_order >= 0 &&
	    parse_id(&of, (struct hr_span){id, page.len}) &&
	    (m->name[0] == '\0' || strcmp(m->name, of.name) == 0)) {
		*m = of;
		return true;
	}
	return false;
}

/* What is asked for: events of numbers behind `after`, from `page` on (-1: from the first). */
struct wanted {
	long long after, limit, page;
	bool down;
};

static void
put_page(struct hr_rex_call *c, const struct command *m, const struct hr_command_state *state,
    const struct wanted *w)
{
	struct hr_buf *b = &c->ret->body;
	bool over = state->end != HR_COMMAND_RUNNING;
	int64_t code = exit_code(state), from = w->after + 1, total, order, n = 0;
	struct streams s;
	struct event e;

	streams_open(c, m->name, &s);
	total = (int64_t)(pieces(s.out_size) + (over ? pieces(s.err_size) + 1 : 0));
	order = w->page >= 0 ? w->page : w->down ? total - 1 : from;
	while (order >= from && order < total && n < w->limit && n < PAGE) {
		e = event_at(&s, (uint64_t)order, over, &code);
		hr_buf_adds(b, n++ > 0 ? "," : "");
		put_event(b, m, &s, &e, state->started + state->elapsed);
		order += w->down ? -1 : 1;
	}
	streams_close(&s);
	if (order >= from && order < total) {
		hr_buf_adds(b, "],\"next_page_id\":");
		put_id(b, m, (uint64_t)order);
		hr_buf_addc(b, '}');
	} else {
		hr_buf_adds(b, "],\"next_page_id\":null}");
	}
}

/* What the query says; false: answered. The command is m, "" if there is none. */
static bool
read_query(struct hr_rex_call *c, struct command *m, struct wanted *w)
{
	struct hr_buf text;
	bool known, paged, ok = false;

	hr_buf_init(&text, 256);
	known = hr_request_query(c->r, "command_id__eq", &text);
	if (known && !parse_id(m, hr_span_of_buf(&text)))
		m->name[0] = '\0';
	hr_buf_reset(&text);
	w->down = hr_request_query(c->r, "sort_order", &text) &&
		  strcmp(hr_buf_str(&text), "TIMESTAMP_DESC") == 0;
	hr_buf_reset(&text);
	if (hr_request_query(c->r, "kind__eq", &text) &&
	    strcmp(hr_buf_str(&text), "BashOutput") != 0) {
		refuse_query(c, "kind__eq: only events of the kind BashOutput are kept");
	} else if (!number(c->r, "order__gt", &w->after) || !number(c->r, "limit", &w->limit) ||
		   w->limit < 1 || w->limit > 100) {
		refuse_query(c, "order__gt is a number, limit one from 1 to 100");
	} else {
		hr_buf_reset(&text);
		paged = hr_request_query(c->r, "page_id", &text) && text.len > 0;
		ok = !paged || ((!known || m->name[0] != '\0') &&
				   parse_page(m, hr_span_of_buf(&text), &w->page));
		if (!ok)
			refuse_query(c, "page_id is no next_page_id of that command's");
		else if (!known && !paged)
			newest(c, m);
	}
	w->after = w->after < -1 ? -1 : w->after == LLONG_MAX ? LLONG_MAX - 1 : w->after;
	hr_buf_done(&text);
	return ok;
}

void
hr_v1_search(struct hr_rex_call *c)
{
	struct wanted w = {.after = -1, .limit = 100, .page = -1};
	struct hr_command_state state;
	struct command m = {.name = ""};
	struct hr_buf frame;
	int found;

	if (!read_query(c, &m, &w))
		return;
	hr_buf_init(&frame, HR_FRAME_MAX);
	found = m.name[0] != '\0' ? look(c, m.name, &frame, &state) : 0;
	if (found < 0) {
		hr_answer_detail(c->ret, 503, "the command's shell cannot be asked now");
		c->ret->retry_after_s = 1;
	} else {
		hr_buf_adds(&c->ret->body, "{\"items\":[");
		if (found > 0)
			put_page(c, &m, &state, &w);
		else
			hr_buf_adds(&c->ret->body, "],\"next_page_id\":null}");
	}
	hr_buf_done(&frame);
}

/* ---- begin ---- */

/* Ends the shells of commands that are over for long; `one`: the one that is over for longest. */
static bool
tidy(struct hr_rex_call *c, bool one)
{
	struct hr_command_state s;
	struct hr_answer inner;
	struct hr_buf names, frame;
	const char *p, *oldest = NULL;
	int64_t now = hr_wall_ms(), best = INT64_MAX, ended;
	bool done = false;

	hr_buf_init(&names, HR_CHANNEL_ANSWER_MAX);
	hr_buf_init(&frame, HR_FRAME_MAX);
	hr_answer_init(&inner);
	if (!hr_live_names(c->w, &names, &inner))
		names.len = 0;
	for (p = hr_buf_str(&names); p < names.p + names.len; p += strlen(p) + 1) {
		if (strncmp(p, NAME, sizeof(NAME) - 1) != 0 || look(c, p, &frame, &s) <= 0 ||
		    s.end == HR_COMMAND_RUNNING)
			continue;
		ended = s.started + s.elapsed;
		if (one && ended < best) {
			best = ended;
			oldest = p;
		} else if (!one && ended + KEPT_MS < now) {
			hr_answer_reset(&inner);
			(void)hr_live_end(c->w, p, &inner); /* the next one tries again */
		}
	}
	if (oldest != NULL) {
		hr_answer_reset(&inner);
		done = hr_live_end(c->w, oldest, &inner);
	}
	hr_answer_done(&inner);
	hr_buf_done(&names);
	hr_buf_done(&frame);
	return done;
}

static void
end(struct hr_rex_call *c, const struct command *m)
{
	struct hr_answer inner;

	hr_answer_init(&inner);
	(void)hr_live_end(c->w, m->name, &inner); /* else tidy() does */
	hr_answer_done(&inner);
}

/* A shell with its files. False: answered. */
static bool
make(struct hr_rex_call *c, struct command *m)
{
	struct hr_answer inner;
	struct hr_err err = {0};
	bool ok;

	if (hr_random_uuid(m->id, &err) < 0) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		hr_answer_generic(c->ret);
		return false;
	}
	memcpy(m->id + HR_V1_ID - 5, "0000", 4);
	name_of(m);
	tidy(c, false);
	hr_answer_init(&inner);
	ok = hr_live_make(c->w, m->name, &inner);
	if (!ok && inner.status == 409 && tidy(c, true)) {
		hr_answer_reset(&inner);
		ok = hr_live_make(c->w, m->name, &inner);
	}
	if (!ok && inner.status == 409) {
		hr_answer_detail(c->ret, 503,
		    "as many commands run as there may be shells: see the setting "
		    "named_sessions_max");
		c->ret->retry_after_s = 1;
	} else if (!ok) {
		hr_rex_pass(c->ret, &inner);
		if (c->ret->status == 511)
			c->ret->status = 500;
	} else if (make_files(c, m->name) < 0) {
		hr_log(HR_LOG_ERROR, "no files for the output of a command: %s", strerror(errno));
		hr_answer_generic(c->ret);
		end(c, m);
		ok = false;
	}
	hr_answer_done(&inner);
	return ok;
}

static void
put_command(const struct hr_rex_call *c, const struct command *m, struct hr_span command,
    struct hr_span cwd, double timeout_s, struct hr_buf *text)
{
	struct hr_buf path;

	hr_buf_init(&path, 4096);
	hr_buf_addf(&path, "%s/shell/%s/", c->w->run_dir, m->name);
	hr_buf_addf(text, LIMIT_HEAD, (long long)timeout_s);
	if (cwd.p != NULL) {
		hr_buf_adds(text, "cd -- ");
		hr_shell_quote(text, cwd.p, cwd.len);
		hr_buf_adds(text, " && ");
	}
	hr_buf_adds(text, "exec timeout -k 1 $limit bash -c ");
	hr_shell_quote(text, command.p, command.len);
	hr_buf_adds(text, ") </dev/null >|");
	hr_shell_quote(text, path.p, path.len);
	hr_buf_adds(text, "out 2>|");
	hr_shell_quote(text, path.p, path.len);
	hr_buf_adds(text, "err");
	if (path.fail != HR_OK)
		text->fail = path.fail;
	hr_buf_done(&path);
}

/* False: answered. wait: to its end. */
static bool
run_in(struct hr_rex_call *c, const struct command *m, struct hr_span text, bool wait)
{
	const struct hr_shell_place place = place_of(c, m->name);
	const struct hr_run_request req = {.command = text,
	    .blocking = true,
	    .timeout = wait ? 0 : SOON_S,
	    .key = hr_span_of(m->id)};
	struct hr_run_result result;
	struct hr_err err = {0};
	struct hr_buf frame;
	int fd = hr_shell_connect(&place, &err);
	bool ok = false;

	hr_buf_init(&frame, HR_FRAME_MAX + HR_FRAME_HEADER + (64u << 10));
	if (fd < 0) {
		hr_live_refuse(c->ret, &err);
	} else if (hr_shell_run(fd, false, &req, &frame, &result, &err) < 0) {
		hr_answer_detail(c->ret, 500,
		    "the shell was lost over it; it is not known whether the command was begun");
	} else if (result.is_error) {
		hr_answer_detail(c->ret, 500, "the command was not run: its shell is not ready");
	} else {
		ok = true;
	}
	hr_fd_close(&fd);
	hr_buf_done(&frame);
	if (!ok)
		end(c, m);
	return ok;
}

static bool
has_null(struct hr_span s)
{
	return s.p != NULL && memchr(s.p, '\0', s.len) != NULL;
}

/* False: answered. */
static bool
begin(struct hr_rex_call *c, struct command *m, struct hr_span command, struct hr_span cwd,
    double timeout_s, bool wait)
{
	struct hr_buf text;
	bool ok;

	if (has_null(command) || has_null(cwd)) {
		hr_answer_detail(c->ret, 422, "embedded null byte");
		return false;
	}
	if (!make(c, m))
		return false;
	hr_buf_init(&text, TEXT_MAX);
	put_command(c, m, command, cwd, timeout_s, &text);
	ok = hr_buf_check(&text, NULL) == 0;
	if (ok) {
		ok = run_in(c, m, hr_span_of_buf(&text), wait);
	} else {
		hr_answer_generic(c->ret);
		end(c, m);
	}
	hr_buf_done(&text);
	return ok;
}

static double
wanted_limit(const struct hr_rex_call *c)
{
	double s = hr_rex_number(c, "timeout", 300);

	return s < 1 ? 1 : s > LIMIT_MAX ? LIMIT_MAX : s;
}

void
hr_v1_start(struct hr_rex_call *c)
{
	struct hr_span command = hr_rex_str(c, "command"), cwd = hr_rex_str(c, "cwd");
	double limit = wanted_limit(c);
	struct hr_buf *b = &c->ret->body;
	struct command m;

	if (!hr_rex_enter(c))
		return;
	if (begin(c, &m, command, cwd, limit, false)) {
		hr_buf_addf(b, "{\"id\":\"%s\",", m.id);
		put_time(b, hr_wall_ms());
		hr_buf_adds(b, ",\"command\":");
		(void)hr_json_put_str(b, command.p, command.len, HR_JSON_REPLACE);
		hr_buf_adds(b, ",\"cwd\":");
		if (cwd.p != NULL)
			(void)hr_json_put_str(b, cwd.p, cwd.len, HR_JSON_REPLACE);
		else
			hr_buf_adds(b, "null");
		hr_buf_addf(b, ",\"timeout\":%.0f,\"kind\":\"BashCommand\"}", limit);
	}
	hr_rex_leave(c);
}

static void
execute(struct hr_rex_call *c)
{
	struct hr_command_state state;
	struct streams s;
	struct hr_buf frame;
	struct command m;
	struct event e = {0};
	int64_t code;

	if (!begin(c, &m, hr_rex_str(c, "command"), hr_rex_str(c, "cwd"), wanted_limit(c), true))
		return;
	hr_buf_init(&frame, HR_FRAME_MAX);
	if (look(c, m.name, &frame, &state) <= 0) {
		hr_answer_detail(c->ret, 500, "the command was run, but its result is lost");
	} else {
		streams_open(c, m.name, &s);
		code = exit_code(&state);
		e.out_to = s.out_size;
		e.err_to = s.err_size;
		e.code = &code;
		if (s.out_size > WHOLE_MAX || s.err_size > WHOLE_MAX)
			hr_answer_detail(c->ret, 500,
			    "the command was run, but more than 16 MiB of output are not answered "
			    "at once: use start_bash_command");
		else
			put_event(&c->ret->body, &m, &s, &e, state.started + state.elapsed);
		streams_close(&s);
	}
	hr_buf_done(&frame);
	end(c, &m);
}

void
hr_v1_execute(struct hr_rex_call *c)
{
	if (hr_rex_enter(c)) {
		execute(c);
		hr_rex_leave(c);
	}
}

bool
hr_v1_run(struct hr_rex_call *c, struct hr_span command, struct hr_span cwd, double timeout_s,
    struct hr_buf *out, int64_t *ret_code)
{
	struct hr_command_state state;
	struct streams s;
	struct hr_buf frame;
	struct command m;
	bool ok = false;

	if (!begin(c, &m, command, cwd, timeout_s, true))
		return false;
	hr_buf_init(&frame, HR_FRAME_MAX);
	if (look(c, m.name, &frame, &state) > 0) {
		streams_open(c, m.name, &s);
		*ret_code = exit_code(&state);
		ok = s.out_size < out->cap;
		if (ok)
			put_part(out, s.out, 0, s.out_size);
		streams_close(&s);
	}
	if (!ok)
		hr_answer_detail(c->ret, 500, "the result is lost, or too large");
	hr_buf_done(&frame);
	end(c, &m);
	return ok;
}

/* ---- stop ---- */

/* timeout(1) passes it on, and kills a second later. */
void
hr_v1_stop(struct hr_rex_call *c, struct hr_span id)
{
	struct hr_press_request req = {.what = HR_PRESS_SIGNAL, .signal = SIGTERM, .text = {"", 0}};
	struct hr_session_state ignored;
	struct hr_command_state state;
	struct hr_shell_place place;
	struct hr_err err = {0};
	struct hr_buf frame;
	struct command m;
	int found = 0;

	hr_buf_init(&frame, HR_FRAME_MAX);
	if (parse_id(&m, id))
		found = look(c, m.name, &frame, &state);
	if (found <= 0) {
		hr_answer_detail(c->ret, found == 0 ? 404 : 503, "Not Found");
	} else {
		place = place_of(c, m.name);
		req.command = state.id;
		hr_buf_reset(&frame); /* an answer goes into an empty one */
		/* one that has ended meanwhile is what was wanted */
		if (state.end == HR_COMMAND_RUNNING &&
		    hr_shell_press(&place, &req, &frame, &ignored, &err) < 0)
			hr_live_refuse(c->ret, &err);
		else
			hr_buf_adds(&c->ret->body, "{\"success\":true}");
	}
	hr_buf_done(&frame);
}
