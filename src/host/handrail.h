/* handrail.h: manages sandboxes for programs. It is the only public header of libhandrail. No
 * function ends the process, keeps state outside the objects below, or prints. A function that can
 * fail takes a struct hr_err of the caller's (or NULL) and returns 0 or an object, or on failure -1
 * or NULL with *err set. Functions block until they are done, unless noted. Only one thread may use
 * an object at a time. Strings are UTF-8; the caller frees each char * that a function returns or
 * stores, except const ones, which are borrowed. */
#ifndef HR_HOST_HANDRAIL_H
#define HR_HOST_HANDRAIL_H

#include "handrail-error.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

const char *hr_version(void);

/* ---- configuration ---- */

struct hr_config;

/* Takes a warning, such as an unknown key. */
typedef void hr_warn_fn(void *arg, const char *text);

/* Returns a configuration with all defaults. */
struct hr_config *hr_config_new(struct hr_err *err);
void hr_config_free(struct hr_config *c); /* Accepts NULL. */

/* Loads settings: the TOML file overrides the defaults, the environment overrides the file. file
 * NULL: config.toml in the current directory, which may be missing. env: "NAME=value" strings,
 * NULL-terminated, such as environ; NULL: none. A file ".env" in the current directory adds
 * variables missing in env. Files that others can write are skipped with a warning, or refused if
 * named: see "TRUSTED FILES" in handrail(1). A core.runtime that is a path counts only from
 * hr_config_set().
 *
 * Settings of one back-end, core.runtime, are checked when a sandbox of it is opened, and must be
 * set after core.runtime. */
int hr_config_load(struct hr_config *c, const char *file, const char *const *env, hr_warn_fn *warn,
    void *arg, struct hr_err *err);

/* Sets "SECTION.KEY", such as "sandbox.timeout" or "core.runtime", from the text that the
 * environment would hold. The getters return NULL, 0 or false for a setting that is unset or of
 * another type; strings are borrowed until the next change. */
int hr_config_set(struct hr_config *c, const char *key, const char *value, struct hr_err *err);
const char *hr_config_text(const struct hr_config *c, const char *key);
long long hr_config_int(const struct hr_config *c, const char *key);
bool hr_config_bool(const struct hr_config *c, const char *key);
/* Takes a setting of the back-end core.runtime alone, as "SECTION.KEY", with a line of help. */
typedef void hr_option_fn(void *arg, const char *key, const char *help);
int hr_config_options(const struct hr_config *c, const char *const *env, hr_option_fn *fn,
    void *arg, struct hr_err *err);
/* Returns all settings as JSON, with secrets masked. */
char *hr_config_json(const struct hr_config *c, struct hr_err *err);

/* ---- sandboxes ---- */

/* Returns an id for a sandbox, at most 32 characters, that begins with name: always the same for a
 * name and core.jwt_secret, and not to be guessed without that. name NULL: random. Without
 * core.jwt_secret it is the id that the original's command line makes. */
char *hr_session_id(const struct hr_config *c, const char *name, struct hr_err *err);

struct hr_sandbox;

typedef void hr_status_fn(void *arg, const char *level, const char *status, const char *message);

/* Takes the progress of a long operation, such as "upload"; total 0 means that it is unknown. */
typedef void
hr_progress_fn(void *arg, const char *what, unsigned long long done, unsigned long long total);

struct hr_sandbox_options {
	const char *sid;            /* NULL: "default" */
	const char *const *plugins; /* names, NULL-terminated; NULL: none */
	const char *const *env;     /* "NAME=value" for the sandbox, NULL-terminated; NULL: none */
	const char *const *environ; /* the caller's environment; NULL: empty */
	bool attach;                /* never create and never destroy a sandbox */
	bool headless;              /* leave out the plugin vscode */
	bool detach;                /* the sandbox outlives this process */
	const char *state_dir;      /* directory of the records of sandboxes; NULL: none */
	hr_status_fn *status;
	void *status_arg;
	hr_warn_fn *log; /* gets lines for people */
	void *log_arg;
	hr_progress_fn *progress; /* gets the progress of transfers and pulls; NULL: not reported */
	void *progress_arg;
	bool while_used; /* hr_pool_fill() creates more only while there is a sandbox */
	/* Permits a name to lead to a sandbox that another user or machine has made. Otherwise such
	 * a sandbox is refused unless a record in state_dir leads to it. */
	bool any_owner;
	/* Names of options that only affect a new sandbox, such as "--env, --plugin", for the error
	 * of hr_sandbox_connect() if it finds an existing one; borrowed until then; NULL: none. */
	const char *for_new;
};

