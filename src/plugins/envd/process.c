/* One process: its output to all readers, its input, its end. Invariants: an end of output is
 * watched exactly while it is open and no reader is behind, so that a slow reader holds the process
 * back instead of this server's memory; the readers learn of the end after all output. */
#include "config.h"

#include "plugins/envd/table_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"

#define PIECE 32768
#define PTY_PIECE 16384
#define MANY_READERS 256
#define SMALL_PIECE 4096 /* size if there are many readers, each of which may hold one piece */
#define STALL_MS 30000   /* how long a slow reader may hold up others */
#define MEMORY_MS 30000  /* how long an end is remembered */

static void read_out(void *arg);

struct envd_process *
envd_process_new(struct envd_table *t, uint32_t id, const struct envd_record *record)
{
	struct envd_process *p = calloc(1, sizeof(*p));
	int i;

	if (p == NULL)
		return NULL;
	p->table = t;
	p->id = id;
	p->in = -1;
	p->pty = record->pty;
	for (i = 0; i < 2; i++) {
		p->out[i].process = p;
		p->out[i].fd = -1;
	}
	TAILQ_INIT(&p->readers);
	TAILQ_INIT(&p->inputs);
	TAILQ_INSERT_TAIL(&t->processes, p, entry);
	p->config_len = record->config.len;
	p->config = strndup(record->config.p, record->config.len);
	if (record->tag.p != NULL) {
		p->tag_len = record->tag.len;
		p->tag = malloc(p->tag_len + 1);
		if (p->tag != NULL)
			memcpy(p->tag, record->tag.p, p->tag_len);
	}
	if (p->config != NULL && (p->tag != NULL || record->tag.p == NULL))
		return p;
	envd_process_free(p);
	return NULL;
}

static void
remove_reader(struct envd_reader *r)
{
	TAILQ_REMOVE(&r->process->readers, r, entry);
	r->process->table->readers--;
	r->process = NULL;
}

/* Ends an input: removes it and reports sys, 0 or the errno of the write. */
static void
end_input(struct envd_input *in, int sys)
{
	TAILQ_REMOVE(&in->process->inputs, in, entry);
	in->process = NULL;
	in->done(in, sys);
}

void
envd_process_free(struct envd_process *p)
{
	struct envd_input *in;
	struct envd_reader *r;
	int i;

	while ((in = TAILQ_FIRST(&p->inputs)) != NULL)
		end_input(in, EPIPE);
	while ((r = TAILQ_FIRST(&p->readers)) != NULL)
		remove_reader(r);
	for (i = 0; i < 2; i++) {
		hr_watch_free(p->out[i].watch);
		hr_fd_close(&p->out[i].fd);
	}
	hr_watch_free(p->writes);
	hr_watch_free(p->timer);
	hr_watch_free(p->stalled);
	hr_fd_close(&p->in);
	if (p->table->keeper >= 0)
		envd_table_tell(p->table, ENVD_KEEP_FORGET, p, 0);
	TAILQ_REMOVE(&p->table->processes, p, entry);
	free(p->tag);
	free(p->config);
	free(p);
}

static void
on_timer(void *arg)
{
	struct envd_process *p = arg;

	if (p->over)
		envd_process_free(p);
	else
		envd_process_signal(p, SIGKILL);
}

static void
arm(struct envd_process *p, int64_t ms)
{
	struct hr_err err = {0};

	if (p->timer == NULL)
		p->timer = hr_loop_timer(p->table->loop, on_timer, p, &err);
	if (p->timer == NULL || hr_watch_arm(p->timer, ms, &err) != 0)
		hr_log(HR_LOG_ERROR, "the time of a process: %s", err.msg);
}

void
envd_process_limit(struct envd_process *p, int64_t deadline_ms)
{
	/* the call that started it has the same deadline, and comes first */
	if (deadline_ms != 0)
		arm(p, deadline_ms - hr_now_ms() + 1);
}

/* ---- the end ---- */

static void
close_in(struct envd_process *p)
{
	if (p->in >= 0 && !p->pty)
		envd_table_tell(p->table, ENVD_KEEP_CLOSE, p, 1u << ENVD_FD_IN);
	hr_watch_drop(&p->writes);
	hr_fd_close(&p->in);
}

static void
finish(struct envd_process *p, int64_t ended_ms)
{
	struct envd_input *in;
	struct envd_reader *r;

	p->over = true;
	close_in(p);
	free(p->config);
	p->config = NULL;
	p->config_len = 0;
	arm(p, MEMORY_MS - (hr_now_ms() - ended_ms));
	while ((in = TAILQ_FIRST(&p->inputs)) != NULL)
		end_input(in, EPIPE);
	while ((r = TAILQ_FIRST(&p->readers)) != NULL) {
		remove_reader(r);
		r->ended(r, p->status);
	}
}

