/* handrail-backend.h: one kind of sandbox, as a table of functions. All that the library does with
 * a sandbox it does by this table, whatever the kind is called. For those who add a kind: a shared
 * object libhandrail-backend-NAME.so in the backend directory that exports hr_backend_entry(). See
 * doc/backends.md. */
#ifndef HR_HOST_HANDRAIL_BACKEND_H
#define HR_HOST_HANDRAIL_BACKEND_H

#include "handrail.h" /* beside it where they are installed */

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up when the table changes in a way that older backends cannot know. */
#define HR_BACKEND_ABI 7

struct hr_sandbox_ops;

/* What the library tells a backend. Everything is borrowed and lives as long as the sandbox. */
struct hr_backend_host {
	const struct hr_config *config;
	const char *sid;
	const char *const *plugins;
	const char *const *env;     /* variables for the sandbox: "NAME=value" */
	const char *const *environ; /* the caller's environment */
	bool attach, detach;
	const char *state_dir; /* NULL: none */
	void (*log)(void *arg, const char *text);
	void (*status)(void *arg, const char *status);
	void *arg;
	/* Lines that a command prints, as they come, with arg; NULL: nobody listens. */
	void (*output)(void *arg, const char *line, size_t len);
	/* How far the making of a sandbox is, with arg; NULL: nobody asks. */
	hr_progress_fn *progress;
	/* For connect(), with arg: from now on record() leads to what is begun. It is kept, so that
	 * it can be ended if this process dies before it is ready. A second call is of no effect.
	 */
	void (*begun)(void *arg);
	/* hr_config_text() and its like, for a shared object that is not linked to the library. */
	const char *(*config_text)(const struct hr_config *c, const char *key);
	long long (*config_int)(const struct hr_config *c, const char *key);
	bool (*config_bool)(const struct hr_config *c, const char *key);
	/* Readable: logs() and events() are to return 0 at once, and tell no more; -1: it never is.
	 */
	int stop_fd;
	/* For connect() that fails, with arg: what is begun may still be there, so its record
	 * stays. */
	void (*left)(void *arg);
	/* A text that is in no log and no error from now on, with arg. */
	void (*secret)(void *arg, const char *text);
	/* The table by which open() is called, for one open() of several tables. */
	const struct hr_sandbox_ops *ops;
	/* A sandbox that is found by its name may be another owner's. Without it connect() finds
	 * only those whose label names this user of this machine, and its error names the owner
	 * of another one. */
	bool any_owner;
	/* close() ends the sandbox that state() saw last, and fails where another one has its name
	 * since. What a next one of that name would use stays. */
	bool as_seen;
};

/* How connect() came to its sandbox. Only one that it made is given its variables at its creation,
 * and only that one is ended where the rest of its start fails. */
enum hr_connected {
	HR_SANDBOX_FOUND,   /* it ran already */
	HR_SANDBOX_RESUMED, /* it was there, paused or stopped, and was started again */
	HR_SANDBOX_MADE,    /* this call made it */
};

/* Where the sandbox's server is reached. Everything is the kind's, and stays until the next call of
 * the table. */
struct hr_endpoint {
	const char *url;         /* "http://127.0.0.1:30000"; NULL: there is no server */
	const char *unix_socket; /* NULL: TCP */
	const char *key;         /* X-Session-API-Key; NULL: none */
	/* Sent with each request beside the key, as "X-API-Key: ..."; ends with NULL; NULL: none.
	 * At most HR_ENDPOINT_HEADERS. They are as secret as the key. */
	const char *const *headers;
	const char *workspace; /* its first directory; NULL: as configured */
	/* The home directory of its shells where it shares the caller's account (HR_KIND_HERE) and
	 * has one of its own; NULL with that flag: it is the caller's, and nothing is written
	 * there.
	 */
	const char *home;
	int vscode_port; /* where an editor and two programs of people are; 0: nowhere */
	int app_ports[2];
	bool serves; /* the server does what the table has functions for, too */
};
#define HR_ENDPOINT_HEADERS 4

/* What is true of a kind, beside what its table can do. */
enum hr_kind_flags {
	/* Its sandboxes see the files of this machine: a program of ours runs there by its path,
	 * who git believes to be its user stays, where git was told, and there is no image. */
	HR_KIND_HERE = 1,
	/* What it works in is somebody's own account: nothing is set up in it. */
	HR_KIND_AS_IT_IS = 2,
	/* action() gives lines to host->output as they come. */
	HR_KIND_OUTPUT = 4,
	/* connect() finds a sandbox by its name, also one that this machine has no record of. */
	HR_KIND_FINDS = 8,
	/* What found() says to be ours was made with this state directory, not only by this user.
	 */
	HR_KIND_OF_STATE = 16,
	/* connect() clears away what it has made and fails when host->stop_fd is readable. */
	HR_KIND_STOPS = 32,
};

/* A setting that only this kind has: [NAME] of config.toml, NAME_KEY of the environment, and
 * "handrail up --set NAME.KEY=VALUE", where NAME is the table's. Read as any other:
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
	const char *fallback; /* in JSON; NULL: not set */
	bool secret;
	const char *help; /* one line, for "handrail up -r NAME --help" */
};

/* open, free and connect are required; NULL elsewhere means that it is done over the server, or
 * that this kind cannot do it. Each int is 0, or -1 with *err. */