/* Makes an object for a sandbox of the back-end core.runtime. Copies c. */
struct hr_sandbox *
hr_sandbox_open(const struct hr_config *c, const struct hr_sandbox_options *o, struct hr_err *err);
/* Frees the object without closing the sandbox; accepts NULL. */
void hr_sandbox_free(struct hr_sandbox *s);

int hr_sandbox_connect(struct hr_sandbox *s, struct hr_err *err);

/* Performs an action, JSON such as {"action": "run", "args": {...}}; *ret_observation is JSON.
 * Actions that the client side decides by itself make no request. */
int hr_sandbox_action(
    struct hr_sandbox *s, const char *action, char **ret_observation, struct hr_err *err);

int hr_sandbox_copy_to(struct hr_sandbox *s, const char *host_path, const char *sandbox_path,
    bool recursive, struct hr_err *err);
/* Sets *ret_file to a zip file in the temporary directory, which the caller removes. */
int hr_sandbox_copy_from(
    struct hr_sandbox *s, const char *sandbox_path, char **ret_file, struct hr_err *err);
/* Returns a JSON array of names; path NULL: the sandbox's first directory. */
int
hr_sandbox_list_files(struct hr_sandbox *s, const char *path, char **ret_json, struct hr_err *err);
/* Sets variables ("NAME=value", NULL-terminated) for this and later shells; names in upper case. */
int hr_sandbox_add_env(struct hr_sandbox *s, const char *const *env, struct hr_err *err);

/* Starts MCP servers on stdin and stdout in the sandbox, offered at its URL + "/mcp/sse": those of
 * the configuration (mcp.stdio_servers), which hr_sandbox_connect() has added to a new sandbox, and
 * `extra`, a JSON array of {"name", "command", "args", "env"} (NULL: none). Earlier ones stay; a
 * server that does not start is logged. */
int hr_sandbox_add_mcp(struct hr_sandbox *s, const char *extra, struct hr_err *err);

/* Makes fn get the lines that commands print, with their ends, while an action runs; fn NULL stops
 * that. Returns false if this back-end has no such stream ("cli" has one). */
typedef void hr_output_fn(void *arg, const char *line, size_t len);
bool hr_sandbox_subscribe_output(struct hr_sandbox *s, hr_output_fn *fn, void *arg);

/* Clones a repository into the sandbox's first directory and makes it the shell's directory;
 * *ret_directory is its name there. `repository` is "OWNER/NAME", which is looked up at the
 * providers whose token is in the environment (GITHUB_TOKEN, GITLAB_TOKEN, BITBUCKET_TOKEN), or a
 * URL without user and password; NULL: sandbox.selected_repo, "" if unset. branch NULL: a new
 * branch. With `strict` a failed git command is an error; otherwise it is logged. */
int hr_sandbox_clone(struct hr_sandbox *s, const char *repository, const char *branch, bool strict,
    char **ret_directory, struct hr_err *err);

/* Reads a repository's instructions for agents: a JSON array of {"name", "source", "path",
 * "content"}. The source "organization" means Markdown files below microagents/ of OWNER/.openhands
 * (GitLab: OWNER/openhands-config), which is cloned for that; "repository" means those below
 * .openhands/microagents, and .openhands_instructions as "repo_legacy", in the directory that
 * hr_sandbox_clone() made, or else in the first one. `repository` is as in hr_sandbox_clone();
 * NULL: sandbox.selected_repo. README.md does not count. Failures to read or clone are logged. */
int hr_sandbox_microagents(
    struct hr_sandbox *s, const char *repository, char **ret_json, struct hr_err *err);

/* Queries git about a work tree. `directory` is relative to the first one; NULL: the first one. The
 * changes are a JSON array of {"status": "M", "A", "D" or "U", "path"} against the branch at its
 * origin, with repositories right below the directory. The diff is {"original", "modified"} of a
 * file of at most 1 MiB. The branch is NULL if there is none, or no repository. A sandbox without
 * handrail-git gets a temporary copy. */
