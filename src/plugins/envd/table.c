/* Implements the table, and talks to the keeper. */
#include "config.h"

#include "plugins/envd/table.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/process/spawn.h"
#include "plugins/envd/table_int.h"

void
envd_table_tell(struct envd_table *t, uint32_t op, const struct envd_process *p, uint32_t value)
{
	struct envd_packet packet = {.op = op, .id = p != NULL ? p->id : 0, .value = value};

	/* a failure means that the keeper is gone, which on_keeper() learns as well */
	(void)envd_packet_send(t->keeper, &packet, NULL, 0);
}

struct envd_process *
envd_table_next(struct envd_table *t, struct envd_process *p)
{
	p = p == NULL ? TAILQ_FIRST(&t->processes) : TAILQ_NEXT(p, entry);
	while (p != NULL && (p->over || p->pid == 0))
		p = TAILQ_NEXT(p, entry);
	return p;
}

static bool
is_named(const struct envd_process *p, int64_t pid, const struct hr_span *tag)
{
	if (tag == NULL)
		return p->pid > 0 && p->pid == pid;
	return p->pid > 0 && p->tag != NULL &&
	       hr_span_equal(*tag, (struct hr_span){p->tag, p->tag_len});
}

struct envd_process *
envd_table_find(struct envd_table *t, int64_t pid, const struct hr_span *tag, bool ended)
{
	struct envd_process *p, *found = NULL;

	/* the latest one: the kernel may use a number again */
	TAILQ_FOREACH(p, &t->processes, entry)
	{
		if (is_named(p, pid, tag) && (ended || !p->over))
			found = p;
	}
	return found;
}

/* ---- the keeper ---- */

static struct envd_process *
by_id(struct envd_table *t, uint32_t id)
{
	struct envd_process *p;

	/* most packets are about the latest ones */
	TAILQ_FOREACH_REVERSE(p, &t->processes, envd_processes, entry)
	{
		if (p->id == id)
			break;
	}
	return p;
}

/* Takes over a process of an earlier server. */
static void
inherit(struct envd_table *t, const struct envd_packet *packet, int fds[ENVD_FDS])
{
	struct envd_record r;
	struct envd_process *p = NULL;
	struct hr_err err = {0};
	void *map = MAP_FAILED, *store = NULL;
	struct stat st = {0};
	size_t i;

	if (fstat(fds[ENVD_FD_RECORD], &st) == 0 && st.st_size > 0)
		map =
		    mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fds[ENVD_FD_RECORD], 0);
	if (map != MAP_FAILED &&
	    envd_record_get(&r, (struct hr_span){map, (size_t)st.st_size}, &store) == 0)
		p = envd_process_new(t, packet->id, &r);
	if (packet->id > t->last_id)
		t->last_id = packet->id;
	if (p != NULL) {
		if (envd_process_attach(p, fds, &err) != 0)
			hr_log(HR_LOG_ERROR, "cannot take over a process: %s", err.msg);
		envd_process_started(p, packet->pid, packet->pid > 0 ? 0 : EAGAIN);
		if (packet->pid > 0 && packet->state == ENVD_ENDED)
			envd_process_reaped(p, (int)packet->status, packet->ended_ms);
		else if (packet->pid > 0)
			envd_process_limit(p, r.deadline_ms);
	}
	free(store);
	if (map != MAP_FAILED)
		(void)munmap(map, (size_t)st.st_size);
	for (i = 0; i < ENVD_FDS; i++)
		hr_fd_close(&fds[i]);
}

static void
handle(struct envd_table *t, const struct envd_packet *packet, int fds[ENVD_FDS])
{
	struct envd_process *p = by_id(t, packet->id);

	if (packet->op == ENVD_KEEP_ENTRY)
		inherit(t, packet, fds);
	else if (packet->op == ENVD_KEEP_STARTED && p != NULL)
		envd_process_started(p, packet->pid, (int)packet->value);
	else if (packet->op == ENVD_KEEP_ENDED && p != NULL)
		envd_process_reaped(p, (int)packet->value, packet->ended_ms);
}

static void
on_keeper(void *arg)
{
	struct envd_table *t = arg;
	struct envd_packet packet;
	int fds[ENVD_FDS], r;

	do {
		r = envd_packet_recv(t->keeper, &packet, fds, MSG_DONTWAIT);
		if (r > 0)
			handle(t, &packet, fds);
	} while (r > 0);
	if (r == 0 || errno != EAGAIN) {
		hr_watch_drop(&t->events);
		t->lost(t->arg);
	}
}

/* Takes the entries of an earlier server. Returns 1, or 0 if the keeper is of another version. */
static int
greet(struct envd_table *t, struct hr_err *err)
{
	struct envd_packet packet = {.op = ENVD_KEEP_HELLO};
	HR_CLOSE int above = hr_pidfd_open(getppid());
	int fds[ENVD_FDS], r;
	size_t i;

	for (i = 0; i < ENVD_FDS; i++)
		fds[i] = -1;
	fds[0] = above;
	(void)envd_packet_send(t->keeper, &packet, fds, 0);
	do {
		r = envd_packet_recv(t->keeper, &packet, fds, 0);
		if (r > 0 && packet.op != ENVD_KEEP_READY)
			handle(t, &packet, fds);
	} while (r > 0 && packet.op != ENVD_KEEP_READY);
	if (r <= 0)
		return hr_err_sys(err, r < 0 ? errno : EPIPE, "the keeper of processes");
	return packet.value == ENVD_KEEP_VERSION;
}

