/* Forks boxes. */
#include "config.h"

#include "host/box/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/volume.h"
#include "host/box/branch.h"
#include "host/box/copy.h"
#include "host/box/crew.h"
#include "host/box/layers.h"
#include "host/box/look.h"
#include "host/box/shells.h"
#include "host/life/pool.h"
#include "host/report.h"
#include "proto/json.h"

#define COPIES "forks"        /* a directory in the parent's */
#define ANSWER_MAX (4u << 20) /* the fleet's limit, which a thousand names do not reach */
#define SAID_MAX 4096
#define CALLERS_VARIABLES "SANDBOX_ENV_"

struct forking {
	struct hr_sandbox *s;
	struct hr_box *b;
	const struct hr_box_fork *how;
	int locks[HR_BOX_LOCKS]; /* the first one: of the parent, as hr_box_hold() takes it */
	char *dir, *copies;
	struct hr_strv names, processes;
	struct hr_shells shells;
	struct json_object *kept;
	const struct hr_config *config; /* the branches' own, as the options */
	struct hr_sandbox_options options;
	struct hr_sandbox **branches; /* this process's; NULL: another one starts it */
	bool *made; /* shared by all processes: the branches that must be ended if one fails */
	bool still;
};

static void
forking_done(struct forking *f)
{
	size_t i;

	for (i = 0; f->branches != NULL && i < f->names.n; i++)
		hr_sandbox_free(f->branches[i]);
	free(f->branches);
	if (f->made != NULL)
		(void)munmap(f->made, f->names.n);
	json_object_put(f->kept);
	hr_shells_done(&f->shells);
	hr_strv_done(&f->names);
	hr_strv_done(&f->processes);
	hr_fd_close(&f->locks[0]);
	free(f->dir);
	free(f->copies);
}

/* ---- may it be forked? ---- */

static int
choose_names(struct forking *f, struct hr_err *err)
{
	HR_CLEAN(hr_record_done) struct hr_record rec = {0};
	size_t n, m;

	if (f->s->state_dir == NULL)
		return hr_err_set(err, HR_E_UNSUPPORTED, "branches need a state directory");
	if (f->how->count > HR_BOX_FORK_MAX)
		return hr_err_set(
		    err, HR_E_INVAL, "a box can have %d branches at once", HR_BOX_FORK_MAX);
	if (f->how->names != NULL)
		hr_strv_add_all(&f->names, f->how->names);
	else if (f->how->count == 0)
		hr_strv_add(&f->names, f->how->name);
	for (n = 1; n <= f->how->count; n++)
		hr_strv_addf(&f->names, "%s-%zu", f->how->name, n);
	if (f->names.failed)
		return hr_err_nomem(err);
	for (n = 0; n < f->names.n; n++) {
		if (!hr_sid_valid(f->names.v[n]))
			return hr_err_set(err, HR_E_INVAL,
			    "invalid sandbox name \"%.200s\": " HR_SID_RULE, f->names.v[n]);
		for (m = 0; m < n; m++)
			if (strcmp(f->names.v[m], f->names.v[n]) == 0)
				return hr_err_set(err, HR_E_INVAL,
				    "two branches cannot have the name \"%s\"", f->names.v[n]);
		hr_record_done(&rec);
		if (hr_record_load(f->s->state_dir, f->names.v[n], &rec, err) < 0)
			return -1;
		/* an unready one is left over from a killed command */
		if (rec.runtime != NULL && !rec.unready)
			return hr_err_set(err, HR_E_INVAL,
			    "there is a sandbox \"%s\" already: \"handrail down %s\" ends it",
			    f->names.v[n], f->names.v[n]);
	}
	return 0;
}

static int
open_parent(struct forking *f, struct hr_err *err)
{
	if (strcmp(f->s->ops->name, "box") != 0)
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "sandbox \"%s\" has the back-end %s, which cannot fork: handrail cannot copy "
		    "its files. \"handrail up -r box\" starts a sandbox that can",
		    f->s->sid, f->s->ops->name);
	f->b = f->s->self;
	f->dir = realpath(f->b->side.dir, NULL);
	f->copies = f->dir != NULL ? hr_path_join(f->dir, COPIES) : NULL;
	if (f->copies == NULL)
		return hr_err_sys(err, errno, "%s", f->b->side.dir);
	if (hr_box_hold(f->b, &f->locks[0], err) < 0)
		return -1;
	if (hr_box_is_frozen(f->b))
		return hr_err_set(err, HR_E_RUNTIME,
		    "sandbox \"%s\" is paused, so that its shells cannot print their state: "
		    "\"handrail resume %s\" continues it",
		    f->s->sid, f->s->sid);
	if (hr_box_layers_repair(f->b, err) < 0)
		return -1;
	/* a killed command may have left copies, and files in the box, which end up in branches */
	if (access(f->copies, F_OK) == 0)
		hr_shells_remove(f->s, NULL);
	return hr_box_remove_tree(f->locks, f->copies, err) < 0
		   ? -1
		   : hr_box_settings(f->b, &f->kept, err);
}

