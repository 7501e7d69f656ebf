/* Runs the kernel. It binds Unix sockets in a private directory, so that no port is guessed or open
 * to others; only processes with the key in the connection file can talk to it. */
#include "config.h"

#include "plugins/jupyter/kernel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "proto/json.h"

#define CODE_MAX (128u << 20)
#define TURN_MS 20         /* ms for which one call takes messages from a socket */
#define LAST_WORDS_MS 2000 /* ms to wait if a child of the kernel holds its sockets open */

enum kernel_port { PORT_SHELL = 1, PORT_IOPUB, PORT_STDIN, PORT_CONTROL, PORT_HEARTBEAT };

int
hr_kernel_init(struct hr_kernel *k, const char *dir, struct hr_err *err)
{
	memset(k, 0, sizeof(*k));
	k->pidfd = -1;
	hr_cell_init(&k->cell);
	k->dir = strdup(dir);
	k->file = hr_path_join(dir, "kernel.json");
	k->zmq = zmq_ctx_new();
	if (k->dir == NULL || k->file == NULL || k->zmq == NULL)
		return hr_err_nomem(err);
	return 0;
}

static void
close_sockets(struct hr_kernel *k)
{
	void **const all[] = {&k->shell, &k->iopub, &k->control, &k->hangup};
	size_t i;

	/* otherwise libzmq's thread blocks for ever when it reports a hangup to no listener */
	if (k->iopub != NULL)
		(void)zmq_socket_monitor(k->iopub, NULL, 0);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (*all[i] != NULL)
			(void)zmq_close(*all[i]);
		*all[i] = NULL;
	}
}

static void
remove_sockets(const struct hr_kernel *k)
{
	char name[512];
	int i;

	for (i = PORT_SHELL; i <= PORT_HEARTBEAT; i++) {
		(void)snprintf(name, sizeof(name), "%s/k-%d", k->dir, i);
		(void)unlink(name);
	}
}

static void
forget(struct hr_kernel *k)
{
	close_sockets(k);
	if (k->dir != NULL)
		remove_sockets(k);
	k->held = false;
	hr_fd_close(&k->pidfd);
	k->pid = 0;
	k->running = false;
	if (k->file != NULL)
		(void)unlink(k->file);
}

void
hr_kernel_done(struct hr_kernel *k)
{
	hr_kernel_kill(k);
	if (k->zmq != NULL)
		(void)zmq_ctx_term(k->zmq);
	hr_cell_done(&k->cell);
	free(k->dir);
	free(k->file);
	k->zmq = NULL;
	k->dir = k->file = NULL;
}

static int
write_file(struct hr_kernel *k, struct hr_err *err)
{
	HR_BUF(b, 8192);

	hr_buf_adds(&b, "{\"transport\":\"ipc\",\"ip\":");
	(void)hr_json_put_str(&b, k->dir, strlen(k->dir), HR_JSON_REPLACE);
	b.len -= b.len > 0; /* continues the string: the sockets are DIR/k-1 ... DIR/k-5 */
	hr_buf_addf(&b,
	    "/k\",\"shell_port\":%d,\"iopub_port\":%d,\"stdin_port\":%d,\"control_port\":%d,"
	    "\"hb_port\":%d,\"key\":\"%s\",\"signature_scheme\":\"hmac-sha256\","
	    "\"kernel_name\":\"python3\"}",
	    PORT_SHELL, PORT_IOPUB, PORT_STDIN, PORT_CONTROL, PORT_HEARTBEAT, k->wire.key);
	return hr_buf_check(&b, err) == 0 ? hr_path_write(k->file, b.p, b.len, 0600, err) : -1;
}

static void *
open_socket(struct hr_kernel *k, int type, enum kernel_port port, struct hr_err *err)
{
	void *s = zmq_socket(k->zmq, type);
	const int zero = 0, soon_ms = 10; /* libzmq reconnects while the kernel starts */
	char name[512];

	(void)snprintf(name, sizeof(name), "ipc://%s/k-%d", k->dir, (int)port);
	/* no limit of messages is set: a kernel without room would drop output */
	if (s != NULL && zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof(zero)) == 0 &&
	    zmq_setsockopt(s, ZMQ_RCVHWM, &zero, sizeof(zero)) == 0 &&
	    zmq_setsockopt(s, ZMQ_RECONNECT_IVL, &soon_ms, sizeof(soon_ms)) == 0 &&
	    (type != ZMQ_SUB || zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0) == 0) &&
	    zmq_connect(s, name) == 0)
		return s;
	(void)hr_err_set(err, HR_E_SYS, "%s: %s", name, zmq_strerror(zmq_errno()));
	if (s != NULL)
		(void)zmq_close(s);
	return NULL;
}