static void
close_out(struct envd_out *o)
{
	struct envd_process *p = o->process;

	hr_watch_drop(&o->watch);
	if (o->fd < 0)
		return;
	hr_fd_close(&o->fd);
	envd_table_tell(
	    p->table, ENVD_KEEP_CLOSE, p, o == &p->out[0] ? 1u << ENVD_FD_OUT : 1u << ENVD_FD_ERR);
}

/* Ends the process if its time has come: others may hold its pipes, and a client that has sent a
 * signal does not wait for them. */
static void
check_end(struct envd_process *p, int64_t ended_ms)
{
	int i, left;

	if (p->over || !p->reaped)
		return;
	for (i = 0; p->signalled && !p->cut && i < 2; i++) {
		left = 0;
		if (p->out[i].fd >= 0 && ioctl(p->out[i].fd, FIONREAD, &left) != 0)
			left = 0;
		p->out[i].left = left > 0 ? (size_t)left : 0;
		if (left <= 0)
			close_out(&p->out[i]);
	}
	p->cut = p->signalled;
	if (p->out[0].fd < 0 && p->out[1].fd < 0)
		finish(p, ended_ms);
}

void
envd_process_reaped(struct envd_process *p, int status, int64_t ended_ms)
{
	p->reaped = true;
	p->status = status;
	check_end(p, ended_ms);
}

void
envd_process_started(struct envd_process *p, pid_t pid, int sys)
{
	struct envd_reader *r, *next;

	if (pid > 0) {
		p->pid = pid;
		TAILQ_FOREACH(r, &p->readers, entry)
		{
			r->started(r, p->pid, 0);
		}
		return;
	}
	for (r = TAILQ_FIRST(&p->readers); r != NULL; r = next) {
		next = TAILQ_NEXT(r, entry);
		remove_reader(r);
		r->started(r, 0, sys);
	}
	envd_process_free(p);
}

/* ---- output ---- */

static void
on_stalled(void *arg)
{
	struct envd_process *p = arg;
	struct envd_reader *r, *next;

	p->stalls = false;
	for (r = TAILQ_FIRST(&p->readers); r != NULL; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (r->behind(r))
			r->cut(r);
	}
}

/* Counts the readers that hold the process back; `*ret_others` those that wait for them. */
static size_t
count_behind(const struct envd_process *p, size_t *ret_others)
{
	const struct envd_reader *r;
	size_t n = 0;

	*ret_others = 0;
	TAILQ_FOREACH(r, &p->readers, entry)
	{
		if (r->behind(r))
			n++;
		else
			++*ret_others;
	}
	return n;
}

/* Arms or disarms the timer of a stall: a reader may hold the process back for ever, but not other
 * readers. */
static void
watch_stall(struct envd_process *p, bool stalls)
{
	if (stalls == p->stalls)
		return;
	p->stalls = stalls;
	if (stalls && p->stalled == NULL)
		p->stalled = hr_loop_timer(p->table->loop, on_stalled, p, NULL);
	if (stalls && p->stalled != NULL)
		(void)hr_watch_arm(p->stalled, STALL_MS, NULL);
	else
		hr_watch_disarm(p->stalled);
}

static void
watch_out(struct envd_out *o, bool on)
{
	struct hr_err err = {0};

	if (!on) {
		hr_watch_drop(&o->watch);
	} else if (o->fd >= 0 && o->watch == NULL) {
		o->watch = hr_loop_readable(o->process->table->loop, o->fd, read_out, o, &err);
		if (o->watch == NULL)
			hr_log(HR_LOG_ERROR, "the output of a process: %s", err.msg);
	}
}

static void
hold(struct envd_process *p)
{
	size_t others, behind = count_behind(p, &others);
	bool on = behind == 0;

	watch_stall(p, behind > 0 && others > 0);
	watch_out(&p->out[0], on);
	watch_out(&p->out[1], on);
}

static size_t
piece_of(const struct envd_out *o)
{
	const struct envd_process *p = o->process;
	size_t most = p->pty ? PTY_PIECE : PIECE;

	if (p->table->readers > MANY_READERS)
		most = SMALL_PIECE;
	return p->cut && o->left < most ? o->left : most;
}

static void
read_out(void *arg)
{
	struct envd_out *o = arg;
	struct envd_process *p = o->process;
	static char piece[PIECE];
	struct envd_reader *r;
	ssize_t n;

	n = hr_fd_read(o->fd, piece, piece_of(o));
	if (n < 0 && errno == EAGAIN)
		return;
	TAILQ_FOREACH(r, &p->readers, entry)
	{
		if (n > 0)
			r->data(r,
			    p->pty            ? ENVD_PTY
			    : o == &p->out[0] ? ENVD_STDOUT
					      : ENVD_STDERR,
			    (struct hr_span){piece, (size_t)n});
	}
	if (n > 0 && p->cut)
		o->left -= (size_t)n;
	/* a terminal without a holder fails with EIO */
	if (n <= 0 || (p->cut && o->left == 0)) {
		close_out(o);
		check_end(p, hr_now_ms());
	} else {
		hold(p);
	}
}

