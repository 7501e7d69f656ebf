/* hr_mcp_env: declares the services that the MCP tools require from their caller, the worker. */
#ifndef HR_MCP_ENV_H
#define HR_MCP_ENV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/span.h"
#include "proto/httperr.h"

struct hr_buf;
struct json_object;

#define HR_MCP_BODY_MAX (16u << 20)
#define HR_MCP_DEPTH 64 /* maximum of nested brackets in a message */

/* The state of a process beside the shells. */
struct hr_mcp_process {
	bool over; /* exit_code is set */
	bool left; /* the process or others that it has started run */
	int64_t exit_code;
	uint64_t bytes; /* length of the output so far */
};

/* Looks after processes beside the shells, each by the id that hr_mcp_env.start() returned.
 * `server` is that of hr_mcp_env; an id may be any string. */
struct hr_mcp_beside {
	/* Returns 1, 0 if there is no such process, or -1 if its files cannot be read. */
	int (*look)(void *server, const char *id, struct hr_mcp_process *ret);
	/* Appends up to `len` bytes of the output. Returns 0, or -1 with *err set. */
	int (*read)(void *server, const char *id, uint64_t from, size_t len, struct hr_buf *raw,
	    struct hr_err *err);
	/* Sends SIGTERM, and a second later SIGKILL, to the process with its group, or to what it
	 * has left when it is over. Returns 0, or -1 with errno. */
	int (*stop)(void *server, const char *id);
	/* Waits until the process ends, hr_now_ms() reaches until_ms, the client leaves or a signal
	 * is pending; -1: no such descriptor. Returns true in the last two cases. */
	bool (*wait)(void *server, const char *id, int64_t until_ms, int client, int signals);
};

/* All pointers are borrowed and stay valid for the life of the process. */
struct hr_mcp_env {
	const char *run_dir;  /* directory of the sockets of shells and plugins */
	const char *work_dir; /* the server's working directory */
	const char *office;   /* see files/document.h */
	uid_t shell_uid;      /* account whose permissions file searches use */
	uid_t user_id;        /* owner of new files */
	/* Performs an action in the shell `session` (NULL: the default shell), at most once per
	 * `key`, or per the request's key if `key` is empty. Answers like POST /execute_action;
	 * ret->key is the key that was used. */
	void (*perform)(void *arg, const char *session, struct json_object *action,
	    struct hr_span key, struct hr_answer *ret);
	/* enter() starts an operation that is not an action, at most once per request key. If it
	 * returns true, the caller does the work, fills ret and calls leave(). If it returns false,
	 * ret holds the answer of the first call. */
	bool (*enter)(void *arg, struct hr_answer *ret);
	void (*leave)(void *arg, const struct hr_answer *ret);
	/* Works as enter(), but the work counts as started only from mark() on: if the worker dies
	 * before that, another worker repeats the call. */
	bool (*begin)(void *arg, struct hr_answer *ret);
	void (*mark)(void *arg);
	/* Notes activity that counts as use of the sandbox. */
	void (*active)(void *arg);
	/* Creates a shell. Returns false with the reason in ret. */
	bool (*create)(void *arg, const char *name, struct hr_answer *ret);
	/* Ends a shell and all that runs in it; NULL: the default shell, which is then replaced.
	 * Returns false with the reason in ret. */
	bool (*end)(void *arg, const char *name, struct hr_answer *ret);
	/* Appends the names of all shells except the default one, each with its NUL. Returns false
	 * with the reason in ret. */
	bool (*names)(void *arg, struct hr_buf *names, struct hr_answer *ret);
	/* Starts a command in a directory ("": the server's) as a process beside the shells, at
	 * most once per `key` as perform() does. Fills ret; its body is the process's id. */
	void (*start)(void *arg, struct hr_span command, struct hr_span directory,
	    struct hr_span key, struct hr_answer *ret);
	const struct hr_mcp_beside *beside;
	void *server; /* valid for the life of the process */
	void *arg;    /* valid while a message is handled, but not while its answer is streamed */
};

#endif
