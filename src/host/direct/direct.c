/* Implements the back-end "cli": commands on this machine in one of its directories, started by the
 * caller with its rights. It has no server, and no process between two commands (doc/host.md, "The
 * back-end cli"). Unlike the original it leaves the caller's working directory and environment
 * unchanged. */
#include "config.h"

#include "host/direct/direct_int.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/path.h"
#include "files/charset/detect.h"
#include "base/err.h"
#include "base/text/text.h"
#include "host/common/recordtext.h"
#include "host/common/exam.h"
#include "host/common/module.h"
#include "host/config/settings.h"
#include "proto/json.h"

#define PREFIX "openhands_workspace_"
#define RANDOM_LEN 6 /* length of mkdtemp's random suffix */

/* ---- actions ---- */

static char *
perform(void *self, struct json_object *action, struct hr_err *err)
{
	struct hr_direct *c = self;
	const char *type = hr_json_text_or(action, "action", "");
	struct json_object *args = hr_json_at(action, "args");

	if (c->workspace == NULL)
		return strcmp(type, "run") == 0
			   ? hr_direct_error("", err, "Runtime not initialized for command: %s",
				 hr_json_text_or(args, "command", ""))
			   : hr_direct_error("", err, "Runtime not initialized");
	if (strcmp(type, "run") == 0)
		return hr_direct_run(c, action, err);
	if (strcmp(type, "read") == 0)
		return hr_direct_read(c, args, err);
	if (strcmp(type, "write") == 0)
		return hr_direct_write(c, args, err);
	if (strcmp(type, "edit") == 0)
		return hr_direct_edit(c, args, err);
	if (strcmp(type, "run_ipython") == 0)
		return hr_direct_error(
		    "", err, "Executing IPython cells is not implemented in CLIRuntime. ");
	if (strcmp(type, "call_tool_mcp") == 0)
		return hr_direct_error("", err, "No MCP servers configured");
	return hr_direct_error("", err, "Browser functionality is not implemented in CLIRuntime");
}

static int
direct_action(void *self, const char *text, char **ret, struct hr_err *err)
{
	return hr_direct_act(self, perform, text, ret, err);
}

/* Adds variables; their names stay as given. */
static int
direct_add_env(void *self, const char *const *env, struct hr_err *err)
{
	struct hr_direct *c = self;

	return hr_strv_set_vars(&c->env, env, err);
}

/* ---- life ---- */

static void
direct_free(void *self)
{
	struct hr_direct *c = self;

	/* no other process can use the directory without a record */
	if (c->undo != NULL && c->h->state_dir == NULL)
		(void)hr_path_remove(c->undo, NULL);
	(void)pthread_mutex_destroy(&c->lock);
	hr_strv_done(&c->env);
	free(c->undo);
	free(c->workspace);
	free(c->named);
	free(c);
}

static int
direct_open(const struct hr_backend_host *h, void **ret_self, struct hr_err *err)
{
	struct hr_direct *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return hr_err_nomem(err);
	c->h = h;
	(void)pthread_mutex_init(&c->lock, NULL);
	hr_detect_from(hr_module_dir());
	*ret_self = c;
	return 0;
}

static const char *
temporary(const struct hr_direct *c)
{
	const char *tmp = hr_env_get(c->h->environ, "TMPDIR");

	return tmp != NULL ? tmp : "/tmp";
}

/* Finds the editor's history: beside the record, so that a later command can undo. */
static int
find_undo(struct hr_direct *c, struct hr_err *err)
{
	if (c->h->state_dir != NULL)
		return hr_text_setf(&c->undo, err, "%s/%s.undo", c->h->state_dir, c->h->sid);
	if (hr_text_setf(&c->undo, err, "%s/handrail-undo-XXXXXX", temporary(c)) != 0)
		return -1;
	return mkdtemp(c->undo) != NULL ? 0 : hr_err_sys(err, errno, "create %s", c->undo);
}

static int
make_workspace(struct hr_direct *c, struct hr_err *err)
{
	const char *base = hr_config_text(c->h->config, "core.workspace_base");
	struct hr_err e = {0};

	if (base != NULL) {
		if (hr_path_mkdirs_own(base, 0755, NULL, &e) < 0)
			return hr_err_from(err, HR_E_SYS, &e);
		c->named = strdup(base);
	} else if (asprintf(&c->named, "%s/" PREFIX "%s_XXXXXX", temporary(c), c->h->sid) < 0) {
		c->named = NULL;
	}
	if (c->named == NULL)
		return hr_err_nomem(err);
	if (base == NULL && mkdtemp(c->named) == NULL)
		return hr_err_sys(err, errno, "create %s", c->named);
	c->own_workspace = base == NULL;
	c->workspace = realpath(c->named, NULL);
	return c->workspace != NULL ? 0 : hr_err_sys(err, errno, "%s", c->named);
}

static int
direct_connect(void *self, enum hr_connected *ret, struct hr_err *err)
{
	struct hr_direct *c = self;

	if (c->h->attach)
		return hr_err_set(err, HR_E_RUNTIME,
		    "cli runtime does not support finding a sandbox that is not recorded");
	c->h->log(c->h->arg,
	    "The cli runtime isolates nothing: commands run with your rights on this machine.");
	if (make_workspace(c, err) != 0 || find_undo(c, err) < 0) {
		if (c->own_workspace)
			(void)hr_path_remove(c->named, NULL);
		return -1;
	}
	*ret = HR_SANDBOX_MADE;
	return 0;
}

static char *
direct_record(void *self, struct hr_err *err)
{
	struct hr_direct *c = self;
	HR_BUF(b, 1 << 20);

	hr_record_put_text(&b, "workspace", c->named);
	hr_record_put_bool(&b, "own_workspace", c->own_workspace);
	hr_record_put_list(&b, "env", &c->env);
	return hr_record_take(&b, err);
}