/* Opens the monitor of hangups. libzmq reads in its own thread: a hangup arrives after everything
 * that the peer sent. */
static int
watch_hangup(struct hr_kernel *k, struct hr_err *err)
{
	char name[40];

	/* the name must be new: libzmq frees that of a closed socket only later */
	(void)snprintf(name, sizeof(name), "inproc://hangup-%u", k->starts++);
	k->hangup = zmq_socket(k->zmq, ZMQ_PAIR);
	if (k->hangup != NULL && zmq_socket_monitor(k->iopub, name, ZMQ_EVENT_DISCONNECTED) == 0 &&
	    zmq_connect(k->hangup, name) == 0)
		return 0;
	return hr_err_set(err, HR_E_SYS, "%s: %s", name, zmq_strerror(zmq_errno()));
}

static int
spawn(struct hr_kernel *k, const struct hr_kernel_program *p, struct hr_err *err)
{
	/* these go to the log; the output of cells uses the sockets */
	const struct hr_spawn_fd fds[] = {
	    {STDERR_FILENO, STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}};
	struct hr_err why = {0};

	k->pid = hr_spawn(&(const struct hr_spawn){.path = p->argv[0],
			      .argv = p->argv,
			      .envp = p->envp,
			      .dir = p->dir,
			      .fds = fds,
			      .nfds = 2,
			      .setsid = true,
			      .pdeathsig = SIGKILL,
			      .umask = -1},
	    &why);
	if (k->pid < 0) {
		k->pid = 0;
		if (why.sys != ENOENT)
			return hr_err_pass(err, &why);
		return hr_err_set(err, HR_E_NOTFOUND,
		    "%s; on Debian: apt-get install python3-ipykernel", why.msg);
	}
	k->pidfd = hr_pidfd_open(k->pid);
	return k->pidfd >= 0 ? 0 : hr_err_sys(err, errno, "pidfd_open");
}

int
hr_kernel_start(struct hr_kernel *k, const struct hr_kernel_program *p, struct hr_err *err)
{
	hr_assert(k->pid == 0);
	k->answered = false;
	remove_sockets(k);
	if (hr_wire_init(&k->wire, err) < 0 || write_file(k, err) != 0 || spawn(k, p, err) < 0 ||
	    (k->shell = open_socket(k, ZMQ_DEALER, PORT_SHELL, err)) == NULL ||
	    (k->iopub = open_socket(k, ZMQ_SUB, PORT_IOPUB, err)) == NULL ||
	    watch_hangup(k, err) < 0 ||
	    (k->control = open_socket(k, ZMQ_DEALER, PORT_CONTROL, err)) == NULL) {
		hr_kernel_kill(k);
		return -1;
	}
	return 0;
}

void
hr_kernel_kill(struct hr_kernel *k)
{
	if (k->pid > 1) {
		(void)kill(-k->pid, SIGKILL);
		(void)hr_spawn_end(k->pid, &k->status);
	}
	forget(k);
}

void
hr_kernel_shutdown(struct hr_kernel *k)
{
	static const char content[] = "{\"restart\":false}";
	char id[HR_WIRE_ID];

	if (k->pid > 1 && hr_wire_send(&k->wire, k->control, "shutdown_request", content,
			      strlen(content), id, NULL) != 0)
		(void)kill(k->pid, SIGTERM);
}

void
hr_kernel_interrupt(struct hr_kernel *k)
{
	char id[HR_WIRE_ID];

	hr_kernel_hold(k, false);
	if (k->pid > 1 && (!k->asks_interrupt || hr_wire_send(&k->wire, k->control,
						     "interrupt_request", "{}", 2, id, NULL) != 0))
		(void)kill(k->pid, SIGINT);
}

void
hr_kernel_hold(struct hr_kernel *k, bool hold)
{
	/* a command can continue a stopped kernel: it is stopped again */
	if (k->pid > 1 && (hold || k->held)) {
		(void)kill(-k->pid, hold ? SIGSTOP : SIGCONT);
		k->held = hold;
	}
}

