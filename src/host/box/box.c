/* The back-end "box": handraild as process 1 of a box, which the kernel isolates (doc/host.md, "The
 * back-end box"). make.c starts it. It outlives the caller. */
#include "config.h"

#include "host/box/box_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "base/text/text.h"
#include "host/backends.h"
#include "host/common/logfile.h"
#include "host/common/proc.h"
#include "host/common/recordtext.h"
#include "host/life/urls.h"
#include "proto/json.h"

#define END_PATIENCE_MS 5000

static void
release_ports(struct hr_box *b)
{
	int i;

	for (i = 0; i < HR_BOX_PORTS; i++)
		hr_portlock_release(&b->locks[i]);
}

/* Forgets the current box; none is known afterwards. */
static void
forget(struct hr_box *b)
{
	hr_fd_close(&b->side.watch);
	hr_fd_close(&b->side.socket);
	free(b->name);
	free(b->side.dir);
	free(b->edge);
	free(b->url);
	free(b->key);
	free(b->root);
	hr_strv_done(&b->groups);
	b->name = b->side.dir = b->edge = b->url = b->key = b->root = NULL;
	b->new_dir = false;
	b->pid = 0;
}

static void
box_free(void *self)
{
	struct hr_box *b = self;

	release_ports(b);
	forget(b);
	free(b);
}

static int
box_open(const struct hr_backend_host *h, void **ret_self, struct hr_err *err)
{
	const long long port = hr_config_int(h->config, "box.port");
	enum hr_box_net net;
	struct hr_box *b;
	int i;

	if (port < 0 || port > 65535)
		return hr_err_set(
		    err, HR_E_INVAL, "box.port must be from 0 to 65535, not %lld", port);
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return hr_err_nomem(err);
	b->h = h;
	b->side.watch = b->side.socket = -1;
	for (i = 0; i < HR_BOX_PORTS; i++)
		b->locks[i] = (struct hr_portlock)HR_PORTLOCK_NONE;
	b->side.h = h;
	if (!h->attach && (hr_box_network(h->config, &net, err) < 0 ||
			      hr_egress_check(h, hr_box_net_name(net), err) < 0)) {
		box_free(b);
		return -1;
	}
	*ret_self = b;
	return 0;
}

/* ---- end ---- */

/* Removes the directory of a box. Its files get another name before the first one is removed: if
 * this process is killed meanwhile, the next start would take the rest for the files of the box. */