static int
connect_keeper(struct envd_table *t, const char *dir, struct hr_err *err)
{
	int r, tries = 0;
	char end;

	do {
		t->keeper = envd_keep_connect(dir, err);
		if (t->keeper < 0)
			return -1;
		r = greet(t, err);
		if (r != 0)
			return r < 0 ? -1 : 0;
		envd_table_tell(t, ENVD_KEEP_END, NULL, 0);
		while (recv(t->keeper, &end, 1, 0) > 0)
			;
		hr_fd_close(&t->keeper);
	} while (++tries < 2);
	return hr_err_set(err, HR_E_PROTO, "the keeper of processes is of another version");
}

struct envd_table *
envd_table_open(
    struct hr_loop *loop, const char *dir, void (*lost)(void *arg), void *arg, struct hr_err *err)
{
	struct envd_table *t = calloc(1, sizeof(*t));
	struct rlimit more;

	if (t == NULL)
		return hr_err_null(err);
	t->loop = loop;
	t->lost = lost;
	t->arg = arg;
	TAILQ_INIT(&t->processes);
	if (connect_keeper(t, dir, err) != 0 ||
	    (t->events = hr_loop_readable(loop, t->keeper, on_keeper, t, err)) == NULL) {
		envd_table_close(t, false);
		return NULL;
	}
	/* four descriptors of a process; the keeper has the limit that its own processes get */
	if (getrlimit(RLIMIT_NOFILE, &more) == 0) {
		more.rlim_cur = more.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &more);
	}
	return t;
}

void
envd_table_close(struct envd_table *t, bool end)
{
	struct envd_process *p;
	int keeper;

	if (t == NULL)
		return;
	if (end)
		envd_table_tell(t, ENVD_KEEP_END, NULL, 0);
	keeper = t->keeper;
	t->keeper = -1; /* the processes stay the keeper's */
	while ((p = TAILQ_FIRST(&t->processes)) != NULL)
		envd_process_free(p);
	hr_watch_free(t->events);
	hr_fd_close(&keeper);
	free(t);
}

/* ---- start ---- */

static int
make_pipe(int *ours, int *theirs, bool reads)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	*ours = ends[reads ? 0 : 1];
	*theirs = ends[reads ? 1 : 0];
	return 0;
}

static int
make_terminal(int fds[ENVD_FDS], const struct envd_record *r, unsigned rows, unsigned cols)
{
	const struct winsize size = {
	    .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
	int master, slave;

	if (openpty(&master, &slave, NULL, NULL, &size) != 0)
		return -1;
	fds[ENVD_FD_OUT] = master;
	fds[ENVD_FD_CHILD_IN] = slave;
	if (hr_fd_cloexec(master, NULL) != 0 || hr_fd_cloexec(slave, NULL) != 0)
		return -1;
	return r->identity ? fchown(slave, r->uid, (gid_t)-1) : 0;
}

static int
make_fds(int fds[ENVD_FDS], const struct envd_record *r, unsigned rows, unsigned cols,
    struct hr_err *err)
{
	HR_BUF(b, ENVD_RECORD_MAX);
	int failed;

	envd_record_put(&b, r);
	if (hr_buf_check(&b, err) != 0)
		return -1;
	fds[ENVD_FD_RECORD] = hr_fd_of_bytes(b.p, b.len, err);
	if (fds[ENVD_FD_RECORD] < 0)
		return -1;
	if (r->pty) {
		failed = make_terminal(fds, r, rows, cols);
	} else {
		failed = make_pipe(&fds[ENVD_FD_OUT], &fds[ENVD_FD_CHILD_OUT], true);
		if (failed == 0)
			failed = make_pipe(&fds[ENVD_FD_ERR], &fds[ENVD_FD_CHILD_ERR], true);
		if (failed == 0 && r->has_stdin)
			failed = make_pipe(&fds[ENVD_FD_IN], &fds[ENVD_FD_CHILD_IN], false);
	}
	return failed == 0 ? 0 : hr_err_sys(err, errno, "pipes");
}

/* Takes the tag from the ended process that had it, since a new one uses it. */
static void
forget_tag(struct envd_table *t, struct hr_span tag)
{
	struct envd_process *p = tag.p != NULL ? envd_table_find(t, 0, &tag, true) : NULL;

	if (p != NULL) {
		free(p->tag);
		p->tag = NULL;
	}
}

struct envd_process *
envd_table_start(struct envd_table *t, const struct envd_record *record, int cwd, unsigned rows,
    unsigned cols, struct envd_reader *r, struct hr_err *err)
{
	struct envd_packet packet = {.op = ENVD_KEEP_START};
	struct envd_process *p = NULL;
	int fds[ENVD_FDS], failed;
	size_t i;

	for (i = 0; i < ENVD_FDS; i++)
		fds[i] = -1;
	failed = make_fds(fds, record, rows, cols, err);
	fds[ENVD_FD_CWD] = cwd;
	forget_tag(t, record->tag);
	if (failed == 0) {
		p = envd_process_new(t, ++t->last_id, record);
		failed = p == NULL ? hr_err_nomem(err) : 0;
	}
	if (failed == 0) {
		packet.id = p->id;
		if (envd_packet_send(t->keeper, &packet, fds, 0) != 0)
			failed = hr_err_sys(err, errno, "the keeper of processes");
	}
	if (failed == 0)
		failed = envd_process_attach(p, fds, err);
	fds[ENVD_FD_CWD] = -1;
	for (i = 0; i < ENVD_FDS; i++)
		hr_fd_close(&fds[i]);
	if (failed != 0) {
		if (p != NULL) {
			envd_process_signal(p, SIGKILL);
			envd_process_free(p);
		}
		return NULL;
	}
	envd_process_read(p, r);
	envd_process_limit(p, record->deadline_ms);
	return p;
}
