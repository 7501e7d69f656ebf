/* handrail-backend.h: describes a back-end as a table of functions. The library handles a sandbox
 * only through this table. For authors of a back-end: a shared object libhandrail-backend-NAME.so
 * in the backend directory exports hr_backend_entry(). See doc/backends.md. */
#ifndef HR_HOST_HANDRAIL_BACKEND_H
#define HR_HOST_HANDRAIL_BACKEND_H

#include "handrail.h" /* installed beside this file */

#ifdef __cplusplus
extern "C" {
#endif

/* increases when the table changes incompatibly for older back-ends */
#define HR_BACKEND_ABI 11

struct hr_sandbox_ops;

/* The library's data for a back-end. All members are borrowed and live as long as the sandbox. */
struct hr_backend_host {
	const struct hr_config *config;
	const char *sid;
	const char *const *plugins;
	const char *const *env;     /* variables for the sandbox: "NAME=value" */
	const char *const *environ; /* the caller's environment */
	bool attach, detach;
	const char *state_dir; /* NULL: there is none */
	void (*log)(void *arg, const char *text);
	void (*status)(void *arg, const char *status);
	void *arg;
	/* Takes lines that a command prints, immediately, with arg; NULL: not needed. */
	void (*output)(void *arg, const char *line, size_t len);
	/* Takes the progress of creating a sandbox, with arg; NULL: not needed. */
	hr_progress_fn *progress;
	/* Called by connect(), with arg: record() now identifies the unfinished sandbox. The record
	 * is saved, so that the sandbox can be ended if this process dies before it is ready. A
	 * second call has no effect. */
	void (*begun)(void *arg);
	/* These are hr_config_text() and the others, for a shared object that is not linked to the
	 * library. */
	const char *(*config_text)(const struct hr_config *c, const char *key);
	long long (*config_int)(const struct hr_config *c, const char *key);
	bool (*config_bool)(const struct hr_config *c, const char *key);
	/* When readable, logs() and events() must return 0 at once without further calls; -1:
	 * never. */
	int stop_fd;
	/* Called by a connect() that fails, with arg: the unfinished sandbox may still exist, so
	 * its record stays. */
	void (*left)(void *arg);
	/* Hides a text from all logs and errors from now on, with arg. */
	void (*secret)(void *arg, const char *text);
	/* The table whose open() is called, for an open() shared by several tables. */
	const struct hr_sandbox_ops *ops;
	/* Permits a sandbox found by its name to belong to another owner. Otherwise connect() finds
	 * only those whose label names this user of this machine, and its error names the owner of
	 * another one. */
	bool any_owner;
	/* close() must end the sandbox that state() saw last, and fail if another one has its name
	 * by now. Resources that the next one of that name would use stay. */
	bool as_seen;
};

/* How connect() got its sandbox. Only a sandbox that it made gets its variables at its creation,
 * and only such a one is ended if the rest of its start fails. */
enum hr_connected {
	HR_SANDBOX_FOUND,   /* the sandbox was running already */
	HR_SANDBOX_RESUMED, /* the sandbox was paused or stopped, and was restarted */
	HR_SANDBOX_MADE,    /* this call made it */
};

/* The address of the sandbox's server. All members belong to the back-end, and stay until the next
 * call of the table. */
struct hr_endpoint {
	/* "http://127.0.0.1:30000"; "unix:PATH" if unix_socket is all that leads to the server;
	 * NULL: no server */
	const char *url;
	const char *unix_socket; /* NULL: the server is reached by TCP */
	const char *key;         /* value of X-Session-API-Key; NULL: none */
	/* Headers of each request besides the key, as "X-API-Key: ...", as secret as the key;
	 * NULL-terminated, at most HR_ENDPOINT_HEADERS; NULL: none. */
	const char *const *headers;
	const char *workspace; /* the first directory; NULL: as configured */
	/* The home directory of the sandbox's shells if it shares the caller's account
	 * (HR_KIND_HERE) and has its own home; NULL with that flag: the caller's home, where
	 * nothing is written. */
	const char *home;
	/* ports of an editor and of two programs for people, with unix_socket those at the server's
	 * /port/N/; 0: none */
	int vscode_port;
	int app_ports[2];
	bool serves; /* the server also performs the operations that the table has functions for */
};
#define HR_ENDPOINT_HEADERS 4

/* properties of a back-end that its table does not show */
enum hr_kind_flags {
	/* A sandbox sees this machine's files: a handrail program runs there by its path, git's
	 * configured user stays, and there is no image. */
	HR_KIND_HERE = 1,
	/* A sandbox works in an account that a person uses: nothing is set up there. */
	HR_KIND_AS_IT_IS = 2,
	/* action() gives lines to host->output as they come. */
	HR_KIND_OUTPUT = 4,
	/* connect() finds a sandbox by its name, even without a record on this machine. */
	HR_KIND_FINDS = 8,
	/* "ours" in found() means made with this state directory, not only by this user. */
	HR_KIND_OF_STATE = 16,
	/* connect() removes what it has made and fails when host->stop_fd is readable. */
	HR_KIND_STOPS = 32,
	/* There is no image, although the sandbox has files of its own. */
	HR_KIND_NO_IMAGE = 64,
	/* The server is reached by the endpoint's unix_socket alone. */
	HR_KIND_SOCKET = 128,
	/* state() asks no other process, so that a command may call it before each request. */
	HR_KIND_STATE_NEAR = 256,
};

/* A setting that only this back-end has: [NAME] in config.toml, NAME_KEY in the environment, and
 * "handrail up --set NAME.KEY=VALUE", where NAME is the table's. It is read like any other:
 * host->config_text(host->config, "NAME.KEY"). */
enum hr_option_type {
	HR_OPTION_TEXT,
	HR_OPTION_INT,
	HR_OPTION_FLOAT,
	HR_OPTION_BOOL,
	HR_OPTION_LIST,
	HR_OPTION_MAP,
};
struct hr_backend_option {
	const char *key;
	enum hr_option_type type;
	const char *fallback; /* JSON; NULL: the setting is unset */
	bool secret;
	const char *help; /* one line, for "handrail up -r NAME --help" */
};

/* open, free and connect are required. NULL elsewhere: the library uses the server instead, or the
 * operation is not supported. Each int is 0, or -1 with *err set. */
struct hr_sandbox_ops {
	unsigned abi; /* the value HR_BACKEND_ABI */
	const char *name;
	unsigned flags;           /* a set of enum hr_kind_flags */
	const char *ready_status; /* final status of connect(); NULL: "STATUS$READY" */
	/* Prefix of each line of the log that DEBUG_RUNTIME shows, such as "[inside container] ";
	 * NULL: not shown. */
	const char *log_prefix;
	const struct hr_backend_option *options; /* ends with a NULL key; NULL: none */
	/* The settings of containers, [sandbox.limits] and [sandbox.security] that the back-end
	 * applies: "sandbox.enable_gpu", "sandbox.limits." for all of them,
	 * "sandbox.security.network_mode=host" for one value; NULL-terminated; NULL: none. Any
	 * other one is reported to the user: an unsupported limit is a warning, an unsupported
	 * security setting an error. */
	const char *const *heeds;

	int (*open)(const struct hr_backend_host *h, void **ret_self, struct hr_err *err);
	void (*free)(void *self);
	/* Makes or finds the sandbox, and waits until it responds. Sets *ret before it returns 0.
	 * On failure it must end the sandbox and all else that it has made itself, and nothing that
	 * it found or resumed. */
	int (*connect)(void *self, enum hr_connected *ret, struct hr_err *err);
	/* Ends all that a connect() with HR_SANDBOX_MADE made, and nothing older, such as files of
	 * an earlier sandbox. NULL: destroy() does it. */
	int (*undo)(void *self, struct hr_err *err);
	void (*endpoint)(void *self, struct hr_endpoint *ret);

	/* Handles a request to the server that failed with *err, the `attempt`th time (from 1). It
	 * may reword the error, wait, and repair the cause. It sets *ret_again to send the request
	 * again, to the address that endpoint() now returns, if possible (not for a streamed
	 * upload). NULL: the failure is final. */
	void (*failed)(void *self, unsigned attempt, bool *ret_again, struct hr_err *err);

	/* record() returns a JSON object (freed by the library) from which another process can find
	 * the sandbox; restore() reads it, after open and instead of connect. Its members "pid" and
	 * "started" (field 22 of /proc/PID/stat) name a process whose end is reported as an event;
	 * "url" is shown in lists. restore() fails with HR_E_UNSUPPORTED if the settings lead
	 * elsewhere than the record, such as to another cluster: the sandbox is then neither
	 * replaced nor deleted. */
	char *(*record)(void *self, struct hr_err *err);
	int (*restore)(void *self, const char *record, struct hr_err *err);

	/* Returns "running", "copying", "paused", "exited" or "gone", a constant. */
	const char *(*state)(void *self);

	int (*action)(void *self, const char *action, char **ret, struct hr_err *err);
	/* Sends the signal to every process that the current `run` action has started, while
	 * another thread waits in action(). Sets *ret if there was one. NULL: not supported. */
	int (*interrupt)(void *self, int number, bool *ret, struct hr_err *err);
	int (*copy_to)(
	    void *self, const char *from, const char *to, bool recursive, struct hr_err *err);
	int (*copy_from)(void *self, const char *path, char **ret_file, struct hr_err *err);
	/* Lists the names in a directory as JSON; for a file its own path, for a missing one []. */
	int (*list_files)(void *self, const char *path, char **ret_json, struct hr_err *err);
	int (*add_env)(void *self, const char *const *env, struct hr_err *err);

	int (*pause)(void *self, struct hr_err *err);
	int (*resume)(void *self, struct hr_err *err);
	int (*close)(void *self, struct hr_err *err);
	int (*destroy)(void *self, struct hr_err *err);

	int (*logs)(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err);
	int (*stats)(void *self, char **ret_json, struct hr_err *err);
	int (*exec)(void *self, const char *const *argv, int *ret_status, struct hr_err *err);
	/* Both are for a pool. freeze() pauses a sandbox so that it resumes at once; NULL: it waits
	 * as it is. adopt() takes over the sandbox recorded as `sid`, after open and instead of
	 * connect. If it fails, HR_E_NO_SANDBOX and HR_E_DISCONNECTED mean a dead sandbox, which is
	 * ended under its old name. After other errors it stays in the pool. NULL: no pool. */
	int (*freeze)(void *self, struct hr_err *err);
	int (*adopt)(void *self, const char *sid, const char *record, struct hr_err *err);

	/* Return addresses for a browser, freed by the library: vscode_url() the editor's, up to
	 * the "?" of its query, such as "http://localhost:31000/", with *ret NULL if there is no
	 * editor; web_hosts() the places where programs of the sandbox listen, as a JSON object of
	 * URL to port. NULL: both are at the endpoint's ports on this machine. */
	int (*vscode_url)(void *self, char **ret, struct hr_err *err);
	int (*web_hosts)(void *self, char **ret_json, struct hr_err *err);
	/* Returns an address like "http://127.0.0.1:31000", by which a browser reaches the server,
	 * freed by the library. NULL: the endpoint's URL is one. */
	int (*web_url)(void *self, char **ret, struct hr_err *err);

	/* The rules of the sandbox's network, as hr_sandbox_network() and the others have them. The
	 * last two are called only if the first one returned rules. NULL: no sandbox has rules. */
	int (*network)(void *self, char **ret_json, struct hr_err *err);
	int (*set_network)(void *self, const char *json, struct hr_err *err);
	int (*network_log)(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err);

	/* Copies the files of the sandbox as a snapshot, whose name is `tag` (NULL: any), while it
	 * runs. *ret_json is the snapshot's record, freed by the library. NULL: not supported. */
	int (*snapshot)(void *self, const char *tag, char **ret_json, struct hr_err *err);

	/* ---- the back-end, not a sandbox: after open, without connect ---- */

	/* Calls fn with events of all the back-end's sandboxes, until host->stop_fd is readable, fn
	 * returns non-zero, or no more events can come. Returns -1 if it was interrupted, and is
	 * called again after a while. Runs in its own thread. NULL: records and processes are the
	 * only source. */
	int (*events)(void *self, hr_event_fn *fn, void *arg, struct hr_err *err);
	/* Returns 0 if rules of a network can hold, or -1: HR_E_UNSUPPORTED if they never do. */
	int (*holds_network)(void *self, struct hr_err *err);
	/* Checks the back-end's needs on this machine and elsewhere. NULL: there are none. */
	int (*doctor)(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err);
	/* Ensures that the runtime image exists; the library frees *ret_name. NULL: an Engine on
	 * this machine builds it. */
	int (*build)(
	    void *self, const struct hr_build_options *o, char **ret_name, struct hr_err *err);

	/* Lists the sandboxes at a provider that handrail made, recorded or not, after open and
	 * without connect: a JSON array of {"id", "sid", "run", "state", "ours"}; "ours" means made
	 * by this user of this machine, or with HR_KIND_OF_STATE with this state directory.
	 * end_found() ends one by its id. */
	int (*found)(void *self, char **ret_json, struct hr_err *err);
	int (*end_found)(void *self, const char *id, struct hr_err *err);
};

/* Returns a loadable back-end's table; NULL if it does not support abi, the library's version. */
const struct hr_sandbox_ops *hr_backend_entry(unsigned abi);

#ifdef __cplusplus
}
#endif

#endif