static int
remove_directory(const struct hr_box *b, struct hr_err *err)
{
	HR_FREE char *storage = NULL;
	HR_FREE char *old = NULL;

	if (b->side.dir == NULL)
		return 0;
	storage = hr_sidecar_path(&b->side, "storage");
	old = hr_sidecar_path(&b->side, HR_BOX_OLD);
	if (storage == NULL || old == NULL)
		return hr_err_nomem(err);
	if (rename(storage, old) != 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
		return hr_err_sys(err, errno, "remove %s", storage);
	if (hr_box_remove_tree(NULL, b->side.dir, err) < 0)
		return -1;
	hr_box_layers_clean(b->h);
	return 0;
}

/* Reads the file in b->side.dir, which is newer than the record if a process was killed while it
 * started a box. Without it no box was started. Returns 1 if the box runs, 0 if not, or -1 with
 * *err set if that cannot be known. */
static int
read_process(struct hr_box *b, struct hr_err *err)
{
	HR_FREE char *path = hr_sidecar_path(&b->side, HR_BOX_PROCESS);
	HR_BUF(line, HR_BOX_LINE_MAX);
	struct hr_err e = {0};

	b->pid = 0;
	if (path == NULL)
		return hr_err_nomem(err);
	if (hr_path_read(path, &line, &e) == 0)
		return hr_box_take_process(b, hr_buf_str(&line), err);
	return e.sys == ENOENT ? 0 : hr_err_pass(err, &e);
}

/* Ends the processes of a box that is held; its files stay. Fails only if it is not known whether
 * it runs. */
static int
end_held(struct hr_box *b, struct hr_err *err)
{
	HR_FREE char *at = b->edge != NULL ? hr_path_join(b->edge, HR_SIDECAR_SOCKET) : NULL;

	if (b->side.watch < 0 && b->side.dir != NULL && read_process(b, err) < 0)
		return -1;
	if (b->side.watch >= 0) {
		/* If this process is killed now, the missing socket keeps the next command from
		 * taking a box that ends for one that runs. */
		if (at != NULL)
			(void)unlink(at);
		(void)hr_box_freeze(b, false, NULL); /* a frozen process does not end */
		hr_proc_end(b->pid, b->side.watch, END_PATIENCE_MS);
	}
	hr_sidecar_end_forwards(&b->side);
	hr_egress_end(&b->side);
	hr_fd_close(&b->side.watch);
	hr_fd_close(&b->side.socket);
	b->pid = 0;
	hr_box_remove_groups(b);
	release_ports(b);
	return 0;
}

/* Ends the box after the copy of its files, which thaws the box and reads what is removed here. */
static int
end_it(struct hr_box *b, bool with_files, struct hr_err *err)
{
	HR_CLOSE int held = -1;

	if (hr_box_hold(b, &held, err) < 0 || end_held(b, err) < 0)
		return -1;
	if (!with_files)
		return 0;
	b->new_dir = false;
	return remove_directory(b, err);
}

static int
box_destroy(void *self, struct hr_err *err)
{
	return end_it(self, true, err);
}

/* Ends the box; it can be started again with its files, if a record leads to them. */
static int
box_close(void *self, struct hr_err *err)
{
	struct hr_box *b = self;

	if (b->h->state_dir != NULL && hr_config_bool(b->h->config, "sandbox.keep_runtime_alive"))
		return 0;
	return end_it(b, b->h->state_dir == NULL, err);
}

/* Ends a new box; the files of an earlier one stay. */
static int
box_undo(void *self, struct hr_err *err)
{
	struct hr_box *b = self;

	return end_it(b, b->new_dir, err);
}

/* ---- start ---- */

static int
box_connect(void *self, enum hr_connected *ret, struct hr_err *err)
{
	struct hr_box *b = self;

	if (b->h->attach)
		return hr_err_set(
		    err, HR_E_DISCONNECTED, "No existing box found for session %s", b->h->sid);
	/* a recorded box that cannot be used ends; its files stay */
	if (end_it(b, false, err) < 0)
		return -1;
	if (hr_box_make(b, err) != 0) {
		(void)box_undo(b, NULL);
		return -1;
	}
	*ret = HR_SANDBOX_MADE;
	return 0;
}

static void
box_endpoint(void *self, struct hr_endpoint *ret)
{
	struct hr_box *b = self;

	ret->url = b->url;
	ret->unix_socket = b->side.at;
	ret->key = b->key;
	ret->app_ports[0] = hr_box_port(b, HR_BOX_APP1);
	ret->app_ports[1] = hr_box_port(b, HR_BOX_APP2);
}

/* ---- records ---- */

static char *
box_record(void *self, struct hr_err *err)
{
	struct hr_box *b = self;
	HR_BUF(text, 1 << 20);

	hr_record_put_text(&text, "name", b->name);
	hr_record_put_text(&text, "dir", b->side.dir);
	hr_record_put_text(&text, "edge", b->edge);
	hr_record_put_text(&text, "key", b->key);
	hr_record_put_text(&text, "root", b->root);
	hr_record_put_int(&text, "vscode_port", b->ports[HR_BOX_VSCODE]);
	hr_record_put_int(&text, "app_port_1", b->ports[HR_BOX_APP1]);
	hr_record_put_int(&text, "app_port_2", b->ports[HR_BOX_APP2]);
	hr_record_put_int(&text, "pid", b->pid);
	hr_record_put_int(&text, "started", (long long)b->started);
	return hr_record_take(&text, err);
}

/* Freezes or thaws the box when no command copies it, since the end of a copy thaws it. */
static int
freeze(const struct hr_box *b, bool frozen, struct hr_err *err)
{
	HR_CLOSE int held = -1;

	return hr_box_freezer(b) == NULL        ? 0
	       : hr_box_hold(b, &held, err) < 0 ? -1
						: hr_box_freeze(b, frozen, err);
}

static int
box_restore(void *self, const char *record, struct hr_err *err)
{
	struct hr_box *b = self;
	HR_PUT struct json_object *o = NULL;
	struct hr_err e = {0};

	forget(b);
	if (hr_json_decode(record, strlen(record), &o, NULL) < 0 ||
	    hr_json_text_at(o, "name") == NULL || hr_json_text_at(o, "dir") == NULL ||
	    hr_json_text_at(o, "edge") == NULL || hr_json_text_at(o, "key") == NULL)
		return hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
	if (hr_text_set(&b->name, hr_json_text_at(o, "name"), err) != 0 ||
	    hr_text_set(&b->side.dir, hr_json_text_at(o, "dir"), err) != 0 ||
	    hr_text_set(&b->edge, hr_json_text_at(o, "edge"), err) != 0 ||
	    hr_text_set(&b->key, hr_json_text_at(o, "key"), err) != 0 ||
	    hr_text_set(&b->root, hr_json_text_at(o, "root"), err) != 0)
		return -1;
	b->ports[HR_BOX_VSCODE] = (int)hr_json_int_at(o, "vscode_port");
	b->ports[HR_BOX_APP1] = (int)hr_json_int_at(o, "app_port_1");
	b->ports[HR_BOX_APP2] = (int)hr_json_int_at(o, "app_port_2");
	if (read_process(b, err) < 0)
		return -1;
	if (b->side.watch < 0)
		return hr_err_set(err, HR_E_DISCONNECTED,
		    "the box of sandbox \"%s\" has ended; \"handrail up\" starts it again with its "
		    "files, \"handrail down\" removes them",
		    b->h->sid);
	/* the caller needs the box running */
	if ((!b->h->attach && freeze(b, false, err) < 0) || hr_box_open_socket(b, err) < 0)
		return -1;
	/* a box without its broker has no network, and is still of use */
	if (hr_egress_keep(&b->side, &e) < 0)
		b->h->log(b->h->arg, e.msg);
	return 0;
}

static int
box_adopt(void *self, const char *sid, const char *record, struct hr_err *err)
{
	struct hr_box *b = self;

	(void)sid; /* neither the server nor a path depends on the name */
	if (end_it(b, false, err) < 0)
		return -1;
	if (box_restore(b, record, err) == 0)
		return 0;
	forget(b); /* another box may be adopted instead */
	return -1;
}

static const char *
box_state(void *self)
{
	struct hr_box *b = self;

	if (b->side.watch < 0 || hr_pid_wait(b->side.watch, 0))
		return "exited";
	if (!hr_box_is_frozen(b))
		return "running";
	if (hr_box_is_held(b))
		return "copying";
	/* a copy freezes the box, and may just have thawed it */
	return hr_box_is_frozen(b) ? "paused" : "running";
}

static int
box_pause(void *self, struct hr_err *err)
{
	int r = freeze(self, true, err);

	return r != 0 ? (r > 0 ? 0 : -1)
		      : hr_err_set(err, HR_E_UNSUPPORTED,
			    "a box can be paused where its launcher could make a control group for "
			    "it: run handrail as root, or in a group of version 2 of your own, as "
			    "\"systemd-run --user --scope -p Delegate=yes\" makes");
}

static int
box_resume(void *self, struct hr_err *err)
{
	struct hr_box *b = self;

	if (b->side.watch < 0 || hr_pid_wait(b->side.watch, 0))
		return hr_err_set(err, HR_E_DISCONNECTED,
		    "the box of sandbox \"%s\" has ended; \"handrail up\" starts it again",
		    b->h->sid);
	return freeze(b, false, err) < 0 ? -1 : 0;
}

/* Pauses the box; an idle box that cannot be frozen uses nothing either. */
static int
box_freeze(void *self, struct hr_err *err)
{
	return freeze(self, true, err) < 0 ? -1 : 0;
}

static int
box_logs(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_box *b = self;
	HR_FREE char *log = hr_sidecar_path(&b->side, "log");

	if (log == NULL)
		return hr_err_nomem(err);
	return hr_logfile_read(
	    log, follow ? b->side.watch : -1, b->h->stop_fd, follow, fn, arg, err);
}

/* Makes an address with a number, since another account could listen on ::1, another address of
 * localhost. */
static int
box_web_url(void *self, char **ret, struct hr_err *err)
{
	const struct hr_box *b = self;
	int port =
	    hr_sidecar_forward(&b->side, false, (int)hr_config_int(b->h->config, "box.port"), err);

	return port < 0 ? -1 : hr_text_setf(ret, err, "http://127.0.0.1:%d", port);
}

static int
box_vscode_url(void *self, char **ret, struct hr_err *err)
{
	const struct hr_box *b = self;
	/* a box with the network of the machine has its editor there */
	int port = b->ports[HR_BOX_VSCODE];

	if (b->ports[HR_BOX_APP1] == 0)
		port = hr_sidecar_forward(&b->side, true, port, err);

	return port < 0 ? -1 : hr_text_setf(ret, err, "http://127.0.0.1:%d/", port);
}

/* Returns the addresses; the ports of a box with its own network are not reachable from outside. */
static int
box_web_hosts(void *self, char **ret_json, struct hr_err *err)
{
	struct hr_box *b = self;

	return hr_web_hosts_at("localhost", &b->ports[HR_BOX_APP1], ret_json, err);
}

static int
box_rules(void *self, char **ret_json, struct hr_err *err)
{
	const struct hr_box *b = self;

	return hr_egress_rules(&b->side, ret_json, err);
}

static int
box_set_rules(void *self, const char *json, struct hr_err *err)
{
	const struct hr_box *b = self;

	return hr_egress_set_rules(&b->side, json, err);
}

static int
box_rules_log(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	const struct hr_box *b = self;

	return hr_egress_log(&b->side, follow, fn, arg, err);
}

static const struct hr_backend_option options[] = {
    {"from", HR_OPTION_TEXT, NULL, false,
	"the snapshot whose files a new box starts with; unset: the host's programs alone"},
    {"network", HR_OPTION_TEXT, "\"none\"", false,
	"none: only the box's own loopback interface; host: the machine's network; egress: what "
	"sandbox.network allows"},
    {"port", HR_OPTION_INT, "0", false,
	"the port of 127.0.0.1 for browsers, when \"handrail url\" starts its forwarder; 0: any"},
    {"root", HR_OPTION_TEXT, NULL, false,
	"a directory with a complete system; unset: the host's programs"},
    {0}};

static const char *const heeds[] = {"sandbox.limits.", "sandbox.network",
    "sandbox.security.network_mode", "sandbox.security.no_new_privileges=true",
    "sandbox.security.run_as_user", "sandbox.security.run_as_group", "sandbox.use_host_network",
    NULL};

const struct hr_sandbox_ops hr_backend_box = {
    .abi = HR_BACKEND_ABI,
    .name = "box",
    .flags = HR_KIND_NO_IMAGE | HR_KIND_SOCKET | HR_KIND_STATE_NEAR,
    .heeds = heeds,
    .log_prefix = "[inside box] ",
    .options = options,
    .open = box_open,
    .free = box_free,
    .connect = box_connect,
    .undo = box_undo,
    .endpoint = box_endpoint,
    .record = box_record,
    .restore = box_restore,
    .adopt = box_adopt,
    .state = box_state,
    .pause = box_pause,
    .resume = box_resume,
    .freeze = box_freeze,
    .close = box_close,
    .destroy = box_destroy,
    .logs = box_logs,
    .vscode_url = box_vscode_url,
    .web_url = box_web_url,
    .web_hosts = box_web_hosts,
    .network = box_rules,
    .set_network = box_set_rules,
    .network_log = box_rules_log,
    .snapshot = hr_box_snapshot,
    .doctor = hr_box_doctor,
};
