/* The back-end "local": handraild as a process of this machine with its caller's rights
 * (doc/host.md, "The back-end local"). It outlives the caller only on request. make.c starts it. */
#include "config.h"

#include "host/local/local_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "base/err.h"
#include "host/command.h"
#include "host/common/recordtext.h"
#include "host/common/logfile.h"
#include "host/common/proc.h"
#include "proto/json.h"
#include "host/backends.h"
#include "host/records/record.h"

#define END_PATIENCE_MS 5000
#define KEEPER ".keeper"

/* Forgets the current server; none is known afterwards. */
static void
forget(struct hr_local *l)
{
	hr_fd_close(&l->watch);
	free(l->url);
	free(l->key);
	free(l->workspace);
	free(l->log);
	free(l->run_dir);
	free(l->home);
	l->url = l->key = l->workspace = l->log = l->run_dir = l->home = NULL;
	l->own_workspace = l->new_home = false;
	l->pid = 0;
}

static void
local_free(void *self)
{
	struct hr_local *l = self;
	size_t i;

	for (i = 0; i < 4; i++)
		hr_portlock_release(&l->locks[i]);
	forget(l);
	free(l);
}

static int
local_open(const struct hr_backend_host *h, void **ret_self, struct hr_err *err)
{
	const char *home = hr_config_text(h->config, "local.home");
	const long long port = hr_config_int(h->config, "local.port");
	struct hr_local *l;
	size_t i;

	if (port < 0 || port > 65535)
		return hr_err_set(
		    err, HR_E_INVAL, "local.port must be from 0 to 65535, not %lld", port);
	if (home != NULL && strcmp(home, "own") != 0 && strcmp(home, "caller") != 0)
		return hr_err_set(
		    err, HR_E_INVAL, "local.home must be own or caller, not \"%.40s\"", home);
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return hr_err_nomem(err);
	l->h = h;
	l->watch = l->reserved = -1;
	for (i = 0; i < 4; i++)
		l->locks[i] = (struct hr_portlock)HR_PORTLOCK_NONE;
	*ret_self = l;
	return 0;
}

static int local_undo(void *self, struct hr_err *err);
static void end_left(const struct hr_local *l);

static int
local_connect(void *self, enum hr_connected *ret, struct hr_err *err)
{
	struct hr_local *l = self;
	const char *home;

	if (l->h->attach)
		return hr_err_set(
		    err, HR_E_DISCONNECTED, "No existing server found for session %s", l->h->sid);
	end_left(l); /* cleans up after an ended server; its files stay */
	forget(l);
	home = hr_config_text(l->h->config, "local.home");
	l->in_home = home == NULL || strcmp(home, "own") == 0;
	l->h->log(l->h->arg,
	    "The local runtime isolates nothing: commands run with your rights on this machine.");
	if (hr_local_make(l, err) != 0) {
		(void)local_undo(l, NULL);
		if (l->log != NULL)
			(void)unlink(l->log); /* the error contains the new log's last lines */
		return -1;
	}
	*ret = HR_SANDBOX_MADE;
	return 0;
}

static void
local_endpoint(void *self, struct hr_endpoint *ret)
{
	struct hr_local *l = self;

	ret->url = l->url;
	ret->key = l->key;
	ret->workspace = l->workspace;
	ret->home = l->in_home ? l->home : NULL;
	ret->vscode_port = l->vscode_port;
	memcpy(ret->app_ports, l->app_ports, sizeof(ret->app_ports));
}

static char *
local_record(void *self, struct hr_err *err)
{
	struct hr_local *l = self;
	HR_BUF(b, 1 << 20);

	hr_record_put_text(&b, "url", l->url);
	hr_record_put_text(&b, "key", l->key);
	hr_record_put_text(&b, "workspace", l->workspace);
	hr_record_put_text(&b, "log", l->log);
	hr_record_put_text(&b, "run_dir", l->run_dir);
	hr_record_put_text(&b, "home", l->home);
	hr_record_put_bool(&b, "in_home", l->in_home);
	hr_record_put_bool(&b, "own_workspace", l->own_workspace);
	hr_record_put_int(&b, "port", l->port);
	hr_record_put_int(&b, "vscode_port", l->vscode_port);
	hr_record_put_int(&b, "app_port_1", l->app_ports[0]);
	hr_record_put_int(&b, "app_port_2", l->app_ports[1]);
	hr_record_put_int(&b, "pid", l->pid);
	hr_record_put_int(&b, "started", (long long)l->started);
	return hr_record_take(&b, err);
}

