/* hr_mcp_env: declares the services that the MCP tools require from their caller, the worker. */
#ifndef HR_MCP_ENV_H
#define HR_MCP_ENV_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/span.h"
#include "proto/httperr.h"

struct hr_buf;
struct json_object;

#define HR_MCP_BODY_MAX (16u << 20)
#define HR_MCP_DEPTH 64 /* maximum of nested brackets in a message */

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
	void *arg; /* valid while a message is handled, but not while its answer is streamed */
};

#endif