static int
direct_restore(void *self, const char *record, struct hr_err *err)
{
	struct json_object *env;
	HR_PUT struct json_object *o = NULL;
	struct hr_direct *c = self;
	const char *named;
	size_t i;

	if (hr_json_decode(record, strlen(record), &o, NULL) < 0 ||
	    (named = hr_json_text_at(o, "workspace")) == NULL)
		return hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
	env = hr_json_at(o, "env");
	c->own_workspace = hr_json_true_at(o, "own_workspace");
	c->named = strdup(named);
	for (i = 0; i < hr_json_count(env); i++)
		if (hr_json_text(hr_json_entry(env, i)) != NULL)
			hr_strv_add(&c->env, hr_json_text(hr_json_entry(env, i)));
	if (c->named == NULL || c->env.failed)
		return hr_err_nomem(err);
	if (find_undo(c, err) < 0)
		return -1;
	c->workspace = realpath(c->named, NULL);
	if (c->workspace == NULL)
		return hr_err_set(err, HR_E_DISCONNECTED,
		    "the workspace %s of sandbox \"%s\" is gone; \"handrail down\" clears it away",
		    c->named, c->h->sid);
	return 0;
}

static const char *
direct_state(void *self)
{
	struct hr_direct *c = self;

	return c->workspace != NULL && access(c->workspace, X_OK) == 0 ? "running" : "gone";
}

/* Returns true if the name is a workspace of this session: only the random part may follow, so that
 * "a" does not match "a_b". */
static bool
is_ours(const char *name, const char *sid)
{
	size_t n = strlen(sid);

	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0)
		return false;
	name += sizeof(PREFIX) - 1;
	if (strncmp(name, sid, n) != 0 || name[n] != '_' || strlen(name + n + 1) != RANDOM_LEN)
		return false;
	for (name += n + 1; *name != '\0'; name++)
		if (!isalnum((unsigned char)*name))
			return false;
	return true;
}

/* Removes the session's workspaces of all processes: nothing else records them. */
static int
remove_workspaces(struct hr_direct *c, struct hr_err *err)
{
	HR_CLOSEDIR DIR *dir = opendir(temporary(c));
	struct hr_err e = {0};
	struct dirent *entry;
	struct stat st;
	char *path;
	int r = 0;

	if (dir == NULL)
		return hr_err_sys(err, errno, "read %s", temporary(c));
	while (r == 0 && (entry = hr_dir_next(dir)) != NULL) {
		if (!is_ours(entry->d_name, c->h->sid) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
			continue;
		path = hr_path_join(temporary(c), entry->d_name);
		if (path == NULL)
			r = hr_err_nomem(err);
		else if (hr_path_remove(path, &e) < 0)
			r = hr_err_from(err, HR_E_SYS, &e);
		free(path);
	}
	if (r == 0 && errno != 0)
		r = hr_err_sys(err, errno, "read %s", temporary(c));
	return r;
}

/* Removes the workspace and the history of this connect() or of its record. */
static int
direct_undo(void *self, struct hr_err *err)
{
	struct hr_direct *c = self;
	struct hr_err e = {0};
	int r = 0;

	if (c->own_workspace && hr_path_remove(c->named, &e) < 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	if (c->undo != NULL && hr_path_remove(c->undo, &e) < 0 && r == 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	free(c->workspace);
	c->workspace = NULL;
	c->own_workspace = false;
	return r;
}

static int
direct_destroy(void *self, struct hr_err *err)
{
	struct hr_direct *c = self;

	/* the record names the workspace; others of that name have records elsewhere */
	return c->h->state_dir == NULL && remove_workspaces(c, err) != 0 ? -1 : direct_undo(c, err);
}

static int
direct_close(void *self, struct hr_err *err)
{
	struct hr_direct *c = self;

	(void)err;
	free(c->workspace);
	c->workspace = NULL; /* the files stay */
	return 0;
}

static void
direct_endpoint(void *self, struct hr_endpoint *ret)
{
	struct hr_direct *c = self;

	ret->workspace = c->workspace; /* there is no address without a server */
}

static int
direct_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_direct *c = self;
	HR_FREE char *module = hr_module_path("handrail-cli.so", err);

	if (module == NULL)
		return -1;
	hr_exam_program(fn, arg, c->h->environ, "bash", "Debian: apt-get install bash");
	fn(arg, true, "handrail-cli.so", module); /* this code is in that module */
	return 0;
}

/* the settings that already hold: commands use this machine's network */
static const char *const heeds[] = {"sandbox.security.network_mode=host", NULL};

static const struct hr_sandbox_ops direct = {
    .heeds = heeds,
    .abi = HR_BACKEND_ABI,
    .name = "cli",
    .flags = HR_KIND_HERE | HR_KIND_AS_IT_IS | HR_KIND_OUTPUT,
    .ready_status = "STATUS$RUNTIME_STARTED",
    .open = direct_open,
    .free = direct_free,
    .connect = direct_connect,
    .undo = direct_undo,
    .endpoint = direct_endpoint,
    .record = direct_record,
    .restore = direct_restore,
    .state = direct_state,
    .action = direct_action,
    .interrupt = hr_direct_interrupt,
    .copy_to = hr_direct_copy_to,
    .copy_from = hr_direct_copy_from,
    .list_files = hr_direct_list,
    .add_env = direct_add_env,
    .close = direct_close,
    .destroy = direct_destroy,
    .doctor = direct_doctor,
};

const struct hr_sandbox_ops *
hr_backend_entry(unsigned abi)
{
	return abi == HR_BACKEND_ABI ? &direct : NULL;
}