int
hr_kernel_fds(const struct hr_kernel *k, int ret_fds[2], struct hr_err *err)
{
	size_t len = sizeof(int);

	if (zmq_getsockopt(k->iopub, ZMQ_FD, &ret_fds[0], &len) != 0 ||
	    zmq_getsockopt(k->shell, ZMQ_FD, &ret_fds[1], &len) != 0)
		return hr_err_set(err, HR_E_SYS, "ZMQ_FD: %s", zmq_strerror(zmq_errno()));
	return 0;
}

int
hr_kernel_ask(struct hr_kernel *k, struct hr_err *err)
{
	hr_cell_begin(&k->cell);
	k->running =
	    hr_wire_send(&k->wire, k->shell, "kernel_info_request", "{}", 2, k->cell.id, err) == 0;
	return k->running ? 0 : -1;
}

int
hr_kernel_execute(
    struct hr_kernel *k, enum hr_kernel_run how, const char *code, size_t len, struct hr_err *err)
{
	HR_BUF(b, CODE_MAX);
	int r = -1;

	hr_cell_begin(&k->cell);
	hr_buf_adds(&b, "{\"code\":");
	(void)hr_json_put_str(&b, code, len, HR_JSON_REPLACE);
	hr_buf_addf(&b,
	    ",\"silent\":%s,\"store_history\":%s,\"user_expressions\":{},\"allow_stdin\":false,"
	    "\"stop_on_error\":false}",
	    how == HR_KERNEL_SILENT ? "true" : "false",
	    how == HR_KERNEL_COUNTED ? "true" : "false");
	if (hr_buf_check(&b, err) == 0)
		r = hr_wire_send(
		    &k->wire, k->shell, "execute_request", b.p, b.len, k->cell.id, err);
	k->running = r == 0;
	return r;
}

static bool
receive_one(struct hr_kernel *k, void *sock, bool is_reply)
{
	struct hr_wire_message m;
	struct hr_err err = {0};
	int r = hr_wire_receive(&k->wire, sock, &m, &err);

	if (r < 0)
		hr_log(HR_LOG_WARNING, "%s", err.msg);
	if (r > 0) {
		if (k->sink != NULL && k->running && hr_cell_owns(&k->cell, &m) &&
		    strcmp(m.type, "status") != 0)
			k->sink(k->sink_arg, &m);
		if (is_reply)
			hr_cell_reply(&k->cell, &m);
		else if (k->sink == NULL || strcmp(m.type, "status") == 0)
			hr_cell_output(&k->cell, &m);
		hr_wire_message_done(&m);
	}
	return r != 0;
}

static void
receive_some(struct hr_kernel *k, void *sock, bool is_reply)
{
	const int64_t until = hr_now_ms() + TURN_MS;

	/* a message can have many megabytes: clients must get the earlier ones first */
	while (receive_one(k, sock, is_reply) && hr_now_ms() < until) {
	}
}

bool
hr_kernel_waits(const struct hr_kernel *k)
{
	void *const sockets[] = {k->iopub, k->shell};
	int i, events = 0;

	for (i = 0; k->pid != 0 && i < 2; i++) {
		size_t len = sizeof(events);

		if (zmq_getsockopt(sockets[i], ZMQ_EVENTS, &events, &len) == 0 &&
		    (events & ZMQ_POLLIN) != 0)
			return true;
	}
	return false;
}

bool
hr_kernel_receive(struct hr_kernel *k)
{
	if (k->pid == 0)
		return false;
	receive_some(k, k->iopub, false);
	receive_some(k, k->shell, true);
	/* output precedes the reply, but on another socket */
	receive_some(k, k->iopub, false);
	if (!k->running || !hr_cell_over(&k->cell))
		return false;
	k->running = false;
	k->answered = true;
	return true;
}

void
hr_kernel_ended(struct hr_kernel *k)
{
	zmq_pollitem_t items[] = {{.socket = k->hangup, .events = ZMQ_POLLIN},
	    {.socket = k->iopub, .events = ZMQ_POLLIN}};
	const int64_t end = hr_now_ms() + LAST_WORDS_MS;
	int64_t left = LAST_WORDS_MS;

	(void)hr_spawn_end(k->pid, &k->status);
	/* a kernel that never answered may be unconnected, and then no hangup comes */
	while (zmq_poll(items, 2, k->answered ? (long)left : 0) > 0) {
		while (receive_one(k, k->iopub, false) && hr_now_ms() < end)
			;
		left = end - hr_now_ms();
		if ((items[0].revents & ZMQ_POLLIN) != 0 || left <= 0)
			break;
	}
	forget(k);
}