static char *
take_text(struct json_object *o, const char *name)
{
	const char *text = hr_json_text_at(o, name);

	return text != NULL ? strdup(text) : NULL;
}

static int
local_restore(void *self, const char *record, struct hr_err *err)
{
	struct hr_local *l = self;
	HR_PUT struct json_object *o = NULL;
	int64_t pid;

	if (hr_json_decode(record, strlen(record), &o, NULL) < 0 ||
	    !json_object_is_type(o, json_type_object))
		return hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
	l->url = take_text(o, "url");
	l->key = take_text(o, "key");
	l->workspace = take_text(o, "workspace");
	l->log = take_text(o, "log");
	l->run_dir = take_text(o, "run_dir");
	l->home = take_text(o, "home");
	l->in_home = hr_json_true_at(o, "in_home");
	l->own_workspace = hr_json_true_at(o, "own_workspace");
	l->port = (int)hr_json_int_at(o, "port");
	l->vscode_port = (int)hr_json_int_at(o, "vscode_port");
	l->app_ports[0] = (int)hr_json_int_at(o, "app_port_1");
	l->app_ports[1] = (int)hr_json_int_at(o, "app_port_2");
	pid = hr_json_int_at(o, "pid");
	l->pid = pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
	l->started = (unsigned long long)hr_json_int_at(o, "started");
	if (l->url == NULL || l->key == NULL || l->workspace == NULL || l->log == NULL ||
	    l->run_dir == NULL || l->home == NULL)
		return hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
	l->watch = hr_proc_watch(l->pid, l->started);
	if (l->watch < 0)
		return hr_err_set(err, HR_E_DISCONNECTED,
		    "the server of sandbox \"%s\" has ended; \"handrail down\" removes the sandbox",
		    l->h->sid);
	return 0;
}

static int
local_adopt(void *self, const char *sid, const char *record, struct hr_err *err)
{
	struct hr_local *l = self;
	char *log = NULL;
	int r;

	end_left(l); /* a recorded server may be dead */
	forget(l);
	r = local_restore(l, record, err);
	(void)sid; /* the server does not know its name */
	if (r == 0) {
		log = hr_record_path(l->h->state_dir, l->h->sid, ".log");
		if (log == NULL)
			r = hr_err_nomem(err);
		else if (rename(l->log, log) != 0)
			r = hr_err_sys(err, errno, "rename %s", l->log);
	}
	if (r != 0) {
		free(log);
		forget(l); /* another server may be adopted instead */
		return r;
	}
	free(l->log);
	l->log = log;
	return 0;
}

static const char *
local_state(void *self)
{
	struct hr_local *l = self;

	return l->watch >= 0 && !hr_pid_wait(l->watch, 0) ? "running" : "exited";
}

/* ---- leftovers of a killed server ----
 *
 * The keepers of its shells outlive it for the next server with the same run directory
 * (src/supervisor/children/adopt.h). */

/* Ends the keeper in the file "PID START DIGEST", of which only the first bytes are read. */
static void
end_keeper(int dir, const char *name, int patience_ms)
{
	HR_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	HR_CLOSE int watch = -1;
	char text[96] = "", *at;
	long pid;

	if (fd < 0)
		return;
	(void)hr_fd_read(fd, text, sizeof(text) - 1);
	pid = strtol(text, &at, 10);
	watch = pid > 1 ? hr_proc_watch((pid_t)pid, strtoull(at, NULL, 10)) : -1;
	if (watch >= 0)
		hr_proc_end((pid_t)pid, watch, patience_ms);
}