int hr_sandbox_git_changes(
    struct hr_sandbox *s, const char *directory, char **ret_json, struct hr_err *err);
int
hr_sandbox_git_diff(struct hr_sandbox *s, const char *file, char **ret_json, struct hr_err *err);
int hr_sandbox_git_branch(
    struct hr_sandbox *s, const char *directory, char **ret_branch, struct hr_err *err);

/* Applies a repository's own setup in the shell's directory: runs .openhands/setup.sh (*ret_status
 * is its exit status, 0 if there is none); hr_sandbox_install_git_hooks() makes
 * .openhands/pre-commit.sh git's hook before a commit, and only logs failures of its steps. */
int hr_sandbox_run_setup_script(struct hr_sandbox *s, int *ret_status, struct hr_err *err);
int hr_sandbox_install_git_hooks(struct hr_sandbox *s, struct hr_err *err);

int hr_sandbox_pause(struct hr_sandbox *s, struct hr_err *err);
int hr_sandbox_resume(struct hr_sandbox *s, struct hr_err *err);
int hr_sandbox_close(struct hr_sandbox *s, struct hr_err *err);
/* Destroys the sandbox and everything that belongs to it. */
int hr_sandbox_delete(struct hr_sandbox *s, struct hr_err *err);

/* Reads the sandbox's log, to its end or following it, by lines; stops when fn returns non-zero. */
typedef int hr_line_fn(void *arg, const char *line, size_t len);
int
hr_sandbox_logs(struct hr_sandbox *s, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err);
/* Streams the log without blocking: a thread calls fn with each line, from the first on, until fn
 * returns non-zero, the log or the sandbox ends, or the stream is stopped; that thread logs errors.
 * A second start stops the first stream. Stopping waits for the thread, so fn must not do it;
 * stopping nothing is no error. hr_sandbox_close(), _delete() and _free() stop the stream. */
int
hr_sandbox_start_log_stream(struct hr_sandbox *s, hr_line_fn *fn, void *arg, struct hr_err *err);
void hr_sandbox_stop_log_stream(struct hr_sandbox *s);
/* Returns the sandbox's resource usage as a JSON object. */
int hr_sandbox_stats(struct hr_sandbox *s, char **ret_json, struct hr_err *err);
/* Runs a program in the sandbox on the caller's terminal; *ret_status is as in a shell's $?. */
int
hr_sandbox_exec(struct hr_sandbox *s, const char *const *argv, int *ret_status, struct hr_err *err);

/* Returns the present state: "running", "paused", "exited", "gone" or similar; borrowed until the
 * next call. */
const char *hr_sandbox_state(struct hr_sandbox *s);

/* Returns a borrowed string, or NULL if there is none. */
const char *hr_sandbox_url(const struct hr_sandbox *s);
const char *hr_sandbox_id(const struct hr_sandbox *s);
const char *hr_sandbox_session_api_key(const struct hr_sandbox *s);
const char *hr_sandbox_status(const struct hr_sandbox *s);

/* Returns addresses for a browser: the editor of a sandbox with the plugin vscode, NULL without it
 * or before it is ready. hr_sandbox_web_hosts() returns where two programs of the sandbox can
 * listen, as a JSON object of URL to port. The back-end local takes its external address from
 * RUNTIME_URL, or RUNTIME_URL_PATTERN with RUNTIME_ID. */
int hr_sandbox_vscode_url(struct hr_sandbox *s, char **ret_url, struct hr_err *err);
int hr_sandbox_web_hosts(struct hr_sandbox *s, char **ret_json, struct hr_err *err);

/* Returns the rules in force for the network of a sandbox, as JSON (handrail-egress(8)), without
 * secrets; *ret_json is NULL if its network has none. */
int hr_sandbox_network(struct hr_sandbox *s, char **ret_json, struct hr_err *err);
/* Replaces the rules of a sandbox that has some (NULL: they stay), and reads the values of their
 * secrets again. After an error the earlier ones are in force. */
int hr_sandbox_set_network(struct hr_sandbox *s, const char *json, struct hr_err *err);
/* Passes the events of the network, refusals and connections, each as a JSON object; `follow` and
 * the end are as with hr_sandbox_logs(). */
int hr_sandbox_network_log(
    struct hr_sandbox *s, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err);

