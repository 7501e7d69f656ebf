/* struct hr_sandbox: what a sandbox is to those who work on it. */
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
	struct hr_module module; /* of a loadable backend */
	struct hr_config *config;
	char *sid, *state_dir;
	struct hr_strv plugins, env, environ;
	struct hr_strv secrets; /* of the backend, "PROVIDER_KEY=..." */
	struct hr_strv tokens;  /* of git's providers, "GITHUB_TOKEN=..." */
	struct hr_backend_host host;
	struct hr_client client; /* of the server, once connected */
	struct hr_endpoint endpoint;
	const char *runtime_status; /* last one reported */
	bool connected, closed, attach;
	bool recorded;           /* a record of this machine leads to it */
	bool elsewhere;          /* to an Engine or a cluster that the settings do not name */
	bool made;               /* by the last hr_sandbox_connect() */
	const char *for_new;     /* of its options; borrowed */
	struct json_object *mcp; /* servers that were added; NULL: none */
	bool keep_owner;         /* by copies, as numbers */
	bool fresh;              /* not from the pool */
	bool begun;              /* recorded as one that is not ready */
	bool left;               /* and it stays so, though connect() failed */
	char spec[80];           /* of one that waits in the pool; "": it does not */
	hr_status_fn *status;
	void *status_arg;
	hr_warn_fn *log;
	void *log_arg;
	hr_progress_fn *progress;
	void *progress_arg;
	char state[32]; /* the answer to the last question: a backend's text goes with it */
	hr_output_fn *output;
	void *output_arg;
	struct hr_log_stream *stream; /* NULL: nobody follows the log */
};

/* For HR_CLEAN(), as those of settings.h and rest.h. */
static inline void
hr_sandbox_clean(struct hr_sandbox **s)
{
	hr_sandbox_free(*s);
}

#endif
