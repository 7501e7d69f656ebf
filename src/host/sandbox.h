/* A sandbox from inside. */
#ifndef HR_HOST_SANDBOX_H
#define HR_HOST_SANDBOX_H

#include "host/client.h"
#include "host/handrail-backend.h"
#include "host/common/module.h"
#include "host/config/settings.h"
#include "host/common/strv.h"

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
	struct json_object *mcp; /* servers that were added; NULL: none */
	bool fresh;              /* not from the pool */
	bool begun;              /* recorded as one that is not ready */
	bool left;               /* and it stays so, though connect() failed */
	char *taken;             /* the pool's file of it until it is recorded; NULL: none */
	int taken_fd;            /* which is locked; -1 */
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

void
hr_sandbox_report(struct hr_sandbox *s, const char *level, const char *status, const char *text);
void
hr_sandbox_log(struct hr_sandbox *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A `run` action of our own: *ret_exit, and the output in b (may be NULL). */
int hr_sandbox_run(struct hr_sandbox *s, const char *command, double timeout_s, int *ret_exit,
    struct hr_buf *b, struct hr_err *err);

/* Its first directory; borrowed. */
const char *hr_sandbox_workspace(const struct hr_sandbox *s);

/* A `read` or `write` action: 1 done, the file's content in b (may be NULL); 0 an error
 * observation; -1 *err. content: NULL to read. */
int hr_sandbox_file(struct hr_sandbox *s, const char *path, const char *content, struct hr_buf *b,
    struct hr_err *err);

/* The same in a shell of its own, in the first directory. */
int hr_sandbox_run_static(struct hr_sandbox *s, const char *command, double timeout_s,
    int *ret_exit, struct hr_buf *b, struct hr_err *err);

/* hr_sandbox_copy_from() of an archive that takes `most` bytes at most; 0: of any size. The archive
 * of a kind that makes it by itself is not bounded. */
int hr_sandbox_copy_some(struct hr_sandbox *s, const char *sandbox_path, unsigned long long most,
    char **ret_file, struct hr_err *err);
/* Names of variables that could not be set: -1. */
int hr_sandbox_check_env(struct hr_sandbox *s, struct hr_err *err);
/* What a fresh sandbox is given (doc/host.md, "What a fresh sandbox is given"). taken: it has what
 * all of its kind get. */
int hr_sandbox_set_up(struct hr_sandbox *s, bool taken, struct hr_err *err);

/* What lies there is believed, so that only the user may write in it. make: there may be none yet;
 * otherwise that is no error. */
int hr_state_directory(const char *dir, bool make, struct hr_err *err);

/* "STATE_DIR/SID.json" and the like; the caller frees; NULL: no memory. */
char *hr_record_path(const char *state_dir, const char *sid, const char *suffix);
int hr_record_save(struct hr_sandbox *s, struct hr_err *err);
/* Before it is the sandbox's: what the backend recorded of the one that is taken from the pool, and
 * the name of the pool's file, which is locked until hr_record_save(). */
int hr_record_save_taking(
    struct hr_sandbox *s, const char *backend, const char *taking, struct hr_err *err);

/* Texts are NULL where there are none, all of them where there is no record. */
struct hr_record {
	char *runtime, *backend;
	char *taking; /* it is not ready yet, see above */
	int64_t created;
};
int
hr_record_load(const char *state_dir, const char *sid, struct hr_record *ret, struct hr_err *err);
void hr_record_done(struct hr_record *r);
void hr_record_remove(struct hr_sandbox *s);

/* May a sandbox be called so? Its name becomes a file's and a container's. */
bool hr_sid_valid(const char *sid);

/* The table of a runtime's name; *m is to be closed with the last of it. named: by whoever calls;
 * otherwise the name is not taken for that of a file. */
const struct hr_sandbox_ops *hr_backend_find(const char *name, bool named, const char *const *env,
    struct hr_module *m, hr_warn_fn *warn, void *arg, struct hr_err *err);

extern const struct hr_sandbox_ops hr_backend_local;
extern const struct hr_sandbox_ops hr_backend_docker;
extern const struct hr_sandbox_ops hr_backend_remote;

#endif
