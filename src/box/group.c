/* Manages the control groups of a box, of both versions. */
#include "config.h"

#include "box/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/hierarchy.h"
#include "proto/json.h"

#define PARENT "handrail"
#define CPU_PERIOD_US 100000

enum controller { MEMORY, PROCESSES, CPUS, FREEZER, CONTROLLERS };
static const char *const names[CONTROLLERS] = {"memory", "pids", "cpu", "freezer"};

/* Each controller has the directory above PARENT (NULL: there is none), its version, and the box's
 * group. */
struct places {
	char *at[CONTROLLERS], *made[CONTROLLERS];
	int version[CONTROLLERS];
};

static void
places_done(struct places *p)
{
	int c;

	for (c = 0; c < CONTROLLERS; c++) {
		free(p->at[c]);
		free(p->made[c]);
	}
}

/* Chooses where the groups are made. Root's boxes have them at the top, so that they do not depend
 * on the caller's group; an ordinary user's are below the caller's group of version 2, where that
 * belongs to the user. Only controllers that are `wanted` are looked for; NULL: all. */
static void
find(struct places *p, const char *proc, bool root, const bool *wanted)
{
	HR_FREE char *two = hr_hierarchy_find(proc, "", root, NULL);
	int c;

	if (two != NULL && !root && access(two, W_OK) != 0)
		return;
	for (c = 0; c < CONTROLLERS; c++) {
		if (wanted != NULL && !wanted[c])
			continue;
		/* version 2 freezes without a controller */
		if (two != NULL && (c == FREEZER || hr_hierarchy_has(two, names[c]))) {
			p->at[c] = strdup(two);
			p->version[c] = 2;
		} else if (root) {
			p->at[c] = hr_hierarchy_find(proc, names[c], true, NULL);
			p->version[c] = 1;
		}
	}
}

/* Makes "handrail" and "handrail/NAME" below a directory; *ret: the latter, the caller frees. */
static int
make_group(const char *top, const char *name, const char *controllers, bool root, char **ret,
    struct hr_err *err)
{
	HR_FREE char *parent = NULL;

	if (*controllers != '\0' && hr_hierarchy_share(top, controllers, !root, err) < 0)
		return -1;
	parent = hr_hierarchy_make(top, PARENT, err);
	if (parent == NULL ||
	    (*controllers != '\0' && hr_hierarchy_share(parent, controllers, false, err) < 0))
		return -1;
	*ret = hr_path_join(parent, name);
	if (*ret == NULL)
		return hr_err_nomem(err);
	/* a leftover group has limits of its own */
	(void)rmdir(*ret);
	return mkdir(*ret, 0755) == 0 ? 0
				      : hr_err_sys(err, errno, "make the control group %s%s", *ret,
					    errno == EEXIST ? ", which a box that runs has" : "");
}

static int
set_limit(
    enum controller c, int version, const char *dir, const struct box_limits *l, struct hr_err *err)
{
	char value[64];
	long long quota = (long long)(l->cpus * CPU_PERIOD_US);
	struct hr_err e = {0};

	switch (c) {
	case MEMORY:
		(void)snprintf(value, sizeof(value), "%lld", (long long)l->memory_bytes);
		if (hr_hierarchy_put(
			dir, version == 2 ? "memory.max" : "memory.limit_in_bytes", value, err) < 0)
			return -1;
		/* memory that is swapped out counts; a kernel without swap has no such file */
		return hr_hierarchy_put(dir,
			   version == 2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
			   version == 2 ? "0" : value, &e) == 0 ||
			       e.sys == ENOENT
			   ? 0
			   : hr_err_set(err, e.code, "%s", e.msg);
	case PROCESSES:
		return hr_hierarchy_put_number(dir, "pids.max", (uint64_t)l->processes, err);
	case CPUS:
		(void)snprintf(
		    value, sizeof(value), version == 2 ? "%lld %d" : "%lld", quota, CPU_PERIOD_US);
		return hr_hierarchy_put(
		    dir, version == 2 ? "cpu.max" : "cpu.cfs_quota_us", value, err);
	default: return 0;
	}
}

/* Opens the way into a group that was just made. */
static int
open_way(const char *dir, int version, struct box_groups *g, struct hr_err *err)
{
	HR_FREE char *tasks = hr_path_join(dir, "tasks");
	int *way = version == 2 ? &g->into : &g->join[g->njoin++];

	if (tasks == NULL)
		return hr_err_nomem(err);
	*way = version == 2 ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC)
			    : open(tasks, O_WRONLY | O_CLOEXEC);
	return *way >= 0 ? 0 : hr_err_sys(err, errno, "open the control group %s", dir);
}

