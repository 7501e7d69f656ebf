/* hr_kernel: one IPython kernel: its process, its sockets, and the cell that it runs. */
#ifndef HR_PLUGINS_JUPYTER_KERNEL_H
#define HR_PLUGINS_JUPYTER_KERNEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "plugins/jupyter/cell.h"
#include "plugins/jupyter/wire.h"

struct hr_kernel {
	void *zmq;
	void *shell, *iopub, *control; /* NULL: no kernel */
	void *hangup;                  /* of iopub: readable when the kernel has closed it */
	struct hr_wire wire;
	pid_t pid;  /* 0: none; it leads its process group */
	int pidfd;  /* readable when it has ended; -1 */
	int status; /* of waitpid, once it has ended */
	char *file; /* connection file */
	char *dir;  /* of file and sockets */
	struct hr_cell cell;
	bool running;  /* a cell was sent and is not over */
	bool answered; /* a cell was over once */
	unsigned starts;
};

int hr_kernel_init(struct hr_kernel *k, const char *dir, struct hr_err *err);
void hr_kernel_done(struct hr_kernel *k);

/* Starts `python -m ipykernel_launcher`. The first cell waits until it listens. */
int hr_kernel_start(struct hr_kernel *k, const char *python, char *const *envp, struct hr_err *err);
/* Kills its process group and forgets it. */
void hr_kernel_kill(struct hr_kernel *k);
/* Asks it to end. */
void hr_kernel_shutdown(struct hr_kernel *k);
void hr_kernel_interrupt(const struct hr_kernel *k);

/* Asks whether it answers (over when it does), or runs code. k->cell tells what comes of it. */
int hr_kernel_ask(struct hr_kernel *k, struct hr_err *err);
int hr_kernel_execute(struct hr_kernel *k, const char *code, size_t len, struct hr_err *err);

/* Takes all messages that are there. True: k->cell is over now. */
bool hr_kernel_receive(struct hr_kernel *k);
/* After pidfd became readable: takes what it had sent before its end, and forgets it. k->status
 * says how it ended. */
void hr_kernel_ended(struct hr_kernel *k);

#endif
