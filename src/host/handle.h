/* Defines the members of struct hr_sandbox, for the library's files. */
#ifndef HR_HOST_HANDLE_H
#define HR_HOST_HANDLE_H

#include "host/client/client.h"
#include "host/common/module.h"
#include "base/strv.h"
#include "host/config/settings.h"
#include "host/handrail-backend.h"

struct json_object;

struct hr_sandbox {
	const struct hr_sandbox_ops *ops;
	void *self;
	struct hr_module module; /* module of a loadable back-end */
	struct hr_config *config;
	char *sid, *state_dir;
	struct hr_strv plugins, env, environ;
	struct hr_strv secrets; /* secrets of the back-end, as "PROVIDER_KEY=..." */
	struct hr_strv tokens;  /* tokens of git providers, as "GITHUB_TOKEN=..." */
	bool tokens_stay;       /* the sandbox does not get them */
	struct hr_backend_host host;
	struct hr_client client; /* calls the server, once connected */
	struct hr_endpoint endpoint;
	const char *runtime_status; /* last status reported */
	bool connected, closed, attach;
	bool recorded;           /* a record of this machine names the sandbox */
	bool elsewhere;          /* the Engine or cluster is not the one in the settings */
	bool made;               /* the last hr_sandbox_connect() created the sandbox */
	const char *for_new;     /* value of the option for_new; borrowed */
	struct json_object *mcp; /* servers added so far; NULL: none */
	bool keep_owner;         /* copies keep owners, as numbers */
	bool fresh;              /* the sandbox must not come from the pool */
	/* Sets a new sandbox up before it is recorded as ready; NULL: hr_sandbox_set_up(). Such a
	 * sandbox does not come from the pool. */
	int (*set_up)(struct hr_sandbox *s, void *arg, struct hr_err *err);
	void *set_up_arg;
	bool begun;    /* the sandbox is recorded as not ready */
	bool left;     /* the record stays, though connect() failed */
	char spec[80]; /* digest of a pool's waiting sandbox; "": it is not one */
	hr_status_fn *status;
	void *status_arg;
	hr_warn_fn *log;
	void *log_arg;
	hr_progress_fn *progress;
	void *progress_arg;
	char state[32]; /* last state; a copy, since the back-end's string does not outlive it */
	hr_output_fn *output;
	void *output_arg;
	struct hr_log_stream *stream; /* NULL: no stream follows the log */
};

/* Makes a snapshot, as snapshot() of struct hr_sandbox_ops. Returns 0, or -1 with *err set,
 * HR_E_UNSUPPORTED if the back-end makes none. */
int hr_sandbox_snapshot(struct hr_sandbox *s, const char *tag, char **ret_json, struct hr_err *err);

/* Frees the sandbox; for HR_CLEAN(), like those of settings.h and rest.h. */
static inline void
hr_sandbox_clean(struct hr_sandbox **s)
{
	hr_sandbox_free(*s);
}

#endif