/* Makes the group of one controller, unless another one of its hierarchy has made it, and adds its
 * path to `dirs`. */
static int
make_one(const struct box_spec *s, struct places *p, enum controller c, const char *controllers,
    bool root, struct box_groups *g, struct hr_buf *dirs, struct hr_err *err)
{
	enum controller same = 0;

	while (same < c && (p->made[same] == NULL || strcmp(p->at[same], p->at[c]) != 0))
		same++;
	if (same < c)
		return set_limit(c, p->version[c], p->made[same], &s->limits, err);
	if (make_group(p->at[c], s->name, p->version[c] == 2 ? controllers : "", root, &p->made[c],
		err) < 0 ||
	    set_limit(c, p->version[c], p->made[c], &s->limits, err) < 0 ||
	    open_way(p->made[c], p->version[c], g, err) < 0)
		return -1;
	hr_buf_adds(dirs, dirs->len > 0 ? ", " : "");
	(void)hr_json_put_str(dirs, p->made[c], strlen(p->made[c]), HR_JSON_REPLACE);
	return hr_buf_check(dirs, err);
}

static const char *
reason(bool root)
{
	return root ? "this machine has no such control group"
		    : "your control group must be of version 2, belong to you and have these "
		      "controllers: start handrail with \"systemd-run --user --scope -p "
		      "Delegate=yes\", or be root";
}

void
box_group_lacks(bool root, struct hr_buf *b)
{
	HR_CLEAN(places_done) struct places p = {.at = {NULL}};
	const char *before = "A box cannot be limited or paused here by the control groups ";
	int c;

	find(&p, "/proc", root, NULL);
	for (c = 0; c < CONTROLLERS; c++) {
		if (p.at[c] != NULL)
			continue;
		hr_buf_addf(b, "%s%s", before, names[c]);
		before = ", ";
	}
	if (*before == ',')
		hr_buf_addf(b, ": %s.\n", reason(root));
}

int
box_group_make(const struct box_spec *s, const char *proc, bool root, struct box_groups *ret,
    struct hr_buf *dirs, struct hr_err *err)
{
	/* the freezer has no limit, and is missing without an error */
	const bool wanted[CONTROLLERS] = {
	    s->limits.memory_bytes > 0, s->limits.processes > 0, s->limits.cpus > 0, true};
	HR_CLEAN(places_done) struct places p = {.at = {NULL}};
	char controllers[64] = "";
	int c;

	*ret = (struct box_groups){.into = -1};
	find(&p, proc, root, wanted);
	for (c = 0; c < CONTROLLERS; c++) {
		if (wanted[c] && c != FREEZER && p.at[c] == NULL)
			return hr_err_set(err, HR_E_UNSUPPORTED,
			    "the limit of %s cannot be enforced: %s", names[c], reason(root));
		if (wanted[c] && c != FREEZER && p.version[c] == 2)
			(void)snprintf(controllers + strlen(controllers),
			    sizeof(controllers) - strlen(controllers), "%s+%s",
			    *controllers != '\0' ? " " : "", names[c]);
	}
	for (c = 0; c < CONTROLLERS; c++)
		if (p.at[c] != NULL &&
		    make_one(s, &p, (enum controller)c, controllers, root, ret, dirs, err) < 0)
			return -1;
	return 0;
}

int
box_group_join(const struct box_groups *g, struct hr_err *err)
{
	size_t i;

	for (i = 0; i < g->njoin; i++)
		if (write(g->join[i], "0", 1) != 1)
			return hr_err_sys(err, errno, "join the control groups of the box");
	return 0;
}

void
box_group_close(struct box_groups *g)
{
	hr_fd_close(&g->into);
	while (g->njoin > 0)
		hr_fd_close(&g->join[--g->njoin]);
}

bool
box_group_remove(const char *name, bool root)
{
	HR_CLEAN(places_done) struct places p = {.at = {NULL}};
	bool gone = true;
	int c;

	find(&p, "/proc", root, NULL);
	for (c = 0; c < CONTROLLERS; c++) {
		HR_FREE char *parent = p.at[c] != NULL ? hr_path_join(p.at[c], PARENT) : NULL;
		HR_FREE char *dir = parent != NULL ? hr_path_join(parent, name) : NULL;

		if (dir != NULL && rmdir(dir) != 0 && errno == EBUSY)
			gone = false;
	}
	return gone;
}
