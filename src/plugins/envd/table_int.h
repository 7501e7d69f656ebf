/* Connects table.c, which knows the keeper, and process.c, which knows the descriptors. */
#ifndef HR_PLUGINS_ENVD_TABLE_INT_H
#define HR_PLUGINS_ENVD_TABLE_INT_H

#include "plugins/envd/keep.h"
#include "plugins/envd/table.h"

TAILQ_HEAD(envd_readers, envd_reader);
TAILQ_HEAD(envd_inputs, envd_input);

/* One direction out of a process. */
struct envd_out {
	struct envd_process *process;
	int fd; /* -1: at its end */
	struct hr_watch *watch;
	size_t left; /* bytes to deliver yet, once the process is cut */
};

struct envd_process {
	TAILQ_ENTRY(envd_process) entry;
	struct envd_table *table;
	uint32_t id;
	pid_t pid; /* 0: not known yet */
	char *tag, *config;
	size_t tag_len, config_len;
	bool pty, closing;
	bool killed, signalled;
	bool reaped; /* `status` is known */
	bool cut;    /* output after what is in the pipes now does not count */
	bool over;   /* the readers have learned of the end */
	int status;
	int in; /* -1: none; of a terminal a copy of its descriptor */
	struct envd_out out[2];
	struct envd_readers readers;
	struct envd_inputs inputs;
	struct hr_watch *writes, *timer; /* timer: the deadline, then the memory of the end */
	struct hr_watch *stalled;        /* armed while some readers hold up others */
	bool stalls;
};

struct envd_table {
	struct hr_loop *loop;
	int keeper;
	uint32_t last_id;
	size_t readers;
	struct hr_watch *events;
	void (*lost)(void *arg);
	void *arg;
	TAILQ_HEAD(envd_processes, envd_process) processes;
};

/* Makes a process without descriptors. Returns NULL without memory. */
struct envd_process *
envd_process_new(struct envd_table *t, uint32_t id, const struct envd_record *record);
/* Removes it from the table; the keeper forgets it. */
void envd_process_free(struct envd_process *p);
/* Starts to read and takes over the descriptors of a packet. */
int envd_process_attach(struct envd_process *p, int fds[ENVD_FDS], struct hr_err *err);

/* The keeper reports the number (0: sys is why there is no process) and the end. */
void envd_process_started(struct envd_process *p, pid_t pid, int sys);
void envd_process_reaped(struct envd_process *p, int status, int64_t ended_ms);

void envd_process_limit(struct envd_process *p, int64_t deadline_ms);

/* Sends a packet without descriptors. */
void
envd_table_tell(struct envd_table *t, uint32_t op, const struct envd_process *p, uint32_t value);

#endif
