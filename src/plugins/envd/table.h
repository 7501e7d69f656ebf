/* envd_table: the processes that clients have started: their output, their input and their end. It
 * knows no HTTP and no JSON. A process is found by its number or its tag until it has ended, and
 * for 30 seconds more by those that only ask how. */
#ifndef HR_PLUGINS_ENVD_TABLE_H
#define HR_PLUGINS_ENVD_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/span.h"
#include "plugins/envd/record.h"

struct hr_loop;
struct envd_process;
struct envd_table;

enum envd_stream { ENVD_STDOUT, ENVD_STDERR, ENVD_PTY };

/* A client of a process's output. The callbacks must not add or remove other readers. */
struct envd_reader {
	TAILQ_ENTRY(envd_reader) entry;
	struct envd_process *process; /* NULL: it reads nothing */
	/* The process has its number, or (sys is not 0) could not be made: the reader is removed.
	 */
	void (*started)(struct envd_reader *r, pid_t pid, int sys);
	void (*data)(struct envd_reader *r, enum envd_stream stream, struct hr_span data);
	/* The process has ended and all output was delivered; the reader is removed. */
	void (*ended)(struct envd_reader *r, int status);
	/* Returns true if the client has not taken what it was sent. */
	bool (*behind)(const struct envd_reader *r);
	/* The client has held up others for too long: must remove the reader. */
	void (*cut)(struct envd_reader *r);
};

/* Connects to the keeper of that directory and takes over its processes; blocks until it has them.
 * `lost` is called if the keeper ends, and with it all processes. */
struct envd_table *envd_table_open(
    struct hr_loop *loop, const char *dir, void (*lost)(void *arg), void *arg, struct hr_err *err);
/* Leaves the processes to the next server, or ends them all, the keeper included. */
void envd_table_close(struct envd_table *t, bool end);

/* Starts a process in the directory `cwd`, which stays the caller's. rows and cols are of a
 * terminal. `r` gets everything from its start on. Returns NULL with *err set. */
struct envd_process *envd_table_start(struct envd_table *t, const struct envd_record *record,
    int cwd, unsigned rows, unsigned cols, struct envd_reader *r, struct hr_err *err);

/* Finds a process that has not ended, or with `ended` also one that has; NULL: there is none. tag
 * NULL: by its number. */
struct envd_process *
envd_table_find(struct envd_table *t, int64_t pid, const struct hr_span *tag, bool ended);
/* Returns the next process that has not ended, in the order of their starts; from NULL the first.
 */
struct envd_process *envd_table_next(struct envd_table *t, struct envd_process *p);

pid_t envd_process_pid(const struct envd_process *p);
/* Returns the tag; none for p NULL. */
struct hr_span envd_process_tag(const struct envd_process *p);
/* Returns the configuration as it is in the record. */
struct hr_span envd_process_config(const struct envd_process *p);
bool envd_process_has_pty(const struct envd_process *p);
/* Returns true once SIGKILL was sent. */
bool envd_process_killed(const struct envd_process *p);

void envd_process_signal(struct envd_process *p, int sig);
/* Sets a terminal's size. Returns 0, or -1 with errno. */
int envd_process_resize(const struct envd_process *p, unsigned rows, unsigned cols);

/* Adds a reader of what comes from now on. An ended process calls `ended` at once, from within. */
void envd_process_read(struct envd_process *p, struct envd_reader *r);
void envd_reader_remove(struct envd_reader *r);
/* Resumes the output to a reader whose client has received all that was sent. */
void envd_reader_ready(struct envd_reader *r);

/* A piece of input that is being written. */
struct envd_input {
	TAILQ_ENTRY(envd_input) entry;
	struct envd_process *process; /* NULL: it is done */
	const char *p;                /* borrowed */
	size_t len;
	bool waits; /* the input has no bytes yet */
	/* sys: 0, or the errno of a failed write; may be called from within envd_process_write() */
	void (*done)(struct envd_input *i, int sys);
};

/* Returns true if the process has an input that is open: a pipe or a terminal. */
bool envd_process_takes_input(const struct envd_process *p);
/* Writes after all earlier input. */
void envd_process_write(struct envd_process *p, struct envd_input *i);
/* Keeps an input without bytes, which is done when the process ends. */
void envd_process_await(struct envd_process *p, struct envd_input *i);
void envd_input_cancel(struct envd_input *i);
/* Closes a pipe after all earlier input. */
void envd_process_close_input(struct envd_process *p);

#endif