void
envd_process_read(struct envd_process *p, struct envd_reader *r)
{
	if (p->over) {
		r->process = NULL;
		r->started(r, p->pid, 0);
		r->ended(r, p->status);
		return;
	}
	r->process = p;
	TAILQ_INSERT_TAIL(&p->readers, r, entry);
	p->table->readers++;
	if (p->pid > 0)
		r->started(r, p->pid, 0);
}

void
envd_reader_remove(struct envd_reader *r)
{
	struct envd_process *p = r->process;

	if (p == NULL)
		return;
	remove_reader(r);
	hold(p);
}

void
envd_reader_ready(struct envd_reader *r)
{
	if (r->process != NULL)
		hold(r->process);
}

int
envd_process_attach(struct envd_process *p, int fds[ENVD_FDS], struct hr_err *err)
{
	int i, *const places[] = {&p->in, &p->out[0].fd, &p->out[1].fd};

	for (i = 0; i < 3; i++) {
		*places[i] = fds[ENVD_FD_IN + i];
		fds[ENVD_FD_IN + i] = -1;
	}
	if (p->pty && p->out[0].fd >= 0)
		p->in = fcntl(p->out[0].fd, F_DUPFD_CLOEXEC, 0);
	for (i = 0; i < 3; i++)
		if (*places[i] >= 0 && hr_fd_nonblock(*places[i], true, err) != 0)
			return -1;
	hold(p);
	return 0;
}

/* ---- input ---- */

static void write_in(void *arg);

/* Returns the input whose bytes come next; NULL: none. */
static struct envd_input *
next_input(const struct envd_process *p)
{
	struct envd_input *in;

	TAILQ_FOREACH(in, &p->inputs, entry)
	{
		if (!in->waits)
			break;
	}
	return in;
}

static void
write_in(void *arg)
{
	struct envd_process *p = arg;
	struct envd_input *in;
	struct hr_err err = {0};
	ssize_t n = 0;

	while ((in = next_input(p)) != NULL && p->in >= 0) {
		if (in->len > 0)
			n = write(p->in, in->p, in->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n >= 0) {
			in->p += n;
			in->len -= (size_t)n;
		}
		if (n < 0 || in->len == 0) {
			end_input(in, n < 0 ? errno : 0);
			n = 0;
		}
	}
	if (in == NULL && p->closing)
		close_in(p);
	if (in == NULL) {
		hr_watch_drop(&p->writes);
	} else if (p->writes == NULL) {
		p->writes = hr_loop_writable(p->table->loop, p->in, write_in, p, &err);
		if (p->writes == NULL)
			end_input(in, ENOMEM);
	}
}

bool
envd_process_takes_input(const struct envd_process *p)
{
	return p->in >= 0 && !p->closing;
}

void
envd_process_write(struct envd_process *p, struct envd_input *in)
{
	in->process = p;
	in->waits = false;
	TAILQ_INSERT_TAIL(&p->inputs, in, entry);
	if (next_input(p) == in)
		write_in(p);
}

void
envd_process_await(struct envd_process *p, struct envd_input *in)
{
	in->process = p;
	in->waits = true;
	TAILQ_INSERT_TAIL(&p->inputs, in, entry);
}

void
envd_input_cancel(struct envd_input *in)
{
	if (in->process != NULL)
		TAILQ_REMOVE(&in->process->inputs, in, entry);
	in->process = NULL;
}

void
envd_process_close_input(struct envd_process *p)
{
	p->closing = true;
	if (next_input(p) == NULL)
		close_in(p);
}

/* ---- facts and signals ---- */

pid_t
envd_process_pid(const struct envd_process *p)
{
	return p->pid;
}

struct hr_span
envd_process_tag(const struct envd_process *p)
{
	return (struct hr_span){p->tag, p->tag != NULL ? p->tag_len : 0};
}

struct hr_span
envd_process_config(const struct envd_process *p)
{
	return (struct hr_span){p->config, p->config_len};
}

bool
envd_process_has_pty(const struct envd_process *p)
{
	return p->pty;
}

bool
envd_process_killed(const struct envd_process *p)
{
	return p->killed;
}

void
envd_process_signal(struct envd_process *p, int sig)
{
	p->signalled = true;
	p->killed = p->killed || sig == SIGKILL;
	envd_table_tell(p->table, ENVD_KEEP_SIGNAL, p, (uint32_t)sig);
	check_end(p, hr_now_ms());
}

int
envd_process_resize(const struct envd_process *p, unsigned rows, unsigned cols)
{
	const struct winsize size = {
	    .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};

	return ioctl(p->out[0].fd, TIOCSWINSZ, &size);
}
