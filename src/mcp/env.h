/* hr_mcp_env: what the tools of the door need of whoever calls them. */
#ifndef HR_MCP_ENV_H
#define HR_MCP_ENV_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/span.h"
#include "proto/httperr.h"

struct hr_buf;
struct json_object;

#define HR_MCP_BODY_MAX (16u << 20)
#define HR_MCP_DEPTH 64 /* of brackets in a message */

/* What the tools need of the worker. All borrowed for the life of the process. */
struct hr_mcp_env {
	const char *run_dir;  /* where shells and plugins are found */
	const char *work_dir; /* the server's */
	const char *office;   /* see files/document.h */
	uid_t shell_uid;      /* with whose rights files are searched */
	uid_t user_id;        /* owner of the files that are made */
	/* An action, for the shell `session` (NULL: the default one), at most once by `key`, or by
	 * the request's own where that is empty. Answered as POST /execute_action; ret->key is the
	 * key that it has in the end. */
	void (*perform)(void *arg, const char *session, struct json_object *action,
	    struct hr_span key, struct hr_answer *ret);
	/* Something that is no action, at most once by the request's own key: if enter says true,
	 * do it, fill ret, leave. False: ret holds the answer of the first time. */
	bool (*enter)(void *arg, struct hr_answer *ret);
	void (*leave)(void *arg, const struct hr_answer *ret);
	/* As enter(), but nothing has begun before mark(): until then a worker that dies leaves the
	 * call to another one. */
	bool (*begin)(void *arg, struct hr_answer *ret);
	void (*mark)(void *arg);
	/* Something was done that counts as use of the sandbox. */
	void (*active)(void *arg);
	/* Makes a shell. False: ret says why not. */
	bool (*create)(void *arg, const char *name, struct hr_answer *ret);
	/* Ends one with what runs in it; NULL: the default one's shell, which is replaced. False:
	 * ret says why not. */
	bool (*end)(void *arg, const char *name, struct hr_answer *ret);
	/* Appends the names of all but the default one, each with its NUL. False: as above. */
	bool (*names)(void *arg, struct hr_buf *names, struct hr_answer *ret);
	void *arg; /* valid while the message is handled, not while an answer is streamed */
};

#endif