struct hr_sandbox_ops {
	unsigned abi; /* HR_BACKEND_ABI */
	const char *name;
	unsigned flags;           /* of enum hr_kind_flags */
	const char *ready_status; /* what connect ends with; NULL: "STATUS$READY" */
	/* What stands before each line of the log that DEBUG_RUNTIME shows, as "[inside container]
	 * "; NULL: that shows none. */
	const char *log_prefix;
	const struct hr_backend_option *options; /* ends with a key of NULL; NULL: none */
	/* Which settings of containers, [sandbox.limits] and [sandbox.security] it does, as
	 * "sandbox.enable_gpu", "sandbox.limits."
	 * for all of them, "sandbox.security.network_mode=host" for one value; ends with NULL;
	 * NULL: none. Whoever sets another is told: with a limit
	 * that does not hold a sandbox is made, with a promise of security that does not it is not.
	 */
	const char *const *heeds;

	int (*open)(const struct hr_backend_host *h, void **ret_self, struct hr_err *err);
	void (*free)(void *self);
	/* Makes or finds the sandbox and waits until it answers. *ret is set before it returns 0.
	 * Where it fails it ends what it has made itself, and nothing that it found or resumed. */
	int (*connect)(void *self, enum hr_connected *ret, struct hr_err *err);
	/* After a connect() with HR_SANDBOX_MADE: ends what that call made and nothing that was
	 * there before, such as files of an earlier sandbox. NULL: destroy() does it. */
	int (*undo)(void *self, struct hr_err *err);
	void (*endpoint)(void *self, struct hr_endpoint *ret);

	/* A request to the server failed with *err, the `attempt`th time (from 1 on). May say it in
	 * other words, wait, and mend it: *ret_again: it is sent once more, to what endpoint() says
	 * then, where that is possible (an upload as a stream is not). NULL: it has failed. */
	void (*failed)(void *self, unsigned attempt, bool *ret_again, struct hr_err *err);

	/* What to keep so that another process finds it again, as a JSON object (the library
	 * frees), and the way back, after open and instead of connect. Its members "pid" and
	 * "started" (field 22 of /proc/PID/stat) name a process whose end is told as an event,
	 * "url" is shown in lists. restore() fails with HR_E_UNSUPPORTED where the settings lead
	 * elsewhere than the record, such as to another cluster: the sandbox is neither replaced
	 * nor deleted then. */
	char *(*record)(void *self, struct hr_err *err);
	int (*restore)(void *self, const char *record, struct hr_err *err);

	/* Is it still there? "running", "paused", "exited", "gone": constant. */
	const char *(*state)(void *self);

	int (*action)(void *self, const char *action, char **ret, struct hr_err *err);
	/* Sends the signal to every process that the current `run` action has started, while
	 * another thread waits in action(). Sets *ret if there was one. NULL: not supported. */
	int (*interrupt)(void *self, int number, bool *ret, struct hr_err *err);
	int (*copy_to)(
	    void *self, const char *from, const char *to, bool recursive, struct hr_err *err);
	int (*copy_from)(void *self, const char *path, char **ret_file, struct hr_err *err);
	/* Names in a directory as a JSON list; of a file its own path alone, of nothing []. */
	int (*list_files)(void *self, const char *path, char **ret_json, struct hr_err *err);
	int (*add_env)(void *self, const char *const *env, struct hr_err *err);

	int (*pause)(void *self, struct hr_err *err);
	int (*resume)(void *self, struct hr_err *err);
	int (*close)(void *self, struct hr_err *err);
	int (*destroy)(void *self, struct hr_err *err);

	int (*logs)(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err);
	int (*stats)(void *self, char **ret_json, struct hr_err *err);
	int (*exec)(void *self, const char *const *argv, int *ret_status, struct hr_err *err);
	/* For a pool. Pauses it so that it goes on at once; NULL: it waits as it is. And after open
	 * and instead of connect: what was recorded as sandbox `sid` is this one from now on. Where
	 * it fails, HR_E_NO_SANDBOX and HR_E_DISCONNECTED mean that the sandbox is dead: it is
	 * ended under its old name. Of any other error it waits on. NULL: there is no pool. */
	int (*freeze)(void *self, struct hr_err *err);
	int (*adopt)(void *self, const char *sid, const char *record, struct hr_err *err);

	/* For a browser: where the editor is, up to what follows "?", such as
	 * "http://localhost:31000/"; NULL in *ret: nowhere. And where programs of the sandbox are,
	 * as a JSON object of URL to port. Without them both are at the endpoint's ports of this
	 * machine. What is returned is the library's to free. */
	int (*vscode_url)(void *self, char **ret, struct hr_err *err);
	int (*web_hosts)(void *self, char **ret_json, struct hr_err *err);

	/* ---- of the kind, not of a sandbox: after open, without connect ---- */

	/* Tells fn of what happens to all sandboxes of the kind, until host->stop_fd is readable,
	 * fn returns non-zero, or there is nothing to tell any more. -1: it was cut, and is called
	 * again after a while. Called in a thread of its own.
	 * NULL: what their records and processes tell is all. */
	int (*events)(void *self, hr_event_fn *fn, void *arg, struct hr_err *err);
	/* Looks for what the kind needs on this machine and elsewhere. NULL: nothing. */
	int (*doctor)(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err);
	/* The runtime image exists afterwards; its name is the library's to free. NULL: an Engine
	 * of this machine builds it. */
	int (*build)(
	    void *self, const struct hr_build_options *o, char **ret_name, struct hr_err *err);

	/* What a provider has that handrail made, recorded or not, after open and without connect:
	 * a JSON array of {"id", "sid", "run", "state", "ours"}, the last one true of what this
	 * user of this machine made, or with HR_KIND_OF_STATE what was made with this state
	 * directory. And the end of one of them by its id. */
	int (*found)(void *self, char **ret_json, struct hr_err *err);
	int (*end_found)(void *self, const char *id, struct hr_err *err);
};

/* What a loadable backend exports. abi is the library's; NULL: it cannot work with that one. */
const struct hr_sandbox_ops *hr_backend_entry(unsigned abi);

#ifdef __cplusplus
}
#endif

#endif