static int
check_at_rest(struct forking *f, struct hr_err *err)
{
	HR_FREE char *open_file = NULL;

	if (hr_shells_find(f->s, &f->shells, err) < 0 ||
	    hr_look(f->b, &f->processes, f->how->freeze ? NULL : &open_file, err) < 0)
		return -1;
	if (f->how->freeze)
		return 0;
	if (f->shells.busy.n > 0)
		return hr_err_set(err, HR_E_RUNTIME,
		    "a command runs in the session \"%s\" of sandbox \"%s\": wait for its end, or "
		    "copy the files as they are with --freeze",
		    f->shells.busy.v[0], f->s->sid);
	if (open_file != NULL)
		return hr_err_set(err, HR_E_RUNTIME,
		    "%s in sandbox \"%s\": end the process, or copy the files as they are with "
		    "--freeze",
		    open_file, f->s->sid);
	return 0;
}

/* ---- files ---- */

static char *
copy_path(const struct forking *f, size_t i, struct hr_err *err)
{
	char number[24];
	char *path;

	(void)snprintf(number, sizeof(number), "%zu", i + 1);
	path = hr_path_join(f->copies, number);
	return path != NULL ? path : hr_err_null(err);
}

/* Copies `copy` to `to` as a snapshot, without the launcher. Returns false if the file system
 * cannot do that. */