/* Ends the keepers of named sessions. */
static void
end_named(int dir, int patience_ms)
{
	int fd = openat(dir, "session", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	size_t n, s = strlen(KEEPER);

	if (d == NULL) {
		hr_fd_close(&fd);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		n = strlen(e->d_name);
		if (n > s && strcmp(e->d_name + n - s, KEEPER) == 0)
			end_keeper(dirfd(d), e->d_name, patience_ms);
	}
	(void)closedir(d);
}

/* Checks that the run directory belongs to this user and to that server, and not to one with the
 * same name or a later one. */
static bool
is_its(int dir, pid_t server)
{
	HR_CLOSE int fd = openat(dir, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[48] = "";
	struct stat st;

	return fd >= 0 && fstat(dir, &st) == 0 && st.st_uid == geteuid() &&
	       hr_fd_read(fd, text, sizeof(text) - 1) > 0 && strtol(text, NULL, 10) == (long)server;
}

/* Ends the keepers and removes the run directory, unless the server lives. */
static void
end_left(const struct hr_local *l)
{
	HR_CLOSE int server = l->pid > 0 ? hr_proc_watch(l->pid, l->started) : -1;
	HR_CLOSE int dir = -1;

	if (server < 0 && l->run_dir != NULL)
		dir = open(l->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir >= 0 && l->pid > 0 && is_its(dir, l->pid)) {
		end_keeper(dir, "keeper", END_PATIENCE_MS);
		end_named(dir, END_PATIENCE_MS);
		/* except the files that its last processes may still write */
		(void)hr_path_remove(l->run_dir, NULL);
	}
	if (dir >= 0)
		/* the directory is empty if a server was killed at its start */
		(void)rmdir(l->run_dir);
}

/* ---- end ---- */

static int
end_it(struct hr_local *l, bool with_home, struct hr_err *err)
{
	struct hr_err e = {0};
	int r = 0;
	size_t i;

	if (l->watch >= 0)
		hr_proc_end(l->pid, l->watch, END_PATIENCE_MS);
	end_left(l);
	hr_fd_close(&l->watch);
	l->pid = 0;
	for (i = 0; i < 4; i++)
		hr_portlock_release(&l->locks[i]);
	if (l->own_workspace && l->workspace != NULL && hr_path_remove(l->workspace, &e) < 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	if (with_home && l->home != NULL && hr_path_remove(l->home, &e) < 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	l->own_workspace = l->new_home = false;
	if (l->h->state_dir == NULL && l->log != NULL)
		(void)unlink(l->log);
	return r;
}

static int
local_destroy(void *self, struct hr_err *err)
{
	return end_it(self, true, err);
}

/* Ends a new server; the home directory of an earlier one stays. */
static int
local_undo(void *self, struct hr_err *err)
{
	struct hr_local *l = self;

	return end_it(l, l->new_home, err);
}

static int
local_logs(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_local *l = self;

	return hr_logfile_read(l->log, follow ? l->watch : -1, l->h->stop_fd, follow, fn, arg, err);
}

/* Runs a command on the caller's terminal, in the workspace. */
static int
local_exec(void *self, const char *const *argv, int *ret_status, struct hr_err *err)
{
	static const char go[] = "cd \"$0\" && exec \"$@\"";
	struct hr_local *l = self;
	HR_CLEAN(hr_strv_done) struct hr_strv words = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};

	hr_strv_add_all(&env, l->h->environ);
	hr_local_set_home(l, &env);
	if (env.failed)
		return hr_err_nomem(err);
	hr_strv_add(&words, "/bin/sh");
	hr_strv_add(&words, "-c");
	hr_strv_add(&words, go);
	hr_strv_add(&words, l->workspace);
	hr_strv_add_all(&words, argv);
	return hr_command_here(&words, hr_strv_list(&env), ret_status, err);
}

static const struct hr_backend_option options[] = {
    {"home", HR_OPTION_TEXT, "\"own\"", false,
	"own: a home directory below the state directory; caller: your own"},
    {"port", HR_OPTION_INT, "0", false, "of the server; 0: any free port"}, {0}};

static const char *const heeds[] = {
    "sandbox.limits.max_memory_gb", "sandbox.security.network_mode=host", NULL};

const struct hr_sandbox_ops hr_backend_local = {
    .abi = HR_BACKEND_ABI,
    .name = "local",
    .flags = HR_KIND_HERE,
    .heeds = heeds,
    .options = options,
    .undo = local_undo,
    .open = local_open,
    .free = local_free,
    .connect = local_connect,
    .endpoint = local_endpoint,
    .record = local_record,
    .restore = local_restore,
    .state = local_state,
    .close = local_destroy,
    .destroy = local_destroy,
    .logs = local_logs,
    .exec = local_exec,
    .adopt = local_adopt,
    .vscode_url = hr_local_vscode_url,
    .web_hosts = hr_local_web_hosts,
    .doctor = hr_local_doctor,
};
