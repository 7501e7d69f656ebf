/* handrail.h: sandboxes for programs. The one public header of libhandrail.
 *
 * Nothing here ends the process, keeps state outside of the objects below, or prints. Every
 * function that can fail takes a struct hr_err of the caller's (or NULL), returns 0 or an object
 * for success and -1 or NULL for failure. One thread uses an object at a time. Texts are UTF-8. */
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

/* What is wrong without being an error, such as an unknown key. */
typedef void hr_warn_fn(void *arg, const char *text);

struct hr_config *hr_config_new(struct hr_err *err); /* all defaults */
void hr_config_free(struct hr_config *c);            /* NULL: nothing */

/* Defaults are overridden by the TOML file, that by the environment. file: NULL for config.toml in
 * the current directory; a missing one is no error. env: "NAME=value" texts, NULL-terminated, such
 * as environ; NULL: none. A file ".env" of the current directory adds what env lacks. Files that
 * others can write are left out with a warning, where they are named with an error: see "WHAT IS
 * BELIEVED" in handrail(1). A core.runtime that is a path counts only from hr_config_set().
 *
 * Settings that only the kind core.runtime has are checked when a sandbox of it is opened, and set
 * after core.runtime. */
int hr_config_load(struct hr_config *c, const char *file, const char *const *env, hr_warn_fn *warn,
    void *arg, struct hr_err *err);

/* "SECTION.KEY", as "sandbox.timeout" or "core.runtime". set takes the text that the environment
 * would hold. Reading: NULL, 0 or false for what is not set or not of that type; texts are borrowed
 * until the next change. */
int hr_config_set(struct hr_config *c, const char *key, const char *value, struct hr_err *err);
const char *hr_config_text(const struct hr_config *c, const char *key);
long long hr_config_int(const struct hr_config *c, const char *key);
bool hr_config_bool(const struct hr_config *c, const char *key);
/* The settings that only the kind core.runtime has, "SECTION.KEY" with a line of help. */
typedef void hr_option_fn(void *arg, const char *key, const char *help);
int hr_config_options(const struct hr_config *c, const char *const *env, hr_option_fn *fn,
    void *arg, struct hr_err *err);
/* All of it as JSON, secrets masked; the caller frees. */
char *hr_config_json(const struct hr_config *c, struct hr_err *err);

/* ---- sandboxes ---- */

/* An id for a sandbox, 32 characters at most, that begins with name: the same for the same name and
 * core.jwt_secret, and not to be guessed without that. name NULL: a random one. Where the setting
 * is missing it is what the original's command line makes. The caller frees. */
char *hr_session_id(const struct hr_config *c, const char *name, struct hr_err *err);

struct hr_sandbox;

typedef void hr_status_fn(void *arg, const char *level, const char *status, const char *message);

/* How far something long is, such as "upload"; total 0: not known. */
typedef void
hr_progress_fn(void *arg, const char *what, unsigned long long done, unsigned long long total);

struct hr_sandbox_options {
	const char *sid;            /* NULL: "default" */
	const char *const *plugins; /* NULL-terminated; NULL: none */
	const char *const *env;     /* "NAME=value" for the sandbox, NULL-terminated; NULL: none */
	const char *const *environ; /* the caller's environment; NULL: empty */
	bool attach;                /* never make, never destroy */
	bool headless;              /* without the plugin vscode */
	bool detach;                /* it outlives this process */
	const char *state_dir;      /* where sandboxes are recorded; NULL: nowhere */
	hr_status_fn *status;
	void *status_arg;
	hr_warn_fn *log; /* lines for people */
	void *log_arg;
	hr_progress_fn *progress; /* of transfers and pulls; NULL: nobody asks */
	void *progress_arg;
	bool while_used; /* hr_pool_fill() makes more only while there is a sandbox */
	/* A name may lead to a sandbox that another user or machine has made; without it such a
	 * sandbox is refused unless a record in state_dir leads to it. */
	bool any_owner;
	/* Names options that count only for a sandbox that is made, as "--env, --plugin", for the
	 * error of hr_sandbox_connect() where it finds one instead; borrowed until then; NULL:
	 * none. */
	const char *for_new;
};

