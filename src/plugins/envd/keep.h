/* envd_keep: the keeper, which makes the processes, holds their descriptors and learns how they
 * end, so that a kill of the server, or of handraild, ends none. It reads no byte of a client and
 * none of a process. The keeper forks, and not the server with CLONE_PARENT: the parent of the
 * server is handraild, and the keeper is the smaller program to copy.
 *
 * Server and keeper exchange packets with descriptors on a socket below the plugin's directory. A
 * process whose packet was sent is in the keeper's table, whenever the server dies. */
#ifndef HR_PLUGINS_ENVD_KEEP_H
#define HR_PLUGINS_ENVD_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct rlimit;

#define ENVD_KEEP_VERSION 1

enum envd_keep_op {
	/* The server sends these. */
	ENVD_KEEP_END = 1, /* the same in every version: kill all processes, and end */
	ENVD_KEEP_HELLO,   /* handraild (pidfd) in fds[0] */
	ENVD_KEEP_START,   /* makes a process; the keeper sends it to a child */
	ENVD_KEEP_SIGNAL,  /* `value` to the process, unless it has ended */
	ENVD_KEEP_CLOSE,   /* closes the descriptors in the mask `value` */
	ENVD_KEEP_FORGET,
	/* The keeper sends these. */
	ENVD_KEEP_ENTRY,   /* a process that an earlier server made */
	ENVD_KEEP_READY,   /* all entries were sent; `value`: version */
	ENVD_KEEP_STARTED, /* `value`: 0, or the errno of a failed start */
	ENVD_KEEP_ENDED,   /* `value`: wait status */
};

/* Descriptors of a packet. */
enum {
	ENVD_FD_RECORD, /* memory file, see record.h */
	ENVD_FD_IN,     /* the server's ends */
	ENVD_FD_OUT,    /* the only descriptor of a terminal */
	ENVD_FD_ERR,
	ENVD_FDS_KEPT,
	ENVD_FD_CHILD_IN = ENVD_FDS_KEPT, /* the child's ends, in ENVD_KEEP_START only */
	ENVD_FD_CHILD_OUT,
	ENVD_FD_CHILD_ERR,
	ENVD_FD_CWD,
	ENVD_FDS,
};

enum envd_keep_state { ENVD_STARTING, ENVD_RUNS, ENVD_ENDED };

struct envd_packet {
	uint32_t op, id, value, state;
	int32_t pid;
	uint32_t status;  /* wait status, of an ENVD_KEEP_ENTRY that has ended */
	int64_t ended_ms; /* as hr_now_ms() counts */
	uint32_t mask;    /* bits of the descriptors that follow */
};

/* Sends a packet; fds[i] is sent if it is not -1, and stays the caller's. fds NULL: none. Returns
 * 0, or -1 with errno. */
int envd_packet_send(int sock, struct envd_packet *p, const int *fds, int flags);
/* Receives a packet and the descriptors that it has (-1: missing), which the caller owns. Returns
 * 1, 0 at the end, or -1 with errno. */
int envd_packet_recv(int sock, struct envd_packet *p, int fds[ENVD_FDS], int flags);

/* Connects to the keeper of that directory, or starts one. Returns a socket, or -1. */
int envd_keep_connect(const char *dir, struct hr_err *err);

/* Runs the keeper; `listener` is where servers connect. Returns an exit code. */
int envd_keep_run(int listener);

/* A child of the keeper that waits for ENVD_KEEP_START on a socket and becomes its process. The
 * keeper forks the child before it needs one, so that no start waits for a fork. */
struct envd_child {
	pid_t pid; /* 0: none */
	int sock;  /* -1: none */
};

/* Forks a child, whose processes get the limit `nofile`. Returns 0, or -1 with errno. */
int envd_child_fork(struct envd_child *c, const struct rlimit *nofile);
/* Leaves a child that has its process, or has ended. Without a process, it exits. */
void envd_child_drop(struct envd_child *c);

#endif
