/* hr_kernel: runs a Jupyter kernel: its process, its sockets, and the cell that it runs. */
#ifndef HR_PLUGINS_JUPYTER_KERNEL_H
#define HR_PLUGINS_JUPYTER_KERNEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "plugins/jupyter/cell.h"
#include "plugins/jupyter/wire.h"

/* Receives all messages about the current cell except the kernel's status. */
typedef void hr_kernel_sink_fn(void *arg, const struct hr_wire_message *m);

struct hr_kernel {
	hr_kernel_sink_fn *sink; /* NULL: `cell` collects the output */
	void *sink_arg;
	bool asks_interrupt; /* the kernel is interrupted by a message, not by a signal */
	bool held;           /* the kernel's process group is stopped */
	void *zmq;
	void *shell, *iopub, *control; /* NULL: there is no kernel */
	void *hangup;                  /* monitor of iopub: readable when that socket has closed */
	struct hr_wire wire;
	pid_t pid;  /* leader of the kernel's process group; 0: none */
	int pidfd;  /* readable when the kernel has ended; -1: none */
	int status; /* wait status, once the kernel has ended */
	char *file; /* connection file */
	char *dir;  /* directory of `file` and the sockets */
	struct hr_cell cell;
	bool running;  /* a cell was sent and has not ended */
	bool answered; /* at least one cell has finished */
	unsigned starts;
};

int hr_kernel_init(struct hr_kernel *k, const char *dir, struct hr_err *err);
void hr_kernel_done(struct hr_kernel *k);

struct hr_kernel_program {
	const char *const *argv; /* contains k->file */
	char *const *envp;
	const char *dir; /* NULL: the caller's */
};

/* Starts the program. The first cell is queued until the kernel listens. */
int hr_kernel_start(struct hr_kernel *k, const struct hr_kernel_program *p, struct hr_err *err);
/* Kills the kernel's process group, and forgets the kernel. */
void hr_kernel_kill(struct hr_kernel *k);
/* Requests the kernel's exit. */
void hr_kernel_shutdown(struct hr_kernel *k);
void hr_kernel_interrupt(struct hr_kernel *k);
/* Stops or continues the kernel's process group; does nothing without a kernel. */
void hr_kernel_hold(struct hr_kernel *k, bool hold);

/* Writes the descriptors that become readable with a message. They may stay silent about a message
 * that came before the last call of another function here: then hr_kernel_waits() returns true. */
int hr_kernel_fds(const struct hr_kernel *k, int ret_fds[2], struct hr_err *err);
bool hr_kernel_waits(const struct hr_kernel *k);

enum hr_kernel_run {
	HR_KERNEL_UNCOUNTED, /* not part of the kernel's history */
	HR_KERNEL_COUNTED,
	HR_KERNEL_SILENT, /* shows no result */
};

/* Tests whether the kernel responds (the cell is over then), or runs code. k->cell gets the
 * result. */
int hr_kernel_ask(struct hr_kernel *k, struct hr_err *err);
int hr_kernel_execute(
    struct hr_kernel *k, enum hr_kernel_run how, const char *code, size_t len, struct hr_err *err);

/* Takes available messages, but not endlessly. Returns true if k->cell is over now. */
bool hr_kernel_receive(struct hr_kernel *k);
/* Takes the last messages once pidfd is readable, and forgets the kernel. k->status is how it
 * ended. */
void hr_kernel_ended(struct hr_kernel *k);

#endif