/* The backend is the configuration's core.runtime. The configuration is copied. */
struct hr_sandbox *
hr_sandbox_open(const struct hr_config *c, const struct hr_sandbox_options *o, struct hr_err *err);
void hr_sandbox_free(struct hr_sandbox *s); /* without closing; NULL: nothing */

int hr_sandbox_connect(struct hr_sandbox *s, struct hr_err *err);

/* An action as JSON text, {"action": "run", "args": {...}}; the observation as JSON text is the
 * caller's to free. What the client side decides by itself is decided (no request is made then). */
int hr_sandbox_action(
    struct hr_sandbox *s, const char *action, char **ret_observation, struct hr_err *err);

int hr_sandbox_copy_to(struct hr_sandbox *s, const char *host_path, const char *sandbox_path,
    bool recursive, struct hr_err *err);
/* *ret_file: a zip file in the temporary directory; the caller removes and frees it. */
int hr_sandbox_copy_from(
    struct hr_sandbox *s, const char *sandbox_path, char **ret_file, struct hr_err *err);
/* A JSON array of names; path NULL: the sandbox's first directory. The caller frees. */
int
hr_sandbox_list_files(struct hr_sandbox *s, const char *path, char **ret_json, struct hr_err *err);
/* Names upper-cased, values exact, also for later shells. "NAME=value", NULL-terminated. */
int hr_sandbox_add_env(struct hr_sandbox *s, const char *const *env, struct hr_err *err);

/* MCP servers over stdin and stdout, started in the sandbox and offered at its URL + "/mcp/sse":
 * those of the configuration (mcp.stdio_servers), which hr_sandbox_connect() has added to a fresh
 * one, and `extra`, a JSON array of {"name", "command", "args", "env"} (NULL: none). What was added
 * stays; what does not start is logged. */
int hr_sandbox_add_mcp(struct hr_sandbox *s, const char *extra, struct hr_err *err);

/* fn gets the lines that commands print, with their ends, while an action runs; fn NULL: no more.
 * false: this kind of sandbox has no such stream ("cli" has). */
typedef void hr_output_fn(void *arg, const char *line, size_t len);
bool hr_sandbox_subscribe_output(struct hr_sandbox *s, hr_output_fn *fn, void *arg);

/* Clones a repository into the sandbox's first directory and makes it the shell's; *ret_directory,
 * the caller's, is its name there. repository: "OWNER/NAME", which the providers are asked for
 * whose token is in the environment (GITHUB_TOKEN, GITLAB_TOKEN, BITBUCKET_TOKEN), or a URL without
 * user and password; NULL: sandbox.selected_repo, and "" if there is none. branch NULL: a fresh
 * one. strict: a command of git that fails is an error; otherwise it is logged. */
int hr_sandbox_clone(struct hr_sandbox *s, const char *repository, const char *branch, bool strict,
    char **ret_directory, struct hr_err *err);

/* What a repository tells agents, as a JSON array of {"name", "source", "path", "content"}; the
 * caller frees. source "organization": Markdown files of OWNER/.openhands (GitLab:
 * OWNER/openhands-config), below microagents/, which is cloned for that; "repository": those below
 * .openhands/microagents, and .openhands_instructions as "repo_legacy", in the directory that
 * hr_sandbox_clone() made, or the first one. repository: as there; NULL: sandbox.selected_repo.
 * README.md is none. What cannot be read or cloned is logged. */
int hr_sandbox_microagents(
    struct hr_sandbox *s, const char *repository, char **ret_json, struct hr_err *err);

