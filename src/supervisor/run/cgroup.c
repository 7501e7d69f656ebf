/* Control groups. The mount of this process's group is found from the kernel's files: mountinfo has
 * the root of each mount, /proc/self/cgroup the place below it. */
#include "config.h"

#include "supervisor/run/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"

#define PROC_MAX (1u << 20)

/* Returns true if a comma-separated list contains a word. */
static bool
list_has(const char *list, const char *word)
{
	size_t n = strlen(word), len;

	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (len == n && memcmp(list, word, n) == 0)
			return true;
		if (list[len] == '\0')
			return false;
	}
}

/* Returns this process's path in a controller's hierarchy ("": version 2), or NULL. Cuts text
 * up. */
static const char *
own_path(char *text, const char *controller)
{
	char *save = NULL, *line, *first, *second;

	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		first = strchr(line, ':');
		second = first != NULL ? strchr(first + 1, ':') : NULL;
		if (second == NULL)
			continue;
		*second = '\0';
		if (controller[0] == '\0' ? first[1] == '\0' : list_has(first + 1, controller))
			return second + 1;
	}
	return NULL;
}

/* Parses a line of mountinfo: root and mount point are fields 4 and 5; type, source and options
 * follow " - ". */
static bool
mount_fits(char *line, const char *controller, const char **ret_root, const char **ret_at)
{
	char *tail = strstr(line, " - "), *save = NULL, *type, *options;
	size_t i;

	if (tail == NULL)
		return false;
	*tail = '\0';
	(void)strtok_r(line, " ", &save);
	for (i = 0; i < 2; i++)
		(void)strtok_r(NULL, " ", &save);
	*ret_root = strtok_r(NULL, " ", &save);
	*ret_at = strtok_r(NULL, " ", &save);
	type = strtok_r(tail + 3, " ", &save);
	(void)strtok_r(NULL, " ", &save);
	options = strtok_r(NULL, " ", &save);
	if (*ret_root == NULL || *ret_at == NULL || type == NULL || options == NULL)
		return false;
	if (controller[0] == '\0')
		return strcmp(type, "cgroup2") == 0;
	return strcmp(type, "cgroup") == 0 && list_has(options, controller);
}