static bool
share(const struct forking *f, const char *copy, const char *to)
{
	HR_CLOSE int dir = open(f->copies, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	HR_CLOSE int from = open(copy, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return dir >= 0 && from >= 0 && hr_volume_snapshot(from, dir, hr_path_leaf(to));
}

/* Copies the storage of the parent, or for further branches that of the first one, which does not
 * run yet. */
static int
copy_one(void *arg, size_t i, struct hr_err *err)
{
	struct forking *f = arg;
	HR_FREE char *to = copy_path(f, i, err);
	HR_FREE char *from = i == 0 ? hr_path_join(f->dir, "storage") : copy_path(f, 0, err);
	struct hr_box_copy c = {.locks = f->locks, .from = from, .to = to};

	if (to == NULL || from == NULL)
		return -1;
	if (i > 0 && share(f, from, to))
		return 0;
	if (hr_box_copy(i == 0 ? f->b : NULL, &c, err) < 0)
		return -1;
	/* the other branches need no copy of a layer */
	return i == 0 && !c.shifted && f->names.n > 1
		   ? hr_box_layer_freeze(f->s->state_dir, to, hr_box_top(f->b->root), err)
		   : 0;
}

static int
copy_all(struct forking *f, struct hr_err *err)
{
	f->still = hr_box_freezer(f->b) != NULL;
	/* the directory is also the mark of a fork that has files in the box */
	if (mkdir(f->copies, 0700) != 0)
		return hr_err_sys(err, errno, "create %s", f->copies);
	if (hr_shells_save(f->s, &f->shells, err) < 0 || copy_one(f, 0, err) < 0 ||
	    (!f->how->freeze && hr_shells_check(f->s, &f->shells, err) < 0))
		return -1;
	return hr_crew_run(1, f->names.n, copy_one, f, err);
}

/* ---- branches ---- */

static int
set_up(struct hr_sandbox *branch, void *arg, struct hr_err *err)
{
	const struct forking *f = arg;
	struct hr_err e = {0};

	if (hr_shells_restore(branch, &f->shells, err) < 0)
		return -1;
	if (hr_sandbox_add_mcp(branch, NULL, &e) != 0)
		hr_sandbox_log(
		    f->s, "MCP servers were not added to \"%s\": %s", branch->sid, e.msg);
	return 0;
}

/* Starts a branch; the last task cleans the parent up meanwhile. */
static int
start_one(void *arg, size_t i, struct hr_err *err)
{
	struct forking *f = arg;
	HR_FREE char *copy = copy_path(f, i, err);
	struct hr_sandbox *n;
	struct hr_box *b;
	int r;

	if (i == f->names.n) {
		hr_shells_remove(f->s, &f->shells);
		return 0;
	}
	if (copy == NULL)
		return -1;
	f->options.sid = f->names.v[i];
	n = f->branches[i] = hr_sandbox_open(f->config, &f->options, err);
	if (n == NULL)
		return -1;
	n->set_up = set_up;
	n->set_up_arg = f;
	b = n->self;
	b->prepared = copy;
	b->parent = f->dir;
	f->made[i] = true;
	r = hr_sandbox_connect(n, err);
	b->prepared = NULL;
	f->made[i] = r == 0 && n->made;
	return r == 0 && !n->made
		   ? hr_err_set(err, HR_E_INVAL, "there is a sandbox \"%s\" now", n->sid)
		   : r;
}

/* Adds the strings of a list. */
static void
take_list(struct hr_strv *to, struct json_object *list)
{
	size_t i;

	for (i = 0; i < hr_json_count(list); i++)
		if (hr_json_text(hr_json_entry(list, i)) != NULL)
			hr_strv_add(to, hr_json_text(hr_json_entry(list, i)));
}

static int
start_all(struct forking *f, struct hr_err *err)
{
	HR_CLEAN(hr_config_clean) struct hr_config *c = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv plugins = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv variables = {0};
	HR_FREE char *rules = NULL;
	size_t i;

	if (f->s->ops->network(f->b, &rules, err) < 0 ||
	    (c = hr_box_branch_config(f->s->config, f->kept, rules, err)) == NULL)
		return -1;
	take_list(&env, hr_json_at(f->kept, "env"));
	take_list(&plugins, hr_json_at(f->kept, "plugins"));
	/* the parent's variables are complete */
	for (i = 0; i < f->s->environ.n; i++)
		if (strncmp(f->s->environ.v[i], CALLERS_VARIABLES, strlen(CALLERS_VARIABLES)) != 0)
			hr_strv_add(&variables, f->s->environ.v[i]);
	f->branches = calloc(f->names.n, sizeof(*f->branches));
	f->made = mmap(NULL, f->names.n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	f->made = f->made != MAP_FAILED ? f->made : NULL;
	if (f->branches == NULL || f->made == NULL || env.failed || plugins.failed ||
	    variables.failed)
		return hr_err_nomem(err);
	f->config = c;
	/* a log would repeat the remarks that the parent's start made */
	f->options = (struct hr_sandbox_options){.plugins = hr_strv_list(&plugins),
	    .env = hr_strv_list(&env),
	    .environ = hr_strv_list(&variables),
	    .headless = true,
	    .detach = true,
	    .state_dir = f->s->state_dir};
	return hr_crew_run(0, f->names.n + 1, start_one, f, err);
}

/* Ends the branches of a fork that failed. */
static void
undo(struct forking *f)
{
	struct hr_err e = {0};
	size_t i;

	hr_shells_remove(f->s, &f->shells);
	for (i = 0; f->made != NULL && i < f->names.n; i++)
		if (f->made[i] && hr_pool_end(f->s, f->s->state_dir, f->names.v[i], &e) != 0)
			hr_sandbox_log(f->s, "%s", e.msg);
}

/* ---- the answer ---- */

/* Appends what a branch does not have, with names unless the list is NULL; an empty list is left
 * out. */
static int
lack(struct json_object *list, const char *what, const struct hr_strv *names, struct hr_err *err)
{
	if (names != NULL && names->n == 0)
		return 0;
	return hr_json_append(list,
	    hr_json_object(NULL, "what", json_object_new_string(what), "names",
		names != NULL ? hr_json_list(NULL, hr_strv_list(names)) : HR_JSON_NONE, NULL),
	    err);
}

static int
compose(const struct forking *f, char **ret, struct hr_err *err)
{
	static const char *const mounts[] = {
	    "sandbox.volumes", "core.workspace_mount_path", "core.workspace_base"};
	struct json_object *settings = hr_json_at(f->kept, "settings");
	HR_CLEAN(hr_strv_done) struct hr_strv shared = {0};
	struct json_object *lacks = json_object_new_array();
	HR_PUT struct json_object *o =
	    hr_json_object(err, "sandbox", json_object_new_string(f->s->sid), "branches",
		hr_json_list(NULL, hr_strv_list(&f->names)), "still",
		json_object_new_boolean(f->still), "sessions",
		hr_json_list(NULL, hr_strv_list(&f->shells.names)), "not_copied", lacks, NULL);
	size_t i;

	for (i = 0; i < sizeof(mounts) / sizeof(*mounts) && shared.n == 0; i++)
		if (hr_json_text_at(settings, mounts[i]) != NULL)
			hr_strv_add(&shared, hr_json_text_at(settings, mounts[i]));
	if (o == NULL || shared.failed ||
	    lack(lacks, "state of the shells of sessions that run a command", &f->shells.busy,
		err) < 0 ||
	    lack(lacks, "processes: background jobs, kernels, servers", &f->processes, err) < 0 ||
	    lack(lacks, "volumes: the branch uses the same directories", &shared, err) < 0 ||
	    lack(lacks, "files in /run and /dev/shm", NULL, err) < 0 ||
	    lack(lacks, "connections, open descriptors and the history of the shells", NULL, err) <
		0 ||
	    lack(lacks, "journal of the actions: keys from before are unknown to a branch", NULL,
		err) < 0)
		return -1;
	*ret = hr_json_string(o, ANSWER_MAX, err);
	return *ret != NULL ? 0 : -1;
}

int
hr_box_fork(
    struct hr_sandbox *s, const struct hr_box_fork *how, char **ret_json, struct hr_err *err)
{
	HR_CLEAN(forking_done) struct forking f = {.s = s, .how = how, .locks = {-1, -1}};
	int r = -1;

	*ret_json = NULL;
	if (choose_names(&f, err) < 0 || open_parent(&f, err) < 0 || check_at_rest(&f, err) < 0)
		return -1;
	if (copy_all(&f, err) == 0 && start_all(&f, err) == 0)
		r = compose(&f, ret_json, err);
	if (r < 0)
		undo(&f);
	(void)hr_box_remove_tree(f.locks, f.copies, NULL);
	if (r < 0)
		hr_box_layers_clean(f.b->h);
	return r;
}