/* ---- pool of sandboxes ---- */

/* Fills the pool to n waiting sandboxes with this back-end, these settings and these plugins,
 * paused if the back-end can; hr_sandbox_connect() with the same state directory takes one instead
 * of creating it. *ret_n is their number. o->sid and o->env are ignored. */
int hr_pool_fill(const struct hr_config *c, const struct hr_sandbox_options *o, unsigned n,
    unsigned *ret_n, struct hr_err *err);
/* Ends all waiting sandboxes, of every back-end; *ret_n is their number. */
int hr_pool_drain(const struct hr_config *c, const struct hr_sandbox_options *o, unsigned *ret_n,
    struct hr_err *err);

/* ---- images ---- */

struct hr_build_options {
	const char *base;           /* NULL: sandbox.base_container_image */
	const char *folder;         /* directory in which the build folder is left; NULL: none */
	const char *const *environ; /* the caller's environment; NULL: empty */
	bool force, retag, dry_run;
	bool pull;          /* look for missing images in their registries */
	bool registry_port; /* accept "host:5000/name:tag" as a name */
	bool openhands_v1;  /* an image in place of OpenHands V1's own agent server image */
	/* gets lines without their ends; NULL: none */
	void (*progress)(void *arg, const char *text);
	void *arg;
};

/* Ensures that the runtime image on that base exists (unless dry_run), and returns its name.
 * core.runtime's own builder builds it, or else an Engine. */
int hr_build_image(const struct hr_config *c, const struct hr_build_options *o, char **ret_name,
    struct hr_err *err);

/* Lists the Engine's runtime images as a JSON array. env is as environ above. */
int hr_image_list(const char *const *env, char **ret_json, struct hr_err *err);
/* Removes that name of a runtime image; refuses other images. */
int hr_image_remove(const char *const *env, const char *name, struct hr_err *err);

/* ---- this machine ---- */

/* Checks the needs of the configured back-end; calls fn with each finding. *ret_well is set if
 * nothing is missing. state_dir NULL: it is not checked. */
typedef void hr_finding_fn(void *arg, bool ok, const char *what, const char *text);
int hr_doctor(const struct hr_config *c, const char *const *env, const char *state_dir,
    hr_finding_fn *fn, void *arg, bool *ret_well, struct hr_err *err);

/* Lists the back-ends: calls fn with each name, and its place or the reason why it cannot be used.
 * Loads the shared objects in the directories that are searched. */
int hr_backend_list(const char *const *env, hr_finding_fn *fn, void *arg, struct hr_err *err);

/* Checks whether an image that the Engine has, or can pull, contains the parts that a sandbox
 * needs, as hr_doctor() does. Runs nothing from the image. */
int hr_image_preflight(const struct hr_config *c, const char *const *env, const char *image,
    hr_finding_fn *fn, void *arg, bool *ret_well, struct hr_err *err);

/* Returns the recorded sandboxes as a JSON array. */
char *hr_sandbox_list(const char *state_dir, struct hr_err *err);

/* Lists the sandboxes at a provider that handrail made, also unrecorded ones, by their labels: a
 * JSON array of {"id", "sid", "run", "state", "ours", "recorded", "runtime"}; "ours" means made by
 * this user of this machine. A back-end without a provider returns []. Ignores o->sid.
 * hr_sandbox_end_found() ends one of them by its id; a record of it stays. */
int hr_sandbox_found(const struct hr_config *c, const struct hr_sandbox_options *o, char **ret_json,
    struct hr_err *err);
int hr_sandbox_end_found(const struct hr_config *c, const struct hr_sandbox_options *o,
    const char *id, struct hr_err *err);

/* Waits for events and calls fn with each, first "watching" with an empty sid: "up", "down",
 * "exited", and those of the back-ends, for containers "start", "die", "oom", "pause", "unpause",
 * "restart", "destroy". Returns when fn returns non-zero, when the other end of end_fd is closed,
 * such as the reading end of a pipe (-1: none), or with an error. */
typedef int hr_event_fn(void *arg, const char *sid, const char *event, const char *detail);
int hr_sandbox_events(const struct hr_config *c, const char *state_dir, const char *const *env,
    int end_fd, hr_event_fn *fn, void *arg, struct hr_err *err);

#ifdef __cplusplus
}
#endif

#endif