/* What git shows of a work tree; texts are the caller's. directory: from the first one on, NULL:
 * that itself. changes: a JSON array of {"status": "M", "A", "D" or "U", "path"} against the branch
 * at its origin, repositories right below it among them. diff: {"original", "modified"} of a file
 * of at most 1 MiB. branch: NULL for none, or no repository. A sandbox without handrail-git is
 * given it for a moment. */
int hr_sandbox_git_changes(
    struct hr_sandbox *s, const char *directory, char **ret_json, struct hr_err *err);
int
hr_sandbox_git_diff(struct hr_sandbox *s, const char *file, char **ret_json, struct hr_err *err);
int hr_sandbox_git_branch(
    struct hr_sandbox *s, const char *directory, char **ret_branch, struct hr_err *err);

/* What a repository brings, in the shell's directory: .openhands/setup.sh is run (*ret_status: how
 * it ended, 0 if there is none), .openhands/pre-commit.sh becomes git's hook before a commit.
 * Failures of the hook's steps are only logged. */
int hr_sandbox_run_setup_script(struct hr_sandbox *s, int *ret_status, struct hr_err *err);
int hr_sandbox_install_git_hooks(struct hr_sandbox *s, struct hr_err *err);

int hr_sandbox_pause(struct hr_sandbox *s, struct hr_err *err);
int hr_sandbox_resume(struct hr_sandbox *s, struct hr_err *err);
int hr_sandbox_close(struct hr_sandbox *s, struct hr_err *err);
/* Destroys whatever belongs to it. */
int hr_sandbox_delete(struct hr_sandbox *s, struct hr_err *err);

/* Its log, to the end or on and on, as lines; stops when fn returns non-zero. */
typedef int hr_line_fn(void *arg, const char *line, size_t len);
int
hr_sandbox_logs(struct hr_sandbox *s, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err);
/* The same beside everything else: a thread calls fn with each line, from the first one on, until
 * it returns non-zero, the log or the sandbox ends, or it is stopped; an error on the way is
 * logged, by that thread, too. A second start stops the first. stop waits for the thread, so it is
 * not for fn; nothing is no error. hr_sandbox_close(), _delete() and _free() stop it. */
int
hr_sandbox_start_log_stream(struct hr_sandbox *s, hr_line_fn *fn, void *arg, struct hr_err *err);
void hr_sandbox_stop_log_stream(struct hr_sandbox *s);
/* What it uses: a JSON object; the caller frees. */
int hr_sandbox_stats(struct hr_sandbox *s, char **ret_json, struct hr_err *err);
/* Runs a program in it with the caller's terminal; *ret_status as a shell reports it. */
int
hr_sandbox_exec(struct hr_sandbox *s, const char *const *argv, int *ret_status, struct hr_err *err);

/* Is it still there? "running", "paused", "exited", "gone" and the like; borrowed until the next
 * call. */
const char *hr_sandbox_state(struct hr_sandbox *s);

/* Borrowed, NULL for none. */
const char *hr_sandbox_url(const struct hr_sandbox *s);
const char *hr_sandbox_id(const struct hr_sandbox *s);
const char *hr_sandbox_session_api_key(const struct hr_sandbox *s);
const char *hr_sandbox_status(const struct hr_sandbox *s);

/* For a browser, the caller's: the editor of one that has the plugin vscode, NULL for one that has
 * not, or where it is not ready yet; and where two programs of the sandbox's can be, as a JSON
 * object of URL to port. Of the kind local, RUNTIME_URL, or RUNTIME_URL_PATTERN with RUNTIME_ID,
 * says how it is reached from elsewhere. */
int hr_sandbox_vscode_url(struct hr_sandbox *s, char **ret_url, struct hr_err *err);
int hr_sandbox_web_hosts(struct hr_sandbox *s, char **ret_json, struct hr_err *err);

/* ---- sandboxes in advance ---- */

/* Sees to it that n sandboxes of this kind, with these settings and plugins, are there and wait,
 * paused where the kind can be; hr_sandbox_connect() with the same state directory takes one
 * instead of making it. *ret_n: how many are there. o->sid and o->env do not count. */