/* Returns the directory of this process's group; NULL with *err set. */
static char *
own_group(const char *proc, const char *controller, struct hr_err *err)
{
	HR_FREE char *cgroup = hr_path_join(proc, "self/cgroup");
	HR_FREE char *info = hr_path_join(proc, "self/mountinfo");
	char *found = NULL, *save = NULL, *line;
	const char *path = NULL, *root, *at;
	HR_BUF(own, PROC_MAX);
	HR_BUF(mounts, PROC_MAX);

	if (cgroup == NULL || info == NULL)
		(void)hr_err_nomem(err);
	else if (hr_path_read(cgroup, &own, err) == 0 && hr_path_read(info, &mounts, err) == 0)
		path = own_path(own.p, controller);
	line = path != NULL ? strtok_r(mounts.p, "\n", &save) : NULL;
	for (; line != NULL && found == NULL; line = strtok_r(NULL, "\n", &save)) {
		size_t n;

		if (!mount_fits(line, controller, &root, &at))
			continue;
		n = strcmp(root, "/") == 0 ? 0 : strlen(root);
		if (strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0'))
			found = hr_path_join(at, path[n] == '/' ? path + n + 1 : "");
	}
	if (found == NULL && (err == NULL || err->code == HR_OK))
		(void)hr_err_set(err, HR_E_NOTFOUND, "no control group for %s is mounted",
		    controller[0] != '\0' ? controller : "version 2");
	return found;
}

static int
put(const char *group, const char *file, const char *text, struct hr_err *err)
{
	HR_FREE char *path = hr_path_join(group, file);
	size_t len = strlen(text);
	int fd = -1, r = -1;

	if (path == NULL)
		return hr_err_nomem(err);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	/* these files require a single write */
	if (fd >= 0 && write(fd, text, len) == (ssize_t)len)
		r = 0;
	else
		(void)hr_err_sys(err, errno, "%s", path);
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int
put_number(const char *group, const char *file, uint64_t n, struct hr_err *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, n);
	return put(group, file, text, err);
}

static char *
make(const char *parent, const char *name, struct hr_err *err)
{
	char *dir = hr_path_join(parent, name);

	if (dir == NULL) {
		(void)hr_err_nomem(err);
	} else if (mkdir(dir, 0755) != 0 && errno != EEXIST) {
		(void)hr_err_sys(err, errno, "%s", dir);
		free(dir);
		dir = NULL;
	}
	return dir;
}

/* ---- version 1 ---- */

/* Adds a group. Returns its directory, owned by *g; NULL: none. */
static const char *
add_one(struct hr_cgroup *g, const char *proc, const char *controller, const char *name,
    struct hr_err *err)
{
	char *dir;
	HR_FREE char *parent = own_group(proc, controller, err);

	dir = parent != NULL ? make(parent, name, err) : NULL;
	if (dir != NULL)
		g->dirs[g->n++] = dir;
	return dir;
}

static int
open_one(struct hr_cgroup *g, const char *proc, const char *name, const struct hr_cgroup_limits *l,
    struct hr_err *err)
{
	const char *dir;

	if (l->memory > 0 && (dir = add_one(g, proc, "memory", name, err)) != NULL) {
		g->has_memory = put_number(dir, "memory.limit_in_bytes", l->memory, err) == 0;
		if (g->has_memory) /* no swap beyond it, if the kernel counts swap */
			(void)put_number(dir, "memory.memsw.limit_in_bytes", l->memory, NULL);
	}
	if (l->pids > 0 && (dir = add_one(g, proc, "pids", name, err)) != NULL)
		g->has_pids = put_number(dir, "pids.max", l->pids, err) == 0;
	if (l->cpu_quota > 0 && (dir = add_one(g, proc, "cpu", name, err)) != NULL)
		g->has_cpu = put_number(dir, "cpu.cfs_period_us", l->cpu_period, err) == 0 &&
			     put_number(dir, "cpu.cfs_quota_us", l->cpu_quota, err) == 0;
	return 0;
}

/* ---- version 2 ---- */

/* Enables controllers for subgroups. The group must hold no process: the server's move below it. */
static int
share_out(const char *parent, const char *controllers, struct hr_err *err)
{
	HR_FREE char *server = NULL;
	int r;

	if (put(parent, "cgroup.subtree_control", controllers, err) == 0)
		return 0;
	if (err->sys != EBUSY)
		return -1;
	server = make(parent, "handrail-server", err);
	if (server == NULL)
		return -1;
	r = put(server, "cgroup.procs", "0", err);
	return r == 0 ? put(parent, "cgroup.subtree_control", controllers, err) : -1;
}

static int
open_two(struct hr_cgroup *g, const char *proc, const char *name, const struct hr_cgroup_limits *l,
    struct hr_err *err)
{
	const char *controllers = l->memory == 0 ? "+pids"
				  : l->pids == 0 ? "+memory"
						 : "+memory +pids";
	char *dir = NULL, text[48];
	HR_FREE char *parent = own_group(proc, "", err);
	int r = 0;

	if (parent != NULL && (l->memory > 0 || l->pids > 0))
		r = share_out(parent, controllers, err);
	/* separate: without it the other limits still work */
	if (parent != NULL && l->cpu_quota > 0 && share_out(parent, "+cpu", err) == 0)
		g->has_cpu = true;
	if (parent != NULL && (r == 0 || g->has_cpu))
		dir = make(parent, name, err);
	if (dir == NULL) {
		g->has_cpu = false;
		return -1;
	}
	g->dirs[g->n++] = dir;
	if (r == 0) {
		g->has_memory = l->memory > 0 && put_number(dir, "memory.max", l->memory, err) == 0;
		g->has_pids = l->pids > 0 && put_number(dir, "pids.max", l->pids, err) == 0;
	}
	if (g->has_memory)
		(void)put(dir, "memory.swap.max", "0", NULL);
	(void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, l->cpu_quota, l->cpu_period);
	g->has_cpu = g->has_cpu && put(dir, "cpu.max", text, err) == 0;
	if (l->cpu_quota == 0)
		(void)put(dir, "cpu.max", "max", NULL); /* a predecessor's shell may be here */
	return 0;
}

/* Returns true if version 2 has the controller: a machine may mount it without any. */
static bool
is_two(const char *proc, const char *controller)
{
	struct hr_err none = {0};
	HR_BUF(text, PROC_MAX);
	HR_FREE char *dir = own_group(proc, "", &none);
	char *save = NULL, *word;
	bool has = false;
	HR_FREE char *file = dir != NULL ? hr_path_join(dir, "cgroup.controllers") : NULL;

	if (file != NULL && hr_path_read(file, &text, NULL) == 0 && text.len > 0) {
		word = strtok_r(text.p, " \n", &save);
		for (; word != NULL && !has; word = strtok_r(NULL, " \n", &save))
			has = strcmp(word, controller) == 0;
	}
	return has;
}

int
hr_cgroup_open(struct hr_cgroup *g, const char *proc, const char *name,
    const struct hr_cgroup_limits *l, struct hr_err *err)
{
	bool two;
	int r;

	memset(g, 0, sizeof(*g));
	if (l->memory == 0 && l->pids == 0 && l->cpu_quota == 0)
		return 0;
	two = is_two(proc, l->memory > 0 ? "memory" : l->pids > 0 ? "pids" : "cpu");
	r = two ? open_two(g, proc, name, l, err) : open_one(g, proc, name, l, err);
	return r != 0 || (l->memory > 0 && !g->has_memory) || (l->pids > 0 && !g->has_pids) ||
		       (l->cpu_quota > 0 && !g->has_cpu)
		   ? -1
		   : 0;
}

void
hr_cgroup_close(struct hr_cgroup *g)
{
	size_t i;

	for (i = 0; i < g->n; i++) {
		(void)rmdir(g->dirs[i]); /* fails while a process that cannot be killed is in it */
		free(g->dirs[i]);
	}
	memset(g, 0, sizeof(*g));
}