int hr_pool_fill(const struct hr_config *c, const struct hr_sandbox_options *o, unsigned n,
    unsigned *ret_n, struct hr_err *err);
/* Ends all that wait, of every kind; *ret_n: how many. */
int hr_pool_drain(const struct hr_config *c, const struct hr_sandbox_options *o, unsigned *ret_n,
    struct hr_err *err);

/* ---- images ---- */

struct hr_build_options {
	const char *base;           /* NULL: sandbox.base_container_image */
	const char *folder;         /* where the build folder is left; NULL: nowhere */
	const char *const *environ; /* the caller's environment; NULL: empty */
	bool force, retag, dry_run;
	bool pull;          /* images that are not here may be in their registry */
	bool registry_port; /* "host:5000/name:tag" is a name */
	void (*progress)(void *arg, const char *text); /* a line, without its end; NULL: none */
	void *arg;
};

/* The runtime image on that base exists afterwards (unless dry_run); its name is the caller's.
 * Built by what core.runtime has for that, else by an Engine. */
int hr_build_image(const struct hr_config *c, const struct hr_build_options *o, char **ret_name,
    struct hr_err *err);

/* Runtime images that the Engine has, as a JSON array; the caller frees. env: as environ above. */
int hr_image_list(const char *const *env, char **ret_json, struct hr_err *err);
/* Only such an image, and only that name of it. */
int hr_image_remove(const char *const *env, const char *name, struct hr_err *err);

/* ---- this machine ---- */

/* Looks for what the configuration's kind of sandbox needs; fn is told of each thing. *ret_well: it
 * is all there. state_dir: NULL is not looked at. */
typedef void hr_finding_fn(void *arg, bool ok, const char *what, const char *text);
int hr_doctor(const struct hr_config *c, const char *const *env, const char *state_dir,
    hr_finding_fn *fn, void *arg, bool *ret_well, struct hr_err *err);

/* Which kinds there are: fn is told of each its name, and where it is or why it cannot be used. The
 * shared objects of the directories that are searched are loaded for that. */
int hr_backend_list(const char *const *env, hr_finding_fn *fn, void *arg, struct hr_err *err);

/* What an image that the Engine has, or can pull, has of what a sandbox needs, as of hr_doctor().
 * Nothing of it is run. */
int hr_image_preflight(const struct hr_config *c, const char *const *env, const char *image,
    hr_finding_fn *fn, void *arg, bool *ret_well, struct hr_err *err);

/* The recorded sandboxes as a JSON array; the caller frees. */
char *hr_sandbox_list(const char *state_dir, struct hr_err *err);

/* What a provider has that handrail made, also without a record here, by its labels: a JSON array
 * of {"id", "sid", "run", "state", "ours", "recorded", "runtime"}, the caller's; ours: by this user
 * of this machine. [] of a kind that has no provider. Of o, sid does not count. And the end of one
 * of them by its id; its record, if there is one, stays. */
int hr_sandbox_found(const struct hr_config *c, const struct hr_sandbox_options *o, char **ret_json,
    struct hr_err *err);
int hr_sandbox_end_found(const struct hr_config *c, const struct hr_sandbox_options *o,
    const char *id, struct hr_err *err);

/* Waits for what happens to them and tells it, first "watching" with an empty sid: "up", "down",
 * "exited", and what their kinds tell, as of containers "start", "die", "oom", "pause", "unpause",
 * "restart", "destroy". Returns when fn returns non-zero, when end_fd (-1: none) has nobody at its
 * other end any more, as a pipe that is written to, or with an error. */
typedef int hr_event_fn(void *arg, const char *sid, const char *event, const char *detail);
int hr_sandbox_events(const struct hr_config *c, const char *state_dir, const char *const *env,
    int end_fd, hr_event_fn *fn, void *arg, struct hr_err *err);

#ifdef __cplusplus
}
#endif

#endif
